package manifest_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/parley-tools/parley/internal/schemafacts"
	"github.com/parley-tools/parley/manifest"
	"github.com/parley-tools/parley/manifest/jsontext"
	"github.com/parley-tools/parley/manifest/schema"
)

// TestPortable checks the portable form of each part of a schema.
func TestPortable(t *testing.T) {
	for _, tt := range []struct{ name, property, want string }{
		{"a type", `{"type":"integer","minimum":1,"maximum":9,"default":5}`,
			`{"default":5,"maximum":9,"minimum":1,"type":"integer"}`},
		{"a keyword of another type", `{"type":"string","minimum":1,"minLength":2,"maxLength":3,"pattern":"^a","title":"A"}`,
			`{"maxLength":3,"minLength":2,"pattern":"^a","type":"string"}`},
		{"a reference", `{"$ref":"#/$defs/id"}`, `{"description":"An id.","type":"integer"}`},
		{"a reference with a description", `{"$ref":"#/$defs/id","description":"Mine."}`,
			`{"description":"Mine.","type":"integer"}`},
		{"a type in itself", `{"$ref":"#/$defs/list"}`,
			`{"properties":{"next":{ANY "description":"The same type again: list."}},"type":"object"}`},
		{"a type and null", `{"type":["string","null"]}`, `{"description":"Or null.","type":"string"}`},
		{"null in a union", `{"anyOf":[{"type":"null"},{"type":"string"}]}`, `{"description":"Or null.","type":"string"}`},
		{"null behind a reference", `{"oneOf":[{"$ref":"#/$defs/none"},{"type":"string"}],"description":"D."}`,
			`{"description":"D. Or null.","type":"string"}`},
		{"types", `{"type":["string","integer"],"minimum":3}`,
			`{"anyOf":[{"type":"string"},{"minimum":3,"type":"integer"}]}`},
		{"a union", `{"oneOf":[{"type":"string"},{"$ref":"#/$defs/id"}]}`,
			`{"anyOf":[{"type":"string"},{"description":"An id.","type":"integer"}]}`},
		{"an enum", `{"enum":["a","b"]}`, `{"enum":["a","b"],"type":"string"}`},
		{"a constant", `{"const":"a"}`, `{"enum":["a"],"type":"string"}`},
		{"an enum of numbers", `{"enum":[1,2.5]}`, `{"description":"One of 1, 2.5.","type":"number"}`},
		{"an enum of texts and null", `{"enum":["a",null],"description":"D."}`,
			`{"description":"D. One of \"a\", null.","type":"string"}`},
		{"an enum with an empty text", `{"enum":["","a"]}`, `{"description":"One of \"\", \"a\".","type":"string"}`},
		{"an enum of several types", `{"enum":["a",1]}`, `{ANY "description":"One of \"a\", 1."}`},
		{"an enum of objects", `{"enum":[{"a":1}]}`, `{ANY "description":"One of {\"a\":1}."}`},
		{"a format", `{"type":"string","format":"uri"}`, `{"description":"Format: uri.","type":"string"}`},
		{"the format of a date", `{"type":"string","format":"date-time"}`, `{"format":"date-time","type":"string"}`},
		{"an array", `{"type":"array","minItems":1,"items":{"type":"string"}}`,
			`{"items":{"type":"string"},"minItems":1,"type":"array"}`},
		{"an array of anything", `{"type":"array"}`, `{"items":{ANY},"type":"array"}`},
		{"a tuple", `{"type":"array","prefixItems":[{"type":"string"},{"type":"integer"}]}`,
			`{"description":"Type: [string, integer].","items":{ANY},"type":"array"}`},
		{"fields", `{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"boolean"}},"required":["b","c"]}`,
			`{"properties":{"a":{"type":"string"},"b":{"type":"boolean"}},"required":["b"],"type":"object"}`},
		{"no other fields", `{"type":"object","properties":{"a":{"type":"string"}},"additionalProperties":false}`,
			`{"additionalProperties":false,"properties":{"a":{"type":"string"}},"type":"object"}`},
		{"other fields of a type", `{"type":"object","additionalProperties":{"type":"integer"}}`,
			`{"description":"Type: Record\u003cstring, integer\u003e.","type":"object"}`},
		{"fields by a pattern, and no others",
			`{"type":"object","patternProperties":{"^x-":{"type":"integer"}},"additionalProperties":false}`,
			`{"description":"Type: {[/^x-/]: integer}.","type":"object"}`},
		{"bounds that the form cannot say", `{"type":"array","items":{"type":"integer","exclusiveMinimum":1,"maximum":9},"uniqueItems":true}`,
			`{"description":"Bounds: no duplicates.","items":{"description":"Bounds: \u003e 1.","maximum":9,"type":"integer"},"type":"array"}`},
		{"the ends of a type", `{"type":"integer","minimum":-9223372036854775808,"maximum":9223372036854775807,"default":9223372036854775807}`,
			`{"default":9223372036854775807,"type":"integer"}`},
		{"other fields with descriptions",
			`{"type":"object","additionalProperties":{"type":"object","properties":{"w":{"type":"number","minimum":0,"description":"Weight."}}}}`,
			`{"description":"Type: Record\u003cstring, {w?: number (\u003e= 0)}\u003e. *.w: Weight.","type":"object"}`},
		{"the ends of a type in words",
			`{"type":"object","additionalProperties":{"type":"object","properties":{"n":{"type":"integer","minimum":1,"maximum":9223372036854775807}}}}`,
			`{"description":"Type: Record\u003cstring, {n?: integer (\u003e= 1)}\u003e.","type":"object"}`},
		{"no type", `{"description":"D."}`, `{ANY "description":"D."}`},
		{"anything", `true`, `{ANY}`},
	} {
		got := string(manifest.Portable(json.RawMessage(`{"type":"object","properties":{"v":` + tt.property + `},"$defs":{
			"id":{"type":"integer","description":"An id."},"none":{"type":"null"},
			"list":{"type":"object","properties":{"next":{"$ref":"#/$defs/list"}}}}}`)))
		got = strings.TrimSuffix(strings.TrimPrefix(got, `{"properties":{"v":`), `},"type":"object"}`)
		if want := strings.NewReplacer("{ANY ", "{"+anyOf+",", "ANY", anyOf, `\u003c`, "<", `\u003e`, ">").Replace(tt.want); got != want {
			t.Errorf("%s:\n got %s\nwant %s", tt.name, got, want)
		}
	}
}

