package main

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/parley-tools/parley/manifest/jsontext"
	"github.com/parley-tools/parley/manifest/schema"
)

// mistake is a wrong call of a tool.
type mistake struct {
	class  string
	params json.RawMessage // not necessarily JSON
	meant  json.RawMessage // the call that was meant; nil if nothing in params says which value was meant
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
	// Properties are those of an object.
	Properties map[string]json.RawMessage
}

// synonyms are everyday names of parameters.
var synonyms = map[string]string{"text": "data", "data": "input", "pattern": "regex", "algorithm": "algo",
	"expression": "script", "filter": "query", "url": "link", "replacement": "substitute", "limit": "max",
	"template": "tpl", "ignore_case": "case_insensitive"}

// singleQuoted is a class of mistakes that would be ambiguous with quotes in texts.
const singleQuoted = "JSON in single quotes"

// noJSON is the class of mistakes that leave nothing to correct.
const noJSON = "words in the place of the JSON"

// mistakes derives one mistake of each class that applies to a tool from correct parameters. The listed schema lacks
// conditions, which the whole one has.
func mistakes(listed, whole, right json.RawMessage) ([]mistake, error) {
	var s struct {
		Properties map[string]property
		Required   []string
	}
	var params map[string]any
	if err := json.Unmarshal(listed, &s); err != nil {
		return nil, err
	}
	compiled, err := schema.CompileUntrusted(whole)
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(right, &params); err != nil {
		return nil, err
	}
	var made []mistake
	keep := func(class string, wrong, meant json.RawMessage) {
		if !slices.ContainsFunc(made, func(m mistake) bool { return m.class == class }) {
			made = append(made, mistake{class, wrong, meant})
		}
	}
	addMeaning := func(class string, wrong, meant any) {
		raw, err := json.Marshal(wrong)
		is, err2 := json.Marshal(meant)
		if err == nil && err2 == nil {
			keep(class, raw, is)
		}
	}
	// add adds a mistake that reveals the right parameters, lose one that does not.
	add := func(class string, wrong any) { addMeaning(class, wrong, params) }
	lose := func(class string, wrong any) {
		if raw, err := json.Marshal(wrong); err == nil {
			keep(class, raw, nil)
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

	lose("a parameter that nobody knows", with("zzUnheardOf", true))
	add("an option of the call among the parameters", with("timeout_seconds", 5))
	add("the parameters one level too deep", map[string]any{"params": params})
	add("the parameters as a list", []any{params})
	add("the parameters as text", string(right))
	if len(s.Required) > 0 {
		lose("no parameters at all", map[string]any{})
	}
	for _, name := range slices.Sorted(maps.Keys(params)) {
		p, value := s.Properties[name], params[name]
		without := maps.Clone(params)
		delete(without, name)
		if slices.Contains(s.Required, name) {
			lose("a required parameter missing", without)
		}
		if typo := transposed(name); typo != name && free(typo) {
			add("a parameter misspelt", renamed(name, typo))
		}
		if other := snake(name); other != name && free(other) {
			add("a parameter in another case", renamed(name, other))
		}
		if other := synonyms[name]; other != "" && free(other) {
			add("another word for a parameter", renamed(name, other))
		}
		if _, typed := p.Type.(string); !typed { // any value may be the right one
			continue
		}
		if !isValid(compiled, without) {
			lose("null for a value that is required", with(name, nil)) // perhaps as one of several
		} else {
			addMeaning("null for a value that is not", with(name, nil), without)
		}
		if _, isObject := value.(map[string]any); !isObject || len(p.Properties) > 0 {
			add("a value one level too deep", with(name, map[string]any{"content": value}))
		}
		if inner, ok := value.(map[string]any); ok && len(p.Properties) > 0 {
			shallow := maps.Clone(params)
			delete(shallow, name)
			known := len(inner) > 0
			for member, v := range inner {
				_, has := p.Properties[member]
				known = known && has && free(member)
				shallow[member] = v
			}
			if known {
				add("an object's members beside the parameters", shallow)
			}
		}
		for _, wrong := range p.wrong(value) {
			switch {
			case wrong.lost:
				lose(wrong.class, with(name, wrong.value))
			case wrong.meant != nil:
				addMeaning(wrong.class, with(name, wrong.value), with(name, wrong.meant))
			default:
				add(wrong.class, with(name, wrong.value))
			}
		}
	}
	text := string(right)
	for class, broken := range map[string]string{
		"JSON that is cut off":             strings.TrimSuffix(text, "}"),
		"JSON with a comma too many":       strings.TrimSuffix(text, "}") + ",}",
		singleQuoted:                       strings.ReplaceAll(text, `"`, `'`),
		"JSON with names that lack quotes": unquoted(text, slices.Sorted(maps.Keys(params))),
		noJSON:                             "please",
	} {
		if json.Valid([]byte(broken)) || class == singleQuoted && strings.Contains(text, `\"`) {
			continue
		}
		meant := right
		if class == noJSON {
			meant = nil
		}
		keep(class, json.RawMessage(broken), meant)
	}
	return made, nil
}

// isValid reports whether a schema accepts parameters.
func isValid(s *schema.Schema, params map[string]any) bool {
	raw, err := json.Marshal(params)
	if err != nil {
		return false
	}
	decoded, err := jsontext.Decode(raw, jsontext.Limits{})
	if err != nil {
		return false
	}
	violations, err := s.Validate(decoded)
	return err == nil && len(violations) == 0
}

// wrongValue is a value that a parameter does not accept.
type wrongValue struct {
	class string
	value any
	meant any  // nil: the right value
	lost  bool // nothing says which value was meant
}

func (p property) wrong(value any) (made []wrongValue) {
	add := func(class string, value any) { made = append(made, wrongValue{class: class, value: value}) }
	lose := func(class string, value any) { made = append(made, wrongValue{class: class, value: value, lost: true}) }
	switch v := value.(type) {
	case string:
		if len(p.Enum) == 0 && p.Pattern == "" && p.Format == "" {
			made = append(made, wrongValue{class: "a number for a text", value: 4711, meant: "4711"})
		} else {
			lose("a number for a choice", 42)
		}
		add("a list for a text", []any{v})
	case float64:
		raw, _ := json.Marshal(v)
		add("text for a number", string(raw))
		lose("words for a number", "many")
		if p.Type == "integer" {
			lose("a fraction for a whole number", v+0.5)
		}
	case bool:
		add("text for a boolean", map[bool]string{true: "true", false: "false"}[v])
		add("words for a boolean", map[bool]string{true: "yes", false: "no"}[v])
	case []any:
		if len(v) == 1 {
			add("one value for a list", v[0])
		}
		lose("a truth value for a list", true)
	case map[string]any:
		raw, _ := json.Marshal(v)
		add("text for an object", string(raw))
		add("a list for an object", []any{v})
	}
	if len(p.Enum) > 0 {
		if v, ok := value.(string); ok {
			if typo := transposed(v); typo != v && !slices.Contains(p.Enum, any(typo)) {
				add("a choice misspelt", typo)
			}
			if upper := strings.ToUpper(v); upper != v && !slices.Contains(p.Enum, any(upper)) {
				add("a choice in another case", upper)
			}
		}
		lose("a choice that there is not", "zzUnheardOf")
	}
	if p.Minimum != nil {
		lose("a number out of range", *p.Minimum-1)
	}
	if p.Maximum != nil {
		lose("a number out of range", *p.Maximum+1)
	}
	if p.Pattern != "" || p.Format != "" {
		lose("a text of another form", "\u2603 -")
	}
	if p.Least != nil && *p.Least > 0 {
		lose("an empty text", "")
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
