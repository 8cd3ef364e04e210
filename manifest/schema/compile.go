package schema

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/big"
	"net/url"
	"regexp"
	"regexp/syntax"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/parley-tools/parley/internal/lazy"
	"github.com/parley-tools/parley/internal/lists"
	"github.com/parley-tools/parley/manifest/jsontext"
)

// A node is one compiled schema, in the keywords of 2020-12 whatever dialect the schema was written in. Nodes form a
// graph, with "$ref" as edges.
type node struct {
	at     string // JSON pointer to the schema in its document
	always *bool  // for a schema that is true or false
	ref    *node

	types    kinds // 0 for any
	enum     []any
	isConst  bool
	constant any

	bounds     []bound // in the order of comparisons
	multipleOf *bound
	length     span
	pattern    *pattern
	format     string            // the format, or the encoding, to validate
	asserted   func(string) bool // validates the format, nil if it is an annotation
	objectWords
	arrayWords
	logicWords

	hasDefault bool
	fallback   any // the value of "default"

	about   string   // "description"
	aliases []string // "x-aliases": other names that callers use for the value
}

// objectWords are the keywords for objects.
type objectWords struct {
	props         map[string]*node
	propNames     []string // sorted
	patternProps  []patternProp
	additional    *node
	required      []string
	size          span // the number of properties
	propertyNames *node
	depRequired   map[string][]string
	depSchemas    map[string]*node
	unevalProps   *node
}

// arrayWords are the keywords for arrays.
type arrayWords struct {
	prefix          []*node
	items, contains *node
	count, matching span // the number of items, and of those that contains accepts
	unique          bool
	unevalItems     *node
}

// logicWords are the keywords that apply other schemas to the same value.
type logicWords struct {
	allOf, anyOf, oneOf []*node
	not, ifs, then, els *node
}

// A bound is a number that a keyword compares a value with.
type bound struct {
	comparison
	text json.Number
	rat  *big.Rat
}

// comparison is a keyword that bounds a number: its sign for messages, and a function that reports whether an order
// of value and bound is refused.
type comparison struct {
	keyword, sign string
	refuses       func(order int) bool
}

var comparisons = []comparison{
	{"minimum", ">=", func(order int) bool { return order < 0 }},
	{"exclusiveMinimum", ">", func(order int) bool { return order <= 0 }},
	{"maximum", "<=", func(order int) bool { return order > 0 }},
	{"exclusiveMaximum", "<", func(order int) bool { return order >= 0 }},
}

// A span is the least and the greatest number of parts that a value may have; nil means no limit.
type span struct{ least, most *int }

// or returns s with the ends that it lacks taken from o.
func (s span) or(o span) span { return span{cmp.Or(s.least, o.least), cmp.Or(s.most, o.most)} }

// span returns the span for the last word of a keyword, such as Length for minLength.
func (n *node) span(of string) *span {
	return map[string]*span{"Length": &n.length, "Items": &n.count, "Contains": &n.matching, "Properties": &n.size}[of]
}

type pattern struct {
	source string
	re     *regexp.Regexp
	size   int // instructions of its program; they bound the cost of a match per byte
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
	names := []string{"string", "number", "integer", "boolean", "object", "array", "null"}
	return slices.DeleteFunc(names, func(name string) bool { return k&kindNames[name] == 0 })
}

// Bounds of the gate for untrusted schemas. Each bound stops schemas that made a process hang or crash in tests.
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

// GateError says why a schema is refused, and which part of it is the reason.
type GateError struct {
	Pointer string // JSON pointer into the schema
	Reason  string
}

func (e *GateError) Error() string {
	return "schema refused at " + cmp.Or(e.Pointer, "its root") + ": " + e.Reason
}

// A compiler compiles the graph of a document. It continues after an error, but its result is then not used.
type compiler struct {
	doc       any
	untrusted bool
	rootID    string
	// refHides is set for draft-07, where a "$ref" hides the keywords next to it.
	refHides bool

	nodes   map[string]*node  // by pointer
	anchors map[string]string // name -> pointer
	pending []pendingRef
	targets []*node // targets of "$ref", in the order in which they were found
	uneval  bool    // some schema has an unevaluated keyword
	regexps int     // instructions in all patterns
	err     error   // the first *[GateError]
}

type pendingRef struct {
	from *node
	ref  string
}

func refuse(at, format string, args ...any) *GateError {
	return &GateError{Pointer: at, Reason: fmt.Sprintf(format, args...)}
}

func (c *compiler) refuse(at, format string, args ...any) {
	if c.err == nil {
		c.err = refuse(at, format, args...)
	}
}

