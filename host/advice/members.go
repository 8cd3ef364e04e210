package advice

import (
	"slices"

	"github.com/parley-tools/parley/manifest/schema"
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
		property, _ := schema.Resolve(paramsSchema, properties[name], nil)
		list, isList := value.([]any)
		if isList {
			property, _ = schema.Resolve(paramsSchema, property["items"], nil)
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
