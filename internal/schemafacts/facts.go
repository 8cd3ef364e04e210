// Package schemafacts reads what a schema says about each property, independently of the renderers that tests compare
// with it. It also makes random schemas.
package schemafacts

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
)

// Fact is one statement of a schema about a property: a value of its enum, its format, its description, or only that
// it exists.
type Fact struct {
	Path  string // "where[].op"
	Name  string // "op"
	Kind  string // "name", "value", "format", "description" or "bound"
	Value string
}

// Of returns the facts of a schema, for paths of at most depth names.
func Of(schema json.RawMessage, depth int) []Fact {
	var root map[string]any
	if json.Unmarshal(schema, &root) != nil {
		return nil
	}
	r := &reader{root: root}
	r.parts("", root, depth)
	return r.facts
}

type reader struct {
	root  map[string]any
	facts []Fact
}

func (r *reader) add(path, kind, value string) {
	name := path[strings.LastIndexByte(path, '.')+1:]
	r.facts = append(r.facts, Fact{path, strings.TrimRight(name, "[]0123456789"), kind, value})
}

// resolve returns the schema that a schema refers to, with its allOf merged.
func (r *reader) resolve(v any) map[string]any {
	s, _ := v.(map[string]any)
	for range 8 {
		ref, ok := s["$ref"].(string)
		if !ok {
			break
		}
		var at any = r.root
		for _, step := range strings.Split(strings.TrimPrefix(ref, "#"), "/")[1:] {
			o, _ := at.(map[string]any)
			at = o[step]
		}
		target, _ := at.(map[string]any)
		if text, ok := s["description"]; ok && target != nil {
			target = maps.Clone(target)
			target["description"] = text
		}
		s = target
	}
	for _, part := range list(s["allOf"]) {
		more := r.resolve(part)
		if props, ok := more["properties"].(map[string]any); ok {
			own, _ := s["properties"].(map[string]any)
			both := maps.Clone(props)
			maps.Copy(both, own)
			s = maps.Clone(s)
			s["properties"] = both
		}
	}
	return s
}

func list(v any) []any { l, _ := v.([]any); return l }

// parts adds the facts about the parts of a value.
func (r *reader) parts(path string, v any, depth int) {
	s := r.resolve(v)
	if s == nil || len(strings.Split(path, ".")) > depth && path != "" {
		return
	}
	if c, ok := s["const"]; ok {
		s["enum"] = []any{c}
	}
	if values := list(s["enum"]); values != nil {
		for _, value := range values {
			raw, _ := json.Marshal(value)
			if path != "" {
				r.add(path, "value", string(raw))
			}
		}
		return
	}
	if format, ok := s["format"].(string); ok && path != "" {
		r.add(path, "format", format)
	}
	for _, key := range bounds {
		text, isText := s[key].(string)
		if raw, err := json.Marshal(s[key]); s[key] != nil && err == nil && path != "" && !isText {
			text = string(raw)
		}
		if text != "" && path != "" {
			r.add(path, "bound", text)
		}
	}
	props, _ := s["properties"].(map[string]any)
	if props == nil {
		for _, key := range []string{"anyOf", "oneOf"} {
			branches := list(s[key])
			objects := slices.DeleteFunc(slices.Clone(branches), func(v any) bool { return r.resolve(v)["type"] != "object" })
			for i, branch := range branches {
				if at := path; len(objects) > 1 {
					r.parts(fmt.Sprintf("%s(case %d)", at, i+1), branch, depth)
				} else {
					r.parts(at, branch, depth)
				}
			}
		}
	}
	for name, prop := range props {
		at := strings.TrimPrefix(path+"."+name, ".")
		if len(strings.Split(at, ".")) > depth {
			continue
		}
		r.add(at, "name", name)
		if text, _ := r.resolve(prop)["description"].(string); text != "" {
			r.add(at, "description", text)
		}
		r.parts(at, prop, depth)
	}
	for i, item := range list(s["prefixItems"]) {
		r.parts(fmt.Sprintf("%s[%d]", path, i), item, depth)
	}
	if items, ok := s["items"].(map[string]any); ok {
		r.parts(path+"[]", items, depth)
	}
	patterns, _ := s["patternProperties"].(map[string]any)
	for pattern, of := range patterns {
		if path != "" {
			r.add(path, "bound", pattern)
			r.parts(path+".*", of, depth)
		}
	}
	if names, ok := s["propertyNames"].(map[string]any); ok && path != "" {
		r.add(path, "bound", names["pattern"].(string))
	}
	if others, ok := s["additionalProperties"].(map[string]any); ok && path != "" {
		r.parts(path+".*", others, depth)
	}
}

