package schema

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/parley-tools/parley/manifest/jsontext"
)

// A Coercion is a change of type that [Schema.Admit] made: the value at Pointer was From and is now To.
type Coercion struct {
	Pointer  string
	From, To string // like Violation.Provided
}

// Admit makes safe coercions in v, a value from [jsontext.Decode], fills in defaults, and validates the result. v
// does not change. The result shares with v the parts that the schema does not describe.
//
// It makes a number of a numeric string, a boolean of "true" and "false", an array of a single value of its items'
// type, and an object or array of JSON text, where the schema requires exactly that type. It never makes a string,
// changes nothing at a union (several types, anyOf, oneOf), and makes a coercion only if the result is valid there. A
// null for a property that is not required and does not accept null means that the property is absent. An absent
// property gets a copy of its schema's default, unless the default is invalid or makes the whole value invalid.
// Everything else that is wrong stays, and is a violation. The coercions have the order of the violations.
func (s *Schema) Admit(v any) (any, []Coercion, []Violation, error) {
	coerced, made := s.coerce(v)
	violations, err := s.validate(coerced)
	return coerced, made, violations, err
}

func (s *Schema) coerce(v any) (any, []Coercion) {
	if s.untrusted && checkCost(s.root, v) != nil {
		return v, nil
	}
	m := s.coercer()
	m.defaults = &defaultFiller{left: maxFilled, open: map[*node]bool{}}
	out := m.coerce(s.root, v, nil)
	if d := m.defaults; d.left < 0 || d.any && !m.valid(s.root, out) {
		// A default may break a keyword about the whole object. The value may be valid without the default.
		bare := s.coercer()
		if without := bare.coerce(s.root, v, nil); d.left < 0 || bare.valid(s.root, without) {
			m, out = bare, without
		}
	}
	slices.SortStableFunc(m.coercions, func(a, b Coercion) int { return comparePointers(a.Pointer, b.Pointer) })
	return out, m.coercions
}

// coerceSteps bounds the steps of one coercer, because nested coercions are tried again at each level.
const coerceSteps = 4 * budget

type coercer struct {
	w         *walker
	defaults  *defaultFiller // nil to fill in no defaults
	coercions []Coercion
	absent    []string // pointers of the nulls that were left out
}

// maxFilled bounds the bytes of the defaults that are added to one value: where a default contains an object with
// defaults, the size may double at each level. Each default counts as the length of its text plus perDefault, since
// even the shortest one takes memory.
const maxFilled, perDefault = 16 << 20, 128

// defaultFiller is the state of filling in defaults that the coercers of one value share.
type defaultFiller struct {
	left int
	any  bool           // a default was filled in
	open map[*node]bool // schemas whose default is being completed, to end recursion
}

func (s *Schema) coercer() *coercer { return &coercer{w: s.boundedWalker()} }

// boundedWalker returns a walker for proposals. A proposal that costs too much is not made.
func (s *Schema) boundedWalker() *walker { return &walker{uneval: s.uneval, steps: coerceSteps} }

func (m *coercer) valid(n *node, v any) bool { return m.w.check(n, v, nil, nil, nil) }

// coerce returns v coerced by a schema, which may be nil.
func (m *coercer) coerce(n *node, v any, at *location) any {
	if n == nil {
		return v
	}
	all := n.conjuncts()
	if want, single := wanted(all); single && want&kindOf(v) == 0 {
		return m.coerceType(n, want, v, at)
	}
	list, isList := v.([]any)
	object, isObject := v.(map[string]any)
	switch parts := slices.ContainsFunc(all, (*node).hasParts); {
	case parts && isList:
		return m.array(all, list, at)
	case parts && isObject:
		return m.object(all, object, at)
	}
	return v
}

// hasParts reports whether n itself has a schema for an item or a property.
func (n *node) hasParts() bool {
	return n.items != nil || n.prefix != nil || n.props != nil || n.patternProps != nil || n.additional != nil
}

// wanted returns the one type that all conjuncts together require. ok is false if they require several types, or if
// one of them is a union.
func wanted(all []*node) (kinds, bool) {
	want := kinds(0)
	for _, c := range all {
		if c.anyOf != nil || c.oneOf != nil || c.ifs != nil {
			return 0, false
		}
		switch types := c.types; {
		case types == 0:
		case types&(types-1) != 0:
			return 0, false
		case want == 0 || want == types:
			want = types
		case want|types == kindNumber|kindInteger:
			want = kindInteger
		default:
			return 0, false
		}
	}
	return want, want != 0
}

