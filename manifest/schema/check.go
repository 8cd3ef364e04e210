package schema

import (
	"cmp"
	"encoding/json"
	"maps"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/parley-tools/parley/internal/lists"
	"github.com/parley-tools/parley/manifest/jsontext"
)

// A location is a path into the checked value, as a list from its end to the root; nil is the root.
type location struct {
	up    *location
	token string
}

func (p *location) tokens() (tokens []string) {
	for ; p != nil; p = p.up {
		tokens = append(tokens, p.token)
	}
	slices.Reverse(tokens)
	return tokens
}

func (p *location) pointer() string { return jsontext.Pointer(p.tokens()) }

func (p *location) key(k string) *location { return &location{up: p, token: k} }
func (p *location) index(i int) *location  { return &location{up: p, token: strconv.Itoa(i)} }

// A fault is a violation before it is described in words.
type fault struct {
	at      *location
	keyword string
	node    *node // the schema with the broken keyword; nil if there are several
	v       any   // the value at that location
	absent  bool  // there is no value

	child     *node          // schema of a missing property, if it has one
	known     []string       // names of properties that the schema of the object knows, for an unknown one
	beside    map[string]any // the object with the unknown property
	allowed   []any          // values to choose from, if no single enum lists them
	expected  string         // replaces or completes the text made from the keyword
	ambiguous bool           // there are several ways to correct it, so none is proposed
}

// A record is the set of properties or items of one value that some schema has evaluated, for the unevaluated
// keywords: names, and indices. It is nil if no schema needs it.
type record map[any]bool

func (s record) add(part any) {
	if s != nil {
		s[part] = true
	}
}

func (s record) addAll(o record) {
	if s != nil {
		maps.Copy(s, o)
	}
}

// A walker validates a value by the graph of nodes.
type walker struct {
	uneval bool // keep records of evaluated properties and items
	steps  int  // steps left; once it is negative, the result is meaningless
}

func (w *walker) record() record {
	if w.uneval {
		return record{}
	}
	return nil
}

// check reports whether v is valid by n. It appends all faults to faults, or stops at the first one if faults is nil.
// It adds the parts of v that were evaluated to seen, unless that is nil.
func (w *walker) check(n *node, v any, at *location, faults *[]fault, seen record) bool {
	if w.steps--; w.steps < 0 {
		return false
	}
	if faults != nil && len(*faults) > MaxViolations {
		return false
	}
	c := visit{walker: w, node: n, v: v, at: at, faults: faults, seen: w.record(), ok: true}
	if n.always != nil {
		if !*n.always {
			c.fail("false")
		}
		return *n.always
	}
	c.both(n.ref)
	switch {
	case c.isOver():
		return false
	case n.types != 0 && n.types&kindOf(v) == 0:
		return c.fail("type")
	case n.enum != nil && !slices.ContainsFunc(n.enum, func(e any) bool { return equal(e, v) }):
		return c.fail("enum")
	case n.isConst && !equal(n.constant, v):
		return c.fail("const")
	}
	switch v := v.(type) {
	case json.Number:
		c.number(v)
	case string:
		if n.length != (span{}) {
			c.count(n.length, utf8.RuneCountInString(v), "minLength", "maxLength")
		}
		if n.pattern != nil && !n.pattern.re.MatchString(v) {
			c.fail("pattern")
		}
		if n.asserted != nil && !n.asserted(v) {
			c.fail("format")
		}
	case []any:
		c.array(v)
	case map[string]any:
		c.object(v)
	}
	if c.isOver() {
		return false
	}
	c.logic()
	if c.isOver() {
		return false
	}
	c.unevaluated()
	if w.uneval && !c.isOver() {
		// An invalid part counts as evaluated: it has a fault already and must not be reported as unknown, too.
		seen.addAll(c.seen)
	}
	return c.ok && w.steps >= 0
}

// A visit is the check of one value by one node.
type visit struct {
	*walker
	*node
	v      any
	at     *location
	faults *[]fault // nil to stop at the first
	seen   record
	ok     bool
}

// isOver reports whether the result is known and no more faults are wanted.
func (c *visit) isOver() bool { return !c.ok && c.faults == nil }

// add records a fault.
func (c *visit) add(f fault) {
	if c.ok = false; c.faults != nil {
		*c.faults = append(*c.faults, f)
	}
}

