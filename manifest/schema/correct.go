package schema

import (
	"cmp"
	"encoding/json"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/parley-tools/parley/internal/lists"
	"github.com/parley-tools/parley/manifest/jsontext"
)

// How a value was changed; see [Change].
const (
	Renamed   = "renamed"   // it got the name that the schema defines
	Moved     = "moved"     // it was moved to another object
	Unwrapped = "unwrapped" // it was taken out of an object or an array that does not belong there
	Parsed    = "parsed"    // it was JSON in a string
	Coerced   = "coerced"   // it got the type, or the spelling, that the schema requires
	Dropped   = "dropped"   // it was left out; the change has no To
	OnlyValue = "only"      // the schema allows no other value; the change has no From
)

// A Change says how a value of a [Correction] differs from the given one.
type Change struct {
	From string // JSON pointer into the given value
	To   string // JSON pointer into the correction
	How  string
}

// MarshalJSON encodes the pointers that apply: {"from":"/url","to":"/urls/0","how":"renamed"}.
func (c Change) MarshalJSON() ([]byte, error) {
	change := struct {
		From *string `json:"from,omitempty"`
		To   *string `json:"to,omitempty"`
		How  string  `json:"how"`
	}{&c.From, &c.To, c.How}
	switch c.How {
	case Dropped:
		change.To = nil
	case OnlyValue:
		change.From = nil
	}
	return json.Marshal(change)
}

// A Correction is the probable meaning of an invalid value.
type Correction struct {
	// Value holds only given values, and values that are the only ones that the schema allows. If Complete is false, it
	// may also have holes: the texts that a [Hole] returns.
	Value any
	// Complete says that Value is valid and has no holes, that it contains each given value, and that nothing in it is a
	// guess between several possibilities.
	Complete bool
	Changes  []Change
}

// A Hole returns the text to put in the place of a missing value. It gets the pointer and the name of the value, what
// the schema expects, and the schema's description as its author wrote it.
type Hole func(at, name, expected, about string) string

// MaxChanges limits the changes of a correction. A correction with more is abandoned, because it is unlikely to be
// what was meant. Its Changes are then longer than MaxChanges.
const MaxChanges = 100

// maxRounds bounds the rounds of a correction. Each round makes the changes that do not depend on each other.
const maxRounds = 16

// Correct looks for the meaning of an invalid value. It never makes up a value: a value that does not follow from the
// given ones becomes a hole. v itself does not change.
func (s *Schema) Correct(v any, hole Hole) Correction {
	p, err := jsontext.Normalize(v)
	if err != nil {
		return Correction{Value: v}
	}
	c := &corrector{s: s, hole: hole, draft: deepCopy(p), holes: map[string]bool{}}
	for range maxRounds {
		if !c.round() || c.full() {
			break
		}
	}
	c.complete = c.complete && !c.full() && !c.unsure && len(c.holes) == 0 && !c.loses(p)
	slices.SortStableFunc(c.changes, func(a, b Change) int { return comparePointers(a.From, b.From) })
	return Correction{c.draft, c.complete, c.changes}
}

// loses reports whether the draft lacks a given value. A null may be left out.
func (c *corrector) loses(given any) bool {
	return slices.ContainsFunc(c.changes, func(x Change) bool {
		tokens, _ := jsontext.SplitPointer(x.From)
		value, ok := jsontext.Lookup(given, tokens)
		return x.How == Dropped && (value != nil || !ok)
	})
}

// corrector is the state of one correction.
type corrector struct {
	s        *Schema
	hole     Hole
	draft    any
	changes  []Change
	holes    map[string]bool // by pointer
	unsure   bool            // a fault has several corrections, or none
	complete bool            // the last round found no fault
}

// round corrects the faults of the draft, and reports whether it changed anything.
func (c *corrector) round() bool {
	if c.s.untrusted && checkCost(c.s.root, c.draft) != nil {
		return false
	}
	c.coerce()
	faults := c.faults()
	if c.complete = len(faults) == 0; c.complete {
		return false
	}
	if c.root(faults) || c.unknown(faults) {
		return true
	}
	var touched []string
	for _, f := range faults {
		at := f.at.pointer()
		if c.full() || len(touched) > MaxChanges {
			break
		}
		if !overlapsAny(at, slices.Values(touched)) && c.value(f) {
			touched = append(touched, at)
		}
	}
	if len(touched) == 0 {
		c.unsure = true
	}
	return len(touched) > 0
}

