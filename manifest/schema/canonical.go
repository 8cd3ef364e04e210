package schema

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/parley-tools/parley/manifest/jsontext"
)

// Canonical returns a valid value in the form that its schema prescribes, so that the decoder of a guest can read it
// whatever form the caller chose. A number is written as in an enum or const that has it, or as digits if a schema
// that applies to it takes an integer. Every other number keeps its text. Arrays and objects are changed in place.
//
// All branches of a union count, even those that the value does not match: digits are valid for each of them.
func (s *Schema) Canonical(v any) any { return canonical(s.root, v) }

func canonical(n *node, v any) any {
	switch number := v.(type) {
	case nil, bool, string:
		return v
	case json.Number:
		if !strings.ContainsAny(string(number), ".eE-") {
			return v
		}
	}
	if n.isConst && equal(n.constant, v) {
		v = deepCopy(n.constant)
	} else if i := slices.IndexFunc(n.enum, func(e any) bool { return equal(e, v) }); i >= 0 {
		v = deepCopy(n.enum[i])
	}
	for _, next := range n.applied() {
		if next != n.not {
			v = canonical(next, v)
		}
	}
	switch v := v.(type) {
	case json.Number:
		if digits, ok := jsontext.Integer(string(v)); ok && n.types&(kindInteger|kindNumber) == kindInteger {
			return json.Number(digits)
		}
	case []any:
		for i := range v {
			for _, s := range []*node{n.item(i), n.contains, n.unevalItems} {
				if s != nil {
					v[i] = canonical(s, v[i])
				}
			}
		}
	case map[string]any:
		for name := range v {
			for _, s := range n.propSchemas(name) {
				v[name] = canonical(s, v[name])
			}
			if n.unevalProps != nil {
				v[name] = canonical(n.unevalProps, v[name])
			}
		}
	}
	return v
}

// item returns the schema that n has for the item at i, nil if it has none.
func (n *node) item(i int) *node {
	if i < len(n.prefix) {
		return n.prefix[i]
	}
	return n.items
}

// propSchemas returns the schemas that n has for a property, from all keywords except unevaluatedProperties.
func (n *node) propSchemas(name string) (list []*node) {
	if s := n.props[name]; s != nil {
		list = append(list, s)
	}
	for _, pp := range n.patternProps {
		if pp.re.MatchString(name) {
			list = append(list, pp.node)
		}
	}
	if len(list) == 0 && n.additional != nil {
		list = append(list, n.additional)
	}
	return list
}
