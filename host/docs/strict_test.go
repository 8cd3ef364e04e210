package docs

import (
	"encoding/json"
	"fmt"
	"testing"
)

// strictBreaks returns what OpenAI's strict mode refuses in a schema.
func strictBreaks(at string, s any) (broken []string) {
	node, ok := s.(map[string]any)
	if !ok {
		return []string{at + ": not an object"}
	}
	say := func(text string) { broken = append(broken, at+": "+text) }
	cases, union := node["anyOf"].([]any)
	if _, typed := node["type"].(string); typed == union {
		say("it needs a type or cases")
	}
	for i, c := range cases {
		broken = append(broken, strictBreaks(fmt.Sprintf("%s/anyOf/%d", at, i), c)...)
	}
	for _, key := range []string{"default", "$ref", "oneOf", "allOf", "minLength", "maxLength"} {
		if node[key] != nil {
			say("the keyword " + key)
		}
	}
	if node["type"] == "array" {
		broken = append(broken, strictBreaks(at+"/items", node["items"])...)
	}
	if node["type"] != "object" {
		return broken
	}
	properties, _ := node["properties"].(map[string]any)
	required, _ := node["required"].([]any)
	if node["additionalProperties"] != false || len(required) != len(properties) {
		say("every property must be required, and no other allowed")
	}
	for name, p := range properties {
		broken = append(broken, strictBreaks(at+"/"+name, p)...)
	}
	return broken
}

func TestStrictSchema(t *testing.T) {
	for listed, want := range map[string]string{
		`{"type":"object"}`: `{"additionalProperties":false,"properties":{},"required":[],"type":"object"}`,
		`{"type":"object","properties":{"a":{"type":"string","default":"x","minLength":1},"b":{"type":"integer"}},"required":["b"]}`: `` +
			`{"additionalProperties":false,"properties":{"a":{"anyOf":[{"type":"string"},{"type":"null"}]},"b":{"type":"integer"}},` +
			`"required":["a","b"],"type":"object"}`,
		`{"type":"object","properties":{"free":{"type":"object","description":"Headers."}},"required":["free"]}`: `` +
			`{"additionalProperties":false,"properties":{"free":{"description":"Headers. A JSON object as text.","type":"string"}},` +
			`"required":["free"],"type":"object"}`,
		`{"type":"object","properties":{"any":{"anyOf":[{"type":"string"},{"type":"object"},{"type":"array","items":{"type":"string"}}]}}}`: ``,
		`{"type":"object","properties":{"rows":{"type":"array","items":{"type":"object","properties":{"x":{"type":"number"}}}}}}`:           ``,
		`{"type":"object","properties":{"mode":{"type":"string","enum":["a","b"],"description":"How."}}}`:                                   ``,
		`null`: ``,
	} {
		got := strictSchema(json.RawMessage(listed))
		if want != "" && string(got) != want {
			t.Errorf("%s becomes\n%s, expected\n%s", listed, got, want)
		}
		var root any
		if err := json.Unmarshal(got, &root); err != nil {
			t.Fatal(err)
		}
		for _, rule := range strictBreaks("", root) {
			t.Errorf("%s becomes %s\n%s", listed, got, rule)
		}
	}
}
