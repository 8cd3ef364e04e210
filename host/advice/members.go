package advice

import (
	"slices"

	"github.com/parley-tools/parley/manifest/jsontext"
)

// maxMembers bounds the recorded members of an enum of one parameter.
const maxMembers = 8

// enumMembers returns the values of parameters that their schema lists in an enum, by parameter. These words come from
// the schema, so a record may have them. For an array it returns the different items, if all are in the enum.
func enumMembers(paramsSchema, params any) map[string][]string {
	given, _ := params.(map[string]any)
	object, _ := paramsSchema.(map[string]any)
	properties, _ := object["properties"].(map[string]any)
	var members map[string][]string
	for name, value := range given {
		property := resolveLocal(paramsSchema, properties[name])
		list, isList := value.([]any)
		if isList {
			property = resolveLocal(paramsSchema, property["items"])
		} else {
			list = []any{value}
		}
		enum, _ := property["enum"].([]any)
		var found []string
		for _, item := range list {
			text, ok := item.(string)
			if !ok || !slices.Contains(enum, item) || len(found) == maxMembers {
				found = nil
				break
			}
			if !slices.Contains(found, text) {
				found = append(found, text)
			}
		}
		if len(found) > 0 {
			if members == nil {
				members = map[string][]string{}
			}
			members[name] = found
		}
	}
	return members
}

// resolveLocal returns a schema as an object. For a reference it returns the schema that it refers to.
func resolveLocal(root, node any) map[string]any {
	object, _ := node.(map[string]any)
	if ref, ok := object["$ref"].(string); ok && len(ref) > 1 && ref[0] == '#' {
		if tokens, ok := jsontext.SplitPointer(ref[1:]); ok {
			if target, ok := jsontext.Lookup(root, tokens); ok {
				object, _ = target.(map[string]any)
			}
		}
	}
	return object
}
