package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/parley-tools/parley/internal/lists"
	"github.com/parley-tools/parley/manifest/spelling"
)

// typeWriter writes Go or TypeScript types of shapes.
type typeWriter struct {
	ts           bool
	names        map[string]bool // of the types so far
	imports      []string
	declarations []string
}

// write returns a whole source file. The outermost type comes first.
func (w *typeWriter) write(root *shape, name string) string {
	if !w.isStruct(root) {
		w.declarations = append(w.declarations, "")
		form := "type %s %s\n"
		if w.ts {
			form = "export type %s = %s;\n"
		}
		w.declarations[0] = fmt.Sprintf(form, name, w.typeOf(root, name+"Item"))
	} else {
		w.declare(root, name)
	}
	body := strings.Join(w.declarations, "\n")
	if w.ts {
		return body
	}
	head := "package types\n\n"
	switch slices.Sort(w.imports); len(w.imports) {
	case 0:
	case 1:
		head += fmt.Sprintf("import %q\n\n", w.imports[0])
	default:
		head += fmt.Sprintf("import (\n\t%q\n\t%q\n)\n\n", w.imports[0], w.imports[1])
	}
	return head + body
}

// isStruct reports whether all values are objects that become a type of their own.
func (w *typeWriter) isStruct(s *shape) bool {
	types := s.types()
	return len(types) == 1 && len(s.names) > 0 && s.values() == nil && (w.ts || !slices.ContainsFunc(s.names, hasNoTag))
}

// reserve returns a name in camel case that no other type has.
func (w *typeWriter) reserve(name string) string {
	return unique(strings.Join(wordsOf(name), ""), w.names)
}

func unique(name string, used map[string]bool) string {
	free := name
	for i := 2; used[free]; i++ {
		free = name + strconv.Itoa(i)
	}
	used[free] = true
	return free
}

// declare adds the declaration of an object. The ones that it refers to follow.
func (w *typeWriter) declare(s *shape, name string) {
	at := len(w.declarations)
	w.declarations = append(w.declarations, "")
	var rows [][3]string
	fields := map[string]bool{}
	for _, key := range s.names {
		member := s.members[key]
		t, tag := w.typeOf(member, name+strings.Join(wordsOf(key), "")), key
		optional := !s.required(key)
		if w.ts {
			if !isIdentifier(key) {
				quoted, _ := json.Marshal(key)
				key = string(quoted)
			}
			if optional {
				key += "?"
			}
			rows = append(rows, [3]string{key, t, ""})
			continue
		}
		if key == "-" {
			tag = "-,"
		}
		if optional {
			tag += ",omitempty"
			if w.isStruct(member) || t == "time.Time" {
				t = "*" + t // omitempty never leaves a struct out
			}
		}
		rows = append(rows, [3]string{unique(strings.Join(wordsOf(key), ""), fields), t, fmt.Sprintf("`json:%q`", tag)})
	}
	w.declarations[at] = w.fields(name, rows)
}

// fields writes a type of rows of name, type and tag, aligned as gofmt does.
func (w *typeWriter) fields(name string, rows [][3]string) string {
	var out strings.Builder
	if w.ts {
		fmt.Fprintf(&out, "export interface %s {\n", name)
		for _, row := range rows {
			fmt.Fprintf(&out, "  %s: %s;\n", row[0], row[1])
		}
		return out.String() + "}\n"
	}
	width := [2]int{}
	for _, row := range rows {
		for i := range width {
			width[i] = max(width[i], len([]rune(row[i])))
		}
	}
	fmt.Fprintf(&out, "type %s struct {\n", name)
	for _, row := range rows {
		fmt.Fprintf(&out, "\t%-*s %-*s %s\n", width[0], row[0], width[1], row[1], row[2])
	}
	return out.String() + "}\n"
}

// goTypes and tsTypes are the types of what JSON Schema calls by these names.
var (
	goTypes = map[string]string{"string": "string", "number": "float64", "integer": "int64", "boolean": "bool"}
	tsTypes = map[string]string{"string": "string", "number": "number", "integer": "number", "boolean": "boolean",
		"null": "null"}
)

// typeOf returns the type of a shape, and declares it under the name if it is an object.
func (w *typeWriter) typeOf(s *shape, name string) string {
	var types []string
	for _, kind := range s.types() {
		t := goTypes[kind]
		if w.ts {
			t = tsTypes[kind]
		}
		switch {
		case kind == "array":
			t = w.arrayOf(w.typeOf(s.items, singular(name)))
		case kind == "object":
			t = w.object(s, name)
		case w.ts:
		case kind == "string" && s.format() == "date-time":
			t = w.use("time", "time.Time")
		case kind == "integer" && s.large:
			t = w.use("encoding/json", "json.Number")
		}
		if t != "" {
			types = append(types, t)
		}
	}
	switch {
	case w.ts && len(types) > 0:
		return strings.Join(types, " | ")
	case w.ts:
		return "unknown"
	case len(types) != 1:
		return "any"
	case s.null && types[0] != "any" && types[0][0] != '[' && !strings.HasPrefix(types[0], "map"):
		return "*" + types[0]
	}
	return types[0]
}

func (w *typeWriter) arrayOf(t string) string {
	switch {
	case !w.ts:
		return "[]" + t
	case strings.Contains(t, " | "):
		return "(" + t + ")[]"
	}
	return t + "[]"
}

// object returns the type of objects: a declared one, or a map if their names are data or have no form in Go.
func (w *typeWriter) object(s *shape, name string) string {
	values, open := s.values(), "map[string]%s"
	if w.ts {
		open = "Record<string, %s>"
	}
	switch {
	case values != nil:
		return fmt.Sprintf(open, w.typeOf(values, singular(name)))
	case len(s.names) == 0 || !w.ts && slices.ContainsFunc(s.names, hasNoTag):
		return fmt.Sprintf(open, w.typeOf(&shape{}, ""))
	}
	name = w.reserve(name)
	w.declare(s, name)
	return name
}

func (w *typeWriter) use(path, t string) string {
	if !slices.Contains(w.imports, path) {
		w.imports = append(w.imports, path)
	}
	return t
}

// hasNoTag reports whether encoding/json cannot name a member by a tag.
func hasNoTag(name string) bool {
	return name == "" || strings.ContainsFunc(name, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("!#$%&()*+-./:;<=>?@[]^_{|}~ ", r)
	})
}

var isIdentifier = pattern(`^[A-Za-z_$][\w$]*$`)

// singular is the name of one item of what has the name.
func singular(name string) string {
	switch {
	case strings.HasSuffix(name, "ies"):
		return strings.TrimSuffix(name, "ies") + "y"
	case strings.HasSuffix(name, "s") && !strings.HasSuffix(name, "ss"):
		return strings.TrimSuffix(name, "s")
	case strings.HasSuffix(name, "Item"):
		return name
	}
	return name + "Item"
}

// initialisms are written in capitals in names of Go.
var initialisms = strings.Fields("id url uri api http https html json xml sql ip uuid css cpu ui")

// wordsOf splits a name into capitalized words. There is at least one, and it begins with a letter.
func wordsOf(name string) []string {
	words := lists.Map(spelling.Words(name), func(word string) string {
		if slices.Contains(initialisms, word) {
			return strings.ToUpper(word)
		}
		first, size := utf8.DecodeRuneInString(word)
		return string(unicode.ToUpper(first)) + word[size:]
	})
	if len(words) == 0 || !unicode.IsUpper([]rune(words[0])[0]) {
		words = append([]string{"X"}, words...)
	}
	return words
}
