package jsontext

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"strconv"
	"strings"
)

// Unmarshal reads a JSON text into what to points at, as [json.Unmarshal] does, for a process that reads each type
// once: json.Unmarshal first makes tables and an encoder for every type that the text may have, which takes longer than
// to read most texts. Differences: the names of fields match exactly, the tag option string has no effect, and a
// repeated array does not keep what the first one had.
func Unmarshal(data []byte, to any) error {
	if !json.Valid(data) {
		return json.Unmarshal(data, to) // for its error
	}
	return UnmarshalValid(data, to)
}

// UnmarshalValid is [Unmarshal] for a text that is known to be valid, which takes half the time. Parts of an invalid
// text may be read without an error.
func UnmarshalValid(data []byte, to any) error {
	r := reader{Scanner: Scan(data)}
	r.value(reflect.ValueOf(to).Elem())
	return r.err
}

type reader struct {
	*Scanner
	err error // the first one
}

func (r *reader) value(v reflect.Value) {
	s, c := shapeOf(v.Type()), r.Peek()
	switch {
	case s.reads:
	case v.Kind() == reflect.Struct && c == '{':
		r.object(v, s.fields)
		return
	case v.Kind() == reflect.Slice && c == '[':
		r.array(v)
		return
	case v.Kind() == reflect.Pointer && c != 'n':
		if v.IsNil() {
			v.Set(reflect.New(v.Type().Elem()))
		}
		r.value(v.Elem())
		return
	case v.Kind() == reflect.Bool && (c == 't' || c == 'f'):
		v.SetBool(c == 't')
		r.Next()
		return
	case v.Kind() == reflect.String && v.Type() != number && c == '"':
		text, _ := Unquote(r.Next())
		v.SetString(text)
		return
	}
	text := r.Skip()
	if !s.reads && v.CanInt() {
		if n, err := strconv.ParseInt(string(text), 10, 64); err == nil && !v.OverflowInt(n) {
			v.SetInt(n)
			return
		}
	}
	if err := unmarshalAny(text, v.Addr().Interface()); r.err == nil {
		r.err = err
	}
}

// unmarshalAny uses encoding/json for what needs few tables there: other numbers, maps, and types that read their own
// JSON.
func unmarshalAny(text []byte, to any) error {
	if u, ok := to.(json.Unmarshaler); ok {
		return u.UnmarshalJSON(text)
	}
	return json.Unmarshal(text, to)
}

func (r *reader) object(v reflect.Value, fields []field) {
	r.Members(func(key []byte) {
		if bytes.IndexByte(key, '\\') > 0 {
			name, _ := Unquote(key)
			key = AppendString(nil, name)
		}
		for _, f := range fields {
			if f.key == string(key) {
				value, _ := f.of(v, true)
				r.field(value, key)
				return
			}
		}
		r.Skip()
	})
}

func (r *reader) field(v reflect.Value, key []byte) {
	before := r.err
	r.value(v)
	if mismatch := (*json.UnmarshalTypeError)(nil); before == nil && errors.As(r.err, &mismatch) {
		name, _ := Unquote(key)
		mismatch.Field = strings.TrimSuffix(name+"."+mismatch.Field, ".")
	}
}

func (r *reader) array(v reflect.Value) {
	n := 0
	r.Items(func() {
		if n == v.Cap() {
			v.Grow(1)
		}
		v.SetLen(n + 1)
		v.Index(n).SetZero()
		r.value(v.Index(n))
		n++
	})
	v.SetLen(n)
	if n == 0 {
		v.Set(reflect.MakeSlice(v.Type(), 0, 0))
	}
}
