package main

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/call"
	"github.com/parley-tools/parley/host/caller"
	"github.com/parley-tools/parley/host/job"
	"github.com/parley-tools/parley/host/search"
	"github.com/parley-tools/parley/manifest"
)

// Rates of behavior, for each occasion. None depends on whether a tool is damaged, or how.
const (
	hastyRate    = 0.1  // calls from the line of a search result, without reading the description
	misreadRate  = 0.03 // overlooks a fact that the documentation states
	omitRate     = 0.6  // leaves out a parameter that it does not know to be required
	enumLuck     = 1.0 / 3
	formLuck     = 0.5 // the everyday value is right, of a choice and of a form that it does not know
	habitRate    = 0.4 // writes the everyday name of a parameter where the documentation has another one
	siblingRate  = 1.0 / 3
	missRate     = 0.6 // the wrong one of two similar tools fails; otherwise it returns something of no use
	againRate    = 0.5 // searches again in other words after a miss; otherwise it lists the plugin
	shortenRate  = 1.0 / 3
	commonRate   = 2.0 / 3
	optionalRate = 0.5 // a task that is not the usual one sets an optional parameter
	repairRate   = 0.9 // does what an error says; otherwise it repeats the call
)

const (
	patience    = 10 * time.Second // for an answer, unless the documentation says how long a call takes
	maxAttempts = 4
)

// openings are how people begin a query.
var openings = []string{"", "how do I ", "I want to ", "please "}

// agent is an agent without a model. It has a task: a tool that it recognizes when it sees its line, and the values for
// its parameters under their everyday names. It searches, reads what describe delivers, fills in the parameters from
// that alone, guesses what is not stated, and does what errors say. It takes over a corrected call unless that lacks a
// value that it wants. Of a tool that it called before another one it takes over the id in the result.
type agent struct {
	host    *call.Host
	state   *state
	random  *rand.Rand
	misread float64
	odd     map[string]string // everyday name -> name in the documentation, by tool and parameter
	wrong   map[*tool]*misstatement

	session caller.Session
	read    map[*tool]*manifest.ToolDocs // what it has read in this session
	learned map[string]bool              // facts that errors have told it
	ids     map[*tool]json.RawMessage    // the id in the result of a tool
}

func (a *agent) chance(p float64) bool { return a.random.Float64() < p }

// begin begins a session.
func (a *agent) begin(name string) {
	a.session = caller.Session{Name: name}
	a.read, a.learned, a.ids = map[*tool]*manifest.ToolDocs{}, map[string]bool{}, map[*tool]json.RawMessage{}
}

// task is what an agent has to do.
type task struct {
	tool   *tool
	phrase string
	values map[string]json.RawMessage
}

// newTask returns a task for a tool: with the parameters of most calls, or with others.
func newTask(t *tool, r *rand.Rand) *task {
	k := &task{tool: t, phrase: t.tasks[r.IntN(len(t.tasks))], values: map[string]json.RawMessage{}}
	usual := r.Float64() < commonRate
	for i := range t.params {
		p := &t.params[i]
		chosen, value := r.Float64() < optionalRate, p.good[r.IntN(len(p.good))]
		if p.Required || usual && slices.Contains(t.usual, p.Name) || !usual && chosen {
			k.values[p.Name] = value
		}
	}
	return k
}

