package schema

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/parley-tools/parley/manifest/jsontext"
)

// ratOf returns the exact value of a number that Decode accepts, nil for any other text.
func ratOf(n json.Number) *big.Rat {
	if !jsontext.ValidNumber(string(n)) {
		return nil
	}
	r, _ := new(big.Rat).SetString(string(n))
	return r
}

// isFinite reports whether a float64 can hold the value of n approximately. The decoders of most languages require
// that of a number.
func isFinite(n json.Number) bool {
	if len(n) < 300 && !strings.ContainsAny(string(n), "eE") {
		return true
	}
	_, err := n.Float64()
	return err == nil
}

// kindOf returns the types of v: one type, or number and integer for an integer within the range of a float64.
func kindOf(v any) kinds {
	switch v := v.(type) {
	case nil:
		return kindNull
	case bool:
		return kindBoolean
	case string:
		return kindString
	case json.Number:
		switch _, isInteger := jsontext.Integer(string(v)); {
		case !isInteger:
			return kindNumber
		case !isFinite(v):
			return kindInteger
		}
		return kindInteger | kindNumber
	case []any:
		return kindArray
	default:
		return kindObject
	}
}

// equal compares values as JSON Schema does: numbers by value, objects regardless of order.
func equal(a, b any) bool {
	switch a := a.(type) {
	case json.Number:
		b, ok := b.(json.Number)
		if !ok || a == b {
			return ok
		}
		ra, rb := ratOf(a), ratOf(b)
		return ra != nil && rb != nil && ra.Cmp(rb) == 0
	case []any, map[string]any:
		return identityOf(a) == identityOf(b)
	}
	return a == b
}

// identityOf returns the same text for equal values, and different texts for different values.
func identityOf(v any) string {
	return string(jsontext.Marshal(copyWith(v, func(n json.Number) json.Number {
		if r := ratOf(n); r != nil && strings.ContainsAny(string(n), ".eE-") {
			return json.Number(r.RatString())
		}
		return n
	})))
}

// render describes a value with its type in a few words.
func render(v any) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean " + strconv.FormatBool(v)
	case json.Number:
		if !isFinite(v) {
			return "number " + jsontext.Shorten(string(v)) + ", which is out of the range of a float64"
		}
		return "number " + jsontext.Shorten(string(v))
	case string:
		return "string " + jsontext.QuoteShort(v)
	case []any:
		return fmt.Sprintf("array[%d]", len(v))
	default:
		return "object"
	}
}

// literal returns a value as JSON, shortened if it is long.
func literal(v any) string {
	if s, ok := v.(string); ok {
		return jsontext.QuoteShort(s)
	}
	return jsontext.Shorten(string(jsontext.Marshal(v)))
}

// deepCopy returns a deep copy of a decoded value.
func deepCopy(v any) any { return copyWith(v, func(n json.Number) json.Number { return n }) }

// copyWith returns a deep copy of a decoded value in which each number is what the function returns for it.
func copyWith(v any, number func(json.Number) json.Number) any {
	switch v := v.(type) {
	case json.Number:
		return number(v)
	case []any:
		c := make([]any, len(v))
		for i, x := range v {
			c[i] = copyWith(x, number)
		}
		return c
	case map[string]any:
		c := make(map[string]any, len(v))
		for k, x := range v {
			c[k] = copyWith(x, number)
		}
		return c
	}
	return v
}

func sortedKeys[V any](m map[string]V) []string {
	keys := slices.AppendSeq(make([]string, 0, len(m)), maps.Keys(m))
	slices.Sort(keys)
	return keys
}

// Resolve follows the local references of a decoded schema in its document. It returns nil if the result is not an
// object. seen has the references followed so far, so that a schema that refers to itself ends.
func Resolve(root, v any, seen []string) (map[string]any, []string) {
	for {
		s, ok := v.(map[string]any)
		if !ok {
			return nil, seen
		}
		ref, ok := s["$ref"].(string)
		if !ok {
			return s, seen
		}
		tokens, ok := jsontext.SplitPointer(strings.TrimPrefix(ref, "#"))
		if !ok || slices.Contains(seen, ref) {
			return nil, seen
		}
		target, ok := jsontext.Lookup(root, tokens)
		if !ok {
			return nil, seen
		}
		if own, described := s["description"].(string); described {
			if t, ok := target.(map[string]any); ok && t["$ref"] == nil {
				merged := maps.Clone(t)
				merged["description"] = own
				target = merged
			}
		}
		seen = append(slices.Clone(seen), ref)
		v = target
	}
}