// anyOf is what the portable form of any value has.
var anyOf = func() string {
	const plain = `{"type":"string"},{"type":"number"},{"type":"boolean"},{"type":"object"},{"items":`
	return `"anyOf":[` + plain + `{"anyOf":[` + plain + `{"type":"number"},"type":"array"}]},"type":"array"}]`
}()

// TestPortableAccepts checks that the portable form of a schema accepts what the schema accepts, apart from null and
// from arrays in arrays in arrays, which have numbers in the portable form of any value.
func TestPortableAccepts(t *testing.T) {
	property := func(of string) json.RawMessage {
		return json.RawMessage(`{"type":"object","required":["v"],"properties":{"v":` + of + `}}`)
	}
	schemas := []json.RawMessage{
		property(`{"type":"object","patternProperties":{"^x-":{"type":"integer"}},"additionalProperties":false}`),
		property(`{"type":"object","properties":{"a":true},"patternProperties":{"^x-":true},"additionalProperties":false}`),
		property(`{"type":"object","properties":{"a":{"type":"string"}},"additionalProperties":{"type":"boolean"}}`),
		property(`{"allOf":[{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]},{"required":["b"]}]}`),
		property(`{"enum":["a",1,true,{"x":[1]},[2],null]}`), property(`{"const":17}`), property(`{"const":1.5}`),
		property(`{"type":["integer","null","boolean","array"]}`), property(`{"enum":["",1.5,3]}`),
		property(`{"type":"array","prefixItems":[{"type":"string"}],"items":false}`), property(`{}`),
		property(`{"type":"array","prefixItems":[{"type":"string"}],"items":{"type":"integer"}}`),
	}
	const perSchema = 20
	for seed := range uint64(60) {
		schemas = append(schemas, schemafacts.Random(rand.New(rand.NewPCG(seed, 9))))
	}
	r := rand.New(rand.NewPCG(9, 9))
	valid := 0
	for _, of := range schemas {
		original, err := schema.CompileUntrusted(of)
		if err != nil {
			t.Fatalf("%s: %v", of, err)
		}
		portable, err := schema.CompileUntrusted(manifest.Portable(of))
		if err != nil {
			t.Fatalf("%s: %v", of, err)
		}
		for range perSchema {
			value := schemafacts.Value(r, of)
			if faults, err := original.Validate(value); err != nil || len(faults) > 0 || hasDeepArray(value, 0) {
				continue // two branches of a oneOf match, for example
			}
			valid++
			if faults, err := portable.Validate(value); err != nil || len(faults) > 0 {
				raw, _ := json.Marshal(value)
				t.Fatalf("%s\naccepts %s\nand its portable form does not: %v %v", of, raw, faults, err)
			}
		}
	}
	if valid < len(schemas)*perSchema/2 {
		t.Errorf("only %d values of %d schemas are valid", valid, len(schemas))
	}
}

