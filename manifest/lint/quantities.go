package lint

import (
	"cmp"
	_ "embed"
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/parley-tools/parley/internal/lazy"
	"github.com/parley-tools/parley/manifest/schema"
	"github.com/parley-tools/parley/manifest/spelling"
)

// unit is a unit of what it measures, with its size; see prose.txt.
type unit struct {
	dimension string
	size      float64
	name      string
}

//go:embed prose.txt
var proseText string

// prose has the expressions of prose.txt by their names, and its units by their words.
var vocabulary = sync.OnceValues(func() (map[string]func() *regexp.Regexp, map[string]unit) {
	patterns, units := map[string]func() *regexp.Regexp{}, map[string]unit{}
	known := []string{"\n\t", ""}
	for _, line := range strings.Split(strings.ReplaceAll(proseText, "\n\t", ""), "\n") {
		switch name, rest, ok := strings.Cut(line, " "); {
		case !ok || name == "#":
		case name == "unit":
			words := strings.Fields(rest)
			size, _ := strconv.ParseFloat(words[1], 64)
			for _, word := range words[2:] {
				units[word] = unit{words[0], size, words[2]}
			}
		default:
			expr := strings.NewReplacer(known...).Replace(rest)
			known, patterns[name] = append(known, "{"+name+"}", expr), lazy.Pattern(expr)
		}
	}
	return patterns, units
})

// said returns an expression of prose.txt.
func said(name string) *regexp.Regexp {
	patterns, _ := vocabulary()
	return patterns[name]()
}

func units() map[string]unit {
	_, units := vocabulary()
	return units
}

// saidUnits returns the units that a text says a field is in, each with the words for it, and the one for the unit.
func saidUnits(text string) (list []unit, words [][2]string) {
	for _, m := range said("in-unit").FindAllStringSubmatch(text, -1) {
		word := cmp.Or(m[1:]...)
		if u, ok := units()[strings.ToLower(word)]; ok && len(word) > 1 {
			list, words = append(list, u), append(words, [2]string{m[0], word})
		}
	}
	return list, words
}

// unit is the unit of a field, by the end of its name, as in timeout_ms, or by the only one that its description says.
func (f *field) unit() (unit, bool) {
	words := append([]string{""}, spelling.Words(f.name)...)
	last := words[len(words)-1]
	if u, ok := units()[last]; ok && f.isNumeric() && (len(words) > 2 || len(last) > 4) {
		return u, true
	}
	said, _ := saidUnits(f.description())
	if len(said) == 0 || slices.ContainsFunc(said, func(u unit) bool { return u != said[0] }) {
		return unit{}, false
	}
	return said[0], true
}

// deniedUnit compares the unit of a text with that of the field.
func (f *field) deniedUnit(text string) []Contradiction {
	own, ok := f.unit()
	said, words := saidUnits(text)
	if !ok || slices.Contains(said, own) {
		return nil
	}
	measures := func(u unit) string { what, _, _ := strings.Cut(u.dimension, "-"); return what }
	for i, u := range said {
		if measures(u) == measures(own) {
			return []Contradiction{{"", words[i][0], fmt.Sprintf("%q is in %s", f.name, own.name),
				strings.Replace(words[i][0], words[i][1], own.name, 1)}}
		}
	}
	return nil
}

var (
	counted     = lazy.Words(`character characters chars char letters letter digits digit long symbols`)
	numberWords = strings.Fields("zero one two three four five six seven eight nine ten eleven twelve")
)

func digits(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }

// numeral is a number in a text, with the word after it.
type numeral struct {
	from, to int
	value    float64
	after    string
}

func numerals(text string) (all []numeral) {
	for _, at := range said("number").FindAllStringIndex(text, -1) {
		literal := strings.TrimRight(text[at[0]:at[1]], ",_")
		n := numeral{from: at[0], to: at[0] + len(literal)}
		if n.value = float64(slices.Index(numberWords, strings.ToLower(literal))); n.value < 0 {
			var err error
			if n.value, err = strconv.ParseFloat(strings.NewReplacer(",", "", "_", "").Replace(literal), 64); err != nil {
				continue
			}
		}
		if n.from > 0 && text[n.from] == '-' && !strings.ContainsRune(" ([", rune(text[n.from-1])) {
			n.from, n.value = n.from+1, -n.value // the end of a range
		}
		if m := said("after-number").FindStringSubmatch(text[n.to:]); m != nil {
			n.after = strings.ToLower(m[1])
		}
		all = append(all, n)
	}
	return all
}

// in returns the value of a numeral in the unit of a field and the factor back, or false for a number of something
// else. of is what the field counts, "" if the number is its value.
func (n *numeral) in(f *field, of string) (value, back float64, ok bool) {
	u, measured := units()[n.after]
	switch own, known := f.unit(); {
	case of != "":
		return n.value, 1, counted()[n.after] == (of == "characters") && (!measured || of == "characters")
	case !measured || known && own == u:
		return n.value, 1, !counted()[n.after] && !strings.HasPrefix(n.after, "kmb")
	case known && own.dimension == u.dimension:
		return n.value * u.size / own.size, own.size / u.size, true
	}
	return 0, 0, false
}

// bound is one of a field's values, lengths or counts, by its keyword; its value is nil if there is none.
type bound struct {
	name  string
	value *float64
}

// bounds returns the least and the most of a field, and what they count: characters, items, or "" for its value.
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

// saidBound is a bound that a text says: least (0) or most (1), the number, and where the words are.
type saidBound struct {
	which, from, to int
	n               numeral
	exact           bool
}

// saidBounds returns the bounds that a text says.
func saidBounds(text string) (all []saidBound) {
	list := numerals(text)
	for i, n := range list {
		before, after := text[:n.from], text[n.to:]
		if i+1 < len(list) {
			next := list[i+1]
			sign := said("within-range").FindString(text[n.to:next.from])
			if sign != "" && (!strings.Contains(sign, "and") || said("before-range").MatchString(before)) &&
				(!strings.Contains(sign, ",") || strings.HasSuffix(before, "[") || strings.HasSuffix(before, "(")) {
				n.after = next.after
				all = append(all, saidBound{0, n.from, next.to, n, false}, saidBound{1, n.from, next.to, next, false})
				continue
			}
		}
		for _, kind := range []string{"most", "least", "exact"} {
			b := saidBound{0, n.from, n.to, n, kind == "exact"}
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

// deniedBounds compares the bounds that a text says with those of the schema. Where a text says several, one that
// agrees is enough: the others are about something else.
func (f *field) deniedBounds(text string) (all []Contradiction) {
	bounds, of := f.bounds()
	if bounds[0].value == nil && bounds[1].value == nil {
		return nil
	}
	var wrong [2][]Contradiction
	var right [2]bool
	for _, b := range saidBounds(text) {
		i, has := b.which, bounds[b.which]
		said, back, ok := b.n.in(f, of)
		switch {
		case of == "items" && strings.Contains(text[b.from:b.to], ", "): // values, and no range
		case !ok || has.value == nil || b.exact && (i == 0 && said > *has.value || i == 1 && said < *has.value):
		case math.Abs(said-*has.value) < 1e-9*math.Max(1, math.Abs(said)):
			right[i] = true
		default:
			wrong[i] = append(wrong[i], f.deny(text[b.from:b.to], has.name+" "+digits(*has.value),
				text[b.from:b.n.from]+digits(*has.value*back)+text[b.n.to:b.to]))
		}
	}
	for i, list := range wrong {
		if len(list) > 0 && !right[i] {
			all = append(all, list[0])
		}
	}
	return all
}
