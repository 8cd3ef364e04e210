package main

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
)

// mistake is a wrong call of a tool.
type mistake struct {
	class  string
	params json.RawMessage // not necessarily JSON
}

// property is the part of a parameter's schema that mistakes are made against.
type property struct {
	Type    any
	Enum    []any
	Minimum *float64
	Maximum *float64
	Pattern string
	Format  string
	Least   *int `json:"minLength"`
}

// noJSON is the class of mistakes that leave nothing to correct.
const noJSON = "words in the place of the JSON"

// mistakes derives one mistake of each class that applies to a tool from correct parameters.
func mistakes(schema, right json.RawMessage) ([]mistake, error) {
	var s struct {
		Properties map[string]property
		Required   []string
	}
	var params map[string]any
	if err := json.Unmarshal(schema, &s); err != nil {
		return nil, err
	}
	if err := json.Unmarshal(right, &params); err != nil {
		return nil, err
	}
	var made []mistake
	keep := func(class string, wrong json.RawMessage) {
		if !slices.ContainsFunc(made, func(m mistake) bool { return m.class == class }) {
			made = append(made, mistake{class, wrong})
		}
	}
	add := func(class string, wrong any) {
		if raw, err := json.Marshal(wrong); err == nil {
			keep(class, raw)
		}
	}
	with := func(name string, value any) map[string]any {
		changed := maps.Clone(params)
		changed[name] = value
		return changed
	}
	renamed := func(name, other string) map[string]any {
		changed := with(other, params[name])
		delete(changed, name)
		return changed
	}
	free := func(name string) bool {
		_, known := s.Properties[name]
		return !known
	}

	add("a parameter that nobody knows", with("zzUnheardOf", true))
	add("an option of the call among the parameters", with("timeout_seconds", 5))
	add("the parameters one level too deep", map[string]any{"params": params})
	add("the parameters as a list", []any{params})
	add("the parameters as text", string(right))
	if len(s.Required) > 0 {
		add("no parameters at all", map[string]any{})
	}
	for _, name := range slices.Sorted(maps.Keys(params)) {
		p, value := s.Properties[name], params[name]
		if slices.Contains(s.Required, name) {
			without := maps.Clone(params)
			delete(without, name)
			add("a required parameter missing", without)
		}
		if typo := transposed(name); typo != name && free(typo) {
			add("a parameter misspelt", renamed(name, typo))
		}
		if other := snake(name); other != name && free(other) {
			add("a parameter in another case", renamed(name, other))
		}
		add("null for a value", with(name, nil))
		add("a value one level too deep", with(name, map[string]any{"value": value}))
		for _, wrong := range p.wrong(value) {
			add(wrong.class, with(name, wrong.value))
		}
	}
	text := string(right)
	for class, broken := range map[string]string{
		"JSON that is cut off":             strings.TrimSuffix(text, "}"),
		"JSON with a comma too many":       strings.TrimSuffix(text, "}") + ",}",
		"JSON in single quotes":            strings.ReplaceAll(text, `"`, `'`),
		"JSON with names that lack quotes": unquoted(text, slices.Sorted(maps.Keys(params))),
		noJSON:                             "please",
	} {
		if !json.Valid([]byte(broken)) {
			keep(class, json.RawMessage(broken))
		}
	}
	return made, nil
}

// wrongValue is a value that a parameter does not accept.
type wrongValue struct {
	class string
	value any
}

func (p property) wrong(value any) (made []wrongValue) {
	add := func(class string, value any) { made = append(made, wrongValue{class, value}) }
	switch v := value.(type) {
	case string:
		add("a number for a text", 42)
		add("a list for a text", []any{v})
	case float64:
		raw, _ := json.Marshal(v)
		add("text for a number", string(raw))
		add("words for a number", "many")
		if p.Type == "integer" {
			add("a fraction for a whole number", v+0.5)
		}
	case bool:
		add("text for a boolean", map[bool]string{true: "true", false: "false"}[v])
		add("words for a boolean", "yes")
	case []any:
		if len(v) > 0 {
			add("one value for a list", v[0])
		}
		add("a number for a list", 42)
	case map[string]any:
		raw, _ := json.Marshal(v)
		add("text for an object", string(raw))
		add("a list for an object", []any{v})
	}
	if len(p.Enum) > 0 {
		if v, ok := value.(string); ok {
			add("a choice misspelt", transposed(v))
			if upper := strings.ToUpper(v); upper != v {
				add("a choice in another case", upper)
			}
		}
		add("a choice that there is not", "zzUnheardOf")
	}
	if p.Minimum != nil {
		add("a number out of range", *p.Minimum-1)
	}
	if p.Maximum != nil {
		add("a number out of range", *p.Maximum+1)
	}
	if p.Pattern != "" || p.Format != "" {
		add("a text of another form", "\u2603 -")
	}
	if p.Least != nil && *p.Least > 0 {
		add("an empty text", "")
	}
	return made
}

// transposed swaps two letters in the middle of a word.
func transposed(word string) string {
	letters := []rune(word)
	if i := len(letters) / 2; i > 0 {
		letters[i-1], letters[i] = letters[i], letters[i-1]
	}
	return string(letters)
}

// snake converts a name to snake case.
func snake(name string) string {
	var b strings.Builder
	for _, r := range name {
		if r >= 'A' && r <= 'Z' {
			b.WriteByte('_')
		}
		b.WriteRune(r)
	}
	return strings.ToLower(b.String())
}

// unquoted removes the quotes of the names of an object, as in JavaScript.
func unquoted(text string, names []string) string {
	for _, name := range names {
		text = strings.ReplaceAll(text, `"`+name+`":`, name+":")
	}
	return text
}
