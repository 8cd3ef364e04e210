//go:build !wasip1

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	sdk "github.com/parley-tools/parley/sdk/go"
)

func TestExamplesEndAsDeclared(t *testing.T) {
	if err := sdk.Check(); err != nil {
		t.Error(err)
	}
}

func TestManifestIsCommitted(t *testing.T) {
	want, err := sdk.Manifest()
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile("manifest.json")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Error("manifest.json differs from the code; regenerate it with: go run . >manifest.json")
	}
}

// outcome is the exit code name of err, "invalid /pointer", or "".
func outcome(err error) string {
	var exit *sdk.ExitError
	var invalid *sdk.InvalidError
	switch {
	case err == nil:
		return ""
	case errors.As(err, &exit):
		return exit.Name
	case errors.As(err, &invalid):
		return "invalid " + invalid.Pointer
	}
	return err.Error()
}

func TestQuery(t *testing.T) {
	for _, c := range []struct{ data, filter, want, outcome string }{
		{`{"a":{"b":[1,2]}}`, `.a.b[]`, `[1 2]`, ""},
		{`[3,1,2]`, `sort`, `[[1,2,3]]`, ""},
		{`null`, `empty`, `[]`, ""},
		{`12345678901234567890`, `.`, `[12345678901234567890]`, ""},
		{`12345678901234567890`, `.+1`, `[12345678901234567891]`, ""},
		{`1.10`, `.`, `[1.10]`, ""},
		{`{"<a>":"&"}`, `.`, `[{"<a>":"&"}]`, ""},
		{`1`, `1, halt, 2`, `[1]`, ""},
		{`1`, `1, error("no")`, `[1]`, "query_failed"},
		{`1`, `halt_error`, `[]`, "query_failed"},
		{`1`, `input`, ``, "invalid /filter"},
		{`1`, `env, $ENV`, `[{} {}]`, ""},
		{`1`, `.[`, ``, "invalid /filter"},
		{`1`, `nosuch(1)`, ``, "invalid /filter"},
		{`1`, `$nosuch`, ``, "invalid /filter"},
		{`1`, `import "a" as a; 1`, ``, "invalid /filter"},
		{`"a"`, `[limit(3000; repeat("` + strings.Repeat("x", 2000) + `"))]`, ``, "too_large"},
	} {
		got, err := Query(&sdk.Call{}, QueryParams{Data: raw(c.data), Filter: c.filter})
		if outcome(err) != c.outcome {
			t.Errorf("%s of %s: %v, want %q", c.filter, c.data, err, c.outcome)
		}
		if s := fmt.Sprintf("%s", got.Results); err == nil && s != c.want {
			t.Errorf("%s of %s: %s, want %s", c.filter, c.data, s, c.want)
		}
	}
}

// TestQueryAdvice checks that the advice about a filter is about its mistake.
func TestQueryAdvice(t *testing.T) {
	for filter, want := range map[string]string{
		`.a |`: "the filter ends too early", `.[`: "the filter ends too early", `$.a.b`: "not $: .a.b",
		`.[] | select(.a == 'b')`: "double quotes", `.user-id`: "with a dash", `items`: "begins with a dot: .items",
		`.1a`: "not identifiers", `.a ]`: "", `$nosuch`: "", `nosuch(1)`: "",
	} {
		_, err := Query(&sdk.Call{}, QueryParams{Data: raw("{}"), Filter: filter})
		var invalid *sdk.InvalidError
		if !errors.As(err, &invalid) || (want == "") != (invalid.Suggestion == "") ||
			!strings.Contains(invalid.Suggestion, want) {
			t.Errorf("%s: %v %+v, want %q", filter, err, invalid, want)
		}
	}
}

func TestQueryStopsAtLimit(t *testing.T) {
	c := &sdk.Call{}
	got, err := Query(c, QueryParams{Data: raw("null"), Filter: "repeat(1)", Limit: 3})
	if err != nil || len(got.Results) != 3 || len(c.Warnings()) != 1 {
		t.Errorf("%s, %v, %v", got.Results, c.Warnings(), err)
	}
	c = &sdk.Call{}
	if _, err = Query(c, QueryParams{Data: raw("null"), Filter: "1,2,3", Limit: 3}); err != nil || c.Warnings() != nil {
		t.Errorf("exactly the limit: %v, %v", c.Warnings(), err)
	}
}