// as returns the value of the keyword at a pointer as type T, which what names, or refuses the schema.
func as[T any](c *compiler, v any, at, what string) (t T, ok bool) {
	if t, ok = v.(T); !ok {
		c.refuse(at, "must be %s, not %s", what, render(v))
	}
	return t, ok
}

// compile builds the graph of doc and returns its root.
func (c *compiler) compile() (*node, error) {
	c.nodes, c.anchors = map[string]*node{}, map[string]string{}
	c.dialect()
	root := c.schema(c.doc, "")
	// A reference may lead to a schema that no keyword led to, with more references in it.
	for c.err == nil && len(c.pending) > 0 {
		p := c.pending[0]
		c.pending = c.pending[1:]
		c.resolve(p)
	}
	c.inPlace()
	return root, c.err
}

func (c *compiler) dialect() {
	m, ok := c.doc.(map[string]any)
	if !ok {
		return
	}
	c.refHides = !c.untrusted
	if v, ok := m["$schema"]; ok {
		name := c.dialectName(v, "/$schema")
		if !c.untrusted && name != "draft-07" {
			c.refuse("/$schema", "schemas of this project use draft-07, not %s", name)
		}
		c.refHides = name == "draft-07"
	}
	if id, ok := m["$id"].(string); ok && !strings.HasPrefix(id, "#") {
		c.rootID = strings.TrimSuffix(id, "#")
	}
}

// dialectName returns the short name of the dialect that v, the value of "$schema" at the pointer at, names.
func (c *compiler) dialectName(v any, at string) string {
	uri, _ := v.(string)
	uri = strings.TrimSuffix(uri, "#")
	switch strings.TrimPrefix(strings.TrimPrefix(uri, "http://"), "https://") {
	case "json-schema.org/draft-07/schema":
		return "draft-07"
	case "json-schema.org/draft/2020-12/schema":
		return "2020-12"
	}
	c.refuse(at, "unknown dialect %s: only draft-07 and 2020-12 are known; write the schema in one of them "+
		`and name it, or leave "$schema" out for 2020-12`, render(v))
	return ""
}

// schema compiles the schema v, which is at the JSON pointer at.
func (c *compiler) schema(v any, at string) *node {
	if n, ok := c.nodes[at]; ok {
		return n
	}
	n := &node{at: at}
	c.nodes[at] = n
	switch v := v.(type) {
	case bool:
		n.always = &v
	case map[string]any:
		_, hasRef := v["$ref"]
		isHiding := hasRef && c.refHides
		if id, ok := v["$id"]; ok && !isHiding {
			c.id(n, id)
		}
		rest := slices.DeleteFunc(sortedKeys(v), func(k string) bool { return c.annotation(n, k, v[k]) })
		for _, k := range rest {
			if isDefinitions := k == "$defs" || k == "definitions"; c.err == nil && (isDefinitions || !isHiding) {
				c.keyword(n, k, v)
			}
		}
		if n.ifs == nil { // "then" and "else" assert nothing without "if"
			n.then, n.els = nil, nil
		}
		slices.SortFunc(n.bounds, func(a, b bound) int { return strings.Compare(b.sign, a.sign) })
	default:
		c.refuse(at, "a schema is an object or a boolean, not %s", render(v))
	}
	return n
}

// annotation compiles keywords that assert nothing, and keywords that name schemas or refer to them. It refuses
// references to other documents. It returns false for all other keywords.
func (c *compiler) annotation(n *node, k string, v any) bool {
	at := n.at + "/" + k
	switch k {
	case "$dynamicRef", "$recursiveRef":
		c.refuse(at, "%s is not supported: use $ref", k)
	case "$ref":
		if ref, ok := as[string](c, v, at, "a string"); ok {
			c.pending = append(c.pending, pendingRef{n, ref})
		}
	case "$schema":
		c.dialectName(v, at)
	case "$id":
	case "$anchor", "$dynamicAnchor":
		if name, ok := as[string](c, v, at, "a string"); ok {
			c.anchor(n, at, name)
		}
	case "default":
		n.hasDefault, n.fallback = true, v
	case "description":
		n.about, _ = v.(string)
	case "x-aliases":
		n.aliases = jsontext.Texts(v)
	default:
		return false
	}
	return true
}

func (c *compiler) id(n *node, v any) {
	at := n.at + "/$id"
	switch id, ok := as[string](c, v, at, "a string"); {
	case !ok:
	case strings.HasPrefix(id, "#") && len(id) > 1:
		c.anchor(n, at, id[1:])
	case n.at != "":
		c.refuse(at, "a nested $id starts a document of its own, which is not supported: use a JSON pointer in $ref")
	}
}

