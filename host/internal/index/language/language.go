// Package language reads queries: what their words ask for, addresses in them, and whether they are in English.
package language

import (
	"strings"
	"unicode"

	"github.com/parley-tools/parley/internal/lazy"
)

// foreignWords are frequent short words of German, French, Spanish, Italian, Portuguese, Dutch and Polish that are not
// English words or names of common things.
const foreignWords = " der die das und ein eine einen einer eines mit fuer für auf aus von vom zur zum dem den des " +
	"ist sind wie nicht alle aller machen zeige öffne le la les un une du et avec dans pour sur aux est " +
	"sont comment tous toutes el los las una unos del y con para por como todos todas página il lo " +
	"gli uno della delle di che e os um uma com não na em het een van voor met naar niet jak w z się "

// Foreign reports whether a text is probably not English: most of its letters are of another script, or several of its
// words are of another language, or unknown. What is between quotation marks says nothing: it is text of a page or a
// value.
func Foreign(text string, isUnknown bool) bool {
	if rest := quoted().ReplaceAllString(text, " "); strings.TrimSpace(rest) != "" {
		isUnknown, text = isUnknown && rest == text, rest
	}
	if isUnknown {
		return true
	}
	latin, other := 0, 0
	for _, r := range text {
		switch {
		case !unicode.IsLetter(r):
		case unicode.Is(unicode.Latin, r):
			latin++
		default:
			other++
		}
	}
	if other > latin {
		return true
	}
	hits, words := 0, 0
	for f := range strings.FieldsSeq(strings.ToLower(text)) {
		word := strings.Trim(f, "\"'`.,:;!?()[]")
		words++
		if word != "" && strings.Contains(foreignWords, " "+word+" ") {
			hits++
		}
	}
	return hits >= 2 || hits == 1 && words <= 5 && words >= 2 && notASCII(text)
}

var quoted = lazy.Pattern(`"[^"]*"|“[^”]*”|«[^»]*»|„[^“”]*[“”]`)

func notASCII(text string) bool {
	return strings.ContainsFunc(text, func(r rune) bool { return r >= 0x80 && unicode.IsLetter(r) })
}

// AsksFor returns "read" if the first word of a query asks what there is, "write" if it asks for a change, else "".
func AsksFor(first string) string {
	switch first {
	case "check", "count", "download", "fetch", "find", "get", "how", "is", "list", "look", "read", "search", "see",
		"view", "what", "when", "where", "which", "who", "whose":
		return "read"
	case "add", "allow", "approve", "assign", "attach", "ban", "block", "book", "buy", "cancel", "change", "clear",
		"close", "connect", "create", "delete", "deliver", "deny", "disable", "drop", "edit", "email", "enable",
		"give", "grant", "hide", "invite", "kill", "let", "lock", "mail", "make", "mark", "merge", "move", "new",
		"order", "pause", "pay", "pin", "post", "publish", "put", "remove", "rename", "replace", "request", "restart",
		"resume", "retry", "revoke", "save", "schedule", "send", "set", "share", "ship", "start", "stop", "submit",
		"subscribe", "trigger", "turn", "unblock", "unlock", "unsubscribe", "update", "upload", "write":
		return "write"
	}
	return ""
}

// lightWords, as stems, say little about what is wanted, however rare they are in the index.
const lightWords = " take make perform chang current browser web chrome chromium playwright puppet selenium devtool " +
	"cdp tool command method " +
	"function api thing someth anyth way help tri put go whole entir full certain specif all test site just simul mani "

// Light returns the factor of a word's weight: less than 1 for light words.
func Light(stem string) float64 {
	if strings.Contains(lightWords, " "+stem+" ") {
		return 0.55
	}
	return 1
}

// WithoutAddresses replaces each address of a site with the word url, because its parts are not words of a tool.
func WithoutAddresses(text string) string {
	if !strings.ContainsAny(text, ".:") {
		return text
	}
	fields := strings.Fields(text)
	for i, f := range fields {
		if isAddress(f) {
			fields[i] = "url"
		}
	}
	return strings.Join(fields, " ")
}

// topLevel are the top-level domains that are recognized in an address without a scheme.
const topLevel = " com org net edu gov io dev app ai co de fr es it nl uk eu us ca jp cn in br ru ch at example test "

// isAddress reports whether a field of a query is a URL, or a host with a common top-level domain: example.com/cart.
func isAddress(field string) bool {
	if strings.Contains(field, "://") {
		return true
	}
	host, _, _ := strings.Cut(strings.Trim(field, "\"'`,.;!?()[]<>"), "/")
	host, _, _ = strings.Cut(host, ":")
	at := strings.LastIndexByte(host, '.')
	return host == "localhost" ||
		at > 0 && strings.ToLower(host) == host && strings.Contains(topLevel, " "+host[at+1:]+" ")
}
