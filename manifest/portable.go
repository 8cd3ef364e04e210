package manifest

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/parley-tools/parley/internal/lists"
	"github.com/parley-tools/parley/manifest/jsontext"
	"github.com/parley-tools/parley/manifest/schema"
)

// Portable returns a schema of parameters in the subset of JSON Schema that every model API accepts. The APIs of
// OpenAI, Gemini, Vertex and Anthropic each refuse a whole request because of one unknown keyword. References are
// replaced by their targets, each value has a type, an enum has strings, and conditions are left out. It accepts at
// least what the original accepts: the host validates calls against the whole schema.
func Portable(params json.RawMessage) json.RawMessage {
	out := map[string]any{}
	if _, err := jsontext.Decode(params, jsontext.Limits{}); err == nil {
		c := &schemaConverter{root: readNode(params), active: map[*node]bool{}, nodes: maxPortableNodes, left: maxListing}
		out = c.schema(c.root.object(), 0)
	}
	if out["type"] != "object" { // MCP and all APIs want an object of parameters
		out = map[string]any{"type": "object"}
	}
	return CleanJSON(jsontext.Marshal(out))
}

const (
	// maxPortableNodes bounds the schemas in a result: references to references can multiply.
	maxPortableNodes = 1000
	// maxPortableDepth bounds the nesting, which model APIs limit, too.
	maxPortableDepth = 10
)

// portableKeywords are copied unchanged, if they belong to the type.
var portableKeywords = map[string]string{
	"default": "", "minimum": "integer number", "maximum": "integer number", "minItems": "array", "maxItems": "array",
	"minLength": "string", "maxLength": "string", "pattern": "string",
}

// schemaTypes are the types of JSON Schema without null. The host accepts null wherever a parameter may be left out.
var schemaTypes = []string{"array", "boolean", "integer", "number", "object", "string"}

// schemaConverter makes the portable form of one schema.
type schemaConverter struct {
	root   *node
	active map[*node]bool // the schemas that contain this one
	nodes  int            // number of schemas that the result may still get
	left   int            // bytes left for types in descriptions
}

// schema returns the portable form of a schema.
func (c *schemaConverter) schema(n *node, depth int) map[string]any {
	if c.nodes--; !n.isObject() || c.nodes < 0 {
		return anyValue()
	}
	t, ref := n.resolve(c.root)
	out := map[string]any{}
	say(out, cmp.Or(n.text("description"), t.text("description")))
	if depth > maxPortableDepth {
		value := anyValue()
		if isAny := t.has("anyOf") && string(t.value("anyOf")) == string(jsontext.Marshal(value["anyOf"])); !isAny {
			c.sayType(out, t)
		}
		maps.Copy(out, value)
		return out
	}
	if c.active[t] {
		say(out, "The same type again: "+cmp.Or(ref, "#")+".")
		t = nil
	}
	c.active[t] = t != nil
	defer delete(c.active, t)
	if v := cmp.Or(n.at("default"), t.at("default")); v != nil {
		out["default"] = v.raw
	}
	format := cmp.Or(t.text("format"), t.text("contentEncoding"))
	if format != "" && format != "date-time" {
		say(out, "Format: "+format+".")
	}
	if values := t.enum(); len(values) > 0 {
		setEnum(out, values)
		return out
	}
	if slices.Contains(strings.Split(t.typeName(c.root), "|"), "null") {
		say(out, "Or null.")
	}
	var cases []map[string]any
	if branches := t.branches(); len(branches) > 0 && !t.has("properties") {
		for _, branch := range branches {
			if of, _ := branch.resolve(c.root); of.text("type") != "null" {
				cases = append(cases, c.schema(branch, depth+1))
			}
		}
	} else {
		kinds := strings.Split(t.typeName(c.root), "|")
		kinds = slices.DeleteFunc(kinds, func(kind string) bool { return !slices.Contains(schemaTypes, kind) })
		if len(kinds) == 1 {
			c.setType(out, t, kinds[0], depth)
			return out
		}
		for _, kind := range kinds {
			one := map[string]any{}
			c.setType(one, t, kind, depth+1)
			cases = append(cases, one)
		}
	}
	switch len(cases) {
	case 0:
		maps.Copy(out, anyValue())
	case 1: // is the schema itself
		if text, _ := cases[0]["description"].(string); text != out["description"] {
			say(out, text)
		}
		maps.Copy(cases[0], out)
		return cases[0]
	default:
		out["anyOf"] = cases
	}
	return out
}