// full reports whether there are too many changes.
func (c *corrector) full() bool { return len(c.changes) > MaxChanges }

// overlapsAny reports whether the value at a pointer is within the value at one of others, or contains it.
func overlapsAny(pointer string, others iter.Seq[string]) bool {
	for other := range others {
		if jsontext.IsWithin(pointer, other) || jsontext.IsWithin(other, pointer) {
			return true
		}
	}
	return false
}

// coerce makes the coercions that [Schema.Admit] makes, without defaults.
func (c *corrector) coerce() {
	m := c.s.coercer()
	out := m.coerce(c.s.root, c.draft, nil)
	slices.SortStableFunc(m.coercions, func(a, b Coercion) int { return comparePointers(a.Pointer, b.Pointer) })
	for _, k := range m.coercions {
		tokens, _ := jsontext.SplitPointer(k.Pointer)
		before, _ := jsontext.Lookup(c.draft, tokens)
		after, _ := jsontext.Lookup(out, tokens)
		list, isList := after.([]any)
		_, isObject := after.(map[string]any)
		switch {
		case isList && len(list) == 1 && equal(list[0], before):
			c.relocate(k.Pointer, k.Pointer+"/0")
			isKnown := func(x Change) bool { return x.To == k.Pointer+"/0" && x.From != x.To }
			if !slices.ContainsFunc(c.changes, isKnown) {
				c.note(k.Pointer, k.Pointer+"/0", Coerced)
			}
		case isList || isObject:
			c.note(k.Pointer, k.Pointer, Parsed)
		default:
			c.note(k.Pointer, k.Pointer, Coerced)
		}
	}
	for _, pointer := range m.absent {
		c.drop(pointer)
	}
	c.draft = out
}

// faults returns the faults of the draft, without those of its holes and of the values that contain holes.
func (c *corrector) faults() []fault {
	filled, _ := c.s.coerce(c.draft)
	var all []fault
	c.s.boundedWalker().check(c.s.root, filled, nil, &all, nil)
	return slices.DeleteFunc(all, func(f fault) bool { return overlapsAny(f.at.pointer(), maps.Keys(c.holes)) })
}

// origin returns the pointer at which a value of the draft was given.
func (c *corrector) origin(pointer string) string {
	from, longest := pointer, -1
	for _, change := range c.changes {
		isOf := change.How != Dropped && change.How != OnlyValue && jsontext.IsWithin(pointer, change.To)
		if isOf && len(change.To) >= longest {
			from, longest = change.From+pointer[len(change.To):], len(change.To)
		}
	}
	return from
}

// note records that the value of the draft at from is now at to.
func (c *corrector) note(from, to, how string) {
	if c.full() || c.holes[from] || c.holes[to] {
		return
	}
	c.changes = append(c.changes, Change{c.origin(from), to, how})
}

// move records the move of a value, and of all changes within it.
func (c *corrector) move(from, to, how string) {
	if c.full() {
		return
	}
	given := c.origin(from)
	c.changes = slices.DeleteFunc(c.changes, func(x Change) bool {
		return x.To == from && x.How != Dropped && x.How != Coerced && x.How != Parsed
	})
	c.relocate(from, to)
	c.changes = append(c.changes, Change{given, to, how})
}

// relocate replaces the pointer from by to, in all changes and holes at from or within it.
func (c *corrector) relocate(from, to string) {
	for i, x := range c.changes {
		if x.How != Dropped && jsontext.IsWithin(x.To, from) {
			c.changes[i].To = to + x.To[len(from):]
		}
	}
	for _, hole := range slices.Collect(maps.Keys(c.holes)) {
		if jsontext.IsWithin(hole, from) {
			delete(c.holes, hole)
			c.holes[to+hole[len(from):]] = true
		}
	}
}

