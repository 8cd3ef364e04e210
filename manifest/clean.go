package manifest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/parley-tools/parley/internal/lazy"
	"github.com/parley-tools/parley/manifest/jsontext"
	"github.com/parley-tools/parley/manifest/spelling"
)

// Clean makes a text from an untrusted source safe to show: it shows each [Hidden] character as an escape, such as
// \u202e, and replaces invalid UTF-8 by U+FFFD. Newlines and tabs stay. So do joiners between characters that can be
// joined, because scripts and emoji need them.
func Clean(s string) string {
	if isClean(s) {
		return s
	}
	return string(escape(strings.ReplaceAll(s, "\r\n", "\n"), true))
}

// escape writes each [Hidden] character as a JSON escape. If keepsJoiners is set, it leaves joiners between
// characters that can be joined.
func escape(s string, keepsJoiners bool) (b []byte) {
	before := rune(0)
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		i += n
		after, _ := utf8.DecodeRuneInString(s[i:])
		if !Hidden(r) || keepsJoiners && joins(before, r, after) {
			b = utf8.AppendRune(b, r)
		} else {
			for _, unit := range utf16.Encode([]rune{r}) {
				b = fmt.Appendf(b, `\u%04x`, unit)
			}
		}
		before = r
	}
	return b
}

// joins reports whether a rune is a joiner between characters that can be joined: letters of non-Latin scripts, and
// emoji.
func joins(before, r, after rune) bool {
	isShown := func(r rune) bool { return r >= 0x300 && r != utf8.RuneError && !Hidden(r) }
	return (r == 0x200c || r == 0x200d) && isShown(before) && isShown(after)
}

// FirstHidden returns the first character of a text that is not shown, and reports whether there is one. A carriage
// return before a line break and a variation selector after a possible emoji are allowed. In prose, joiners between
// characters that can be joined, and blanks of any form are allowed, too.
func FirstHidden(s string, isProse bool) (rune, bool) {
	const blank, textForm, emojiForm = 0x2800, 0xfe0e, 0xfe0f
	before := rune(0)
	for i, r := range s {
		isShown := r != utf8.RuneError && !Hidden(r) && (isProse || r != blank)
		switch r {
		case '\r':
			isShown = isProse || strings.HasPrefix(s[i+1:], "\n")
		case textForm, emojiForm:
			isSymbol := before >= utf8.RuneSelf && !unicode.IsLetter(before) && !Hidden(before)
			isShown = before != textForm && before != emojiForm && (isSymbol || strings.ContainsRune("0123456789#*", before))
		case 0x200c, 0x200d:
			after, _ := utf8.DecodeRuneInString(s[i+utf8.RuneLen(r):])
			isShown = isProse && joins(before, r, after)
		}
		if !isShown {
			return r, true
		}
		before = r
	}
	return 0, false
}

// Strip returns what a reader sees of a text: the text without terminal sequences and [Hidden] characters. Use it to
// compare texts, not to show them.
func Strip(s string) string {
	if isClean(s) {
		return s
	}
	return strings.Map(func(r rune) rune {
		if Hidden(r) {
			return -1
		}
		return r
	}, terminalSequence().ReplaceAllString(s, ""))
}

// CleanLine is [Clean] for a text on one line: each run of white space becomes one space.
func CleanLine(s string) string {
	return strings.Join(strings.Fields(Clean(s)), " ")
}

// CleanValue is [Clean] for a value on one line. It keeps the number of spaces: each white space character becomes a
// space.
func CleanValue(s string) string {
	return strings.NewReplacer("\n", " ", "\t", " ").Replace(Clean(s))
}

// Clip shortens s to at most the given number of bytes, at the end of a character, and marks the cut with an ellipsis.
func Clip(s string, bytes int) string {
	const ellipsis = "…"
	if len(s) <= bytes {
		return s
	}
	return strings.ToValidUTF8(s[:max(0, bytes-len(ellipsis))], "") + ellipsis
}

