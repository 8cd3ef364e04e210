package main

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/parley-tools/parley/cdp/internal/protocol"
)

// The tables about calls that come before a command.
const (
	sourcesTable = "sources.tsv" // name, tool, result, params, before, ends, filter, as explained in the file
	fromTable    = "from.tsv"    // parameter, source
	needsTable   = "needs.tsv"   // command, calls
	ranTable     = "ran.tsv"     // command, title, outcome, before, params, text; written by ../trial
)

// verbs are the tools of the plugin that are not commands, with the fields of their results that sources name.
var verbs = map[string][]string{"events": {"events"}, "targets": {"targets"}}

func (t *tables) sources() {
	t.rows(sourcesTable, 6, false, func(row []string) {
		name, s := row[0], protocol.SourceRow{Tool: row[1], Result: row[2], Params: row[3], Before: row[4], Ends: row[5]}
		if len(row) > 6 {
			s.Filter = row[6]
		}
		_, isType := t.p.Type(name)
		isKind := strings.Contains(name, " ") || !strings.Contains(name, ".") // the kind of a value
		t.check(isType || isKind, "there is no type %s", name)
		t.check(len(t.notes.Sources[name]) > 0 || s.Ends != "-",
			"the first source of %s does not say when its values end", name)
		for _, c := range append(protocol.ParseCalls(s.Before), protocol.Call{Tool: s.Tool, Params: paramsOf(s.Params)}) {
			t.checkCall(name, c)
		}
		t.check(s.Filter != "" || t.hasResult(s), "the result of %s has no %s", s.Tool, s.Result)
		t.notes.Sources[name] = append(t.notes.Sources[name], s)
	})
}

func paramsOf(column string) json.RawMessage {
	if column == "-" {
		return nil
	}
	return json.RawMessage(column)
}

// checkCall checks that a call of a table can be made: its command, the names of its parameters and its event exist.
func (t *tables) checkCall(of string, call protocol.Call) {
	var given map[string]json.RawMessage
	t.check(call.Params == nil || json.Unmarshal(call.Params, &given) == nil,
		"%s: the parameters of %s are not a JSON object: %s", of, call.Tool, call.Params)
	if call.Until != "" {
		e, ok := t.p.Event(call.Until)
		t.check(ok && e.Name == call.Until, "%s waits for %s, which is not an event", of, call.Until)
	}
	if verbs[call.Tool] != nil {
		return
	}
	c, ok := t.p.Command(call.Tool)
	if t.check(ok && c.Name == call.Tool, "%s calls %s, which does not exist", of, call.Tool) {
		for name := range given {
			t.check(hasParam(c.Params, name), "%s calls %s with %s, which is not a parameter", of, call.Tool, name)
		}
	}
}

// hasResult reports whether the result of a source has the field that its pointer names.
func (t *tables) hasResult(s protocol.SourceRow) bool {
	steps := strings.Split(strings.TrimPrefix(s.Result, "/"), "/")
	own, isVerb := verbs[s.Tool]
	var q struct{ Match []string }
	switch {
	case !isVerb:
		c, ok := t.p.Command(s.Tool)
		return ok && t.hasField(c.Returns, steps)
	case !slices.Contains(own, steps[0]) || s.Tool != "events":
		return slices.Contains(own, steps[0])
	case len(steps) < 4 || steps[2] != "params" || json.Unmarshal([]byte(s.Params), &q) != nil || len(q.Match) != 1:
		return false
	}
	e, ok := t.p.Event(q.Match[0])
	return ok && t.hasField(e.Fields, steps[3:])
}

func (t *tables) hasField(fields []protocol.Param, steps []string) bool {
	at := slices.IndexFunc(fields, func(q protocol.Param) bool { return q.Name == steps[0] })
	if at < 0 {
		return false
	}
	field, steps := fields[at], steps[1:]
	for len(steps) > 0 {
		if _, err := strconv.Atoi(steps[0]); err != nil {
			break
		}
		steps = steps[1:]
	}
	if len(steps) == 0 {
		return true
	}
	if y, ok := t.p.Type(field.Ref); ok {
		return t.hasField(y.Fields, steps)
	}
	return t.hasField(field.Properties, steps)
}

