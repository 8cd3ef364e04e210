//go:build !wasip1

package sdk

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net/netip"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// Sample has a field of every kind.
type Sample struct {
	// Text with
	// two lines.
	Text   string `json:"text" minLength:"1" maxLength:"9" pattern:"^a" format:"email" example:"a@b.c"`
	Line   string `json:"line,omitempty" enum:"a,b" default:"a"` // A comment behind.
	Count  int    `json:"count,omitempty" minimum:"-1" maximum:"10" default:"3"`
	Size   uint8
	Ratio  float64         `json:"ratio,omitzero"`
	Flag   *bool           `json:"flag"`
	List   []string        `json:"list,omitempty" enum:"x,y" minItems:"1" maxItems:"2" default:"[\"x\"]" from:"a.b/c/0,d.e/f"`
	Map    map[string]int  `json:"map" minimum:"0"`
	Raw    json.RawMessage `json:"raw,omitempty"`
	Any    any             `json:"any,omitempty"`
	Number json.Number     `json:"number,omitempty"`
	Bytes  []byte          `json:"bytes,omitempty"`
	Time   time.Time       `json:"time,omitzero"`
	Nested Nested          `json:"nested,omitzero"`
	Inline []struct {
		// Inside.
		X int `json:"x"`
	} `json:"inline,omitempty"`
	Embedded
	Skipped string `json:"-"`
	_       string // not exported, so no parameter
}

// Nested is nested.
type Nested struct {
	// Another.
	Y bool `json:"y"`
}

// Embedded is embedded.
type Embedded struct {
	// Taken in.
	Z string `json:"z"`
}

// Tree contains itself.
type Tree struct {
	// Name of the node.
	Name string `json:"name"`
	// Nodes below.
	Children []Tree `json:"children,omitempty"`
}

func schemaOf[T any]() (*schema, error) {
	folder, pkg := source(reflect.ValueOf(schemaOf[T]).Pointer())
	return newReflector(folder, pkg, nil).result(reflect.TypeFor[T]())
}

func TestSchema(t *testing.T) {
	for name, c := range map[string]struct {
		of   func() (*schema, error)
		want string
	}{
		"sample": {schemaOf[Sample], `{"type":"object","properties":{` +
			`"text":{"type":"string","description":"Text with two lines.","examples":["a@b.c"],"minLength":1,"maxLength":9,"pattern":"^a","format":"email"},` +
			`"line":{"type":"string","description":"A comment behind.","enum":["a","b"],"default":"a"},` +
			`"count":{"type":"integer","default":3,"minimum":-1,"maximum":10},` +
			`"Size":{"type":"integer","minimum":0,"maximum":255},` +
			`"ratio":{"type":"number"},` +
			`"flag":{"type":"boolean"},` +
			`"list":{"type":"array","items":{"type":"string","enum":["x","y"]},"default":["x"],"minItems":1,"maxItems":2,` +
			`"x-from":["a.b/c/0","d.e/f"]},` +
			`"map":{"type":"object","additionalProperties":{"type":"integer","minimum":0}},` +
			`"raw":{},"any":{},"number":{"type":"number"},` +
			`"bytes":{"type":"string","contentEncoding":"base64"},` +
			`"time":{"type":"string","format":"date-time"},` +
			`"nested":{"type":"object","properties":{"y":{"type":"boolean","description":"Another."}},"required":["y"],"additionalProperties":false},` +
			`"inline":{"type":"array","items":{"type":"object","properties":{"x":{"type":"integer","description":"Inside."}},"required":["x"],"additionalProperties":false}},` +
			`"z":{"type":"string","description":"Taken in."}},` +
			`"required":["text","Size","map","z"],"additionalProperties":false}`},
		"tree": {schemaOf[Tree], `{"type":"object","properties":{"name":{"type":"string","description":"Name of the node."},` +
			`"children":{"type":"array","description":"Nodes below.","items":{"$ref":"#/$defs/Tree"}}},"required":["name"],"additionalProperties":false,` +
			`"$defs":{"Tree":{"type":"object","properties":{"name":{"type":"string","description":"Name of the node."},` +
			`"children":{"type":"array","description":"Nodes below.","items":{"$ref":"#/$defs/Tree"}}},"required":["name"],"additionalProperties":false}}}`},
		"empty":  {schemaOf[struct{}], `{"type":"object","properties":{},"additionalProperties":false}`},
		"string": {schemaOf[string], `{"type":"string"}`},
		"raw":    {schemaOf[json.RawMessage], `{}`},
	} {
		s, err := c.of()
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got, err := encode(s); string(got) != c.want || err != nil {
			t.Errorf("%s:\n%s\nwant\n%s (%v)", name, got, c.want, err)
		}
	}
}

