package schemafacts

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
)

// The rules of model APIs for the parameters of tools. Each API refuses a whole request because of one tool that
// breaks them.
//
//   - OpenAI: an object at the root without combinations of schemas; an array has items
//   - OpenAI strict, after the conversion of its own libraries: a type or anyOf everywhere, few keywords
//   - Gemini and Vertex: no $ref, an enum has the type string and texts, one type in each schema, no empty properties,
//     what is required exists
//   - Anthropic: no oneOf, allOf or anyOf at the root
var (
	allowedKeywords = []string{
		"type", "description", "enum", "properties", "required", "items", "anyOf", "default", "minimum", "maximum",
		"minItems", "maxItems", "minLength", "maxLength", "pattern", "format", "additionalProperties",
	}
	singleTypes = []string{"string", "number", "integer", "boolean", "object", "array"}
)

// Breaks returns the rules of model APIs that a schema of parameters breaks.
func Breaks(params json.RawMessage) (broken []string) {
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