// TestPatch covers the cases of RFC 6902, appendix A, and other rules of it.
func TestPatch(t *testing.T) {
	for _, c := range []struct{ data, patch, want, outcome string }{
		{`{"foo":"bar"}`, `[{"op":"add","path":"/baz","value":"qux"}]`, `{"baz":"qux","foo":"bar"}`, ""},
		{`{"foo":["bar","baz"]}`, `[{"op":"add","path":"/foo/1","value":"qux"}]`, `{"foo":["bar","qux","baz"]}`, ""},
		{`{"baz":"qux","foo":"bar"}`, `[{"op":"remove","path":"/baz"}]`, `{"foo":"bar"}`, ""},
		{`{"foo":["bar","qux","baz"]}`, `[{"op":"remove","path":"/foo/1"}]`, `{"foo":["bar","baz"]}`, ""},
		{`{"baz":"qux"}`, `[{"op":"replace","path":"/baz","value":"boo"}]`, `{"baz":"boo"}`, ""},
		{`{"foo":{"bar":"baz","waldo":"fred"},"qux":{"corge":"grault"}}`,
			`[{"op":"move","from":"/foo/waldo","path":"/qux/thud"}]`,
			`{"foo":{"bar":"baz"},"qux":{"corge":"grault","thud":"fred"}}`, ""},
		{`{"foo":["all","grass","cows","eat"]}`, `[{"op":"move","from":"/foo/1","path":"/foo/3"}]`,
			`{"foo":["all","cows","eat","grass"]}`, ""},
		{`{"baz":"qux","foo":["a",2,"c"]}`,
			`[{"op":"test","path":"/baz","value":"qux"},{"op":"test","path":"/foo/1","value":2}]`,
			`{"baz":"qux","foo":["a",2,"c"]}`, ""},
		{`{"baz":"qux"}`, `[{"op":"test","path":"/baz","value":"bar"}]`, ``, "test_failed"},
		{`{"foo":"bar"}`, `[{"op":"add","path":"/child","value":{"grandchild":{}}}]`,
			`{"child":{"grandchild":{}},"foo":"bar"}`, ""},
		{`{"foo":"bar"}`, `[{"op":"add","path":"/baz/bat","value":"qux"}]`, ``, "path_missing"},
		{`{"/":9,"~1":10}`, `[{"op":"test","path":"/~01","value":10}]`, `{"/":9,"~1":10}`, ""},
		{`{"/":9,"~1":10}`, `[{"op":"test","path":"/~01","value":"10"}]`, ``, "test_failed"},
		{`{"foo":["bar"]}`, `[{"op":"add","path":"/foo/-","value":["abc","def"]}]`, `{"foo":["bar",["abc","def"]]}`, ""},

		{`1`, `[]`, `1`, ""},
		{`1`, `[{"op":"replace","path":"","value":[2]}]`, `[2]`, ""},
		{`1`, `[{"op":"remove","path":""}]`, `null`, ""},
		{`{"a":null}`, `[{"op":"test","path":"/a","value":null}]`, `{"a":null}`, ""},
		{`{}`, `[{"op":"add","path":"/a","value":null}]`, `{"a":null}`, ""},
		{`{"a":1}`, `[{"op":"test","path":"/a","value":1.0}]`, `{"a":1}`, ""},
		{`{"a":9007199254740993}`, `[{"op":"test","path":"/a","value":9007199254740992}]`, ``, "test_failed"},
		{`[1]`, `[{"op":"add","path":"/1","value":2}]`, `[1,2]`, ""},
		{`[1]`, `[{"op":"add","path":"/2","value":2}]`, ``, "path_missing"},
		{`[1,2]`, `[{"op":"remove","path":"/01"}]`, ``, "path_missing"},
		{`[1]`, `[{"op":"replace","path":"/-","value":2}]`, ``, "path_missing"},
		{`{}`, `[{"op":"replace","path":"/a","value":2}]`, ``, "path_missing"},
		{`{"a":1}`, `[{"op":"add","path":"/a/b","value":2}]`, ``, "path_missing"},
		{`{"a":{"b":1}}`, `[{"op":"copy","from":"/a","path":"/c"},{"op":"replace","path":"/c/b","value":2}]`,
			`{"a":{"b":1},"c":{"b":2}}`, ""},
		{`{"a":{"b":1}}`, `[{"op":"move","from":"/a","path":"/a/b"}]`, ``, "invalid /patch/0/path"},
		{`{"a":1}`, `[{"op":"move","from":"/a","path":"/a"}]`, `{"a":1}`, ""},
		{`{"a":1}`, `[{"op":"add","path":"a","value":1}]`, ``, "invalid /patch/0/path"},
		{`{"a":1}`, `[{"op":"add","path":"/b"}]`, ``, "invalid /patch/0/value"},
		{`{"a":1}`, `[{"op":"copy","path":"/b","from":"x"}]`, ``, "invalid /patch/0/from"},
	} {
		var patch []Operation
		if err := json.Unmarshal([]byte(c.patch), &patch); err != nil {
			t.Fatal(err)
		}
		got, err := Patch(nil, PatchParams{raw(c.data), patch})
		if outcome(err) != c.outcome || string(got.Data) != c.want {
			t.Errorf("%s with %s: %s, %v; want %s, %q", c.data, c.patch, got.Data, err, c.want, c.outcome)
		}
	}
}