// bounds are the keywords that bound values, as far as [Random] writes them.
var bounds = []string{"minimum", "maximum", "exclusiveMinimum", "multipleOf", "minLength", "maxLength", "pattern",
	"minItems", "maxItems", "minProperties"}

// Random returns a schema of parameters with objects, lists, maps, tuples, unions, references and long enums.
func Random(r *rand.Rand) json.RawMessage { return random(&generator{r: r}) }

// Bounded returns a schema like [Random], with additional bounds of values, counts and names. Few values are valid.
func Bounded(r *rand.Rand) json.RawMessage { return random(&generator{r: r, isBounded: true}) }

func random(g *generator) json.RawMessage {
	root := g.object(4)
	children := map[string]any{"type": "array", "items": map[string]any{"$ref": "#/$defs/tree"}}
	root["$defs"] = map[string]any{"kind": g.schema(0), "tree": map[string]any{
		"type": "object", "properties": map[string]any{"label": g.schema(0), "children": children},
	}}
	raw, _ := json.Marshal(root)
	return raw
}

type generator struct {
	r *rand.Rand
	n int // makes names unique, so that a text can be searched for them

	isBounded bool
}

func (g *generator) name() string { g.n++; return fmt.Sprintf("n%dx", g.n) }

func (g *generator) object(depth int) map[string]any {
	props, required := map[string]any{}, []string{}
	for range 1 + g.r.IntN(14) {
		name := g.name()
		props[name] = g.schema(depth - 1)
		if g.r.IntN(3) == 0 {
			required = append(required, name)
		}
	}
	slices.Sort(required)
	return map[string]any{"type": "object", "properties": props, "required": required}
}

func (g *generator) schema(depth int) map[string]any {
	s := map[string]any{}
	kind := g.r.IntN(13)
	if g.isBounded {
		kind = g.r.IntN(15)
	}
	if depth <= 0 {
		kind = g.r.IntN(4)
	}
	switch kind {
	case 0:
		s["type"] = []string{"string", "integer", "number", "boolean"}[g.r.IntN(4)]
	case 1:
		s["type"], s["format"] = "string", []string{"date", "uri", "email", "date-time"}[g.r.IntN(4)]
	case 2:
		var values []string
		for range 1 + g.r.IntN(20) {
			values = append(values, g.name())
		}
		s["type"], s["enum"] = "string", values
	case 3:
		s["type"], s["default"] = "integer", 5
	case 4, 5:
		s["type"], s["items"] = "array", g.object(depth)
	case 6:
		s["type"], s["additionalProperties"] = "object", g.schema(depth-1)
	case 7:
		s["type"], s["prefixItems"] = "array", []any{g.schema(0), g.schema(depth - 1)}
	case 8:
		s[[]string{"anyOf", "oneOf"}[g.r.IntN(2)]] = []any{g.schema(0), g.object(depth - 1), map[string]any{"type": "null"}}
	case 9:
		s["$ref"] = []string{"#/$defs/kind", "#/$defs/tree"}[g.r.IntN(2)]
	case 10:
		s = g.object(depth)
	case 13, 14:
		s["type"], s["additionalProperties"] = "object", g.schema(0)
		s["propertyNames"] = map[string]any{"pattern": "^" + g.name()}
		if kind == 14 {
			s = map[string]any{"type": "object", "minProperties": g.number(),
				"patternProperties": map[string]any{"^" + g.name(): g.schema(depth - 1)}}
		}
	case 11:
		s["type"], s["items"] = "array", map[string]any{"anyOf": []any{g.object(1), g.schema(0), g.object(1)}}
	case 12:
		s["oneOf"] = []any{g.object(1), g.object(1)}
	}
	g.bound(s)
	if g.r.IntN(2) == 0 {
		s["description"] = "About " + g.name() + "."
	}
	return s
}

// number returns a number that no other part of the schema has.
func (g *generator) number() int { g.n++; return 7000 + g.n }

// bound adds bounds to some schemas of numbers, texts and lists.
func (g *generator) bound(s map[string]any) {
	if !g.isBounded || g.r.IntN(2) == 0 || s["enum"] != nil || s["default"] != nil {
		return
	}
	switch s["type"] {
	case "integer", "number":
		s[[]string{"minimum", "exclusiveMinimum", "multipleOf"}[g.r.IntN(3)]], s["maximum"] = g.number(), g.number()
	case "string":
		if s["minLength"], s["pattern"] = g.number(), "^"+g.name(); g.r.IntN(2) == 0 {
			s["maxLength"] = g.number()
		}
	case "array":
		s["minItems"], s["maxItems"] = g.number(), g.number()
	}
}
