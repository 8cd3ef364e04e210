package jsontext

import (
	"errors"
	"strings"
	"testing"
)

func TestDecode(t *testing.T) {
	for in, want := range map[string]string{
		` {"b":[1,2.50,-0,1e2],"a":"x"} `: `{"a":"x","b":[1,2.50,-0,1e2]}`,
		`"\u00e9\n\"\\\/\ud83d\ude00<>&"`: `"é\n\"\\/😀<>&"`,
		`"\u0000\u001f"`:                  `"\u0000\u001f"`,
		"\t[ ]\r\n":                       `[]`,
		`{}`:                              `{}`,
		`null`:                            `null`,
		`0e999999`:                        `0e999999`,
		`{"":{"":[true,false]}}`:          `{"":{"":[true,false]}}`,
	} {
		v, err := Decode([]byte(in), Limits{})
		if err != nil {
			t.Errorf("%s: %v", in, err)
			continue
		}
		if got := string(Marshal(v)); got != want {
			t.Errorf("%s: got %s, want %s", in, got, want)
		}
	}
	if _, err := Decode([]byte(`"`+strings.Repeat("x", 8<<20)+`"`), Limits{Bytes: 16 << 20}); err != nil {
		t.Error(err)
	}
}

func TestDecodeErrors(t *testing.T) {
	for _, tt := range []struct{ in, want string }{
		{``, `invalid JSON at line 1, column 1: the input is empty, a JSON value is expected`},
		{"  \n ", `invalid JSON at line 2, column 2: the input is empty, a JSON value is expected`},
		{`{"a":`, `invalid JSON at line 1, column 6: the text ends where a value is expected (at /a)`},
		{`{"a":[1,`, `invalid JSON at line 1, column 9: the text ends where a value is expected (at /a/1)`},
		{`{"a"`, `invalid JSON at line 1, column 5: the text ends inside an object (at /a)`},
		{`[1`, `invalid JSON at line 1, column 3: the text ends inside an array (at /0)`},
		{`"abc`, `invalid JSON at line 1, column 1: the string that begins here is not terminated`},
		{`{"a":1} x`, `invalid JSON at line 1, column 9: "x" after the end of the value`},
		{`{}{}`, `invalid JSON at line 1, column 3: '{' after the end of the value`},
		{`{"a":1,"b":{"a":1,"a":2}}`, `invalid JSON at line 1, column 19: duplicate key "a" (at /b/a)`},
		{`{"a":1,"\u0061":2}`, `invalid JSON at line 1, column 8: duplicate key "a" (at /a)`},
		{`{"a/b":tru}`, `invalid JSON at line 1, column 8: "tru" where a value is expected (at /a~1b)`},
		{`{a:1}`, `invalid JSON at line 1, column 2: "a" where a key in double quotes is expected`},
		{`{'a':1}`, `invalid JSON at line 1, column 2: '\'' where a key in double quotes is expected`},
		{`['a']`, `invalid JSON at line 1, column 2: '\'' where a value is expected: strings are written in double quotes (at /0)`},
		{`{"a":1,}`, `invalid JSON at line 1, column 8: '}' after a comma: remove the comma`},
		{`[1,]`, `invalid JSON at line 1, column 4: ']' after a comma: remove the comma (at /1)`},
		{`{"a" 1}`, `invalid JSON at line 1, column 6: "1" where ':' is expected after key "a" (at /a)`},
		{`[1 2]`, `invalid JSON at line 1, column 4: "2" where ',' or ']' is expected (at /0)`},
		{`{"a":1 "b":2}`, `invalid JSON at line 1, column 8: '"' where ',' or '}' is expected`},
		{"\x00", `invalid JSON at line 1, column 1: a NUL byte where a value is expected`},
		{"\"a\x00\"", `invalid JSON at line 1, column 3: a NUL byte inside a string: write \u0000`},
		{"\"a\nb\"", `invalid JSON at line 1, column 3: control character "\n" inside a string: write \n`},
		{"[\"é\xff\"]", `invalid JSON at line 1, column 4: byte 0xff in a string is not valid UTF-8 (at /0)`},
		{"\xff\xfe{\x00}\x00", `invalid JSON at line 1, column 1: the text is UTF-16: save it as UTF-8`},
		{"\x00{\x00}", `invalid JSON at line 1, column 1: the text is UTF-16: save it as UTF-8`},
		{"\xff", `invalid JSON at line 1, column 1: byte 0xff, which is not UTF-8, where a value is expected`},
		{"\ufeff{}", `invalid JSON at line 1, column 1: the text begins with a byte order mark: remove it`},
		{`"\x"`, `invalid JSON at line 1, column 2: unknown escape in a string: a backslash itself is written \\`},
		{`"\u12"`, `invalid JSON at line 1, column 2: \u must be followed by four hexadecimal digits`},
		{`"\ud800"`, `invalid JSON at line 1, column 2: escape \ud800 is half of a surrogate pair`},
		{`01`, `invalid JSON at line 1, column 1: "01" is not a JSON number`},
		{`-`, `invalid JSON at line 1, column 1: "-" is not a JSON number`},
		{`1.`, `invalid JSON at line 1, column 1: "1." is not a JSON number`},
		{`NaN`, `invalid JSON at line 1, column 1: "NaN" where a value is expected`},
		{`1e400`, `invalid JSON at line 1, column 1: the number 1e400 has more than 400 digits`},
		{`1e-99999999`, `invalid JSON at line 1, column 1: the number 1e-99999999 is out of range`},
		{`1.5e401`, `invalid JSON at line 1, column 1: the number 1.5e401 is out of range`},
		{"0." + strings.Repeat("1", 63), `invalid JSON at line 1, column 1: a number of 65 characters; at most 64 are accepted: write it as a string`},
		{strings.Repeat("1", 402), `invalid JSON at line 1, column 1: an integer of 402 digits; at most 400 are accepted: write it as a string`},
		{strings.Repeat("[", 201), `invalid JSON at line 1, column 201: more than 200 nested arrays and objects`},
		{"{\n  \"a\": é\n}", `invalid JSON at line 2, column 8: 'é' where a value is expected (at /a)`},
	} {
		_, err := Decode([]byte(tt.in), Limits{})
		var syn *SyntaxError
		if !errors.As(err, &syn) || err.Error() != tt.want {
			t.Errorf("%.40q:\n got %v\nwant %s", tt.in, err, tt.want)
		}
	}
	_, err := Decode(make([]byte, 4<<20+1), Limits{})
	if err == nil || !strings.Contains(err.Error(), "at most 4194304") {
		t.Error(err)
	}
	for _, longest := range []string{strings.Repeat("9", 400), "-" + strings.Repeat("9", 400), "1e399", "-1.5e399"} {
		if _, err := Decode([]byte(longest), Limits{}); err != nil {
			t.Errorf("%.20s: %v", longest, err)
		}
	}
	_, err = Decode([]byte(`[[1]]`), Limits{Depth: 1})
	if err == nil || !strings.Contains(err.Error(), "more than 1 nested") {
		t.Error(err)
	}
}

func TestInteger(t *testing.T) {
	for in, want := range map[string]string{
		"0": "0", "-0": "0", "-0.0": "0", "0e9": "0", "1.0": "1", "2e1": "20", "1E+2": "100", "-1.20e1": "-12",
		"120e-1": "12",
		"0.05e2": "5", "1.5": "", "1e-1": "", "15e-2": "", "9007199254740993.0": "9007199254740993",
		"1e30": "1" + strings.Repeat("0", 30), "00": "", "x": "",
	} {
		if got, ok := Integer(in); got != want || ok != (want != "") {
			t.Errorf("Integer(%q) = %q, %v; want %q", in, got, ok, want)
		}
	}
}
