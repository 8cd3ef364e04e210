//go:build !wasip1

package sdk

import (
	"bytes"
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/big"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// schema is a JSON Schema (2020-12) whose properties keep the order of the fields.
type schema struct {
	Ref                  string             `json:"$ref,omitempty"`
	Type                 string             `json:"type,omitempty"`
	Description          string             `json:"description,omitempty"`
	Properties           properties         `json:"properties,omitzero"`
	Required             []string           `json:"required,omitempty"`
	AdditionalProperties any                `json:"additionalProperties,omitempty"`
	Items                *schema            `json:"items,omitempty"`
	Enum                 []json.RawMessage  `json:"enum,omitempty"`
	Default              json.RawMessage    `json:"default,omitempty"`
	Examples             []json.RawMessage  `json:"examples,omitempty"`
	Minimum              json.Number        `json:"minimum,omitempty"`
	Maximum              json.Number        `json:"maximum,omitempty"`
	MinLength            json.Number        `json:"minLength,omitempty"`
	MaxLength            json.Number        `json:"maxLength,omitempty"`
	Pattern              string             `json:"pattern,omitempty"`
	Format               string             `json:"format,omitempty"`
	MinItems             json.Number        `json:"minItems,omitempty"`
	MaxItems             json.Number        `json:"maxItems,omitempty"`
	ContentEncoding      string             `json:"contentEncoding,omitempty"`
	From                 []string           `json:"x-from,omitempty"` // tools that return the value
	ContentMediaType     string             `json:"contentMediaType,omitempty"`
	Aliases              []string           `json:"x-aliases,omitempty"`
	Untrusted            any                `json:"x-untrusted,omitempty"` // true or "long"
	Handed               bool               `json:"x-handed,omitempty"`
	Assert               bool               `json:"x-assert,omitempty"` // the host checks format and contentEncoding
	Defs                 map[string]*schema `json:"$defs,omitempty"`
}

// properties is an ordered object of schemas; nil is absent, empty is {}.
type properties []property

type property struct {
	name string
	*schema
}

func (p properties) IsZero() bool { return p == nil }

func (p properties) MarshalJSON() ([]byte, error) {
	var members [][]byte
	for _, one := range p {
		name, err := encode(one.name)
		if err != nil {
			return nil, err
		}
		value, err := encode(one.schema)
		if err != nil {
			return nil, err
		}
		members = append(members, slices.Concat(name, []byte(":"), value))
	}
	return slices.Concat([]byte("{"), bytes.Join(members, []byte(",")), []byte("}")), nil
}

func (s *schema) property(name string) *schema {
	i := slices.IndexFunc(s.Properties, func(p property) bool { return p.name == name })
	if i < 0 {
		return nil
	}
	return s.Properties[i].schema
}

// withDefaults adds missing defaults to v, a decoded value, as the host does before a call.
func (s *schema) withDefaults(v any) any {
	object, ok := v.(map[string]any)
	if !ok {
		return v
	}
	for _, p := range s.Properties {
		value, given := object[p.name]
		switch {
		case given:
			object[p.name] = p.withDefaults(value)
		case p.Default != nil:
			object[p.name] = p.Default
		}
	}
	return object
}

// reflector turns Go types into schemas.
type reflector struct {
	comments comments
	hints    *builder
	given    bool           // the values come from callers: what the decoder refuses is not valid
	open     []reflect.Type // the structs being described, outermost first
	defs     map[reflect.Type]*schema
}

func newReflector(folder, pkg string, hints *builder) *reflector {
	return &reflector{
		comments: comments{folder: folder, pkg: pkg, byPackage: map[string]map[string]string{}},
		hints:    hints,
		defs:     map[reflect.Type]*schema{},
	}
}

// object describes t, which must be a struct or a map.
func (r *reflector) object(t reflect.Type) (*schema, error) {
	r.given = true
	s, err := r.result(t)
	if err == nil && s.Type != "object" {
		err = fmt.Errorf("%s is not a struct; every parameter is one of its fields", t)
	}
	return s, err
}

// result describes any t, whose values the plugin makes.
func (r *reflector) result(t reflect.Type) (*schema, error) {
	s, err := r.describe(t, t.Name())
	if err != nil {
		return nil, err
	}
	for t, def := range r.defs {
		if s.Defs == nil {
			s.Defs = map[string]*schema{}
		}
		s.Defs[t.Name()] = def
	}
	return s, nil
}

var (
	timeType        = reflect.TypeFor[time.Time]()
	durationType    = reflect.TypeFor[time.Duration]()
	rawType         = reflect.TypeFor[json.RawMessage]()
	numberType      = reflect.TypeFor[json.Number]()
	marshalerType   = reflect.TypeFor[json.Marshaler]()
	decoderType     = reflect.TypeFor[json.Unmarshaler]()
	textType        = reflect.TypeFor[encoding.TextMarshaler]()
	textDecoderType = reflect.TypeFor[encoding.TextUnmarshaler]()
)

// describe returns the schema of t. Path identifies t in the comments, see comments.field.
func (r *reflector) describe(t reflect.Type, path string) (*schema, error) {
	switch {
	case t == rawType:
		return &schema{}, nil
	case t == numberType:
		return &schema{Type: "number"}, nil
	case t == timeType:
		return &schema{Type: "string", Format: "date-time", Assert: r.given}, nil
	case t == durationType:
		return nil, errors.New("time.Duration would become a number of nanoseconds: " +
			"use an integer whose name gives its unit, or a string")
	case t.Kind() == reflect.Pointer:
		return r.describe(t.Elem(), pathOf(t.Elem(), path))
	case r.given && t.Kind() == reflect.Interface && t.NumMethod() > 0:
		return nil, fmt.Errorf("%s is an interface with methods, which nothing is decoded into: use any", t)
	case t.Implements(marshalerType), r.given && reflect.PointerTo(t).Implements(decoderType):
		return nil, fmt.Errorf("%s has a MarshalJSON of its own, so its schema is unknown: use json.RawMessage", t)
	case t.Implements(textType), r.given && reflect.PointerTo(t).Implements(textDecoderType):
		return &schema{Type: "string"}, nil
	}
	switch t.Kind() {
	case reflect.String:
		return &schema{Type: "string"}, nil
	case reflect.Bool:
		return &schema{Type: "boolean"}, nil
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64: // an int has 64 bits in wasm, too
		return r.integer(t, number(int64(-1)<<(t.Bits()-1)), number(int64(1)<<(t.Bits()-1)-1)), nil
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return r.integer(t, "0", json.Number(strconv.FormatUint(math.MaxUint64>>(64-t.Bits()), 10))), nil
	case reflect.Float32:
		s := &schema{Type: "number"}
		if r.given { // these are decoded, though rounded, and what is beyond them is not
			s.Minimum, s.Maximum = "-3.4028235e+38", "3.4028235e+38"
		}
		return s, nil
	case reflect.Float64:
		return &schema{Type: "number"}, nil
	case reflect.Interface:
		return &schema{}, nil
	case reflect.Slice, reflect.Array:
		if t.Elem().Kind() == reflect.Uint8 && t.Kind() == reflect.Slice {
			return &schema{Type: "string", ContentEncoding: "base64", Assert: r.given}, nil
		}
		items, err := r.describe(t.Elem(), pathOf(t.Elem(), path))
		s := &schema{Type: "array", Items: items}
		if t.Kind() == reflect.Array { // the decoder leaves out what is too much, and fills up with zeros
			s.MinItems, s.MaxItems = number(int64(t.Len())), number(int64(t.Len()))
		}
		return s, err
	case reflect.Map:
		if t.Key().Kind() != reflect.String {
			return nil, fmt.Errorf("%s: the keys of a map must be strings", t)
		}
		values, err := r.describe(t.Elem(), pathOf(t.Elem(), path))
		return &schema{Type: "object", AdditionalProperties: values}, err
	case reflect.Struct:
		return r.structure(t, path)
	}
	return nil, fmt.Errorf("%s has no JSON form", t)
}

// integer describes an integer type. The ends of 64 bits bound only what callers give: no result can be beyond them.
func (r *reflector) integer(t reflect.Type, least, most json.Number) *schema {
	s := &schema{Type: "integer", Minimum: least, Maximum: most}
	if t.Bits() == 64 && !r.given {
		s.Maximum = ""
		if least != "0" {
			s.Minimum = ""
		}
	}
	return s
}

func number(n int64) json.Number { return json.Number(strconv.FormatInt(n, 10)) }

// pathOf is the path of t in the comments: its own name, or path if it has none.
func pathOf(t reflect.Type, path string) string {
	if t.Name() == "" {
		return path
	}
	name, _, _ := strings.Cut(t.Name(), "[")
	return name
}

// structure describes a struct. One that contains itself becomes a $ref.
func (r *reflector) structure(t reflect.Type, path string) (*schema, error) {
	open, isInner := r.open, slices.Contains(r.open, t)
	defer func() { r.open = open }()
	if !isInner {
		r.open = append(open, t)
		return r.fields(t, pathOf(t, path))
	}
	var err error
	if _, ok := r.defs[t]; !ok {
		r.defs[t] = &schema{} // ends the recursion while t is described from scratch
		r.open = []reflect.Type{t}
		r.defs[t], err = r.fields(t, pathOf(t, path))
	}
	return &schema{Ref: "#/$defs/" + t.Name()}, err
}

func (r *reflector) fields(t reflect.Type, path string) (*schema, error) {
	s := &schema{Type: "object", Properties: properties{}, AdditionalProperties: false}
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "-" && options == "" {
			continue
		}
		inner := f.Type
		if inner.Kind() == reflect.Pointer {
			inner = inner.Elem()
		}
		if f.Anonymous && name == "" && inner.Kind() == reflect.Struct {
			if r.given && f.Type.Kind() == reflect.Pointer && !f.IsExported() {
				return nil, fmt.Errorf("%s is embedded by a pointer and not exported, so nothing is decoded into it", inner)
			}
			embedded, err := r.describe(inner, pathOf(inner, path))
			if err != nil {
				return nil, err
			}
			s.Properties = append(s.Properties, embedded.Properties...)
			s.Required = append(s.Required, embedded.Required...)
			continue
		}
		if !f.IsExported() {
			if f.Tag != "" {
				return nil, fmt.Errorf("field %s has tags but is not exported: begin its name with a capital letter", f.Name)
			}
			continue
		}
		if name == "" {
			name = f.Name
		}
		one, optional, err := r.field(t, f, options, path+"."+f.Name)
		if err != nil {
			return nil, fmt.Errorf("field %s: %w", name, err)
		}
		if one.Description == "" && r.hints != nil {
			r.hints.hint("%s.%s has no doc comment: describe its purpose and format, with an example", path, f.Name)
		}
		s.Properties = append(s.Properties, property{name, one})
		if !optional {
			s.Required = append(s.Required, name)
		}
	}
	return s, nil
}

