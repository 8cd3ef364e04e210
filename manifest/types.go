package manifest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/parley-tools/parley/internal/lazy"
	"github.com/parley-tools/parley/internal/lists"
	"github.com/parley-tools/parley/manifest/jsontext"
)

// limits bound how much of a type one line shows: levels of fields, optional fields of an object, values of an enum.
type limits struct{ depth, optional, values int }

// narrower are the limits that are tried until a type fits, the widest first. With the last ones, an object ends once
// most of the bytes are used.
var narrower = []limits{{3, 12, 12}, {3, 6, 8}, {2, 6, 8}, {1, 8, 6}, {1, 4, 4}, {1, 0, 4}, {1, 2, 3}}

// Sizes of one type in bytes, and the number of schemas that are read for one type and for all parameters, which
// bounds the time.
const (
	paramBytes  = 300
	returnBytes = 24
	listBytes   = 60
	nestedBytes = 120
	typeSteps   = 600
	schemaSteps = 100_000
	maxValue    = 60 // a longer value of an enum is left out; a default must be shorter
)

// printer prints types on one line each: {op: "eq"|"lt", n?: integer = 5}[]. It counts what a limit leaves out: "… 3
// more".
type printer struct {
	root    *node
	program bool // in TypeScript; otherwise with the type names of JSON Schema, and formats as string<date>
	limits
	left   int // bytes left
	steps  int
	more   int           // how much the third tier says in addition: parts left out, and descriptions of fields
	active map[*node]int // the types that contain this one, each with its level
	level  int           // nesting level of the value
	whole  bool          // with bounds
	branch int           // for a union of several types with fields, the number of the case being printed; otherwise 0

	// shown has the paths of the types whose fields are on other lines. If it is set, the fields of a type are printed
	// as `{…}`.
	shown map[*node]string
}

// fit returns the type of a schema with the widest limits that keep it within bytes bytes. more counts the parts left
// out and the descriptions of its fields. If bytes is [maxListing], the type is whole.
func fit(n, root *node, bytes int, program bool) (text string, more int) {
	for i, l := range narrower {
		steps := min(typeSteps, schemaSteps-root.steps)
		if bytes == maxListing {
			l, steps = limits{maxListing, maxListing, maxListing}, schemaSteps-root.steps
		} else if program { // the type of all parameters
			l.depth, l.optional = l.depth+1, min(l.optional, optionalShown)
		}
		p := &printer{root: root, program: program, limits: l, left: bytes, steps: steps, whole: bytes == maxListing}
		isLast := i == len(narrower)-1
		if isLast {
			p.left = bytes / 2
		}
		begun := p.steps
		text, more = p.typeOf(n), p.more
		root.steps += begun - p.steps
		if len(text) <= bytes || isLast {
			break
		}
	}
	return text, more
}

func (p *printer) print(text string) string {
	p.left -= len(text)
	return text
}

// cut returns a text that says that n facts are left out.
func (p *printer) cut(n int) string {
	p.more += n
	return p.print(fmt.Sprintf("… %d more", n))
}

// typeOf returns the type of a schema.
func (p *printer) typeOf(n *node) string {
	p.level++
	defer func() { p.level-- }()
	if types := p.cases(n); len(types) > 0 {
		return strings.Join(types, "|")
	}
	return p.scalar(nil, "any")
}

// cases returns the types of a union, or the single type of any other schema.
func (p *printer) cases(n *node) (types []string) {
	if p.steps--; p.steps < 0 {
		return []string{p.cut(1)}
	}
	t, _ := n.resolve(p.root)
	if values := t.enum(); len(values) > 0 {
		return p.valuesOf(values)
	}
	if in := p.active[t]; in > 0 { // a type that contains itself
		if t.has("properties") {
			return []string{p.print("{…}")}
		}
		if in == p.level {
			return nil // the type is a union that contains itself
		}
		return []string{p.print("…")}
	}
	if p.active == nil {
		p.active = map[*node]int{}
	}
	p.active[t] = p.level
	defer delete(p.active, t)
	branches, kinds := t.branches(), strings.Split(t.typeName(p.root), "|")
	isUnion := len(branches) > 0 && !t.has("properties")
	total := len(kinds)
	if isUnion {
		total = len(branches)
	}
	for i := range total {
		var more []string
		switch {
		case i >= p.values || i > 0 && p.left < 0:
			return append(types, p.cut(total-i))
		case isUnion:
			if p.branch = 0; p.shown != nil && t.isChoice(p.root) {
				p.branch = i + 1
			}
			more = p.cases(branches[i])
			p.branch = 0
		case kinds[i] == "object":
			more = []string{p.object(t) + p.bounds(t, kinds[i])}
		case kinds[i] == "array":
			more = []string{p.array(t) + p.bounds(t, kinds[i])}
		default:
			more = []string{p.scalar(t, kinds[i])}
		}
		types = lists.Add(types, more...)
	}
	return types
}

