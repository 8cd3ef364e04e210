package manifest

import (
	"bytes"
	"encoding/json"
	"net/url"
	"slices"
	"strings"

	"github.com/parley-tools/parley/manifest/jsontext"
)

// Param is a parameter, or a property of a result, as documentation shows it.
type Param struct {
	Name        string            `json:"name"`
	Type        string            `json:"type"` // such as string or any; "a|b" for a union
	Required    bool              `json:"required"`
	Items       *Items            `json:"items,omitempty"`
	Ref         string            `json:"ref,omitempty"`    // name of the schema that defines the type
	Fields      string            `json:"fields,omitempty"` // of an object or each item: "name: string, url?: string"
	Enum        []json.RawMessage `json:"enum,omitempty"`
	Default     json.RawMessage   `json:"default,omitempty"`
	Description string            `json:"description"`
}

// Items describes the items of an array.
type Items struct {
	Type string            `json:"type"`
	Ref  string            `json:"ref,omitempty"`
	Enum []json.RawMessage `json:"enum,omitempty"`
}

// Params returns the properties of a schema in their order in the schema. A schema for anything but an object gives
// one Param with the name "result". Texts are cleaned, and hidden characters of values are escaped. Any schema is read
// in time linear in its size, also one that has not passed the gate.
func Params(schema json.RawMessage) []Param {
	if len(schema) == 0 {
		return nil
	}
	root := readNode(schema)
	target, _ := root.resolve(root)
	names := target.at("properties").names()
	if len(names) == 0 {
		if t := target.typeName(root); t != "object" && t != "any" || target.has("description") && t != "object" {
			p := describeParam("result", root, root)
			p.Required = true
			return []Param{p}
		}
		return nil
	}
	required := map[string]bool{}
	for _, name := range target.strings("required") {
		required[name] = true
	}
	params := make([]Param, 0, len(names))
	for _, name := range names {
		p := describeParam(name, target.at("properties").at(name), root)
		p.Required = required[name]
		params = append(params, p)
	}
	return params
}

func describeParam(name string, n, root *node) Param {
	p := Param{Name: CleanLine(name)}
	target, ref := n.resolve(root)
	p.Type, p.Ref = target.typeName(root), CleanLine(ref)
	p.Enum, p.Default = target.enum(), n.value("default")
	if p.Default == nil {
		p.Default = target.value("default")
	}
	p.Description = CleanLine(n.text("description"))
	if p.Description == "" {
		p.Description = CleanLine(target.text("description"))
	}
	if target.has("items") && strings.Contains(p.Type, "array") {
		it, itRef := target.at("items").resolve(root)
		p.Items = &Items{Type: it.typeName(root), Ref: CleanLine(itRef), Enum: it.enum()}
		p.Fields = it.fields(root)
	} else {
		p.Fields = target.fields(root)
	}
	return p
}

// maxFields bounds the fields of an object that documentation lists; the schema and the named type have all of them.
const maxFields = 12

// fields lists the properties of an object, one level deep, required ones first.
func (n *node) fields(root *node) string {
	names := n.at("properties").names()
	if len(names) == 0 {
		return ""
	}
	if n.inside != nil {
		return *n.inside
	}
	required := map[string]bool{}
	for _, name := range n.strings("required") {
		required[name] = true
	}
	var first, then []string
	for i, name := range names {
		if i == maxFields {
			then = append(then, "…")
			break
		}
		target, _ := n.at("properties").at(name).resolve(root)
		p := Param{Type: target.typeName(root)}
		if target.has("items") && p.Type == "array" {
			it, _ := target.at("items").resolve(root)
			p.Items = &Items{Type: it.typeName(root)}
		}
		if required[name] {
			first = append(first, CleanLine(name)+": "+p.short())
		} else {
			then = append(then, CleanLine(name)+"?: "+p.short())
		}
	}
	inside := strings.Join(append(first, then...), ", ")
	n.inside = &inside
	return inside
}

// Signature returns name(a: string, b?: integer): required parameters first, in the order of the schema.
func Signature(name string, params []Param) string {
	var required, optional []string
	for _, p := range params {
		if p.Required {
			required = append(required, p.Name+": "+p.short())
		} else {
			optional = append(optional, p.Name+"?: "+p.short())
		}
	}
	return name + "(" + strings.Join(append(required, optional...), ", ") + ")"
}

// signatureEnum is how many values of an enum a typed signature shows.
const signatureEnum = 8

// TypedSignature returns the signature of a tool with the values of enums and the type of the result:
// shot(format?: "png"|"webp") -> {data: string}.
func TypedSignature(name string, t *Tool) string {
	params := Params(t.Params)
	for i, p := range params {
		params[i].Type, params[i].Items = p.typed(), nil
	}
	text := Signature(name, params)
	var fields []string
	returns := Params(t.Returns)
	for _, r := range returns {
		mark := ""
		if !r.Required {
			mark = "?"
		}
		fields = append(fields, r.Name+mark+": "+r.typed())
	}
	switch {
	case len(returns) == 1 && returns[0].Name == "result":
		text += " -> " + returns[0].typed()
	case len(fields) > 0:
		text += " -> {" + strings.Join(fields, ", ") + "}"
	}
	return text
}

