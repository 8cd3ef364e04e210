package lint

import (
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/parley-tools/parley/internal/lazy"
	"github.com/parley-tools/parley/manifest"
	"github.com/parley-tools/parley/manifest/jsontext"
)

// textKind is what a text of a manifest is for.
type textKind int

const (
	prose  textKind = iota // sentences that people and agents read
	phrase                 // aliases, keywords and tasks
	data                   // values in examples, enums and defaults; names, patterns and whatever else is shown
)

// text is one text of a manifest.
type text struct {
	pointer string
	key     string // the member that holds it or the list that it is in, such as brief or when_not
	kind    textKind
	raw     string // as the manifest has it
	plain   string // on one line, cleaned, with letters of any style as ASCII letters; for matching
	exempt  bool   // it may refer to other tools: when_not, related, deprecated, needs
}

// proseKeys and phraseKeys are the members whose strings are texts, outside and inside schemas.
var (
	proseKeys = []string{"brief", "standard", "full", "description", "title", "when", "when_not", "why", "meaning",
		"suggestion", "say", "message", "limitations", "$comment"}
	phraseKeys = []string{"aliases", "keywords", "tasks", "x-aliases"}
	dataKeys   = []string{"params", "result", "enum", "const", "default", "examples"}
	exemptKeys = []string{"when_not", "related", "deprecated", "needs"}
)

// collectTexts returns the texts of a manifest in the order of their pointers.
func collectTexts(m *manifest.Manifest) []text {
	raw, err := json.Marshal(m)
	if err != nil {
		return nil // a schema is not JSON; Parse refuses that
	}
	doc, err := jsontext.Decode(raw, jsontext.Limits{})
	if err != nil {
		return nil
	}
	c := &collector{}
	c.walk(doc, nil, "", prose, false)
	return c.texts
}

type collector struct{ texts []text }

// walk visits a value. key is the nearest name of a member; kind is data below an example's values.
func (c *collector) walk(v any, tokens []string, key string, kind textKind, exempt bool) {
	switch v := v.(type) {
	case map[string]any:
		for _, name := range sortedKeys(v) {
			below, free := kind, exempt || slices.Contains(exemptKeys, name)
			_, isText := v[name].(string)
			switch {
			case kind == data:
			case slices.Contains(dataKeys, name) && !isSchemaOrList(tokens):
				below = data
			case isText && !slices.Contains(proseKeys, name):
				below = data // names, versions, types, patterns
			}
			if len(tokens) > 0 && tokens[len(tokens)-1] == "properties" {
				c.add(append(slices.Clone(tokens), name), key, data, name, free)
			}
			c.walk(v[name], append(slices.Clone(tokens), name), name, below, free)
		}
	case []any:
		if kind == prose && slices.Contains(phraseKeys, key) {
			kind = phrase
		}
		for i, item := range v {
			below := kind
			if _, isText := item.(string); isText && kind == prose && !slices.Contains(proseKeys, key) {
				below = data
			}
			c.walk(item, append(slices.Clone(tokens), strconv.Itoa(i)), key, below, exempt)
		}
	case string:
		c.add(tokens, key, kind, v, exempt)
	}
}

func (c *collector) add(tokens []string, key string, kind textKind, s string, exempt bool) {
	plain := foldLetters(visible(s))
	c.texts = append(c.texts, text{jsontext.Pointer(tokens), key, kind, s, plain, exempt})
}

// isSchemaOrList reports whether a member named like data is the schema of a tool, its list of examples, or a property.
func isSchemaOrList(tokens []string) bool {
	if len(tokens) == 2 && tokens[0] == "tools" {
		return true // /tools/0/params and /tools/0/examples
	}
	parent := ""
	if len(tokens) > 0 {
		parent = tokens[len(tokens)-1]
	}
	return parent == "properties" || parent == "$defs" || parent == "definitions"
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// sameName reports whether two names are equal, ignoring case.
func sameName(a, b string) bool { return strings.EqualFold(a, b) }

// bareName is the name of a tool within its group: the part after the last dot.
func bareName(name string) string { return name[strings.LastIndexByte(name, '.')+1:] }

// stem cuts the endings of English words roughly, so that forms of a word compare equal.
func stem(word string) string {
	for _, s := range []struct{ suffix, with string }{
		{"ies", "y"}, {"sses", "ss"}, {"ches", "ch"}, {"shes", "sh"}, {"xes", "x"}, {"ing", ""}, {"ed", ""}, {"es", ""},
		{"s", ""}, {"e", ""},
	} {
		if cut, ok := strings.CutSuffix(word, s.suffix); ok && len(cut) >= 3 && !strings.HasSuffix(word, "ss") {
			return cut + s.with
		}
	}
	return word
}

func stems(list []string) []string {
	out := make([]string, len(list))
	for i, w := range list {
		out[i] = stem(w)
	}
	return out
}

// stopwords say nothing about what a tool does.
var stopwords = wordSet(`a an and any all are as at be been by can do does for from given has have if in into is it its of
	on one or per some such that the their them then there these this those to tool function with you your will`)

// wordSet returns a set of words that is made on first use.
func wordSet(list string) func() map[string]bool {
	return sync.OnceValue(func() map[string]bool {
		set := map[string]bool{}
		for _, w := range strings.Fields(list) {
			set[w] = true
		}
		return set
	})
}

// patternList is a list of expressions that ignore case. Each is tried only on texts that contain one of its triggers,
// because expressions with bounded repetitions are slow.
type patternList func() []triggeredPattern

type triggeredPattern struct {
	triggers []string
	matches  func() *regexp.Regexp
}

// patterns reads a list: a line has triggers, separated by commas, then "=>" and an expression.
func patterns(lines string) patternList {
	return sync.OnceValue(func() []triggeredPattern {
		var list []triggeredPattern
		for _, line := range strings.Split(lines, "\n") {
			if triggers, expr, ok := strings.Cut(strings.TrimSpace(line), " => "); ok {
				list = append(list, triggeredPattern{strings.Split(triggers, ","), lazy.Pattern(`(?i)` + expr)})
			}
		}
		return list
	})
}

// find returns the first match in s, or "".
func (l patternList) find(s string) string {
	lower := strings.ToLower(s)
	for _, p := range l() {
		if slices.ContainsFunc(p.triggers, func(t string) bool { return strings.Contains(lower, t) }) {
			if found := p.matches().FindString(s); found != "" {
				return found
			}
		}
	}
	return ""
}

// visible is what a reader sees of a text, on one line.
func visible(s string) string { return strings.Join(strings.Fields(manifest.Strip(s)), " ") }

// quoted shows the part of a text that a rule objects to.
func quoted(s string) string { return `"` + manifest.Clip(manifest.CleanLine(s), 80) + `"` }
