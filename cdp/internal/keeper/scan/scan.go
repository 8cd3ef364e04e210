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
	"github.com/parley-tools/parley/manifest/jsontext"
)

var errJSON = errors.New("not a JSON object")

// EachField calls visit for each member of the JSON object in data, in order, with the bytes of its value. It
// copies nothing. It finds the ends of values without validating them, so it is fast on replies of many megabytes,
// and it visits the members before the point where a truncated text ends. Keys must not contain escapes.
func EachField(data []byte, visit func(key, value []byte) error) error {
	s := jsontext.Scan(data)
	if string(s.Next()) != "{" {
		return errJSON
	}
	separator := []byte(",")
	if s.Peek() == '}' {
		separator = s.Next()
	}
	for string(separator) == "," {
		key := s.Next()
		if len(key) < 2 || key[0] != '"' || string(s.Next()) != ":" {
			return fmt.Errorf("%w: expected a key and a value before byte %d", errJSON, s.Offset())
		}
		key = key[1 : len(key)-1]
		value := s.Skip()
		if s.Peek() == 0 {
			return fmt.Errorf("%w: truncated in %q", errJSON, manifest.Clip(string(key), 40))
		}
		if err := visit(key, value); err != nil {
			return err
		}
		separator = s.Next()
	}
	if string(separator) != "}" || s.Peek() != 0 {
		return fmt.Errorf("%w: it does not end before byte %d", errJSON, s.Offset())
	}
	return nil
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
func IsObject(raw json.RawMessage) bool { return jsontext.Scan(raw).Peek() == '{' && json.Valid(raw) }

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
	s := jsontext.Scan(data)
	s.Items(func() { visit(s.Skip()) })
}

// Field returns a value inside a JSON object by the names of the members that lead to it, or nil if there is none.
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
