package schema

import (
	"encoding/json"
	"fmt"
	"math/big"
	"net/url"
	"regexp"
	"regexp/syntax"
	"slices"
	"strconv"
	"strings"

	"github.com/parley-tools/parley/manifest/jsontext"
)

// A node is one compiled schema, in the keywords of 2020-12 whatever dialect it was written in. Nodes form a graph, in
// which "$ref" is an edge.
type node struct {
	at string // JSON pointer to the schema in its document

	always *bool // for a schema that is true or false
	ref    *node

	types    kinds // 0 for any
	enum     []any
	isConst  bool
	constant any

	min, max, exclMin, exclMax, multipleOf *bound
	minLength, maxLength                   *int
	pattern                                *pattern
	format                                 string

	props         map[string]*node
	propNames     []string // sorted
	patternProps  []patternProp
	additional    *node
	required      []string
	minProps      *int
	maxProps      *int
	propertyNames *node
	depRequired   map[string][]string
	depSchemas    map[string]*node

	prefix                   []*node
	items, contains          *node
	minItems, maxItems       *int
	minContains, maxContains *int
	unique                   bool

	allOf, anyOf, oneOf      []*node
	not, ifs, then, els      *node
	unevalProps, unevalItems *node

	hasDefault bool
	fallback   any // the value of "default"

	about   string   // "description"
	aliases []string // "x-aliases": other names that callers use for the value
}

type bound struct {
	text json.Number
	rat  *big.Rat
}

type pattern struct {
	source string
	re     *regexp.Regexp
	size   int // instructions of its program, which bounds the cost of a match per byte
}

type patternProp struct {
	*pattern
	node *node
}

// kinds is a set of JSON types. Each integer is also a number.
type kinds uint8

const (
	kindNull kinds = 1 << iota
	kindBoolean
	kindObject
	kindArray
	kindNumber
	kindString
	kindInteger
)

var kindNames = map[string]kinds{"null": kindNull, "boolean": kindBoolean, "object": kindObject, "array": kindArray,
	"number": kindNumber, "string": kindString, "integer": kindInteger}

func (k kinds) list() []string {
	var names []string
	for _, name := range []string{"string", "number", "integer", "boolean", "object", "array", "null"} {
		if k&kindNames[name] != 0 {
			names = append(names, name)
		}
	}
	return names
}

// Bounds of the gate for untrusted schemas. Each stops schemas that hung or killed a process when they were tried.
const (
	gateBytes       = 256 << 10
	gateDepth       = 100
	gateNodes       = 20_000
	gateRefTargets  = 500
	gateInPlace     = 2_000
	gateValues      = 2_000
	gatePatternLen  = 1 << 10
	gatePatternSize = 4_000
	gatePatternsSum = 100_000
)

// GateError says why, and by which part of it, a schema is refused.
type GateError struct {
	Pointer string // JSON pointer into the schema
	Reason  string
}

func (e *GateError) Error() string {
	at := e.Pointer
	if at == "" {
		at = "its root"
	}
	return "schema refused at " + at + ": " + e.Reason
}

type compiler struct {
	doc       any
	untrusted bool
	rootID    string
	// refHides is set for draft-07, in which a "$ref" hides the keywords beside it.
	refHides bool

	nodes   map[string]*node  // by pointer
	anchors map[string]string // name -> pointer
	pending []pendingRef
	targets []*node // of "$ref", in the order in which they were found
	isRef   map[*node]bool
	uneval  bool // some schema has an unevaluated keyword
	regexps int  // instructions in all patterns
}

type pendingRef struct {
	from *node
	ref  string
}

// compile builds the graph of doc and returns its root.
func (c *compiler) compile() (*node, error) {
	c.nodes, c.anchors, c.isRef = map[string]*node{}, map[string]string{}, map[*node]bool{}
	if err := c.dialect(); err != nil {
		return nil, err
	}
	root, err := c.schema(c.doc, "")
	if err != nil {
		return nil, err
	}
	// A reference may lead to a schema that no keyword led to, with more references in it.
	for len(c.pending) > 0 {
		p := c.pending[0]
		c.pending = c.pending[1:]
		if err := c.resolve(p); err != nil {
			return nil, err
		}
	}
	if err := c.inPlace(); err != nil {
		return nil, err
	}
	return root, nil
}

