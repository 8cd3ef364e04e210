package protocol

import (
	"encoding/json"
	"slices"
	"strings"
)

// Flow is what comes before a command: calls that it needs, and the sources of values that other calls return.
type Flow struct {
	Needs  []Call
	Values []Value
}

// Value is a parameter, or a property of one, whose value another call returns.
type Value struct {
	Pointer  string // JSON pointer into the parameters
	Required bool   // a call without it fails, unless one of Instead is given
	Instead  []string
	Source   string // a name for [Protocol.Sources]
}

// Source is a call that returns a value.
type Source struct {
	Call
	Result string // JSON pointer to the value in the result
	Before []Call
	Ends   string // when the value becomes stale; only the first source of a name has it
}

// Call is a call of a command, or of a verb of the plugin.
type Call struct {
	Tool   string
	Params json.RawMessage // an object, or nil for none
	Filter string          // jq expression that filters the result; "" for none
	Until  string          // the event that the call causes, which must arrive before the next call; "" for none
}

// ParseCalls reads calls in the form of the tables: "TOOL {PARAMS} -> EVENT; TOOL", or "-" for none.
func ParseCalls(text string) []Call {
	if text == "" || text == "-" {
		return nil
	}
	var calls []Call
	for _, one := range strings.Split(text, "; ") {
		head, until, _ := strings.Cut(one, " -> ")
		tool, params, _ := strings.Cut(head, " ")
		c := Call{Tool: tool, Until: until}
		if params != "" {
			c.Params = json.RawMessage(params)
		}
		calls = append(calls, c)
	}
	return calls
}

// Flow returns what an example needs before it, in addition to what its command needs.
func (e *Example) Flow() Flow {
	f := Flow{Needs: ParseCalls(e.Needs)}
	if e.From == "" || e.From == "-" {
		return f
	}
	for _, one := range strings.Split(e.From, "; ") {
		pointer, source, _ := strings.Cut(one, "=")
		f.Values = append(f.Values, Value{Pointer: pointer, Required: true, Source: source})
	}
	return f
}

// Flow returns what comes before a command, by its qualified name. It is empty for commands that the tables do not
// have.
func (p *Protocol) Flow(name string) Flow {
	r, ok := p.find(KindCommand, name)
	if !ok {
		return Flow{}
	}
	r.member()
	n := read(r, (*codec).before)
	return Flow{Needs: ParseCalls(n.Needs), Values: n.Values}
}

// Sources returns the calls that return the values of a name, the best first; nil if there is no such name.
func (p *Protocol) Sources(name string) []Source {
	r, ok := Embedded().find(kindSource, name)
	if !ok {
		return nil
	}
	r.str()
	rows := read(r, (*codec).sources)
	list := make([]Source, len(rows))
	for i, row := range rows {
		list[i] = Source{Call: Call{Tool: row.Tool, Filter: row.Filter}, Result: row.Result, Before: ParseCalls(row.Before),
			Ends: row.Ends}
		if row.Params != "-" {
			list[i].Params = json.RawMessage(row.Params)
		}
	}
	return list
}

// SourceRow is a row of the table of sources.
type SourceRow struct{ Tool, Result, Params, Before, Ends, Filter string }

// Values returns the parameters of a command whose values other calls return. from maps "Domain.command.parameter"
// and "Domain.Type.property" to the name of a source, "-" for none. isSource reports whether a source has the name of
// a type.
func (p *Protocol) Values(c *Command, from map[string]string, isSource func(name string) bool) []Value {
	v := valueFinder{p: p, from: from, isSource: isSource}
	nodes := c.source.Parameters
	implied := impliedParams(c.source.qualified, nodes)
	for i := range nodes {
		n := &nodes[i]
		at := Value{Pointer: "/" + n.Name, Required: !n.Optional || slices.Contains(implied, n.Name),
			Instead: alternatives(n, nodes)}
		v.walk(c.Name, c.source.domain, n.Name, n, at, nil)
	}
	return v.found
}

// alternatives returns the parameters that can be given instead of an optional one.
func alternatives(n *node, nodes []node) (names []string) {
	if !n.Optional {
		return nil
	}
	for _, group := range oneOf {
		if !slices.Contains(group, n.Name) {
			continue
		}
		names = append(names, presentOf(group, nodes, func(other node) bool { return other.Name != n.Name })...)
	}
	return names
}

// insteadOf returns the properties that can be given instead of n, if all of them are optional and n is the first.
// One of them is required.
func insteadOf(n *node, nodes []node) []string {
	names := alternatives(n, nodes)
	for _, group := range oneOf {
		for _, name := range group {
			if slices.Contains(names, name) && slices.Index(group, name) < slices.Index(group, n.Name) {
				return nil
			}
		}
	}
	for i := range nodes {
		if slices.Contains(names, nodes[i].Name) && !nodes[i].Optional {
			return nil
		}
	}
	return names
}

// oneOf are groups of optional parameters. Commands require one parameter of each group.
var oneOf = [][]string{
	{"nodeId", "backendNodeId", "objectId", "selector"},
	{"storageKey", "securityOrigin", "storageBucket"},
	{"objectId", "executionContextId", "uniqueContextId"},
	{"targetId", "sessionId"},
}

type valueFinder struct {
	p        *Protocol
	from     map[string]string
	isSource func(name string) bool
	found    []Value
}

// walk finds values in a node. at is the value for the node itself.
func (v *valueFinder) walk(owner, domain, name string, n *node, at Value, seen []string) {
	var known bool
	switch at.Source, known = v.from[owner+"."+name]; {
	case at.Source == "-":
	case known:
		v.found = append(v.found, at)
	case n.Ref != "":
		t, ok := v.p.typeRecord(qualify(domain, n.Ref))
		switch {
		case !ok || slices.Contains(seen, t.qualified):
		case v.isSource(t.qualified):
			at.Source = t.qualified
			v.found = append(v.found, at)
		default:
			v.properties(t.qualified, t.domain, &t.node, at, append(slices.Clone(seen), t.qualified))
		}
	case n.Items != nil:
		v.walk(owner, domain, name+"[]", n.Items, Value{Pointer: at.Pointer + "/0", Required: at.Required}, seen)
	default:
		v.properties(owner+"."+name, domain, n, at, seen)
	}
}

func (v *valueFinder) properties(owner, domain string, n *node, in Value, seen []string) {
	for i := range n.Properties {
		q := &n.Properties[i]
		at := Value{Pointer: in.Pointer + "/" + q.Name, Instead: insteadOf(q, n.Properties)}
		at.Required = in.Required && (!q.Optional || len(at.Instead) > 0)
		v.walk(owner, domain, q.Name, q, at, seen)
	}
	if n.Items != nil {
		v.walk(owner, domain, "[]", n.Items, Value{Pointer: in.Pointer + "/0", Required: in.Required}, seen)
	}
}
