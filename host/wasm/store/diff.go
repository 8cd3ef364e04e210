package store

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/parley-tools/parley/manifest"
	"github.com/parley-tools/parley/manifest/jsontext"
)

const (
	diffWidth   = 160 // bytes of a line that are shown
	diffContext = 40  // bytes shown before the first difference of two long values
)

// ManifestDiff returns the difference of two manifests as lines: "- POINTER: VALUE" for a value that only a has, and
// "+ POINTER: VALUE" for one that only b has. A pointer contains the name of a named item, such as a tool, instead of
// its index. The result has at most maxLines lines. Terminal control characters are escaped.
func ManifestDiff(a, b []byte, maxLines int) string {
	limits := jsontext.Limits{Bytes: manifest.MaxSize, Depth: 100}
	before, err := jsontext.Decode(a, limits)
	if err != nil {
		return "- the first manifest is not valid JSON: " + manifest.CleanLine(err.Error())
	}
	after, err := jsontext.Decode(b, limits)
	if err != nil {
		return "+ the second manifest is not valid JSON: " + manifest.CleanLine(err.Error())
	}
	was, is := leaves{}, leaves{}
	was.add("", before)
	is.add("", after)
	both := maps.Clone(was)
	maps.Copy(both, is)
	var lines []string
	for _, pointer := range slices.Sorted(maps.Keys(both)) {
		removed, added := without(was[pointer], is[pointer]), without(is[pointer], was[pointer])
		if len(removed) == 1 && len(added) == 1 {
			removed[0], added[0] = trimCommonPrefix(removed[0], added[0])
		}
		for _, value := range removed {
			lines = append(lines, diffLine("- ", pointer, value))
		}
		for _, value := range added {
			lines = append(lines, diffLine("+ ", pointer, value))
		}
	}
	switch {
	case len(lines) == 0 && bytes.Equal(a, b):
		return "the manifests are equal"
	case len(lines) == 0:
		return "the manifests are equal except for white space or the order of items"
	case len(lines) > maxLines:
		lines = append(lines[:maxLines-1], fmt.Sprintf("… and %d more lines", len(lines)-maxLines+1))
	}
	return strings.Join(lines, "\n")
}

// leaves are the values of a document that are compared as a whole, as JSON by pointer.
type leaves map[string][]string

// add adds the leaves of a value. It descends into objects and lists of named objects. The items of another list of
// objects are leaves with the same pointer, because their indices have no meaning. Any other list is a single leaf,
// because its order matters.
func (l leaves) add(pointer string, v any) {
	switch v := v.(type) {
	case map[string]any:
		for name, value := range v {
			l.add(pointer+"/"+jsontext.EscapeToken(name), value)
		}
		if len(v) > 0 {
			return
		}
	case []any:
		if names, ok := namesOf(v); ok {
			for i, item := range v {
				l.add(pointer+"/"+jsontext.EscapeToken(names[i]), item)
			}
			return
		}
		isScalar := func(item any) bool { _, isObject := item.(map[string]any); return !isObject }
		if len(v) > 0 && !slices.ContainsFunc(v, isScalar) {
			for _, item := range v {
				l[pointer] = append(l[pointer], string(jsontext.Marshal(item)))
			}
			return
		}
	}
	l[pointer] = append(l[pointer], string(jsontext.Marshal(v)))
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

// without returns the values that are not in others. If a value occurs n times in others, it leaves out n of its
// occurrences.
func without(values, others []string) (left []string) {
	count := map[string]int{}
	for _, v := range others {
		count[v]++
	}
	for _, v := range values {
		if count[v]--; count[v] < 0 {
			left = append(left, v)
		}
	}
	return left
}

// diffLine returns a line of at most diffWidth bytes. A long pointer is cut so that half of the line is left for the
// value.
func diffLine(sign, pointer, value string) string {
	escape := func(text string) string { return string(manifest.EscapeJSON([]byte(text))) }
	return manifest.Clip(sign+manifest.Clip(escape(pointer), diffWidth/2)+": "+escape(value), diffWidth)
}

// trimCommonPrefix shortens the common prefix of two long values, so that the difference is visible.
func trimCommonPrefix(a, b string) (string, string) {
	if len(a) <= diffWidth/2 && len(b) <= diffWidth/2 {
		return a, b
	}
	common := 0
	for common < len(a) && common < len(b) && a[common] == b[common] {
		common++
	}
	from := common - diffContext
	if from <= 0 {
		return a, b
	}
	for !utf8.RuneStart(a[from]) {
		from--
	}
	return "…" + a[from:], "…" + b[from:]
}