func (c *compiler) dialect() error {
	m, ok := c.doc.(map[string]any)
	if !ok {
		return nil
	}
	c.refHides = !c.untrusted
	if v, ok := m["$schema"]; ok {
		name, err := dialectName(v, "/$schema")
		if err != nil {
			return err
		}
		if !c.untrusted && name != "draft-07" {
			return refuse("/$schema", "schemas of this project use draft-07, not %s", name)
		}
		c.refHides = name == "draft-07"
	}
	if id, ok := m["$id"].(string); ok && !strings.HasPrefix(id, "#") {
		c.rootID = strings.TrimSuffix(id, "#")
	}
	return nil
}

// dialectName returns the short name of the dialect that "$schema", with the value v at the pointer at, names.
func dialectName(v any, at string) (string, error) {
	uri, _ := v.(string)
	uri = strings.TrimSuffix(uri, "#")
	switch strings.TrimPrefix(strings.TrimPrefix(uri, "http://"), "https://") {
	case "json-schema.org/draft-07/schema":
		return "draft-07", nil
	case "json-schema.org/draft/2020-12/schema":
		return "2020-12", nil
	}
	return "", refuse(at, "unknown dialect %s: only draft-07 and 2020-12 are known; write the schema in one of them "+
		`and name it, or leave "$schema" out for 2020-12`, render(v))
}

// schema compiles the schema v, which is at the JSON pointer at.
func (c *compiler) schema(v any, at string) (*node, error) {
	if n, ok := c.nodes[at]; ok {
		return n, nil
	}
	n := &node{at: at}
	c.nodes[at] = n
	switch v := v.(type) {
	case bool:
		n.always = &v
		return n, nil
	case map[string]any:
		return n, c.object(n, v)
	default:
		return nil, refuse(at, "a schema is an object or a boolean, not %s", render(v))
	}
}

func (c *compiler) object(n *node, m map[string]any) error {
	if err := c.identity(n, m); err != nil {
		return err
	}
	if v, ok := m["default"]; ok {
		n.hasDefault, n.fallback = true, v
	}
	n.about, _ = m["description"].(string)
	if list, ok := m["x-aliases"].([]any); ok {
		n.aliases = texts(list)
	}
	if v, ok := m["$ref"]; ok {
		ref, ok := v.(string)
		if !ok {
			return refuse(n.at+"/$ref", "must be a string, not %s", render(v))
		}
		c.pending = append(c.pending, pendingRef{n, ref})
		if c.refHides {
			return nil
		}
	}
	keywords := []func(*node, map[string]any) error{c.values, c.numbers, c.strings, c.objects, c.arrays, c.logic}
	for _, compile := range keywords {
		if err := compile(n, m); err != nil {
			return err
		}
	}
	return nil
}

// identity compiles the keywords that name or contain referenced schemas. It refuses those that need other documents.
func (c *compiler) identity(n *node, m map[string]any) error {
	for _, k := range []string{"$dynamicRef", "$recursiveRef"} {
		if _, ok := m[k]; ok {
			return refuse(n.at+"/"+k, "%s is not supported: use $ref", k)
		}
	}
	if v, ok := m["$schema"]; ok && n.at != "" {
		if _, err := dialectName(v, n.at+"/$schema"); err != nil {
			return err
		}
	}
	_, hasRef := m["$ref"]
	if v, ok := m["$id"]; ok && !(hasRef && c.refHides) {
		id, ok := v.(string)
		switch {
		case !ok:
			return refuse(n.at+"/$id", "must be a string, not %s", render(v))
		case strings.HasPrefix(id, "#") && len(id) > 1:
			if err := c.anchor(n, "$id", id[1:]); err != nil {
				return err
			}
		case n.at != "":
			return refuse(n.at+"/$id",
				"a nested $id starts a document of its own, which is not supported: use a JSON pointer in $ref")
		}
	}
	for _, k := range []string{"$anchor", "$dynamicAnchor"} {
		if v, ok := m[k]; ok {
			name, ok := v.(string)
			if !ok {
				return refuse(n.at+"/"+k, "must be a string, not %s", render(v))
			}
			if err := c.anchor(n, k, name); err != nil {
				return err
			}
		}
	}
	for _, k := range []string{"$defs", "definitions"} {
		if v, ok := m[k]; ok { // also beside a "$ref" that hides it: references may point into it
			if _, err := c.schemaMap(v, n.at+"/"+k); err != nil {
				return err
			}
		}
	}
	return nil
}