func (p *printer) valuesOf(values []json.RawMessage) (words []string) {
	for i, v := range values {
		if i >= p.values || i > 0 && p.left < 0 || len(v) > maxValue && p.shown == nil {
			return append(words, p.cut(len(values)-i))
		}
		words = append(words, p.print(string(v)))
	}
	return words
}

// join returns the first n values of an enum, and counts the others.
func join(values []json.RawMessage, n int) string {
	p := &printer{limits: limits{values: n}, left: maxListing, shown: map[*node]string{}}
	return strings.Join(p.valuesOf(values), "|")
}

// scalar returns a type without parts, with its format.
func (p *printer) scalar(t *node, kind string) string {
	format := CleanLine(cmp.Or(t.text("format"), t.text("contentEncoding")))
	if kind != "string" && kind != "integer" && kind != "number" || len(format) > maxValue {
		format = ""
	}
	bounds := p.bounds(t, kind)
	if !p.program {
		if format != "" {
			kind += "<" + format + ">"
		}
		return p.print(kind) + bounds
	}
	switch kind {
	case "integer":
		kind = "number"
	case "string", "number", "boolean", "null":
	default:
		kind = "unknown"
	}
	if format != "" {
		kind += " /*" + strings.ReplaceAll(format, "*/", "") + "*/"
	}
	return p.print(kind) + bounds
}

func (p *printer) array(t *node) string {
	var parts []string
	tuple := t.tuple()
	for i, n := range tuple {
		if i >= p.values {
			parts = append(parts, p.cut(len(tuple)-i))
			break
		}
		parts = append(parts, p.typeOf(n))
	}
	item := p.scalar(nil, "any")
	if items := t.items(); items.isObject() {
		item = p.typeOf(items)
	} else if len(tuple) > 0 {
		return "[" + strings.Join(parts, ", ") + "]"
	}
	if item = listOf(item); len(tuple) > 0 {
		return "[" + strings.Join(append(parts, "..."+item), ", ") + "]"
	}
	return item
}

// listOf returns the type of an array whose items have a type.
func listOf(item string) string {
	if strings.ContainsAny(item, "| ") && !isGroup(item) {
		item = "(" + item + ")"
	}
	return item + "[]"
}

// isGroup reports whether a type is one object, tuple or list, which needs no brackets around it.
func isGroup(text string) bool {
	for strings.HasSuffix(text, "[]") {
		text = text[:len(text)-2]
	}
	open := 0
	for i, c := range text {
		switch c {
		case '{', '[', '(':
			open++
		case '}', ']', ')':
			if open--; open == 0 {
				return strings.IndexByte("{[(", text[0]) >= 0 && i == len(text)-1
			}
		}
	}
	return false
}

// object returns the fields of an object, required ones first, and a limited number of optional ones.
func (p *printer) object(t *node) string {
	names, others, branch := t.ordered(), t.others(), p.branch
	p.branch = 0
	switch {
	case len(names) == 0 && len(others) == 0:
		return p.print("object")
	case len(names) == 0 && len(others) == 1 && (!p.whole || others[0].pattern == ""):
		return "Record<string, " + p.typeOf(others[0].node) + ">"
	case len(names) == 0:
	case p.shown[t] != "":
		return p.print("{… as " + p.shown[t] + "}")
	case p.depth == 0 && p.shown == nil:
		return p.print("{") + p.cut(len(names)) + p.print("}")
	}
	p.depth--
	defer func() { p.depth++ }()
	var fields []string
	optional := 0
	if p.shown != nil && len(names) > 0 {
		fields, names = []string{p.print("…")}, nil
		if branch > 0 {
			fields = []string{p.print(fmt.Sprintf("… case %d", branch))}
		}
	}
	for i, name := range names {
		isRequired := t.required()[name]
		if !isRequired {
			optional++
		}
		if optional > p.optional || p.left < 6 {
			fields = append(fields, p.cut(len(names)-i))
			break
		}
		fields = append(fields, p.field(name, isRequired, t.at("properties").at(name)))
	}
	for i, o := range others {
		if i >= p.values || i > 0 && p.left < 0 {
			fields = append(fields, p.cut(len(others)-i))
			break
		}
		fields = append(fields, p.print(o.key(p.program)+": ")+p.typeOf(o.node))
	}
	return "{" + strings.Join(fields, ", ") + "}"
}

