package schema

import (
	"cmp"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/parley-tools/parley/internal/lazy"
	"github.com/parley-tools/parley/internal/lists"
	"github.com/parley-tools/parley/manifest/jsontext"
	"github.com/parley-tools/parley/manifest/spelling"
)

// offered returns a value of the type that a schema requires, for a conversion that is not safe enough for
// [Schema.Admit]: a number or a boolean as text; "yes", "no", 1 and the like as booleans; a text that is almost JSON
// as its value; a duration such as 20s if the schema names its unit; a list as a text if the schema says how the
// parts are joined; and a list of names and values as an object, or the reverse.
func (s *Schema) offered(n *node, v any) (any, bool) {
	want, single := wanted(n.conjuncts())
	if !single {
		return nil, false
	}
	var meant any
	switch v := v.(type) {
	case json.Number:
		switch {
		case want == kindString:
			meant = string(v)
		case want == kindBoolean && (v == "0" || v == "1"):
			meant = v == "1"
		}
	case bool:
		if want == kindString {
			meant = strconv.FormatBool(v)
		}
	case string:
		word := strings.ToLower(strings.TrimSpace(v))
		switch {
		case want == kindBoolean && slices.Contains([]string{"yes", "y", "on", "true", "1"}, word):
			meant = true
		case want == kindBoolean && slices.Contains([]string{"no", "n", "off", "false", "0"}, word):
			meant = false
		case want&(kindNumber|kindInteger) != 0 && word != v && jsontext.ValidNumber(word):
			meant = json.Number(word)
		case want&(kindNumber|kindInteger) != 0:
			meant = inUnit(n, word)
		case want == kindObject:
			if meant, _ = repaired(v, '{'); meant == nil {
				lines := strings.Split(strings.TrimSpace(v), "\n")
				meant = jsontext.Members(lists.Map(lines, func(line string) any { return line }))
			}
		case want == kindArray:
			meant, _ = repaired(v, '[')
		}
	case []any:
		switch want {
		case kindString:
			meant = joined(n, v)
		case kindObject:
			meant = jsontext.Members(v)
		}
	case map[string]any:
		if want == kindArray {
			meant = pairsOf(itemSchema(n.conjuncts(), 0), v)
		}
	}
	if meant == nil || !s.boundedWalker().check(n, meant, nil, nil, nil) {
		return nil, false
	}
	return meant, true
}

// lengths maps the words for units of lengths and angles to a canonical unit.
var lengths = map[string]string{"in": "in", "inch": "in", "inches": "in", "px": "px", "pixel": "px", "pixels": "px",
	"dip": "px", "deg": "deg", "degree": "deg", "degrees": "deg"}

// length matches a number with a unit.
var length = lazy.Pattern(`^(-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?) ?([a-z]+)$`)

// inUnit converts a length or a duration to the unit of a schema. It returns nil if either has no unit or if they
// differ in kind.
func inUnit(n *node, text string) any {
	unit := ""
	for _, c := range n.conjuncts() {
		for _, name := range c.aliases {
			unit = cmp.Or(unit, unitOf(name))
		}
	}
	for _, word := range aboutWords(n) {
		unit = cmp.Or(unit, units[word])
	}
	if number, word, ok := strings.Cut(text, " "); ok && units[word] != "" {
		text = number + strings.TrimSuffix(units[word], "in")
	}
	if found := length().FindStringSubmatch(text); found != nil && lengths[found[2]] != "" {
		for _, word := range aboutWords(n) {
			if lengths[word] == lengths[found[2]] {
				return json.Number(found[1])
			}
		}
	}
	d, err := time.ParseDuration(text)
	one, known := map[string]time.Duration{"ms": time.Millisecond, "s": time.Second, "min": time.Minute}[unit]
	if err != nil || !known || d%one != 0 {
		return nil
	}
	return json.Number(strconv.FormatInt(int64(d/one), 10))
}

// separators are the separators of lists in a text, by a word in the description of its schema.
var separators = map[string]string{"comma": ",", "commas": ",", "space": " ", "spaces": " ", "line": "\n",
	"lines": "\n", "newline": "\n", "newlines": "\n", "program": "\n", "script": "\n", "code": "\n",
	"expression": "\n", "javascript": "\n", "yaml": "\n", "markdown": "\n", "combination": "+"}

// aboutWords returns the words of the descriptions of a schema.
func aboutWords(n *node) (all []string) {
	for _, c := range n.conjuncts() {
		all = append(all, spelling.Words(c.about)...)
	}
	return all
}

// holdsJSON reports whether a word in a description says that a text may be JSON.
func holdsJSON(word string) bool { return word == "json" || word == "body" }

// joined joins texts to one text, or returns nil if the schema does not say how.
func joined(n *node, list []any) any {
	parts := jsontext.Texts(list)
	for _, word := range aboutWords(n) {
		if separator := separators[word]; separator != "" && len(parts) == len(list) && len(parts) > 1 {
			return strings.Join(parts, separator)
		}
	}
	return nil
}

// pairsOf converts an object to a list of names and values, or returns nil if the schema of an item has no properties
// for them.
func pairsOf(item *node, object map[string]any) any {
	if item == nil || object["value"] != nil {
		return nil
	}
	for _, key := range []string{"name", "key"} {
		if all := item.conjuncts(); declares(all, key) && declares(all, "value") {
			return lists.Map(sortedKeys(object), func(name string) any {
				return map[string]any{key: name, "value": object[name]}
			})
		}
	}
	return nil
}

// declares reports whether one of the schemas has a property of that name.
func declares(all []*node, name string) bool {
	return slices.ContainsFunc(all, func(n *node) bool { return n.props[name] != nil })
}
