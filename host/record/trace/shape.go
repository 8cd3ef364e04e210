package trace

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/parley-tools/parley/internal/lists"
	"github.com/parley-tools/parley/manifest"
	"github.com/parley-tools/parley/manifest/jsontext"
)

// Limits of a shape.
const (
	maxParams   = 64  // parameters
	maxKeys     = 16  // keys of a nested object
	maxKeyBytes = 64  // bytes of a name
	maxShape    = 256 // bytes of one parameter's shape
	maxUnion    = 3   // different shapes of an array's elements
	maxNesting  = 8   // depth of nested values
)

// Shapes describes parameters without their values, as an object with the shape of each parameter:
//
//	"null"  "boolean"  "integer"  "number"  "string(19)"  "enum(sha256)"  "object{a,b}"
//	"array[0]"  "array[2]<string(3..19)>"  "array[2]<enum(a|b)>"  "array[3]<integer|null>"
//
// Members are the values that the schema lists in an enum, by parameter: they are words of the schema, not of the
// caller. The number of a string is its length in characters. Names of parameters and keys are included, cleaned and
// cut. If params is not an object, the result is one shape as a JSON string; if it is not JSON, it is "invalid(N)" with
// the length in bytes.
func Shapes(params json.RawMessage, members map[string][]string) json.RawMessage {
	data := bytes.TrimSpace(params)
	if !json.Valid(data) {
		return jsontext.Marshal(fmt.Sprintf("invalid(%d)", len(params)))
	}
	s := scanner{jsontext.Scan(data)}
	if data[0] != '{' {
		return jsontext.Marshal(manifest.Clip(s.value(0).String(), maxShape))
	}
	var b bytes.Buffer
	b.WriteByte('{')
	n := 0
	s.Members(func(raw []byte) {
		key := keyName(raw)
		shape := withMembers(s.value(1), members[key])
		if n < maxParams {
			if n > 0 {
				b.WriteByte(',')
			}
			b.Write(jsontext.Marshal(key))
			b.WriteByte(':')
			b.Write(jsontext.Marshal(manifest.Clip(shape.String(), maxShape)))
		}
		n++
	})
	if n > maxParams {
		fmt.Fprintf(&b, `,"…":"%d more"`, n-maxParams)
	}
	b.WriteByte('}')
	return b.Bytes()
}

// shape is the shape of a value: a kind and, for strings, the least and the greatest length.
type shape struct {
	kind     string // "string", or the whole text of the shape
	min, max int
}

func (s shape) String() string {
	switch {
	case s.kind != "string":
		return s.kind
	case s.min == s.max:
		return fmt.Sprintf("string(%d)", s.min)
	}
	return fmt.Sprintf("string(%d..%d)", s.min, s.max)
}

// withMembers replaces strings in a shape by the enum members that they equal.
func withMembers(s shape, members []string) shape {
	of := "enum(" + strings.Join(members, "|") + ")"
	switch {
	case len(members) == 0:
	case s.kind == "string":
		return shape{kind: of}
	case strings.HasPrefix(s.kind, "array[") && strings.Contains(s.kind, "<string("):
		return shape{kind: s.kind[:strings.IndexByte(s.kind, '<')] + "<" + of + ">"}
	}
	return s
}

// scanner finds the shapes of a valid JSON text.
type scanner struct{ *jsontext.Scanner }

func (s *scanner) value(depth int) shape {
	switch s.Peek() {
	case '{':
		return s.objectShape(depth)
	case '[':
		return s.arrayShape(depth)
	}
	switch token := s.Next(); token[0] {
	case '"':
		text, _ := jsontext.Unquote(token)
		n := utf8.RuneCountInString(text) // a pair of surrogate escapes is one character
		return shape{"string", n, n}
	case 't', 'f':
		return shape{kind: "boolean"}
	case 'n':
		return shape{kind: "null"}
	default:
		return shape{kind: numberKind(token)}
	}
}

func (s *scanner) objectShape(depth int) shape {
	var keys []string
	n := 0
	s.Members(func(raw []byte) {
		if n < maxKeys {
			keys = append(keys, keyName(raw))
		}
		n++
		s.value(depth + 1)
	})
	if depth >= maxNesting {
		return shape{kind: "object"}
	}
	if n > maxKeys {
		keys = append(keys, fmt.Sprintf("+%d", n-maxKeys))
	}
	return shape{kind: manifest.Clip("object{"+strings.Join(keys, ",")+"}", maxShape)}
}

func (s *scanner) arrayShape(depth int) shape {
	var kinds []shape
	n, overflow := 0, false
	s.Items(func() {
		overflow = !mergeShape(&kinds, s.value(depth+1)) || overflow
		n++
	})
	if n == 0 || depth >= maxNesting {
		return shape{kind: fmt.Sprintf("array[%d]", n)}
	}
	texts := lists.Map(kinds, shape.String)
	if overflow {
		texts = append(texts, "…")
	}
	return shape{kind: manifest.Clip(fmt.Sprintf("array[%d]<%s>", n, strings.Join(texts, "|")), maxShape)}
}

// mergeShape adds a shape to the shapes of an array's elements; false if there are too many different ones.
func mergeShape(kinds *[]shape, s shape) bool {
	i := slices.IndexFunc(*kinds, func(k shape) bool { return k.kind == s.kind })
	if i >= 0 {
		(*kinds)[i].min = min((*kinds)[i].min, s.min)
		(*kinds)[i].max = max((*kinds)[i].max, s.max)
		return true
	}
	if len(*kinds) == maxUnion {
		return false
	}
	*kinds = append(*kinds, s)
	return true
}

// keyName returns a key cleaned, cut and on one line.
func keyName(raw []byte) string {
	if len(raw) > 16*maxKeyBytes { // decode only its beginning
		return manifest.Clip(manifest.CleanLine(strings.ToValidUTF8(string(raw[1:2*maxKeyBytes]), "")), maxKeyBytes)
	}
	key, ok := jsontext.Unquote(raw)
	if !ok {
		return "?"
	}
	return manifest.Clip(manifest.CleanLine(key), maxKeyBytes)
}

// numberKind follows JSON Schema: 1.0 and 1e3 are integers.
func numberKind(text []byte) string {
	if !bytes.ContainsAny(text, ".eE") {
		return "integer"
	}
	if f, err := strconv.ParseFloat(string(text), 64); err == nil && f == math.Trunc(f) {
		return "integer"
	}
	return "number"
}
