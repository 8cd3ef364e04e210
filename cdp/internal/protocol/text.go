package protocol

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// Maximum sizes of briefs, in characters: for a member on its own, and for a member in a list.
const (
	BriefSize = 64
	LineSize  = 50
)

// briefOf returns the first sentence of a description, or a phrase derived from the name, in at most size characters.
func briefOf(description, name string, size int) string {
	s := sentence(description)
	if s == "" || strings.HasPrefix(s, "Deprecated") || strings.HasPrefix(s, "This command is deprecated") {
		s = words(name)
	}
	return cut(clause(s, size), size)
}

// clause drops the part after a comma, a bracket or a relative clause if the text has more than size characters.
func clause(s string, size int) string {
	s = strings.ReplaceAll(strings.ReplaceAll(s, "`", ""), "|", "")
	if utf8.RuneCountInString(s) <= size {
		return s
	}
	best := -1
	for _, sep := range []string{", ", " (", "; ", ": ", ". ", " which ", " so that ", " by means of ", " such as ",
		" See http", " http"} {
		if i := strings.LastIndex(s[:min(len(s), size+len(sep))], sep); i > best && i >= size/3 {
			best = i
		}
	}
	if best < 0 {
		return s
	}
	return s[:best]
}

// sentence returns the first sentence of a text on one line, without its full stop.
func sentence(text string) string {
	s := oneLine(text)
	for i := 0; i < len(s); i++ {
		if s[i] != '.' && s[i] != '!' || i+1 < len(s) && s[i+1] != ' ' {
			continue
		}
		head := s[:i]
		if i+2 < len(s) && (abbreviated(head) || !startsSentence(s[i+2])) {
			continue
		}
		return head
	}
	return strings.TrimRight(s, ".:;, ")
}

// oneLine replaces line breaks and repeated spaces with single spaces.
func oneLine(text string) string {
	for i := range len(text) {
		if c := text[i]; c < ' ' || c > '~' || c == ' ' && i > 0 && text[i-1] == ' ' {
			return strings.Join(strings.Fields(text), " ")
		}
	}
	return strings.Trim(text, " ") // the common case
}

func startsSentence(c byte) bool { return c < 'a' || c > 'z' }

func abbreviated(head string) bool {
	return slices.ContainsFunc([]string{"e.g", "i.e", "etc", "vs", "aka", "cf"}, func(abbreviation string) bool {
		return strings.HasSuffix(head, abbreviation)
	})
}

// cut shortens a text to size characters at a word, with an ellipsis.
func cut(s string, size int) string {
	if utf8.RuneCountInString(s) <= size {
		return s
	}
	runes := []rune(s)[:size-1]
	head := string(runes)
	if i := strings.LastIndexByte(head, ' '); i > size/2 {
		head = head[:i]
	}
	for {
		trimmed := strings.TrimRight(head, " ,;:(-")
		for _, small := range []string{" a", " an", " the", " of", " for", " and", " or", " to", " in", " with", " by"} {
			trimmed = strings.TrimSuffix(trimmed, small)
		}
		if trimmed == head {
			return head + "…"
		}
		head = trimmed
	}
}

// words turns a name into a phrase: "setEmulatedMedia" is "Set emulated media", "getDOMCounters" is "Get DOM counters".
func words(name string) string {
	var list []string
	start := 0
	for i := 1; i <= len(name); i++ {
		end := i == len(name) || name[i] == '_' ||
			isUpper(name, i) && (!isUpper(name, i-1) || i+1 < len(name) && !isUpper(name, i+1) && name[i+1:] != "s")
		if !end {
			continue
		}
		if word := strings.Trim(name[start:i], "_"); word != "" {
			if !acronym(word) {
				word = strings.ToLower(word)
			}
			list = append(list, word)
		}
		start = i
	}
	phrase := strings.Join(list, " ")
	if phrase != "" && phrase[0] >= 'a' && phrase[0] <= 'z' {
		phrase = string(phrase[0]-'a'+'A') + phrase[1:]
	}
	return phrase
}

func acronym(word string) bool { return len(word) > 1 && isUpper(word, 1) }

func isUpper(s string, i int) bool { return s[i] >= 'A' && s[i] <= 'Z' }
