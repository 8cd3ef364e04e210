package lint

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/parley-tools/parley/internal/lists"
	"github.com/parley-tools/parley/manifest"
	"github.com/parley-tools/parley/manifest/jsontext"
	"github.com/parley-tools/parley/manifest/lint/letters"
)

// textKind is the purpose of a text in a manifest.
type textKind int

const (
	prose  textKind = iota // sentences that people and agents read
	phrase                 // aliases, keywords and tasks
	data                   // values in examples, enums and defaults; names, patterns and everything else that is shown
)

// text is one text of a manifest.
type text struct {
	pointer string
	kind    textKind
	raw     string // as in the manifest
	plain   string // on one line, cleaned, with letters of any style as ASCII letters; for matching
	exempt  bool   // it may refer to other tools: when_not, related, deprecated, needs
}

// proseKeys and phraseKeys are the names of members whose strings are texts, outside and inside schemas.
var (
	proseKeys = []string{"brief", "standard", "full", "description", "title", "when", "when_not", "why", "meaning",
		"suggestion", "say", "message", "limitations", "$comment"}
	phraseKeys = []string{"aliases", "keywords", "tasks", "x-aliases"}
	dataKeys   = []string{"params", "result", "enum", "const", "default", "examples"}
	exemptKeys = []string{"when_not", "related", "deprecated", "needs"}
)

// collectTexts returns the texts of a manifest in the order of their pointers.
func collectTexts(m *manifest.Manifest) []text {
	doc, err := jsontext.Normalize(m)
	if err != nil {
		return nil // a schema is not JSON; Parse refuses that
	}
	var texts []text
	jsontext.Values(doc, func(tokens []string, v any) {
		add := func(kind textKind, s string) {
			exempt := slices.ContainsFunc(tokens, func(t string) bool { return slices.Contains(exemptKeys, t) })
			texts = append(texts, text{jsontext.Pointer(tokens), kind, s, letters.Fold(visible(s)), exempt})
		}
		if n := len(tokens); n > 1 && tokens[n-2] == "properties" {
			add(data, tokens[n-1])
		}
		if s, ok := v.(string); ok && !(len(tokens) > 3 && tokens[2] == "http") { // nobody reads how a tool requests
			add(kindOf(tokens), s)
		}
	})
	return texts
}

// kindOf returns the kind of the text that tokens lead to.
func kindOf(tokens []string) textKind {
	key, isInList := "", false // the nearest name of a member
	for i, t := range tokens {
		if slices.Contains(dataKeys, t) && !isSchemaOrList(tokens[:i]) {
			return data
		}
		if _, err := strconv.Atoi(t); err == nil {
			isInList = true
		} else {
			key, isInList = t, false
		}
	}
	switch {
	case isInList && slices.Contains(phraseKeys, key):
		return phrase
	case slices.Contains(proseKeys, key):
		return prose
	}
	return data // names, versions, types, patterns
}

// isSchemaOrList reports whether a member with a name of data is in fact a tool's schema, its list of examples, or a
// property.
func isSchemaOrList(tokens []string) bool {
	if len(tokens) == 2 && tokens[0] == "tools" {
		return true // /tools/0/params and /tools/0/examples
	}
	return len(tokens) > 0 && slices.Contains([]string{"properties", "$defs", "definitions"}, tokens[len(tokens)-1])
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// sameName reports whether two names are equal, ignoring case.
func sameName(a, b string) bool { return strings.EqualFold(a, b) }

// stem roughly removes the endings of English words, so that forms of a word compare equal.
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

func stems(list []string) []string { return lists.Map(list, stem) }

// visible returns what a reader sees of a text, on one line.
func visible(s string) string { return strings.Join(strings.Fields(manifest.Strip(s)), " ") }

// quoted returns the part of a text that a rule objects to, in quotes.
func quoted(s string) string { return `"` + manifest.Clip(manifest.CleanLine(s), 80) + `"` }
