package generate

import (
	"encoding/base64"
	"encoding/json"
	"reflect"
	"testing"

	"github.com/parley-tools/parley/manifest/schema"
)

var schemas = []string{
	`{"type":"object","properties":{"a":{"type":"string","minLength":2,"maxLength":3},"n":{"type":"integer","minimum":3}},"required":["a"],"additionalProperties":false}`,
	`{"type":"object","properties":{"p":{"type":"string","pattern":"^(ab|c[0-9]{2,})x+$"}},"required":["p"]}`,
	`{"type":"object","properties":{"l":{"type":"array","items":{"enum":["x","y"]},"minItems":2}},"required":["l"]}`,
	`{"type":"object","properties":{"v":{"anyOf":[{"type":"null"},{"type":"number","exclusiveMinimum":1,"maximum":9}]}},"required":["v"]}`,
	`{"type":"object","allOf":[{"properties":{"a":{"type":"boolean"}},"required":["a"]},{"$ref":"#/$defs/b"}],"$defs":{"b":{"properties":{"b":{"const":7}},"required":["b"]}}}`,
	`{"type":"object","properties":{"at":{"type":"string","format":"date-time","x-assert":true},"n":{"type":"integer","minimum":-9223372036854775808,"maximum":9223372036854775807}},"required":["at","n"]}`,
	`{"type":"object","properties":{"data":{"type":"string","contentEncoding":"base64","x-assert":true}},"required":["data"]}`,
	`{"type":"object","properties":{"t":{"$ref":"#/$defs/t"}},"$defs":{"t":{"type":"object","properties":{"t":{"$ref":"#/$defs/t"}}}}}`,
}

// TestValue checks that the schemas accept what is made for them, and that mutants of it are mostly refused.
func TestValue(t *testing.T) {
	for _, raw := range schemas {
		compiled, err := schema.CompileUntrusted(json.RawMessage(raw))
		if err != nil {
			t.Fatal(err)
		}
		g, err := New(json.RawMessage(raw), 1)
		if err != nil {
			t.Fatal(err)
		}
		invalid := 0
		for range 50 {
			v := g.Value()
			if violations, err := compiled.Validate(v); err != nil || len(violations) > 0 {
				t.Fatalf("%s: made %v: %v %v", raw, v, violations, err)
			}
			for _, m := range g.Mutants(v, 5) {
				if violations, err := compiled.Validate(m); err == nil && len(violations) > 0 {
					invalid++
				}
			}
		}
		if invalid == 0 {
			t.Errorf("%s: no mutant is invalid", raw)
		}
	}
}

// TestBytes checks that a text for bytes is base64, whether the host validates it or not.
func TestBytes(t *testing.T) {
	g, err := New(json.RawMessage(`{"type":"string","contentEncoding":"base64"}`), 1)
	if err != nil {
		t.Fatal(err)
	}
	for range 20 {
		if text, _ := g.Value().(string); !isBase64(text) {
			t.Errorf("%q is not base64", text)
		}
	}
}

func isBase64(s string) bool {
	_, err := base64.StdEncoding.DecodeString(s)
	return err == nil
}

func TestSeedRepeats(t *testing.T) {
	make := func(seed uint64) (all []any) {
		g, err := New(json.RawMessage(schemas[0]), seed)
		if err != nil {
			t.Fatal(err)
		}
		for range 10 {
			v := g.Value()
			all = append(all, v, g.Hostile(v, 3), g.Mutants(v, 3))
		}
		return all
	}
	if !reflect.DeepEqual(make(5), make(5)) || reflect.DeepEqual(make(5), make(6)) {
		t.Error("the values do not depend on the seed alone")
	}
}

func FuzzValue(f *testing.F) {
	for _, raw := range schemas {
		f.Add([]byte(raw), uint64(1))
	}
	f.Fuzz(func(t *testing.T, raw []byte, seed uint64) {
		if _, err := schema.CompileUntrusted(raw); err != nil {
			return
		}
		g, err := New(raw, seed)
		if err != nil {
			return
		}
		v := g.Value()
		g.Hostile(v, 3)
		g.Mutants(v, 3)
	})
}
