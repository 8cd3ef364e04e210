package lint

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/parley-tools/parley/manifest/lint/vocabulary"
	"github.com/parley-tools/parley/manifest/schema"
	"github.com/parley-tools/parley/manifest/spelling"
)

// saidUnits returns the units that a text gives for a field. words has for each the whole expression, and the word
// for the unit.
func saidUnits(text string) (list []vocabulary.Unit, words [][2]string) {
	for _, m := range said("in-unit").FindAllStringSubmatch(text) {
		word := cmp.Or(m[1:]...)
		if u, ok := vocabulary.Units()[strings.ToLower(word)]; ok && len(word) > 1 {
			list, words = append(list, u), append(words, [2]string{m[0], word})
		}
	}
	return list, words
}

// unit returns the unit of a field: from the end of its name, as in timeout_ms, or the only one in its description.
func (f *field) unit() (vocabulary.Unit, bool) {
	words := append([]string{""}, spelling.Words(f.name)...)
	last := words[len(words)-1]
	if u, ok := vocabulary.Units()[last]; ok && f.isNumeric() && (len(words) > 2 || len(last) > 4) {
		return u, true
	}
	said, _ := saidUnits(f.description())
	if len(said) == 0 || slices.ContainsFunc(said, func(u vocabulary.Unit) bool { return u != said[0] }) {
		return vocabulary.Unit{}, false
	}
	return said[0], true
}

// deniedUnit compares the unit in a text with the unit of the field.
func (f *field) deniedUnit(text string) []Contradiction {
	own, ok := f.unit()
	said, words := saidUnits(text)
	if !ok || slices.Contains(said, own) {
		return nil
	}
	measures := func(u vocabulary.Unit) string { what, _, _ := strings.Cut(u.Dimension, "-"); return what }
	for i, u := range said {
		if measures(u) == measures(own) {
			return []Contradiction{{"", words[i][0], fmt.Sprintf("%q is in %s", f.name, own.Name),
				strings.Replace(words[i][0], words[i][1], own.Name, 1)}}
		}
	}
	return nil
}

var said, words = vocabulary.Said, vocabulary.Words // expressions and sets of words of prose.txt

func digits(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }

// in converts a numeral to the unit of a field. back is the factor to convert a number back. ok is false if the
// numeral counts something else. of is what the field counts, "" if the number is the field's value.
func (f *field) in(n *vocabulary.Numeral, of string) (value, back float64, ok bool) {
	u, measured := vocabulary.Units()[n.After]
	switch own, known := f.unit(); {
	case of != "":
		return n.Value, 1, words("counted")[n.After] == (of == "characters") && (!measured || of == "characters")
	case !measured || known && own == u:
		return n.Value, 1, !words("counted")[n.After]
	case known && own.Dimension == u.Dimension:
		return n.Value * u.Size / own.Size, own.Size / u.Size, true
	}
	return 0, 0, false
}

// bound is the keyword of a bound and its value, which is nil if the field does not have the bound.
type bound struct {
	name  string
	value *float64
}

// bounds returns the lower and the upper bound of a field, and what they count: "characters", "items", or "" for its
// value.
func (f *field) bounds() (b [2]bound, of string) {
	get := func(key string, step float64) *float64 {
		n, ok := f.schema[key].(json.Number)
		v, err := n.Float64()
		if !ok || err != nil || schema.IsTypeEnd(n.String()) || math.Abs(v) > 1e15 {
			return nil
		}
		if f.is("integer") {
			v += step
		}
		return &v
	}
	pair := func(least, most string) [2]bound { return [2]bound{{least, get(least, 0)}, {most, get(most, 0)}} }
	switch {
	case f.isNumeric():
		b = pair("minimum", "maximum")
		b[0].value = cmp.Or(b[0].value, get("exclusiveMinimum", 1))
		b[1].value = cmp.Or(b[1].value, get("exclusiveMaximum", -1))
		enum, _ := f.schema["enum"].([]any)
		for _, raw := range enum {
			n, _ := raw.(json.Number)
			v, err := n.Float64()
			for i, sign := range []float64{1, -1} {
				if err == nil && (b[i].value == nil || sign*(v-*b[i].value) < 0) {
					b[i] = bound{[]string{"the lowest value", "the highest value"}[i], &v}
				}
			}
		}
	case f.is("array"):
		return pair("minItems", "maxItems"), "items"
	case f.is("string"):
		b, of = pair("minLength", "maxLength"), "characters"
		pattern, _ := f.schema["pattern"].(string)
		if m := said("fixed-length").FindStringSubmatch(pattern); m != nil {
			for i, s := range []string{m[1], cmp.Or(strings.TrimPrefix(m[2], ","), m[1])} {
				if v, err := strconv.ParseFloat(s, 64); err == nil && (i == 0 || m[2] != ",") && b[i].value == nil {
					b[i] = bound{"a pattern of length", &v}
				}
			}
		}
	}
	return b, of
}

