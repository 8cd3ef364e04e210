package schema

import (
	"encoding/json"
	"math/big"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/parley-tools/parley/manifest/jsontext"
)

// A location is a path into the value that is checked, as a list from its end to the root; nil is the root.
type location struct {
	up    *location
	token string
}

func (p *location) pointer() string {
	var tokens []string
	for ; p != nil; p = p.up {
		tokens = append(tokens, p.token)
	}
	slices.Reverse(tokens)
	return jsontext.Pointer(tokens)
}

func (p *location) key(k string) *location { return &location{up: p, token: k} }
func (p *location) index(i int) *location  { return &location{up: p, token: strconv.Itoa(i)} }

// A fault is a violation before it is described in words.
type fault struct {
	at      *location
	keyword string
	node    *node // the schema with the broken keyword; nil if there are several
	v       any   // the value there
	absent  bool  // there is no value

	child     *node          // schema of a missing property, if it has one
	known     []string       // names of properties that the schema of the object knows, for an unknown one
	beside    map[string]any // the object with the unknown property
	allowed   []any          // values to choose from, where no single enum lists them
	expected  string         // replaces or completes the text made from the keyword
	ambiguous bool           // there are several ways to correct it, so none is proposed
}

// A record is the set of properties or items of one value that some schema has evaluated, for the unevaluated keywords.
type record struct {
	props map[string]bool
	items map[int]bool
}

func newRecord() *record { return &record{map[string]bool{}, map[int]bool{}} }

func (s *record) prop(k string) {
	if s != nil {
		s.props[k] = true
	}
}

func (s *record) item(i int) {
	if s != nil {
		s.items[i] = true
	}
}

func (s *record) add(o *record) {
	if s == nil || o == nil {
		return
	}
	for k := range o.props {
		s.props[k] = true
	}
	for i := range o.items {
		s.items[i] = true
	}
}

// A walker validates a value by the graph of nodes.
type walker struct {
	uneval bool // keep records of what was evaluated
	steps  int  // steps left; once it is negative, the result means nothing
}

func (s *Schema) walker() *walker { return &walker{uneval: s.uneval, steps: 1 << 40} }

// check reports whether v is valid by n. It appends all faults to faults, or stops at the first where faults is nil.
// It adds the parts of v that were evaluated to seen, unless that is nil.
func (w *walker) check(n *node, v any, at *location, faults *[]fault, seen *record) bool {
	if w.steps--; w.steps < 0 {
		return false
	}
	if faults != nil && len(*faults) > MaxViolations {
		return false
	}
	if n.always != nil {
		if !*n.always {
			add(faults, fault{at: at, keyword: "false", node: n, v: v})
		}
		return *n.always
	}
	mine := seen
	if w.uneval {
		mine = newRecord()
	}
	ok := true
	fail := func(f fault) {
		ok = false
		f.at, f.node, f.v = at, n, v
		add(faults, f)
	}
	stop := func() bool { return !ok && faults == nil }

	if n.ref != nil && !w.check(n.ref, v, at, faults, mine) {
		ok = false
	}
	if stop() {
		return false
	}
	if n.types != 0 && n.types&kindOf(v) == 0 {
		fail(fault{keyword: "type"})
		return false
	}
	if n.enum != nil && !slices.ContainsFunc(n.enum, func(e any) bool { return equal(e, v) }) {
		fail(fault{keyword: "enum"})
		return false
	}
	if n.isConst && !equal(n.constant, v) {
		fail(fault{keyword: "const"})
		return false
	}
	switch v := v.(type) {
	case json.Number:
		checkNumber(n, v, fail)
	case string:
		checkString(n, v, fail)
	case []any:
		ok = w.array(n, v, at, faults, mine, fail) && ok
	case map[string]any:
		ok = w.object(n, v, at, faults, mine, fail) && ok
	}
	if stop() {
		return false
	}
	ok = w.logic(n, v, at, faults, mine, fail) && ok
	if stop() {
		return false
	}
	ok = w.unevaluated(n, v, at, faults, mine) && ok
	if w.uneval && (ok || faults != nil) {
		// A part that is invalid counts as evaluated: it has a fault already and must not be called unknown as well.
		seen.add(mine)
	}
	return ok && w.steps >= 0
}

func add(faults *[]fault, f fault) {
	if faults != nil {
		*faults = append(*faults, f)
	}
}

func markAll(v any, s *record) {
	switch v := v.(type) {
	case map[string]any:
		for k := range v {
			s.props[k] = true
		}
	case []any:
		for i := range v {
			s.items[i] = true
		}
	}
}