func (c *compiler) anchor(n *node, keyword, name string) error {
	if other, taken := c.anchors[name]; taken && other != n.at {
		return refuse(n.at+"/"+keyword, "the anchor %q is already at %s", name, other)
	}
	c.anchors[name] = n.at
	return nil
}

func (c *compiler) resolve(p pendingRef) error {
	at := p.from.at + "/$ref"
	ref := p.ref
	if c.rootID != "" {
		if rest, ok := strings.CutPrefix(ref, c.rootID); ok && (rest == "" || rest[0] == '#') {
			ref = rest
		}
	}
	fragment, local := strings.CutPrefix(ref, "#")
	if !local && ref != "" {
		return refuse(at, "%s points outside this schema: only local references (#/...) are followed",
			jsontext.QuoteShort(p.ref))
	}
	pointer, err := url.PathUnescape(fragment)
	if err != nil {
		return refuse(at, "%s is not a valid reference", jsontext.QuoteShort(p.ref))
	}
	if pointer != "" && pointer[0] != '/' {
		target, ok := c.anchors[pointer]
		if !ok {
			return refuse(at, "%s points to an anchor that is not in this schema", jsontext.QuoteShort(p.ref))
		}
		pointer = target
	}
	tokens, _ := jsontext.SplitPointer(pointer)
	v, ok := jsontext.Lookup(c.doc, tokens)
	if !ok {
		return refuse(at, "%s points to nothing in this schema", jsontext.QuoteShort(p.ref))
	}
	target, cerr := c.schema(v, jsontext.Pointer(tokens))
	if cerr != nil {
		return cerr
	}
	p.from.ref = target
	if !c.isRef[target] {
		c.isRef[target] = true
		c.targets = append(c.targets, target)
		if c.untrusted && len(c.targets) > gateRefTargets {
			return refuse(at, "more than %d different targets of $ref", gateRefTargets)
		}
	}
	return nil
}

func (c *compiler) values(n *node, m map[string]any) error {
	if v, ok := m["type"]; ok {
		names, isList := v.([]any)
		if !isList {
			names = []any{v}
		}
		for _, x := range names {
			name, _ := x.(string)
			kind, known := kindNames[name]
			if !known {
				return refuse(n.at+"/type",
					"%s is not a type: use string, number, integer, boolean, object, array or null", render(x))
			}
			n.types |= kind
		}
		if n.types == 0 {
			return refuse(n.at+"/type", "an empty list of types")
		}
	}
	if v, ok := m["enum"]; ok {
		list, ok := v.([]any)
		if !ok {
			return refuse(n.at+"/enum", "must be an array, not %s", render(v))
		}
		if len(list) == 0 {
			return refuse(n.at+"/enum", "an empty list allows no value at all")
		}
		if c.untrusted && len(list) > gateValues {
			return refuse(n.at+"/enum", "%d values, at most %d", len(list), gateValues)
		}
		seen := map[string]bool{}
		for _, x := range list {
			if key := identityOf(x); !seen[key] {
				seen[key] = true
				n.enum = append(n.enum, x)
			}
		}
	}
	if v, ok := m["const"]; ok {
		n.isConst, n.constant = true, v
	}
	return nil
}

func (c *compiler) numbers(n *node, m map[string]any) error {
	for k, to := range map[string]**bound{"minimum": &n.min, "maximum": &n.max, "exclusiveMinimum": &n.exclMin,
		"exclusiveMaximum": &n.exclMax, "multipleOf": &n.multipleOf} {
		v, ok := m[k]
		if !ok {
			continue
		}
		num, ok := v.(json.Number)
		if !ok {
			hint := ""
			if _, isBool := v.(bool); isBool {
				hint = " (the boolean form is draft-04)"
			}
			return refuse(n.at+"/"+k, "must be a number, not %s%s", render(v), hint)
		}
		b := &bound{num, ratOf(num)}
		if k == "multipleOf" && b.rat.Sign() <= 0 {
			return refuse(n.at+"/"+k, "must be greater than 0, not %s", num)
		}
		*to = b
	}
	return nil
}

