package jsontext

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Marshal writes a decoded value as compact JSON: keys sorted, numbers as they were read, nothing escaped that need not
// be. The same value always gives the same bytes.
func Marshal(v any) []byte { return Append(nil, v) }

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
		for i, k := range sortedKeys(v) {
			if i > 0 {
				b = append(b, ',')
			}
			b = append(AppendString(b, k), ':')
			b = Append(b, v[k])
		}
		return append(b, '}')
	default: // not from Decode
		c, err := Normalize(v)
		if err != nil {
			return append(b, "null"...)
		}
		return Append(b, c)
	}
}

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

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// Normalize turns a Go value into what Decode would have read: the callers' literals may hold ints, floats and []string.
// A value that already is plain is returned as it stands, without a copy.
func Normalize(v any) (any, error) {
	if isNormal(v) {
		return v, nil
	}
	data, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("schema: a value that is no JSON: %w", err)
	}
	return Decode(data, Limits{Bytes: math.MaxInt, Depth: 1000})
}

func isNormal(v any) bool {
	switch v := v.(type) {
	case nil, bool, string, json.Number:
		return true
	case []any:
		for _, item := range v {
			if !isNormal(item) {
				return false
			}
		}
		return true
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

// shortLength is how many characters of a text a message shows.
const shortLength = 60

// Shorten cuts a text to 60 characters and ends it with an ellipsis where it did.
func Shorten(s string) string {
	if len(s) <= shortLength || utf8.RuneCountInString(s) <= shortLength {
		return s
	}
	count := 0
	for i := range s {
		if count == shortLength {
			return s[:i] + "…"
		}
		count++
	}
	return s
}

// QuoteShort writes a text as a JSON string, shortened, for messages.
func QuoteShort(s string) string { return string(AppendString(nil, Shorten(s))) }