func (r *reflector) field(t reflect.Type, f reflect.StructField, options, path string) (s *schema, optional bool,
	err error) {
	s, err = r.describe(f.Type, path)
	if err != nil {
		return nil, false, err
	}
	for option := range strings.SplitSeq(options, ",") {
		switch option {
		case "omitempty", "omitzero":
			optional = true
		case "string":
			return nil, false, errors.New(`the option "string" of the json tag is not supported: make the field a string`)
		}
	}
	if f.Type.Kind() == reflect.Pointer {
		optional = true
	}
	if pkg := t.PkgPath(); pkg != "" || r.comments.pkg != "" {
		if pkg == "" {
			pkg = r.comments.pkg // a struct type without a name is in the tool's package
		}
		if s.Description, err = r.comments.field(pkg, path); err != nil {
			return nil, false, err
		}
	}
	if err := errors.Join(checkTags(f.Tag), s.constrain(f.Tag)); err != nil {
		return nil, false, err
	}
	if s.Default != nil && !optional {
		return nil, false, errors.New("a field with a default needs omitempty in its json tag")
	}
	return s, optional, nil
}

var tags = []string{"json", "enum", "default", "example", "minimum", "maximum", "minLength", "maxLength", "pattern",
	"format", "minItems", "maxItems", "from", "aliases", "media", "untrusted", "handed"}