func TestSchemaRefusesUnsupportedTypes(t *testing.T) {
	for name, c := range map[string]struct {
		of   func() (*schema, error)
		want string
	}{
		"channel":  {schemaOf[struct{ C chan int }], "field C: chan int has no JSON form"},
		"duration": {schemaOf[struct{ D time.Duration }], "nanoseconds"},
		"key":      {schemaOf[map[int]string], "keys of a map must be strings"},
		"own form": {schemaOf[customJSON], "MarshalJSON of its own"},
		"default, required": {schemaOf[struct {
			A int `default:"1"`
		}], "omitempty"},
		"default, wrong": {schemaOf[struct {
			A int `json:",omitempty" default:"x"`
		}], "is not a JSON value"},
		"minimum of string": {schemaOf[struct {
			A string `minimum:"1"`
		}], "tag minimum applies to integer number"},
		"minItems of string": {schemaOf[struct {
			A string `minItems:"1"`
		}], "tag minItems applies to array"},
		"no number": {schemaOf[struct {
			A int `minimum:"one"`
		}], `tag minimum: "one" is not a number`},
		"misspelt tag": {schemaOf[struct {
			A int `minimun:"1"`
		}], "there is no tag minimun; did you mean minimum?"},
		"tag of an inner field": {schemaOf[struct {
			a int `enum:"1"`
		}], "field a has tags but is not exported"},
		"string option": {schemaOf[struct {
			A int `json:",string"`
		}], "make the field a string"},
	} {
		if _, err := c.of(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

// TestMisspeltTags checks that each tag that the SDK reads is known, and refused when it is misspelt, and that the tags
// of other packages are not.
func TestMisspeltTags(t *testing.T) {
	text, err := os.ReadFile("schema.go")
	if err != nil {
		t.Fatal(err)
	}
	read := regexp.MustCompile(`[tT]ag\.(?:Lookup|Get)\("(\w+)"\)`)
	for _, found := range read.FindAllStringSubmatch(string(text), -1) {
		if !slices.Contains(tags, found[1]) {
			t.Errorf("tags lacks %s", found[1])
		}
	}
	check := func(tag string) error { return checkTags(reflect.StructTag(`json:"a" ` + tag + `:"x \" from: y"`)) }
	for _, tag := range tags {
		for _, wrong := range []string{strings.ToUpper(tag), tag + "s", tag[:2] + tag[3:], tag[:1] + "_" + tag[1:]} {
			if err := check(wrong); err == nil || !strings.Contains(err.Error(), "no tag "+wrong+"; did you mean "+tag) {
				t.Errorf("%s: %v", wrong, err)
			}
		}
		if err := check(tag); err != nil {
			t.Error(err)
		}
	}
	for _, other := range []string{"form", "yaml", "xml", "toml", "db", "validate", "binding", "jsonschema"} {
		if err := check(other); err != nil {
			t.Error(err)
		}
	}
}

// given is the schema of T as a parameter.
func given[T any]() (*schema, error) {
	type params struct{ P T }
	folder, pkg := source(reflect.ValueOf(given[T]).Pointer())
	s, err := newReflector(folder, pkg, nil).object(reflect.TypeFor[params]())
	if err != nil {
		return nil, err
	}
	return s.property("P"), nil
}

// TestSchemaOfParameters checks that a parameter is bounded by what its type holds.
func TestSchemaOfParameters(t *testing.T) {
	const ends64 = `"minimum":-9223372036854775808,"maximum":9223372036854775807`
	for _, c := range []struct {
		of   func() (*schema, error)
		want string
	}{
		{given[int8], `{"type":"integer","minimum":-128,"maximum":127}`},
		{given[int16], `{"type":"integer","minimum":-32768,"maximum":32767}`},
		{given[int32], `{"type":"integer","minimum":-2147483648,"maximum":2147483647}`},
		{given[int64], `{"type":"integer",` + ends64 + `}`},
		{given[int], `{"type":"integer",` + ends64 + `}`},
		{given[uint8], `{"type":"integer","minimum":0,"maximum":255}`},
		{given[uint16], `{"type":"integer","minimum":0,"maximum":65535}`},
		{given[uint32], `{"type":"integer","minimum":0,"maximum":4294967295}`},
		{given[uint64], `{"type":"integer","minimum":0,"maximum":18446744073709551615}`},
		{given[uint], `{"type":"integer","minimum":0,"maximum":18446744073709551615}`},
		{given[float32], `{"type":"number","minimum":-3.4028235e+38,"maximum":3.4028235e+38}`},
		{given[float64], `{"type":"number"}`},
		{given[[3]int8], `{"type":"array","items":{"type":"integer","minimum":-128,"maximum":127},"minItems":3,"maxItems":3}`},
		{given[[]byte], `{"type":"string","contentEncoding":"base64","x-assert":true}`},
		{given[time.Time], `{"type":"string","format":"date-time","x-assert":true}`},
		{given[*netip.Addr], `{"type":"string"}`},
	} {
		s, err := c.of()
		if got, _ := encode(s); string(got) != c.want || err != nil {
			t.Errorf("%s, %v; want %s", got, err, c.want)
		}
	}
	for _, c := range []struct {
		of   func() (*schema, error)
		want string
	}{
		{given[*big.Int], "MarshalJSON of its own"},
		{given[fmt.Stringer], "an interface with methods"},
		{given[struct{ *hidden }], "embedded by a pointer"},
		{given[struct {
			A uint8 `minimum:"-1"`
		}], "tag minimum: -1 is beyond what the field holds, which ends at 0"},
		{given[struct {
			A []int64 `maximum:"1e19"`
		}], "tag maximum: 1e19 is beyond"},
		{given[struct {
			A [2]int `maxItems:"3"`
		}], "tag maxItems: 3 is beyond"},
	} {
		if _, err := c.of(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %q", err, c.want)
		}
	}
}

type hidden struct{ X int }

// Everything has a parameter of each kind that can be refused.
type Everything struct {
	List  []struct{ N int8 } `json:"list"`
	Map   map[string]uint16  `json:"a/b~"`
	Bytes [][]byte           `json:"bytes"`
	Time  *time.Time         `json:"time"`
	Any   any                `json:"any"`
	Addr  netip.Addr         `json:"addr"`
	Embedded
}

// TestRefusedParameters checks that what the decoder refuses is named by its pointer, whatever the type is.
func TestRefusedParameters(t *testing.T) {
	long := `"` + strings.Repeat("é", 1000) + `"`
	for params, want := range map[string]InvalidError{
		`{"list":[{"N":1},{"N":128}]}`: {Pointer: "/list/1/N", Expected: "a value that fits int8", Provided: "number 128"},
		`{"a/b~":{"x/":-1}}`:           {Pointer: "/a~1b~0/x~1", Expected: "a value that fits uint16", Provided: "number -1"},
		`{"bytes":["AA==","A"]}`: {Pointer: "/bytes/1", Provided: `string "A"`,
			Expected: "a value that fits []uint8: illegal base64 data at input byte 0"},
		`{"time":"2026-02-30T00:00:00Z"}`: {Pointer: "/time", Provided: `string "2026-02-30T00:00:00Z"`,
			Expected: `a value that fits time.Time: parsing time "2026-02-30T00:00:00Z": day out of range`},
		`{"any":{"a":[1e400]}}`: {Pointer: "/any/a/0", Expected: "a value that fits float64", Provided: "number 1e400"},
		`{"addr":"1.2.3"}`: {Pointer: "/addr", Provided: `string "1.2.3"`,
			Expected: `a value that fits netip.Addr: ParseAddr("1.2.3"): IPv4 address too short`},
		` {"z":` + long + `, "list":[null,[true]]}`: {Pointer: "/list/1", Provided: "array",
			Expected: "a value that fits struct { N int8 }"},
		`{"z":[],"any":` + long + `}`: {Pointer: "/z", Provided: "array", Expected: "a value that fits string"},
		`{"bytes":[` + long + `]}`: {Pointer: "/bytes/0", Provided: `string "` + strings.Repeat("é", 49) + "...",
			Expected: "a value that fits []uint8: illegal base64 data at input byte 0"},
		`[]`: {Provided: "array", Expected: "a value that fits sdk.Everything"},
	} {
		var got *InvalidError
		if err := decodeParams([]byte(params), new(Everything)); !errors.As(err, &got) || *got != want {
			t.Errorf("%.60s: %v, want %v", params, err, &want)
		}
	}
}

type customJSON struct{}

func (customJSON) MarshalJSON() ([]byte, error) { return nil, nil }

// Parts has slices and maps that are nil.
type Parts struct {
	List   []string        `json:"list"`
	Left   []string        `json:"left,omitempty"`
	Map    map[string]int  `json:"map"`
	Deep   []*Parts        `json:"deep"`
	Any    any             `json:"any"`
	Raw    json.RawMessage `json:"raw"`
	Absent *Parts          `json:"absent,omitempty"`
	_      []string        // not exported, so no result
}

func TestNilBecomesEmpty(t *testing.T) {
	p := Parts{Deep: []*Parts{{}}, Any: []string(nil)}
	got, err := encode(withoutNil(&p))
	want := `{"list":[],"map":{},"deep":[{"list":[],"map":{},"deep":[],"any":null,"raw":null}],"any":[],"raw":null}`
	if string(got) != want || err != nil {
		t.Errorf("%s, %v; want %s", got, err, want)
	}
}

// In is a parameter.
type In struct {
	// What to do.
	Do string `json:"do"`
	// How often.
	N int8 `json:"n,omitempty"`
}

func do(c *Call, p In) (json.RawMessage, error) {
	switch p.Do {
	case "declared":
		return nil, Exit("gone", "it is gone", map[string]int{"at": 1})
	case "undeclared":
		return nil, Exit("nosuch", "it is gone", nil)
	case "wrapped":
		return nil, fmt.Errorf("while working: %w", Exit("gone", "it is gone", nil))
	case "invalid":
		return nil, errors.Join(Invalid("/a", "b", "c", "d"), fmt.Errorf("x: %w", Invalid("/e", "f", "", "")))
	case "other":
		return nil, io.ErrUnexpectedEOF
	case "panic":
		panic("out of order")
	case "no json":
		return json.RawMessage("{"), nil
	case "details":
		return nil, Exit("gone", "it is gone", func() {})
	case "host":
		return nil, c.CallTool("a.b", nil, Options{}, nil)
	case "call":
		return encode(map[string]any{"id": c.ID, "deadline": c.Deadline.String(), "settings": c.Settings,
			"http": c.Granted.HTTP})
	case "nil":
		return nil, nil
	}
	c.Warn("a %s", "warning")
	return json.RawMessage(`"<done>"`), nil
}

func testPlugin() *Plugin {
	return &Plugin{
		Name: "p", Version: "1.0.0", Brief: "P",
		ExitCodes: []ExitCode{{Code: 10, Name: "gone", Meaning: "It is gone"}},
		Tools:     []Definition{Tool("do", do, Doc{Brief: "Do", Effect: Read})},
	}
}

func TestServe(t *testing.T) {
	for params, want := range map[string]string{
		`{"do":""}`:           `{"ok":true,"result":"<done>","warnings":["a warning"]}`,
		`{"do":"nil"}`:        `{"ok":true,"result":null}`,
		`{"do":"declared"}`:   `{"ok":false,"exit":10,"message":"it is gone","details":{"at":1}}`,
		`{"do":"undeclared"}`: `{"ok":false,"exit":1,"message":"nosuch: it is gone"}`,
		`{"do":"wrapped"}`:    `{"ok":false,"exit":10,"message":"it is gone"}`,
		`{"do":"invalid"}`:    `{"ok":false,"invalid":[{"pointer":"/a","expected":"b","provided":"c","suggestion":"d"},{"pointer":"/e","expected":"f"}]}`,
		`{"do":"other"}`:      `{"ok":false,"exit":1,"message":"unexpected EOF"}`,
		`{"do":"panic"}`:      `{"ok":false,"exit":1,"message":"panic: out of order"}`,
		`{"do":"host"}`:       `{"ok":false,"exit":1,"message":"denied: call_tool: this call has no host; set Call.Host in a test"}`,
		`{"do":"call"}`:       `{"ok":true,"result":{"deadline":"1.5s","http":["https://a"],"id":"7","settings":{"a":1}}}`,
		`{"do":1}`:            `{"ok":false,"invalid":[{"pointer":"/do","expected":"a value that fits string","provided":"number 1"}]}`,
		`{"do":"","n":1000}`:  `{"ok":false,"invalid":[{"pointer":"/n","expected":"a value that fits int8","provided":"number 1000"}]}`,
	} {
		request := `{"tool":"do","params":` + params +
			`,"call_id":"7","deadline_ms":1500,"settings":{"a":1},"granted":{"http":["https://a"]},"later":1}`
		if got := string(serve(testPlugin(), []byte(request), nil)); got != want {
			t.Errorf("%s:\n%s\nwant\n%s", params, got, want)
		}
	}
	for request, part := range map[string]string{
		`{"tool":"nosuch"}`: `plugin p has no tool`,
		`{`:                 `"message":"request: `,
		`{"tool":"do","params":{"do":"no json"}}`: `"message":"result: `,
		`{"tool":"do","params":{"do":"details"}}`: `"exit":10,"message":"it is gone (details: `,
	} {
		got := serve(testPlugin(), []byte(request), nil)
		if !json.Valid(got) || !strings.Contains(string(got), part) {
			t.Errorf("%s: %s, want %s", request, got, part)
		}
	}
}

func FuzzServe(f *testing.F) {
	f.Add([]byte(`{"tool":"do","params":{"do":"call"},"granted":{"fs":[{"path":"/a","mode":"ro"}]}}`))
	f.Fuzz(func(t *testing.T, request []byte) {
		if got := serve(testPlugin(), request, nil); !json.Valid(got) {
			t.Errorf("%q returned %q", request, got)
		}
	})
}

func TestWireDecodesReplies(t *testing.T) {
	for answer, want := range map[string]string{
		`{"ok":true,"result":"value"}`: "value",
		`{"ok":false,"error":{"code":"denied","exit_code":82,"message":"not granted","more":1}}`: "denied: not granted",
		`{"ok":false}`:           "internal: read_secret failed without an error object",
		`{"ok":true,"result":1}`: "result of read_secret: ",
		`{"ok":true}`:            "result of read_secret: ",
		`no`:                     "reply of read_secret: ",
	} {
		w := wire{callImport: func(string, []byte) ([]byte, error) { return []byte(answer), nil }}
		got, err := w.ReadSecret("KEY")
		if err != nil {
			got = err.Error()
		}
		if !strings.HasPrefix(got, want) {
			t.Errorf("%s: %q, want %q", answer, got, want)
		}
	}
	w := wire{callImport: func(string, []byte) ([]byte, error) {
		return []byte(`{"ok":true,"result":{"status":404,"headers":[["a","b"],["a","c"]],"body_base64":"/w=="}}`), nil
	}}
	got, err := w.HTTP(Request{URL: "https://a"})
	want := Response{Status: 404, Headers: [][2]string{{"a", "b"}, {"a", "c"}}, Body: []byte{0xff}}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v; want %+v", got, err, want)
	}
}

func TestManifest(t *testing.T) {
	type settings struct {
		// Language of answers.
		Language string `json:"language,omitempty" enum:"en,de" default:"en"`
	}
	p := testPlugin()
	p.Groups = []Group{{Name: "g", Brief: "G"}}
	p.Settings = settings{}
	p.Capabilities = Capabilities{HTTP: []HTTP{{URL: "https://a", Methods: []string{"GET"}, Why: "to ask"}},
		Clock: &Why{Why: "to date"}}
	p.Tools = []Definition{Tool("g.do", do, Doc{
		Brief: "Do", Effect: Read, Positional: []string{"do"}, ExitCodes: []string{"gone"},
		Examples: []Example{
			{Title: "Filled in", Kind: Minimal, Params: In{Do: "x"}, Runnable: true},
			{Title: "Gone", Kind: Error, Params: map[string]any{"do": "declared"}, ExitCode: 10, Runnable: true},
			{Title: "Not run", Kind: Full, Params: json.RawMessage(`{"do":"host"}`)},
		},
	})}
	got, hints, err := buildManifest(p)
	if err != nil || hints != nil {
		t.Fatal(err, hints)
	}
	want, err := os.ReadFile("testdata/manifest.json")
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != string(want) {
		t.Errorf("differs from testdata/manifest.json:\n%s", got)
	}
}

func TestManifestReportsEveryError(t *testing.T) {
	p := testPlugin()
	p.Version = ""
	p.ExitCodes[0].Code = 80
	p.Tools = append(p.Tools,
		Tool("bad", do, Doc{Positional: []string{"nosuch"}, ExitCodes: []string{"nosuch"},
			Examples: []Example{{Title: "fails", Params: In{Do: "other"}, Runnable: true}}}),
		Tool("scalar", func(*Call, string) (string, error) { return "", nil }, Doc{Brief: "S", Effect: Read}),
	)
	_, hints, err := buildManifest(p)
	for _, want := range []string{
		"a plugin needs Name, Version", "exit code gone: 80", "tool bad: Brief and Effect", `positional "nosuch"`,
		`exit code "nosuch"`,
		`example "fails": exit code 0 is declared, but the call fails`, "tool scalar: parameters: string is not a struct",
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is missing in: %v", want, err)
		}
	}
	if want := "[tool do has no example]"; fmt.Sprint(hints) != want {
		t.Errorf("hints %v, want %s", hints, want)
	}
}

func TestCheck(t *testing.T) {
	saved := registered
	defer func() { registered = saved }()
	registered = *testPlugin()
	registered.Tools = []Definition{Tool("do", do, Doc{Examples: []Example{
		{Title: "right", Params: In{Do: "x"}, Result: "<done>", Runnable: true},
		{Title: "right code", Params: In{Do: "declared"}, ExitCode: 10, Runnable: true},
		{Title: "left to the host", Params: In{Do: "x"}, ExitCode: 81, Runnable: true},
		{Title: "not run", Params: In{Do: "other"}},
		{Title: "wrong result", Params: In{Do: "x"}, Result: "other", Runnable: true},
		{Title: "wrong code", Params: In{Do: "other"}, ExitCode: 10, Runnable: true},
	}})}
	err := Check()
	want := "do, example \"wrong result\": result \"<done>\", expected the declared \"other\"\n" +
		"do, example \"wrong code\": exit code 1, expected the declared 10: unexpected EOF"
	if err == nil || err.Error() != want {
		t.Errorf("%v\nwant\n%s", err, want)
	}
}

// TestAuthorsCanSetEveryField fails if the manifest has a field that an author cannot set.
func TestAuthorsCanSetEveryField(t *testing.T) {
	for _, c := range []struct {
		form, author any
		made         []string
	}{
		{manifestForm{}, Plugin{}, []string{"Manifest", "Kind", "Docs"}}, // Docs are Brief, Standard and Full
		{groupForm{}, Group{}, []string{"Docs"}},
		{toolForm{}, Doc{}, []string{"Name", "Docs", "Params", "Returns"}}, // arguments of Tool
		{exampleForm{}, Example{}, nil},
	} {
		form, author := reflect.TypeOf(c.form), reflect.TypeOf(c.author)
		for i := range form.NumField() {
			name := form.Field(i).Name
			if _, ok := author.FieldByName(name); !ok && !slices.Contains(c.made, name) {
				t.Errorf("the manifest's field %s.%s has no counterpart in %s", form.Name(), name, author.Name())
			}
		}
	}
}
