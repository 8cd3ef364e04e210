package sdk

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
)

// minKept is the size in bytes from which [unmarshal] does not copy a member.
const minKept = 4 << 10

// unmarshal is [json.Unmarshal] for JSON that the host has validated. encoding/json scans a [json.RawMessage] twice and
// copies it; unmarshal makes a large one a part of raw.
func unmarshal(raw []byte, into any) error {
	if whole, ok := into.(*json.RawMessage); ok && len(raw) > 0 {
		*whole = raw
		return nil
	}
	v := reflect.ValueOf(into).Elem()
	if len(raw) < minKept || v.Kind() != reflect.Struct || raw[0] != '{' {
		return json.Unmarshal(raw, into)
	}
	var rest []byte // raw with null in the place of each member that is kept
	kept := map[int]json.RawMessage{}
	from := 0
	for at := 0; raw[at] != '}'; {
		colon := skip(raw, at+1)
		end := skip(raw, colon+1)
		if end == len(raw) {
			return json.Unmarshal(raw, into) // it says what is wrong
		}
		if end-colon > minKept {
			if i := rawField(v.Type(), bytes.TrimSpace(raw[at+1:colon])); i >= 0 {
				kept[i] = raw[colon+1 : end : end]
				rest = append(append(rest, raw[from:colon+1]...), "null"...)
				from = end
			}
		}
		at = end
	}
	if err := json.Unmarshal(append(rest, raw[from:]...), into); err != nil {
		return err
	}
	for i, value := range kept {
		v.Field(i).SetBytes(value)
	}
	return nil
}

// skip returns the index of the comma, colon or closing bracket after the value that begins at raw[at], or len(raw).
func skip(raw []byte, at int) int {
	for depth := 0; at < len(raw); at++ {
		switch raw[at] {
		case '"':
			for at++; at < len(raw) && raw[at] != '"'; at++ {
				if raw[at] == '\\' {
					at++
				}
			}
		case '{', '[':
			depth++
		case '}', ']':
			if depth == 0 {
				return at
			}
			depth--
		case ',', ':':
			if depth == 0 {
				return at
			}
		}
	}
	return len(raw)
}

// rawField returns the index of the field of type [json.RawMessage] with a quoted name, or -1.
func rawField(t reflect.Type, name []byte) int {
	for i := range t.NumField() {
		f := t.Field(i)
		tag, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.IsExported() && f.Type == reflect.TypeFor[json.RawMessage]() && string(name) == `"`+tag+`"` {
			return i
		}
	}
	return -1
}