// do carries out a task, and reports whether it went right at the first try: the first search had the tool among its
// first five results, and the first call that was not a preparation was one of the right tool and succeeded.
func (a *agent) do(ctx context.Context, k *task) (first bool) {
	a.state.wanted, a.state.misses = k.tool, a.chance(missRate)
	hits, first := a.find(ctx, k)
	t := k.tool
	if s := t.sibling; s != nil && slices.Contains(hits, s.name()) && a.chance(siblingRate) && !a.sees(ctx, s, t) {
		a.call(ctx, s, a.fill(t, k), 0)
		first = false
	}
	a.sees(ctx, t, t.sibling)
	timeout := patience
	if d := a.read[t]; d != nil && t.isSlow() && a.knows(t, fact{class: classSlow}) {
		if seconds, ok := secondsIn(d.Description); ok {
			timeout = time.Duration(3*seconds) * time.Second
		}
	}
	a.prepare(ctx, t)
	believed := a.believed(t, hits)
	if believed.leadsAway() {
		a.follow(ctx, k, believed)
		a.learned["wrong "+t.name()] = true
		first, believed = false, nil
	}
	var again json.RawMessage
	for n := range maxAttempts {
		if again == nil {
			again = a.fill(t, k)
		}
		useless := false
		if believed != nil {
			again, useless = believed.misled(again)
		}
		err := a.call(ctx, t, again, timeout)
		if err == nil && useless { // it looks at the schema, and calls again
			again, first, believed = nil, false, nil
			a.learned["wrong "+t.name()] = true
			continue
		}
		if err == nil {
			return first && n == 0
		}
		if !a.chance(repairRate) {
			continue
		}
		again, believed = nil, nil
		a.learned["wrong "+t.name()] = true
		if len(membersOf(err.Corrected)) >= len(k.values) {
			again = err.Corrected
		}
		if err.Code == host.Timeout {
			timeout *= 4
		}
		a.learn(ctx, t, err)
	}
	return false
}

// find searches until the tool is among the first five results, twice at most, and returns the names of the results. An
// agent that does not find it lists the plugin, which leaves no record. first reports whether one search sufficed.
func (a *agent) find(ctx context.Context, k *task) (hits []string, first bool) {
	for n := range 2 {
		data, _, err := a.host.Search(ctx, caller.Principal{Name: "agent", Session: a.session},
			search.Query{Text: a.query(k)})
		if err != nil {
			return nil, false
		}
		hits = nil
		for _, r := range data.Results[:min(5, len(data.Results))] {
			hits = append(hits, r.Name)
		}
		if slices.Contains(hits, k.tool.name()) {
			return hits, n == 0
		}
		if !a.chance(againRate) {
			break
		}
	}
	return hits, false
}

// query puts a task in words, sometimes with one word less.
func (a *agent) query(k *task) string {
	list := strings.Fields(k.phrase)
	if i := a.random.IntN(len(list)); a.chance(shortenRate) && len(list) > 2 {
		list = slices.Delete(list, i, i+1)
	}
	return openings[a.random.IntN(len(openings))] + strings.Join(list, " ")
}

// sees reads the description of a tool, unless it is hasty or has read it, and reports whether that sends it to another
// tool.
func (a *agent) sees(ctx context.Context, t, other *tool) bool {
	if a.read[t] == nil && !a.chance(hastyRate) {
		if d, err := a.host.Describe(ctx, caller.Principal{Name: "agent", Session: a.session}, t.name(),
			manifest.Tier2); err == nil {
			a.read[t] = d.ToolDocs
		}
	}
	return other != nil && a.knows(t, fact{class: classConfusion})
}

// knows reports whether an agent knows a fact: from an error in this session, or from what it has read.
func (a *agent) knows(t *tool, f fact) bool {
	if a.learned[t.name()+f.class+f.name] {
		return true
	}
	d := a.read[t]
	if d == nil && f.class == classRequired {
		d = a.line(t)
	}
	misread := a.chance(a.misread)
	return d != nil && !misread && states(d, t, f)
}

// line returns what the line of a search result says of a tool: the names of its parameters, and which are required.
func (a *agent) line(t *tool) *manifest.ToolDocs {
	at, err := a.host.Catalog().Find(t.name())
	if err != nil || at.Tool == nil {
		return nil
	}
	d := &manifest.ToolDocs{Brief: manifest.CleanLine(at.Tool.Docs.Brief)}
	for _, p := range manifest.Params(at.Tool.Params) {
		d.Parameters = append(d.Parameters, manifest.Param{Name: p.Name, Type: p.Type, Required: p.Required})
	}
	return d
}

