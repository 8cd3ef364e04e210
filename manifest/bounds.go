package manifest

import (
	"fmt"
	"strings"

	"github.com/parley-tools/parley/internal/lists"
	"github.com/parley-tools/parley/manifest/schema"
	"github.com/parley-tools/parley/manifest/spelling"
)

// boundKeywords are the keywords that bound values of a type, in the order in which their words are shown.
var boundKeywords = []struct{ kinds, key, words string }{
	{"integer number", "minimum", ">= %s"},
	{"integer number", "exclusiveMinimum", "> %s"},
	{"integer number", "maximum", "<= %s"},
	{"integer number", "exclusiveMaximum", "< %s"},
	{"integer number", "multipleOf", "a multiple of %s"},
	{"string", "pattern", "matching %s"},
}

// countKeywords are the keywords that bound how many parts the values of a type have.
var countKeywords = map[string][3]string{
	"string": {"minLength", "maxLength", "character"}, "array": {"minItems", "maxItems", "item"},
	"object": {"minProperties", "maxProperties", "property"},
}

// bounds returns what a schema says about the values of one type, apart from their parts, as " (>= 1, <= 9)". It
// returns "" unless the type is shown whole.
func (p *printer) bounds(t *node, kind string) string {
	if !p.whole {
		return ""
	}
	switch text := strings.Join(boundWords(t, kind, false), ", "); {
	case text == "":
		return ""
	case p.program:
		return p.print(" /* " + strings.ReplaceAll(text, "*/", "* /") + " */")
	default:
		return p.print(" (" + text + ")")
	}
}

// boundWords returns what a schema says about the values of one type, apart from their parts. For the portable form
// it leaves out what the keywords of that form say.
func boundWords(t *node, kind string, isPortable bool) (words []string) {
	keys := countKeywords[kind]
	if !isPortable || portableKeywords[keys[0]] == "" {
		least, most := memberOf[*int](t, keys[0]), memberOf[*int](t, keys[1])
		if text := spelling.Count(least, most, keys[2]); text != "" {
			words = append(words, text)
		}
	}
	for _, k := range boundKeywords {
		isSaid := isPortable && portableKeywords[k.key] != ""
		if v := t.at(k.key); v != nil && !isSaid && strings.Contains(k.kinds, kind) && !schema.IsTypeEnd(string(v.raw)) {
			text := string(shownJSON(v.raw))
			if k.key == "pattern" {
				text = CleanLine(t.text(k.key))
			}
			words = append(words, fmt.Sprintf(k.words, text))
		}
	}
	switch kind {
	case "array":
		if string(t.value("uniqueItems")) == "true" {
			words = append(words, "no duplicates")
		}
	case "object":
		names := t.at("propertyNames")
		of := boundWords(names, "string", false)
		if values := names.enum(); len(values) > 0 {
			of = []string{join(values, len(values))}
		}
		if len(of) > 0 {
			words = append(words, "names "+strings.Join(of, ", "))
		}
		for _, name := range t.at("dependentRequired").names() {
			needed := strings.Join(t.at("dependentRequired").strings(name), ", ")
			words = append(words, CleanLine(name+" needs "+needed))
		}
		words = append(words, alternatives(t)...)
	}
	return words
}

// alternatives says which properties an object needs one of, or several of: "needs id or name".
func alternatives(t *node) []string {
	needed := lists.Map(t.branches(), func(branch *node) string {
		return strings.Join(branch.strings("required"), " and ")
	})
	if !t.has("properties") || strings.Join(needed, "") == "" {
		return nil
	}
	needed = lists.Filter(needed, func(s string) bool { return s != "" })
	return []string{"needs " + CleanLine(strings.Join(needed, " or "))}
}
