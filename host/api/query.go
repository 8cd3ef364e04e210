package api

import (
	"slices"
	"strconv"
	"strings"

	"github.com/parley-tools/parley/internal/lists"
	"github.com/parley-tools/parley/manifest"
)

// pairs writes names and values in the form of a query or of a form body.
type pairs struct {
	escape func(string) string
	text   strings.Builder
}

// add adds a name with a value. The parts of the value are escaped and joined.
func (p *pairs) add(name, joint string, parts ...string) {
	if p.text.Len() > 0 {
		p.text.WriteByte('&')
	}
	p.text.WriteString(p.escape(name) + "=" + strings.Join(lists.Map(parts, p.escape), joint))
}

// joints are the texts between the parts of a list, by style.
var joints = map[string]string{manifest.StyleComma: ",", manifest.StyleSpace: "%20", manifest.StylePipe: "%7C"}

// addStyled adds a parameter in a style. A list or an object without members adds nothing.
func (p *pairs) addStyled(name, style string, v value) {
	texts := v.texts()
	switch joint, joined := joints[style]; {
	case len(texts) == 0:
	case !v.isNested():
		p.add(name, "", texts...)
	case style == manifest.StyleDeep:
		p.addDeep(name, v)
	case joined:
		p.add(name, joint, texts...)
	case v.isList():
		for _, text := range texts {
			p.add(name, "", text)
		}
	default:
		for _, m := range v.members() {
			p.addStyled(m.name, style, m.value)
		}
	}
}

// addDeep adds a value with the path to each of its parts in the name: at[from]=1, ids[]=1, items[0][price]=1.
func (p *pairs) addDeep(name string, v value) {
	switch {
	case v.isObject():
		for _, m := range v.members() {
			p.addDeep(name+"["+m.name+"]", m.value)
		}
	case v.isList():
		numbered := slices.ContainsFunc(v.items(), value.isNested)
		for i, item := range v.items() {
			index := ""
			if numbered {
				index = strconv.Itoa(i)
			}
			p.addDeep(name+"["+index+"]", item)
		}
	default:
		p.add(name, "", v.text())
	}
}
