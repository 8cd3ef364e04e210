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

// TestRepairs also covers what Repair refuses, because something is assumed. What is right stays as it is written.
func TestRepairs(t *testing.T) {
	for given, want := range map[string]string{
		"{ \"a\" : 1.50 ,\n}":                           "{ \"a\" : 1.50 \n}",
		"[1, 2 // two\n, 3 /* 4 */]":                    "[1, 2 \n, 3 ]",
		"# head\n{\"a\": 1} # end":                      "\n{\"a\": 1} ",
		"{'a': 'it\\'s', \"b\": 'say \"x\"'}":           `{"a": "it's", "b": "say \"x\""}`,
		"{'a': 'it's', b: 1}":                           `{"a": "it's", "b": 1}`,
		`{“a”: “x”, ‘b’: “it’s”}`:                       `{"a": "x", "b": "it’s"}`,
		`{"a": "he said "hi" to me", "b": 1}`:           `{"a": "he said \"hi\" to me", "b": 1}`,
		`{"a": "x, "y", z"}`:                            `{"a": "x, \"y\", z"}`,
		`["a" "b" 1 2]`:                                 `["a", "b", 1, 2]`,
		"{\n \"a\": 1\n \"b\": [1\n2]\n}":               "{\n \"a\": 1,\n \"b\": [1,\n2]\n}",
		"{\"a\": \"Ada,\n \"b\": \"x\"}":                "{\"a\": \"Ada\",\n \"b\": \"x\"}",
		"{\"a\": \"Ada\n}":                              "{\"a\": \"Ada\"\n}",
		`{"a": [{"b": "x}]}`:                            `{"a": [{"b": "x"}]}`,
		`{"a: 1, "b": 2}`:                               `{"a": 1, "b": 2}`,
		`{a": 1}`:                                       `{"a": 1}`,
		`{"a": tru`:                                     `{"a": true}`,
		`{"a": "cut o`:                                  `{"a": "cut o"}`,
		`{"a": 1, "b`:                                   `{"a": 1, "b": null}`,
		`{"a": 1, "b":`:                                 `{"a": 1, "b":null}`,
		`{"a": "x\`:                                     `{"a": "x"}`,
		`{"a": "x\u00`:                                  `{"a": "x"}`,
		`[1, 2, 3e`:                                     `[1, 2, 3]`,
		`{"a": [1, {"b": 2}`:                            `{"a": [1, {"b": 2}]}`,
		`{"a": [1, 2}`:                                  `{"a": [1, 2]}`,
		`{"a": [1, 2}, "b": 3}`:                         `{"a": [1, 2], "b": 3}`,
		`{"a": (1, 2)}`:                                 `{"a": [1, 2]}`,
		`[True, None, undefined, NaN, -Infinity]`:       `[true, null, null, null, null]`,
		`[+1, .5, 5., 0x1F, 1_000, -.5, 007]`:           `[1, 0.5, 5.0, 31, 1000, -0.5, "007"]`,
		`{a: hello there, u: http://a.test/x}`:          `{"a": "hello there", "u": "http://a.test/x"}`,
		`{"a" => 1, "b" = 2, "c" 3}`:                    `{"a" : 1, "b" : 2, "c": 3}`,
		`{"_id": ObjectId("12"), "at": new Date(5)}`:    `{"_id": "12", "at": 5}`,
		`callback({"a": 1});`:                           `{"a": 1}`,
		"Here it is:\n```json\n{\"a\": 1,}\n```\nBye {": "{\"a\": 1}\n",
		`Sure! {"a": 1} Hope this helps.`:               `{"a": 1} `,
		"{\"a\": 1}\n{\"a\": 2}\n":                      "[{\"a\": 1},\n{\"a\": 2}]\n",
		`"a": 1, "b": 2`:                                `{"a": 1, "b": 2}`,
		"[1, 2, ...]":                                   "[1, 2 ]",
		"\ufeff{\u00a0\"a\": 1,}":                       ` { "a": 1}`,
		`{"p": "C:\Users\x41"}`:                         `{"p": "C:\\Users\u0041"}`,
		"{\"a\": \"x\ty\x00\"}":                         `{"a": "x\ty\u0000"}`,
		`[1,, 2,,]`:                                     `[1, 2]`,
		`{"a": , "b": 1}`:                               `{"a": null, "b": 1}`,
		`{\"a\": \"b\\n\"}`:                             `{"a": "b\n"}`,
		`{"a":"b,c,"d":"e"}`:                            `{"a":"b,c","d":"e"}`,
		`["x,"y", "say, "so", z"]`:                      `["x","y", "say, \"so\", z"]`,
		`{"a":foo",b":"bar"}`:                           `{"a":"foo","b":"bar"}`,
		`https://a.test/`:                               `"https://a.test/"`,
		`{"a"; 1}`:                                      `{"a": 1}`,
		`{{"a": 1}}`:                                    ``,
		`[b'x', u"y"]`:                                  `["x", "y"]`,
	} {
		edits, err := Repairs(given)
		if got := Apply(given, edits); (err == nil) != (want != "") || err == nil && got != want {
			t.Errorf("%s\n got %s (%v)\nwant %s", given, got, err, want)
		}
	}
}

func FuzzRepair(f *testing.F) {
	for _, s := range []string{`{"a":"b",}`, `{'a':'b'`, `{a:[1,True`, `{"a":"\u12`, "{\"\xff\":'\xc3", "```\n[1}]", `a(b,"c" "d`,
		`[1]{"x": "y" z"}`, "{\"a\": \"b,\n\"c\": 1"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		repaired, ok := Repair(text)
		strict := json.Valid([]byte(text))
		if ok && !json.Valid(repaired) {
			t.Errorf("%q became %q", text, repaired)
		}
		if strict && len(text) < 1000 && !ok {
			t.Errorf("%q is valid JSON but was refused", text)
		}
		edits, err := Repairs(text)
		if edited := Apply(text, edits); err == nil && !json.Valid([]byte(edited)) || strict && edited != text {
			t.Errorf("%q became %q", text, edited)
		}
		if err != nil && (err.(*SyntaxError).Line < 1 || err.Error() == "") {
			t.Errorf("%q: %v", text, err)
		}
	})
}
