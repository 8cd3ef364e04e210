package jsontext

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
)

// FuzzScan compares the scanner with encoding/json on valid texts, and checks that it ends on others.
func FuzzScan(f *testing.F) {
	for _, s := range append(fuzzTexts, `[1,{"a":[[],{}]},"x\\\"y",true]`, `{"a" 1}`, `[}`, `{]`, `"a`, `]`) {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var tokens []string
		for s := Scan(data); ; {
			token := s.Next()
			if token == nil {
				break
			}
			tokens = append(tokens, string(token))
		}
		var walk func(s *Scanner)
		walk = func(s *Scanner) {
			if !s.Members(func([]byte) { walk(s) }) && !s.Items(func() { walk(s) }) {
				s.Next()
			}
		}
		walked := Scan(data)
		if walk(walked); walked.Offset() > len(data) {
			t.Fatalf("%q: offset %d", data, walked.Offset())
		}
		pruned := Prune(data, func(string, []byte) bool { return false })
		if !json.Valid(data) {
			return
		}
		var compact bytes.Buffer
		if err := json.Compact(&compact, data); err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(tokens, ""); got != compact.String() || string(pruned) != got {
			t.Fatalf("%q: tokens %s, pruned %s", data, got, pruned)
		}
		if whole := Scan(data).Skip(); string(whole) != strings.Trim(string(data), " \t\r\n") {
			t.Fatalf("%q: Skip returns %q", data, whole)
		}
		for _, token := range tokens {
			if token[0] != '"' {
				continue
			}
			var want string
			got, ok := Unquote([]byte(token))
			if err := json.Unmarshal([]byte(token), &want); err != nil || !ok || got != want {
				t.Fatalf("Unquote(%s) = %q, %v", token, got, ok)
			}
		}
	})
}

var fuzzTexts = []string{
	`{"urls":["a"],"n":"5"}`, `["a",1,[null]]`, `[1,1.0,"x"]`, `{"a":1,"b":true}`, `{"abc":{"d":{}}}`, `"ab"`, `null`,
	`"{\"a\":{}}"`, `{}`, `[]`, `{"a":1,"a":2}`, "\"\xff\"", `"\ud83d\ude00\ud800"`, `1e400`, `[1,]`, "\x00", `{"a":"\u0000"}`,
}

func FuzzDecode(f *testing.F) {
	for _, s := range fuzzTexts {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		v, err := Decode(data, Limits{Depth: 50, Bytes: 1 << 16})
		if err != nil {
			var syn *SyntaxError
			if !errors.As(err, &syn) || syn.Line < 1 || syn.Column < 1 || syn.Offset > int64(len(data)) || syn.Msg == "" {
				t.Fatalf("%#v", err)
			}
			return
		}
		// encoding/json accepts every text that Decode accepts, and reads the same value.
		d := json.NewDecoder(bytes.NewReader(data))
		d.UseNumber()
		var std any
		if err := d.Decode(&std); err != nil {
			t.Fatalf("Decode accepted invalid JSON: %v", err)
		}
		if !reflect.DeepEqual(v, std) {
			t.Fatalf("got %s, encoding/json has %s", Marshal(v), Marshal(std))
		}
		text := Marshal(v)
		again, err := Decode(text, Limits{})
		if err != nil || !reflect.DeepEqual(v, again) || !bytes.Equal(text, Marshal(again)) {
			t.Fatalf("%s is not decoded again: %v", text, err)
		}
	})
}

// FuzzReplaceLoneSurrogates checks that a valid text stays what encoding/json reads, and is then read strictly.
func FuzzReplaceLoneSurrogates(f *testing.F) {
	for _, s := range append(fuzzTexts, `"\ud800x"`, `"\udc00\uD83D\ude00\ud83d"`, `{"\ud800":"\\ud800\\\ud800"}`, `"\uD83d\u0041"`) {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var want, got any
		if json.Unmarshal(data, &want) != nil {
			return
		}
		replaced := ReplaceLoneSurrogates(data)
		if err := json.Unmarshal(replaced, &got); err != nil || !reflect.DeepEqual(got, want) {
			t.Fatalf("%q becomes %q: %v", data, replaced, err)
		}
		if _, err := Decode(replaced, Limits{}); err != nil && strings.Contains(err.Error(), "surrogate") {
			t.Fatalf("%q becomes %q: %v", data, replaced, err)
		}
	})
}
