package lint

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/parley-tools/parley/manifest/lint/vocabulary"
	"github.com/parley-tools/parley/manifest/spelling"
)

// Evidence says why calls of a tool failed. With it, even sentences that can be read in another way count as wrong.
type Evidence struct {
	Failed  map[string][]string // broken keywords, by parameter
	Refused map[string][]string // values that were refused, by parameter
	Names   map[string]string   // names of parameters and tools that do not exist, with what was meant; "" if unknown
}

// misleading returns the sentences of a text that explain why calls failed. The text is the description of a field,
// or with of nil a text of the tool.
func (n *nameChecker) misleading(text string, of *field, e *Evidence) (all []Contradiction) {
	for i, s := range sentences(text) {
		f, c := of, Contradiction{Said: strings.TrimSpace(s)}
		if f == nil {
			f, _ = n.subject(s)
		}
		if f != nil && f.misleads(s, of != nil && i == 0, e) {
			c.Has = fmt.Sprintf("calls failed at %q", f.name)
		}
		for _, name := range sortedKeys(e.Names) {
			word, meant := wordOf(name), e.Names[name]
			if !isShaped(name) { // such a name may be any word of a text
				word = wordOf("`" + name + "`")
			}
			if !word.MatchString(s) || n.knows(name) || n.ofNamedTool(name, s) {
				continue
			}
			if c.Has = "there is no " + name; meant != "" {
				c.Instead = strings.ReplaceAll(c.Said, name, meant)
			}
		}
		if c.Has != "" {
			all = append(all, c)
		}
	}
	return all
}

// wordOf returns an expression that matches a word, but not within a longer or a hyphenated word.
func wordOf(word string) *regexp.Regexp {
	return regexp.MustCompile(`(^|[^\w-])(?i:` + regexp.QuoteMeta(word) + `)($|[^\w-])`)
}

// misleads reports whether a sentence says about a field what made calls fail: a value that was refused, a number out
// of bounds, a form that values do not have, or that the field may be left out. The first sentence of a description
// says what the field is. Its words may look like a value or a form, so they do not count.
func (f *field) misleads(s string, isFirst bool, e *Evidence) bool {
	failed := e.Failed[f.name]
	pattern, _ := f.schema["pattern"].(string)
	_, values := f.enum()
	if !isFirst && slices.ContainsFunc(e.Refused[f.name], func(value string) bool {
		return len(value) > 1 && !values[strings.ToLower(value)] && !sameName(value, f.name) && wordOf(value).MatchString(s)
	}) {
		return true
	}
	if slices.Contains(failed, "required") && f.required {
		return said("needless").MatchString(strings.NewReplacer("`"+f.name+"`", "it", f.name, "it").Replace(s))
	}
	if slices.Contains(failed, "pattern") && !isFirst {
		// the word has the form of the pattern, which not every word has
		shows := func(word string) bool { return len(f.violations(word)) == 0 }
		words := strings.FieldsFunc(s, func(r rune) bool { return strings.ContainsRune(" ,;:()\"'`", r) })
		return !shows("text") && !strings.Contains(s, pattern) && !slices.ContainsFunc(words, func(word string) bool {
			return shows(strings.TrimRight(word, "."))
		}) && slices.ContainsFunc(said("misform").FindAllString(s), func(word string) bool {
			return !slices.Contains(spelling.Words(f.name), strings.ToLower(word))
		})
	}
	bounds, of := f.bounds()
	return len(failed) > 0 && slices.ContainsFunc(vocabulary.Numerals(s), func(n vocabulary.Numeral) bool {
		v, _, ok := f.in(&n, of)
		return ok && (bounds[0].value != nil && v < *bounds[0].value || bounds[1].value != nil && v > *bounds[1].value)
	})
}