// fail records that the value breaks a keyword of the node. The result is always false.
func (c *visit) fail(keyword string) bool {
	c.add(fault{at: c.at, keyword: keyword, node: c.node, v: c.v})
	return false
}

// inner checks a part of the value, or the value itself, by a node.
func (c *visit) inner(n *node, v any, at *location, seen record) {
	if !c.isOver() && !c.check(n, v, at, c.faults, seen) {
		c.ok = false
	}
}

// both checks the value by another node, too, unless n is nil.
func (c *visit) both(n *node) {
	if n != nil {
		c.inner(n, c.v, c.at, c.seen)
	}
}

// isNever reports whether a schema is false, which no value matches.
func (n *node) isNever() bool { return n.always != nil && !*n.always }

func (c *visit) number(v json.Number) {
	if c.bounds == nil && c.multipleOf == nil {
		return
	}
	r := ratOf(v)
	if r == nil {
		return
	}
	for _, b := range c.bounds {
		if b.refuses(r.Cmp(b.rat)) {
			c.fail(b.keyword)
		}
	}
	if c.multipleOf != nil && !new(big.Rat).Quo(r, c.multipleOf.rat).IsInt() {
		c.fail("multipleOf")
	}
}

func (c *visit) count(allowed span, n int, least, most string) {
	if allowed.least != nil && n < *allowed.least {
		c.fail(least)
	}
	if allowed.most != nil && n > *allowed.most {
		c.fail(most)
	}
}

func (c *visit) array(v []any) {
	for i, item := range v {
		s := c.item(i)
		if s == nil {
			break
		}
		c.seen.add(i)
		c.inner(s, item, c.at.index(i), nil)
	}
	c.count(c.node.count, len(v), "minItems", "maxItems")
	if c.unique && hasDuplicate(v) {
		c.fail("uniqueItems")
	}
	if c.contains == nil {
		return
	}
	matching := 0
	for i, item := range v {
		if c.check(c.contains, item, c.at, nil, nil) {
			c.seen.add(i)
			matching++
		}
	}
	one := 1
	c.count(c.matching.or(span{least: &one}), matching, "contains", "maxContains")
}

func hasDuplicate(v []any) bool {
	different := make(map[string]bool, len(v))
	for _, item := range v {
		different[identityOf(item)] = true
	}
	return len(different) < len(v)
}

func (c *visit) object(v map[string]any) {
	missing := func(names []string, keyword, because string) {
		for _, name := range names {
			if _, given := v[name]; !given {
				c.add(fault{at: c.at.key(name), keyword: keyword, node: c.node, absent: true, child: c.props[name],
					expected: because})
			}
		}
	}
	missing(c.required, "required", "")
	for _, by := range sortedKeys(c.depRequired) {
		if _, given := v[by]; given {
			missing(c.depRequired[by], "dependentRequired", " because "+jsontext.QuoteShort(by)+" is given")
		}
	}
	c.count(c.size, len(v), "minProperties", "maxProperties")
	if c.props == nil && c.patternProps == nil && c.additional == nil && c.propertyNames == nil {
		return
	}
	for _, name := range sortedKeys(v) {
		if c.isOver() {
			return
		}
		c.property(name, v)
	}
}

func (c *visit) property(name string, beside map[string]any) {
	at := c.at.key(name)
	described := c.propSchemas(name)
	if len(described) > 0 {
		c.seen.add(name)
	}
	for _, s := range described {
		if s == c.additional && s.isNever() {
			c.add(fault{at: at, keyword: "additionalProperties", node: c.node, v: beside[name], known: c.propNames,
				beside: beside})
		} else {
			c.inner(s, beside[name], at, nil)
		}
	}
	if c.propertyNames != nil && !c.check(c.propertyNames, name, nil, nil, nil) {
		c.add(fault{at: at, keyword: "propertyNames", node: c.node, v: name})
	}
}