func TestCopiesAreBounded(t *testing.T) {
	var patch []Operation
	for range 60 {
		patch = append(patch, Operation{Op: "copy", From: "", Path: "/-"})
	}
	_, err := Patch(nil, PatchParams{raw(`["0123456789"]`), patch})
	if outcome(err) != "too_large" {
		t.Errorf("%v, want too_large", err)
	}
}

// TestDiffIsApplicable applies the diff of random values.
func TestDiffIsApplicable(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 5000 {
		before, after := randomJSON(r, 3), randomJSON(r, 3)
		d, err := Diff(nil, DiffParams{before, after})
		if err != nil {
			t.Fatal(err)
		}
		got, err := Patch(nil, PatchParams{before, d.Patch})
		if err != nil || !bytes.Equal(got.Data, after) {
			t.Fatalf("%s to %s: %+v produces %s, %v", before, after, d.Patch, got.Data, err)
		}
	}
}

func randomJSON(r *rand.Rand, depth int) json.RawMessage {
	var value func(depth int) any
	value = func(depth int) any {
		n := 7
		if depth == 0 {
			n = 5
		}
		switch r.IntN(n) {
		case 0:
			return nil
		case 1:
			return r.IntN(2) == 0
		case 2:
			return r.IntN(3)
		case 3, 4:
			return string(rune('a' + r.IntN(3)))
		case 5:
			array := make([]any, r.IntN(5))
			for i := range array {
				array[i] = value(depth - 1)
			}
			return array
		}
		object := map[string]any{}
		for range r.IntN(4) {
			object[[]string{"a", "b/c", "~d", ""}[r.IntN(4)]] = value(depth - 1)
		}
		return object
	}
	raw, _ := encode(value(depth))
	return raw
}

// TestMerge covers the cases of RFC 7396, appendix A.
func TestMerge(t *testing.T) {
	for _, c := range [][3]string{
		{`{"a":"b"}`, `{"a":"c"}`, `{"a":"c"}`},
		{`{"a":"b"}`, `{"b":"c"}`, `{"a":"b","b":"c"}`},
		{`{"a":"b"}`, `{"a":null}`, `{}`},
		{`{"a":"b","b":"c"}`, `{"a":null}`, `{"b":"c"}`},
		{`{"a":["b"]}`, `{"a":"c"}`, `{"a":"c"}`},
		{`{"a":"c"}`, `{"a":["b"]}`, `{"a":["b"]}`},
		{`{"a":{"b":"c"}}`, `{"a":{"b":"d","c":null}}`, `{"a":{"b":"d"}}`},
		{`{"a":[{"b":"c"}]}`, `{"a":[1]}`, `{"a":[1]}`},
		{`["a","b"]`, `["c","d"]`, `["c","d"]`},
		{`{"a":"b"}`, `["c"]`, `["c"]`},
		{`{"a":"foo"}`, `null`, `null`},
		{`{"a":"foo"}`, `"bar"`, `"bar"`},
		{`{"e":null}`, `{"a":1}`, `{"a":1,"e":null}`},
		{`[1,2]`, `{"a":"b","c":null}`, `{"a":"b"}`},
		{`{}`, `{"a":{"bb":{"ccc":null}}}`, `{"a":{"bb":{}}}`},
	} {
		got, err := Merge(nil, MergeParams{raw(c[0]), raw(c[1])})
		if err != nil || string(got.Data) != c[2] {
			t.Errorf("%s with %s: %s, %v; want %s", c[0], c[1], got.Data, err, c[2])
		}
	}
}