// hasDeepArray reports whether a value has arrays in arrays in arrays.
func hasDeepArray(v any, around int) bool {
	switch v := v.(type) {
	case []any:
		return around == 2 || slices.ContainsFunc(v, func(item any) bool { return hasDeepArray(item, around+1) })
	case map[string]any:
		return slices.ContainsFunc(slices.Collect(maps.Values(v)), func(member any) bool { return hasDeepArray(member, 0) })
	}
	return false
}

// TestPortableKeepsEveryFact checks that the portable form has each property, value of an enum, format and description
// of the shipped tools and of random schemas, and that all model APIs accept it.
func TestPortableKeepsEveryFact(t *testing.T) {
	files, err := filepath.Glob("../plugins/*/manifest.json")
	if err != nil || len(files) < 3 {
		t.Fatal(files, err)
	}
	schemas := map[string]json.RawMessage{}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var m manifest.Manifest
		if err := json.Unmarshal(raw, &m); err != nil {
			t.Fatal(err)
		}
		for _, tool := range m.Tools {
			schemas[m.Name+"."+tool.Name] = tool.Params
		}
	}
	r := rand.New(rand.NewPCG(7, 7))
	for i := range 200 {
		schemas[fmt.Sprint("random ", i)] = schemafacts.Bounded(r)
	}
	for name, schema := range schemas {
		listed := string(manifest.Portable(schema))
		for _, rule := range schemafacts.Breaks(json.RawMessage(listed)) {
			t.Errorf("%s: %s", name, rule)
		}
		for _, f := range schemafacts.Of(schema, 3) {
			value := strings.Trim(f.Value, `"`)
			if f.Kind == "description" {
				quoted := jsontext.Marshal(value)
				value = string(quoted[1 : len(quoted)-1])
			}
			if !strings.Contains(listed, value) && !strings.Contains(listed, "… ") {
				t.Fatalf("%s: %s %s of %s is not listed: %s\n%s", name, f.Kind, f.Value, f.Path, schema, listed)
			}
		}
	}
}