// drop records that the value of the draft at a pointer is left out.
func (c *corrector) drop(pointer string) {
	if c.full() {
		return
	}
	given := c.origin(pointer)
	c.changes = slices.DeleteFunc(c.changes, func(x Change) bool {
		return x.How != Dropped && jsontext.IsWithin(x.To, pointer) && pointer != ""
	})
	c.changes = append(c.changes, Change{From: given, How: Dropped})
}

// set puts a value into the draft. It returns false if the location does not exist.
func (c *corrector) set(at *location, v any) bool {
	if at == nil {
		c.draft = v
		return true
	}
	parent, _ := c.given(at.up)
	switch p := parent.(type) {
	case map[string]any:
		p[at.token] = v
		return true
	case []any:
		if i, err := strconv.Atoi(at.token); err == nil && i < len(p) {
			p[i] = v
			return true
		}
	}
	return false
}

// given returns the value of the draft at a location.
func (c *corrector) given(at *location) (any, bool) {
	return jsontext.Lookup(c.draft, at.tokens())
}

// objectAt returns the object of the draft at a location, nil if there is none.
func (c *corrector) objectAt(at *location) map[string]any {
	v, _ := c.given(at)
	object, _ := v.(map[string]any)
	return object
}

// fits reports whether a value is valid by a schema, after coercion.
func (c *corrector) fits(n *node, v any) bool {
	m := c.s.coercer()
	_, isOffered := c.s.offered(n, v)
	return isOffered || m.valid(n, m.coerce(n, v, nil))
}

// root corrects a draft that must be an object and is not.
func (c *corrector) root(faults []fault) bool {
	i := slices.IndexFunc(faults, func(f fault) bool { return f.at == nil && f.keyword == "type" })
	if i < 0 || faults[i].node == nil || faults[i].node.types != kindObject {
		return false
	}
	if list, ok := c.draft.([]any); ok && len(list) == 1 {
		if object, ok := list[0].(map[string]any); ok {
			c.unwrapMembers("/0", "", object, Unwrapped)
			c.draft = object
			return true
		}
	}
	text, _ := c.draft.(string)
	if object, ok := repaired(text, '{'); ok {
		c.changes = append(c.changes, Change{"", "", Parsed})
		c.draft = object
		return true
	}
	all := c.s.root.conjuncts()
	names := required(all)
	if len(names) == 0 { // a tool with one parameter
		names = slices.Collect(maps.Keys(c.s.root.props))
	}
	if len(names) == 1 && c.draft != nil && !jsontext.LooksLikeJSON(text) && !namesAny(text, all) {
		if n := propSchema(all, names[0]); n != nil && c.fits(n, c.draft) {
			c.draft = map[string]any{names[0]: c.draft}
			c.changes = append(c.changes, Change{"", jsontext.Pointer(names), Moved})
			return true
		}
	}
	if c.draft != nil {
		c.drop("")
		c.unsure = true // the value may have contained more
	}
	c.draft = map[string]any{}
	return true
}

// namesAny reports whether a text has a property's name followed by a sign such as "=". Such a text is more than one
// value.
func namesAny(text string, all []*node) bool {
	for _, n := range all {
		for name := range n.props {
			for rest, found := text, true; found; {
				_, rest, found = strings.Cut(rest, name)
				if after := strings.TrimLeft(rest, " \"'"); found && after != "" && strings.ContainsAny(after[:1], "=:>") {
					return true
				}
			}
		}
	}
	return false
}

// unwrapMembers records that the members of the object at from are now members of the object at to.
func (c *corrector) unwrapMembers(from, to string, object map[string]any, how string) {
	for _, name := range sortedKeys(object) {
		token := "/" + jsontext.EscapeToken(name)
		c.move(from+token, to+token, how)
	}
	if len(object) == 0 {
		c.changes = append(c.changes, Change{c.origin(from), to, how})
	}
}