func (c *visit) logic() {
	for _, s := range c.allOf {
		c.both(s)
	}
	c.union("anyOf", c.anyOf)
	c.union("oneOf", c.oneOf)
	if c.not != nil && c.check(c.not, c.v, c.at, nil, nil) {
		c.fail("not")
	}
	if c.ifs != nil {
		cond := c.record()
		if c.check(c.ifs, c.v, c.at, nil, cond) {
			c.seen.addAll(cond)
			c.both(c.then)
		} else {
			c.both(c.els)
		}
	}
	if m, isObject := c.v.(map[string]any); isObject {
		for _, by := range sortedKeys(c.depSchemas) {
			if _, given := m[by]; given {
				c.both(c.depSchemas[by])
			}
		}
	}
}

// union checks anyOf and oneOf. If no branch accepts the value, it adds the faults of the branch that was most likely
// meant, or one fault that names several branches if they are equally likely.
func (c *visit) union(keyword string, branches []*node) {
	if branches == nil {
		return
	}
	valid := 0
	all := make([][]fault, len(branches))
	for i, b := range branches {
		var collect *[]fault
		if c.faults != nil {
			collect = &all[i]
		}
		seen := c.record()
		if !c.check(b, c.v, c.at, collect, seen) {
			continue
		}
		valid++
		c.seen.addAll(seen)
		if keyword == "anyOf" && !c.uneval {
			return
		}
	}
	switch {
	case valid == 1 || valid > 0 && keyword == "anyOf":
	case valid > 1:
		c.add(fault{at: c.at, keyword: keyword, node: c.node, v: c.v, expected: "a value that matches exactly one of the " +
			"alternatives, this one matches " + strconv.Itoa(valid) + ": " + describeUnion(branches)})
	case c.faults == nil:
		c.ok = false
	default:
		for _, f := range c.likeliest(keyword, branches, all) {
			c.add(f)
		}
		c.ok = false // even if too many faults were found before
		c.markAll()
	}
}

// markAll records each part of the value as evaluated.
func (c *visit) markAll() {
	switch v := c.v.(type) {
	case map[string]any:
		for k := range v {
			c.seen.add(k)
		}
	case []any:
		for i := range v {
			c.seen.add(i)
		}
	}
}

// An option is a branch of a union that does not accept a value.
type option struct {
	branch                     *node
	faults                     []fault
	wrongKind, wrongTag, known int // known: how many of the given properties the branch has
}

// likeliest returns the faults to report if no branch of a union accepts the value. all has the faults of each
// branch. The branch that was meant is the one of the right type and tag with the most of the given properties. The
// number of faults decides only between branches that have some of these properties.
func (c *visit) likeliest(keyword string, branches []*node, all [][]fault) []fault {
	var options []option
	isChoice := true // each branch only requires another type or value, so the union works like an enum
	for i, faults := range all {
		o := option{branch: branches[i], faults: faults}
		for _, f := range faults {
			switch {
			case f.at == c.at && (f.keyword == "type" || f.keyword == "false"):
				o.wrongKind = 1
			case f.choices() == nil:
			case f.at == c.at, f.at != nil && f.at.up == c.at && isTag(branches, f.at.token):
				o.wrongTag = 1
			}
		}
		isChoice = isChoice && len(faults) == 1 && faults[0].at == c.at &&
			(faults[0].keyword == "type" || faults[0].choices() != nil)
		options = append(options, o)
	}
	if isChoice {
		return []fault{c.mergeChoices(all)}
	}
	countKnown(options, c.v)
	better := func(a, b option) int {
		return cmp.Or(a.wrongKind-b.wrongKind, a.wrongTag-b.wrongTag, b.known-a.known)
	}
	best := slices.MinFunc(options, better)
	faultsOf := func(o option) []fault { return o.faults }
	// Each branch requires another value of the same property, and the given value is none of them: list them.
	if best.wrongTag != 0 && best.wrongKind == 0 {
		right := lists.Filter(options, func(o option) bool { return o.wrongKind == 0 })
		if tag := commonTag(lists.Map(right, faultsOf), c.at); tag != nil {
			return []fault{*tag}
		}
	}
	tied := lists.Filter(options, func(o option) bool { return better(best, o) == 0 })
	if _, isObject := c.v.(map[string]any); best.known > 0 || !isObject {
		fewest := len(slices.MinFunc(tied, func(a, b option) int { return len(a.faults) - len(b.faults) }).faults)
		tied = lists.Filter(tied, func(o option) bool { return len(o.faults) == fewest })
	}
	if len(tied) == 1 {
		return tied[0].faults
	}
	expected := describeUnion(lists.Map(tied, func(o option) *node { return o.branch }))
	isWhole := func(o option) bool { return o.faults[0].at == c.at || o.faults[0].absent }
	if !slices.ContainsFunc(tied, isWhole) { // otherwise the sentence would describe the value as it is
		expected = strings.Join(lists.Map(tied, func(o option) string { return o.faults[0].within(c.at) }), " or ")
	}
	return []fault{{at: c.at, keyword: keyword, node: c.node, v: c.v, expected: expected, ambiguous: true}}
}

