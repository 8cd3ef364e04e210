package page

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// logged is a value in a message of the console (Runtime.RemoteObject).
type logged struct {
	Type        string // "" in a message that has only the text of its value
	Subtype     string
	Value       any
	Description string
	Preview     *preview
}

// preview is Chrome's one-line preview of an object (Runtime.ObjectPreview).
type preview struct {
	Type, Subtype, Description string
	Overflow                   bool // there are more properties
	Properties                 []previewProperty
	Entries                    []struct{ Key, Value *preview } // of a map or a set
}

type previewProperty struct {
	Name, Type, Subtype, Value string
	ValuePreview               *preview // for a table
}

// Logged returns what was logged as Chrome's console prints it: it fills in the format directives of the first value,
// and shows objects by their properties.
func (p *EventParams) Logged() string {
	args := p.Args
	if p.Type == "table" { // the other arguments are names of columns
		args = args[:min(len(args), 1)]
	}
	var words []string
	if len(args) > 1 {
		if format, ok := args[0].Value.(string); ok && strings.Contains(format, "%") {
			var text string
			text, args = fillIn(format, args[1:])
			words = append(words, text)
		}
	}
	for _, arg := range args {
		words = append(words, arg.String())
	}
	return strings.Join(words, " ")
}

// fillIn replaces the directives of a format by values (https://console.spec.whatwg.org/#formatter). It returns the
// values that are left.
func fillIn(format string, args []logged) (string, []logged) {
	var b strings.Builder
	for len(args) > 0 {
		before, rest, found := strings.Cut(format, "%")
		if !found || rest == "" {
			break
		}
		b.WriteString(before)
		switch directive := rest[0]; directive {
		case 's', 'o', 'O':
			b.WriteString(args[0].String())
			args = args[1:]
		case 'd', 'i', 'f':
			b.WriteString(args[0].number(directive != 'f'))
			args = args[1:]
		case 'c': // a style
			args = args[1:]
		case '%':
			b.WriteByte('%')
		default:
			b.WriteString("%" + rest[:1])
		}
		format = rest[1:]
	}
	return b.String() + strings.ReplaceAll(format, "%%", "%"), args
}

// number returns the value as a number, which is truncated if whole is set.
func (l logged) number(whole bool) string {
	n, err := strconv.ParseFloat(l.String(), 64)
	switch {
	case err != nil || math.IsNaN(n):
		return "NaN"
	case whole && n == float64(int64(n)) || l.Type == "number" && !whole:
		return l.String()
	case whole:
		return strconv.FormatInt(int64(n), 10)
	}
	return strconv.FormatFloat(n, 'g', -1, 64)
}

func (l logged) String() string {
	switch value := l.Value.(type) {
	case string:
		return value
	case nil:
		switch {
		case l.Type == "undefined" || l.Subtype == "null":
			return cmp.Or(l.Subtype, l.Type)
		case l.Preview != nil && l.Preview.isOpen():
			return l.Preview.String()
		}
		return l.headline()
	}
	if l.Description != "" {
		return l.Description
	}
	text, _ := json.Marshal(l.Value)
	return string(text)
}

// headline returns the first line of a description, and for an error also the first line of its cause.
func (l logged) headline() string {
	text, _, _ := strings.Cut(l.Description, "\n")
	if l.Preview != nil && l.Subtype == "error" {
		for _, of := range l.Preview.Properties {
			if of.Name == "cause" {
				cause, _, _ := strings.Cut(of.Value, "\n")
				text += " Caused by: " + cause
			}
		}
	}
	return text
}

// isOpen reports whether Chrome prints the properties of an object. For others, such as errors, elements, dates and
// functions, it prints the description.
func (p *preview) isOpen() bool {
	switch p.Subtype {
	case "", "array", "typedarray", "map", "set", "weakmap", "weakset", "arraybuffer", "dataview", "iterator", "generator",
		"promise", "proxy":
		return p.Type == "object"
	}
	return false
}

func (p *preview) String() string {
	switch {
	case p.Type == "string":
		return quoteLogged(p.Description)
	case !p.isOpen():
		text, _, _ := strings.Cut(p.Description, "\n")
		return text
	}
	list := p.Subtype == "array" || p.Subtype == "typedarray"
	var parts []string
	next := 0
	holes := func(end int) { // adds the missing elements of an array
		if missing := end - next; p.Subtype == "array" && missing > 0 {
			parts = append(parts, strings.TrimSuffix(fmt.Sprintf("empty × %d", missing), " × 1"))
		}
		next = end + 1
	}
	for _, e := range p.Entries {
		part := e.Value.String()
		if e.Key != nil {
			part = e.Key.String() + " => " + part
		}
		parts = append(parts, part)
	}
	for _, of := range p.Properties {
		switch index, err := strconv.Atoi(of.Name); {
		case len(p.Entries) > 0 && of.Name == "size" || p.Subtype == "typedarray" && err != nil:
		case list && err == nil:
			holes(index)
			parts = append(parts, of.text())
		default:
			parts = append(parts, of.Name+": "+of.text())
		}
	}
	if p.Overflow {
		parts = append(parts, "…")
	} else if _, size, ok := strings.Cut(p.Description, "("); ok && len(p.Entries) == 0 {
		length, _ := strconv.Atoi(strings.TrimSuffix(size, ")"))
		holes(length)
	}
	inner, name := strings.Join(parts, ", "), p.Description
	if list {
		switch name {
		case "Array(0)", "Array(1)":
			return "[" + inner + "]"
		}
		return strings.TrimPrefix(name, "Array") + " [" + inner + "]"
	}
	if name == "Object" {
		name = ""
	}
	return strings.TrimPrefix(name+" {"+inner+"}", " ")
}

// text returns the value of a property.
func (p previewProperty) text() string {
	switch p.Type {
	case "string":
		return quoteLogged(p.Value)
	case "function":
		return "ƒ"
	case "object":
		if p.ValuePreview != nil {
			return p.ValuePreview.String()
		}
		if p.Value == "Object" {
			return "{…}"
		}
	case "accessor":
		return "(…)"
	}
	return p.Value
}

// quoteLogged quotes a text in an object, as Chrome's console does.
func quoteLogged(s string) string { return "'" + strings.ReplaceAll(s, "'", `\'`) + "'" }