func (c *compiler) anchor(n *node, at, name string) {
	if other, taken := c.anchors[name]; taken && other != n.at {
		c.refuse(at, "the anchor %q is already at %s", name, other)
	}
	c.anchors[name] = n.at
}

func (c *compiler) resolve(p pendingRef) {
	at := p.from.at + "/$ref"
	ref := p.ref
	if c.rootID != "" {
		if rest, ok := strings.CutPrefix(ref, c.rootID); ok && (rest == "" || rest[0] == '#') {
			ref = rest
		}
	}
	fragment, local := strings.CutPrefix(ref, "#")
	pointer, err := url.PathUnescape(fragment)
	tokens, isPointer := jsontext.SplitPointer(pointer)
	if anchored, ok := c.anchors[pointer]; ok && !isPointer {
		tokens, isPointer = jsontext.SplitPointer(anchored)
	}
	v, found := jsontext.Lookup(c.doc, tokens)
	wrong := ""
	switch {
	case !local && ref != "":
		wrong = "%s points outside this schema: only local references (#/...) are followed"
	case err != nil:
		wrong = "%s is not a valid reference"
	case !isPointer:
		wrong = "%s points to an anchor that is not in this schema"
	case !found:
		wrong = "%s points to nothing in this schema"
	}
	if wrong != "" {
		c.refuse(at, wrong, jsontext.QuoteShort(p.ref))
		return
	}
	p.from.ref = c.schema(v, jsontext.Pointer(tokens))
	if !slices.Contains(c.targets, p.from.ref) {
		c.targets = append(c.targets, p.from.ref)
		if c.untrusted && len(c.targets) > gateRefTargets {
			c.refuse(at, "more than %d different targets of $ref", gateRefTargets)
		}
	}
}

// keyword compiles a keyword of the schema m.
func (c *compiler) keyword(n *node, k string, m map[string]any) {
	v, at := m[k], n.at+"/"+k
	switch k {
	case "$defs", "definitions": // even next to a "$ref" that hides it, because references may point into it
		c.schemaMap(v, at)
	case "type":
		c.types(n, v, at)
	case "enum":
		c.enum(n, v, at)
	case "const":
		n.isConst, n.constant = true, v
	case "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum":
		if b := c.number(v, at); b != nil {
			b.comparison = comparisons[slices.IndexFunc(comparisons, func(c comparison) bool { return c.keyword == k })]
			n.bounds = append(n.bounds, *b)
		}
	case "multipleOf":
		if n.multipleOf = c.number(v, at); n.multipleOf != nil && n.multipleOf.rat.Sign() <= 0 {
			c.refuse(at, "must be greater than 0, not %s", n.multipleOf.text)
		}
	case "minLength", "minItems", "minContains", "minProperties":
		n.span(k[3:]).least = c.count(v, at)
	case "maxLength", "maxItems", "maxContains", "maxProperties":
		n.span(k[3:]).most = c.count(v, at)
	case "pattern":
		if source, ok := as[string](c, v, at, "a string"); ok {
			n.pattern = c.pattern(source, at)
		}
	case "format", "contentEncoding":
		c.form(n, m, at)

	case "properties":
		n.props = c.schemaMap(v, at)
		n.propNames = sortedKeys(n.props)
	case "patternProperties":
		nodes := c.schemaMap(v, at)
		for _, source := range sortedKeys(nodes) {
			p := c.pattern(source, at+"/"+jsontext.EscapeToken(source))
			n.patternProps = append(n.patternProps, patternProp{p, nodes[source]})
		}
	case "unevaluatedProperties":
		n.unevalProps, c.uneval = c.schema(v, at), true
	case "required":
		n.required = c.names(v, at)
	case "dependentRequired", "dependentSchemas", "dependencies":
		c.dependencies(n, k, v, at)

	case "items":
		list, isTuple := v.([]any)
		switch {
		case !isTuple:
			n.items = c.schema(v, at)
		case m["prefixItems"] != nil:
			c.refuse(at, "a list of schemas beside prefixItems: keep one of the two")
		default:
			n.prefix = c.schemas(list, at)
		}
	case "additionalItems":
		if _, isTuple := m["items"].([]any); isTuple {
			n.items = c.schema(v, at)
		}
	case "unevaluatedItems":
		n.unevalItems, c.uneval = c.schema(v, at), true
	case "uniqueItems":
		n.unique, _ = as[bool](c, v, at, "a boolean")

	case "prefixItems", "allOf", "anyOf", "oneOf":
		into := map[string]*[]*node{"prefixItems": &n.prefix, "allOf": &n.allOf, "anyOf": &n.anyOf, "oneOf": &n.oneOf}
		*into[k] = c.schemaList(v, at)
	case "additionalProperties", "propertyNames", "contains", "not", "if", "then", "else":
		into := map[string]**node{"additionalProperties": &n.additional, "propertyNames": &n.propertyNames,
			"contains": &n.contains, "not": &n.not, "if": &n.ifs, "then": &n.then, "else": &n.els}
		*into[k] = c.schema(v, at)
	}
}

