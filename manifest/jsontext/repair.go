package jsontext

import (
	"encoding/json"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Repair rewrites a text that is nearly JSON as JSON. It handles the fences of Markdown, comments, names without
// quotes, single and typographic quotes, the words of Python and JavaScript for true, false and null, missing and
// additional commas, line breaks in strings, and missing brackets at the end. ok is false where the meaning is not
// clear, as in a string that is cut off. The result is a proposal to show, never to run without asking.
func Repair(text string) (repaired json.RawMessage, ok bool) {
	r := &repairer{rest: withoutFence(text)}
	if !r.value(0) {
		return nil, false
	}
	r.space()
	// Closing brackets too many are a mistake, anything else is a second text.
	if strings.Trim(r.rest, " \t\r\n]};") != "" {
		return nil, false
	}
	repaired = json.RawMessage(r.out.String())
	return repaired, json.Valid(repaired)
}

// LooksLikeJSON reports whether a text is meant as a JSON object or array, whatever is wrong with it.
func LooksLikeJSON(text string) bool {
	r := &repairer{rest: withoutFence(text)}
	r.space()
	return strings.HasPrefix(r.rest, "{") || strings.HasPrefix(r.rest, "[")
}

// withoutFence returns what is inside a JSON string, and inside the fence of a Markdown text that is one code block.
func withoutFence(text string) string {
	var inner string
	if json.Unmarshal([]byte(text), &inner) == nil {
		text = inner
	}
	rest, fenced := strings.CutPrefix(strings.TrimSpace(text), "```")
	if !fenced {
		return text
	}
	if language, code, ok := strings.Cut(rest, "\n"); ok && !strings.ContainsAny(language, "{[") {
		rest = code
	}
	return strings.TrimSuffix(strings.TrimSpace(rest), "```")
}

// closers are the closing quotes for each opening one.
var closers = map[rune]string{'"': `"`, '\'': "'", '\u201c': "\u201c\u201d", '\u201d': "\u201c\u201d",
	'\u201e': "\u201c\u201d", '\u2018': "\u2018\u2019", '\u2019': "\u2018\u2019"}

// quote returns the quote that comes next, 0 if none does.
func (r *repairer) quote() rune {
	if first, _ := utf8.DecodeRuneInString(r.rest); closers[first] != "" {
		return first
	}
	return 0
}

// repairDepth is the greatest depth of nested arrays and objects.
const repairDepth = 100

// repairer reads a lenient form of JSON from rest and writes JSON to out.
type repairer struct {
	rest string
	out  strings.Builder
}

// words maps the spellings of other languages to the words of JSON.
var words = map[string]string{
	"true": "true", "True": "true", "false": "false", "False": "false",
	"null": "null", "None": "null", "nil": "null", "undefined": "null",
}

func (r *repairer) value(depth int) bool {
	if depth > repairDepth {
		return false
	}
	r.space()
	switch {
	case r.take("{"):
		return r.list("{", "}", func() bool { return r.name() && r.value(depth+1) })
	case r.take("["):
		return r.list("[", "]", func() bool { return r.value(depth + 1) })
	case r.quote() != 0:
		return r.quoted()
	}
	word := r.word(",]}\n")
	switch {
	case words[word] != "":
		r.out.WriteString(words[word])
	case json.Valid([]byte(word)): // a number
		r.out.WriteString(word)
	case isWord(word):
		r.out.Write(Marshal(word))
	default:
		return false
	}
	return true
}

// isWord reports whether a text without quotes can be read as a name or a string.
func isWord(text string) bool {
	return text != "" && !strings.ContainsFunc(text, func(c rune) bool {
		return !unicode.IsLetter(c) && !unicode.IsDigit(c) && !strings.ContainsRune("_-.$", c)
	})
}

// list reads what stands between two brackets. The closing bracket may be missing at the end of the text.
func (r *repairer) list(open, shut string, member func() bool) bool {
	r.out.WriteString(open)
	for n := 0; ; n++ {
		separated := n == 0
		for r.space(); r.take(","); r.space() {
			separated = true
		}
		if r.rest == "" || r.take(shut) {
			r.out.WriteString(shut)
			return true
		}
		// Without a comma, only a quote or a bracket shows where the next member begins.
		if !separated && r.quote() == 0 && !strings.ContainsAny(r.rest[:1], "{[") {
			return false
		}
		if n > 0 {
			r.out.WriteByte(',')
		}
		if !member() {
			return false
		}
	}
}

// name reads the name of a member and the colon or equals sign behind it.
func (r *repairer) name() bool {
	if r.quote() != 0 {
		if !r.quoted() {
			return false
		}
	} else {
		name := r.word(":=")
		if !isWord(name) {
			return false
		}
		r.out.Write(Marshal(name))
	}
	r.space()
	if !r.take(":") && !r.take("=") {
		return false
	}
	r.out.WriteByte(':')
	return true
}

// quoted reads a string in quotes. One without the closing quote may be only a part of the value.
func (r *repairer) quoted() bool {
	quote, size := utf8.DecodeRuneInString(r.rest)
	var text strings.Builder
	text.WriteByte('"')
	escaped, end := false, -1
	for i, c := range r.rest[size:] {
		if !escaped && strings.ContainsRune(closers[quote], c) {
			end = size + i + utf8.RuneLen(c)
			break
		}
		switch {
		case escaped && c == '\'':
			text.WriteByte('\'')
		case escaped:
			text.WriteString("\\" + string(c))
		case c == '\\':
		case c == '"' || c < ' ':
			escape := Marshal(string(c))
			text.Write(escape[1 : len(escape)-1])
		default:
			text.WriteRune(c)
		}
		escaped = !escaped && c == '\\'
	}
	if end < 0 {
		return false
	}
	text.WriteByte('"')
	r.rest = r.rest[end:]
	r.out.WriteString(text.String())
	return json.Valid([]byte(text.String()))
}

// word reads up to one of the characters in until, and trims white space.
func (r *repairer) word(until string) string {
	end := strings.IndexAny(r.rest, until)
	if end < 0 {
		end = len(r.rest)
	}
	word := strings.TrimSpace(r.rest[:end])
	r.rest = r.rest[end:]
	return word
}

// space skips white space and comments.
func (r *repairer) space() {
	for {
		r.rest = strings.TrimLeft(r.rest, " \t\r\n")
		end := "\n"
		switch {
		case strings.HasPrefix(r.rest, "/*"):
			end = "*/"
		case !strings.HasPrefix(r.rest, "//") && !strings.HasPrefix(r.rest, "#"):
			return
		}
		_, r.rest, _ = strings.Cut(r.rest, end)
	}
}

func (r *repairer) take(sign string) (ok bool) {
	r.rest, ok = strings.CutPrefix(r.rest, sign)
	return ok
}
