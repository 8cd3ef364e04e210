package jsontext

import (
	"bytes"
	"encoding/json"
	"testing"
)

func TestCut(t *testing.T) {
	const data = `{"a": "b\"c", "d": [1, {"e": null}, -2.5e3], "f": {}}`
	for limit, want := range map[int]string{
		0: ``, 1: ``, 4: ``, 11: ``, 12: `{"a": "b\"c"`, 19: `{"a": "b\"c"`, 21: `{"a": "b\"c", "d": [1`,
		33: `{"a": "b\"c", "d": [1, {"e": null`, 34: `{"a": "b\"c", "d": [1, {"e": null}`,
		41: `{"a": "b\"c", "d": [1, {"e": null}`, 42: `{"a": "b\"c", "d": [1, {"e": null}, -2.5e3`,
		43: `{"a": "b\"c", "d": [1, {"e": null}, -2.5e3]`, len(data): data, 2 * len(data): data,
	} {
		if got := string(Cut([]byte(data), limit)); got != want {
			t.Errorf("%d bytes: %s, want %s", limit, got, want)
		}
	}
	for _, scalar := range []string{`"ab"`, `12`, `true`} {
		if got := Cut([]byte(scalar), len(scalar)-1); len(got) > 0 {
			t.Errorf("of %s: %s", scalar, got)
		}
		if got := string(Cut([]byte(scalar), len(scalar))); got != scalar {
			t.Errorf("of %s: %s", scalar, got)
		}
	}
}

// FuzzCut checks that what Cut returns is whole: with the brackets closed that it leaves open, it is valid JSON.
func FuzzCut(f *testing.F) {
	f.Add([]byte(`{"a":[1,{"b":"c\\"}],"d":true}`), 17)
	f.Add([]byte(` [ "\ud83d\ude00" , [ ] ] `), 9)
	f.Fuzz(func(t *testing.T, data []byte, limit int) {
		cut := Cut(data, limit)
		if !bytes.HasPrefix(data, cut) || len(cut) > max(0, limit) {
			t.Fatalf("%d bytes of %q: %q", limit, data, cut)
		}
		if !json.Valid(data) || len(cut) == 0 {
			return
		}
		var closing []byte
		inString := false
		for i := 0; i < len(cut); i++ {
			switch c := cut[i]; {
			case inString && c == '\\':
				i++
			case c == '"':
				inString = !inString
			case inString:
			case c == '{' || c == '[':
				closing = append([]byte{c + 2}, closing...) // } and ] are two after { and [
			case c == '}' || c == ']':
				closing = closing[1:]
			}
		}
		if whole := append(bytes.Clone(cut), closing...); !json.Valid(whole) {
			t.Errorf("%d bytes of %q: %q is not whole", limit, data, cut)
		}
	})
}
