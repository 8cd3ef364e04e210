package jsontext

import (
	"cmp"
	"encoding"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"sync"
)

// shape is what [Unmarshal] and [AppendTyped] need to know about a type itself. Unlike the tables of encoding/json,
// it holds nothing about the types of its fields and items.
type shape struct {
	reads, writes bool // the type reads or writes its own JSON
	fields        []field
}

type field struct {
	key                 string // its name in quotes
	index               []int  // as for [reflect.Value.FieldByIndex]
	omitEmpty, omitZero bool
}

// of returns the field of a struct. For a field of an embedded nil pointer, it allocates the pointer's target if
// allocate is set; otherwise ok is false.
func (f *field) of(v reflect.Value, allocate bool) (value reflect.Value, ok bool) {
	for _, i := range f.index {
		if v.Kind() == reflect.Pointer {
			if v.IsNil() && !allocate {
				return v, false
			}
			if v.IsNil() {
				v.Set(reflect.New(v.Type().Elem()))
			}
			v = v.Elem()
		}
		v = v.Field(i)
	}
	return v, true
}

var shapes sync.Map // reflect.Type -> *shape

func shapeOf(t reflect.Type) *shape {
	if known, ok := shapes.Load(t); ok {
		return known.(*shape)
	}
	p := reflect.PointerTo(t)
	s := &shape{
		reads:  implements[json.Unmarshaler](p) || implements[encoding.TextUnmarshaler](p),
		writes: implements[json.Marshaler](p) || implements[encoding.TextMarshaler](p),
	}
	if t.Kind() == reflect.Struct {
		s.fields = fieldsOf(t)
	}
	shapes.Store(t, s)
	return s
}

func implements[I any](t reflect.Type) bool { return t.Implements(reflect.TypeFor[I]()) }

// fieldsOf returns the fields of a struct, including those promoted from embedded structs.
func fieldsOf(t reflect.Type) []field {
	var all []field
	promotes := false
	for i := range t.NumField() {
		f := t.Field(i)
		tag := f.Tag.Get("json")
		name, options, _ := strings.Cut(tag, ",")
		embedded := f.Type
		if embedded.Kind() == reflect.Pointer {
			embedded = embedded.Elem()
		}
		switch {
		case f.Anonymous && name == "" && embedded.Kind() == reflect.Struct:
			promotes = true
			for _, inner := range fieldsOf(embedded) {
				inner.index = append([]int{i}, inner.index...)
				all = append(all, inner)
			}
		case f.IsExported() && tag != "-":
			all = append(all, field{`"` + cmp.Or(name, f.Name) + `"`, []int{i},
				strings.Contains(options, "omitempty"), strings.Contains(options, "omitzero")})
		}
	}
	if !promotes {
		return all
	}
	return slices.DeleteFunc(slices.Clone(all), func(f field) bool {
		return len(f.index) > 1 &&
			slices.ContainsFunc(all, func(o field) bool { return len(o.index) < len(f.index) && o.key == f.key })
	})
}
