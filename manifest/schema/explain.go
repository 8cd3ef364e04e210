package schema

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/parley-tools/parley/internal/lists"
	"github.com/parley-tools/parley/manifest/jsontext"
	"github.com/parley-tools/parley/manifest/spelling"
)

const maxNames = 12 // names or values that one sentence lists

// explain describes a fault in words.
func (s *Schema) explain(f fault) Violation {
	v := Violation{Pointer: f.at.pointer(), Keyword: f.keyword, Provided: "nothing"}
	if !f.absent {
		v.Provided = render(f.v)
	}
	switch f.keyword {
	case "required", "dependentRequired":
		v.Expected = "a value"
		// The property may be described by another schema than the one that requires it, such as one next to an allOf.
		if child := cmp.Or(f.child, s.schemaAt(f.at)); child != nil {
			v.Expected = describe(child)
		}
		v.Expected += f.expected
	case "additionalProperties", "unevaluatedProperties":
		if v.Expected = "no property here"; len(f.known) > 0 {
			v.Expected = "one of " + list(f.known, jsontext.QuoteShort)
		}
		v.DidYouMean = nearestNames(f.at.token, withoutGiven(f.known, f.beside)) // a property that is given was not misspelt
	case "propertyNames":
		v.Provided = "the name " + jsontext.QuoteShort(f.at.token)
		v.Expected = "a property whose name is " + describe(f.node.propertyNames)
		if names := jsontext.Texts(valuesOf(f.node.propertyNames)); names != nil {
			v.DidYouMean = nearestNames(f.at.token, names)
		}
	case "false":
		v.Expected = "nothing here"
	case "enum", "const":
		allowed := f.choices()
		v.Expected = oneOf(allowed)
		v.DidYouMean = nearestValues(f.v, allowed)
	default:
		if v.Expected = f.expected; v.Expected == "" {
			v.Expected = expectation(f)
		}
	}
	return v
}

// schemaAt returns the schema that applies at a location whatever the value is, or nil if there is none.
func (s *Schema) schemaAt(at *location) *node {
	if at == nil {
		return s.root
	}
	up := s.schemaAt(at.up)
	if up == nil {
		return nil
	}
	all := up.conjuncts()
	if i, err := strconv.Atoi(at.token); err == nil {
		if item := itemSchema(all, i); item != nil {
			return item
		}
	}
	return propSchema(all, at.token)
}

// nearestNames returns the known names that resemble word. If one is clearly the nearest, it returns only that.
func nearestNames(word string, known []string) []string {
	near := spelling.Nearest(word, known, 3)
	if len(near) > 1 && near[0].Distance < near[1].Distance && near[0].Distance <= 1 {
		near = near[:1]
	}
	return lists.Map(near, func(n spelling.Near) string { return n.Name })
}

func nearestValues(v any, allowed []any) []string {
	switch v.(type) {
	case string, json.Number, bool:
	default:
		return nil
	}
	word := strings.TrimSpace(jsontext.Text(v))
	if slices.ContainsFunc(allowed, func(a any) bool { return jsontext.Text(a) == word }) { // then only the type is wrong
		return []string{word}
	}
	if _, isText := v.(string); !isText {
		return nil
	}
	return nearestNames(word, jsontext.Texts(allowed))
}

// valuesOf returns the values that n lists by enum or const, or nil if it has neither.
func valuesOf(n *node) []any {
	for _, c := range n.conjuncts() {
		if c.isConst {
			return []any{c.constant}
		}
		if c.enum != nil {
			return c.enum
		}
	}
	return nil
}

// conjuncts returns n and the schemas that always apply together with n, by "$ref" and "allOf"; n comes first.
func (n *node) conjuncts() []*node {
	list := []*node{n}
	for i := 0; i < len(list) && len(list) < gateInPlace; i++ {
		if list[i].ref != nil {
			list = append(list, list[i].ref)
		}
		list = append(list, list[i].allOf...)
	}
	return list
}

// expectation describes what the broken keyword expects, with the other keywords of its schema.
func expectation(f fault) string {
	n := f.node
	switch f.keyword {
	case "not":
		return "anything but " + describe(n.not)
	case "contains", "maxContains":
		one := 1
		items := span{least: cmp.Or(n.matching.least, &one)}
		if f.keyword == "maxContains" {
			items = span{most: n.matching.most}
		}
		are := " that are "
		if *cmp.Or(items.least, items.most) == 1 {
			are = " that is "
		}
		return "array" + items.text(" with ", "item") + are + describe(n.contains)
	}
	d := newDescriber(false)
	d.broken = f.keyword
	return d.describe(n, 2)
}

// describe returns in words what n expects: `string`, `integer >= 1`, `one of "a", "b"`, `array of string`.
func describe(n *node) string { return newDescriber(false).describe(n, 2) }

func describeUnion(branches []*node) string { return newDescriber(true).union(branches, 2) }

type describer struct {
	fields bool   // name the required properties of objects, to distinguish alternatives
	left   int    // number of schemas that may still be described, because nested unions multiply
	broken string // the keyword that a value breaks: its bound is shown even if it is the end of a type
}

func newDescriber(fields bool) *describer { return &describer{fields: fields, left: 300} }

