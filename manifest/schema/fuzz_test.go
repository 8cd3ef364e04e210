package schema

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/parley-tools/parley/manifest/jsontext"
)

var fuzzSchemas = []string{
	`{"type":"object","properties":{"urls":{"type":"array","items":{"type":"string"}},"n":{"type":"integer","minimum":1,"default":3}},"required":["urls"],"additionalProperties":false}`,
	`{"items":[{"type":"string"},{"enum":[1,"a",null]}],"additionalItems":{"$ref":"#"},"uniqueItems":true,"minItems":1,"maxItems":3}`,
	`{"anyOf":[{"type":"integer"},{"properties":{"kind":{"const":"a"}},"required":["kind"]},{"items":{"$ref":"#"}}],"not":{"const":5}}`,
	`{"oneOf":[{"minimum":2},{"maximum":4,"multipleOf":0.5}],"exclusiveMinimum":0,"exclusiveMaximum":9}`,
	`{"if":{"required":["a"]},"then":{"properties":{"b":{"type":"boolean","default":true}}},"else":{"maxProperties":1},"dependencies":{"a":["b"],"b":{"minProperties":2}}}`,
	`{"$ref":"#/definitions/t","definitions":{"t":{"type":"object","additionalProperties":{"$ref":"#/definitions/t"},"propertyNames":{"pattern":"^[a-z]+$","maxLength":3}}}}`,
	`{"patternProperties":{"^x":{"type":"number"},"y$":{"minLength":1}},"contains":{"type":"string"}}`,
	`{"allOf":[{"properties":{"a":{"type":"object","default":{},"properties":{"b":{"default":[1]}}}}},{"required":["a"]}]}`,
	`{"type":["string","null"],"minLength":2,"maxLength":4,"pattern":"a|b","format":"uri"}`,
	`true`, `false`, `{}`,
}

var fuzzValues = []string{
	`{"urls":["a"],"n":"5"}`, `{"url":1}`, `["a",1,[null]]`, `[1,1.0,"x"]`, `{"kind":"a"}`, `5`, `2.5`, `{"a":1}`, `{"a":1,"b":true}`,
	`{"abc":{"d":{}}}`, `{"x":1,"xy":""}`, `"ab"`, `null`, `"{\"a\":{}}"`, `"[1]"`, `{}`, `[]`,
}

func FuzzCompileUntrusted(f *testing.F) {
	for _, s := range fuzzSchemas {
		f.Add([]byte(s))
	}
	for _, s := range []string{`{"$ref":"#"}`, `{"unevaluatedProperties":false,"$anchor":"x","allOf":[{"$ref":"#/$defs/y"}],"$defs":{"y":{"minContains":2}}}`,
		`{"$schema":"http://json-schema.org/draft-07/schema#","$id":"#a","items":{"$ref":"#a"}}`} {
		f.Add([]byte(s))
	}
	var values []any
	for _, text := range fuzzValues {
		values = append(values, decode(f, text))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		s, err := CompileUntrusted(raw)
		if err != nil {
			var gate *GateError
			var syn *jsontext.SyntaxError
			if !errors.As(err, &gate) && !errors.As(err, &syn) {
				t.Fatalf("%T: %v", err, err)
			}
			return
		}
		for _, v := range values {
			if vs, err := s.Validate(v); err == nil {
				checkViolations(t, s, v, vs)
				checkCorrection(t, s, v)
			}
			s.coerce(v)
		}
	})
}

// checkViolations checks that exactly the invalid values have violations, and that each violation has a text.
func checkViolations(t *testing.T, s *Schema, v any, violations []Violation) {
	t.Helper()
	if valid := s.boundedWalker().check(s.root, v, nil, nil, nil); valid != (len(violations) == 0) {
		t.Fatalf("schema %s\nvalue %s\nthe quick walk says valid = %v, Validate returns %v",
			jsontext.Marshal(s.Root()), jsontext.Marshal(v), valid, violations)
	}
	for _, f := range violations {
		if f.Keyword == "" || f.Expected == "" || f.Provided == "" {
			t.Fatalf("schema %s\nvalue %s\na violation without a text: %v", jsontext.Marshal(s.Root()), jsontext.Marshal(v), f)
		}
	}
}