// typed returns the type as a typed signature shows it: that of [Param.Text], or the values of its enum.
func (p Param) typed() string {
	values, list := p.Enum, ""
	if values == nil && p.Items != nil && p.Type == "array" {
		values, list = p.Items.Enum, "[]"
	}
	if len(values) == 0 {
		return p.short()
	}
	var words []string
	for _, v := range values[:min(len(values), signatureEnum)] {
		words = append(words, string(v))
	}
	if len(values) > signatureEnum {
		words = append(words, "…")
	}
	text := strings.Join(words, "|")
	if list != "" {
		text = "(" + text + ")"
	}
	return text + list
}

// short returns the type as a signature shows it: integer, string[], (string|null)[].
func (p Param) short() string {
	if p.Type == "array" && p.Items != nil {
		if strings.Contains(p.Items.Type, "|") {
			return "(" + p.Items.Type + ")[]"
		}
		return p.Items.Type + "[]"
	}
	return p.Type
}

// node is a value of a JSON document. Its members are read on first use. A nil node is a value that does not exist.
type node struct {
	raw     json.RawMessage
	members map[string]*node
	order   []string

	kind   string // the result of typeName; "" before, pending during its search
	values []json.RawMessage
	listed bool    // whether values is set
	inside *string // the result of fields
}

// pending marks a node whose type is being searched, so that the search ends for a type that contains itself.
const pending = "\x00"

func readNode(data json.RawMessage) *node { return &node{raw: data} }

// open reads the members of an object. Other values have none.
func (n *node) open() {
	if n == nil || n.members != nil {
		return
	}
	n.members = map[string]*node{}
	in := jsontext.Scan(n.raw)
	in.Members(func(key []byte) {
		name, _ := jsontext.Unquote(key)
		if _, twice := n.members[name]; !twice {
			n.order = append(n.order, name)
		}
		n.members[name] = &node{raw: in.Skip()}
	})
}

func (n *node) at(key string) *node {
	if n == nil {
		return nil
	}
	n.open()
	return n.members[key]
}

func (n *node) names() []string {
	if n == nil {
		return nil
	}
	n.open()
	return n.order
}

func (n *node) has(key string) bool { return n.at(key) != nil }

// value returns a member as it is shown, on one line with hidden characters escaped, nil if there is none.
func (n *node) value(key string) json.RawMessage {
	v := n.at(key)
	if v == nil {
		return nil
	}
	return EscapeJSON(CompactJSON(v.raw))
}

func (n *node) text(key string) string {
	var s string
	if v := n.at(key); v != nil {
		_ = json.Unmarshal(v.raw, &s)
	}
	return s
}

func (n *node) strings(key string) []string {
	var s []string
	if v := n.at(key); v != nil {
		_ = json.Unmarshal(v.raw, &s)
	}
	return s
}

func (n *node) list(key string) []json.RawMessage {
	var l []json.RawMessage
	if v := n.at(key); v != nil {
		_ = json.Unmarshal(v.raw, &l)
	}
	return l
}

// maxRefs bounds a chain of references.
const maxRefs = 8

// resolve follows local references and returns the name in the last one. The target is nil, documented as "any", where
// a reference leads to nothing or into an array.
func (n *node) resolve(root *node) (target *node, name string) {
	target = n
	for range maxRefs {
		ref := target.text("$ref")
		if ref == "" {
			return target, name
		}
		fragment, local := strings.CutPrefix(ref, "#")
		pointer, err := url.PathUnescape(fragment)
		if !local || err != nil {
			return nil, name
		}
		if pointer == "" {
			target, name = root, ""
			continue
		}
		steps := strings.Split(pointer, "/")
		name = steps[len(steps)-1]
		if steps[0] != "" {
			return nil, name // an anchor
		}
		target = root
		for _, step := range steps[1:] {
			target = target.at(jsontext.UnescapeToken(step))
		}
		if target == nil {
			return nil, name
		}
	}
	return nil, name
}

func (n *node) typeName(root *node) string {
	if n == nil {
		return "any"
	}
	if n.kind == "" {
		n.kind = pending
		n.kind = n.findType(root)
	}
	if n.kind == pending {
		return "" // a caller up the stack is searching this type
	}
	return n.kind
}

func (n *node) findType(root *node) string {
	if one := CleanLine(n.text("type")); one != "" {
		return one
	}
	if many := n.strings("type"); len(many) > 0 {
		return CleanLine(strings.Join(many, "|"))
	}
	for _, key := range []string{"anyOf", "oneOf"} {
		var names []string
		for _, branch := range n.list(key) {
			target, _ := readNode(branch).resolve(root)
			for _, name := range strings.Split(target.typeName(root), "|") {
				if name != "" && !slices.Contains(names, name) {
					names = append(names, name)
				}
			}
		}
		if len(names) > 0 {
			return strings.Join(names, "|")
		}
	}
	switch {
	case n.has("properties"):
		return "object"
	case n.has("items"):
		return "array"
	}
	values := n.list("enum")
	if c := n.at("const"); c != nil {
		values = []json.RawMessage{c.raw}
	}
	kind := ""
	for _, v := range values {
		if k := kindOf(v); kind == "" {
			kind = k
		} else if kind != k {
			return "any"
		}
	}
	if kind != "" {
		return kind
	}
	return "any"
}

