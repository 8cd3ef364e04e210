package page

import (
	"cmp"
	"encoding/json"
	"strings"
)

// Locator describes an element in the form that page.js reads.
type Locator map[string]any

var prefixes = map[string]string{"css": "css", "text": "text", "label": "label", "placeholder": "placeholder",
	"testid": "test_id", "role": "role", "xpath": "xpath", "id": "css", "alt": "css", "title": "css"}

// escapedCSS escapes a text for a string in CSS.
var escapedCSS = strings.NewReplacer(`\`, `\\`, `"`, `\"`)

// parseLocator reads a locator. A word is a reference if it looks like one, has a prefix such as css=, or is a line
// of a snapshot, such as: button "Sign in". Any other word is searched as a CSS selector if it looks like one, then
// by name, label, placeholder and text. Playwright's selectors are understood, too: role=button[name="Sign in"],
// text="Sign in", button:has-text("Sign in"), xpath=//button, getByRole('button', { name: 'Sign in' }).
func parseLocator(word string) Locator {
	word = strings.TrimSpace(word)
	if ref := strings.TrimPrefix(word, "@"); isRef(ref) {
		return Locator{"ref": ref}
	}
	if css, text, ok := strings.Cut(strings.TrimPrefix(word, "css="), ":has-text("); ok && strings.HasSuffix(text, ")") {
		return Locator{"css": cmp.Or(strings.TrimSpace(css), "*"), "has": unquote(strings.TrimSuffix(text, ")"))}
	}
	if strings.HasPrefix(word, "//") {
		return Locator{"xpath": word}
	}
	if function, rest, ok := strings.Cut(word, "("); ok && functions[function] != "" {
		if first, rest, ok := cutQuoted(rest); ok {
			l := Locator{functions[function]: first}
			if rest == ")" {
				return l
			}
			_, rest, _ = strings.Cut(rest, "name:")
			if l["name"], rest, ok = cutQuoted(rest); ok && strings.Trim(rest, " })") == "" && function == "getByRole" {
				return l
			}
		}
	}
	if kind, rest, ok := strings.Cut(word, "="); ok && prefixes[kind] != "" && rest != "" {
		role, named, ok := strings.Cut(rest, "[name=")
		switch {
		case kind == "role" && ok && strings.HasSuffix(named, "]"):
			named = strings.TrimSuffix(named, "]")
			if strings.HasSuffix(named, `"i`) || strings.HasSuffix(named, `"s`) { // the letter says how case is compared
				named = named[:len(named)-1]
			}
			return Locator{"role": role, "name": unquote(named)}
		case kind == "text":
			rest = unquote(rest)
		case kind == "id":
			rest = `[id="` + escapedCSS.Replace(unquote(rest)) + `"]`
		case kind == "alt", kind == "title":
			rest = `[` + kind + `="` + escapedCSS.Replace(unquote(rest)) + `" i]`
		}
		return Locator{prefixes[kind]: rest}
	}
	if fields := strings.Fields(word); len(fields) > 1 && isWord(fields[0]) && isRef(fields[1]) &&
		(len(fields) == 2 || fields[2][0] == '[') {
		return Locator{"ref": fields[1]} // the reference of an element without a name
	}
	if text, ok := strings.CutPrefix(word, `"`); ok {
		if text, _, ok := readQuoted(text); ok { // a line of text
			return Locator{"text": text}
		}
	}
	role, rest, ok := strings.Cut(word, ` "`)
	if name, ref, quoted := readQuoted(rest); ok && quoted && isWord(role) {
		if isRef(ref) {
			return Locator{"ref": ref}
		}
		return Locator{"role": role, "name": name}
	}
	return Locator{"word": word}
}

// functions maps Playwright's functions that make a locator to keys of a [Locator].
var functions = map[string]string{"getByRole": "role", "getByText": "text", "getByLabel": "label",
	"getByPlaceholder": "placeholder", "getByTestId": "test_id", "locator": "css"}

// cutQuoted returns a text in quotation marks, without resolving escapes, and the rest after it.
func cutQuoted(text string) (inner, rest string, ok bool) {
	text = strings.TrimSpace(text)
	if text == "" || !strings.ContainsAny(text[:1], "'\"`") {
		return "", text, false
	}
	inner, rest, ok = strings.Cut(text[1:], text[:1])
	return inner, strings.TrimSpace(rest), ok && !strings.Contains(inner, `\`)
}

// readQuoted reads what follows the first quotation mark in a line of a snapshot: a name, and the word after it. The
// name may lack the escapes, because callers also write it themselves.
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

// unquote returns a text without the quotation marks around it.
func unquote(text string) string {
	if n := len(text); n > 1 && (text[0] == '"' || text[0] == '\'') && text[n-1] == text[0] {
		return text[1 : n-1]
	}
	return text
}

// isRef reports whether a word looks like a reference: the three letters of a document, and a number.
func isRef(word string) bool {
	letters := strings.TrimRight(word, "0123456789")
	return len(letters) == 3 && len(word) > 3 && strings.Trim(letters, "abcdefghijklmnopqrstuvwxyz") == ""
}

func isWord(s string) bool {
	return s != "" && strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ") == ""
}