// from reads which sources the values of parameters come from, and adds the sources that follow from the types.
func (t *tables) from() {
	from := map[string]string{}
	t.rows(fromTable, 2, true, func(row []string) {
		t.check(row[1] == "-" || t.notes.Sources[row[1]] != nil, "%s comes from %q, which %s does not have", row[0], row[1],
			sourcesTable)
		from[row[0]] = row[1]
	})
	used, unknown := map[string]bool{}, maps.Clone(from)
	for _, name := range t.p.Names() {
		c, _ := t.p.Command(name)
		n := t.notes.Commands[name]
		n.Values = t.p.Values(c, from, func(name string) bool { return t.notes.Sources[name] != nil })
		t.notes.Commands[name] = n
		for _, v := range n.Values {
			used[v.Source] = true
		}
		t.exampleValues(name, &n, used)
		for _, p := range c.Params {
			delete(unknown, name+"."+p.Name)
			delete(unknown, name+"."+p.Name+"[]")
			t.dropNested(unknown, name+"."+p.Name, p)
		}
	}
	for key := range unknown {
		t.check(false, "there is no parameter %s", key)
	}
	t.at = sourcesTable
	for _, rows := range t.notes.Sources {
		for _, s := range rows {
			for _, text := range append(strings.Split(s.Params, `"${`)[1:], strings.Split(s.Before, `"${`)[1:]...) {
				name, _, _ := strings.Cut(text, "}")
				used[name] = true
				t.check(t.notes.Sources[name] != nil, "%s takes %q, which is not in the table", s.Tool, name)
			}
		}
	}
	for name := range t.notes.Sources {
		t.check(used[name], "no parameter takes %s", name)
	}
}

// exampleValues checks the values that examples of a command take from sources of their own, not the command's.
func (t *tables) exampleValues(command string, n *protocol.Note, used map[string]bool) {
	for _, e := range n.Examples {
		for _, own := range e.Flow().Values {
			used[own.Source] = true
			t.check(t.notes.Sources[own.Source] != nil, "an example of %s takes %q, which is not in %s", command, own.Source,
				sourcesTable)
			t.check(slices.ContainsFunc(n.Values, func(v protocol.Value) bool { return v.Pointer == own.Pointer }),
				"an example of %s takes no value at %s", command, own.Pointer)
		}
	}
}

// dropNested drops the rows of the properties of a parameter.
func (t *tables) dropNested(from map[string]string, path string, p protocol.Param) {
	properties := p.Properties
	if y, ok := t.p.Type(p.Ref); ok && len(properties) == 0 {
		for _, q := range y.Fields {
			delete(from, p.Ref+"."+q.Name)
			delete(from, path+"."+q.Name)
		}
	}
	for _, q := range properties {
		delete(from, path+"."+q.Name)
	}
}

func (t *tables) needs() {
	t.commands(needsTable, 2, true, func(row []string, c *protocol.Command, n *protocol.Note) {
		for _, call := range protocol.ParseCalls(row[1]) {
			t.checkCall(c.Name, call)
		}
		n.Needs = row[1]
	})
}

// ranColumns names the browser and the page in the first line of ranTable.
const ranColumns = "# Ran on: "

// ran reads what happened when the examples were run.
func (t *tables) ran() {
	first := t.commands(ranTable, 6, false, func(row []string, _ *protocol.Command, n *protocol.Note) {
		if n.Runs == nil {
			n.Runs = map[string]protocol.Run{}
		}
		_, twice := n.Runs[row[1]]
		t.check(!twice, "%s occurs twice with the title %s", row[0], row[1])
		run := protocol.Run{Outcome: row[2], Before: paramsOf(row[3]), Params: json.RawMessage(row[4]), Text: row[5]}
		isValid := json.Valid(run.Params) && (run.Before == nil || json.Valid(run.Before))
		t.check(isValid, "the calls of %s are not JSON", row[0])
		n.Runs[row[1]] = run
	})
	on, ok := strings.CutPrefix(first, ranColumns)
	t.check(ok, "the first line does not begin with %q", ranColumns)
	t.notes.Values["ran on"] = on
}