// checkTags refuses the tags that are misspelt: they would constrain nothing without a word.
func checkTags(tag reflect.StructTag) error {
	plain, tagKey := strings.NewReplacer("_", "", "-", ""), regexp.MustCompile(`([^\s":]+):"(?:[^"\\]|\\.)*"`)
	for _, key := range tagKey.FindAllStringSubmatch(string(tag), -1) {
		given := strings.ToLower(plain.Replace(key[1]))
		isTypo := func(known string) bool { return oneEdit(given, strings.ToLower(known)) }
		at := slices.IndexFunc(tags, isTypo)
		if at >= 0 && !slices.Contains(append(tags, "form"), key[1]) { // form is a tag of other packages
			return fmt.Errorf("there is no tag %s; did you mean %s?", key[1], tags[at])
		}
	}
	return nil
}

// oneEdit reports whether one typing mistake at most is between two words: a letter or two swapped ones.
func oneEdit(a, b string) bool {
	for a != "" && b != "" && a[0] == b[0] {
		a, b = a[1:], b[1:]
	}
	for a != "" && b != "" && a[len(a)-1] == b[len(b)-1] {
		a, b = a[:len(a)-1], b[:len(b)-1]
	}
	return len(a) <= 1 && len(b) <= 1 || len(a) == 2 && len(b) == 2 && a[0] == b[1] && a[1] == b[0]
}

