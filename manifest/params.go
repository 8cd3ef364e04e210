package manifest

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/parley-tools/parley/internal/lazy"
	"github.com/parley-tools/parley/internal/lists"
	"github.com/parley-tools/parley/manifest/jsontext"
	"github.com/parley-tools/parley/manifest/spelling"
)

// Param is a parameter, or a property of a result, as documentation shows it.
type Param struct {
	Name        string            `json:"name"`
	Type        string            `json:"type"` // such as string or any; "a|b" for a union
	Required    bool              `json:"required"`
	Items       *Items            `json:"items,omitempty"`
	Ref         string            `json:"ref,omitempty"`    // name of the schema that defines the type
	Fields      string            `json:"fields,omitempty"` // the type on one line, if the other members do not show it
	Format      string            `json:"format,omitempty"`
	Enum        []json.RawMessage `json:"enum,omitempty"`
	Default     json.RawMessage   `json:"default,omitempty"`
	Description string            `json:"description"`
	// More counts what only the third tier shows: fields, values of enums, and descriptions of fields.
	More int `json:"more,omitempty"`
	// Inner has the fields at all levels as the third tier describes them. Their names are paths: "where[].op".
	Inner []Param `json:"-"`

	shape string // the type on one line, without the fields in Inner, and with only a part of the values
	short string // the type in a list
}

// Items describes the items of an array.
type Items struct {
	Type string            `json:"type"`
	Ref  string            `json:"ref,omitempty"`
	Enum []json.RawMessage `json:"enum,omitempty"`
}

// aboutEnd matches where a phrase about a value ends, because a sentence, a remark or an example follows.
var aboutEnd = lazy.Pattern(`\. | \(|: |,? (?:e\.g|such as|for example|for instance)`)

// aboutLabel matches what stands before a phrase, and a description that has none: "Default: fast".
var aboutLabel = lazy.Pattern(`(?i)^(?:(?:optional|required)(?:[.:] |\.?$))*(?:(?:default|examples?|values): .*)?`)

// About returns the phrase with which a description begins, without what follows it, such as examples.
func About(description string) string {
	text := aboutLabel().ReplaceAllString(CleanLine(description), "")
	return strings.TrimRight(aboutEnd().Split(text, 2)[0], " .,;:")
}

// aside matches the unit of a value beside the phrase about it: "Delay, in ms", "Size (bytes)".
var aside = lazy.Pattern(`(?i)(?:, | \()(?:in )?(ms|(?:milli|micro)?seconds?|minutes|hours|days|(?:kilo|mega)?bytes|` +
	`[KMG]i?B|px|pixels|percent|%|degrees|cents|characters|tokens|lines)(?:\W|$)`)

// WithUnit adds to the phrase of a description the unit that the description gives after it.
func WithUnit(phrase, description string) string {
	if m := aside().FindStringSubmatch(description); m != nil && !strings.Contains(phrase, m[1]) {
		return phrase + " in " + m[1]
	}
	return phrase
}

// briefBytes bounds the phrase about a parameter in a signature.
const briefBytes = 28

// briefed returns the type in a list, with a phrase about the parameter if a short one exists.
func (p *Param) briefed() string {
	about := About(p.Description)
	if len(about) > briefBytes || strings.EqualFold(about, p.Name) || strings.Contains(about, "*/") {
		about = ""
	}
	return strings.TrimSuffix(cmp.Or(p.short, p.Type)+" /* "+about+" */", " /*  */")
}

// Params returns the properties of a schema in their order in the schema. A schema for anything but an object gives
// one Param with the name "result". Texts are cleaned, and hidden characters of values are escaped. The time is
// linear in the size of the schema, even if it has not passed the gate.
func Params(schema json.RawMessage) []Param { return paramsWithin(schema, paramBytes, asNames) }

// What [eachParam] describes: named properties; also the entries for all other properties; or, for a result, a map as
// a whole.
const (
	asNames = iota
	asParams
	asResult
)

