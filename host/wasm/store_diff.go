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
	"github.com/parley-tools/parley/manifest/jsontext"
)

const (
	diffWidth   = 160 // bytes of a line that are shown
	diffContext = 40  // bytes shown before the first difference of two long lines
)

// ManifestDiff returns the difference of two manifests as lines of indented JSON: "-" precedes what only a has, "+"
// what only b has, and "@@" heads each group with the JSON pointer of the surrounding object or list. Lists of
// named items, such as tools, are compared by name. The result has at most maxLines lines. Terminal control
// characters are escaped.
func ManifestDiff(a, b []byte, maxLines int) string {
	limits := jsontext.Limits{Bytes: maxManifest, Depth: 100}
	before, err := jsontext.Decode(a, limits)
	if err != nil {
		return "- the first manifest is not valid JSON: " + manifest.CleanLine(err.Error())
	}
	after, err := jsontext.Decode(b, limits)
	if err != nil {
		return "+ the second manifest is not valid JSON: " + manifest.CleanLine(err.Error())
	}
	d := &differ{}
	d.compare(location{}, before, after)
	switch {
	case len(d.lines) == 0 && bytes.Equal(a, b):
		return "the manifests are equal"
	case len(d.lines) == 0:
		return "the manifests are equal except for white space or the order of named items"
	case len(d.lines) > maxLines:
		d.lines = append(d.lines[:maxLines-1], fmt.Sprintf("… and %d more lines", len(d.lines)-maxLines+1))
	}
	return strings.Join(d.lines, "\n")
}

// differ collects the lines of a difference. heading is the pointer of the last heading.
type differ struct {
	lines   []string
	heading string
}

// location is the position of a value: the pointer of the surrounding object or list, the value's own step from
// there, and the text before the value in a line of JSON. name is the name of the nearest named item that is or
// contains the value, parentName the same for what surrounds it.
type location struct{ parent, step, prefix, name, parentName string }

func (l location) pointer() string { return l.parent + l.step }

func (l location) key(k string) location {
	step := strings.ReplaceAll(strings.ReplaceAll(k, "~", "~0"), "/", "~1")
	return location{l.pointer(), "/" + step, string(jsontext.Marshal(k)) + ": ", l.name, l.name}
}

func (l location) index(i int) location {
	return location{l.pointer(), "/" + strconv.Itoa(i), "", l.name, l.name}
}

func (l location) named(name string) location {
	l.name = name
	return l
}

func (d *differ) compare(at location, a, b any) {
	objectA, isObjectA := a.(map[string]any)
	objectB, isObjectB := b.(map[string]any)
	listA, isListA := a.([]any)
	listB, isListB := b.([]any)
	switch {
	case isObjectA && isObjectB:
		d.compareObjects(at, objectA, objectB)
	case isListA && isListB:
		d.compareLists(at, listA, listB)
	case !reflect.DeepEqual(a, b):
		was, is := jsonLines(at, a), jsonLines(at, b)
		if len(was) == 1 && len(is) == 1 {
			was[0], is[0] = trimCommonPrefix(at.prefix, was[0], is[0])
		}
		d.addLines(at, '-', was)
		d.addLines(at, '+', is)
	}
}

func (d *differ) compareObjects(at location, a, b map[string]any) {
	all := maps.Clone(a)
	maps.Copy(all, b)
	for _, k := range slices.Sorted(maps.Keys(all)) {
		was, inA := a[k]
		is, inB := b[k]
		switch {
		case !inB:
			d.addLines(at.key(k), '-', jsonLines(at.key(k), was))
		case !inA:
			d.addLines(at.key(k), '+', jsonLines(at.key(k), is))
		default:
			d.compare(at.key(k), was, is)
		}
	}
}

// compareLists compares lists of named items by name. Of other lists it skips the common beginning and end, and
// compares the rest by index.
func (d *differ) compareLists(at location, a, b []any) {
	namesA, namedA := namesOf(a)
	namesB, namedB := namesOf(b)
	if namedA && namedB {
		for i, name := range namesA {
			if j := slices.Index(namesB, name); j >= 0 {
				d.compare(at.index(j).named(name), a[i], b[j])
			} else {
				d.addLines(at.index(i), '-', jsonLines(at.index(i), a[i]))
			}
		}
		for j, name := range namesB {
			if !slices.Contains(namesA, name) {
				d.addLines(at.index(j), '+', jsonLines(at.index(j), b[j]))
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
			d.addLines(at.index(i), '-', jsonLines(at.index(i), a[i]))
		case i >= len(a):
			d.addLines(at.index(i), '+', jsonLines(at.index(i), b[i]))
		default:
			d.compare(at.index(i), a[i], b[i])
		}
	}
}

// namesOf returns the names of the objects in a list if all have one and all differ.
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

func (d *differ) addLines(at location, sign byte, lines []string) {
	if d.heading != at.parent || len(d.lines) == 0 {
		d.heading = at.parent
		d.lines = append(d.lines, strings.TrimRight("@@ "+manifest.Clip(escapeText(at.parent+"/ "+at.parentName),
			diffWidth), " "))
	}
	for _, l := range lines {
		d.lines = append(d.lines, string(sign)+" "+manifest.Clip(l, diffWidth))
	}
}

// jsonLines encodes a value as indented JSON.
func jsonLines(at location, v any) []string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	_ = enc.Encode(v) // cannot fail: the value was decoded from JSON
	return strings.Split(escapeText(at.prefix+strings.TrimSuffix(b.String(), "\n")), "\n")
}

func escapeText(text string) string { return string(manifest.EscapeJSON([]byte(text))) }

// trimCommonPrefix shortens the common beginning of two long lines, so that the difference is within the width
// shown.
func trimCommonPrefix(prefix, a, b string) (string, string) {
	if len(a) <= diffWidth && len(b) <= diffWidth {
		return a, b
	}
	common := 0
	for common < len(a) && common < len(b) && a[common] == b[common] {
		common++
	}
	from := common - diffContext
	prefix = escapeText(prefix)
	if from <= len(prefix) {
		return a, b
	}
	for !utf8.RuneStart(a[from]) {
		from--
	}
	return prefix + "…" + a[from:], prefix + "…" + b[from:]
}