// value corrects a fault of one value, or puts a hole in its place. It returns false if it cannot do either.
func (c *corrector) value(f fault) bool {
	at := f.at.pointer()
	v, given := c.given(f.at)
	switch f.keyword {
	case "required", "dependentRequired":
		child := cmp.Or(f.child, c.s.schemaAt(f.at), &node{})
		if only, ok := onlyValue(child); ok && !f.ambiguous {
			c.changes = append(c.changes, Change{To: at, How: OnlyValue})
			return c.set(f.at, only)
		}
		return c.dig(f.at, child, 3)
	case "enum", "const":
		if !given || f.ambiguous {
			break
		}
		allowed := f.choices()
		if meant, ok := respelled(v, allowed); ok && c.accepts(f.node, meant) {
			c.note(at, at, Coerced)
			return c.set(f.at, meant)
		}
		if len(allowed) == 1 && f.at != nil && c.accepts(f.node, allowed[0]) {
			c.drop(at)
			c.changes = append(c.changes, Change{To: at, How: OnlyValue})
			return c.set(f.at, deepCopy(allowed[0]))
		}
		text, _ := v.(string)
		if object, ok := repaired(text, '{'); ok {
			v = object
		}
		if f.at != nil && (c.unwrap(f, v) || c.displace(f.at, v)) {
			return true
		}
	case "type":
		if !given || f.node == nil || f.ambiguous {
			break
		}
		if meant, ok := c.s.offered(f.node, v); ok {
			c.note(at, at, Coerced)
			return c.set(f.at, meant)
		}
		if c.unwrap(f, v) {
			return true
		}
		if list, ok := listOf(c, f, v); ok {
			c.note(at, at, Coerced)
			return c.set(f.at, list)
		}
		if _, isObject := v.(map[string]any); isObject && slices.ContainsFunc(aboutWords(f.node), holdsJSON) {
			if text := string(jsontext.Marshal(v)); c.accepts(f.node, text) {
				c.note(at, at, Coerced)
				return c.set(f.at, text)
			}
		}
	case "propertyNames", "false":
		return f.at != nil && given && c.remove(f)
	}
	if f.at == nil || !given {
		return false
	}
	if n := c.s.schemaAt(f.at); n != nil && (f.ambiguous || f.keyword == "type") { // several types or alternatives
		if list, isList := v.([]any); isList && c.unwrap(fault{at: f.at, node: n}, list) {
			return true
		}
		text, _ := v.(string)
		parsed, err := jsontext.Decode([]byte(text), jsontext.Limits{})
		if err == nil && parsed != nil && c.accepts(n, parsed) {
			c.note(at, at, Parsed)
			return c.set(f.at, parsed)
		}
	}
	c.drop(at)
	return c.dig(f.at, cmp.Or(c.s.schemaAt(f.at), f.node, &node{enum: f.allowed}), 3)
}

// accepts reports whether a value is valid by the schema of a fault, which may be nil.
func (c *corrector) accepts(n *node, v any) bool {
	return n == nil || c.s.boundedWalker().check(n, v, nil, nil, nil)
}

// remove drops a property, or renames it if it can only have meant one name.
func (c *corrector) remove(f fault) bool {
	object := c.objectAt(f.at.up)
	if object == nil {
		return false
	}
	at, value := f.at.pointer(), object[f.at.token]
	if f.keyword == "propertyNames" {
		names := nearestNames(f.at.token, jsontext.Texts(valuesOf(f.node.propertyNames)))
		if len(names) == 1 {
			if _, taken := object[names[0]]; !taken {
				delete(object, f.at.token)
				object[names[0]] = value
				c.move(at, f.at.up.key(names[0]).pointer(), Renamed)
				return true
			}
		}
		c.unsure = c.unsure || len(names) > 1
	}
	delete(object, f.at.token)
	c.drop(at)
	return true
}

// unwrap replaces an array or an object by a value inside it: its only element, or else, as hoist does, its members,
// if these are properties of the object around it. An object that may be an item of the list that is due stays whole.
func (c *corrector) unwrap(f fault, v any) bool {
	at := f.at.pointer()
	switch v := v.(type) {
	case []any:
		if len(v) == 1 && c.accepts(f.node, v[0]) {
			c.move(at+"/0", at, Unwrapped)
			return c.set(f.at, v[0])
		}
	case map[string]any:
		if f.at == nil {
			return false
		}
		if len(v) == 1 {
			for name, inner := range v {
				_, isItem := listOf(c, f, v)
				if c.accepts(f.node, inner) && (!isItem || name == f.at.token) {
					c.move(at+"/"+jsontext.EscapeToken(name), at, Unwrapped)
					return c.set(f.at, inner)
				}
			}
		}
		return c.hoist(f.at, v)
	}
	return false
}

