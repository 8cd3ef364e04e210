package mcp

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/parley-tools/parley/manifest"
	"github.com/parley-tools/parley/manifest/jsontext"
)

// Portable returns a schema of parameters in the part of JSON Schema that every model API accepts: those of OpenAI,
// Gemini, Vertex and Anthropic each refuse a whole request because of one keyword. References are replaced by what they
// point to, each value has a type, an enum has strings, and conditions are left out. It accepts at least what the
// original accepts: the host validates calls against the whole schema.
func Portable(params json.RawMessage) json.RawMessage {
	value, err := jsontext.Decode(params, jsontext.Limits{})
	root, ok := value.(map[string]any)
	if err != nil || !ok {
		return json.RawMessage(`{"type":"object"}`)
	}
	p := &porter{root: root, nodes: maxPortableNodes}
	out := p.schema(root, 0)
	if out["type"] != "object" { // MCP and all APIs want an object of parameters
		out = map[string]any{"type": "object"}
	}
	return manifest.CleanJSON(jsontext.Marshal(out))
}

const (
	// maxPortableNodes bounds the schemas in a result: references to references can multiply.
	maxPortableNodes = 1000
	// maxPortableDepth bounds the nesting, which model APIs limit, too.
	maxPortableDepth = 10
)

// portableKeywords are copied as they are.
var portableKeywords = []string{
	"description", "default", "minimum", "maximum", "minItems", "maxItems", "minLength", "maxLength", "pattern",
}

// porter makes the portable form of one schema.
type porter struct {
	root   map[string]any
	active []string // references that are being replaced
	nodes  int      // schemas that the result may still have
}

// schema returns the portable form of a schema.
func (p *porter) schema(value any, depth int) map[string]any {
	in, ok := value.(map[string]any)
	if p.nodes--; !ok || p.nodes < 0 || depth > maxPortableDepth {
		return anyValue()
	}
	if ref, ok := in["$ref"].(string); ok {
		return p.reference(ref, in, depth)
	}
	if all, ok := in["allOf"].([]any); ok {
		in = p.merged(in, all)
	}
	out := map[string]any{}
	for _, key := range portableKeywords {
		if v, ok := in[key]; ok {
			out[key] = v
		}
	}
	if in["format"] == "date-time" {
		out["format"] = "date-time"
	} else if text, ok := in["format"].(string); ok {
		say(out, "Format: "+text+".")
	}
	if c, ok := in["const"]; ok && in["enum"] == nil {
		in = maps.Clone(in)
		in["enum"] = []any{c}
	}
	if values, ok := in["enum"].([]any); ok && len(values) > 0 {
		setEnum(out, values)
		return out
	}
	for _, key := range []string{"anyOf", "oneOf"} {
		if cases, ok := in[key].([]any); ok && in["properties"] == nil {
			return p.union(out, cases, depth)
		}
	}
	switch types := p.types(in); len(types) {
	case 0:
		maps.Copy(out, anyValue())
	case 1:
		p.setType(out, in, types[0], depth)
	default:
		var cases []any
		for _, t := range types {
			one := maps.Clone(in)
			one["type"] = t
			for _, key := range append([]string{"anyOf", "oneOf", "default"}, "description") {
				delete(one, key)
			}
			cases = append(cases, one)
		}
		return p.union(out, cases, depth)
	}
	return out
}

// types returns the types of a schema without null, which the host accepts wherever a parameter may be left out.
func (p *porter) types(in map[string]any) (types []string) {
	switch t := in["type"].(type) {
	case string:
		types = []string{t}
	case []any:
		for _, v := range t {
			if s, ok := v.(string); ok && s != "null" {
				types = append(types, s)
			}
		}
	}
	types = slices.DeleteFunc(types, func(t string) bool { return !slices.Contains(schemaTypes, t) || t == "null" })
	if len(types) == 0 {
		switch {
		case in["properties"] != nil:
			types = []string{"object"}
		case in["items"] != nil:
			types = []string{"array"}
		}
	}
	return types
}

// setType sets the type of a schema, and what belongs to it.
func (p *porter) setType(out, in map[string]any, kind string, depth int) {
	out["type"] = kind
	limit := func(keys ...string) {
		for _, k := range keys {
			delete(out, k)
		}
	}
	if kind != "string" {
		limit("minLength", "maxLength", "pattern", "format")
	}
	if kind != "integer" && kind != "number" {
		limit("minimum", "maximum")
	}
	if kind != "array" {
		limit("minItems", "maxItems")
	}
	switch kind {
	case "array":
		if items, ok := in["items"].(map[string]any); ok && in["prefixItems"] == nil {
			out["items"] = p.schema(items, depth+1)
		} else {
			out["items"] = anyValue()
		}
		_, old := in["items"].([]any)
		if old || in["prefixItems"] != nil {
			p.sayType(out, in)
		}
	case "object":
		properties, _ := in["properties"].(map[string]any)
		kept := map[string]any{}
		for _, name := range slices.Sorted(maps.Keys(properties)) {
			kept[name] = p.schema(properties[name], depth+1)
		}
		if len(kept) > 0 {
			out["properties"] = kept
		}
		var required []any
		names, _ := in["required"].([]any)
		for _, v := range names {
			if name, ok := v.(string); ok && kept[name] != nil {
				required = append(required, name)
			}
		}
		if len(required) > 0 {
			out["required"] = required
		}
		if in["additionalProperties"] == false {
			out["additionalProperties"] = false
		}
		p.sayType(out, in, "additionalProperties", "patternProperties")
	}
}