// checkCorrection checks that a complete correction is valid and contains no made-up values.
func checkCorrection(t *testing.T, s *Schema, v any) {
	t.Helper()
	c := s.Correct(v, hole)
	if !c.Complete {
		return
	}
	filled, _ := s.coerce(c.Value)
	if left, err := s.Validate(filled); err != nil || len(left) > 0 {
		t.Fatalf("schema %s\nvalue %s\nwas corrected to %s, which is invalid: %v %v", jsontext.Marshal(s.Root()),
			jsontext.Marshal(v), jsontext.Marshal(c.Value), left, err)
	}
	if strings.Contains(string(jsontext.Marshal(c.Value)), "<hole ") {
		t.Fatalf("schema %s\nvalue %s\nis corrected with a placeholder: %s", jsontext.Marshal(s.Root()), jsontext.Marshal(v),
			jsontext.Marshal(c.Value))
	}
}

func hole(_, name, expected, about string) string {
	return "<hole " + name + ": " + expected + ", " + about + ">"
}

// FuzzValidate compares the walker's verdicts on draft-07 schemas with those of gojsonschema, and its verdicts for a
// trusted schema with those for the same schema from a plugin.
func FuzzValidate(f *testing.F) {
	for _, s := range fuzzSchemas {
		for _, v := range fuzzValues {
			f.Add(s, v)
		}
	}
	f.Fuzz(func(t *testing.T, schema, value string) { compareVerdicts(t, schema, value) })
}

func compareVerdicts(t *testing.T, schema string, values ...string) {
	doc, err := jsontext.Decode([]byte(schema), jsontext.Limits{Depth: 30, Bytes: 1 << 12})
	if err != nil || hasLongNumber(doc) {
		return
	}
	if m, ok := doc.(map[string]any); ok {
		m["$schema"] = "http://json-schema.org/draft-07/schema#"
	}
	trusted, err := CompileTrusted(jsontext.Marshal(doc))
	if err != nil || !isOfDraft07(trusted) {
		return
	}
	untrusted, err := CompileUntrusted(jsontext.Marshal(doc))
	if err != nil {
		return
	}
	valid := oracle(t, trusted)
	for _, value := range values {
		compareVerdict(t, schema, value, trusted, untrusted, valid)
	}
}

// isOfDraft07 reports whether gojsonschema knows all keywords of a schema, and accepts its bounds.
func isOfDraft07(s *Schema) bool {
	c := &compiler{doc: s.doc}
	_, err := c.compile()
	for _, n := range c.nodes {
		var least, most *big.Rat
		for _, b := range n.bounds {
			switch b.keyword {
			case "minimum":
				least = b.rat
			case "maximum":
				most = b.rat
			}
		}
		for _, s := range []span{n.length, n.count, n.size} {
			if s.least != nil && s.most != nil && *s.least > *s.most {
				return false
			}
		}
		if n.unevalProps != nil || n.unevalItems != nil || n.matching != (span{}) ||
			least != nil && most != nil && least.Cmp(most) > 0 {
			return false
		}
	}
	return err == nil
}

func compareVerdict(t *testing.T, schema, value string, trusted, untrusted *Schema, oracle func(v any) bool) {
	v, err := jsontext.Decode([]byte(value), jsontext.Limits{Depth: 30, Bytes: 1 << 12})
	if err != nil || hasLongNumber(v) {
		return
	}
	b, err := untrusted.Validate(v)
	if err != nil {
		return
	}
	a, err := trusted.Validate(v)
	if err != nil {
		t.Fatal(err)
	}
	if valid := oracle(v); valid != (len(a) == 0) {
		t.Fatalf("schema %s\nvalue %s\ngojsonschema says valid = %v, the walker %v", schema, value, valid, a)
	}
	checkViolations(t, trusted, v, a)
	if fmt.Sprint(a) != fmt.Sprint(b) {
		t.Fatalf("schema %s\nvalue %s\ntrusted   %v\nuntrusted %v", schema, value, a, b)
	}
	checkCorrection(t, trusted, v)
}

