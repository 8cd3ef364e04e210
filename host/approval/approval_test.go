package approval

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/parley-tools/parley/manifest"
)

// TestShortParams checks that a person who reads shortened parameters sees each of them: a long value cannot keep one
// that comes after it out of sight. Where there are too many, the end says so.
func TestShortParams(t *testing.T) {
	long := strings.Repeat("x", 1<<20) + "\x1b[2J\u202e"
	many := map[string]any{}
	for i := range 10_000 {
		many[fmt.Sprint(i)] = i
	}
	for name, params := range map[string]any{
		"one":     map[string]any{"a": long, "to": "eve"},
		"several": map[string]any{"a": long, "b": []any{long, long}, "c": map[string]any{long: long, "d": 1}, "to": "eve"},
		"short":   map[string]any{"to": "eve", "escaped": "\x1b[2J\u202e<b>"},
		"many":    many,
		"a text":  long,
		"nothing": nil,
	} {
		raw, err := json.Marshal(params)
		if err != nil {
			t.Fatal(err)
		}
		for _, limit := range []int{300, 2000, 4096} {
			short := (&Approval{Params: raw}).ShortParams(limit)
			all := fmt.Sprintf("(%d bytes in all)", len(raw))
			_, isObject := params.(map[string]any)
			if seen := strings.Contains(string(short), `"to":"eve"`); isObject && seen == (name == "many") {
				t.Errorf("%s in %d bytes: %s", name, limit, short)
			}
			if len(short) > limit*3/2 || !json.Valid(short) || manifest.Clean(string(short)) != string(short) {
				t.Errorf("%s in %d bytes: %d bytes: %.300q", name, limit, len(short), short)
			}
			if name == "many" != strings.Contains(string(short), all) {
				t.Errorf("%s in %d bytes: %.80s, expected %s", name, limit, short, all)
			}
		}
	}
}
