package jsontext

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestRepair(t *testing.T) {
	for given, want := range map[string]string{
		`{"text":"hello"`:                      `{"text":"hello"}`,
		`{"text":"hello`:                       ``,
		`{"text":"hello",}`:                    `{"text":"hello"}`,
		`{"text":"hello"}}`:                    `{"text":"hello"}`,
		`{'text': 'it\'s "so"'}`:               `{"text":"it's \"so\""}`,
		`{text: "hello", n: -1.5e3}`:           `{"text":"hello","n":-1.5e3}`,
		`{"a": True, "b": None, "c":[1 ,, 2,]`: `{"a":true,"b":null,"c":[1,2]}`,
		"{\"a\":\"x\ny\\n\\u00e9\"}":           `{"a":"x\ny\n\u00e9"}`,
		`{"text": hello}`:                      `{"text":"hello"}`,
		`{"text"="hello"}`:                     `{"text":"hello"}`,
		`{"a":"b" "c":{"d":[{"e":1`:            `{"a":"b","c":{"d":[{"e":1}]}}`,
		`{"a":01}`:                             `{"a":"01"}`,
		`{`:                                    `{}`,
		`{,}`:                                  `{}`,
		" [1, 2 ;":                             ``,
		`{'a':'it's'}`:                         ``,
		`{"a":[1,2}`:                           ``,
		`{"a" "b"}`:                            ``,
		`{"a":1} and more`:                     ``,
		`{"a":"\q"}`:                           ``,
		`{a b: 1}`:                             ``,
		``:                                     ``,
		strings.Repeat("[", 4000):              ``,
	} {
		got, ok := Repair(given)
		if ok != (want != "") || ok && string(got) != want {
			t.Errorf("%.60s: %s (%v), want %s", given, got, ok, want)
		}
	}
}

func FuzzRepair(f *testing.F) {
	for _, s := range []string{`{"a":"b",}`, `{'a':'b'`, `{a:[1,True`, `{"a":"\u12`, "{\"\xff\":'\xc3"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		repaired, ok := Repair(text)
		if ok && !json.Valid(repaired) {
			t.Errorf("%q became %q", text, repaired)
		}
		if strict := json.Valid([]byte(text)); strict && len(text) < 1000 && !ok {
			t.Errorf("%q is valid JSON but was refused", text)
		}
	})
}
