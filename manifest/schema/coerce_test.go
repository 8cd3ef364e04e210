package schema

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/parley-tools/parley/manifest/jsontext"
)

func TestCoerce(t *testing.T) {
	tests := []struct{ name, schema, value, want, coercions string }{
		{"number", `{"type":"number"}`, `"-1.5e3"`, `-1.5e3`, `[{ string "-1.5e3" number -1.5e3}]`},
		{"integer", `{"type":"integer"}`, `"5"`, `5`, `[{ string "5" number 5}]`},
		{"integer from a fraction", `{"type":"integer"}`, `"5.5"`, `"5.5"`, `[]`},
		{"not a number", `{"type":"number"}`, `"5 "`, `"5 "`, `[]`},
		{"hexadecimal", `{"type":"number"}`, `"0x10"`, `"0x10"`, `[]`},
		{"infinite", `{"type":"number"}`, `"1e999"`, `"1e999"`, `[]`},
		{"out of bounds", `{"type":"integer","minimum":6}`, `"5"`, `"5"`, `[]`},
		{"boolean", `{"type":"boolean"}`, `"true"`, `true`, `[{ string "true" boolean true}]`},
		{"boolean, other spelling", `{"type":"boolean"}`, `"yes"`, `"yes"`, `[]`},
		{"number for a boolean", `{"type":"boolean"}`, `1`, `1`, `[]`},
		{"not to a string", `{"type":"string"}`, `5`, `5`, `[]`},
		{"not to null", `{"type":"null"}`, `"null"`, `"null"`, `[]`},
		{"one value for an array", `{"type":"array","items":{"type":"string"}}`, `"a"`, `["a"]`, `[{ string "a" array[1]}]`},
		{"one object for an array", `{"type":"array","items":{"type":"object","properties":{"n":{"type":"integer"}}}}`, `{"n":"1"}`, `[{"n":1}]`,
			`[{ object array[1]} {/0/n string "1" number 1}]`},
		{"wrong value for an array", `{"type":"array","items":{"type":"string"}}`, `5`, `5`, `[]`},
		{"array of anything", `{"type":"array"}`, `5`, `5`, `[]`},
		{"two coercions of one value", `{"type":"array","items":{"type":"integer"}}`, `"5"`, `"5"`, `[]`},
		{"too short an array", `{"type":"array","items":{"type":"string"},"minItems":2}`, `"a"`, `"a"`, `[]`},
		{"JSON text for an array", `{"type":"array","items":{"type":"string"}}`, `"[\"a\"]"`, `["a"]`, `[{ string "[\"a\"]" array[1]}]`},
		{"JSON text for an object", `{"type":"object","properties":{"n":{"type":"integer"}}}`, `" {\"n\":\"1\"}"`, `{"n":1}`,
			`[{ string " {\"n\":\"1\"}" object} {/n string "1" number 1}]`},
		{"bad JSON text", `{"type":"object"}`, `"{\"n\":1,\"n\":2}"`, `"{\"n\":1,\"n\":2}"`, `[]`},
		{"JSON text for a number", `{"type":"object"}`, `"5"`, `"5"`, `[]`},
		{"a list of types is a union", `{"type":["integer","null"]}`, `"5"`, `"5"`, `[]`},
		{"anyOf is a union", `{"type":"integer","anyOf":[{"minimum":1},{"maximum":0}]}`, `"5"`, `"5"`, `[]`},
		{"oneOf is a union", `{"oneOf":[{"type":"integer"},{"type":"boolean"}]}`, `"5"`, `"5"`, `[]`},
		{"under a union", `{"anyOf":[{"properties":{"a":{"type":"integer","default":1}}},{}]}`, `{"a":"5"}`, `{"a":"5"}`, `[]`},
		{"beside a union", `{"properties":{"a":{"type":"integer"}},"anyOf":[{},{}]}`, `{"a":"5"}`, `{"a":5}`, `[{/a string "5" number 5}]`},
		{"$ref", `{"items":{"$ref":"#/definitions/n"},"definitions":{"n":{"type":"integer"}}}`, `["1",2]`, `[1,2]`, `[{/0 string "1" number 1}]`},
		{"allOf", `{"allOf":[{"properties":{"a":{"type":"integer"}}},{"properties":{"b":{"type":"boolean"}}}]}`, `{"a":"1","b":"false"}`, `{"a":1,"b":false}`,
			`[{/a string "1" number 1} {/b string "false" boolean false}]`},
		{"allOf narrows", `{"allOf":[{"type":"number"},{"type":"integer"}]}`, `"1"`, `1`, `[{ string "1" number 1}]`},
		{"allOf disagrees", `{"allOf":[{"properties":{"a":{"type":"integer"}}},{"properties":{"a":{"minimum":2}}}]}`, `{"a":"1"}`, `{"a":"1"}`, `[]`},
		{"tuple", `{"items":[{"type":"integer"}],"additionalItems":{"type":"boolean"}}`, `["1","true"]`, `[1,true]`, `[{/0 string "1" number 1} {/1 string "true" boolean true}]`},
		{"additionalProperties", `{"additionalProperties":{"type":"integer"}}`, `{"a":"1"}`, `{"a":1}`, `[{/a string "1" number 1}]`},
		{"patternProperties", `{"patternProperties":{"^a":{"type":"integer"}}}`, `{"a":"1","b":"1"}`, `{"a":1,"b":"1"}`, `[{/a string "1" number 1}]`},
		{"default", `{"properties":{"a":{"default":[1]},"b":{"type":"object","properties":{"c":{"default":2}}},"d":{"properties":{"e":{"default":3}}}}}`,
			`{"b":{}}`, `{"a":[1],"b":{"c":2}}`, `[]`},
		{"default given", `{"properties":{"a":{"default":1}}}`, `{"a":null}`, `{"a":null}`, `[]`},
		{"null for an optional property", `{"properties":{"a":{"type":"integer","default":1},"b":{"type":"object","properties":{"c":{"type":"string"}}}}}`,
			`{"a":null,"b":{"c":null}}`, `{"a":1,"b":{}}`, `[]`},
		{"null that is accepted", `{"properties":{"a":{"type":["integer","null"]},"b":{},"c":{"anyOf":[{"type":"string"},{"type":"null"}]}}}`,
			`{"a":null,"b":null,"c":null}`, `{"a":null,"b":null,"c":null}`, `[]`},
		{"null for a required property", `{"properties":{"a":{"type":"integer"}},"required":["a"]}`, `{"a":null}`, `{"a":null}`, `[]`},
		{"null for a property that allOf requires", `{"properties":{"a":{"type":"integer"}},"allOf":[{"required":["a"]}]}`, `{"a":null}`, `{"a":null}`, `[]`},
		{"null in a list", `{"items":{"type":"string"}}`, `[null]`, `[null]`, `[]`},
		{"null for an unknown name", `{"additionalProperties":false}`, `{"a":null}`, `{"a":null}`, `[]`},
		{"default behind $ref", `{"properties":{"a":{"$ref":"#/definitions/x"}},"definitions":{"x":{"default":"d"}}}`, `{}`, `{"a":"d"}`, `[]`},
		{"default beside $ref", `{"properties":{"a":{"$ref":"#/definitions/x","default":"here"}},"definitions":{"x":{"default":"there"}}}`, `{}`, `{"a":"here"}`, `[]`},
		{"default of a default", `{"properties":{"a":{"default":{},"properties":{"b":{"default":1}}}}}`, `{}`, `{"a":{"b":1}}`, `[]`},
		{"default that is not valid", `{"properties":{"a":{"default":"x","type":"integer"}}}`, `{}`, `{}`, `[]`},
		{"default in items", `{"items":{"properties":{"a":{"default":1}}}}`, `[{},{"a":2}]`, `[{"a":1},{"a":2}]`, `[]`},
		{"default under a union", `{"oneOf":[{"properties":{"a":{"default":1}}}]}`, `{}`, `{}`, `[]`},
		{"default that breaks the object", `{"properties":{"a":{"default":1},"b":{"type":"integer"}},"maxProperties":1}`, `{"b":"2"}`, `{"b":2}`, `[{/b string "2" number 2}]`},
		{"recursive default", `{"properties":{"a":{"$ref":"#","default":{}}}}`, `{}`, `{"a":{"a":{}}}`, `[]`},
	}
	for _, tt := range tests {
		for name, f := range compilers {
			t.Run(tt.name+"/"+name, func(t *testing.T) {
				s := compile(t, f, tt.schema)
				v := decode(t, tt.value)
				got, coercions := s.coerce(v)
				if string(jsontext.Marshal(got)) != tt.want || fmt.Sprint(coercions) != tt.coercions {
					t.Errorf("got %s %v\nwant %s %s", jsontext.Marshal(got), coercions, tt.want, tt.coercions)
				}
				if string(jsontext.Marshal(v)) != string(jsontext.Marshal(decode(t, tt.value))) {
					t.Error("the given value was changed")
				}
			})
		}
	}
}