// Hidden reports whether a rune controls a terminal or the display of other characters instead of being shown itself.
func Hidden(r rune) bool {
	switch {
	case r == '\n' || r == '\t':
		return false
	case r < 0x20, r >= 0x7f && r < 0xa0:
		return true
	case r < 0x300:
		return r == 0xad // soft hyphen
	case r == 0x34f, r == 0x61c, r == 0x115f, r == 0x1160, r == 0x17b4, r == 0x17b5, r == 0x3164, r == 0xffa0:
		return true // fillers and marks without a width
	case r >= 0x180b && r <= 0x180f, r >= 0x200b && r <= 0x200f, r >= 0x2028 && r <= 0x202e, r >= 0x2060 && r <= 0x206f:
		return true // Mongolian selectors, zero-width, separators, bidi controls, invisible operators
	case r >= 0xfe00 && r <= 0xfe0d, r == 0xfeff, r >= 0xfff9 && r <= 0xfffb:
		return true // text variation selectors (but not FE0E and FE0F of emoji), byte order mark, interlinear marks
	case r >= 0x1d173 && r <= 0x1d17a, r >= 0xe0000 && r <= 0xe0fff:
		return true // musical controls, tags and variation selectors supplement
	}
	return unicode.Is(unicode.Cf, r)
}

func isClean(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r == utf8.RuneError || Hidden(r) })
}

// terminalSequence matches CSI with its parameters; OSC, DCS, SOS, PM and APC up to their end, or to the end of the
// line, because one without an end must not swallow the text; and ESC with the characters that belong to it. A sequence
// may also begin with a C1 control.
var terminalSequence = lazy.Pattern(`(\x1b\[|\x{9b})[ -?]*[@-~]?` +
	`|(\x1b[\]PX^_]|[\x{90}\x{98}\x{9d}-\x{9f}])[^\x07\x1b\n\x{9c}]*(\x07|\x1b\\|\x{9c})?` +
	`|\x1b[ -/]*[0-~]?`)

// EscapeJSON writes each [Hidden] character of a JSON text as \uXXXX: the data stays the same, and nothing controls a
// terminal.
func EscapeJSON(data []byte) []byte {
	if isClean(string(data)) {
		return data
	}
	return escape(strings.ReplaceAll(string(data), "\r", " "), false)
}

// CleanJSON cleans each string of a JSON document that is shown as documentation, keys included. The order of keys
// stays. Regular expressions keep their meaning, because their hidden characters are escaped.
func CleanJSON(data json.RawMessage) json.RawMessage {
	if isClean(string(data)) && bytes.IndexByte(data, '\\') < 0 {
		return data
	}
	last := ""
	return eachScalar(data, func(text []byte, s string) []byte {
		before := last
		last = s
		switch {
		case text[0] != '"':
			return text
		case before == "pattern":
			return EscapeJSON(text)
		}
		return jsontext.AppendString(nil, Clean(s))
	})
}

// MapJSON replaces each string, number and word of a JSON document, keys included, by the string that change returns
// for it. A number or word is passed as it is written, and becomes a string only if change changes it. The order of
// keys stays.
func MapJSON(data json.RawMessage, change func(string) string) json.RawMessage {
	return eachScalar(data, func(text []byte, s string) []byte {
		if changed := change(s); changed != s {
			return jsontext.AppendString(nil, changed)
		}
		return text
	})
}

// eachScalar replaces each string, number and word of a JSON text by what change returns for its text and its value.
func eachScalar(data []byte, change func(text []byte, s string) []byte) []byte {
	var b bytes.Buffer
	in, copied := jsontext.Scan(data), 0
	for text := in.Next(); text != nil; text = in.Next() {
		b.Write(data[copied : in.Offset()-len(text)])
		copied = in.Offset()
		switch text[0] {
		case '{', '}', '[', ']', ':', ',':
			b.Write(text)
		case '"':
			if s, ok := jsontext.Unquote(text); ok {
				b.Write(change(text, s))
			}
		default:
			b.Write(change(text, string(text)))
		}
	}
	b.Write(data[copied:])
	return b.Bytes()
}

// Marshal encodes v as encoding/json does, without the escapes for HTML: URLs and comparisons stay readable.
func Marshal(v any) (json.RawMessage, error) {
	return jsontext.AppendTyped(nil, v)
}

// Plural is [spelling.Plural].
var Plural = spelling.Plural