// sayType adds the type of a schema to its description where the portable form cannot say it: if one of the keywords
// has schemas, or always.
func (p *porter) sayType(out, in map[string]any, keywords ...string) {
	isSaid := len(keywords) > 0
	for _, key := range keywords {
		if object, ok := in[key].(map[string]any); ok && len(object) > 0 {
			isSaid = false
		}
	}
	if isSaid {
		return
	}
	whole := maps.Clone(in) // references in it begin at the root
	for _, key := range []string{"$defs", "definitions"} {
		if defs, ok := p.root[key]; ok {
			whole[key] = defs
		}
	}
	text, more := manifest.TypeOf(jsontext.Marshal(whole))
	if more > 0 {
		text += fmt.Sprintf(" (… %d more about fields: tier 3)", more)
	}
	say(out, "Type: "+text+".")
}

// say adds a sentence to the description of a schema.
func say(out map[string]any, text string) {
	description, _ := out["description"].(string)
	out["description"] = strings.TrimSpace(description + " " + manifest.CleanLine(text))
}

// reference returns the portable form of what a reference points to. One that contains itself becomes any value.
func (p *porter) reference(ref string, in map[string]any, depth int) map[string]any {
	target, ok := p.at(ref)
	if !ok || slices.Contains(p.active, ref) {
		target = map[string]any{}
		if ok {
			target = map[string]any{"description": "The same type again: " + ref[strings.LastIndexByte(ref, '/')+1:] + "."}
		}
	}
	if object, ok := target.(map[string]any); ok {
		object = maps.Clone(object)
		for _, key := range []string{"description", "default"} {
			if v, ok := in[key]; ok {
				object[key] = v
			}
		}
		target = object
	}
	p.active = append(p.active, ref)
	defer func() { p.active = p.active[:len(p.active)-1] }()
	return p.schema(target, depth)
}

// at returns what a reference within the schema points to.
func (p *porter) at(ref string) (any, bool) {
	pointer, local := strings.CutPrefix(ref, "#")
	if !local {
		return nil, false
	}
	var value any = p.root
	for _, token := range strings.Split(pointer, "/")[1:] {
		object, ok := value.(map[string]any)
		if !ok {
			return nil, false
		}
		token = strings.ReplaceAll(strings.ReplaceAll(token, "~1", "/"), "~0", "~")
		if value, ok = object[token]; !ok {
			return nil, false
		}
	}
	_, ok := value.(map[string]any)
	return value, ok && pointer != ""
}

// union sets the cases of a schema: one alone is the schema itself.
func (p *porter) union(out map[string]any, cases []any, depth int) map[string]any {
	var kept []any
	for _, c := range cases {
		if object, ok := c.(map[string]any); ok && object["type"] == "null" {
			continue
		}
		kept = append(kept, p.schema(c, depth+1))
	}
	switch len(kept) {
	case 0:
		maps.Copy(out, anyValue())
	case 1:
		only := kept[0].(map[string]any)
		for _, key := range []string{"description", "default"} {
			if v, ok := out[key]; ok {
				only[key] = v
			}
		}
		return only
	default:
		for key := range out {
			if key != "description" && key != "default" {
				delete(out, key)
			}
		}
		out["anyOf"] = kept
	}
	return out
}

// merged returns a schema with what the schemas of its allOf say, as far as they are about different things.
func (p *porter) merged(in map[string]any, all []any) map[string]any {
	out := maps.Clone(in)
	delete(out, "allOf")
	for _, part := range all {
		object, ok := part.(map[string]any)
		if ref, isRef := object["$ref"].(string); ok && isRef {
			if target, found := p.at(ref); found && !slices.Contains(p.active, ref) {
				object = target.(map[string]any)
			}
		}
		for key, v := range object {
			switch have := out[key].(type) {
			case nil:
				out[key] = v
			case map[string]any:
				if more, ok := v.(map[string]any); ok && key == "properties" {
					both := maps.Clone(more)
					maps.Copy(both, have)
					out[key] = both
				}
			case []any:
				if more, ok := v.([]any); ok && key == "required" {
					out[key] = append(slices.Clone(have), more...)
				}
			}
		}
	}
	delete(out, "$ref")
	delete(out, "allOf")
	return out
}

// setEnum sets the values of an enum with their type. Gemini accepts strings only, so other values are a text.
func setEnum(out map[string]any, values []any) {
	var words []any
	for _, v := range values {
		if s, ok := v.(string); ok && s != "" {
			words = append(words, s)
		}
	}
	if len(words) == len(values) {
		maps.DeleteFunc(out, func(key string, _ any) bool { return key != "description" && key != "default" })
		out["type"], out["enum"] = "string", words
		return
	}
	list := make([]string, 0, len(values))
	kinds := map[string]bool{}
	for _, v := range values {
		list = append(list, string(jsontext.Marshal(v)))
		kinds[jsonKind(v)] = true
	}
	delete(kinds, "null")
	say(out, "One of "+strings.Join(list, ", ")+".")
	if len(kinds) == 1 {
		for kind := range kinds {
			if kind != "object" && kind != "array" {
				out["type"] = kind
				return
			}
		}
	}
	maps.Copy(out, anyValue())
}

func jsonKind(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case string:
		return "string"
	case bool:
		return "boolean"
	case []any:
		return "array"
	case map[string]any:
		return "object"
	}
	return "number"
}

// anyValue returns a schema of any value with types everywhere. They have to end somewhere, so that arrays in arrays in
// arrays are said to hold numbers.
func anyValue() map[string]any {
	value := map[string]any{"type": "number"}
	for range 2 {
		cases := []any{}
		for _, kind := range []string{"string", "number", "boolean", "object"} {
			cases = append(cases, map[string]any{"type": kind})
		}
		value = map[string]any{"anyOf": append(cases, map[string]any{"type": "array", "items": value})}
	}
	return value
}