func checkNumber(n *node, v json.Number, fail func(fault)) {
	if n.min == nil && n.max == nil && n.exclMin == nil && n.exclMax == nil && n.multipleOf == nil {
		return
	}
	r := ratOf(v)
	if r == nil {
		return
	}
	if n.min != nil && r.Cmp(n.min.rat) < 0 {
		fail(fault{keyword: "minimum"})
	}
	if n.max != nil && r.Cmp(n.max.rat) > 0 {
		fail(fault{keyword: "maximum"})
	}
	if n.exclMin != nil && r.Cmp(n.exclMin.rat) <= 0 {
		fail(fault{keyword: "exclusiveMinimum"})
	}
	if n.exclMax != nil && r.Cmp(n.exclMax.rat) >= 0 {
		fail(fault{keyword: "exclusiveMaximum"})
	}
	if n.multipleOf != nil && !new(big.Rat).Quo(r, n.multipleOf.rat).IsInt() {
		fail(fault{keyword: "multipleOf"})
	}
}

func checkString(n *node, v string, fail func(fault)) {
	if n.minLength != nil || n.maxLength != nil {
		length := utf8.RuneCountInString(v)
		if n.minLength != nil && length < *n.minLength {
			fail(fault{keyword: "minLength"})
		}
		if n.maxLength != nil && length > *n.maxLength {
			fail(fault{keyword: "maxLength"})
		}
	}
	if n.pattern != nil && !n.pattern.re.MatchString(v) {
		fail(fault{keyword: "pattern"})
	}
}

func (w *walker) array(n *node, v []any, at *location, faults *[]fault, seen *record, fail func(fault)) bool {
	ok := true
	for i, item := range v {
		s := n.item(i)
		if s == nil {
			break
		}
		seen.item(i)
		if !w.check(s, item, at.index(i), faults, nil) {
			if ok = false; faults == nil {
				return false
			}
		}
	}
	if n.minItems != nil && len(v) < *n.minItems {
		fail(fault{keyword: "minItems"})
	}
	if n.maxItems != nil && len(v) > *n.maxItems {
		fail(fault{keyword: "maxItems"})
	}
	if n.unique && duplicate(v) {
		fail(fault{keyword: "uniqueItems"})
	}
	if n.contains != nil {
		w.containing(n, v, at, seen, fail)
	}
	return ok
}

func duplicate(v []any) bool {
	found := make(map[string]bool, len(v))
	for _, item := range v {
		key := identityOf(item)
		if found[key] {
			return true
		}
		found[key] = true
	}
	return false
}

func (w *walker) containing(n *node, v []any, at *location, seen *record, fail func(fault)) {
	count := 0
	for i, item := range v {
		if w.check(n.contains, item, at, nil, nil) {
			seen.item(i)
			count++
		}
	}
	least := 1
	if n.minContains != nil {
		least = *n.minContains
	}
	if count < least {
		fail(fault{keyword: "contains"})
	}
	if n.maxContains != nil && count > *n.maxContains {
		fail(fault{keyword: "maxContains"})
	}
}

func (w *walker) object(n *node, v map[string]any, at *location, faults *[]fault, seen *record, fail func(fault)) bool {
	ok := true
	for _, name := range n.required {
		if _, given := v[name]; !given {
			ok = false
			add(faults, fault{at: at.key(name), keyword: "required", node: n, absent: true, child: n.props[name]})
		}
	}
	for _, by := range sortedKeys(n.depRequired) {
		if _, given := v[by]; !given {
			continue
		}
		for _, name := range n.depRequired[by] {
			if _, given := v[name]; !given {
				ok = false
				add(faults, fault{at: at.key(name), keyword: "dependentRequired", node: n, absent: true, child: n.props[name],
					expected: " because " + jsontext.QuoteShort(by) + " is given"})
			}
		}
	}
	if n.minProps != nil && len(v) < *n.minProps {
		fail(fault{keyword: "minProperties"})
	}
	if n.maxProps != nil && len(v) > *n.maxProps {
		fail(fault{keyword: "maxProperties"})
	}
	if !ok && faults == nil {
		return false
	}
	if n.props == nil && n.patternProps == nil && n.additional == nil && n.propertyNames == nil {
		return ok
	}
	for _, name := range sortedKeys(v) {
		if !w.property(n, name, v, at, faults, seen) {
			if ok = false; faults == nil {
				return false
			}
		}
	}
	return ok
}

