// Package scan finds values in JSON without decoding it. The messages of a browser have many megabytes, and the keeper
// needs a few members of each.
package scan

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"github.com/parley-tools/parley/manifest"
)

var errJSON = errors.New("not a JSON object")

// EachField calls visit for each member of the JSON object in data, in order, with the bytes of its value. It
// copies nothing. It finds the ends of values without validating them, so it is fast on replies of many megabytes,
// and it visits the members before the point where a truncated text ends. Keys must not contain escapes.
func EachField(data []byte, visit func(key, value []byte) error) error {
	i := skipSpace(data, 0)
	if i >= len(data) || data[i] != '{' {
		return errJSON
	}
	i = skipSpace(data, i+1)
	if i < len(data) && data[i] == '}' {
		return checkEnd(data, i+1)
	}
	for {
		if i >= len(data) || data[i] != '"' {
			return fmt.Errorf("%w: expected a key at byte %d", errJSON, i)
		}
		end := skipString(data, i)
		if end < 0 {
			return fmt.Errorf("%w: truncated in a key", errJSON)
		}
		key := data[i+1 : end-1]
		i = skipSpace(data, end)
		if i >= len(data) || data[i] != ':' {
			return fmt.Errorf("%w: expected a value at byte %d", errJSON, i)
		}
		i = skipSpace(data, i+1)
		end = skipValue(data, i)
		if end <= i {
			return fmt.Errorf("%w: truncated in %q", errJSON, manifest.Clip(string(key), 40))
		}
		if err := visit(key, data[i:end]); err != nil {
			return err
		}
		i = skipSpace(data, end)
		if i >= len(data) {
			return fmt.Errorf("%w: truncated after %q", errJSON, manifest.Clip(string(key), 40))
		}
		switch data[i] {
		case ',':
			i = skipSpace(data, i+1)
		case '}':
			return checkEnd(data, i+1)
		default:
			return fmt.Errorf("%w: unexpected byte at %d", errJSON, i)
		}
	}
}

func checkEnd(data []byte, i int) error {
	if skipSpace(data, i) != len(data) {
		return fmt.Errorf("%w: data after the object", errJSON)
	}
	return nil
}

func skipSpace(data []byte, i int) int {
	for i < len(data) && (data[i] == ' ' || data[i] == '\n' || data[i] == '\t' || data[i] == '\r') {
		i++
	}
	return i
}

// skipString returns the index after the string that starts at i, or -1.
func skipString(data []byte, i int) int {
	for i++; i < len(data); {
		next := bytes.IndexByte(data[i:], '"')
		if next < 0 {
			return -1
		}
		quote := i + next
		slashes := 0
		for quote-1-slashes >= i && data[quote-1-slashes] == '\\' {
			slashes++
		}
		i = quote + 1
		if slashes%2 == 0 {
			return i
		}
	}
	return -1
}

// skipValue returns the index after the value that starts at i, or -1.
func skipValue(data []byte, i int) int {
	if i >= len(data) {
		return -1
	}
	switch data[i] {
	case '"':
		return skipString(data, i)
	case '{', '[':
		depth := 0
		for i < len(data) {
			switch data[i] {
			case '{', '[':
				depth++
			case '}', ']':
				if depth--; depth == 0 {
					return i + 1
				}
			case '"':
				if i = skipString(data, i); i < 0 {
					return -1
				}
				continue
			}
			i++
		}
		return -1
	default:
		for i < len(data) && data[i] != ',' && data[i] != '}' && data[i] != ']' && data[i] > ' ' {
			i++
		}
		return i
	}
}

// String decodes a JSON string. Almost all strings have no escapes and are copied as they are.
func String(value []byte) (s string, err error) {
	if n := len(value); n >= 2 && value[0] == '"' && bytes.IndexByte(value, '\\') < 0 {
		return string(value[1 : n-1]), nil
	}
	err = json.Unmarshal(value, &s)
	return s, err
}

// IsObject reports whether raw is a valid JSON object.
func IsObject(raw json.RawMessage) bool {
	i := skipSpace(raw, 0)
	return i < len(raw) && raw[i] == '{' && json.Valid(raw)
}

// Quote returns s as a JSON string.
func Quote(s string) []byte {
	b, _ := manifest.Marshal(s) // marshalling a string cannot fail
	return b
}

// Marshal marshals a value of this package's own types.
func Marshal(v any) json.RawMessage {
	b, err := manifest.Marshal(v)
	if err != nil {
		return json.RawMessage("null")
	}
	return b
}

// EachElement is EachField for the elements of a JSON array.
func EachElement(data []byte, visit func(element []byte)) {
	for i := skipSpace(data, 1); i < len(data) && data[i] != ']'; {
		end := skipValue(data, i)
		if end <= i {
			return
		}
		visit(data[i:end])
		if i = skipSpace(data, end); i < len(data) && data[i] == ',' {
			i = skipSpace(data, i+1)
		}
	}
}

// Field returns a value inside a JSON object by the names that lead to it, nil if there is none.
func Field(raw json.RawMessage, path ...string) (found json.RawMessage) {
	found = raw
	for _, name := range path {
		object := found
		found = nil
		EachField(object, func(key, value []byte) error {
			if string(key) != name {
				return nil
			}
			found = value
			return errFound
		})
		if found == nil {
			return nil
		}
	}
	return found
}

var errFound = errors.New("found")

// Text returns a string inside a JSON object, "" if there is none.
func Text(raw json.RawMessage, path ...string) string {
	if value := Field(raw, path...); len(value) > 0 && value[0] == '"' {
		s, _ := String(value)
		return s
	}
	return ""
}

// Number returns an integer inside a JSON object, 0 if there is none.
func Number(raw json.RawMessage, path ...string) int {
	n, _ := strconv.Atoi(string(Field(raw, path...)))
	return n
}