func (n *node) enum() []json.RawMessage {
	if n == nil {
		return nil
	}
	if n.listed {
		return n.values
	}
	n.listed = true
	if n.has("const") {
		n.values = []json.RawMessage{n.value("const")}
		return n.values
	}
	n.values = n.list("enum")
	for i := range n.values {
		n.values[i] = EscapeJSON(CompactJSON(n.values[i]))
	}
	return n.values
}

func kindOf(v json.RawMessage) string {
	v = bytes.TrimSpace(v)
	if len(v) == 0 {
		return "any"
	}
	switch v[0] {
	case '"':
		return "string"
	case '{':
		return "object"
	case '[':
		return "array"
	case 't', 'f':
		return "boolean"
	case 'n':
		return "null"
	}
	if bytes.ContainsAny(v, ".eE") {
		return "number"
	}
	return "integer"
}

// TypeAt returns the type of the parameter at a path of property names, and the type of its items if it is an array.
// Both are "" where the schema does not describe it; "any" is a parameter without a restriction.
func TypeAt(schema json.RawMessage, path ...string) (kind, items string) {
	at, root := paramAt(schema, path)
	if at == nil {
		return "", ""
	}
	if at.has("items") {
		item, _ := at.at("items").resolve(root)
		items = item.typeName(root)
	}
	return at.typeName(root), items
}

// Base64At reports whether the parameter at a path of property names, or each of its items, is text in base64.
func Base64At(schema json.RawMessage, path ...string) bool {
	at, root := paramAt(schema, path)
	if at.has("items") {
		at, _ = at.at("items").resolve(root)
	}
	isBase64 := at.text("contentEncoding") == "base64"
	for _, branch := range append(at.list("anyOf"), at.list("oneOf")...) {
		branch, _ := readNode(branch).resolve(root)
		isBase64 = isBase64 || branch.text("contentEncoding") == "base64"
	}
	return isBase64
}

// paramAt returns the schema of the parameter at a path of property names, nil if there is none, and the root. Further
// down than the first name, a schema of all other properties counts.
func paramAt(schema json.RawMessage, path []string) (at, root *node) {
	root = readNode(schema)
	at, _ = root.resolve(root)
	for i, step := range path {
		next := at.at("properties").at(step)
		if next == nil && i > 0 {
			next = at.at("additionalProperties")
		}
		if next == nil {
			return nil, root
		}
		at, _ = next.resolve(root)
	}
	return at, root
}

// Binary returns the base64 text of a result whose schema declares one (contentEncoding: base64), at its root or in
// one of its properties, and the media type in the schema.
func Binary(data, returns json.RawMessage) (base64, media string, ok bool) {
	root := readNode(returns)
	target, _ := root.resolve(root)
	if target.text("contentEncoding") == "base64" {
		if isString(data) && json.Unmarshal(data, &base64) == nil {
			return base64, target.text("contentMediaType"), true
		}
		return "", "", false
	}
	result := readNode(data)
	for _, name := range target.at("properties").names() {
		p, _ := target.at("properties").at(name).resolve(root)
		if p.text("contentEncoding") != "base64" {
			continue
		}
		if v := result.at(name); v != nil && isString(v.raw) && json.Unmarshal(v.raw, &base64) == nil {
			return base64, p.text("contentMediaType"), true
		}
	}
	return "", "", false
}

// ReplaceBinary returns a result in which each text that [Binary] would find is replaced by what replace returns for
// it, as JSON. Nil leaves the text.
func ReplaceBinary(data, returns json.RawMessage, replace func(base64, media string) any) json.RawMessage {
	root := readNode(returns)
	target, _ := root.resolve(root)
	replaced := func(raw json.RawMessage, declared *node) json.RawMessage {
		var text string
		if declared.text("contentEncoding") != "base64" || !isString(raw) || json.Unmarshal(raw, &text) != nil {
			return nil
		}
		value := replace(text, declared.text("contentMediaType"))
		if value == nil {
			return nil
		}
		encoded, err := Marshal(value)
		if err != nil {
			return nil
		}
		return encoded
	}
	if whole := replaced(data, target); whole != nil {
		return whole
	}
	var members map[string]json.RawMessage
	changed := false
	for _, name := range target.at("properties").names() {
		declared, _ := target.at("properties").at(name).resolve(root)
		if declared.text("contentEncoding") != "base64" {
			continue
		}
		if members == nil && json.Unmarshal(data, &members) != nil {
			return data
		}
		if value := replaced(members[name], declared); value != nil {
			members[name], changed = value, true
		}
	}
	if !changed {
		return data
	}
	if encoded, err := Marshal(members); err == nil {
		return encoded
	}
	return data
}

// isString reports whether data is a JSON string. encoding/json reads null as an empty one.
func isString(data json.RawMessage) bool {
	data = bytes.TrimSpace(data)
	return len(data) > 0 && data[0] == '"'
}
