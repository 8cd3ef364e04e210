package api

import (
	"slices"
	"strconv"
	"strings"

	"github.com/parley-tools/parley/internal/lists"
	"github.com/parley-tools/parley/manifest"
)

// notation is how the parameters of a place in a request are written, as in RFC 6570. Only values that are lists or
// objects have more than one part.
type notation struct {
	escape   func(string) string
	isNamed  bool // a part is a name with a value
	exploded bool // each item, or member, is a part
	joint    string
}

// parts returns the parts of a parameter: none for a list or an object without members.
func (n notation) parts(name string, v value) (all []string) {
	if v.isObject() && n.exploded {
		n.isNamed = true
		for _, m := range v.members() {
			all = append(all, n.parts(m.name, m.value)...)
		}
		return all
	}
	if all = lists.Map(v.texts(), n.escape); !n.exploded && len(all) > 0 {
		all = []string{strings.Join(all, n.joint)}
	}
	if n.isNamed {
		all = lists.Map(all, func(text string) string { return n.escape(name) + "=" + text })
	}
	return all
}

// joints are the texts between the parts of a list, by style.
var joints = map[string]string{manifest.StyleComma: ",", manifest.StyleSpace: "%20", manifest.StylePipe: "%7C"}

// styled returns the parts of a parameter in a style.
func (n notation) styled(name, style string, v value) (all []string) {
	n.joint = joints[style]
	if n.exploded = n.joint == ""; style != manifest.StyleDeep {
		return n.parts(name, v)
	}
	for _, m := range v.deep(name) {
		all = append(all, n.parts(m.name, m.value)...)
	}
	return all
}

// deep returns the parts of a value, each with the path to it as its name: at[from], ids[], items[0][price].
func (v value) deep(name string) (all []member) {
	switch {
	case v.isObject():
		for _, m := range v.members() {
			all = append(all, m.deep(name+"["+m.name+"]")...)
		}
	case v.isList():
		numbered := slices.ContainsFunc(v.items(), value.isNested)
		for i, item := range v.items() {
			index := ""
			if numbered {
				index = strconv.Itoa(i)
			}
			all = append(all, item.deep(name+"["+index+"]")...)
		}
	default:
		all = []member{{name, v}}
	}
	return all
}
