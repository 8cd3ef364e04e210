package jsontext

import (
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Pointer joins reference tokens to a JSON pointer (RFC 6901). No tokens give "", the whole document.
func Pointer(tokens []string) string {
	var b strings.Builder
	for _, t := range tokens {
		b.WriteByte('/')
		b.WriteString(EscapeToken(t))
	}
	return b.String()
}

// EscapeToken writes a name as a reference token of a JSON pointer.
func EscapeToken(t string) string {
	if !strings.ContainsAny(t, "~/") {
		return t
	}
	return strings.ReplaceAll(strings.ReplaceAll(t, "~", "~0"), "/", "~1")
}

// UnescapeToken returns the name that a reference token stands for.
func UnescapeToken(t string) string {
	return strings.ReplaceAll(strings.ReplaceAll(t, "~1", "/"), "~0", "~")
}

// SplitPointer returns the names in a JSON pointer. ok is false if p is not a JSON pointer.
func SplitPointer(p string) (tokens []string, ok bool) {
	if p == "" {
		return nil, true
	}
	if p[0] != '/' {
		return nil, false
	}
	tokens = strings.Split(p[1:], "/")
	for i, t := range tokens {
		tokens[i] = UnescapeToken(t)
	}
	return tokens, true
}

// Values visits a decoded value and all values inside it, members in the order of their names. The visitor gets the
// reference tokens that lead to each value, and must not keep them.
func Values(v any, visit func(tokens []string, v any)) { values(v, nil, visit) }

func values(v any, at []string, visit func([]string, any)) {
	visit(at, v)
	switch v := v.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			values(v[name], append(at, name), visit)
		}
	case []any:
		for i, item := range v {
			values(item, append(at, strconv.Itoa(i)), visit)
		}
	}
}

// Lookup returns the value that reference tokens lead to in a decoded value.
func Lookup(v any, tokens []string) (any, bool) {
	for _, t := range tokens {
		switch x := v.(type) {
		case map[string]any:
			next, ok := x[t]
			if !ok {
				return nil, false
			}
			v = next
		case []any:
			i, err := strconv.Atoi(t)
			if err != nil || i < 0 || i >= len(x) || strconv.Itoa(i) != t {
				return nil, false
			}
			v = x[i]
		default:
			return nil, false
		}
	}
	return v, true
}

// IsWithin reports whether a JSON pointer leads to the value at another one, or into it.
func IsWithin(pointer, other string) bool {
	return pointer == other || strings.HasPrefix(pointer, other+"/")
}

// LastName returns the last reference token of a JSON pointer.
func LastName(pointer string) string {
	return UnescapeToken(pointer[strings.LastIndexByte(pointer, '/')+1:])
}
