package schema

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/parley-tools/parley/manifest/jsontext"
)

// A Coercion is a small fault that was coerced: the value at Pointer was From and is now To.
type Coercion struct {
	Pointer  string
	From, To string // like Violation.Provided
}

// Coerce mends safe coercions and fills in defaults, in a copy; v itself stays as it is. Coercions are a numeric string where a
// number is wanted, "true" or "false" where a boolean is, one value where an array of its type is, and JSON text where an
// object or array is: never anything that should be a string, never at a union (several types, anyOf, oneOf), and only
// if the coerced value is valid for its place. A property that is absent gets a copy of its schema's default, unless that
// is not valid itself, or would make a valid value invalid. Coercions come in the order of Validate's violations.
//
// What Coerce cannot make valid it leaves for Validate to tell.
func (s *Schema) Coerce(v any) (any, []Coercion) {
	p, err := jsontext.Normalize(v)
	if err != nil {
		return v, nil
	}
	if s.untrusted && checkCost(s.root, p) != nil {
		return deepCopy(p), nil
	}
	m := s.coercer()
	m.defaults = &defaultFiller{left: maxFilled, open: map[*node]bool{}}
	out, _ := m.coerce(s.root, p, nil)
	if d := m.defaults; d.left < 0 || d.any && !m.valid(s.root, out) {
		// A default may break what looks at the object as a whole. Then the value may be valid without.
		bare := s.coercer()
		if without, _ := bare.coerce(s.root, p, nil); d.left < 0 || bare.valid(s.root, without) {
			m, out = bare, without
		}
	}
	slices.SortStableFunc(m.coercions, func(a, b Coercion) int { return comparePointers(a.Pointer, b.Pointer) })
	return out, m.coercions
}

// coerceSteps bounds one coercer: coercions inside coercions are tried again at each level.
const coerceSteps = 4 * budget

type coercer struct {
	w         *walker
	defaults  *defaultFiller // nil: fill in none
	coercions []Coercion
}

// maxFilled bounds what all defaults together add to a value, in bytes of text: defaults that hold objects with defaults
// would double at each level.
const maxFilled = 16 << 20

// defaultFiller is what the coercers of one value know about its defaults.
type defaultFiller struct {
	left int
	any  bool           // something was filled in
	open map[*node]bool // schemas whose default is being completed: such a default is not completed by itself
}

func (s *Schema) coercer() *coercer { return &coercer{w: s.boundedWalker()} }

// boundedWalker is a walker for a question on the side, which may remain unanswered.
func (s *Schema) boundedWalker() *walker { return &walker{uneval: s.uneval, steps: coerceSteps} }

func (m *coercer) valid(n *node, v any) bool { return m.w.check(n, v, nil, nil, nil) }

// coerce returns a coerced copy of v, and whether anything is different.
func (m *coercer) coerce(n *node, v any, at *location) (any, bool) {
	all := n.conjuncts()
	want, single := wanted(all)
	if single && want&kindOf(v) == 0 {
		if coerced, ok := m.coerceType(n, v, at); ok {
			return coerced, true
		}
		return deepCopy(v), false
	}
	switch v := v.(type) {
	case []any:
		return m.array(all, v, at)
	case map[string]any:
		return m.object(all, v, at)
	}
	return v, false
}

// wanted is the type that all conjuncts together ask for, if it is one, and none of them is a union.
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

// coerceType tries to turn v, which has the wrong type for n, into what was meant.
func (m *coercer) coerceType(n *node, v any, at *location) (any, bool) {
	all := n.conjuncts()
	want, single := wanted(all)
	if !single {
		return nil, false
	}
	for _, candidate := range candidates(all, want, v) {
		// What stands inside may hold coercions of its own.
		inner := &coercer{w: m.w, defaults: m.defaults}
		coerced, _ := inner.coerce(n, candidate, at)
		if m.valid(n, coerced) {
			m.coercions = append(append(m.coercions, Coercion{at.pointer(), render(v), render(coerced)}), inner.coercions...)
			return coerced, true
		}
	}
	return nil, false
}

// candidates lists what v can have been meant as, the likeliest first.
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

// embedded decodes JSON text that begins with open.
func embedded(text string, open byte) (any, bool) {
	trimmed := strings.TrimLeft(text, " \t\r\n")
	if trimmed == "" || trimmed[0] != open {
		return nil, false
	}
	v, err := jsontext.Decode([]byte(text), jsontext.Limits{Bytes: len(text)})
	return v, err == nil
}

func (m *coercer) array(all []*node, v []any, at *location) (any, bool) {
	out := make([]any, len(v))
	changed := false
	for i, item := range v {
		if s := itemSchema(all, i); s != nil {
			var c bool
			out[i], c = m.coerce(s, item, at.index(i))
			changed = changed || c
			continue
		}
		out[i] = deepCopy(item)
	}
	return out, changed
}

