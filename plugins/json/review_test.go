//go:build !wasip1

package main

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	sdk "github.com/parley-tools/parley/sdk/go"
)

// summary writes findings as "rule path", with what the document becomes by the patch.
func summary(t *testing.T, data string, r ReviewResult) string {
	t.Helper()
	var lines []string
	for _, f := range r.Findings {
		mark := ""
		if f.Severity != "error" {
			mark = f.Severity + " "
		}
		lines = append(lines, mark+f.Rule+" "+f.Path)
		if f.Expected == "" || f.Given == "" {
			t.Errorf("%s: %+v says too little", data, f)
		}
	}
	fixed, err := Patch(nil, PatchParams{raw(data), r.Patch})
	if err != nil {
		t.Errorf("%s: the patch %+v fails: %v", data, r.Patch, err)
	}
	return strings.Join(append(lines, string(fixed.Data)), "; ")
}

func TestReviewRequiresOneOfSchemaAndSample(t *testing.T) {
	for want, p := range map[string]ReviewParams{
		"neither": {Data: raw("1")}, "both": {Data: raw("1"), Schema: raw("{}"), Sample: raw("2")},
	} {
		if _, err := Review(&sdk.Call{}, p); err == nil || err.(*sdk.InvalidError).Provided != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

func TestReview(t *testing.T) {
	for _, c := range []struct{ schema, data, want string }{
		{`true`, `1`, `1`},
		{`false`, `1`, `false ; 1`},
		{`{"type":"string"}`, `"x"`, `"x"`},
		{`{"type":"string"}`, `1`, `type ; "1"`},
		{`{"type":"integer"}`, `1.0`, `1.0`},
		{`{"type":"integer"}`, `"12"`, `type ; 12`},
		{`{"type":"integer","maximum":9}`, `"12"`, `type ; "12"`},
		{`{"type":"boolean"}`, `"True"`, `type ; true`},
		{`{"type":["number","null"]}`, `"x"`, `type ; "x"`},
		{`{"type":"array","items":{"type":"string"}}`, `"x"`, `type ; ["x"]`},
		{`{"properties":{"a":{"type":"string"}}}`, `{"a":null}`, `type /a; {}`},
		{`{"properties":{"a":{"type":"string"}},"required":["a"]}`, `{"a":null}`, `type /a; {"a":null}`},
		{`{"enum":["red","green"]}`, `"Red"`, `enum ; "red"`},
		{`{"enum":["red","green",1]}`, `"blue"`, `enum ; "blue"`},
		{`{"enum":[1]}`, `1.0`, `1.0`},
		{`{"const":"v1"}`, `"v2"`, `const ; "v1"`},
		{`{"required":["port"]}`, `{"prot":1}`, `required ; {"port":1}`},
		{`{"required":["a"],"properties":{"a":{"default":7}}}`, `{}`, `required ; {"a":7}`},
		{`{"required":["a"]}`, `{"zzz":1}`, `required ; {"zzz":1}`},
		{`{"properties":{"a":{}},"additionalProperties":false}`, `{"a":1,"b":2}`, `additionalProperties /b; {"a":1}`},
		{`{"properties":{"userName":{}},"additionalProperties":false}`, `{"user_name":1}`,
			`additionalProperties /user_name; {"userName":1}`},
		{`{"properties":{"port":{}},"required":["port"],"additionalProperties":false}`, `{"prot":1}`,
			`required ; additionalProperties /prot; {"port":1}`},
		{`{"items":{"type":"integer"}}`, `[1,"2",true]`, `type /1; type /2; [1,2,true]`},
		{`{"minItems":2,"maxItems":2}`, `[1]`, `minItems ; [1]`},
		{`{"minLength":2,"maxLength":3}`, `"é"`, `minLength ; "é"`},
		{`{"maxProperties":1}`, `{"a":1,"b":2}`, `maxProperties ; {"a":1,"b":2}`},
		{`{"uniqueItems":true}`, `[1,2,1.0,2]`, `uniqueItems /2; uniqueItems /3; [1,2]`},
		{`{"minimum":0.1,"exclusiveMaximum":1}`, `1`, `exclusiveMaximum ; 1`},
		{`{"maximum":9007199254740992}`, `9007199254740993`, `maximum ; 9007199254740993`},
		{`{"multipleOf":0.1}`, `0.3`, `0.3`},
		{`{"multipleOf":0.1}`, `0.35`, `multipleOf ; 0.35`},
		{`{"pattern":"^a+$"}`, `" aa"`, `pattern ; "aa"`},
		{`{"format":"date"}`, `"2026/1/5"`, `warning format ; "2026-01-05"`},
		{`{"format":"date-time"}`, `"2026-01-05 10:00:00Z"`, `warning format ; "2026-01-05T10:00:00Z"`},
		{`{"format":"uri"}`, `"not one"`, `warning format ; "not one"`},
		{`{"allOf":[{"type":"integer"},{"minimum":5}]}`, `3`, `minimum ; 3`},
		{`{"anyOf":[{"type":"string"},{"type":"object","required":["id"]}]}`, `{}`, `required ; {}`},
		{`{"oneOf":[{"type":"integer"},{"minimum":1}]}`, `3`, `oneOf ; 3`},
		{`{"oneOf":[{"properties":{"kind":{"const":"a"}},"required":["x","y"]},` +
			`{"properties":{"kind":{"const":"b"}},"required":["z"]}]}`, `{"kind":"a"}`, `required ; required ; {"kind":"a"}`},
		{`{"not":{"type":"null"}}`, `null`, `not ; null`},
		{`{"$defs":{"t":{"properties":{"n":{"type":"integer"},"c":{"items":{"$ref":"#/$defs/t"}}}}},"$ref":"#/$defs/t"}`,
			`{"c":[{"n":"1","c":[{"n":"2"}]}]}`, `type /c/0/c/0/n; type /c/0/n; {"c":[{"c":[{"n":2}],"n":1}]}`},
		{`{"properties":{"a/b":{"type":"integer"}}}`, `{"a/b":"1"}`, `type /a~1b; {"a/b":1}`},
	} {
		got, err := Review(&sdk.Call{}, ReviewParams{Data: raw(c.data), Schema: raw(c.schema)})
		if s := summary(t, c.data, got); err != nil || s != c.want || len(got.Unchecked) > 0 {
			t.Errorf("%s against %s: %v %v\n got %s\nwant %s", c.data, c.schema, err, got.Unchecked, s, c.want)
		}
	}
}

func TestReviewAgainstASample(t *testing.T) {
	const data = `{"prot":80,"host":1,"more":true}`
	got, err := Review(&sdk.Call{}, ReviewParams{Data: raw(data), Sample: raw(`{"port":1,"host":"a","tls":true}`)})
	want := `warning required ; warning required ; type /host; info properties /more; info properties /prot; ` +
		`{"host":"1","more":true,"port":80}`
	if s := summary(t, data, got); err != nil || s != want || got.Valid {
		t.Errorf("%v\n got %s\nwant %s", err, s, want)
	}
}

func TestReviewNamesWhatItDidNotCheck(t *testing.T) {
	got, err := Review(&sdk.Call{}, ReviewParams{Data: raw(`{"a":"x"}`), Schema: raw(`{"unevaluatedProperties":false,` +
		`"title":"t","x-y":1,"properties":{"a":{"format":"iri","pattern":"(?=a)","$ref":"https://a.test/s","contains":{},"items":[{"type":"string"}],"patternProperties":{"x":false},` +
		`"additionalProperties":false}}}`)})
	want := `[$ref https://a.test/s /properties/a/contains /properties/a/patternProperties /unevaluatedProperties format iri items by position pattern (?=a)]`
	if err != nil || fmt.Sprint(got.Unchecked) != want || len(got.Findings) > 0 {
		t.Errorf("%v %+v, want %s", err, got, want)
	}
}

// TestReviewNamesForms reviews with keywords that have the form of an older draft, or a wrong one: none has an effect
// unsaid.
func TestReviewNamesForms(t *testing.T) {
	for schema, want := range map[string]string{
		`{"maximum":1,"exclusiveMaximum":true}`:               `[/exclusiveMaximum]`,
		`{"properties":{"a":{"required":true}}}`:              `[/properties/a/required]`,
		`{"minimum":"3","maxLength":"1","uniqueItems":"yes"}`: `[/maxLength /minimum /uniqueItems]`,
		`{"properties":["a"],"pattern":3,"format":3}`:         `[/format /pattern /properties]`,
		`{"items":"string","additionalProperties":"no"}`:      `[/additionalProperties /items]`,
		`{"properties":{"a":"string","b":false}}`:             `[/properties/a]`,
		`{"properties":{"a":{"const":true,"enum":["b"]}}}`:    `[]`,
	} {
		got, err := Review(&sdk.Call{}, ReviewParams{Data: raw(`1`), Schema: raw(schema)})
		if err != nil || fmt.Sprint(got.Unchecked) != want {
			t.Errorf("%s: %v %q, want %s", schema, err, got.Unchecked, want)
		}
	}
}

func TestReviewIsBounded(t *testing.T) {
	schema := `{"allOf":[{"$ref":"#"},{"$ref":"#"}]}`
	if _, err := Review(&sdk.Call{}, ReviewParams{Data: raw(`1`), Schema: raw(schema)}); outcome(err) != "invalid /schema" {
		t.Error(err)
	}
	many := "[" + strings.Repeat("1,", 999) + "1]"
	c := &sdk.Call{}
	got, err := Review(c, ReviewParams{Data: raw(many), Schema: raw(`{"items":{"type":"string"}}`)})
	if err != nil || len(got.Findings) != maxFindings || len(c.Warnings()) != 1 {
		t.Error(len(got.Findings), c.Warnings(), err)
	}
	for _, p := range []ReviewParams{{Data: raw("1")}, {Data: raw("1"), Schema: raw("true"), Sample: raw("1")}} {
		if _, err := Review(&sdk.Call{}, p); outcome(err) != "invalid " {
			t.Error(err)
		}
	}
}

// TestFixesFix applies the patches of random reviews: each applies, and leaves fewer findings.
func TestFixesFix(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	fixed := 0
	for range 3000 {
		sample, data := randomJSON(r, 3), randomJSON(r, 3)
		schema, err := Schema(&sdk.Call{}, SchemaParams{Samples: samples(string(sample))})
		if err != nil {
			t.Fatal(err)
		}
		before, err := Review(&sdk.Call{}, ReviewParams{Data: data, Schema: schema.Schema})
		if err != nil {
			t.Fatal(err)
		}
		patched, err := Patch(nil, PatchParams{data, before.Patch})
		if err != nil {
			t.Fatalf("%s: %+v: %v", data, before, err)
		}
		after, err := Review(&sdk.Call{}, ReviewParams{Data: patched.Data, Schema: schema.Schema})
		if len(before.Patch) > 0 {
			fixed++
		}
		if err != nil || len(before.Patch) > 0 && len(after.Findings) >= len(before.Findings) {
			t.Fatalf("%s against %s: %+v, then %s: %+v, %v", data, schema.Schema, before, patched.Data, after, err)
		}
	}
	if fixed < 100 {
		t.Errorf("only %d patches were tried", fixed)
	}
}
