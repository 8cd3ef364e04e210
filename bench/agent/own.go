package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// valueSchema is a schema, as far as other values of it can be made.
type valueSchema struct {
	Ref        string `json:"$ref"`
	Type       any
	Enum       []any
	Const      any
	Pattern    string
	Format     string
	Minimum    *float64
	Maximum    *float64
	Length     *int `json:"maxLength"`
	Properties map[string]valueSchema
	Items      *valueSchema
	Additional json.RawMessage        `json:"additionalProperties"`
	Defs       map[string]valueSchema `json:"definitions"`
}

// own returns parameters of the form of an example with other values, so that a value that comes from an example can be
// distinguished from one of the agent. A value to which the schema leaves no choice is kept.
func own(schema, example json.RawMessage) (json.RawMessage, error) {
	var root valueSchema
	var params map[string]any
	if err := json.Unmarshal(schema, &root); err != nil {
		return nil, err
	}
	if err := json.Unmarshal(example, &params); err != nil {
		return nil, err
	}
	return json.Marshal(root.other(params, &root))
}

// given returns a value in the place of a reference.
func (s *valueSchema) given() any {
	switch s.Type {
	case "integer", "number":
		return 7.0
	case "object":
		return map[string]any{}
	case "array":
		return []any{}
	}
	return "own"
}

// other returns another value of a schema than the given one.
func (s *valueSchema) other(value any, root *valueSchema) any {
	for range 8 {
		name, ok := strings.CutPrefix(s.Ref, "#/definitions/")
		target, known := root.Defs[name]
		if !ok || !known {
			break
		}
		s = &target
	}
	if len(s.Enum) > 0 {
		for _, choice := range s.Enum {
			if fmt.Sprint(choice) != fmt.Sprint(value) && fmt.Sprintf("%T", choice) == fmt.Sprintf("%T", value) {
				return choice
			}
		}
		return value
	}
	switch v := value.(type) {
	case string:
		if strings.HasPrefix(v, "${") { // a part of an earlier call's result
			return s.given()
		}
		if s.Type != "string" || s.Pattern != "" || s.Format != "" || s.Const != nil ||
			s.Length != nil && *s.Length < len(v)+4 {
			return v
		}
		return v + " own"
	case float64:
		switch {
		case s.Maximum == nil || v+1 <= *s.Maximum:
			return v + 1
		case s.Minimum == nil || v-1 >= *s.Minimum:
			return v - 1
		}
	case bool:
		return !v
	case []any:
		list := slices.Clone(v)
		for i := range list {
			if s.Items != nil {
				list[i] = s.Items.other(list[i], root)
			}
		}
		return list
	case map[string]any:
		object := map[string]any{}
		for name, inner := range v {
			member, known := s.Properties[name]
			if !known {
				object[name] = inner
				continue
			}
			object[name] = member.other(inner, root)
		}
		return object
	}
	return value
}

// leaves returns the texts of all plain values in a JSON document, and of those in texts of JSON in it.
func leaves(raw json.RawMessage) (all []string) {
	var value any
	if json.Unmarshal(raw, &value) != nil {
		return []string{string(raw)}
	}
	var walk func(v any)
	walk = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			for _, inner := range v {
				walk(inner)
			}
		case []any:
			for _, inner := range v {
				walk(inner)
			}
		case string:
			all = append(all, v)
			var inner any
			if strings.HasPrefix(v, "{") || strings.HasPrefix(v, "[") {
				if json.Unmarshal([]byte(v), &inner) == nil {
					walk(inner)
				}
			}
		default:
			all = append(all, fmt.Sprint(v))
		}
	}
	walk(value)
	return all
}

// invented returns the values of a suggested call that neither the wrong call nor the one that was meant has, and to
// which the schema leaves a choice. Milliseconds may stand for seconds that were given.
func invented(suggested json.RawMessage, m mistake, only []string) (values []string) {
	given := append(leaves(m.params), only...)
	if m.meant != nil {
		given = append(given, leaves(m.meant)...)
	}
	for _, leaf := range leaves(suggested) {
		hole := strings.HasPrefix(leaf, "<") && strings.HasSuffix(leaf, ">")
		seconds, isLong := strings.CutSuffix(leaf, "000")
		converted := isLong && strings.Contains(string(m.params), `_seconds":`+seconds)
		if !hole && !converted && !slices.Contains(given, leaf) && !strings.Contains(string(m.params), leaf) {
			values = append(values, leaf)
		}
	}
	return values
}

// onlyValues returns the values to which a schema leaves no choice.
func onlyValues(schema json.RawMessage) (values []string) {
	var walk func(v any)
	walk = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			if only, ok := v["const"]; ok {
				values = append(values, fmt.Sprint(only))
			}
			if list, ok := v["enum"].([]any); ok && len(list) == 1 {
				values = append(values, fmt.Sprint(list[0]))
			}
			for _, inner := range v {
				walk(inner)
			}
		case []any:
			for _, inner := range v {
				walk(inner)
			}
		}
	}
	var root any
	if json.Unmarshal(schema, &root) == nil {
		walk(root)
	}
	return values
}
