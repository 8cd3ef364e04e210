package keeper

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"github.com/parley-tools/parley/manifest"
)

var errJSON = errors.New("not a JSON object")

// eachField calls visit for each member of the JSON object in data, in order, with the
// bytes of its value, and copies nothing. It finds the ends of values without
// judging what is within, so it is fast on replies of many megabytes, and it visits
// what comes before the place where a text was cut off. Keys must be plain.
func eachField(data []byte, visit func(key, value []byte) error) error {
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
			return fmt.Errorf("%w: no key at byte %d", errJSON, i)
		}
		end := skipString(data, i)
		if end < 0 {
			return fmt.Errorf("%w: cut off in a key", errJSON)
		}
		key := data[i+1 : end-1]
		i = skipSpace(data, end)
		if i >= len(data) || data[i] != ':' {
			return fmt.Errorf("%w: no value at byte %d", errJSON, i)
		}
		i = skipSpace(data, i+1)
		end = skipValue(data, i)
		if end <= i {
			return fmt.Errorf("%w: cut off in %q", errJSON, manifest.Clip(string(key), 40))
		}
		if err := visit(key, data[i:end]); err != nil {
			return err
		}
		i = skipSpace(data, end)
		if i >= len(data) {
			return fmt.Errorf("%w: cut off after %q", errJSON, manifest.Clip(string(key), 40))
		}
		switch data[i] {
		case ',':
			i = skipSpace(data, i+1)
		case '}':
			return checkEnd(data, i+1)
		default:
			return fmt.Errorf("%w: byte %d", errJSON, i)
		}
	}
}

func checkEnd(data []byte, i int) error {
	if skipSpace(data, i) != len(data) {
		return fmt.Errorf("%w: something follows it", errJSON)
	}
	return nil
}

func skipSpace(data []byte, i int) int {
	for i < len(data) && (data[i] == ' ' || data[i] == '\n' || data[i] == '\t' || data[i] == '\r') {
		i++
	}
	return i
}

// skipString answers the index behind the string that starts at i, or -1.
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

// skipValue answers the index behind the value that starts at i, or -1.
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

// parseString reads a JSON string. One without escapes, as nearly all are, is taken as it is.
func parseString(value []byte) (s string, err error) {
	if n := len(value); n >= 2 && value[0] == '"' && bytes.IndexByte(value, '\\') < 0 {
		return string(value[1 : n-1]), nil
	}
	err = json.Unmarshal(value, &s)
	return s, err
}

// isObject reports whether raw is one valid JSON object.
func isObject(raw json.RawMessage) bool {
	i := skipSpace(raw, 0)
	return i < len(raw) && raw[i] == '{' && json.Valid(raw)
}

// quote is s as a JSON string.
func quote(s string) []byte {
	b, _ := json.Marshal(s) // a string always can be
	return b
}

// mustJSON marshals a value of our own types.
func mustJSON(v any) json.RawMessage {
	b, err := json.Marshal(v)
	if err != nil {
		return json.RawMessage("null")
	}
	return b
}

func itoa(n int) string { return strconv.Itoa(n) }
