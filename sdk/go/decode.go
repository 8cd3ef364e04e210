package sdk

import (
	"bytes"
	"cmp"
	"encoding"
	"encoding/json"
	"reflect"
	"strconv"
	"strings"
)

// decodeParams decodes parameters that the host has validated by the schema of their type. What it still refuses is an
// invalid parameter: a text that an UnmarshalText rejects, or in an any a number that no float64 is near to.
func decodeParams(raw json.RawMessage, into any) error {
	if raw = bytes.TrimSpace(raw); len(raw) == 0 {
		raw = json.RawMessage("{}")
	}
	err := unmarshal(raw, into)
	if err == nil || !json.Valid(raw) {
		return err
	}
	return cmp.Or(refused(raw, reflect.TypeOf(into).Elem(), ""), err)
}

// refused returns the error for the first value within raw that cannot be decoded into its part of t, nil if there is
// none. Of the errors of encoding/json, only some say where it is.
func refused(raw json.RawMessage, t reflect.Type, pointer string) error {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	v := reflect.New(t).Interface()
	err := json.Unmarshal(raw, v)
	if err == nil {
		return nil
	}
	switch v.(type) {
	case json.Unmarshaler, encoding.TextUnmarshaler: // the parts are its own
	default:
		names, values := parts(raw)
		for i, name := range names {
			of := partType(t, name, raw[0] == '[')
			if of == nil {
				continue
			}
			if err := refused(values[i], of, pointer+"/"+escapes.Replace(name)); err != nil {
				return err
			}
		}
	}
	want := t.String() + ": " + shorten(err.Error())
	if mismatch, ok := err.(*json.UnmarshalTypeError); ok {
		want = mismatch.Type.String()
	}
	return Invalid(pointer, "a value that fits "+want, provided(raw), "")
}

// escapes escapes a token of a JSON pointer.
var escapes = strings.NewReplacer("~", "~0", "/", "~1")

// parts returns the elements of a list with their indices, or the members of an object with their names. It needs
// no sort of names, which makes each plugin larger by 25 KB.
func parts(raw []byte) (names []string, values []json.RawMessage) {
	isWhole := raw[0] != '[' && raw[0] != '{'
	if isWhole || len(bytes.TrimSpace(raw[1:len(raw)-1])) == 0 {
		return nil, nil
	}
	for at := 0; at < len(raw)-1; {
		name := strconv.Itoa(len(names))
		if raw[0] == '{' {
			colon := skip(raw, at+1)
			_ = json.Unmarshal(raw[at+1:colon], &name)
			at = colon
		}
		end := skip(raw, at+1)
		names, values = append(names, name), append(values, bytes.TrimSpace(raw[at+1:end]))
		at = end
	}
	return names, values
}

// partType returns the type of a part of a list or an object, nil for one that is not decoded.
func partType(t reflect.Type, name string, isList bool) reflect.Type {
	switch kind := t.Kind(); {
	case kind == reflect.Interface:
		return t
	case isList && (kind == reflect.Slice || kind == reflect.Array), !isList && kind == reflect.Map:
		return t.Elem()
	case !isList && kind == reflect.Struct:
		for _, f := range reflect.VisibleFields(t) {
			tag, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			if f.IsExported() && cmp.Or(tag, f.Name) == name {
				return f.Type
			}
		}
	}
	return nil
}

// provided says what was given, in the words of the host.
func provided(raw json.RawMessage) string {
	kind := "number "
	switch raw[0] {
	case '{':
		return "object"
	case '[':
		return "array"
	case '"':
		kind = "string "
	case 't', 'f':
		kind = "boolean "
	case 'n':
		kind = ""
	}
	return kind + shorten(string(raw))
}

// shorten returns at most the first 100 bytes of a text.
func shorten(text string) string {
	const most = 100
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "..."
}

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
