package jsontext

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strconv"
	"strings"
	"sync"
)

// AppendTyped appends the JSON of a Go value to b, as [json.Encoder] writes it without escapes for HTML and JavaScript,
// for a process that writes each type once; see [Unmarshal]. The tag option string has no effect, and a value must not
// contain itself.
func AppendTyped(b []byte, v any) ([]byte, error) {
	return appendValue(b, reflect.ValueOf(v))
}

func appendValue(b []byte, v reflect.Value) ([]byte, error) {
	if !v.IsValid() {
		return append(b, "null"...), nil
	}
	s := shapeOf(v.Type())
	if s.writes {
		return appendAny(b, v)
	}
	switch kind := v.Kind(); kind {
	case reflect.Struct:
		return appendStruct(b, v, s.fields)
	case reflect.Pointer, reflect.Interface:
		return appendValue(b, v.Elem())
	case reflect.Map, reflect.Slice:
		if v.IsNil() {
			return append(b, "null"...), nil
		}
		if kind == reflect.Slice && v.Type().Elem().Kind() != reflect.Uint8 {
			return appendArray(b, v)
		}
	case reflect.String:
		if v.Type() != number {
			return AppendString(b, v.String()), nil
		}
	case reflect.Bool:
		return strconv.AppendBool(b, v.Bool()), nil
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return strconv.AppendInt(b, v.Int(), 10), nil
	}
	return appendAny(b, v)
}

var number = reflect.TypeFor[json.Number]()

// appendAny uses encoding/json for what needs few tables there: other numbers, bytes, maps, and types that write
// their own JSON.
func appendAny(b []byte, v reflect.Value) ([]byte, error) {
	if v.CanAddr() {
		v = v.Addr() // for methods of pointers
	}
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	if err := e.Encode(v.Interface()); err != nil {
		return nil, err
	}
	raw := bytes.TrimSuffix(text.Bytes(), []byte("\n"))
	if bytes.Contains(raw, []byte(`\u202`)) {
		return append(b, separators().Replace(string(raw))...), nil
	}
	return append(b, raw...), nil
}

// separators replaces the escapes of U+2028 and U+2029, which encoding/json always writes. An escaped backslash is a
// match of its own: the u after it begins no escape.
var separators = sync.OnceValue(func() *strings.Replacer {
	return strings.NewReplacer(`\\`, `\\`, `\u2028`, "\u2028", `\u2029`, "\u2029")
})

func appendStruct(b []byte, v reflect.Value, fields []field) (_ []byte, err error) {
	b = append(b, '{')
	start := len(b)
	for _, f := range fields {
		value, ok := f.of(v, false)
		if !ok || f.omitEmpty && isEmpty(value) || f.omitZero && isZero(value) {
			continue
		}
		if len(b) > start {
			b = append(b, ',')
		}
		b = append(append(b, f.key...), ':')
		if b, err = appendValue(b, value); err != nil {
			return nil, err
		}
	}
	return append(b, '}'), nil
}

func appendArray(b []byte, v reflect.Value) (_ []byte, err error) {
	b = append(b, '[')
	for i := range v.Len() {
		if i > 0 {
			b = append(b, ',')
		}
		if b, err = appendValue(b, v.Index(i)); err != nil {
			return nil, err
		}
	}
	return append(b, ']'), nil
}

func isEmpty(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Array, reflect.Map, reflect.Slice, reflect.String:
		return v.Len() == 0
	case reflect.Struct:
		return false
	}
	return v.IsZero()
}

func isZero(v reflect.Value) bool {
	if z, ok := v.Interface().(interface{ IsZero() bool }); ok && (v.Kind() != reflect.Pointer || !v.IsNil()) {
		return z.IsZero()
	}
	return v.IsZero()
}
