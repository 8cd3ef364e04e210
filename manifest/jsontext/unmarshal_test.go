package jsontext

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

type inner struct {
	Name string `json:"name"`
	Size int64  `json:"size,omitempty"`
}

// Promoted is embedded by a pointer; encoding/json allocates only exported types.
type Promoted struct {
	Deep string `json:"deep,omitempty"`
	Text string `json:"text"` // hidden by that of sample
}

type sample struct {
	inner
	*Promoted
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
	Maybe  *inner            `json:"maybe,omitempty"`
	Since  time.Time         `json:"since,omitzero"`
	Many   []sample          `json:"many,omitempty"`
	None   struct{}          `json:"none,omitempty"`
	Word   word              `json:"word,omitempty"`
	Odd    odd               `json:"odd"`
	Exact  json.Number       `json:"exact,omitempty"`
	Hidden string            `json:"-"`
	Plain  string
}

// word reads and writes itself as text.
type word string

func (w word) MarshalText() ([]byte, error)     { return []byte("<" + w + ">"), nil }
func (w *word) UnmarshalText(text []byte) error { *w = "read " + word(text); return nil }

// odd has methods of its pointer only.
type odd struct{ N int }

func (o *odd) MarshalJSON() ([]byte, error) { return json.Marshal([]int{o.N}) }
func (o *odd) UnmarshalJSON(text []byte) error {
	var n []int
	if err := json.Unmarshal(text, &n); err != nil || len(n) == 0 {
		return err
	}
	o.N = n[0]
	return nil
}

// samples are texts that encoding/json reads into a sample, and that spell names exactly.
var samples = []string{
	`{}`, `null`, ` { "text" : "a\n\u00e9\ud83d\ude00\ud800<" , "on":true } `,
	`{"name":"n","size":-7,"small":127,"count":18446744073709551615,"share":1e3,"Plain":"p"}`,
	`{"raw":{"a":[1, 2]},"when":"2026-11-25T10:00:00Z","list":[{"name":"a"},{},{"size":3,"x":{"y":[]}}]}`,
	`{"raw":null,"list":null,"words":null,"next":null,"text":null,"on":null,"env":null,"when":null,"bytes":null}`,
	`{"words":["a","b","c"],"list":[],"bytes":"aGVsbG8=","next":{"next":{"text":"deep"}},"env":{"a":"b"}}`,
	`{"any":{"a":[true,1.5,null]},"fixed":[1,2],"unknown":{"text":"no"},"-":"h","secret":"s"}`,
	`{"deep":"d","maybe":{"name":"m"},"since":"2026-11-25T10:00:00.5Z","many":[{"size":1},{"many":[]}]}`,
	`{"word":"w","odd":[4],"exact":12.50}`, `{"exact":"7"}`,
	`{"text":"a\u2028b\u0001\u007f<&>","words":["\u2029"],"any":{"b":"<","a":[{}]},"env":{"z":"<","a":"b"},"share":1e-9}`,
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
	var twice struct{ List []inner }
	err := Unmarshal([]byte(`{"List":[{"name":"a"},{"name":"b"}],"List":[{"size":1}]}`), &twice)
	if err != nil || !slices.Equal(twice.List, []inner{{Size: 1}}) {
		t.Errorf("got %v, %v", twice, err)
	}
}

func TestUnmarshalMismatch(t *testing.T) {
	for text, field := range map[string]string{
		`{"text":1}`: "text", `{"small":128}`: "small", `{"size":64.0}`: "size", `{"on":"true"}`: "on",
		`{"next":{"list":[{},{"name":[]}]}}`: "next.list.name",
		`{"list":{}}`:                        "list", `{"next":[],"text":2}`: "next", `{"env":{"a":1}}`: "env.a", `[]`: "",
	} {
		var mismatch *json.UnmarshalTypeError
		err := Unmarshal([]byte(text), &sample{})
		if !errors.As(err, &mismatch) || !strings.HasPrefix(mismatch.Field, strings.TrimSuffix(field, ".a")) {
			t.Errorf("%s: got %v, want a mismatch of %q", text, err, field)
		}
	}
	for _, text := range []string{`{"when":"yesterday"}`, `{"exact":"seven"}`, `{"text":"a"} x`, `{"text":"a"`, ``} {
		if err := Unmarshal([]byte(text), &sample{}); err == nil {
			t.Errorf("%s is read without an error", text)
		}
	}
}

func TestAppendTyped(t *testing.T) {
	for _, text := range samples {
		compareWriters(t, []byte(text))
	}
	for _, v := range []any{nil, 1, "a", []inner{}, []inner(nil), map[string]inner{"a": {}}, map[string]int(nil),
		&sample{}, sample{}, []any{nil, 1.5}, []sample{{}}, (*sample)(nil), []byte("a"), []byte(nil),
		json.RawMessage(`{"a": 1}`), []any{json.Number("1.50")}, &odd{1}, odd{1}, []odd{{2}}, word("a"),
		map[string]any{"\u2028": "\u2029 \\u2028 \\\\u2029"}} {
		compareWritten(t, v)
	}
	for _, v := range []any{func() {}, sample{Raw: json.RawMessage(`{`)}, sample{Any: make(chan int)}, math.NaN()} {
		if got, err := AppendTyped(nil, v); err == nil {
			t.Errorf("%T is written as %s", v, got)
		}
	}
}

// compareWriters compares how a sample is written with how encoding/json writes it.
func compareWriters(t *testing.T, text []byte) {
	t.Helper()
	var v sample
	if json.Unmarshal(text, &v) == nil {
		compareWritten(t, v)
		compareWritten(t, &v)
	}
}

func compareWritten(t *testing.T, v any) {
	t.Helper()
	var want bytes.Buffer
	e := json.NewEncoder(&want)
	e.SetEscapeHTML(false)
	wantErr := e.Encode(v)
	got, err := AppendTyped([]byte("x"), v)
	if (err == nil) != (wantErr == nil) {
		t.Fatalf("%+v: got error %v, want %v", v, err, wantErr)
	}
	plain := jsonEscape.ReplaceAllStringFunc(want.String(), func(escape string) string {
		return strings.NewReplacer(`\u2028`, "\u2028", `\u2029`, "\u2029").Replace(escape)
	})
	if err == nil && "x"+plain != string(got)+"\n" {
		t.Fatalf("%+v:\ngot  %s\nwant %s", v, got[1:], plain)
	}
}

var jsonEscape = regexp.MustCompile(`\\(u....|.)`)

// FuzzTyped compares how samples are written with how encoding/json writes them.
func FuzzTyped(f *testing.F) {
	for _, text := range append(fuzzTexts, samples...) {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) { compareWriters(t, data) })
}

// FuzzUnmarshal compares with encoding/json on texts that name each field once and exactly, and checks that it ends on
// others.
func FuzzUnmarshal(f *testing.F) {
	for _, text := range append(fuzzTexts, samples...) {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var got, want sample
		gotErr := UnmarshalValid(data, &got)
		if _, err := Decode(ReplaceLoneSurrogates(data), Limits{}); err != nil || hasOtherCase(data) {
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
	for _, f := range fieldsOf(reflect.TypeFor[sample]()) {
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
