package instrument

import (
	"maps"
	"testing"
)

func TestFunctionNames(t *testing.T) {
	names := "\x00\x0f\x04name\x01\x08\x02\x00\x01a\x02\x02bc" // function 0 is a, function 2 is bc
	for _, c := range []struct {
		name, wasm string
		found      bool
		want       map[int]string
	}{
		{"names", header + names, true, map[int]string{0: "a", 1: "", 2: "bc"}},
		{"other sections before it", header + "\x00\x05\x04other"[:8] + names, false, map[int]string{0: "", 1: "", 2: ""}},
		{"no names", header, false, map[int]string{0: "", 1: "", 2: ""}},
		{"cut within a name", header + names[:13] + "\x02", false, map[int]string{0: "", 1: "", 2: ""}},
		{"a count that is too large", header + "\x00\x08\x04name\x01\x01\x7f", false, map[int]string{0: "", 1: "", 2: ""}},
		{"empty", "", false, map[int]string{0: "", 1: "", 2: ""}},
	} {
		got := map[int]string{0: "", 1: "", 2: ""}
		if found := FunctionNames([]byte(c.wasm), got); found != c.found || !maps.Equal(got, c.want) {
			t.Errorf("%s: %v %v, want %v %v", c.name, found, got, c.found, c.want)
		}
	}
}

const header = "\x00asm\x01\x00\x00\x00"

func FuzzFunctionNames(f *testing.F) {
	f.Add([]byte(header + "\x00\x0f\x04name\x01\x08\x02\x00\x01a\x02\x02bc"))
	f.Fuzz(func(t *testing.T, wasm []byte) {
		wanted := map[int]string{0: "", 1: ""}
		FunctionNames(wasm, wanted)
		if len(wanted) != 2 {
			t.Errorf("%v", wanted)
		}
	})
}