// coerceType returns v as the type that n requires, or v itself if it cannot be coerced.
func (m *coercer) coerceType(n *node, want kinds, v any, at *location) any {
	for _, candidate := range candidates(n.conjuncts(), want, v) {
		// The values inside may need coercions, too.
		inner := &coercer{w: m.w, defaults: m.defaults}
		if coerced := inner.coerce(n, candidate, at); m.valid(n, coerced) {
			m.absent = append(m.absent, inner.absent...)
			m.coercions = append(append(m.coercions, Coercion{at.pointer(), render(v), render(coerced)}), inner.coercions...)
			return coerced
		}
	}
	return v
}

// candidates returns the values of the wanted type that v may mean, the likeliest first.
func candidates(all []*node, want kinds, v any) []any {
	text, isText := v.(string)
	switch want {
	case kindNumber, kindInteger:
		if isText && jsontext.ValidNumber(text) {
			return []any{json.Number(text)}
		}
	case kindBoolean:
		if text == "true" || text == "false" {
			return []any{text == "true"}
		}
	case kindObject:
		if parsed, ok := embedded(text, '{'); ok {
			return []any{parsed}
		}
	case kindArray:
		var list []any
		if parsed, ok := embedded(text, '['); ok {
			list = append(list, parsed)
		}
		if item := itemSchema(all, 0); item != nil {
			if kind, ok := wanted(item.conjuncts()); ok && kind&kindOf(v) != 0 {
				list = append(list, []any{v})
			}
		}
		return list
	}
	return nil
}

// embedded decodes a string that holds JSON beginning with open.
func embedded(text string, open byte) (any, bool) {
	trimmed := strings.TrimLeft(text, " \t\r\n")
	if trimmed == "" || trimmed[0] != open {
		return nil, false
	}
	v, err := jsontext.Decode([]byte(text), jsontext.Limits{Bytes: len(text)})
	return v, err == nil
}

func (m *coercer) array(all []*node, v []any, at *location) any {
	out := make([]any, len(v))
	for i, item := range v {
		out[i] = m.coerce(itemSchema(all, i), item, at.index(i))
	}
	return out
}

// itemSchema returns the schema for the item at i, or nil unless exactly one of the conjuncts has such a schema.
func itemSchema(all []*node, i int) *node {
	return single(all, func(c *node) []*node {
		if s := c.item(i); s != nil {
			return []*node{s}
		}
		return nil
	})
}

// propSchema returns the schema of the property, or nil unless exactly one of the conjuncts has such a schema.
func propSchema(all []*node, name string) *node {
	return single(all, func(c *node) []*node { return c.propSchemas(name) })
}

func single(all []*node, of func(*node) []*node) (found *node) {
	for _, c := range all {
		for _, s := range of(c) {
			if found != nil && found != s {
				return nil
			}
			found = s
		}
	}
	return found
}

func (m *coercer) object(all []*node, v map[string]any, at *location) any {
	out := make(map[string]any, len(v))
	for _, name := range sortedKeys(v) {
		switch s := propSchema(all, name); {
		case s != nil && v[name] == nil && s.always == nil && !slices.Contains(required(all), name) && !m.valid(s, nil):
			m.absent = append(m.absent, at.key(name).pointer())
		default:
			out[name] = m.coerce(s, v[name], at.key(name))
		}
	}
	if m.defaults == nil {
		return out
	}
	for _, c := range all {
		for _, name := range c.propNames {
			if _, given := out[name]; given {
				continue
			}
			if value, ok := m.fallback(c.props[name]); ok {
				out[name] = value
			}
		}
	}
	return out
}

// fallback returns a copy of n's default, completed by the defaults of the properties that are absent in it.
func (m *coercer) fallback(n *node) (any, bool) {
	all, d := n.conjuncts(), m.defaults
	i := slices.IndexFunc(all, func(c *node) bool { return c.hasDefault })
	if i < 0 || d.left < 0 {
		return nil, false
	}
	value := all[i].fallback
	if d.left -= perDefault + len(jsontext.Marshal(value)); d.left < 0 {
		return nil, false
	}
	if value = deepCopy(value); !d.open[n] {
		d.open[n] = true
		value = (&coercer{w: m.w, defaults: d}).coerce(n, value, nil)
		delete(d.open, n)
	}
	if !m.valid(n, value) {
		return nil, false
	}
	d.any = true
	return value, true
}

// required returns the names of the properties that the conjuncts require.
func required(all []*node) (names []string) {
	for _, c := range all {
		names = append(names, c.required...)
	}
	return names
}
