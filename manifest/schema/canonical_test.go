package schema

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/parley-tools/parley/manifest/jsontext"
)

func TestCanonical(t *testing.T) {
	for _, c := range []struct{ schema, value, want string }{
		{`{"type":"integer"}`, `1E+2`, `100`},
		{`{"type":"integer"}`, `-0`, `0`},
		{`{"type":"integer"}`, `9007199254740993.0`, `9007199254740993`},
		{`{"type":"integer"}`, `1e399`, `1` + strings.Repeat("0", 399)},
		{`{"type":"number"}`, `1.0`, `1.0`},
		{`{"type":"number"}`, `2e1`, `2e1`},
		{`{}`, `{"a":[1.0]}`, `{"a":[1.0]}`},
		{`{"type":["integer","string"]}`, `2e1`, `20`},
		{`{"type":["integer","number"]}`, `2e1`, `2e1`},
		{`{"type":["integer","string"]}`, `"2e1"`, `"2e1"`},
		{`{"anyOf":[{"type":"integer"},{"type":"string"}]}`, `1.0`, `1`},
		{`{"oneOf":[{"type":"string"},{"type":"integer","minimum":1},{"type":"null"}]}`, `1.0`, `1`},
		{`{"allOf":[{"properties":{"n":{"type":"integer"}}},{"properties":{"n":{"minimum":1}}}]}`, `{"n":1.0}`, `{"n":1}`},
		{`{"items":{"type":"integer"}}`, `[1.0,-2e0,"a"]`, ``},
		{`{"items":{"properties":{"n":{"items":{"type":"integer"}}}}}`, `[{"n":[1.0,-2e0]}]`, `[{"n":[1,-2]}]`},
		{`{"additionalProperties":{"type":"integer"}}`, `{"a":1.0,"b":20e-1}`, `{"a":1,"b":2}`},
		{`{"patternProperties":{"^n":{"type":"integer"}}}`, `{"n1":1.0,"x":1.0}`, `{"n1":1,"x":1.0}`},
		{`{"prefixItems":[{"type":"number"},{"type":"integer"}],"items":{"type":"integer"}}`, `[1.0,1.0,1.0]`, `[1.0,1,1]`},
		{`{"$ref":"#/$defs/tree","$defs":{"tree":{"type":"object","properties":{"n":{"type":"integer"},"next":{"$ref":"#/$defs/tree"}}}}}`,
			`{"n":1.0,"next":{"n":2e0}}`, `{"n":1,"next":{"n":2}}`},
		{`{"if":{"required":["a"]},"then":{"properties":{"a":{"type":"integer"}}}}`, `{"a":1.0}`, `{"a":1}`},
		{`{"dependentSchemas":{"a":{"properties":{"b":{"type":"integer"}}}}}`, `{"a":0,"b":1.0}`, `{"a":0,"b":1}`},
		{`{"properties":{"a":true},"unevaluatedProperties":{"type":"integer"}}`, `{"b":1.0}`, `{"b":1}`},
		{`{"contains":{"type":"integer"}}`, `["a",1.0]`, `["a",1]`},
		{`{"prefixItems":[true],"unevaluatedItems":{"type":"integer"}}`, `[true,1.0]`, `[true,1]`},
		{`{"enum":[1,2,"a"]}`, `2.0`, `2`},
		{`{"const":{"n":1}}`, `{"n":1.0}`, `{"n":1}`},
		{`{"not":{"type":"string"}}`, `1.0`, `1.0`},
	} {
		s, err := CompileUntrusted([]byte(c.schema))
		if err != nil {
			t.Fatal(c.schema, err)
		}
		v, err := jsontext.Decode([]byte(c.value), jsontext.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		if violations, err := s.Validate(v); (len(violations) > 0) != (c.want == "") || err != nil {
			t.Errorf("%s of %s: %v, %v", c.value, c.schema, violations, err)
		} else if got := string(jsontext.Marshal(s.Canonical(v))); len(violations) == 0 && got != c.want {
			t.Errorf("%s of %s: got %s, want %s", c.value, c.schema, got, c.want)
		}
	}
}

// A number that no float64 is near to is an integer, and no decoder of floats is given it.
func TestLargeNumbers(t *testing.T) {
	for schema, want := range map[string]int{`{"type":"integer"}`: 0, `{}`: 0, `{"type":"number"}`: 1, `{"type":["number","string"]}`: 1} {
		s, _ := CompileUntrusted([]byte(schema))
		violations, err := s.Validate(json.Number("1e350"))
		if err != nil || len(violations) != want {
			t.Errorf("%s: %v, %v", schema, violations, err)
		}
	}
}

// checkCanonical checks that each spelling of a valid value is the same value in the canonical form, which is valid,
// and that what the schema calls an integer at its root or in a property is written as digits.
func checkCanonical(t *testing.T, schema string, s *Schema, v any) {
	plain := s.Canonical(deepCopy(v))
	spelled := otherForm(v, rand.New(rand.NewPCG(1, uint64(len(schema)))))
	if violations, err := s.Validate(spelled); err != nil || len(violations) > 0 {
		return // a pattern of propertyNames, say, never sees a number; the cost may differ
	}
	got := s.Canonical(spelled)
	if violations, err := s.Validate(got); err != nil || len(violations) > 0 || !equal(got, v) {
		t.Fatalf("schema %s\nvalid %s has the canonical form %s: %v, %v", schema, jsontext.Marshal(v), jsontext.Marshal(got),
			violations, err)
	}
	if again := jsontext.Marshal(s.Canonical(deepCopy(got))); string(again) != string(jsontext.Marshal(got)) {
		t.Fatalf("schema %s\n%s is not canonical: %s", schema, jsontext.Marshal(got), again)
	}
	wantDigits(t, schema, s.root, plain)
	wantDigits(t, schema, s.root, got)
}

func wantDigits(t *testing.T, schema string, n *node, v any) {
	for _, c := range n.conjuncts() {
		switch v := v.(type) {
		case json.Number:
			if c.types == kindInteger && strings.ContainsAny(string(v), ".eE") {
				t.Fatalf("schema %s\n%s is written for an integer", schema, v)
			}
		case map[string]any:
			for name, inner := range v {
				if s := c.props[name]; s != nil {
					wantDigits(t, schema, s, inner)
				}
			}
		}
	}
}

// otherForm returns a copy of v in which each integer is written in another form.
func otherForm(v any, r *rand.Rand) any {
	var b strings.Builder
	in := jsontext.Scan(jsontext.Marshal(v))
	for token := in.Next(); token != nil; token = in.Next() {
		b.Write(token)
		if digits, ok := jsontext.Integer(string(token)); ok && digits == string(token) {
			b.WriteString([]string{".0", "e0", "e-0", ".00E+0"}[r.IntN(4)])
		}
	}
	out, _ := jsontext.Decode([]byte(b.String()), jsontext.Limits{})
	return out
}

func TestCanonicalIsLinear(t *testing.T) {
	s, _ := CompileUntrusted([]byte(`{"items":{"anyOf":[{"type":"integer"},{"items":{"type":"integer"}}]}}`))
	steps := func(n int) float64 {
		v := make([]any, n)
		return testing.AllocsPerRun(1, func() {
			for i := range v {
				v[i] = json.Number(fmt.Sprint(i, ".0"))
			}
			s.Canonical(v)
		})
	}
	if small, large := steps(1000), steps(10_000); large > 12*small {
		t.Errorf("ten times the items take %.1f times the allocations", large/small)
	}
}