func (w *walker) property(
	n *node, name string, beside map[string]any, up *location, faults *[]fault, seen *record,
) bool {
	v := beside[name]
	at := up.key(name)
	ok, described := true, false
	if child, known := n.props[name]; known {
		described = true
		seen.prop(name)
		ok = w.check(child, v, at, faults, nil)
	}
	for _, pp := range n.patternProps {
		if pp.re.MatchString(name) {
			described = true
			seen.prop(name)
			ok = w.check(pp.node, v, at, faults, nil) && ok
		}
	}
	if n.additional != nil && !described {
		seen.prop(name)
		if a := n.additional.always; a != nil && !*a {
			ok = false
			add(faults, fault{at: at, keyword: "additionalProperties", node: n, v: v, known: n.propNames, beside: beside})
		} else {
			ok = w.check(n.additional, v, at, faults, nil) && ok
		}
	}
	if n.propertyNames != nil && !w.check(n.propertyNames, name, nil, nil, nil) {
		ok = false
		add(faults, fault{at: at, keyword: "propertyNames", node: n, v: name})
	}
	return ok
}

func (w *walker) logic(n *node, v any, at *location, faults *[]fault, seen *record, fail func(fault)) bool {
	ok := true
	both := func(s *node) {
		if s != nil && (ok || faults != nil) && !w.check(s, v, at, faults, seen) {
			ok = false
		}
	}
	for _, s := range n.allOf {
		both(s)
	}
	if n.anyOf != nil {
		ok = w.union(n, "anyOf", n.anyOf, v, at, faults, seen, fail) && ok
	}
	if n.oneOf != nil {
		ok = w.union(n, "oneOf", n.oneOf, v, at, faults, seen, fail) && ok
	}
	if n.not != nil && w.check(n.not, v, at, nil, nil) {
		fail(fault{keyword: "not"})
	}
	if n.ifs != nil {
		cond := seen
		if w.uneval {
			cond = newRecord()
		}
		if w.check(n.ifs, v, at, nil, cond) {
			if w.uneval {
				seen.add(cond)
			}
			both(n.then)
		} else {
			both(n.els)
		}
	}
	if m, isObject := v.(map[string]any); isObject {
		for _, by := range sortedKeys(n.depSchemas) {
			if _, given := m[by]; given {
				both(n.depSchemas[by])
			}
		}
	}
	return ok
}

// union checks anyOf and oneOf. When no branch accepts v, it adds the faults of the branch that was most likely meant,
// or one fault that names several, where they are equally likely.
func (w *walker) union(
	n *node, keyword string, branches []*node, v any, at *location, faults *[]fault, seen *record, fail func(fault),
) bool {
	valid := 0
	all := make([][]fault, len(branches))
	for i, b := range branches {
		var collect *[]fault
		if faults != nil {
			collect = &all[i]
		}
		var local *record
		if w.uneval {
			local = newRecord()
		}
		if !w.check(b, v, at, collect, local) {
			continue
		}
		valid++
		seen.add(local)
		if keyword == "anyOf" && !w.uneval {
			return true
		}
	}
	if valid == 1 || valid > 0 && keyword == "anyOf" {
		return true
	}
	if valid > 1 {
		fail(fault{keyword: keyword, expected: "a value that matches exactly one of the alternatives, this one matches " +
			strconv.Itoa(valid) + ": " + describeUnion(branches)})
		return false
	}
	if faults != nil {
		*faults = append(*faults, likeliestFaults(n, keyword, branches, v, at, all)...)
		if seen != nil {
			markAll(v, seen)
		}
	}
	return false
}

// likeliestFaults returns the faults to report when no branch of a union accepts v; all holds those of each branch.
func likeliestFaults(n *node, keyword string, branches []*node, v any, at *location, all [][]fault) []fault {
	type option struct {
		index, wrongKind, wrongTag, count int
	}
	var options []option
	choice := true // each branch only requires another type or value, so that the union works like an enum
	for i, faults := range all {
		o := option{index: i, count: len(faults)}
		for _, f := range faults {
			switch {
			case f.at == at && (f.keyword == "type" || f.keyword == "false"):
				o.wrongKind = 1
			case f.keyword == "const" || f.keyword == "enum":
				if f.at == at || f.at != nil && f.at.up == at {
					o.wrongTag = 1
				}
			}
		}
		if len(faults) != 1 || faults[0].at != at || !slices.Contains([]string{"type", "const", "enum"}, faults[0].keyword) {
			choice = false
		}
		options = append(options, o)
	}
	if choice {
		return []fault{mergeChoices(n, keyword, v, at, all)}
	}
	better := func(a, b option) int {
		if a.wrongKind != b.wrongKind {
			return a.wrongKind - b.wrongKind
		}
		if a.wrongTag != b.wrongTag {
			return a.wrongTag - b.wrongTag
		}
		return a.count - b.count
	}
	slices.SortStableFunc(options, better)
	if len(options) == 1 || better(options[0], options[1]) < 0 {
		return all[options[0].index]
	}
	// Each branch has a value for the same property, and the given one is not among them: list these values.
	if tag := commonTag(all, at, options[0].wrongKind == 0); tag != nil {
		return []fault{*tag}
	}
	var tied []*node
	for _, o := range options {
		if better(options[0], o) == 0 {
			tied = append(tied, branches[o.index])
		}
	}
	return []fault{{at: at, keyword: keyword, node: n, v: v, expected: describeUnion(tied), ambiguous: true}}
}