func (c *compiler) types(n *node, v any, at string) {
	names, isList := v.([]any)
	if !isList {
		names = []any{v}
	}
	for _, x := range names {
		name, _ := x.(string)
		kind, known := kindNames[name]
		if !known {
			c.refuse(at, "%s is not a type: use string, number, integer, boolean, object, array or null", render(x))
		}
		n.types |= kind
	}
	if n.types == 0 {
		c.refuse(at, "an empty list of types")
	}
}

func (c *compiler) enum(n *node, v any, at string) {
	if list, isList := v.([]any); isList && len(list) == 0 {
		c.refuse(at, "an empty list allows no value at all")
	}
	n.enum = c.distinct(v, at, "an array", "values")
}

// distinct returns a list without duplicates.
func (c *compiler) distinct(v any, at, what, items string) (all []any) {
	list, _ := as[[]any](c, v, at, what)
	if c.untrusted && len(list) > gateValues {
		c.refuse(at, "%d %s, at most %d", len(list), items, gateValues)
	}
	seen := map[string]bool{}
	for _, x := range list {
		if key := identityOf(x); !seen[key] {
			seen[key] = true
			all = append(all, x)
		}
	}
	return all
}

// number returns the bound of a keyword, or nil if v is not a number.
func (c *compiler) number(v any, at string) *bound {
	if _, isBool := v.(bool); isBool {
		c.refuse(at, "must be a number, not %s (the boolean form is draft-04)", render(v))
	}
	num, ok := as[json.Number](c, v, at, "a number")
	if !ok {
		return nil
	}
	return &bound{text: num, rat: ratOf(num)}
}

func (c *compiler) count(v any, at string) *int {
	num, _ := v.(json.Number)
	rat := ratOf(num)
	if rat == nil || !rat.IsInt() || rat.Sign() < 0 {
		c.refuse(at, "must be a whole number from 0, not %s", render(v))
		return nil
	}
	count := 1 << 30 // more parts than any value has that Decode accepts
	if i := rat.Num(); i.IsInt64() && i.Int64() < int64(count) {
		count = int(i.Int64())
	}
	return &count
}

func (c *compiler) pattern(source, at string) *pattern {
	if c.untrusted && len(source) > gatePatternLen {
		c.refuse(at, "a pattern of %d bytes, at most %d", len(source), gatePatternLen)
		return nil
	}
	re, err := regexp.Compile(source)
	if err != nil {
		why := strings.TrimPrefix(err.Error(), "error parsing regexp: ")
		lookAround := []string{"(?=", "(?!", "(?<=", "(?<!"}
		if slices.ContainsFunc(lookAround, func(group string) bool { return strings.Contains(source, group) }) {
			why = "look-ahead and look-behind are not in RE2"
		}
		c.refuse(at, "the pattern %s is not RE2: %s", jsontext.QuoteShort(source), why)
		return nil
	}
	tree, _ := syntax.Parse(source, syntax.Perl) // as regexp.Compile did
	prog, _ := syntax.Compile(tree.Simplify())
	if c.untrusted && len(prog.Inst) > gatePatternSize {
		c.refuse(at, "the pattern %s needs a program of %d instructions, at most %d: use smaller repeat counts",
			jsontext.QuoteShort(source), len(prog.Inst), gatePatternSize)
		return nil
	}
	if c.regexps += len(prog.Inst); c.untrusted && c.regexps > gatePatternsSum {
		c.refuse(at, "the patterns of this schema need more than %d instructions together", gatePatternsSum)
		return nil
	}
	return &pattern{source, re, len(prog.Inst)}
}

// asserted are the formats and encodings that "x-assert" makes the host validate. They accept what Go's decoders
// read.
var asserted = map[string]func(string) bool{
	"date-time": func(s string) bool {
		_, err := time.Parse(time.RFC3339, s)
		return err == nil && dateTime().MatchString(s)
	},
	"base64": func(s string) bool {
		_, err := base64.StdEncoding.DecodeString(s)
		return err == nil
	},
}