// limit adds the bounds in the tags of a field; target is what those of values apply to.
func (s *schema) limit(target *schema, tag reflect.StructTag) error {
	for _, n := range []struct {
		tag   string
		of    *schema
		into  *json.Number
		types string
	}{
		{"minimum", target, &target.Minimum, "integer number"}, {"maximum", target, &target.Maximum, "integer number"},
		{"minLength", target, &target.MinLength, "string"}, {"maxLength", target, &target.MaxLength, "string"},
		{"minItems", s, &s.MinItems, "array"}, {"maxItems", s, &s.MaxItems, "array"},
	} {
		value, ok := tag.Lookup(n.tag)
		if !ok {
			continue
		}
		if n.of.Type == "" || !strings.Contains(n.types, n.of.Type) {
			return fmt.Errorf("tag %s applies to %s, but the field has type %q", n.tag, n.types, n.of.Type)
		}
		if _, err := strconv.ParseFloat(value, 64); err != nil {
			return fmt.Errorf("tag %s: %q is not a number", n.tag, value)
		}
		if isWider(n.tag, value, n.into.String()) {
			return fmt.Errorf("tag %s: %s is beyond what the field holds, which ends at %s", n.tag, value, *n.into)
		}
		*n.into = json.Number(value)
	}
	return nil
}

// isWider reports whether a bound admits more than the bound of the type, which is "" if it has none.
func isWider(tag, value, ofType string) bool {
	a, _ := new(big.Rat).SetString(value)
	b, ok := new(big.Rat).SetString(ofType)
	if ok = ok && a != nil; ok && strings.HasPrefix(tag, "min") {
		return a.Cmp(b) < 0
	}
	return ok && a.Cmp(b) > 0
}

// constrain adds the constraints in the tags of a field.
func (s *schema) constrain(tag reflect.StructTag) error {
	target := s // tags on a slice or a map apply to its elements
	if s.Items != nil {
		target = s.Items
	} else if values, ok := s.AdditionalProperties.(*schema); ok {
		target = values
	}
	if err := s.limit(target, tag); err != nil {
		return err
	}
	if aliases, ok := tag.Lookup("aliases"); ok {
		s.Aliases = strings.Split(aliases, ",")
	}
	if media := tag.Get("media"); media != "" {
		s.ContentEncoding, s.ContentMediaType = "base64", media
	}
	switch value := tag.Get("untrusted"); {
	case value == "true" && s.Type == "string":
		s.Untrusted = true
	case value == "long":
		s.Untrusted = value
	case value != "":
		return fmt.Errorf("tag untrusted: expected true for a string, or long, got %q for type %q", value, s.Type)
	}
	s.Handed = tag.Get("handed") == "true"
	target.Pattern = tag.Get("pattern")
	if format := tag.Get("format"); format != "" {
		target.Format = format
	}
	if values, ok := tag.Lookup("enum"); ok {
		for value := range strings.SplitSeq(values, ",") {
			raw, err := target.literal(value)
			if err != nil {
				return fmt.Errorf("tag enum: %w", err)
			}
			target.Enum = append(target.Enum, raw)
		}
	}
	if sources, ok := tag.Lookup("from"); ok {
		for source := range strings.SplitSeq(sources, ",") {
			tool, field, isField := strings.Cut(source, "/")
			if !isField || field == "" || !strings.Contains(tool, ".") {
				return fmt.Errorf("tag from: %q is not a source; expected plugin.tool/field", source)
			}
			s.From = append(s.From, source)
		}
	}
	if value, ok := tag.Lookup("default"); ok {
		raw, err := s.literal(value)
		if err != nil {
			return fmt.Errorf("tag default: %w", err)
		}
		s.Default = raw
	}
	if value, ok := tag.Lookup("example"); ok {
		raw, err := s.literal(value)
		if err != nil {
			return fmt.Errorf("tag example: %w", err)
		}
		s.Examples = []json.RawMessage{raw}
	}
	return nil
}

// literal reads a value in a tag: a string verbatim, anything else as JSON.
func (s *schema) literal(value string) (json.RawMessage, error) {
	if s.Type == "string" {
		return encode(value)
	}
	if !json.Valid([]byte(value)) {
		return nil, fmt.Errorf("%q is not a JSON value, which a field that is not a string needs", value)
	}
	return json.RawMessage(value), nil
}