// hasLongNumber reports whether v has a number that float64 may not represent: gojsonschema compares enums as floats.
func hasLongNumber(v any) bool {
	switch v := v.(type) {
	case json.Number:
		return len(v) > 15 || strings.ContainsAny(string(v), "eE")
	case []any:
		for _, x := range v {
			if hasLongNumber(x) {
				return true
			}
		}
	case map[string]any:
		for _, x := range v {
			if hasLongNumber(x) {
				return true
			}
		}
	}
	return false
}

// FuzzCoerce checks that a valid value stays valid, that the given value does not change, and that the result has the
// values that the coercions name.
func FuzzCoerce(f *testing.F) {
	for _, s := range fuzzSchemas {
		for _, v := range fuzzValues {
			f.Add(s, v)
		}
	}
	f.Fuzz(checkCoerce)
}

func checkCoerce(t *testing.T, schema, value string) {
	s, err := CompileUntrusted([]byte(schema))
	if err != nil {
		return
	}
	v, err := jsontext.Decode([]byte(value), jsontext.Limits{Depth: 30, Bytes: 1 << 12})
	if err != nil {
		return
	}
	before, err := s.Validate(v)
	if err != nil {
		return
	}
	text := string(jsontext.Marshal(v))
	coerced, coercions := s.coerce(v)
	if string(jsontext.Marshal(v)) != text {
		t.Fatalf("schema %s\n%s was changed to %s in place", schema, text, jsontext.Marshal(v))
	}
	after, err := s.Validate(coerced)
	if err != nil {
		return
	}
	if len(before) == 0 && (len(after) > 0 || len(coercions) > 0) {
		t.Fatalf("schema %s\nvalid %s was coerced to %s: %v %v", schema, value, jsontext.Marshal(coerced), coercions, after)
	}
	if len(after) == 0 {
		checkCanonical(t, schema, s, coerced)
	}
	for _, coercion := range coercions {
		tokens, _ := jsontext.SplitPointer(coercion.Pointer)
		if at, ok := jsontext.Lookup(coerced, tokens); !ok || render(at) != coercion.To {
			t.Fatalf("schema %s\n%s coerced to %s, but %v is not in it", schema, value, jsontext.Marshal(coerced), coercion)
		}
	}
}

// TestRandom runs FuzzValidate and FuzzCoerce with generated schemas and values. Nearly all of them are meaningful,
// unlike most mutated bytes. SCHEMA_ROUNDS is the number of schemas.
func TestRandom(t *testing.T) {
	rounds := 1000
	if n, err := strconv.Atoi(os.Getenv("SCHEMA_ROUNDS")); err == nil {
		rounds = n
	}
	for seed := range rounds {
		g := generator{Rand: rand.New(rand.NewPCG(uint64(seed), 1))}
		schema := map[string]any{"definitions": map[string]any{"d": g.schema(2)}}
		for k, v := range g.object(3) {
			schema[k] = v
		}
		text := string(jsontext.Marshal(schema))
		var values []string
		for range 5 {
			values = append(values, string(jsontext.Marshal(g.value(3))))
			checkCoerce(t, text, values[len(values)-1])
		}
		compareVerdicts(t, text, values...)
	}
}

// A generator makes schemas and values of a small grammar. Nearly all of them are meaningful.
type generator struct {
	*rand.Rand
	modern bool // use the keywords of 2020-12, not those of draft-07
}

func (g generator) schema(depth int) any {
	if depth == 0 || g.IntN(12) == 0 {
		return g.IntN(6) > 0
	}
	return g.object(depth)
}

