package jsontext

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Marshal encodes a value as canonical JSON: on one line, with sorted keys, numbers as they were read, and only the
// escapes that JSON requires. The same value always gives the same bytes. It encodes what encoding/json cannot as
// null.
func Marshal(v any) []byte { return Append(nil, v) }

// Text returns a string as it is, and any other value as [Marshal] does.
func Text(v any) string {
	if s, ok := v.(string); ok {
		return s
	}
	return string(Marshal(v))
}

// Texts returns a decoded string, or the strings of a list.
func Texts(v any) (all []string) {
	if text, ok := v.(string); ok {
		return []string{text}
	}
	list, _ := v.([]any)
	for _, item := range list {
		if text, ok := item.(string); ok {
			all = append(all, text)
		}
	}
	return all
}

// Append appends the encoding of v, as [Marshal] returns it, to b.
func Append(b []byte, v any) []byte {
	switch v := v.(type) {
	case nil:
		return append(b, "null"...)
	case bool:
		return strconv.AppendBool(b, v)
	case json.Number:
		return append(b, v...)
	case string:
		return AppendString(b, v)
	case []any:
		b = append(b, '[')
		for i, item := range v {
			if i > 0 {
				b = append(b, ',')
			}
			b = Append(b, item)
		}
		return append(b, ']')
	case map[string]any:
		b = append(b, '{')
		for i, k := range slices.Sorted(maps.Keys(v)) {
			if i > 0 {
				b = append(b, ',')
			}
			b = append(AppendString(b, k), ':')
			b = Append(b, v[k])
		}
		return append(b, '}')
	default: // v does not come from Decode
		c, err := Normalize(v)
		if err != nil {
			return append(b, "null"...)
		}
		return Append(b, c)
	}
}

// AppendString appends s as a JSON string to b. Invalid UTF-8 becomes U+FFFD.
func AppendString(b []byte, s string) []byte {
	b = append(b, '"')
	from := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c >= utf8.RuneSelf {
			r, size := utf8.DecodeRuneInString(s[i:])
			if r == utf8.RuneError && size == 1 {
				b = append(append(b, s[from:i]...), "\ufffd"...)
				from = i + 1
			}
			i += size
			continue
		}
		if c < 0x20 || c == '"' || c == '\\' {
			b = append(append(b, s[from:i]...), escapeOf(c)...)
			from = i + 1
		}
		i++
	}
	return append(append(b, s[from:]...), '"')
}

func escapeOf(c byte) string {
	if k := strings.IndexByte("\"\\\b\f\n\r\t", c); k >= 0 {
		return `\` + string(`"\bfnrt`[k])
	}
	return fmt.Sprintf(`\u%04x`, c)
}

// Normalize converts a Go value that encoding/json can encode to the types that [Decode] returns. A value that has only
// these types is returned as it is, without a copy.
func Normalize(v any) (any, error) {
	if isNormal(v) {
		return v, nil
	}
	data, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("the value cannot be encoded as JSON: %w", err)
	}
	return Decode(data, Limits{Bytes: math.MaxInt, Depth: 1000})
}

func isNormal(v any) bool {
	switch v := v.(type) {
	case nil, bool, string, json.Number:
		return true
	case []any:
		return !slices.ContainsFunc(v, func(item any) bool { return !isNormal(item) })
	case map[string]any:
		for _, item := range v {
			if !isNormal(item) {
				return false
			}
		}
		return true
	}
	return false
}

// shortLength is the number of characters of a text that a message shows.
const shortLength = 60

// Shorten returns the first 60 characters of s, with an ellipsis where it cut something off.
func Shorten(s string) string {
	if len(s) <= shortLength || utf8.RuneCountInString(s) <= shortLength {
		return s
	}
	return string([]rune(s[:min(len(s), utf8.UTFMax*shortLength)])[:shortLength]) + "…"
}

// QuoteShort returns s as a JSON string, shortened as [Shorten] does, for messages.
func QuoteShort(s string) string { return string(AppendString(nil, Shorten(s))) }

// WithoutNumbers returns a JSON text without the digits of its numbers.
func WithoutNumbers(text []byte) []byte {
	out, quoted := make([]byte, 0, len(text)), false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quoted && c == '\\' && i+1 < len(text):
			out = append(out, c)
			i++
		case c == '"':
			quoted = !quoted
		case !quoted && c >= '0' && c <= '9':
			continue
		}
		out = append(out, text[i])
	}
	return out
}