// within says what a fault expects in a part of the value at a location.
func (f fault) within(at *location) string {
	text := cmp.Or(f.expected, "another value")
	if choices := f.choices(); choices != nil {
		text = oneOf(choices)
	} else if f.node != nil && f.expected == "" {
		text = expectation(f)
	}
	return "in " + strings.TrimPrefix(f.at.pointer(), at.pointer()) + " " + text
}

// describes reports whether a schema, or a branch of its unions, says anything about a property of that name.
func (n *node) describes(name string, depth int) bool {
	return slices.ContainsFunc(n.conjuncts(), func(n *node) bool {
		within := func(branch *node) bool { return branch.describes(name, depth-1) }
		isOwn := func(s *node) bool { return s != n.additional || s.always == nil }
		return slices.ContainsFunc(n.propSchemas(name), isOwn) || slices.Contains(n.required, name) ||
			depth > 0 && (slices.ContainsFunc(n.anyOf, within) || slices.ContainsFunc(n.oneOf, within))
	})
}

// isTag reports whether a property distinguishes the branches of a union: several of them have it.
func isTag(branches []*node, name string) bool {
	return len(lists.Filter(branches, func(n *node) bool { return n.describes(name, 2) })) > 1
}

// maxResembled bounds the comparisons of names in one union.
const maxResembled = 1000

// countKnown counts for each branch how many properties of a value it has. If no branch has any, it counts names that
// resemble its properties.
func countKnown(options []option, v any) {
	object, _ := v.(map[string]any)
	compared := 0
	for i, o := range options {
		for name := range object {
			if o.branch.describes(name, 2) {
				options[i].known++
			}
		}
		compared += len(object) * len(o.branch.names())
	}
	if compared > maxResembled || slices.ContainsFunc(options, func(o option) bool { return o.known > 0 }) {
		return
	}
	for i, o := range options {
		for name := range object {
			if len(nearestNames(name, o.branch.names())) > 0 {
				options[i].known++
			}
		}
	}
}

// names returns the names of the properties of a schema.
func (n *node) names() (all []string) {
	for _, part := range n.conjuncts() {
		all = append(all, part.propNames...)
	}
	return all
}

// mergeChoices merges the faults of branches that each require another type or value into one fault.
func (c *visit) mergeChoices(all [][]fault) fault {
	merged := fault{at: c.at, keyword: "enum", node: c.node, v: c.v}
	var wants []*node
	isEnum := true
	for _, faults := range all {
		f := faults[0]
		if f.node != nil {
			wants = append(wants, f.node)
		}
		choices := f.choices()
		merged.allowed = append(merged.allowed, choices...)
		isEnum = isEnum && choices != nil
	}
	if !isEnum {
		merged.keyword, merged.allowed, merged.ambiguous = "type", nil, true
		merged.expected = describeUnion(wants)
	}
	return merged
}

// choices returns the values that the keyword of a fault allows, or nil if it is not enum or const.
func (f fault) choices() []any {
	switch {
	case f.allowed != nil:
		return f.allowed
	case f.keyword == "enum":
		return f.node.enum
	case f.keyword == "const":
		return []any{f.node.constant}
	}
	return nil
}

// commonTag returns a fault for the property that distinguishes the branches of a union: every branch refuses its
// value by const or enum. It returns nil if there is no such property.
func commonTag(all [][]fault, at *location) *fault {
	var tag *fault
	for _, faults := range all {
		i := slices.IndexFunc(faults, func(f fault) bool {
			return f.at != nil && f.at != at && f.at.up == at && f.choices() != nil &&
				(tag == nil || f.at.token == tag.at.token)
		})
		if i < 0 {
			return nil
		}
		f := faults[i]
		if tag == nil {
			tag = &fault{at: f.at, keyword: "enum", v: f.v} // there is no node, because no single schema describes the choice
		}
		tag.allowed = append(tag.allowed, f.choices()...)
	}
	return tag
}

