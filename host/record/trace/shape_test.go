package trace

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

func TestShapes(t *testing.T) {
	keys := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, `,"k%d":%d`, i, i)
		}
		return b.String()[1:]
	}
	tests := []struct{ name, given, want string }{
		{"the example", `{"urls":["https://example.com"]}`, `{"urls":"array[1]<string(19)>"}`},
		{"scalars", ` { "a" : 1 , "b":-1.5,"c":true,"d":false,"e":null,"f":"" }`,
			`{"a":"integer","b":"number","c":"boolean","d":"boolean","e":"null","f":"string(0)"}`},
		{"numbers", `{"a":1.0,"b":1e3,"c":1e-3,"d":1e999}`, `{"a":"integer","b":"integer","c":"number","d":"number"}`},
		{"characters, not bytes", `{"a":"ä😀","b":"\u00e4\ud83d\ude00\n\\\"","c":"\ud83d"}`,
			`{"a":"string(2)","b":"string(5)","c":"string(1)"}`},
		{"objects", `{"o":{"b":1,"a":{"c":2}},"e":{}}`, `{"o":"object{b,a}","e":"object{}"}`},
		{"arrays", `{"a":[],"b":["x","xyz","xy"],"c":[1,null,2],"d":[[1],[2],[3,4]],"e":[{"x":1},{"x":2}]}`,
			`{"a":"array[0]","b":"array[3]<string(1..3)>","c":"array[3]<integer|null>","d":"array[3]<array[1]<integer>|array[2]<integer>>","e":"array[2]<object{x}>"}`},
		{"many kinds", `{"a":[1,"x",null,true,{},2]}`, `{"a":"array[6]<integer|string(1)|null|…>"}`},
		{"not an object", `[1,2]`, `"array[2]<integer>"`},
		{"a string", `"secret"`, `"string(6)"`},
		{"a number", `12`, `"integer"`},
		{"no JSON", `{"a":secret}`, `"invalid(12)"`},
		{"nothing", ``, `"invalid(0)"`},
		{"a key with a terminal sequence", `{"\u001b[31ma\nb":1}`, `{"\\u001b[31ma b":"integer"}`},
		{"a long key", `{"` + strings.Repeat("k", 100) + `":1}`, `{"` + strings.Repeat("k", 61) + `…":"integer"}`},
		{"a very long key", `{"` + strings.Repeat("k", 5000) + `":1}`, `{"` + strings.Repeat("k", 61) + `…":"integer"}`},
		{"many keys inside", `{"o":{` + keys(20) + `}}`,
			`{"o":"object{k0,k1,k2,k3,k4,k5,k6,k7,k8,k9,k10,k11,k12,k13,k14,k15,+4}"}`},
		{"deep", `{"a":` + strings.Repeat("[", 20) + strings.Repeat("]", 20) + `}`,
			`{"a":"` + strings.Repeat("array[1]<", 7) + "array[1]" + strings.Repeat(">", 7) + `"}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := string(Shapes(json.RawMessage(tt.given), nil)); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
	got := string(Shapes(json.RawMessage("{"+keys(100)+"}"), nil))
	if !strings.HasSuffix(got, `"k63":"integer","…":"36 more"}`) {
		t.Errorf("100 parameters: %s", got)
	}
}

// TestMembers checks that members of an enum stand in shapes, and other strings do not.
func TestMembers(t *testing.T) {
	members := map[string][]string{"a": {"sha256"}, "b": {"x", "y"}, "c": {"n"}}
	got := string(Shapes(json.RawMessage(`{"a":"sha256","b":["x","y"],"c":7,"d":"secret"}`), members))
	if want := `{"a":"enum(sha256)","b":"array[2]<enum(x|y)>","c":"integer","d":"string(6)"}`; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestShapesOfMegabytes(t *testing.T) {
	given := json.RawMessage(`{"a":[` + strings.Repeat(`{"x":"yyyyyyyy","z":[1,2,3]},`, 70_000) + `{}]}`) // 2 MB
	got := string(Shapes(given, nil))
	if want := `{"a":"array[70001]<object{x,z}|object{}>"}`; got != want {
		t.Errorf("got %s", got)
	}
}

func FuzzShapes(f *testing.F) {
	f.Add([]byte(`{"a":[1,"x",{"b":null}],"\u00e4":"\ud83d\ude00"}`))
	f.Add([]byte(`"\ud83d\u0041"`))
	f.Add([]byte(` -1.5e3 `))
	f.Fuzz(func(t *testing.T, data []byte) {
		got := Shapes(data, nil)
		if !json.Valid(got) || len(got) > 64<<10 {
			t.Fatalf("%q has the shape %s", data, got)
		}
		var s string
		if json.Unmarshal(data, &s) == nil && !strings.Contains(string(data), `\ud`) &&
			!strings.Contains(string(data), `\uD`) && len(data) > 0 && data[0] == '"' {
			if want := fmt.Sprintf(`"string(%d)"`, len([]rune(s))); string(got) != want {
				t.Fatalf("%q has the shape %s, want %s", data, got, want)
			}
		}
	})
}
