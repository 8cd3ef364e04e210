package openapi

import (
	"cmp"
	"html"
	"slices"
	"strings"
	"unicode"

	"github.com/parley-tools/parley/internal/lazy"
	"github.com/parley-tools/parley/manifest"
	"github.com/parley-tools/parley/manifest/lint"
)

// Sizes of texts, in bytes.
const (
	maxBrief    = 64
	maxStandard = 320
	maxFull     = 4000
	maxProperty = 240 // description of a parameter
	maxResult   = 100 // description of a property of a result
)

var (
	markup   = lazy.Pattern("<[^<>]*>|```[a-z]*|\\*\\*|(?m)^ *> *(\\[![A-Z]+\\])?")
	link     = lazy.Pattern(`!?\[([^\]]*)\]\([^()]*\)`)
	sentence = lazy.Pattern(`[.!?:]["')]?\s+|\n\s*\n|\n\s*[*#-]+\s`)
)

// texts makes the texts of a manifest from the texts of a document. A sentence that misleads an agent is left out.
type texts struct {
	known map[string][]string
	left  map[string]bool // the sentences that were left out
	rated map[string]bool // whether a text misleads
}

// misleads reports whether a text misleads an agent. Documents repeat their texts and names.
func (t *texts) misleads(s string) bool {
	is, ok := t.rated[s]
	if !ok {
		is = lint.Misleads(s) != ""
		t.rated[s] = is
	}
	return is
}

// sentences returns the sentences of a text that can be shown, each on one line.
func (t *texts) sentences(s string) []string {
	if all, ok := t.known[s]; ok {
		return all
	}
	plain := html.UnescapeString(markup().ReplaceAllString(link().ReplaceAllString(manifest.Clip(s, maxFull), "$1"), " "))
	isHarmless := !t.misleads(strings.Join(strings.Fields(plain), " "))
	var all []string
	add := func(part string) {
		_, isHidden := manifest.FirstHidden(part, true)
		part = strings.Join(strings.Fields(strings.TrimLeft(part, " #*-\n")), " ")
		if part == "" {
			return
		}
		if isHidden || !isHarmless && t.misleads(part) {
			t.left[part] = true
			return
		}
		all = append(all, part)
	}
	at := 0
	for _, end := range sentence().FindAllStringIndex(plain, -1) {
		add(plain[at:end[1]])
		at = end[1]
	}
	add(plain[at:])
	// What is harmless in parts may be an order when it is joined.
	if !isHarmless && len(all) > 1 && t.misleads(strings.Join(all, " ")) {
		for _, part := range all[1:] {
			t.left[part] = true
		}
		all = all[:1]
	}
	t.known[s] = all
	return all
}

// short returns the first sentences of a text, as far as they fit.
func (t *texts) short(s string, size int) string {
	return first(t.sentences(manifest.Clip(s, 4*size)), size) // with room for markup
}

// first returns the first sentences, as far as they fit.
func first(all []string, size int) string {
	if len(all) == 0 {
		return ""
	}
	made := ClipWords(all[0], size)
	for _, part := range all[1:] {
		if len(made)+1+len(part) > size {
			break
		}
		made += " " + part
	}
	return made
}

// docs makes the texts of an operation. fallback is the brief if there are no texts.
func (t *texts) docs(summary, description, fallback string) manifest.Docs {
	described := t.sentences(description)
	all := slices.Concat(t.sentences(summary), described)
	if len(all) == 0 {
		return manifest.Docs{Brief: ClipWords(fallback, maxBrief)}
	}
	title := strings.TrimRight(all[0], ".: ")
	made := manifest.Docs{Brief: cmp.Or(ClipWords(title, maxBrief), ClipWords(fallback, maxBrief))}
	rest := first(described, maxStandard)
	if made.Brief != title && summary != "" {
		rest = strings.TrimSpace(t.short(summary, maxStandard) + " " + rest)
	}
	if strings.TrimRight(rest, ".: ") != made.Brief {
		made.Standard = rest
	}
	full := manifest.Clip(strings.Join(described, " "), maxFull)
	if len(full) > len(rest) {
		made.Full = full
	}
	return made
}

// ClipWords returns the first words of a text, as far as they fit into a number of bytes.
func ClipWords(s string, size int) string {
	for len(s) > size {
		at := strings.LastIndexFunc(s[:size], unicode.IsSpace)
		if at <= 0 {
			return manifest.Clip(s, size)
		}
		s = strings.TrimRightFunc(s[:at], func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	}
	return s
}