func (c *compiler) strings(n *node, m map[string]any) error {
	if err := c.counts(n, m, map[string]**int{"minLength": &n.minLength, "maxLength": &n.maxLength}); err != nil {
		return err
	}
	n.format, _ = m["format"].(string)
	if v, ok := m["pattern"]; ok {
		source, ok := v.(string)
		if !ok {
			return refuse(n.at+"/pattern", "must be a string, not %s", render(v))
		}
		var err error
		n.pattern, err = c.pattern(source, n.at+"/pattern")
		return err
	}
	return nil
}

func (c *compiler) pattern(source, at string) (*pattern, error) {
	if c.untrusted && len(source) > gatePatternLen {
		return nil, refuse(at, "a pattern of %d bytes, at most %d", len(source), gatePatternLen)
	}
	tree, err := syntax.Parse(source, syntax.Perl)
	if err != nil {
		why := err.Error()
		lookAround := []string{"(?=", "(?!", "(?<=", "(?<!"}
		if slices.ContainsFunc(lookAround, func(group string) bool { return strings.Contains(source, group) }) {
			why = "look-ahead and look-behind are not in RE2"
		}
		return nil, refuse(at, "the pattern %s is not RE2: %s", jsontext.QuoteShort(source),
			strings.TrimPrefix(why, "error parsing regexp: "))
	}
	prog, err := syntax.Compile(tree.Simplify())
	if err != nil {
		return nil, refuse(at, "the pattern %s is not RE2: %v", jsontext.QuoteShort(source), err)
	}
	if c.untrusted && len(prog.Inst) > gatePatternSize {
		return nil, refuse(at, "the pattern %s needs a program of %d instructions, at most %d: use smaller repeat counts",
			jsontext.QuoteShort(source), len(prog.Inst), gatePatternSize)
	}
	if c.regexps += len(prog.Inst); c.untrusted && c.regexps > gatePatternsSum {
		return nil, refuse(at, "the patterns of this schema need more than %d instructions together", gatePatternsSum)
	}
	re, err := regexp.Compile(source)
	if err != nil {
		return nil, refuse(at, "the pattern %s is not RE2: %v", jsontext.QuoteShort(source), err)
	}
	return &pattern{source, re, len(prog.Inst)}, nil
}

func (c *compiler) counts(n *node, m map[string]any, fields map[string]**int) error {
	for k, to := range fields {
		v, ok := m[k]
		if !ok {
			continue
		}
		num, _ := v.(json.Number)
		rat := ratOf(num)
		if rat == nil || !rat.IsInt() || rat.Sign() < 0 {
			return refuse(n.at+"/"+k, "must be a whole number from 0, not %s", render(v))
		}
		count := 1 << 30 // more parts than any value has that Decode accepts
		if i := rat.Num(); i.IsInt64() && i.Int64() < int64(count) {
			count = int(i.Int64())
		}
		*to = &count
	}
	return nil
}

func (c *compiler) objects(n *node, m map[string]any) error {
	if err := c.counts(n, m, map[string]**int{"minProperties": &n.minProps, "maxProperties": &n.maxProps}); err != nil {
		return err
	}
	var err error
	if v, ok := m["properties"]; ok {
		if n.props, err = c.schemaMap(v, n.at+"/properties"); err != nil {
			return err
		}
		n.propNames = sortedKeys(n.props)
	}
	if v, ok := m["patternProperties"]; ok {
		at := n.at + "/patternProperties"
		nodes, err := c.schemaMap(v, at)
		if err != nil {
			return err
		}
		for _, source := range sortedKeys(nodes) {
			p, err := c.pattern(source, at+"/"+jsontext.EscapeToken(source))
			if err != nil {
				return err
			}
			n.patternProps = append(n.patternProps, patternProp{p, nodes[source]})
		}
	}
	if v, ok := m["required"]; ok {
		if n.required, err = c.names(v, n.at+"/required"); err != nil {
			return err
		}
	}
	for k, to := range map[string]**node{"additionalProperties": &n.additional, "propertyNames": &n.propertyNames,
		"unevaluatedProperties": &n.unevalProps} {
		if err := c.child(n, m, k, to); err != nil {
			return err
		}
	}
	c.uneval = c.uneval || n.unevalProps != nil
	return c.dependencies(n, m)
}