func (c *visit) unevaluated() {
	switch v := c.v.(type) {
	case map[string]any:
		if c.unevalProps == nil {
			return
		}
		for _, name := range sortedKeys(v) {
			switch {
			case c.seen[name]:
			case c.unevalProps.isNever():
				c.add(fault{at: c.at.key(name), keyword: "unevaluatedProperties", node: c.node, v: v[name],
					known: knownNames(c.node), beside: v})
			default:
				c.inner(c.unevalProps, v[name], c.at.key(name), nil)
			}
		}
	case []any:
		if c.unevalItems == nil {
			return
		}
		for i, item := range v {
			if !c.seen[i] {
				c.inner(c.unevalItems, item, c.at.index(i), nil)
			}
		}
	}
	c.markAll()
}

// knownNames returns the names of the properties of n and of all schemas that it applies to the same value.
func knownNames(n *node) []string {
	names := map[string]bool{}
	var visit func(n *node)
	visit = func(n *node) {
		for k := range n.props {
			names[k] = true
		}
		for _, next := range n.applied() {
			if next != n.not {
				visit(next)
			}
		}
	}
	visit(n)
	return sortedKeys(names)
}

// budget bounds the cost of validating one value, in steps of 0.04 to 2 us. The slowest values found within the
// budget take 2 s. An array of 4 MiB of three-digit numbers stays within it.
const budget = 1_500_000

// checkCost returns a *CostError if validating v would exceed the budget.
func checkCost(root *node, v any) error {
	m := meter{left: budget}
	if !m.visit(root, v, 0) {
		return &CostError{Budget: budget}
	}
	return nil
}

// A meter computes an upper bound of the walker's steps: it follows every branch of every union, even if an earlier
// check would fail.
type meter struct{ left int }

func (m *meter) visit(n *node, v any, depth int) bool {
	// A step costs more the deeper the walk is. This also bounds the goroutine's stack.
	if m.left -= 1 + depth/256; m.left < 0 {
		return false
	}
	if n.always != nil {
		return true
	}
	m.left -= len(n.enum) / 4
	for _, next := range n.applied() {
		if !m.visit(next, v, depth+1) {
			return false
		}
	}
	switch v := v.(type) {
	case json.Number:
		if n.bounds != nil || n.multipleOf != nil {
			m.left--
		}
	case string:
		m.left -= len(v) / 64
		if n.pattern != nil {
			m.left -= matchCost(n.pattern, v)
		}
	case []any:
		return m.array(n, v, depth)
	case map[string]any:
		return m.object(n, v, depth)
	}
	return m.left >= 0
}

func (m *meter) array(n *node, v []any, depth int) bool {
	m.left -= len(v) / 8
	for i, item := range v {
		if !m.maybe(n.item(i), item, depth) || !m.maybe(n.contains, item, depth) || !m.maybe(n.unevalItems, item, depth) {
			return false
		}
	}
	return m.left >= 0
}

func (m *meter) object(n *node, v map[string]any, depth int) bool {
	m.left -= (len(v) + len(n.props)) / 8
	for _, pp := range n.patternProps {
		m.left -= 1 + pp.size/4
	}
	for k, x := range v {
		child, known := n.props[k]
		if known && !m.visit(child, x, depth+1) {
			return false
		}
		for _, pp := range n.patternProps {
			if m.left -= matchCost(pp.pattern, k); !m.visit(pp.node, x, depth+1) {
				return false
			}
		}
		if !known && !m.maybe(n.additional, x, depth) || !m.maybe(n.propertyNames, k, depth) ||
			!m.maybe(n.unevalProps, x, depth) {
			return false
		}
	}
	return m.left >= 0
}

func (m *meter) maybe(n *node, v any, depth int) bool { return n == nil || m.visit(n, v, depth+1) }

// matchCost returns the cost of a match for the worst pattern, which keeps most of its program busy at each byte.
func matchCost(p *pattern, s string) int { return 1 + len(s)*(1+p.size/4)/64 }
