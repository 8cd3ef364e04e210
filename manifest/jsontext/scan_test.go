package jsontext

import (
	"strings"
	"testing"
)

func TestScanner(t *testing.T) {
	s := Scan([]byte(` {"a\"": [1, -2.5e3 ,null],"b":{"c":"]"} , "d":[]}`))
	var got []string
	s.Members(func(key []byte) {
		name, ok := Unquote(key)
		if !ok {
			t.Errorf("%s is not a string", key)
		}
		if s.Members(func(inner []byte) { got = append(got, name+"."+string(inner)+"="+string(s.Next())) }) {
			return
		}
		if !s.Items(func() { got = append(got, name+":"+string(s.Skip())) }) {
			t.Errorf("%s has an unexpected value", key)
		}
	})
	want := `a":1 a":-2.5e3 a":null b."c"="]"`
	if strings.Join(got, " ") != want || s.Next() != nil {
		t.Errorf("got %q, want %q", strings.Join(got, " "), want)
	}
}

func TestUnquote(t *testing.T) {
	for token, want := range map[string]string{
		`"a"`: "a", `""`: "", `"\u00e9\n"`: "é\n", "\"a\xff\"": "a\ufffd", `"\ud800"`: "\ufffd",
	} {
		if got, ok := Unquote([]byte(token)); got != want || !ok {
			t.Errorf("Unquote(%s) = %q, %v", token, got, ok)
		}
	}
	for _, token := range []string{``, `"`, `1`, `null`, `"a`, `"a"b"`, "\"\n\""} {
		if got, ok := Unquote([]byte(token)); ok {
			t.Errorf("Unquote(%s) = %q", token, got)
		}
	}
}

func TestPrune(t *testing.T) {
	const in = ` {"type": "object", "properties":{"b":{"type":"integer","minimum":1},"a/b":[1,{"minimum":2},3]},` +
		`"additionalProperties":false } `
	for _, tt := range []struct {
		name, want string
		drop       func(pointer string, value []byte) bool
	}{
		{"nothing", `{"type":"object","properties":{"b":{"type":"integer","minimum":1},"a/b":[1,{"minimum":2},3]},"additionalProperties":false}`,
			func(string, []byte) bool { return false }},
		{"by name and value", `{"type":"object","properties":{"b":{"type":"integer"},"a/b":[1,{},3]}}`,
			func(pointer string, value []byte) bool {
				return strings.HasSuffix(pointer, "/minimum") ||
					strings.HasSuffix(pointer, "/additionalProperties") && string(value) == "false"
			}},
		{"by pointer", `{"properties":{"a/b":[{"minimum":2},3]},"additionalProperties":false}`,
			func(pointer string, _ []byte) bool {
				return pointer == "/type" || pointer == "/properties/b" || pointer == "/properties/a~1b/0"
			}},
	} {
		if got := string(Prune([]byte(in), tt.drop)); got != tt.want {
			t.Errorf("%s:\n got %s\nwant %s", tt.name, got, tt.want)
		}
	}
}