// dependencies compiles dependentRequired, dependentSchemas and "dependencies", their common form in draft-07.
func (c *compiler) dependencies(n *node, m map[string]any) error {
	n.depRequired, n.depSchemas = map[string][]string{}, map[string]*node{}
	if v, ok := m["dependentSchemas"]; ok {
		nodes, err := c.schemaMap(v, n.at+"/dependentSchemas")
		if err != nil {
			return err
		}
		n.depSchemas = nodes
	}
	for _, k := range []string{"dependentRequired", "dependencies"} {
		v, ok := m[k]
		if !ok {
			continue
		}
		deps, ok := v.(map[string]any)
		if !ok {
			return refuse(n.at+"/"+k, "must be an object, not %s", render(v))
		}
		for _, name := range sortedKeys(deps) {
			at := n.at + "/" + k + "/" + jsontext.EscapeToken(name)
			if _, isList := deps[name].([]any); isList || k == "dependentRequired" {
				list, err := c.names(deps[name], at)
				if err != nil {
					return err
				}
				n.depRequired[name] = append(n.depRequired[name], list...)
				continue
			}
			dep, err := c.schema(deps[name], at)
			if err != nil {
				return err
			}
			if first := n.depSchemas[name]; first != nil {
				dep = &node{at: at, allOf: []*node{first, dep}}
			}
			n.depSchemas[name] = dep
		}
	}
	return nil
}

func (c *compiler) arrays(n *node, m map[string]any) error {
	if err := c.counts(n, m, map[string]**int{"minItems": &n.minItems, "maxItems": &n.maxItems,
		"minContains": &n.minContains, "maxContains": &n.maxContains}); err != nil {
		return err
	}
	if v, ok := m["uniqueItems"]; ok {
		if n.unique, ok = v.(bool); !ok {
			return refuse(n.at+"/uniqueItems", "must be a boolean, not %s", render(v))
		}
	}
	var err error
	if v, ok := m["prefixItems"]; ok {
		if n.prefix, err = c.schemaList(v, n.at+"/prefixItems"); err != nil {
			return err
		}
	}
	if list, tuple := m["items"].([]any); tuple {
		if n.prefix != nil {
			return refuse(n.at+"/items", "a list of schemas beside prefixItems: keep one of the two")
		}
		for i, v := range list {
			item, err := c.schema(v, fmt.Sprintf("%s/items/%d", n.at, i))
			if err != nil {
				return err
			}
			n.prefix = append(n.prefix, item)
		}
		if err := c.child(n, m, "additionalItems", &n.items); err != nil {
			return err
		}
	} else if err := c.child(n, m, "items", &n.items); err != nil {
		return err
	}
	for k, to := range map[string]**node{"contains": &n.contains, "unevaluatedItems": &n.unevalItems} {
		if err := c.child(n, m, k, to); err != nil {
			return err
		}
	}
	c.uneval = c.uneval || n.unevalItems != nil
	return nil
}

func (c *compiler) logic(n *node, m map[string]any) error {
	var err error
	for k, to := range map[string]*[]*node{"allOf": &n.allOf, "anyOf": &n.anyOf, "oneOf": &n.oneOf} {
		if v, ok := m[k]; ok {
			if *to, err = c.schemaList(v, n.at+"/"+k); err != nil {
				return err
			}
		}
	}
	for k, to := range map[string]**node{"not": &n.not, "if": &n.ifs, "then": &n.then, "else": &n.els} {
		if err := c.child(n, m, k, to); err != nil {
			return err
		}
	}
	if n.ifs == nil { // "then" and "else" assert nothing without "if"
		n.then, n.els = nil, nil
	}
	return nil
}