// mergeChoices makes one fault of those of branches that each require another type or value.
func mergeChoices(n *node, keyword string, v any, at *location, all [][]fault) fault {
	merged := fault{at: at, keyword: keyword, node: n, v: v}
	var wants []*node
	enums := true
	for _, faults := range all {
		f := faults[0]
		if f.node != nil {
			wants = append(wants, f.node)
		}
		choices := f.choices()
		merged.allowed = append(merged.allowed, choices...)
		enums = enums && choices != nil
	}
	if enums {
		merged.keyword = "enum"
		return merged
	}
	merged.keyword, merged.allowed, merged.ambiguous = "type", nil, true
	merged.expected = describeUnion(wants)
	return merged
}

// choices returns the values that the keyword of a fault allows, nil if it is neither enum nor const.
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

// commonTag returns a fault for the property that distinguishes the branches of a union: the one whose value every
// branch refuses by const or enum. It is nil without such a property.
func commonTag(all [][]fault, at *location, sameKind bool) *fault {
	if !sameKind {
		return nil
	}
	var tag *fault
	for _, faults := range all {
		i := slices.IndexFunc(faults, func(f fault) bool {
			return f.at != nil && f.at != at && f.at.up == at && (f.keyword == "const" || f.keyword == "enum") &&
				(tag == nil || f.at.token == tag.at.token)
		})
		if i < 0 {
			return nil
		}
		f := faults[i]
		if tag == nil {
			tag = &fault{at: f.at, keyword: "enum", v: f.v} // without a node: no single schema describes the choice
		}
		tag.allowed = append(tag.allowed, f.choices()...)
	}
	return tag
}

func (w *walker) unevaluated(n *node, v any, at *location, faults *[]fault, seen *record) bool {
	ok := true
	switch v := v.(type) {
	case map[string]any:
		if n.unevalProps == nil {
			return true
		}
		for _, name := range sortedKeys(v) {
			if seen.props[name] {
				continue
			}
			seen.prop(name)
			if a := n.unevalProps.always; a != nil && !*a {
				ok = false
				add(faults, fault{at: at.key(name), keyword: "unevaluatedProperties", node: n, v: v[name],
					known: knownNames(n), beside: v})
			} else if !w.check(n.unevalProps, v[name], at.key(name), faults, nil) {
				ok = false
			}
		}
	case []any:
		if n.unevalItems == nil {
			return true
		}
		for i, item := range v {
			if seen.items[i] {
				continue
			}
			seen.item(i)
			if !w.check(n.unevalItems, item, at.index(i), faults, nil) {
				ok = false
			}
		}
	}
	return ok
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

// budget bounds the cost of validating one value, in steps of 0.04 to 2 us. The slowest values found within it take 2
// s; an array of 4 MiB of three-digit numbers stays within it.
const budget = 1_500_000

// checkCost returns a *CostError where validating v would exceed the budget.
func checkCost(root *node, v any) error {
	m := meter{left: budget}
	if !m.visit(root, v, 0) {
		return &CostError{Budget: budget}
	}
	return nil
}

// A meter computes an upper bound of the walker's steps: it follows every branch of every union, whatever fails first.
type meter struct{ left int }

func (m *meter) visit(n *node, v any, depth int) bool {
	// The deeper the walk, the more a step costs: this bounds the goroutine's stack.
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
		if n.min != nil || n.max != nil || n.exclMin != nil || n.exclMax != nil || n.multipleOf != nil {
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

// matchCost assumes the worst pattern, which keeps most of its program busy at each byte.
func matchCost(p *pattern, s string) int { return 1 + len(s)*(1+p.size/4)/64 }