// listOf returns a list of one value, or of the object in a JSON text, if the schema of a fault takes such lists.
func listOf(c *corrector, f fault, v any) (list []any, ok bool) {
	text, _ := v.(string)
	if object, isJSON := repaired(text, '{'); isJSON {
		v = object
	}
	if f.node == nil || v == nil {
		return nil, false
	}
	want, _ := wanted(f.node.conjuncts())
	return []any{v}, want == kindArray && c.accepts(f.node, []any{v})
}

// hoist moves the members of an object into the object around it. All of them must be unused properties there, and
// their values must fit.
func (c *corrector) hoist(at *location, v map[string]any) bool {
	object, n := c.objectAt(at.up), c.s.schemaAt(at.up)
	if object == nil || n == nil || len(v) == 0 {
		return false
	}
	for name := range v {
		_, taken := object[name]
		taken = taken && !c.holes[at.up.key(name).pointer()]
		child := propSchema(n.conjuncts(), name)
		if child == nil || child.always != nil || taken && name != at.token || !c.fits(child, v[name]) {
			return false
		}
	}
	for name := range v {
		delete(c.holes, at.up.key(name).pointer())
	}
	c.unwrapMembers(at.pointer(), at.up.pointer(), v, Unwrapped)
	delete(object, at.token)
	maps.Copy(object, v)
	return true
}

// displace moves a text that a property does not allow to the only missing property, if it fits there.
func (c *corrector) displace(at *location, v any) bool {
	text, isText := v.(string)
	n := c.s.schemaAt(at.up)
	if !isText || n == nil {
		return false
	}
	object, all := c.objectAt(at.up), n.conjuncts()
	missing := lists.Filter(required(all), func(name string) bool {
		return object[name] == nil || c.holes[at.up.key(name).pointer()]
	})
	if len(missing) != 1 || !c.accepts(propSchema(all, missing[0]), v) {
		return false
	}
	to := at.up.key(missing[0]).pointer()
	delete(c.holes, to)
	delete(object, at.token)
	object[missing[0]] = text
	c.move(at.pointer(), to, Moved)
	return true
}

// dig puts a hole for a value of a schema into the draft: a text, or an array or object with holes if their form is
// clear.
func (c *corrector) dig(at *location, n *node, depth int) bool {
	all := n.conjuncts()
	kind, single := wanted(all)
	switch {
	case depth > 0 && single && kind == kindArray:
		if item := itemSchema(all, 0); item != nil && item.always == nil && c.set(at, []any{nil}) {
			return c.dig(at.index(0), item, depth-1)
		}
	case depth > 0 && single && kind == kindObject:
		names := required(all)
		if len(names) == 0 || !c.set(at, map[string]any{}) {
			break
		}
		for _, name := range names {
			child := cmp.Or(propSchema(all, name), &node{})
			if only, ok := onlyValue(child); ok {
				c.changes = append(c.changes, Change{To: at.key(name).pointer(), How: OnlyValue})
				c.set(at.key(name), only)
			} else {
				c.dig(at.key(name), child, depth-1)
			}
		}
		return true
	}
	about := ""
	for _, x := range all {
		about = cmp.Or(about, x.about)
	}
	name := at.token
	if _, err := strconv.Atoi(name); err == nil && at.up != nil { // an index: the name has several values
		name = at.up.token
		if strings.HasSuffix(name, "s") && !strings.HasSuffix(name, "ss") {
			name = strings.TrimSuffix(name, "s")
		}
		if up := c.s.schemaAt(at.up); up != nil && about == "" {
			about = up.about
		}
	}
	if !c.set(at, c.hole(at.pointer(), name, describe(n), about)) {
		return false
	}
	c.holes[at.pointer()] = true
	return true
}

// onlyValue returns the only value that n allows.
func onlyValue(n *node) (any, bool) {
	if values := valuesOf(n); len(values) == 1 {
		return deepCopy(values[0]), true
	}
	return nil, false
}

// repaired is [embedded] for a text that is almost JSON.
func repaired(text string, open byte) (any, bool) {
	if raw, ok := jsontext.Repair(text); ok && raw[0] == open {
		return embedded(string(raw), open)
	}
	return nil, false
}