func (c *compiler) child(n *node, m map[string]any, keyword string, to **node) error {
	v, ok := m[keyword]
	if !ok {
		return nil
	}
	child, err := c.schema(v, n.at+"/"+keyword)
	*to = child
	return err
}

func (c *compiler) schemaMap(v any, at string) (map[string]*node, error) {
	m, ok := v.(map[string]any)
	if !ok {
		return nil, refuse(at, "must be an object of schemas, not %s", render(v))
	}
	nodes := make(map[string]*node, len(m))
	for _, k := range sortedKeys(m) {
		n, err := c.schema(m[k], at+"/"+jsontext.EscapeToken(k))
		if err != nil {
			return nil, err
		}
		nodes[k] = n
	}
	return nodes, nil
}

func (c *compiler) schemaList(v any, at string) ([]*node, error) {
	list, ok := v.([]any)
	if !ok {
		return nil, refuse(at, "must be an array of schemas, not %s", render(v))
	}
	if len(list) == 0 {
		return nil, refuse(at, "must contain at least one schema")
	}
	nodes := make([]*node, len(list))
	for i, x := range list {
		n, err := c.schema(x, at+"/"+strconv.Itoa(i))
		if err != nil {
			return nil, err
		}
		nodes[i] = n
	}
	return nodes, nil
}

func (c *compiler) names(v any, at string) ([]string, error) {
	list, ok := v.([]any)
	if !ok {
		return nil, refuse(at, "must be an array of property names, not %s", render(v))
	}
	if c.untrusted && len(list) > gateValues {
		return nil, refuse(at, "%d names, at most %d", len(list), gateValues)
	}
	var names []string
	seen := map[string]bool{}
	for _, x := range list {
		name, ok := x.(string)
		if !ok {
			return nil, refuse(at, "must contain property names, not %s", render(x))
		}
		if !seen[name] {
			seen[name] = true
			names = append(names, name)
		}
	}
	return names, nil
}

// inPlace refuses schemas that refer back to themselves without descending into the value, by which validation would
// recurse forever, and schemas that apply too many others to one value: chains of two references double at each level.
func (c *compiler) inPlace() error {
	const visiting = -1
	count := map[*node]int{}
	var visit func(n *node) (int, error)
	visit = func(n *node) (int, error) {
		switch done := count[n]; {
		case done == visiting:
			return 0, refuse(n.at,
				"this schema refers back to itself without descending into the value: validation would never end")
		case done > 0:
			return done, nil
		}
		count[n] = visiting
		sum := 1
		for _, next := range n.applied() {
			k, err := visit(next)
			if err != nil {
				return 0, err
			}
			sum += k
			if c.untrusted && sum > gateInPlace {
				return 0, refuse(n.at, "more than %d schemas apply to one value here", gateInPlace)
			}
		}
		count[n] = min(sum, 1<<30)
		return count[n], nil
	}
	for _, at := range sortedKeys(c.nodes) {
		if _, err := visit(c.nodes[at]); err != nil {
			return err
		}
	}
	return nil
}

// applied returns the schemas that n applies to the same value as itself.
func (n *node) applied() []*node {
	var list []*node
	for _, one := range []*node{n.ref, n.not, n.ifs, n.then, n.els} {
		if one != nil {
			list = append(list, one)
		}
	}
	list = append(append(append(list, n.allOf...), n.anyOf...), n.oneOf...)
	for _, k := range sortedKeys(n.depSchemas) {
		list = append(list, n.depSchemas[k])
	}
	return list
}

func refuse(at, format string, args ...any) *GateError {
	return &GateError{Pointer: at, Reason: fmt.Sprintf(format, args...)}
}

// gateSize bounds the number of values in the document, whether they are schemas or not.
func gateSize(doc any) error {
	count := 0
	var walk func(v any)
	walk = func(v any) {
		if count++; count > gateNodes {
			return
		}
		switch v := v.(type) {
		case []any:
			for _, x := range v {
				walk(x)
			}
		case map[string]any:
			for _, x := range v {
				walk(x)
			}
		}
	}
	walk(doc)
	if count > gateNodes {
		return refuse("", "more than %d values in one schema", gateNodes)
	}
	return nil
}