// prepare makes the calls that have to come before, if the agent knows of them.
func (a *agent) prepare(ctx context.Context, t *tool) {
	if t.needs != nil && a.knows(t, fact{class: classNeeds}) {
		a.callRight(ctx, t.needs)
	}
	if t.from != nil {
		p := &t.params[0]
		named := t.needs == nil && a.read[t] != nil && slices.Contains(a.read[t].Needs, t.from.name())
		if a.knows(t, fact{classFrom, p, p.Name}) || named {
			a.callRight(ctx, t.from)
		}
	}
}

// callRight makes a preparing call, of which the agent knows the parameters, once in a session.
func (a *agent) callRight(ctx context.Context, t *tool) {
	if a.state.done[a.session.Name+" "+t.name()] {
		return
	}
	if t.needs != nil {
		a.callRight(ctx, t.needs)
	}
	params := map[string]json.RawMessage{}
	for i := range t.params {
		if p := &t.params[i]; p.Required || slices.Contains(t.usual, p.Name) {
			params[a.nameOf(t, p)] = p.good[0]
		}
	}
	a.call(ctx, t, mustMarshal(params), 0)
}

func (a *agent) nameOf(t *tool, p *param) string {
	if odd := a.odd[t.name()+" "+p.Name]; odd != "" {
		return odd
	}
	return p.Name
}

// fill writes the parameters of a call from what the agent knows.
func (a *agent) fill(t *tool, k *task) json.RawMessage {
	params := map[string]json.RawMessage{}
	for i := range t.params {
		p := &t.params[i]
		value, wanted := k.values[p.Name]
		if !wanted {
			continue
		}
		if id := a.ids[t.from]; i == 0 && id != nil {
			value = id
		}
		name := a.nameOf(t, p)
		if name != p.Name && a.chance(habitRate) && !a.learned[t.name()+classAlias+p.Name] {
			name = p.Name
		}
		documented := a.nameOf(t, p)
		class, luck := classEnum, enumLuck
		if p.hasForm() {
			class, luck = classForm, formLuck
		}
		if len(p.bad) > 0 && !a.knows(t, fact{class, p, documented}) && !a.chance(luck) {
			value = p.bad[a.random.IntN(len(p.bad))]
		}
		if p.Required && !a.knows(t, fact{classRequired, p, documented}) && a.chance(omitRate) {
			continue
		}
		params[name] = value
	}
	return mustMarshal(params)
}

// call calls a tool.
func (a *agent) call(ctx context.Context, t *tool, params json.RawMessage, timeout time.Duration) *host.Error {
	answer, _ := a.host.Call(ctx, host.Call{Name: t.name(), Params: params, Principal: caller.Principal{Name: "agent",
		Session: a.session},
		Options: job.Options{Timeout: timeout}})
	var result struct{ ID json.RawMessage }
	if answer.Err == nil && json.Unmarshal(answer.Data, &result) == nil {
		a.ids[t] = result.ID
	}
	return answer.Err
}

// learn does what an error says: it reads the documentation in it, remembers what was wrong with which parameter, and
// makes the call that has to come before.
func (a *agent) learn(ctx context.Context, t *tool, err *host.Error) {
	if err.Docs != nil && err.Docs.Tier == manifest.Tier2 {
		a.read[t] = err.Docs.ToolDocs
	}
	for _, d := range err.Details {
		name, _, _ := strings.Cut(strings.TrimPrefix(d.Parameter, "/"), "/")
		for i := range t.params {
			p := &t.params[i]
			if documented := a.nameOf(t, p); documented == name || p.Name == name {
				for _, class := range []string{classEnum, classForm, classRequired} {
					a.learned[t.name()+class+documented] = true
				}
				a.learned[t.name()+classAlias+p.Name] = true
			}
		}
	}
	if err.Tool == nil {
		return
	}
	switch err.Tool.Name {
	case errNeeds:
		a.callRight(ctx, t.needs)
	case errValue:
		a.callRight(ctx, t.from)
	}
}