func (p *printer) field(name string, isRequired bool, n *node) string {
	name = CleanLine(name)
	if plain := identifier(); p.program && !plain.MatchString(name) || strings.ContainsAny(name, " :,?{}[]()|\"") {
		name = quoteLine(name)
	}
	if !isRequired {
		name += "?"
	}
	text := p.print(name+": ") + p.typeOf(n)
	t, _ := n.resolve(p.root)
	if n.has("description") || t.has("description") {
		p.more++
	}
	value := defaultOf(n, t)
	switch {
	case value == nil, string(value) == "{}", string(value) == "[]", string(value) == "null":
		return text
	case len(value) > maxValue:
		p.more++
		return text
	}
	return text + p.print(" = "+string(value))
}

var identifier = lazy.Pattern(`^[A-Za-z_$][A-Za-z0-9_$]*$`)

func quoteLine(s string) string {
	return string(jsontext.AppendString(nil, CleanLine(s)))
}

// NestedType returns the type of the value at a JSON pointer on one line if the type has parts, such as fields;
// otherwise "".
func NestedType(schema json.RawMessage, pointer string) string {
	tokens, _ := jsontext.SplitPointer(pointer)
	at, root := paramAt(schema, tokens)
	text, _ := fit(at, root, nestedBytes, false)
	if strings.ContainsAny(text, "{,") || strings.HasPrefix(text, "[") {
		return text
	}
	return ""
}

// Signature returns name(a: string, b?: integer): required parameters first, in the order of the schema.
func Signature(name string, params []Param) string {
	return name + "(" + typeList(requiredFirst(params), func(p *Param) string { return cmp.Or(p.short, p.Type) }) + ")"
}

// signatureBytes bounds a signature that describes the parameters, together with the brief of the tool: the first
// tier has 50 tokens.
const signatureBytes = 190

// briefSignature returns the signature of a tool. If it fits, it describes each parameter: hash(text: string /* Text
// to hash */).
func briefSignature(d *ToolDocs) string {
	if text := d.Name + "(" + typeList(d.Parameters, (*Param).briefed) + ")"; len(text)+len(d.Brief) <= signatureBytes {
		return text
	}
	return Signature(d.Name, d.Parameters)
}

// SignatureNames returns the names of the parameters in a signature. Optional ones end in a question mark.
func SignatureNames(signature string) (names []string) {
	_, rest, _ := strings.Cut(signature, "(")
	depth, begin, isText := 0, 0, false
	for i := range len(rest) {
		switch c := rest[i]; {
		case c == '"' && (i == 0 || rest[i-1] != '\\'):
			isText = !isText
		case isText:
		case strings.IndexByte("{[(<", c) >= 0:
			depth++
		case strings.IndexByte("}])>", c) >= 0:
			depth--
		case c == ':' && depth == 0:
			names = append(names, strings.TrimLeft(rest[begin:i], ", "))
		case c == ',' && depth == 0:
			begin = i
		}
	}
	return names
}

// typeList returns names with their types: a: string, b?: integer.
func typeList(params []Param, typeOf func(*Param) string) string {
	var words []string
	for _, p := range params {
		mark := ": "
		if !p.Required {
			mark = "?: "
		}
		words = append(words, p.Name+mark+typeOf(&p))
	}
	return strings.Join(words, ", ")
}

// requiredFirst returns parameters with the required ones first.
func requiredFirst(params []Param) []Param {
	return partition(params, func(p Param) bool { return p.Required })
}

// TypedSignature returns the signature of a tool with its types in full, and the type of the result: shot(format?:
// "png"|"webp") -> {data: string<base64>}.
func TypedSignature(name string, t *Tool) string {
	all := paramsWithin(t.Params, paramBytes, asParams)
	for i := range all {
		all[i].short = all[i].TypeText()
	}
	text := Signature(name, all)
	if root := readNode(t.Returns); len(paramsWithin(t.Returns, returnBytes, asResult)) > 0 {
		result, _ := fit(root, root, returnBytes, false)
		text += " -> " + result
	}
	return text
}