// dateTime matches the form of RFC 3339. Package time accepts more than that.
var dateTime = lazy.Pattern(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]([01]\d|2[0-3]):[0-5]\d)$`)

// form compiles format and contentEncoding of the schema m. With "x-assert": true next to them they are validated;
// otherwise they are annotations.
func (c *compiler) form(n *node, m map[string]any, at string) {
	n.format, _ = m["format"].(string)
	if m["x-assert"] != true {
		return
	}
	encoding, _ := m["contentEncoding"].(string)
	n.format = cmp.Or(n.format, encoding)
	if n.asserted = asserted[n.format]; n.asserted == nil {
		c.refuse(at, "x-assert validates the format date-time and the contentEncoding base64, not %s",
			jsontext.QuoteShort(n.format))
	}
}

// dependencies compiles dependentRequired, dependentSchemas and "dependencies", their common form in draft-07.
func (c *compiler) dependencies(n *node, keyword string, v any, at string) {
	if n.depSchemas == nil {
		n.depRequired, n.depSchemas = map[string][]string{}, map[string]*node{}
	}
	what := "an object"
	if keyword == "dependentSchemas" {
		what = "an object of schemas"
	}
	deps, _ := as[map[string]any](c, v, at, what)
	for _, name := range sortedKeys(deps) {
		at := at + "/" + jsontext.EscapeToken(name)
		_, isList := deps[name].([]any)
		if keyword == "dependentRequired" || isList && keyword == "dependencies" {
			n.depRequired[name] = append(n.depRequired[name], c.names(deps[name], at)...)
			continue
		}
		dep := c.schema(deps[name], at)
		if first := n.depSchemas[name]; first != nil {
			dep = &node{at: at, logicWords: logicWords{allOf: []*node{first, dep}}}
		}
		n.depSchemas[name] = dep
	}
}

func (c *compiler) schemaMap(v any, at string) map[string]*node {
	m, _ := as[map[string]any](c, v, at, "an object of schemas")
	nodes := make(map[string]*node, len(m))
	for _, k := range sortedKeys(m) {
		nodes[k] = c.schema(m[k], at+"/"+jsontext.EscapeToken(k))
	}
	return nodes
}

func (c *compiler) schemaList(v any, at string) []*node {
	list, ok := as[[]any](c, v, at, "an array of schemas")
	if ok && len(list) == 0 {
		c.refuse(at, "must contain at least one schema")
	}
	return c.schemas(list, at)
}

func (c *compiler) schemas(list []any, at string) []*node {
	nodes := make([]*node, len(list))
	for i, v := range list {
		nodes[i] = c.schema(v, at+"/"+strconv.Itoa(i))
	}
	return nodes
}

func (c *compiler) names(v any, at string) (names []string) {
	for _, x := range c.distinct(v, at, "an array of property names", "names") {
		name, ok := x.(string)
		if !ok {
			c.refuse(at, "must contain property names, not %s", render(x))
		}
		names = append(names, name)
	}
	return names
}

// inPlace refuses schemas that refer back to themselves without descending into the value, because validation would
// recurse forever. It also refuses schemas that apply too many other schemas to one value: in a chain of schemas with
// two references each, the number doubles at each level.
func (c *compiler) inPlace() {
	const visiting = -1
	count := map[*node]int{}
	var visit func(n *node) int
	visit = func(n *node) int {
		switch done := count[n]; {
		case done == visiting:
			c.refuse(n.at, "this schema refers back to itself without descending into the value: validation would never end")
			return 0
		case done > 0:
			return done
		}
		count[n] = visiting
		sum := 1
		for _, next := range n.applied() {
			sum += visit(next)
			if c.untrusted && sum > gateInPlace {
				c.refuse(n.at, "more than %d schemas apply to one value here", gateInPlace)
			}
		}
		count[n] = min(sum, 1<<30)
		return count[n]
	}
	for _, at := range sortedKeys(c.nodes) {
		if c.err == nil {
			visit(c.nodes[at])
		}
	}
}

// applied returns the schemas that n applies to the same value as itself.
func (n *node) applied() []*node {
	list := lists.Filter([]*node{n.ref, n.not, n.ifs, n.then, n.els}, func(n *node) bool { return n != nil })
	list = append(append(append(list, n.allOf...), n.anyOf...), n.oneOf...)
	return append(list, lists.Map(sortedKeys(n.depSchemas), func(name string) *node { return n.depSchemas[name] })...)
}