// saidBound is a bound in a text: lower (0) or upper (1), its number, and the offsets of its words.
type saidBound struct {
	which, from, to int
	n               vocabulary.Numeral
	exact           bool
}

// saidBounds returns the bounds in a text.
func saidBounds(text string) (all []saidBound) {
	list := vocabulary.Numerals(text)
	for i, n := range list {
		before, after := text[:n.From], text[n.To:]
		if i+1 < len(list) {
			next := list[i+1]
			sign := said("within-range").FindString(text[n.To:next.From])
			if sign != "" && (!strings.Contains(sign, "and") || said("before-range").MatchString(before)) &&
				(!strings.Contains(sign, ",") || strings.HasSuffix(before, "[") || strings.HasSuffix(before, "(")) {
				n.After = next.After
				all = append(all, saidBound{0, n.From, next.To, n, false}, saidBound{1, n.From, next.To, next, false})
				continue
			}
		}
		for _, kind := range []string{"most", "least", "exact"} {
			b := saidBound{0, n.From, n.To, n, kind == "exact"}
			if at := said("before-" + kind).FindStringIndex(before); at != nil {
				b.from = at[0]
			} else if at := said("after-" + kind).FindStringIndex(after); at != nil {
				b.to += at[1]
			} else {
				continue
			}
			if kind != "most" {
				all = append(all, b)
			}
			if b.which = 1; kind != "least" {
				all = append(all, b)
			}
			break
		}
	}
	return all
}

// deniedBounds compares the bounds in a text with those of the schema. If a text has several, it is enough that one
// agrees: the others are about something else.
func (f *field) deniedBounds(text string) (all []Contradiction) {
	bounds, of := f.bounds()
	if bounds[0].value == nil && bounds[1].value == nil {
		return nil
	}
	var wrong [2][]Contradiction
	var right [2]bool
	for _, b := range saidBounds(text) {
		i, has := b.which, bounds[b.which]
		if of == "characters" && b.n.After == "" && strings.Contains(text[b.from:b.to], "length") {
			b.n.After = of
		}
		said, back, ok := f.in(&b.n, of)
		switch {
		case of == "items" && strings.Contains(text[b.from:b.to], ", "): // a list of values, not a range
		case i == 1 && said <= 0 && has.value != nil && *has.value > 0: // "more than 0" is not a maximum
		case !ok || has.value == nil || b.exact && (i == 0 && said > *has.value || i == 1 && said < *has.value):
		case math.Abs(said-*has.value) < 1e-9*math.Max(1, math.Abs(said)):
			right[i] = true
		default:
			wrong[i] = append(wrong[i], f.deny(text[b.from:b.to], has.name+" "+digits(*has.value),
				text[b.from:b.n.From]+digits(*has.value*back)+text[b.n.To:b.to]))
		}
	}
	for i, b := range bounds {
		wrong[i] = append(wrong[i], f.beyond(text, i, b, of)...)
	}
	for i, list := range wrong {
		if len(list) > 0 && !right[i] {
			all = append(all, list[0])
		}
	}
	return all
}

// beyond returns the sentences with a number outside a bound: below the lower (which 0) or above the upper one (1).
// Such a sentence counts although nothing in it says that the number is a value.
func (f *field) beyond(text string, which int, b bound, of string) (all []Contradiction) {
	if b.value == nil || of == "items" {
		return nil
	}
	for _, s := range sentences(text) {
		isBeyond := of == "" && which == 0 && *b.value >= 0 && said("negative").MatchString(s)
		for _, n := range vocabulary.Numerals(s) {
			v, _, ok := f.in(&n, of)
			isCompared := said("compared").MatchString(s[:n.From]) && (v == 0 || math.Abs(v-*b.value) <= 1)
			isBeyond = isBeyond || ok && !isCompared && (v-*b.value)*float64(2*which-1) > 0 &&
				!said("no-value-before").MatchString(s[:n.From]) && !said("no-value-after").MatchString(s[n.To:])
		}
		if isBeyond {
			all = append(all, f.deny(s, b.name+" "+digits(*b.value), ""))
		}
	}
	return all
}