func TestCoerceIsBounded(t *testing.T) {
	// Each level contains two of the next: 2^40 objects if all defaults were filled in.
	var b strings.Builder
	b.WriteString(`{"$ref":"#/definitions/d40","definitions":{"d0":{}`)
	for i := 1; i <= 40; i++ {
		fmt.Fprintf(&b, `,"d%d":{"properties":{"a":{"allOf":[{"$ref":"#/definitions/d%d"}],"default":{}},"b":{"allOf":[{"$ref":"#/definitions/d%d"}],"default":{}}}}`, i, i-1, i-1)
	}
	b.WriteString(`}}`)
	s := compile(t, CompileUntrusted, b.String())
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if got, _ := s.coerce(decode(t, `{}`)); string(jsontext.Marshal(got)) != `{}` {
		t.Errorf("%.100s", jsontext.Marshal(got))
	}
	runtime.ReadMemStats(&after)
	if used := after.TotalAlloc - before.TotalAlloc; used > 10*maxFilled {
		t.Errorf("%d bytes were allocated, at most %d should be filled in", used, maxFilled)
	}
}

// TestCoerceKeepsTheSchema checks that what is done with coerced values does not reach the defaults of their schema.
func TestCoerceKeepsTheSchema(t *testing.T) {
	s := compile(t, CompileTrusted, `{"properties":{"a":{"default":{"n":[2e1],"x":{"y":[1.0]}},
		"anyOf":[{"properties":{"n":{"items":{"type":"integer"}},"x":{"properties":{"y":{"items":{"type":"integer"}}}}}}]}}}`)
	for range 2 {
		got, _, violations, err := s.Admit(decode(t, `{}`))
		if text := string(jsontext.Marshal(got)); err != nil || violations != nil || text != `{"a":{"n":[2e1],"x":{"y":[1.0]}}}` {
			t.Fatalf("%s, %v, %v", text, violations, err)
		}
		if text := string(jsontext.Marshal(s.Canonical(got))); text != `{"a":{"n":[20],"x":{"y":[1]}}}` {
			t.Fatal(text)
		}
	}
}

// TestCoerceCopiesNoData checks that coercion costs nothing for the parts of a value that the schema leaves open.
func TestCoerceCopiesNoData(t *testing.T) {
	s := compile(t, CompileTrusted, `{"type":"object","properties":{"data":{"description":"any"},"limit":{"type":"integer","default":1}}}`)
	allocs := func(n int) float64 {
		v := decode(t, `{"data":[`+strings.Repeat(`{"a":[1]},`, n)+`{}],"other":[`+strings.Repeat(`[1],`, n)+`0]}`)
		return testing.AllocsPerRun(10, func() { s.coerce(v) })
	}
	if few, many := allocs(1), allocs(1000); many > few+1 {
		t.Errorf("%.0f allocations for a small value, %.0f for a large one", few, many)
	}
}