// paramsWithin is [Params] with types of at most bytes bytes.
func paramsWithin(schema json.RawMessage, bytes, as int) []Param {
	root := readNode(schema)
	return eachParam(root, as, func(name string, n *node, _ bool) Param {
		p := describeParam(name, n, root)
		p.short, _ = fit(n, root, min(bytes, listBytes), false)
		if p.Values() != nil {
			return p
		}
		if p.Fields, p.More = fit(n, root, bytes, false); p.Fields == p.plain() {
			p.Fields = ""
		}
		return p
	})
}

// wholeParams is [Params] as the third tier describes parameters: with their fields at all levels. The fields of a
// type that occurs several times are described once.
func wholeParams(schema json.RawMessage, as int) []Param {
	root := readNode(schema)
	w := &walker{root: root, seen: map[*node]string{}, left: maxListing}
	return eachParam(root, as, func(name string, n *node, required bool) Param {
		p := w.describe(name, n)
		p.Inner = w.fields(p.Name, n, required)
		return p
	})
}

// eachParam calls describe for each property of a schema, or for the schema itself, and returns the results.
func eachParam(root *node, as int, describe func(name string, n *node, required bool) Param) (all []Param) {
	if len(root.raw) == 0 {
		return nil
	}
	target := root.object()
	if as == asResult {
		target, _ = root.resolve(root)
	}
	if !target.has("properties") {
		t, isPart := target.typeName(root), len(target.others())+len(target.branches()) > 0
		if t != "object" && (t != "any" || target.has("description")) || as == asResult && isPart {
			p := describe("result", root, true)
			p.Required = true
			return []Param{p}
		}
	}
	for _, name := range target.at("properties").names() {
		required := target.required()[name]
		p := describe(name, target.at("properties").at(name), required)
		p.Required = required
		all = append(all, p)
	}
	for _, o := range target.others() {
		if as != asNames {
			all = append(all, describe(o.key(false), o.node, false))
		}
	}
	return all
}

// object returns the schema of all parameters. The properties of its cases are merged into it.
func (n *node) object() *node {
	target, _ := n.resolve(n)
	if target.typeName(n) == "object" {
		return target.withCases(n)
	}
	return target
}

// WithFields returns parameters, each followed by its fields in the third tier.
func WithFields(params []Param) (all []Param) {
	for _, p := range params {
		all = append(append(all, p), p.Inner...)
	}
	return all
}

// walker describes the fields of types at all levels.
type walker struct {
	root *node
	seen map[*node]string // the described types, with their paths
	left int              // bytes left for all types
}

func (w *walker) describe(path string, n *node) Param {
	p := describeParam(path, n, w.root)
	all := &printer{root: w.root, limits: limits{values: maxListing}, left: w.left, steps: typeSteps, shown: w.seen,
		whole: true}
	p.shape = all.typeOf(n)
	p.short, _ = fit(n, w.root, returnBytes, false)
	w.left = all.left
	return p
}

// fields describes the fields of a type, of its items and of its cases. A case is required if the type is.
func (w *walker) fields(path string, n *node, required bool) (all []Param) {
	t, _ := n.resolve(w.root)
	if _, twice := w.seen[t]; t == nil || twice || len(t.enum()) > 0 {
		return nil
	}
	add := func(path string, n *node, isRequired bool) {
		p := w.describe(path, n)
		p.Required = isRequired
		all = append(append(all, p), w.fields(path, n, isRequired)...)
	}
	// part adds a type without a name of its own. The type gets its own line if it has a description.
	part := func(path string, n *node, isRequired bool) {
		if of, _ := n.resolve(w.root); of.has("description") || n.has("description") {
			add(path, n, isRequired)
		} else {
			all = append(all, w.fields(path, n, isRequired)...)
		}
	}
	w.seen[t] = path
	isChoice := t.isChoice(w.root)
	for i, branch := range t.branches() {
		if t.has("properties") {
			break // the type has the properties of its cases
		}
		if isChoice {
			part(fmt.Sprintf("%s(case %d)", path, i+1), branch, required)
		} else {
			part(path, branch, required)
		}
	}
	for i, n := range t.tuple() {
		part(fmt.Sprintf("%s[%d]", path, i), n, true)
	}
	if items := t.items(); items.isObject() {
		part(path+"[]", items, true)
	}
	for _, name := range t.ordered() {
		add(path+"."+CleanLine(name), t.at("properties").at(name), t.required()[name])
	}
	others := t.others()
	for _, o := range others {
		if len(others) == 1 {
			part(path+".*", o.node, true)
		} else {
			part(path+"."+o.key(false), o.node, true)
		}
	}
	return all
}