func (g generator) object(depth int) map[string]any {
	m := map[string]any{}
	for range 1 + g.IntN(3) {
		k, v := g.keyword(depth - 1)
		m[k] = v
	}
	return m
}

var names = []string{"a", "b", "ab", "a.b"}

func (g generator) name() string { return names[g.IntN(len(names))] }

func (g generator) keyword(depth int) (string, any) {
	sub := func() any { return g.schema(depth) }
	list := func() any { return []any{sub(), sub()} }
	m := func() any { return map[string]any{g.name(): sub(), g.name(): sub()} }
	count := func() any { return g.IntN(3) }
	kind := g.IntN(30)
	if g.modern {
		switch kind {
		case 19:
			if g.IntN(2) == 0 {
				return "dependentSchemas", map[string]any{g.name(): sub()}
			}
			return "dependentRequired", map[string]any{g.name(): []any{g.name()}}
		case 23:
			return "prefixItems", list()
		case 24:
			if g.IntN(3) == 0 {
				return []string{"minContains", "maxContains"}[g.IntN(2)], count()
			}
			return []string{"unevaluatedProperties", "unevaluatedItems", "contains", "not"}[g.IntN(4)], sub()
		case 29:
			return "$ref", "#/$defs/d"
		}
	}
	switch kind {
	case 0, 1, 2:
		return "type", []string{"string", "number", "integer", "boolean", "object", "array", "null"}[g.IntN(7)]
	case 3:
		return "type", []any{"string", "integer"}
	case 4:
		return "enum", []any{g.value(1), g.value(0)}
	case 5:
		return "const", g.value(1)
	case 6:
		return []string{"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"}[g.IntN(4)], g.IntN(5)
	case 7:
		return "multipleOf", []any{1, 2, 0.5}[g.IntN(3)]
	case 8:
		return "minLength", count()
	case 9:
		return "maxLength", 1 + g.IntN(3)
	case 10:
		return "pattern", []string{"^a", "b$", "[0-9]"}[g.IntN(3)]
	case 11, 12, 13:
		return "properties", m()
	case 14:
		return "patternProperties", map[string]any{"^a": sub()}
	case 15, 16:
		return "additionalProperties", sub()
	case 17:
		return "required", []any{g.name()}
	case 18:
		return "propertyNames", sub()
	case 19:
		return "dependencies", map[string]any{g.name(): sub(), g.name(): []any{g.name()}}
	case 20:
		return []string{"minProperties", "minItems"}[g.IntN(2)], count()
	case 21:
		return []string{"maxProperties", "maxItems"}[g.IntN(2)], 1 + g.IntN(3)
	case 22:
		return "items", sub()
	case 23:
		return "items", list()
	case 24:
		return []string{"additionalItems", "contains", "not"}[g.IntN(3)], sub()
	case 25:
		return "uniqueItems", true
	case 26, 27:
		return []string{"allOf", "anyOf", "oneOf"}[g.IntN(3)], list()
	case 28:
		return []string{"if", "then", "else"}[g.IntN(3)], sub()
	default:
		if g.IntN(2) == 0 {
			return "default", g.value(1)
		}
		return "$ref", "#/definitions/d"
	}
}

func (g generator) value(depth int) any {
	kind := g.IntN(8)
	if depth == 0 {
		kind = g.IntN(5)
	}
	switch kind {
	case 0:
		return nil
	case 1:
		return g.IntN(2) == 0
	case 2:
		return []any{g.IntN(6), 0.5, 2.0, -1}[g.IntN(4)]
	case 3, 4:
		return []string{"", "a", "ab", "abc", "5", "true", "[1]", `{"a":1}`}[g.IntN(8)]
	case 5:
		list := []any{}
		for range g.IntN(4) {
			list = append(list, g.value(depth-1))
		}
		return list
	default:
		m := map[string]any{}
		for range g.IntN(4) {
			m[g.name()] = g.value(depth - 1)
		}
		return m
	}
}
