package main

import (
	"encoding/json"
	"strings"
)

// locator is an element as page.js understands it.
type locator map[string]any

var prefixes = map[string]string{"css": "css", "text": "text", "label": "label", "placeholder": "placeholder",
	"testid": "test_id", "role": "role"}

// parseLocator reads a locator. A word is a reference if it looks like one, has a prefix such as css=, or is a line
// of a snapshot, such as: button "Sign in". Any other word is searched by name, label, placeholder and text.
func parseLocator(word string) locator {
	word = strings.TrimSpace(word)
	if isRef(word) {
		return locator{"ref": word}
	}
	if kind, rest, ok := strings.Cut(word, "="); ok && prefixes[kind] != "" && rest != "" {
		return locator{prefixes[kind]: rest}
	}
	if fields := strings.Fields(word); len(fields) > 1 && isWord(fields[0]) && isRef(fields[1]) &&
		(len(fields) == 2 || fields[2][0] == '[') {
		return locator{"ref": fields[1]} // of an element without a name
	}
	role, rest, ok := strings.Cut(word, ` "`)
	if name, ref, quoted := readQuoted(rest); ok && quoted && isWord(role) {
		if isRef(ref) {
			return locator{"ref": ref}
		}
		return locator{"role": role, "name": name}
	}
	return locator{"word": word}
}

// readQuoted reads what follows the first quotation mark of a line of a snapshot: a name, and the word after it. A
// caller may write a name without escapes.
func readQuoted(text string) (name, next string, ok bool) {
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '"':
			rest := strings.TrimSpace(text[i+1:])
			next, _, _ = strings.Cut(rest, " ")
			if (rest == "" || isRef(next) || rest[0] == '[') && json.Unmarshal([]byte(`"`+text[:i]+`"`), &name) == nil {
				return name, next, true
			}
		}
	}
	end := strings.LastIndexByte(text, '"')
	return text[:max(end, 0)], "", end >= 0
}

// isRef reports whether a word looks like a reference: the three letters of a document, and a number.
func isRef(word string) bool {
	letters := strings.TrimRight(word, "0123456789")
	return len(letters) == 3 && len(word) > 3 && strings.Trim(letters, "abcdefghijklmnopqrstuvwxyz") == ""
}

func isWord(s string) bool {
	return s != "" && strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ") == ""
}