func describeParam(name string, n, root *node) Param {
	p := Param{Name: CleanLine(name)}
	target, ref := n.resolve(root)
	p.Type, p.Ref = target.typeName(root), CleanLine(ref)
	p.Enum, p.Default = target.enum(), defaultOf(n, target)
	p.Description = CleanLine(cmp.Or(n.text("description"), target.text("description")))
	p.Format = CleanLine(target.text("format"))
	if target.at("items").isObject() && len(target.tuple()) == 0 && strings.Contains(p.Type, "array") {
		it, itRef := target.at("items").resolve(root)
		p.Items = &Items{Type: it.typeName(root), Ref: CleanLine(itRef), Enum: it.enum()}
	}
	return p
}

// defaultOf returns the default of a schema, or else of the schema that it refers to.
func defaultOf(n, target *node) json.RawMessage {
	if n.has("default") {
		return n.value("default")
	}
	return target.value("default")
}

// plain returns the type as given by Type, Items, Enum and Format.
func (p *Param) plain() string {
	kind := p.Type
	if p.Items != nil && p.Type == "array" {
		kind = p.Items.Type
	} else if p.Format != "" && kind == "string" {
		kind += "<" + p.Format + ">"
	}
	if values := p.Values(); len(values) > 0 {
		kind = join(values, len(values))
	}
	if p.Items != nil && p.Type == "array" {
		return listOf(kind)
	}
	return kind
}

// Values returns the values that the parameter, or each of its items, is limited to.
func (p *Param) Values() []json.RawMessage {
	if p.Enum == nil && p.Items != nil && p.Type == "array" {
		return p.Items.Enum
	}
	return p.Enum
}

// CutValues keeps n values of an enum, and counts the others in More.
func (p *Param) CutValues(n int) {
	all := p.Values()
	if len(all) <= n {
		return
	}
	p.shape = join(all, n)
	if p.More += len(all) - n; p.Enum != nil {
		p.Enum = all[:n]
		return
	}
	items := *p.Items
	items.Enum = all[:n]
	p.Items, p.shape = &items, listOf(p.shape)
}

// node is a value of a JSON document. Its members are read on first use. A nil node is a value that does not exist.
type node struct {
	raw     json.RawMessage
	members map[string]*node
	order   []string

	kind  string // the result of typeName; "" before, pending during its search
	facts *facts // nil before they are read
	whole *node  // the result of withAllOf
	cases *node  // the result of withCases
	steps int    // for a root: number of schemas read to print types

	isUnion bool // a union of the properties that have one name in several cases of an object
}

// facts are the cached facts about a schema.
type facts struct {
	branches []*node           // the branches of a union
	tuple    []*node           // schemas of the first items of an array
	required map[string]bool   // names of required properties
	values   []json.RawMessage // values of const or enum
	isChoice *bool             // nil until first computed
}

// read reads the facts of a schema. A node that does not exist has none.
func (n *node) read() *facts {
	if n == nil {
		return &facts{}
	}
	if n.facts != nil {
		return n.facts
	}
	n.facts = &facts{
		branches: nodesOf(append(n.list("anyOf"), n.list("oneOf")...)),
		tuple:    nodesOf(append(n.list("prefixItems"), n.list("items")...)),
		required: map[string]bool{},
	}
	for _, name := range n.strings("required") {
		n.facts.required[name] = true
	}
	for _, branch := range n.facts.branches { // a branch without a type has the union's
		isTyped := slices.ContainsFunc([]string{"type", "$ref", "const", "enum"}, branch.has)
		if n.has("type") && !isTyped {
			branch.members["type"] = n.at("type")
		}
	}
	if n.has("const") {
		n.facts.values = []json.RawMessage{n.value("const")}
		return n.facts
	}
	n.facts.values = lists.Map(n.list("enum"), shownJSON)
	return n.facts
}

func (n *node) branches() []*node         { return n.read().branches }
func (n *node) tuple() []*node            { return n.read().tuple }
func (n *node) required() map[string]bool { return n.read().required }
func (n *node) enum() []json.RawMessage   { return n.read().values }

