package docs

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/parley-tools/parley/manifest/jsontext"
)

// strictSchema returns a listed schema in OpenAI's strict form: every property is required, and null stands for a
// property that is left out, which the host accepts; no object has further properties. An object with unknown
// properties is a JSON text, which the host parses.
func strictSchema(listed json.RawMessage) json.RawMessage {
	value, err := jsontext.Decode(listed, jsontext.Limits{})
	object, ok := value.(map[string]any)
	if err != nil || !ok {
		object = map[string]any{}
	}
	root := strictNode(object)
	if root["type"] != "object" { // it has no parameters
		root = map[string]any{
			"type": "object", "properties": map[string]any{}, "required": []any{}, "additionalProperties": false,
		}
	}
	return jsontext.Marshal(root)
}

// strictKeywords are the keywords that the strict form keeps beside the structure.
var strictKeywords = []string{
	"type", "description", "enum", "pattern", "minimum", "maximum", "minItems", "maxItems", "format",
}

func strictNode(in map[string]any) map[string]any {
	out := map[string]any{}
	for _, key := range strictKeywords {
		if v, ok := in[key]; ok {
			out[key] = v
		}
	}
	if cases, ok := in["anyOf"].([]any); ok {
		strict := []any{}
		for _, c := range cases {
			if object, ok := c.(map[string]any); ok {
				strict = append(strict, strictNode(object))
			}
		}
		out["anyOf"] = withoutTwins(strict)
		return out
	}
	if items, ok := in["items"].(map[string]any); ok {
		out["items"] = strictNode(items)
	}
	if in["type"] != "object" {
		return out
	}
	properties, _ := in["properties"].(map[string]any)
	if len(properties) == 0 {
		out["type"] = "string"
		description, _ := out["description"].(string)
		out["description"] = strings.TrimSpace(description + " A JSON object as text.")
		return out
	}
	required, _ := in["required"].([]any)
	strict, names := map[string]any{}, []any{}
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		object, _ := properties[name].(map[string]any)
		node := strictNode(object)
		if !slices.Contains(required, any(name)) {
			node = orNull(node)
		}
		strict[name], names = node, append(names, name)
	}
	out["properties"], out["required"], out["additionalProperties"] = strict, names, false
	return out
}

// orNull returns a schema that also accepts null.
func orNull(node map[string]any) map[string]any {
	null := map[string]any{"type": "null"}
	if cases, ok := node["anyOf"].([]any); ok {
		node["anyOf"] = append(cases, null)
		return node
	}
	out := map[string]any{}
	if d, ok := node["description"]; ok {
		out["description"] = d
		delete(node, "description")
	}
	out["anyOf"] = []any{node, null}
	return out
}

// withoutTwins removes equal schemas from a list: an object of unknown properties becomes a text like another case.
func withoutTwins(cases []any) (kept []any) {
	seen := map[string]bool{}
	for _, c := range cases {
		object := maps.Clone(c.(map[string]any))
		delete(object, "description")
		if key := string(jsontext.Marshal(object)); !seen[key] {
			seen[key] = true
			kept = append(kept, c)
		}
	}
	return kept
}