func TestYAMLToJSON(t *testing.T) {
	for _, c := range []struct{ text, want, outcome string }{
		{"", `null`, ""},
		{"# nothing\n", `null`, ""},
		{"z: 1\na: 2\n", `{"z":1,"a":2}`, ""},
		{"- 1\n- -1.5\n- 1e3\n- 1.10\n- 12345678901234567890123\n", `[1,-1.5,1e3,1.10,12345678901234567890123]`, ""},
		{"- 0x1F\n- 0o17\n- 0b11\n- +1\n- .5\n- 1_000\n", `[31,15,3,1,0.5,1000]`, ""},
		{"- true\n- yes\n- ~\n- null\n- ''\n- 'no'\n", `[true,"yes",null,null,"","no"]`, ""},
		{"d: 2001-01-01\nt: 2001-12-14t21:59:43Z\n", `{"d":"2001-01-01","t":"2001-12-14t21:59:43Z"}`, ""},
		{"a: |\n  x\n  y\nb: >\n  x\n  y\n", `{"a":"x\ny\n","b":"x y\n"}`, ""},
		{"1: a\ntrue: b\n~: c\n", `{"1":"a","true":"b","~":"c"}`, ""},
		{"a: &x {b: 1}\nc: *x\nd:\n  <<: *x\n  e: 2\n", `{"a":{"b":1},"c":{"b":1},"d":{"e":2,"b":1}}`, ""},
		{"a: &x {b: 1, c: 1}\ny: &y {c: 2, d: 2}\nd:\n  b: 3\n  <<: [*x, *y]\n",
			`{"a":{"b":1,"c":1},"y":{"c":2,"d":2},"d":{"b":3,"c":1,"d":2}}`, ""},
		{"a: !mine x\nb: !!str 1\n", `{"a":"x","b":"1"}`, ""},
		{"a: \"<&>\\u00e9\"\n", `{"a":"<&>é"}`, ""},
		{"a: .inf", ``, "malformed"},
		{"a: .nan", ``, "malformed"},
		{"a: 1\na: 2\n", ``, "malformed"},
		{"? [a]\n: 1\n", ``, "malformed"},
		{"a: [", ``, "malformed"},
		{"a: *no", ``, "malformed"},
		{"&a [*a]", ``, "malformed"},
		{"a: &a\n  <<: *a\n", ``, "malformed"},
		{"\x00", ``, "malformed"},
		{"1\n---\n2\n", ``, "invalid /all"},
	} {
		got, err := Convert(nil, ConvertParams{YAML: &c.text})
		if outcome(err) != c.outcome || string(got.JSON) != c.want {
			t.Errorf("%q: %s, %v; want %s, %q", c.text, got.JSON, err, c.want, c.outcome)
		}
	}
}

func TestAliasesOfAliasesAreBounded(t *testing.T) {
	text := "a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n"
	for i := range 12 {
		text += fmt.Sprintf("a%d: &a%d [%s]\n", i+1, i+1,
			strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d,", i), 10), ","))
	}
	_, err := Convert(nil, ConvertParams{YAML: &text})
	if outcome(err) != "too_large" {
		t.Errorf("%v, want too_large", err)
	}
}

// TestJSONToYAMLAndBack reads the written YAML again: strings that look like
// other values must remain strings.
func TestJSONToYAMLAndBack(t *testing.T) {
	for _, value := range []string{
		`null`, `true`, `0`, `-1.5`, `1e400`, `12345678901234567890123`, `1.10`, `""`, `[]`, `{}`,
		`{"z":1,"a":{"y":[],"b":{}}}`,
		`"yes"`, `"no"`, `"on"`, `"null"`, `"~"`, `"true"`, `"123"`, `"1.5"`, `"0x1F"`, `"1e3"`, `"2001-01-01"`, `".inf"`,
		`"<<"`, `"="`,
		`" x"`, `"x "`, `"a: b"`, `"#x"`, `"- x"`, `"a\nb"`, `"a\nb\n"`, `"\n"`, `"\ta"`, `"*x"`, `"&x"`, `"!x"`, `"%x"`,
		`"é<&>"`, `"\u0000\u0007\u007f\u0085\u2028"`,
		`{"":1,"1":2,"true":3,"null":4,"<<":5,"a: b":6,"~":7}`,
		`[[1,[2,[]]],[{"a":[{"b":1}]}]]`,
	} {
		text, err := Convert(nil, ConvertParams{JSON: raw(value)})
		if err != nil {
			t.Errorf("%s: %v", value, err)
			continue
		}
		back, err := Convert(nil, ConvertParams{YAML: &text.YAML})
		var got, want any
		if err == nil {
			got = decode(back.JSON)
			want = decode(raw(value))
		}
		if err != nil || fmt.Sprintf("%#v", got) != fmt.Sprintf("%#v", want) {
			t.Errorf("%s is written %q and read back as %s, %v", value, text.YAML, back.JSON, err)
		}
	}
}

func TestYAMLIsBounded(t *testing.T) {
	many := "[" + strings.Repeat("1,", maxNodes) + "1]"
	if _, err := Convert(nil, ConvertParams{JSON: raw(many)}); outcome(err) != "too_large" {
		t.Errorf("%v, want too_large", err)
	}
}

func TestConvertTakesOneForm(t *testing.T) {
	text := "a: 1"
	for _, p := range []ConvertParams{{}, {YAML: &text, JSON: raw("1")}} {
		if _, err := Convert(nil, p); outcome(err) != "invalid " {
			t.Errorf("%+v: %v", p, err)
		}
	}
}

func FuzzConvert(f *testing.F) {
	f.Add("a: 1\nb: [x, {y: z}]\n")
	f.Add("&a [*a]")
	f.Add("a: &x {b: 1}\n<<: *x\n")
	f.Fuzz(func(t *testing.T, text string) {
		got, err := Convert(nil, ConvertParams{YAML: &text, All: true})
		if err == nil && !json.Valid(got.JSON) {
			t.Errorf("%q became %q", text, got.JSON)
		}
	})
}