// setType adds the keywords for the values of one type.
func (c *schemaConverter) setType(out map[string]any, t *node, kind string, depth int) {
	out["type"] = kind
	for key, of := range portableKeywords {
		v := t.at(key)
		isEnd := of == "integer number" && v != nil && schema.IsTypeEnd(string(v.raw))
		if v != nil && slices.Contains(strings.Fields(of), kind) && !isEnd {
			out[key] = v.raw
		}
	}
	isSaid := kind == "array" && len(t.tuple()) > 0 || kind == "object" && len(t.others()) > 0
	if words := boundWords(t, kind, true); len(words) > 0 && !isSaid {
		say(out, "Bounds: "+strings.Join(words, ", ")+".")
	}
	switch kind {
	case "string":
		if t.text("format") == "date-time" {
			out["format"] = "date-time"
		}
	case "array":
		out["items"] = anyValue()
		if len(t.tuple()) > 0 {
			c.sayType(out, t)
		} else if items := t.items(); items != nil {
			out["items"] = c.schema(items, depth+1)
		}
	case "object":
		properties, required := map[string]any{}, []string{}
		for _, name := range t.ordered() {
			properties[name] = c.schema(t.at("properties").at(name), depth+1)
			if t.required()[name] {
				required = append(required, name)
			}
		}
		if len(properties) > 0 {
			out["properties"] = properties
		}
		if len(required) > 0 {
			out["required"] = required
		}
		if more := t.at("additionalProperties"); more != nil && string(more.raw) == "false" && len(t.others()) == 0 {
			out["additionalProperties"] = false
		}
		if len(t.others()) > 0 {
			c.sayType(out, t)
		}
	}
}

// sayType adds a type and the descriptions of its fields to a description, where the portable form cannot express the
// type.
func (c *schemaConverter) sayType(out map[string]any, t *node) {
	text, _ := fit(t, c.root, maxListing, false)
	text = "Type: " + text + "."
	w := &walker{root: c.root, seen: map[*node]string{}, left: maxListing}
	for _, f := range w.fields("", t, true) {
		if f.Description != "" {
			text += " " + strings.TrimPrefix(f.Name, ".") + ": " + strings.TrimSuffix(f.Description, ".") + "."
		}
	}
	if c.left -= len(text); c.left < 0 {
		text, _ = fit(t, c.root, paramBytes, false)
		text = "Type: " + text + "."
	}
	say(out, text)
}

// say adds a sentence to the description of a schema.
func say(out map[string]any, text string) {
	description, _ := out["description"].(string)
	if text = strings.TrimSpace(description + " " + CleanLine(text)); text != "" {
		out["description"] = text
	}
}

// setEnum sets the values of an enum with their type. Gemini accepts only strings, so other values are written as
// text.
func setEnum(out map[string]any, values []json.RawMessage) {
	var kinds, words []string
	isPlain := true
	for _, v := range values {
		kind := kindOf(v)
		isPlain = isPlain && kind == "string" && string(v) != `""`
		words = append(words, string(v))
		if kind != "null" && !slices.Contains(kinds, kind) {
			kinds = append(kinds, kind)
		}
	}
	if isPlain {
		out["type"], out["enum"] = "string", values
		return
	}
	if slices.Contains(kinds, "number") {
		kinds = lists.Filter(kinds, func(kind string) bool { return kind != "integer" })
	}
	say(out, "One of "+strings.Join(words, ", ")+".")
	if len(kinds) == 1 && kinds[0] != "object" && kinds[0] != "array" {
		out["type"] = kinds[0]
		return
	}
	maps.Copy(out, anyValue())
}

// anyValue returns a schema of any value, with a type at every level. The nesting must end somewhere, so arrays at
// the third level are declared to hold numbers.
func anyValue() map[string]any {
	value := map[string]any{"type": "number"}
	for range 2 {
		cases := lists.Map([]string{"string", "number", "boolean", "object"}, func(kind string) any {
			return map[string]any{"type": kind}
		})
		value = map[string]any{"anyOf": append(cases, map[string]any{"type": "array", "items": value})}
	}
	return value
}