// items returns the schema of the items of an array that follow its tuple.
func (n *node) items() *node {
	if items := n.at("items"); items.isObject() || n.has("prefixItems") {
		return items
	}
	return n.at("additionalItems")
}

// pending marks a node whose type is being computed, to end the recursion for a type that contains itself.
const pending = "\x00"

func readNode(data json.RawMessage) *node { return &node{raw: data} }

// membersOf reads the members of an object. Other values have none.
func (n *node) membersOf() map[string]*node {
	if n == nil {
		return nil
	}
	if n.members != nil {
		return n.members
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
	return n.members
}

func (n *node) at(key string) *node { return n.membersOf()[key] }

func (n *node) names() []string {
	if n.membersOf(); n == nil {
		return nil
	}
	return n.order
}

func (n *node) has(key string) bool { return n.at(key) != nil }

// value returns a member in the form in which it is shown, on one line with hidden characters escaped; nil if there
// is none.
func (n *node) value(key string) json.RawMessage {
	v := n.at(key)
	if v == nil {
		return nil
	}
	return shownJSON(v.raw)
}

func shownJSON(raw json.RawMessage) json.RawMessage { return EscapeJSON(CompactJSON(raw)) }

// memberOf returns a member of a schema, or the zero value if the member has another type.
func memberOf[T any](n *node, key string) (v T) {
	if m := n.at(key); m != nil {
		_ = json.Unmarshal(m.raw, &v)
	}
	return v
}

func (n *node) text(key string) string      { return memberOf[string](n, key) }
func (n *node) strings(key string) []string { return memberOf[[]string](n, key) }

func (n *node) list(key string) []json.RawMessage {
	if v := n.at(key); v == nil || !bytes.HasPrefix(v.raw, []byte("[")) {
		return nil
	}
	return memberOf[[]json.RawMessage](n, key)
}

// isObject reports whether the value is an object. All schemas except true and false are.
func (n *node) isObject() bool {
	return n != nil && jsontext.Scan(n.raw).Peek() == '{'
}

func nodesOf(list []json.RawMessage) []*node { return lists.Map(list, readNode) }

// ordered returns the names of all properties, required ones first.
func (n *node) ordered() []string {
	return partition(n.at("properties").names(), func(name string) bool { return n.required()[name] })
}

// partition returns a list with the items first for which first returns true.
func partition[T any](list []T, first func(T) bool) []T {
	return append(lists.Filter(list, first), lists.Filter(list, func(item T) bool { return !first(item) })...)
}

// rest describes the properties of an object that have no schema of their own: those whose names match a pattern, or,
// without one, all others.
type rest struct {
	pattern string
	node    *node
}

// key returns the text that stands for the names of the properties in a type.
func (r rest) key(program bool) string {
	switch {
	case r.pattern == "":
		return "[key: string]"
	case program:
		return "[key: string /* " + strings.ReplaceAll(CleanLine(r.pattern), "*/", "* /") + " */]"
	}
	return "[/" + CleanLine(r.pattern) + "/]"
}

// others returns the schemas for properties without a schema of their own.
func (n *node) others() (all []rest) {
	if more := n.at("additionalProperties"); more.isObject() {
		all = append(all, rest{"", more})
	}
	patterns := n.at("patternProperties")
	return append(all, lists.Map(patterns.names(), func(name string) rest { return rest{name, patterns.at(name)} })...)
}

// isChoice reports whether a schema is a union of several types with fields. Each of these is then described as a
// case.
func (n *node) isChoice(root *node) bool {
	f := n.read()
	if f.isChoice == nil {
		cases := lists.Filter(f.branches, func(branch *node) bool {
			t, _ := branch.resolve(root)
			isList := strings.Contains(t.typeName(root), "array") && t.at("items").isObject()
			return len(t.enum()) == 0 && (t.has("properties") || isList)
		})
		isChoice := len(cases) > 1
		f.isChoice = &isChoice
	}
	return *f.isChoice
}

// extends reports whether a schema adds properties to the object that it refers to.
func (n *node) extends() bool { return n.has("$ref") && (n.has("properties") || n.has("required")) }

// withCases returns an object with the properties of its cases added. They are optional unless all cases require
// them.
func (n *node) withCases(root *node) *node {
	if n.cases != nil {
		return n.cases
	}
	n.cases = n // ends the recursion for a schema that contains itself
	count, both := map[string]int{}, &node{raw: []byte("{}"), members: map[string]*node{}}
	both.add(n.at("properties"), false)
	for _, branch := range n.branches() {
		t, _ := branch.resolve(root)
		both.add(t.at("properties"), true)
		for name := range t.required() {
			count[name]++
		}
	}
	if len(both.order) > len(n.at("properties").names()) {
		raw, _ := Marshal(lists.Filter(both.order, func(name string) bool {
			return n.required()[name] || count[name] == len(n.branches())
		}))
		n.cases = &node{raw: n.raw, members: maps.Clone(n.membersOf()), order: n.order}
		n.cases.members["properties"], n.cases.members["required"] = both, readNode(raw)
	}
	return n.cases
}

// add adds properties. If two have the same name, the first one stays, or becomes a union of both.
func (n *node) add(more *node, isUnion bool) {
	for _, name := range more.names() {
		switch first, one := n.members[name], more.at(name); {
		case first == nil:
			n.members[name], n.order = one, append(n.order, name)
		case isUnion && first.isUnion:
			first.facts.branches = append(first.facts.branches, one)
		case isUnion && string(first.raw) != string(one.raw):
			n.members[name] = &node{raw: []byte("{}"), isUnion: true, facts: &facts{branches: []*node{first, one}}}
		}
	}
}

// withAllOf returns a schema with the keywords of its allOf schemas added, as far as they do not overlap.
func (n *node) withAllOf(root *node, levels int) *node {
	if n == nil || levels == 0 || !n.has("allOf") && !n.extends() {
		return n
	}
	if n.whole != nil {
		return n.whole
	}
	n.whole = n // ends the recursion for a schema that contains itself
	all := &node{raw: n.raw, members: maps.Clone(n.membersOf()), order: n.order}
	delete(all.members, "allOf")
	delete(all.members, "$ref")
	parts := nodesOf(n.list("allOf"))
	if n.extends() {
		parts = append(parts, &node{members: map[string]*node{"$ref": n.at("$ref")}})
	}
	for _, part := range parts {
		target, _ := part.follow(root)
		target = target.withAllOf(root, levels-1)
		for _, key := range target.names() {
			have, more := all.members[key], target.at(key)
			switch {
			case have == nil:
				all.members[key] = more
				all.order = append(slices.Clip(all.order), key)
			case key == "properties":
				both := &node{raw: have.raw, members: map[string]*node{}}
				both.add(have, false)
				both.add(more, false)
				all.members[key] = both
			case key == "required":
				raw, _ := Marshal(append(all.strings(key), target.strings(key)...))
				all.members[key] = readNode(raw)
			}
		}
	}
	n.whole = all
	return all
}

// maxRefs bounds a chain of references.
const maxRefs = 8

// resolve returns the schema that a schema refers to, with its allOf merged, and the name in the last reference.
func (n *node) resolve(root *node) (target *node, name string) {
	target, name = n.follow(root)
	if target = target.withAllOf(root, maxRefs); target.has("properties") {
		target = target.withCases(root)
	}
	return target, name
}

// follow follows local references and returns the name in the last one. The target is nil, which is documented as
// "any", if a reference leads to nothing or into an array.
func (n *node) follow(root *node) (target *node, name string) {
	target = n
	for range maxRefs {
		ref := target.text("$ref")
		if ref == "" || target.extends() {
			return target, name
		}
		fragment, local := strings.CutPrefix(ref, "#")
		pointer, err := url.PathUnescape(fragment)
		if !local || err != nil {
			return nil, name
		}
		name = pointer[strings.LastIndexByte(pointer, '/')+1:]
		tokens, isPointer := jsontext.SplitPointer(pointer)
		if !isPointer {
			return nil, name // an anchor
		}
		target = root
		for _, token := range tokens {
			target = target.at(token)
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
		return "" // a caller up the stack is computing this type
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
	var names []string
	for _, branch := range n.branches() {
		target, _ := branch.resolve(root)
		for name := range strings.SplitSeq(target.typeName(root), "|") {
			if name != "" && !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	switch {
	case n.has("properties"):
		return "object"
	case len(names) > 0:
		return strings.Join(names, "|")
	case len(n.others()) > 0:
		return "object"
	case n.has("items"), n.has("prefixItems"):
		return "array"
	}
	if kinds := lists.Add(nil, lists.Map(n.enum(), kindOf)...); len(kinds) == 1 {
		return kinds[0]
	}
	return "any"
}

// kindOf returns the type of a value of an enum.
func kindOf(v json.RawMessage) string {
	if kind := jsontext.Kind(v); kind != "number" || bytes.ContainsAny(v, ".eE") {
		return cmp.Or(kind, "any")
	}
	return "integer"
}

// TypeAt returns the type of the parameter at a path of property names and, for an array, the type of its items. Both
// are "" if the schema does not describe it; "any" means that the type is not restricted.
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

// Base64At reports whether the parameter at a path of property names, or each of its items, is base64 text.
func Base64At(schema json.RawMessage, path ...string) bool {
	at, root := paramAt(schema, path)
	if at.has("items") {
		at, _ = at.at("items").resolve(root)
	}
	return slices.ContainsFunc(append(at.branches(), at), func(n *node) bool {
		n, _ = n.resolve(root)
		return n.text("contentEncoding") == "base64"
	})
}

// paramAt returns the schema of the parameter at a path of property names and indices, or nil if there is none, and
// the root. Below the first name, the schema for all other properties counts, too.
func paramAt(schema json.RawMessage, path []string) (at, root *node) {
	root = readNode(schema)
	at, _ = root.resolve(root)
	for i, step := range path {
		next := at.at("properties").at(step)
		if n, err := strconv.Atoi(step); err == nil && next == nil && max(n, 0) < len(at.tuple()) {
			next = at.tuple()[max(n, 0)]
		} else if err == nil && next == nil {
			next = at.at("items")
		}
		if others := at.others(); next == nil && i > 0 && len(others) > 0 {
			next = others[0].node
		}
		at, _ = next.resolve(root)
	}
	return at, root
}

// Binary returns the base64 text of a result whose schema declares one (contentEncoding: base64), at its root or in
// one of its properties, and the media type in the schema.
func Binary(data, returns json.RawMessage) (base64, media string, ok bool) {
	ReplaceBinary(data, returns, func(text, of string) any {
		if !ok {
			base64, media, ok = text, of, true
		}
		return nil
	})
	return base64, media, ok
}

// ReplaceBinary returns a result in which each text that [Binary] finds is replaced by what replace returns for it,
// encoded as JSON. If replace returns nil, the text stays.
func ReplaceBinary(data, returns json.RawMessage, replace func(base64, media string) any) json.RawMessage {
	root := readNode(returns)
	target, _ := root.resolve(root)
	replaced := func(raw json.RawMessage, declared *node) json.RawMessage {
		text, isText := jsontext.Unquote(bytes.TrimSpace(raw))
		if !isText || declared.text("contentEncoding") != "base64" {
			return nil
		}
		value := replace(text, declared.text("contentMediaType"))
		if value == nil {
			return nil
		}
		encoded, _ := Marshal(value) // a nil value keeps the text
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
	if encoded, err := Marshal(members); changed && err == nil {
		return encoded
	}
	return data
}

// ParamNamed returns the parameter with a given name, in any spelling or as one of its x-aliases, and its type. own
// says that the given name is the parameter's own.
func ParamNamed(params json.RawMessage, given string) (name, kind string, own bool) {
	isGiven := func(name string) bool { return spelling.Fold(name) == spelling.Fold(given) }
	root := readNode(params)
	properties := root.at("properties")
	for _, p := range slices.Sorted(slices.Values(properties.names())) {
		switch {
		case isGiven(p):
			name, own = p, true
		case !own && slices.ContainsFunc(properties.at(p).strings("x-aliases"), isGiven):
			name = p
		}
	}
	kind, _ = TypeAt(params, name)
	return name, kind, own
}

// LocalName returns the name of a tool within its group: the part after the last dot.
func LocalName(name string) string { return name[strings.LastIndexByte(name, '.')+1:] }
