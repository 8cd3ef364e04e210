package wasm

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/parley-tools/parley/manifest"
	"github.com/parley-tools/parley/manifest/schema"
)

const (
	diffWidth   = 160 // bytes of a line that are shown
	diffContext = 40  // bytes that are shown before the first difference of two long lines
)

// ManifestDiff shows how manifest b differs from manifest a in lines of indented JSON: "-" before what only a says, "+" before
// what only b says, and over each group "@@" with the JSON pointer of the object or list that it is in. Tools and whatever else
// has a name are compared by name. It has at most so many lines; what steers a terminal is written as an escape.
func ManifestDiff(a, b []byte, most int) string {
	limits := schema.Limits{Bytes: maxManifest, Depth: 100}
	before, err := schema.Decode(a, limits)
	if err != nil {
		return "- the first is not JSON: " + manifest.CleanLine(err.Error())
	}
	after, err := schema.Decode(b, limits)
	if err != nil {
		return "+ it is not JSON: " + manifest.CleanLine(err.Error())
	}
	d := &difference{}
	d.compare(place{}, before, after)
	switch {
	case len(d.lines) == 0 && bytes.Equal(a, b):
		return "they are the same"
	case len(d.lines) == 0:
		return "they say the same; white space differs, or the order of what has a name"
	case len(d.lines) > most:
		d.lines = append(d.lines[:most-1], fmt.Sprintf("… and %d more lines", len(d.lines)-most+1))
	}
	return strings.Join(d.lines, "\n")
}

// difference gathers the lines; under is the pointer of the last heading.
type difference struct {
	lines []string
	under string
}

// place is where a value stands: the pointer of the object or list around it, its own step from there, and what stands before
// it in a line of JSON. name is what the nearest thing with a name is called that the value is or is in; within is the same of
// what is around it.
type place struct{ around, step, lead, name, within string }

func (p place) pointer() string { return p.around + p.step }

func (p place) key(k string) place {
	step := strings.ReplaceAll(strings.ReplaceAll(k, "~", "~0"), "/", "~1")
	return place{p.pointer(), "/" + step, string(schema.Marshal(k)) + ": ", p.name, p.name}
}

func (p place) index(i int) place {
	return place{p.pointer(), "/" + strconv.Itoa(i), "", p.name, p.name}
}

func (p place) named(name string) place {
	p.name = name
	return p
}

func (d *difference) compare(at place, a, b any) {
	objectA, isObjectA := a.(map[string]any)
	objectB, isObjectB := b.(map[string]any)
	listA, isListA := a.([]any)
	listB, isListB := b.([]any)
	switch {
	case isObjectA && isObjectB:
		d.objects(at, objectA, objectB)
	case isListA && isListB:
		d.lists(at, listA, listB)
	case !reflect.DeepEqual(a, b):
		was, is := linesOf(at, a), linesOf(at, b)
		if len(was) == 1 && len(is) == 1 {
			was[0], is[0] = nearDifference(at.lead, was[0], is[0])
		}
		d.show(at, '-', was)
		d.show(at, '+', is)
	}
}

func (d *difference) objects(at place, a, b map[string]any) {
	all := maps.Clone(a)
	maps.Copy(all, b)
	for _, k := range slices.Sorted(maps.Keys(all)) {
		was, inA := a[k]
		is, inB := b[k]
		switch {
		case !inB:
			d.show(at.key(k), '-', linesOf(at.key(k), was))
		case !inA:
			d.show(at.key(k), '+', linesOf(at.key(k), is))
		default:
			d.compare(at.key(k), was, is)
		}
	}
}

// lists compares what has a name by name; else what is between the equal beginnings and the equal ends, in order.
func (d *difference) lists(at place, a, b []any) {
	namesA, namedA := namesOf(a)
	namesB, namedB := namesOf(b)
	if namedA && namedB {
		for i, name := range namesA {
			if j := slices.Index(namesB, name); j >= 0 {
				d.compare(at.index(j).named(name), a[i], b[j])
			} else {
				d.show(at.index(i), '-', linesOf(at.index(i), a[i]))
			}
		}
		for j, name := range namesB {
			if !slices.Contains(namesA, name) {
				d.show(at.index(j), '+', linesOf(at.index(j), b[j]))
			}
		}
		return
	}
	head := 0
	for head < len(a) && head < len(b) && reflect.DeepEqual(a[head], b[head]) {
		head++
	}
	for len(a) > head && len(b) > head && reflect.DeepEqual(a[len(a)-1], b[len(b)-1]) {
		a, b = a[:len(a)-1], b[:len(b)-1]
	}
	for i := head; i < max(len(a), len(b)); i++ {
		switch {
		case i >= len(b):
			d.show(at.index(i), '-', linesOf(at.index(i), a[i]))
		case i >= len(a):
			d.show(at.index(i), '+', linesOf(at.index(i), b[i]))
		default:
			d.compare(at.index(i), a[i], b[i])
		}
	}
}

// namesOf returns the names of the objects of a list, if each has one of its own.
func namesOf(list []any) ([]string, bool) {
	names, seen := make([]string, len(list)), map[string]bool{}
	for i, item := range list {
		object, _ := item.(map[string]any)
		name, ok := object["name"].(string)
		if !ok || seen[name] {
			return nil, false
		}
		names[i], seen[name] = name, true
	}
	return names, len(list) > 0
}

func (d *difference) show(at place, sign byte, lines []string) {
	if d.under != at.around || len(d.lines) == 0 {
		d.under = at.around
		d.lines = append(d.lines, strings.TrimRight("@@ "+manifest.Clip(escaped(at.around+"/ "+at.within), diffWidth), " "))
	}
	for _, l := range lines {
		d.lines = append(d.lines, string(sign)+" "+manifest.Clip(l, diffWidth))
	}
}

// linesOf writes a value as indented JSON.
func linesOf(at place, v any) []string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	_ = enc.Encode(v) // it was decoded from JSON
	return strings.Split(escaped(at.lead+strings.TrimSuffix(b.String(), "\n")), "\n")
}

func escaped(text string) string { return string(manifest.EscapeJSON([]byte(text))) }

// nearDifference cuts the beginning that two long lines share, so that what differs is not behind their end.
func nearDifference(lead, a, b string) (string, string) {
	if len(a) <= diffWidth && len(b) <= diffWidth {
		return a, b
	}
	same := 0
	for same < len(a) && same < len(b) && a[same] == b[same] {
		same++
	}
	from := same - diffContext
	lead = escaped(lead)
	if from <= len(lead) {
		return a, b
	}
	for !utf8.RuneStart(a[from]) {
		from--
	}
	return lead + "…" + a[from:], lead + "…" + b[from:]
}
