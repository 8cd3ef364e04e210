package main

import "strings"

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
	role, rest, ok := strings.Cut(word, ` "`)
	if end := strings.LastIndexByte(rest, '"'); ok && end >= 0 && isWord(role) {
		if ref := strings.TrimSpace(rest[end+1:]); isRef(ref) {
			return locator{"ref": ref}
		}
		return locator{"role": role, "name": rest[:end]}
	}
	return locator{"word": word}
}

// isRef reports whether a word looks like a reference: e, the letters of a document, and a number.
func isRef(word string) bool {
	letters := strings.TrimRight(word, "0123456789")
	return len(letters) > 1 && len(letters) < len(word) && letters[0] == 'e' && len(letters) <= 7 &&
		strings.Trim(letters, "abcdefghijklmnopqrstuvwxyz") == ""
}

func isWord(s string) bool {
	return s != "" && strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ") == ""
}
