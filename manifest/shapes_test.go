package manifest_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/parley-tools/parley/manifest"
	"github.com/parley-tools/parley/manifest/jsontext"
	"github.com/parley-tools/parley/manifest/schema"
)

// TestShapes checks that every text that shows a schema shows each form of it, and says nothing of it that is wrong:
// both tiers with their JSON, TypeScript, the typed signature, and the portable form of MCP and exports.
func TestShapes(t *testing.T) {
	m := &manifest.Manifest{Name: "plugin"}
	for _, s := range shapes() {
		tool := &manifest.Tool{Name: "tool", Params: s.params, Effect: manifest.EffectRead,
			Returns: json.RawMessage(`{"type":"null"}`)}
		two, three := manifest.Describe(m, tool, manifest.Tier2), manifest.Describe(m, tool, manifest.Tier3)
		inJSON, err := json.Marshal(two)
		if err != nil {
			t.Fatal(err)
		}
		for door, text := range map[string]string{
			"tier 2": two.Text(), "tier 3": three.Text(), "JSON": string(inJSON),
			"signature":            manifest.TypedSignature("t", tool),
			"TypeScript of tier 2": two.TypeScript(tool), "TypeScript of tier 3": three.TypeScript(tool),
			"declaration": manifest.TypeScript("t", tool), "portable": string(manifest.Portable(s.params)),
		} {
			integer := "integer"
			if strings.Contains(door, "TypeScript") || door == "declaration" {
				integer = "number"
			}
			for _, fact := range s.facts {
				isSaid := strings.Contains(strings.ToLower(text), strings.ReplaceAll(fact, "INT", integer))
				if !isSaid && (door != "portable" || fact != "…" && fact != "string") {
					t.Errorf("%s: %s does not say %s: %s", s.name, door, fact, text)
				}
			}
			for _, wrong := range s.wrong {
				if strings.Contains(text, wrong) && (door != "portable" || !strings.ContainsAny(wrong, "a(")) {
					t.Errorf("%s: %s says %s: %s", s.name, door, wrong, text)
				}
			}
		}
	}
}

// TestMadeExamples checks that the example of a tool without examples is a call that its schema accepts.
func TestMadeExamples(t *testing.T) {
	made := 0
	for _, s := range shapes() {
		tool := &manifest.Tool{Name: "tool", Params: s.params, Effect: manifest.EffectRead}
		accepts, err := schema.CompileUntrusted(s.params)
		if err != nil {
			t.Fatalf("%s: %v", s.name, err)
		}
		for _, example := range manifest.Describe(&manifest.Manifest{}, tool, manifest.Tier2).Examples {
			made++
			value, err := jsontext.Decode(example.Params, jsontext.Limits{})
			if err != nil {
				t.Fatalf("%s: %s: %v", s.name, example.Params, err)
			}
			if wrong, err := accepts.Validate(value); err != nil || len(wrong) > 0 {
				t.Errorf("%s: %s: %v, %v", s.name, example.Params, wrong, err)
			}
		}
	}
	if made < 5 {
		t.Errorf("only %d examples were made", made)
	}
}

// TestRequiredFirst checks the order and the counts of the second tier: required parameters in the order of the schema,
// then eight optional ones, then names; a long enum is cut and counted, and whole in the third tier.
func TestRequiredFirst(t *testing.T) {
	var props, values []string
	for i := range 20 {
		props = append(props, fmt.Sprintf(`"o%d":{"type":"integer"}`, i))
		values = append(values, fmt.Sprintf(`"a long value %d"`, i))
	}
	props = append(props, `"last":{"enum":[`+strings.Join(values, ",")+`]}`, `"end":{}`)
	params := `{"type":"object","properties":{` + strings.Join(props, ",") + `},"required":["end","last"]}`
	tool := &manifest.Tool{Name: "t", Params: json.RawMessage(params)}
	two, three := manifest.Describe(&manifest.Manifest{}, tool, 2), manifest.Describe(&manifest.Manifest{}, tool, 3)
	if names := strings.Join(namesOf(two.Parameters), " "); names != "last end o0 o1 o2 o3 o4 o5 o6 o7" {
		t.Error(names)
	}
	text := two.MoreText()
	if !strings.HasPrefix(text, "also: o8, o9, ") || !strings.HasSuffix(text, "(… 20 details: tier 3)") {
		t.Error(text)
	}
	if text := two.Text(); !strings.Contains(text, `"a long value 11"|… 8 more`) || strings.Contains(text, "value 12") {
		t.Error(text)
	}
	if text := three.Text(); !strings.Contains(text, "value 19") || strings.Contains(text, "more") {
		t.Error(text)
	}
}
