package schemafacts

import (
	"encoding/json"
	"math/rand/v2"
	"slices"
	"strings"
)

// Value returns a random value that a schema accepts, without null. It reads the keywords that [Random] writes, and
// lists of types, constants, and patterns that are the beginning of a name, such as "^x-". The value may also have a
// property that no keyword mentions.
func Value(r *rand.Rand, schema json.RawMessage) any {
	g := &values{r: r}
	if json.Unmarshal(schema, &g.root) != nil {
		return nil
	}
	return g.value(g.root, 6)
}

type values struct {
	r    *rand.Rand
	root any
}

// value returns a value of a schema, with at most depth levels of optional parts.
func (g *values) value(schema any, depth int) any {
	s := (&reader{root: g.root.(map[string]any)}).resolve(schema)
	if c, ok := s["const"]; ok {
		return c
	}
	choices := slices.Concat(list(s["enum"]), list(s["anyOf"]), list(s["oneOf"]))
	choices = slices.DeleteFunc(choices, func(c any) bool {
		of, _ := c.(map[string]any)
		return c == nil || of["type"] == "null"
	})
	if len(choices) > 0 && s["properties"] == nil {
		chosen := choices[g.r.IntN(len(choices))]
		if s["enum"] != nil {
			return chosen
		}
		return g.value(chosen, depth)
	}
	kind, _ := s["type"].(string)
	if kinds := slices.DeleteFunc(list(s["type"]), func(k any) bool { return k == "null" }); len(kinds) > 0 {
		kind = kinds[g.r.IntN(len(kinds))].(string)
	}
	switch kind {
	case "object":
		return g.object(s, depth)
	case "array":
		return g.array(s, depth)
	case "string":
		return []any{"", "x", "2024-02-29", "2024-02-29T12:00:00Z"}[g.r.IntN(4)]
	case "integer":
		return float64(g.r.IntN(10))
	case "number":
		return float64(g.r.IntN(100)) / 8
	case "boolean":
		return g.r.IntN(2) == 0
	}
	return []any{1.5, "any", true, map[string]any{"any": 1.0}, []any{"any", 1.0}}[g.r.IntN(5)]
}

func (g *values) object(s map[string]any, depth int) any {
	object := map[string]any{}
	properties, _ := s["properties"].(map[string]any)
	for name, of := range properties {
		if slices.Contains(list(s["required"]), any(name)) || depth > 0 && g.r.IntN(2) == 0 {
			object[name] = g.value(of, depth-1)
		}
	}
	if depth <= 0 {
		return object
	}
	patterns, _ := s["patternProperties"].(map[string]any)
	for pattern, of := range patterns {
		object[strings.TrimPrefix(pattern, "^")+"1"] = g.value(of, depth-1)
	}
	if others := s["additionalProperties"]; others != false {
		object["other"] = g.value(others, depth-1)
	}
	return object
}

func (g *values) array(s map[string]any, depth int) any {
	array := []any{}
	for _, of := range list(s["prefixItems"]) {
		array = append(array, g.value(of, depth-1))
	}
	if depth > 0 && s["items"] != false {
		for range g.r.IntN(3) {
			array = append(array, g.value(s["items"], depth-1))
		}
	}
	return array
}
