package jsontext

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"
)

type inner struct {
	Name string `json:"name"`
	Size int64  `json:"size,omitempty"`
}

type sample struct {
	inner
	Text   string            `json:"text"`
	On     bool              `json:"on"`
	Small  int8              `json:"small"`
	Count  uint64            `json:"count"`
	Share  float64           `json:"share"`
	Raw    json.RawMessage   `json:"raw"`
	When   time.Time         `json:"when"`
	List   []inner           `json:"list"`
	Words  []string          `json:"words"`
	Bytes  []byte            `json:"bytes"`
	Next   *sample           `json:"next"`
	Env    map[string]string `json:"env"`
	Any    any               `json:"any"`
	Fixed  [2]int            `json:"fixed"`
	Hidden string            `json:"-"`
	Plain  string
}

// samples are texts that encoding/json reads into a sample, and that spell names exactly.
var samples = []string{
	`{}`, `null`, ` { "text" : "a\n\u00e9\ud83d\ude00\ud800<" , "on":true } `,
	`{"name":"n","size":-7,"small":127,"count":18446744073709551615,"share":1e3,"Plain":"p"}`,
	`{"raw":{"a":[1, 2]},"when":"2026-11-25T10:00:00Z","list":[{"name":"a"},{},{"size":3,"x":{"y":[]}}]}`,
	`{"raw":null,"list":null,"words":null,"next":null,"text":null,"on":null,"env":null,"when":null,"bytes":null}`,
	`{"words":["a","b","c"],"list":[],"bytes":"aGVsbG8=","next":{"next":{"text":"deep"}},"env":{"a":"b"}}`,
	`{"any":{"a":[true,1.5,null]},"fixed":[1,2],"unknown":{"text":"no"},"-":"h","secret":"s"}`,
	`{"\u0074ext":"escaped"}`,
}

func TestUnmarshal(t *testing.T) {
	for _, text := range samples {
		var got, want sample
		if err := json.Unmarshal([]byte(text), &want); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if err := Unmarshal([]byte(text), &got); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s:\ngot  %+v, %v\nwant %+v", text, got, err, want)
		}
	}
	var list []inner
	if err := Unmarshal([]byte(`[{"name":"a"}]`), &list); err != nil || len(list) != 1 || list[0].Name != "a" {
		t.Errorf("got %v, %v", list, err)
	}
}

func TestUnmarshalMismatch(t *testing.T) {
	for text, field := range map[string]string{
		`{"text":1}`: "text", `{"small":128}`: "small", `{"size":64.0}`: "size", `{"next":{"list":[{},{"name":[]}]}}`: "next.list.name",
		`{"on":"true"}`: "on", `{"list":{}}`: "list", `{"next":[],"text":2}`: "next", `{"env":{"a":1}}`: "env.a", `[]`: "",
	} {
		var mismatch *json.UnmarshalTypeError
		err := Unmarshal([]byte(text), &sample{})
		if !errors.As(err, &mismatch) || !strings.HasPrefix(mismatch.Field, strings.TrimSuffix(field, ".a")) {
			t.Errorf("%s: got %v, want a mismatch of %q", text, err, field)
		}
	}
	if err := Unmarshal([]byte(`{"when":"yesterday"}`), &sample{}); err == nil {
		t.Error("an invalid time is read without an error")
	}
}

// FuzzUnmarshal compares with encoding/json on texts that name each field once and exactly, and checks that it ends on
// others.
func FuzzUnmarshal(f *testing.F) {
	for _, text := range append(fuzzTexts, samples...) {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var got, want sample
		gotErr := Unmarshal(data, &got)
		if _, err := Decode(data, Limits{ReplaceSurrogates: true}); err != nil || hasOtherCase(data) {
			return
		}
		wantErr := json.Unmarshal(data, &want)
		if (gotErr == nil) != (wantErr == nil) {
			t.Fatalf("%q: got error %v, want %v", data, gotErr, wantErr)
		}
		if wantErr == nil && !reflect.DeepEqual(got, want) {
			t.Fatalf("%q:\ngot  %+v\nwant %+v", data, got, want)
		}
	})
}

// hasOtherCase reports whether a text has a name that only encoding/json takes for a field.
func hasOtherCase(data []byte) bool {
	exact := map[string]bool{}
	for _, f := range fieldsOf(reflect.TypeFor[sample](), nil, nil) {
		exact[f.key] = true
	}
	found := false
	var walk func(s *Scanner)
	walk = func(s *Scanner) {
		if s.Members(func(key []byte) {
			name, _ := Unquote(key)
			for k := range exact {
				found = found || !exact[string(AppendString(nil, name))] && strings.EqualFold(k, `"`+name+`"`)
			}
			walk(s)
		}) || s.Items(func() { walk(s) }) {
			return
		}
		s.Next()
	}
	walk(Scan(data))
	return found
}