// itemSchema is the schema of the item at i, if exactly one of the conjuncts has one.
func itemSchema(all []*node, i int) *node {
	var found *node
	for _, c := range all {
		s := c.items
		if i < len(c.prefix) {
			s = c.prefix[i]
		}
		if s == nil {
			continue
		}
		if found != nil && found != s {
			return nil
		}
		found = s
	}
	return found
}

func (m *coercer) object(all []*node, v map[string]any, at *location) (any, bool) {
	out := make(map[string]any, len(v))
	changed := false
	for _, name := range sortedKeys(v) {
		if s := propSchema(all, name); s != nil {
			var c bool
			out[name], c = m.coerce(s, v[name], at.key(name))
			changed = changed || c
			continue
		}
		out[name] = deepCopy(v[name])
	}
	if m.defaults == nil {
		return out, changed
	}
	for _, c := range all {
		for _, name := range c.propNames {
			if _, given := out[name]; given {
				continue
			}
			if value, ok := m.fallback(c.props[name]); ok {
				out[name], changed = value, true
			}
		}
	}
	return out, changed
}

// fallback is a copy of n's default, completed by the defaults of what it leaves out itself.
func (m *coercer) fallback(n *node) (any, bool) {
	value, ok := defaultOf(n)
	d := m.defaults
	if !ok || d.left < 0 {
		return nil, false
	}
	if d.left -= textSize(value); d.left < 0 {
		return nil, false
	}
	if d.open[n] {
		value = deepCopy(value)
	} else {
		d.open[n] = true
		value, _ = (&coercer{w: m.w, defaults: d}).coerce(n, value, nil)
		delete(d.open, n)
	}
	if !m.valid(n, value) {
		return nil, false
	}
	d.any = true
	return value, true
}

// textSize is about the length of v as JSON.
func textSize(v any) int {
	switch v := v.(type) {
	case string:
		return len(v) + 4
	case []any:
		size := 4
		for _, x := range v {
			size += textSize(x)
		}
		return size
	case map[string]any:
		size := 4
		for k, x := range v {
			size += len(k) + 4 + textSize(x)
		}
		return size
	}
	return 8
}

func defaultOf(n *node) (any, bool) {
	for _, c := range n.conjuncts() {
		if c.hasDefault {
			return c.fallback, true
		}
	}
	return nil, false
}

// propSchema is the schema of the property, if exactly one of the conjuncts has one.
func propSchema(all []*node, name string) *node {
	var found *node
	take := func(s *node) bool {
		if found != nil && found != s {
			return false
		}
		found = s
		return true
	}
	for _, c := range all {
		described := false
		if s := c.props[name]; s != nil {
			described = true
			if !take(s) {
				return nil
			}
		}
		for _, pp := range c.patternProps {
			if pp.re.MatchString(name) {
				described = true
				if !take(pp.node) {
					return nil
				}
			}
		}
		if !described && c.additional != nil && !take(c.additional) {
			return nil
		}
	}
	return found
}

// Correct applies what the violations of v propose to a copy of it: corrected values, renamed and removed properties.
// ok says whether anything was changed; the result may still be invalid, so validate it again.
func Correct(v any, violations []Violation) (any, bool) {
	p, err := jsontext.Normalize(v)
	if err != nil {
		return v, false
	}
	out := deepCopy(p)
	changed := false
	// Inner faults first: an array or object that is replaced as a whole was computed before its parts were coerced, so it
	// is left alone once one of them was.
	order := slices.Clone(violations)
	slices.SortStableFunc(order, func(a, b Violation) int {
		return strings.Count(b.Pointer, "/") - strings.Count(a.Pointer, "/")
	})
	touched := map[string]bool{}
	for _, f := range order {
		if touched[f.Pointer] && f.Rename == "" && !f.Remove {
			continue
		}
		tokens, ok := jsontext.SplitPointer(f.Pointer)
		if !ok {
			continue
		}
		if len(tokens) == 0 {
			if f.Corrected != nil {
				out, changed = deepCopy(f.Corrected), true
			}
			continue
		}
		if !applyViolation(out, tokens, f) {
			continue
		}
		changed = true
		for i := range tokens {
			touched[jsontext.Pointer(tokens[:i+1])] = true
		}
		touched[""] = true
	}
	return out, changed
}

// applyViolation applies f to the value at tokens inside root.
func applyViolation(root any, tokens []string, f Violation) bool {
	parent, ok := jsontext.Lookup(root, tokens[:len(tokens)-1])
	if !ok {
		return false
	}
	last := tokens[len(tokens)-1]
	switch p := parent.(type) {
	case []any:
		i, err := strconv.Atoi(last)
		if err != nil || !isIndex(last) || i >= len(p) || f.Corrected == nil {
			return false
		}
		p[i] = deepCopy(f.Corrected)
		return true
	case map[string]any:
		old, given := p[last]
		switch {
		case f.Rename != "" && given:
			if _, taken := p[f.Rename]; taken {
				return false
			}
			delete(p, last)
			p[f.Rename] = old
		case f.Remove && given:
			delete(p, last)
		case f.Corrected != nil:
			p[last] = deepCopy(f.Corrected)
		default:
			return false
		}
		return true
	}
	return false
}