// TestPortableOfHostileSchemas checks schemas of manifests that use everything JSON Schema has, or abuse it.
func TestPortableOfHostileSchemas(t *testing.T) {
	deep := strings.Repeat(`{"type":"array","items":`, 40) + `{"type":"string"}` + strings.Repeat("}", 40)
	many := `"a0":{"type":"string"}`
	for i := range 30 { // each refers twice to the one before
		many += fmt.Sprintf(`,"a%d":{"type":"object","properties":{"x":{"$ref":"#/$defs/a%d"},"y":{"$ref":"#/$defs/a%d"}}}`, i+1, i, i)
	}
	for _, schema := range []string{
		``, `null`, `[]`, `true`, `{}`, `{"type":"object","properties":{}}`, `{"type":["object","null"]}`,
		`{"type":"object","properties":{"a":{"enum":["x","y"]},"b":{"enum":[1,2]},"c":{"enum":["x",1,null]},"d":{"const":"k"}}}`,
		`{"type":"object","properties":{"a":{"enum":[]},"b":{"enum":[""]},"c":{"enum":[{"x":1}]},"d":{"enum":[null]}}}`,
		`{"type":"object","properties":{"a":{"type":["string","null"]},"b":{"type":["integer","string"]},"c":{},"d":true}}`,
		`{"type":"object","properties":{"a":{"$ref":"#/$defs/t"}},"$defs":{"t":{"type":"object","properties":{"again":{"$ref":"#/$defs/t"}}}}}`,
		`{"type":"object","properties":{"a":{"$ref":"#/$defs/none"},"b":{"$ref":"https://a.test/x"},"c":{"$ref":"#"}}}`,
		`{"$ref":"#/$defs/t","$defs":{"t":{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]}}}`,
		`{"type":"object","allOf":[{"properties":{"a":{"type":"string"}},"required":["a"]},{"$ref":"#/$defs/t"}],"$defs":{"t":{"properties":{"b":{"type":"integer"}}}}}`,
		`{"type":"object","oneOf":[{"required":["a"]},{"required":["b"]}],"properties":{"a":{"type":"string"},"b":{"type":"string"}}}`,
		`{"type":"object","properties":{"a":{"oneOf":[{"type":"string"},{"type":"object","properties":{}}]},"b":{"anyOf":[{"type":"null"},{"type":"string"}]}}}`,
		`{"type":"object","properties":{"a":{"type":"array"},"b":{"type":"array","prefixItems":[{"type":"string"}]},"c":{"type":"array","items":false}}}`,
		`{"type":"object","required":["a","nothing"],"properties":{"a":{"type":"string","format":"uri","minLength":1,"x-from":["b"],"title":"A"}}}`,
		`{"type":"object","if":{"required":["a"]},"then":{"required":["b"]},"not":{"required":["c"]},"patternProperties":{"^x":{}},"additionalProperties":{"type":"string"}}`,
		`{"type":"object","properties":{"a":` + deep + `}}`,
		`{"type":"object","properties":{"a":{"$ref":"#/$defs/a30"}},"$defs":{` + many + `}}`,
		`{"type":"object","properties":{"a":{"type":"nonsense"},"b":{"type":[]},"c":{"type":["null"]},"d":{"anyOf":[]}}}`,
	} {
		portable := manifest.Portable(json.RawMessage(schema))
		for _, rule := range schemafacts.Breaks(portable) {
			t.Errorf("%.200s\nis listed as %.300s\n%s", schema, portable, rule)
		}
		// What was cut at the bound of nodes may be cut elsewhere the second time.
		if again := manifest.Portable(portable); string(again) != string(portable) && len(portable) < 1<<14 {
			t.Errorf("%.200s\nis listed as %.300s\nand then as %.300s", schema, portable, again)
		}
		if len(portable) > 1<<18 {
			t.Errorf("%.200s has %d bytes", schema, len(portable))
		}
		var root any
		if err := json.Unmarshal(portable, &root); err != nil || depthOf(root) > 14 {
			t.Errorf("%.200s has %d levels, %v", schema, depthOf(root), err)
		}
	}
}

// depthOf returns how many schemas with a type there are within each other.
func depthOf(v any) int {
	deepest := 0
	switch v := v.(type) {
	case map[string]any:
		for _, part := range v {
			deepest = max(deepest, depthOf(part))
		}
		if _, ok := v["type"].(string); ok {
			deepest++
		}
	case []any:
		for _, part := range v {
			deepest = max(deepest, depthOf(part))
		}
	}
	return deepest
}

// TestPortableOfAnyValue checks that clients which validate by the listed schema let any value pass.
func TestPortableOfAnyValue(t *testing.T) {
	listed, err := schema.CompileUntrusted(manifest.Portable(json.RawMessage(`{"type":"object","properties":{"v":{}}}`)))
	if err != nil {
		t.Fatal(err)
	}
	for _, value := range []string{`1`, `"a"`, `true`, `{"a":[1]}`, `[]`, `[7,900,5]`, `["a"]`, `[{"a":1},2]`, `[[1,2],[3,4]]`} {
		var v any
		if err := json.Unmarshal([]byte(`{"v":`+value+`}`), &v); err != nil {
			t.Fatal(err)
		}
		if violations, err := listed.Validate(v); err != nil || len(violations) > 0 {
			t.Errorf("%s: %v %v", value, violations, err)
		}
	}
}
