package parley

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/parley-tools/parley/host/mcp"
	"github.com/parley-tools/parley/internal/testhome"
	"github.com/parley-tools/parley/manifest"
	"github.com/parley-tools/parley/manifest/schema"
)

// The rules of model APIs for tools. Each refuses the whole request for one tool that breaks them.
//
//   - names: letters, digits, _ and -, at most 64 characters; clients put a prefix such as mcp__parley__ in front
//   - OpenAI: an object at the root without combinations of schemas; an array has items
//   - OpenAI strict, after the conversion of its own libraries: a type or anyOf everywhere, few keywords
//   - Gemini and Vertex: no $ref, an enum has the type string and texts, one type in each schema, no empty properties,
//     what is required exists
//   - Anthropic: no oneOf, allOf or anyOf at the root
var (
	toolName        = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,51}$`)
	allowedKeywords = []string{
		"type", "description", "enum", "properties", "required", "items", "anyOf", "default", "minimum", "maximum",
		"minItems", "maxItems", "minLength", "maxLength", "pattern", "format", "additionalProperties",
	}
	singleTypes = []string{"string", "number", "integer", "boolean", "object", "array"}
)

// breaks returns the rules that a schema of parameters breaks.
func breaks(params json.RawMessage) (broken []string) {
	var root map[string]any
	if err := json.Unmarshal(params, &root); err != nil {
		return []string{err.Error()}
	}
	if root["type"] != "object" || root["anyOf"] != nil {
		broken = append(broken, "the root is not a plain object")
	}
	var check func(at string, s any)
	check = func(at string, s any) {
		say := func(format string, args ...any) { broken = append(broken, at+": "+fmt.Sprintf(format, args...)) }
		node, ok := s.(map[string]any)
		if !ok {
			say("%v is not an object", s)
			return
		}
		for key := range node {
			if !slices.Contains(allowedKeywords, key) {
				say("the keyword %s", key)
			}
		}
		kind, typed := node["type"].(string)
		cases, isUnion := node["anyOf"].([]any)
		if typed == isUnion || typed && !slices.Contains(singleTypes, kind) || isUnion && len(cases) < 2 {
			say("type %v, %d cases", node["type"], len(cases))
		}
		for i, c := range cases {
			check(fmt.Sprintf("%s/anyOf/%d", at, i), c)
		}
		if values, has := node["enum"].([]any); has {
			for _, v := range values {
				if text, ok := v.(string); !ok || text == "" || kind != "string" {
					say("the value %v of an enum of type %q", v, kind)
				}
			}
		}
		if (kind == "array") != (node["items"] != nil) {
			say("an array without items, or items without an array")
		}
		if items, has := node["items"]; has {
			check(at+"/items", items)
		}
		properties, has := node["properties"].(map[string]any)
		if has && len(properties) == 0 {
			say("empty properties")
		}
		required, _ := node["required"].([]any)
		for _, name := range required {
			if _, ok := properties[fmt.Sprint(name)]; !ok {
				say("%v is required and does not exist", name)
			}
		}
		if format := node["format"]; format != nil && format != "date-time" {
			say("the format %v", format)
		}
		if node["additionalProperties"] != nil && node["additionalProperties"] != false {
			say("further properties")
		}
		for _, name := range slices.Sorted(maps.Keys(properties)) {
			check(at+"/"+name, properties[name])
		}
	}
	check("", root)
	return broken
}

// TestVendorsAcceptEveryList checks the lists of all modes, with and without configured pins.
func TestVendorsAcceptEveryList(t *testing.T) {
	p, err := Open(t.Context(), Config{Home: testhome.New(t)})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	for _, mode := range mcp.Modes() {
		server, err := p.MCP(mcp.Config{Mode: mode})
		if err != nil {
			t.Fatal(err)
		}
		client, err := server.Dial(t.Context(), mode)
		if err != nil {
			t.Fatal(err)
		}
		raw, err := client.Request(t.Context(), "tools/list", struct{}{})
		client.Close()
		var list struct {
			Tools []struct {
				Name        string
				InputSchema json.RawMessage
			}
		}
		if err != nil || json.Unmarshal(raw, &list) != nil {
			t.Fatal(err)
		}
		names := map[string]bool{}
		for _, tool := range list.Tools {
			if names[tool.Name] = true; !toolName.MatchString(tool.Name) {
				t.Errorf("%s: the name %s", mode, tool.Name)
			}
			for _, rule := range breaks(tool.InputSchema) {
				t.Errorf("%s: %s %s", mode, tool.Name, rule)
			}
		}
		if len(names) != len(list.Tools) {
			t.Errorf("%s: %d names of %d tools", mode, len(names), len(list.Tools))
		}
		if verbs := []string{"page__open", "page__snapshot", "page__click"}; mode == mcp.Progressive {
			for _, verb := range verbs {
				if !names[verb] {
					t.Errorf("progressive mode without configuration does not list %s", verb)
				}
			}
		}
	}
}

// TestVendorsAcceptHostileSchemas checks schemas of manifests that use everything JSON Schema has, or abuse it.
func TestVendorsAcceptHostileSchemas(t *testing.T) {
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
		for _, rule := range breaks(portable) {
			t.Errorf("%.200s\nis listed as %.300s\n%s", schema, portable, rule)
		}
		// What was cut at the bound of nodes may be cut elsewhere the second time.
		if again := manifest.Portable(portable); string(again) != string(portable) && len(portable) < 1<<14 {
			t.Errorf("%.200s\nis listed as %.300s\nand then as %.300s", schema, portable, again)
		}
		if len(portable) > 1<<18 {
			t.Errorf("%.200s has %d bytes", schema, len(portable))
		}
	}
}

// TestAnyValueIsListedAsAny checks that clients which validate by the listed schema let any value pass.
func TestAnyValueIsListedAsAny(t *testing.T) {
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