func (d *describer) describe(n *node, depth int) string {
	if d.left--; d.left < 0 {
		return "any value"
	}
	all := n.conjuncts()
	types := kinds(0)
	for _, c := range all {
		if c.isNever() {
			return "nothing"
		}
		if c.isConst || c.enum != nil {
			return oneOf(valuesOf(n))
		}
		if c.types != 0 && types == 0 {
			types = c.types
		}
	}
	if types == 0 {
		for _, c := range all {
			if union := append(slices.Clone(c.anyOf), c.oneOf...); len(union) > 0 && depth > 0 {
				return d.union(union, depth-1)
			}
		}
		types = implied(all)
	}
	names := types.list()
	switch len(names) {
	case 0:
		for _, c := range all {
			if c.not != nil && depth > 0 {
				return "anything but " + d.describe(c.not, depth-1)
			}
		}
		return "any value"
	case 1:
	default:
		// A constraint on one of several types would read as if it applied to all of them.
		return strings.Join(names, " or ")
	}
	text := names[0]
	switch types {
	case kindArray:
		text += d.arrayOf(all, depth)
	case kindObject:
		text += d.objectOf(all, depth)
	case kindString:
		text += stringOf(all)
	case kindInteger, kindNumber:
		text += d.numberOf(all)
	}
	return text
}

func (d *describer) union(branches []*node, depth int) string {
	var parts []string
	for _, b := range branches {
		if d.left <= 0 {
			break
		}
		parts = lists.Add(parts, d.describe(b, depth))
	}
	if len(parts) > maxNames {
		parts = append(parts[:maxNames:maxNames], fmt.Sprintf("%d more", len(parts)-maxNames))
	}
	text := strings.Join(parts, " or ")
	if object := "object with "; !strings.Contains(text, ", ") && strings.Count(text, object) == len(parts) {
		text = object + strings.ReplaceAll(text, object, "") // each alternative requires a property
	}
	return text
}

// implied guesses the type of the values that a schema without "type" describes.
func implied(all []*node) kinds {
	for _, c := range all {
		switch {
		case c.props != nil || c.required != nil || c.additional != nil || c.size != (span{}):
			return kindObject
		case c.items != nil || len(c.prefix) > 0 || c.count != (span{}) || c.unique || c.contains != nil:
			return kindArray
		case c.pattern != nil || c.length != (span{}):
			return kindString
		case c.bounds != nil || c.multipleOf != nil:
			return kindNumber
		}
	}
	return 0
}

func (d *describer) arrayOf(all []*node, depth int) string {
	var text, unique string
	var items span
	for _, c := range all {
		if c.items != nil && text == "" && depth > 0 && len(c.prefix) == 0 && c.items.always == nil {
			item := d.describe(c.items, depth-1)
			if strings.Contains(item, " or ") || strings.Contains(item, ", ") {
				item = "(" + item + ")"
			}
			if item != "any value" {
				text = " of " + item
			}
		}
		items = items.or(c.count)
		if c.unique {
			unique = " without duplicates"
		}
		if n := len(c.prefix); n > 0 && c.items != nil && c.items.isNever() {
			items = items.or(span{most: &n})
		}
	}
	return text + items.text(" with ", "item") + unique
}

func (d *describer) objectOf(all []*node, depth int) string {
	var size span
	var required []string
	for _, c := range all {
		size = size.or(c.size)
		if d.fields && depth > 0 {
			required = append(required, c.required...)
		}
	}
	if required != nil {
		return " with " + list(required, jsontext.QuoteShort)
	}
	return size.text(" with ", "property")
}

func stringOf(all []*node) string {
	var length span
	var more string
	for _, c := range all {
		length = length.or(c.length)
		if c.pattern != nil {
			more += " matching " + jsontext.Shorten(c.pattern.source)
		}
		if c.format != "" {
			more += " (" + jsontext.Shorten(c.format) + ")"
		}
	}
	return length.text(" of ", "character") + more
}

func (d *describer) numberOf(all []*node) string {
	var parts []string
	multiple := ""
	for _, c := range all {
		for _, b := range c.bounds {
			if b.keyword == d.broken || !IsTypeEnd(string(b.text)) {
				parts = append(parts, " "+b.sign+" "+string(b.text))
			}
		}
		if c.multipleOf != nil {
			multiple += ", a multiple of " + string(c.multipleOf.text)
		}
	}
	return strings.Join(parts, " and") + multiple
}

// IsTypeEnd reports whether a bound only says which numbers the tool's programming language can hold. Documentation
// leaves it out, because it helps only a caller who breaks it.
func IsTypeEnd(number string) bool {
	switch strings.TrimPrefix(number, "-") {
	case "9223372036854775807", "9223372036854775808", "18446744073709551615", "9007199254740991", "3.4028235e+38":
		return true
	}
	return false
}

// text describes a span of numbers of parts, or returns "" if it allows any number.
func (s span) text(word, noun string) string {
	least, most := s.least, s.most
	if least != nil && *least == 0 {
		least = nil
	}
	if least == nil && most == nil {
		return ""
	}
	return word + spelling.Count(least, most, noun)
}

func oneOf(values []any) string {
	if len(values) == 1 {
		return "exactly " + literal(values[0])
	}
	return "one of " + list(values, literal)
}

// list joins at most maxNames items and says how many more there are.
func list[T any](items []T, show func(T) string) string {
	text := strings.Join(lists.Map(items[:min(len(items), maxNames)], show), ", ")
	if more := len(items) - maxNames; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}
