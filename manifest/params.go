package manifest

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
)

// Param is one parameter, or one property of a result, as documentation shows it.
type Param struct {
	Name        string            `json:"name"`
	Type        string            `json:"type"` // string, integer, number, boolean, array, object, any; "a|b" for a union
	Required    bool              `json:"required"`
	Items       *Items            `json:"items,omitempty"`
	Ref         string            `json:"ref,omitempty"` // the named type of an object, which can be described by that name
	Enum        []json.RawMessage `json:"enum,omitempty"`
	Default     json.RawMessage   `json:"default,omitempty"`
	Description string            `json:"description"`
}

// Items says what an array holds.
type Items struct {
	Type string            `json:"type"`
	Ref  string            `json:"ref,omitempty"`
	Enum []json.RawMessage `json:"enum,omitempty"`
}

// Params lists the top-level properties of a schema in their own order. A schema of something else than
// an object is one nameless-in-JSON value, listed as "result".
func Params(schema json.RawMessage) []Param {
	if len(schema) == 0 {
		return nil
	}
	root := readNode(schema)
	target, _ := root.resolve(root, 0)
	props, ordered := target.object("properties")
	if len(ordered) == 0 {
		if t := target.typeName(root); t != "object" && t != "any" || target.has("description") && t != "object" {
			p := describeParam("result", root, root)
			p.Required = true
			return []Param{p}
		}
		return nil
	}
	required := target.strings("required")
	params := make([]Param, 0, len(ordered))
	for _, name := range ordered {
		p := describeParam(name, readNode(props[name]), root)
		for _, r := range required {
			p.Required = p.Required || r == name
		}
		params = append(params, p)
	}
	return params
}

func describeParam(name string, n, root node) Param {
	p := Param{Name: name}
	target, ref := n.resolve(root, 0)
	p.Type, p.Ref = target.typeName(root), ref
	p.Enum, p.Default = target.enum(root), n.raw("default")
	if p.Default == nil {
		p.Default = target.raw("default")
	}
	p.Description = CleanLine(n.text("description"))
	if p.Description == "" {
		p.Description = CleanLine(target.text("description"))
	}
	if items := target.raw("items"); items != nil && strings.Contains(p.Type, "array") {
		it, itRef := readNode(items).resolve(root, 0)
		p.Items = &Items{Type: it.typeName(root), Ref: itRef, Enum: it.enum(root)}
	}
	return p
}

// Signature renders name(a: string, b?: integer): required parameters first, each in the schema's order.
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

// short is the type as a signature has it: string[], integer, a|b for small enums.
func (p Param) short() string {
	if p.Type == "array" && p.Items != nil {
		return p.Items.Type + "[]"
	}
	return p.Type
}

// node is an object of a JSON document whose members are kept raw and in order.
type node struct {
	members map[string]json.RawMessage
	order   []string
}

func readNode(data json.RawMessage) node {
	dec := json.NewDecoder(bytes.NewReader(data))
	n := node{members: map[string]json.RawMessage{}}
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return n
	}
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return n
		}
		var value json.RawMessage
		if dec.Decode(&value) != nil {
			return n
		}
		name, _ := key.(string)
		if _, twice := n.members[name]; !twice {
			n.order = append(n.order, name)
		}
		n.members[name] = value
	}
	return n
}

func (n node) has(key string) bool { _, ok := n.members[key]; return ok }

func (n node) raw(key string) json.RawMessage { return n.members[key] }

func (n node) text(key string) string {
	var s string
	_ = json.Unmarshal(n.members[key], &s)
	return s
}

func (n node) strings(key string) []string {
	var s []string
	_ = json.Unmarshal(n.members[key], &s)
	return s
}

func (n node) list(key string) []json.RawMessage {
	var l []json.RawMessage
	_ = json.Unmarshal(n.members[key], &l)
	return l
}

func (n node) object(key string) (map[string]json.RawMessage, []string) {
	child := readNode(n.members[key])
	return child.members, child.order
}

// resolve follows local references, at most eight deep, and tells the name of the last one.
func (n node) resolve(root node, depth int) (node, string) {
	ref := n.text("$ref")
	if ref == "" || depth == 8 {
		return n, ""
	}
	at := root
	steps := strings.Split(strings.TrimPrefix(ref, "#"), "/")
	for _, step := range steps[min(1, len(steps)):] {
		step = strings.ReplaceAll(strings.ReplaceAll(step, "~1", "/"), "~0", "~")
		if index, err := strconv.Atoi(step); err == nil && !at.has(step) && index >= 0 {
			return node{}, "" // inside a list: documented as "any"
		}
		at = readNode(at.members[step])
	}
	target, deeper := at.resolve(root, depth+1)
	if deeper != "" {
		return target, deeper
	}
	if len(steps) == 1 {
		return target, ""
	}
	return target, steps[len(steps)-1]
}

func (n node) typeName(root node) string {
	if one := n.text("type"); one != "" {
		return one
	}
	if many := n.strings("type"); len(many) > 0 {
		return strings.Join(many, "|")
	}
	for _, key := range []string{"anyOf", "oneOf"} {
		var names []string
		for _, branch := range n.list(key) {
			target, _ := readNode(branch).resolve(root, 1)
			if name := target.typeName(root); !contains(names, name) {
				names = append(names, name)
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
	if c := n.raw("const"); c != nil {
		values = []json.RawMessage{c}
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

func (n node) enum(root node) []json.RawMessage {
	if c := n.raw("const"); c != nil {
		return []json.RawMessage{CleanJSON(c)}
	}
	values := n.list("enum")
	for i := range values {
		values[i] = CleanJSON(values[i])
	}
	return values
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

func contains(list []string, s string) bool {
	for _, l := range list {
		if l == s {
			return true
		}
	}
	return false
}

// TypeAt returns the type of the parameter at a path of property names, and of its items where it is an
// array; "" where the schema does not say. "any" is a parameter that takes whatever is given.
func TypeAt(schema json.RawMessage, path ...string) (kind, items string) {
	root := readNode(schema)
	at, _ := root.resolve(root, 0)
	for _, step := range path {
		props, _ := at.object("properties")
		raw, ok := props[step]
		if !ok {
			return "", ""
		}
		at, _ = readNode(raw).resolve(root, 0)
	}
	if raw := at.raw("items"); raw != nil {
		item, _ := readNode(raw).resolve(root, 0)
		items = item.typeName(root)
	}
	return at.typeName(root), items
}

// Binary finds the base64 text of a result whose schema declares one (contentEncoding: base64), at its
// root or in one of its properties, and the media type that the schema names.
func Binary(data, returns json.RawMessage) (base64, media string, ok bool) {
	root := readNode(returns)
	target, _ := root.resolve(root, 0)
	if target.text("contentEncoding") == "base64" {
		if json.Unmarshal(data, &base64) == nil {
			return base64, target.text("contentMediaType"), true
		}
		return "", "", false
	}
	props, order := target.object("properties")
	for _, name := range order {
		p, _ := readNode(props[name]).resolve(root, 0)
		if p.text("contentEncoding") != "base64" {
			continue
		}
		if value := readNode(data).raw(name); value != nil && json.Unmarshal(value, &base64) == nil {
			return base64, p.text("contentMediaType"), true
		}
	}
	return "", "", false
}
