// Package stats computes statistics of use from traces: what is called, what fails and why, how callers recover, what
// they do not find. A [Report] is data; front ends render it. Each figure has the number of cases behind it and an
// interval. A figure with too few cases is left out.
package stats

import (
	"cmp"
	"encoding/json"
	"iter"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/caller"
	"github.com/parley-tools/parley/manifest"
)

// Report is what traces say about a catalog. Calls without a session count, but relations between calls, such as
// recovery, are known only within sessions. The figures of whole sessions and searches are about all tools, also in a
// report on some.
type Report struct {
	Since     time.Time `json:"since,omitzero"` // time of the first record
	Until     time.Time `json:"until,omitzero"` // time of the last record
	Calls     int       `json:"calls"`
	Searches  int       `json:"searches"`
	Describes int       `json:"describes"`
	Sessions  int       `json:"sessions"`
	Inner     int       `json:"inner_calls,omitempty"` // calls that tools made; otherwise only CPU counts them
	CPU       []CPU     `json:"cpu,omitempty"`         // by callers, the most first

	All   Tool   `json:"all"`   // figures of all tools together; Name is ""
	Tools []Tool `json:"tools"` // most called first

	Effort
	Relations
	Sequences []Sequence `json:"sequences"`
	Search    Search     `json:"search"`
	Tiers     []Count    `json:"tiers"` // how often each tier of documentation was sent
	// WithDocs and WithoutDocs are the parameter errors after which the next call of the tool succeeded, with and without
	// documentation in the error.
	WithDocs    *Share `json:"after_error_with_docs,omitempty"`
	WithoutDocs *Share `json:"after_error_without_docs,omitempty"`

	Unused     []string  `json:"unused_tools"` // unused tools of plugins that are in use
	Deprecated []Count   `json:"deprecated_in_use"`
	Worst      []Problem `json:"worst"` // what is most worth fixing
}

// CPU is the CPU time of the guests that a caller, or a plugin, has called.
type CPU struct {
	Caller string  `json:"caller"`
	MS     float64 `json:"ms"`
}

// Tool are the statistics of a tool.
type Tool struct {
	Name     string    `json:"name"`
	Calls    int       `json:"calls"`
	Sessions int       `json:"sessions"`
	Failed   int       `json:"failed"`
	Failures *Share    `json:"failures,omitempty"`
	Codes    []Count   `json:"codes"` // how failed calls ended, most frequent first
	Fields   []Field   `json:"fields"`
	P50      *Quantile `json:"p50_ms,omitempty"`
	P95      *Quantile `json:"p95_ms,omitempty"`
	P99      *Quantile `json:"p99_ms,omitempty"`
	FirstTry *Share    `json:"first_try,omitempty"` // sessions whose first call of the tool succeeded
	// Recovered counts errors after which the tool succeeded in the same session, Recovery the calls that this took.
	Recovered *Share    `json:"recovered,omitempty"`
	Recovery  *Quantile `json:"calls_to_recovery,omitempty"`
	// Kept counts recoveries with the parameters that the error proposed.
	Kept     *Share   `json:"correction_used,omitempty"`
	Repeated int      `json:"repeated"` // errors that the session had made before with the tool
	Unknown  []Count  `json:"unknown_parameters"`
	Unused   []string `json:"unused_parameters"` // if it was called often enough to expect them
	// Arguments are the sets of parameters of successful calls, most frequent first.
	Arguments []Count    `json:"arguments"`
	Contrasts []Contrast `json:"contrasts,omitempty"` // what separates calls that fail from those that succeed
}

// Effort is what sessions take, and how deep they go. Tokens counts documentation.
type Effort struct {
	Abandoned *Share    `json:"abandoned,omitempty"` // sessions that end with discovery or an error
	Tokens    *Quantile `json:"tokens_to_success,omitempty"`
	Turns     *Quantile `json:"turns_to_success,omitempty"`
	Seconds   *Quantile `json:"seconds_to_success,omitempty"`
	Depth     *Quantile `json:"tools_used,omitempty"` // different tools that succeed in a session
}

// Relations are findings about how calls relate to the calls before them.
type Relations struct {
	Confusions []Confusion `json:"confusions"`
	Renames    []Rename    `json:"renames"`
	Needs      []Need      `json:"needs"`
	Origins    []Origin    `json:"origins"`
}

// Evidence is the cases behind a finding.
type Evidence struct {
	N        int      `json:"n"`
	Sessions int      `json:"sessions"`
	Calls    []string `json:"calls"` // ids of the last of them
}

// Enough reports whether the cases are enough for a finding.
func (e *Evidence) Enough() bool { return e.N >= MinCases && e.Sessions >= MinSessions }

// Field is what was wrong with a parameter.
type Field struct {
	Pointer  string `json:"pointer"`
	Keyword  string `json:"keyword"`
	Expected string `json:"expected"`
	// Read counts the sessions with this mistake whose callers had read the documentation of the tool before. Of counts
	// all such sessions in which the parameter was given or, for a missing parameter, all such sessions.
	Read int `json:"read"`
	Of   int `json:"of"`
	Evidence
	Sent []Count `json:"-"` // short values that were refused, where traces have values
}

// Count is how often something occurred.
type Count struct {
	Name string `json:"name"`
	N    int    `json:"n"`
}

// Confusion is a pair of tools: a call of one failed, and then a call of the other with similar parameters succeeded.
// The calls of its evidence are the failed ones.
type Confusion struct {
	Called string `json:"called"`
	Meant  string `json:"meant"`
	// CalledWorks and MeantWorks are the shares of the two tools' calls that succeeded.
	CalledWorks *Share `json:"called_works,omitempty"`
	MeantWorks  *Share `json:"meant_works,omitempty"`
	Evidence
	// SentAway counts the sessions whose callers had just read the documentation of the tool that was meant.
	SentAway int `json:"sent_away,omitempty"`
}

// Rename is a parameter that does not exist. The next call, which succeeded, had another parameter in its place. The
// calls of its evidence are the failed ones.
type Rename struct {
	Tool  string `json:"tool"`
	Sent  string `json:"sent"`
	Meant string `json:"meant"`
	Evidence
}

// Need is a tool that failed although its parameters were valid, and that succeeded only after a call of another tool.
type Need struct {
	Tool   string `json:"tool"`
	Before string `json:"before"`
	Evidence
}

// Origin is a result that the values of a parameter came from, in calls that succeeded.
type Origin struct {
	Tool      string `json:"tool"`
	Parameter string `json:"parameter"`
	From      string `json:"from"` // TOOL/POINTER, with 0 for each index
	Of        int    `json:"of"`   // calls that succeeded with the parameter
	Evidence
}

// Search is how well the searches did that a successful call followed in the session.
type Search struct {
	Followed int    `json:"followed"`
	First    *Share `json:"first,omitempty"`      // the tool was the first hit
	Five     *Share `json:"first_five,omitempty"` // it was among the first five
	Misses   []Miss `json:"misses"`
}

// Miss stands for the searches after which a tool was called that was not among their first five hits. The calls of
// its evidence are these searches.
type Miss struct {
	Tool    string   `json:"tool"`
	Queries []string `json:"queries,omitempty"` // as far as traces have values
	Evidence
}

// fullMode is the mode of documentation in which the list of tools has all parameters: every caller has read them.
const fullMode = "full"

// maxCalls is how many calls a finding names as examples.
const maxCalls = 3

// maxListed bounds the entries of lists in a report.
const maxListed = 20

// unusedAfter is the number of calls after which a parameter or a plugin's tool that nobody used is called unused.
const unusedAfter = 20

// Compute returns the statistics of records, which are in the order in which they were written. Only tools in scope
// have rows; "" is every tool, else a plugin, a group or a tool.
func Compute(records []host.Record, catalog *host.Catalog, scope string) *Report {
	c := &counter{catalog: catalog, scope: scope, together: map[[2]string]int{}, cpu: map[string]float64{}, rep: Report{
		Tools: []Tool{}, Unused: []string{}, Deprecated: []Count{}, Search: Search{Misses: []Miss{}},
		Relations: Relations{Confusions: []Confusion{}, Renames: []Rename{}, Needs: []Need{}, Origins: []Origin{}},
	}}
	for i := range records {
		c.add(&records[i])
	}
	return c.report()
}

// InScope reports whether a tool is in a scope: the tool itself, its group or its plugin; "" is every tool.
func InScope(tool, scope string) bool {
	return scope == "" || strings.EqualFold(tool, scope) ||
		len(tool) > len(scope) && tool[len(scope)] == '.' && strings.EqualFold(tool[:len(scope)], scope)
}

// Find returns a tool of a catalog.
func Find(catalog *host.Catalog, name string) (at host.Address, ok bool) {
	at, err := catalog.Find(name)
	return at, err == nil && at.Tool != nil
}

// Names visits the local names of all tools of a catalog. It skips damaged plugins, which lists report.
func Names(catalog *host.Catalog) iter.Seq2[host.Provider, string] {
	return func(yield func(host.Provider, string) bool) {
		for _, p := range catalog.Providers() {
			names, _ := p.Names()
			for _, name := range names {
				if !yield(p, name) {
					return
				}
			}
		}
	}
}

// Tasks visits the tasks that authors give the tools of a catalog, without the edits of the operator.
func Tasks(catalog *host.Catalog) iter.Seq2[string, string] {
	return func(yield func(tool, task string) bool) {
		for p, name := range Names(catalog) {
			t, err := host.Base(p).Tool(name)
			if err != nil || t == nil {
				continue
			}
			for _, task := range t.Tasks {
				if !yield(p.Info().Name+"."+t.Name, task) {
					return
				}
			}
		}
	}
}

// ComesBefore reports whether the documentation of a tool says that another one has to be called before it, or returns
// a value for it.
func ComesBefore(at host.Address, tool string) bool {
	flow := at.FlowOf()
	is := func(c manifest.FlowCall) bool { return strings.EqualFold(c.Tool, tool) }
	return slices.ContainsFunc(flow.Needs, is) || slices.ContainsFunc(flow.Values, func(v manifest.Value) bool {
		return slices.ContainsFunc(v.From, func(s manifest.Source) bool { return is(s.FlowCall) })
	})
}

// counter gathers what a report needs.
type counter struct {
	catalog  *host.Catalog
	scope    string
	rep      Report
	all      tally
	tools    map[string]*tally
	sessions map[string]*walk
	found    map[relation]*group
	together map[[2]string]int // sessions in which a tool succeeded after another one
	alone    counts            // sessions in which a tool succeeded
	tiers    counts
	cpu      map[string]float64 // milliseconds by caller

	abandoned     int
	tokens, turns []float64
	seconds       []float64
	depths        []float64
	first, five   rate // searches that a successful call followed
	docs, noDocs  rate // parameter errors, and those after which the next call succeeded
}

// relation identifies a group of cases by its kind and the names that the kind has.
type relation struct {
	kind    kind
	a, b, c string
}

type kind int

const (
	confused  kind = iota // tool, tool that was meant
	renamed               // tool, parameter, parameter that was meant
	needed                // tool, tool before it
	originate             // tool, parameter, source
	missed                // tool
)

// at returns the value of a key in a map; it makes both.
func at[K comparable, V any](of *map[K]*V, key K) *V {
	if *of == nil {
		*of = map[K]*V{}
	}
	if (*of)[key] == nil {
		(*of)[key] = new(V)
	}
	return (*of)[key]
}

// group is a number of cases with the sessions that they are from.
type group struct {
	Evidence
	sessions counts
	queries  []string
	field    host.Violation
	sent     counts // values that were refused
	read     counts // sessions whose callers had read the documentation
}

func (g *group) add(session, call string) {
	g.N++
	g.Calls = append(g.Calls, call)
	g.Calls = g.Calls[max(0, len(g.Calls)-maxCalls):]
	if session != "" {
		g.sessions.add(session)
		g.Sessions = len(g.sessions)
	}
}

// counts is how often each name occurred.
type counts map[string]int

func (c *counts) add(name string) {
	if *c == nil {
		*c = counts{}
	}
	(*c)[name]++
}

// list returns the most frequent names first.
func (c counts) list() []Count {
	list := []Count{}
	for name, n := range c {
		list = append(list, Count{name, n})
	}
	slices.SortFunc(list, func(a, b Count) int { return cmp.Or(b.N-a.N, cmp.Compare(a.Name, b.Name)) })
	return list[:min(len(list), maxListed)]
}

// rate counts cases, and how many of them have a property.
type rate struct{ n, of int }

func (r *rate) add(isSo bool) {
	r.of++
	if isSo {
		r.n++
	}
}

func (r rate) share() *Share { return ShareOf(r.n, r.of) }

// tally counts the calls of a tool.
type tally struct {
	calls, failed, repeated int
	codes, unknown, used    counts
	arguments               counts
	given                   map[string]*counts // sessions with a parameter, whose callers had read the documentation
	read                    counts             // all sessions whose callers had read it
	fields                  map[string]*group
	ms, recovery            []float64
	first, recovered, kept  rate
	features                features
}

// add counts a record.
func (c *counter) add(r *host.Record) {
	rep := &c.rep
	if r.CPUMS > 0 && InScope(r.Tool, c.scope) {
		c.cpu[r.Caller] += r.CPUMS
	}
	if strings.HasPrefix(r.Caller, caller.PluginPrefix) {
		rep.Inner++
		return
	}
	if rep.Since.IsZero() || r.Time.Before(rep.Since) {
		rep.Since = r.Time
	}
	if r.Time.After(rep.Until) {
		rep.Until = r.Time
	}
	in := InScope(r.Tool, c.scope)
	switch {
	case r.Op == "search":
		rep.Searches++
	case !in:
	case r.Op == "describe":
		rep.Describes++
	default:
		rep.Calls++
		s := c.sessions[r.Session]
		read := r.Session != "" && r.Mode == fullMode || s != nil && s.read[r.Tool] > 0
		t := at(&c.tools, r.Tool)
		t.add(r, read)
		t.features.add(r, s)
		c.all.add(r, read)
		for name, source := range r.From {
			c.relate(originate, r, r.Tool, name, source)
		}
	}
	if in && r.DocsTokens > 0 {
		for _, tier := range r.Tiers {
			c.tiers.add("tier " + string(rune('0'+tier)))
		}
	}
	if r.Session != "" {
		at(&c.sessions, r.Session).step(c, r)
	}
}

// relate counts a record as a case of a relation.
func (c *counter) relate(kind kind, r *host.Record, names ...string) *group {
	names = append(names, "", "")
	g := at(&c.found, relation{kind, names[0], names[1], names[2]})
	g.add(r.Session, r.Call)
	return g
}

// add counts a call.
func (t *tally) add(r *host.Record, read bool) {
	t.calls++
	if r.Code != string(host.Timeout) { // a timeout only says how long the caller waited
		t.ms = append(t.ms, r.MS)
	}
	names := parameters(r)
	if read {
		t.read.add(r.Session)
		for _, name := range names {
			at(&t.given, name).add(r.Session)
		}
	}
	if r.ExitCode == 0 {
		t.arguments.add(strings.Join(names, ", "))
		for _, name := range names {
			t.used.add(name)
		}
		return
	}
	t.failed++
	t.codes.add(r.Code)
	for _, e := range r.Errors {
		g := at(&t.fields, e.Pointer+"\x00"+e.Keyword)
		g.field = e
		g.add(r.Session, r.Call)
		eachParameter(r, func(name string, value json.RawMessage) {
			if "/"+name == e.Pointer && len(value) <= maxValue && !AreShapes(r.Params) {
				g.sent.add(strings.Trim(string(value), `"`))
			}
		})
		if read {
			g.read.add(r.Session)
		}
		if e.Keyword == "additionalProperties" {
			t.unknown.add(strings.TrimPrefix(e.Pointer, "/"))
		}
	}
}

// report returns the statistics of what was counted.
func (c *counter) report() *Report {
	r := &c.rep
	r.Sessions = len(c.sessions)
	for _, key := range slices.Sorted(maps.Keys(c.sessions)) {
		c.sessions[key].end(c)
	}
	r.All = c.all.tool("")
	for name, t := range c.tools {
		row := t.tool(name)
		row.Unused = c.unusedParameters(name, t)
		r.Tools = append(r.Tools, row)
	}
	slices.SortFunc(r.Tools, func(a, b Tool) int { return cmp.Or(b.Calls-a.Calls, cmp.Compare(a.Name, b.Name)) })
	for caller, ms := range c.cpu {
		r.CPU = append(r.CPU, CPU{caller, math.Round(ms)})
	}
	slices.SortFunc(r.CPU, func(a, b CPU) int {
		return cmp.Or(cmp.Compare(b.MS, a.MS), cmp.Compare(a.Caller, b.Caller))
	})
	r.Abandoned = ShareOf(c.abandoned, r.Sessions)
	r.Tokens, r.Turns = QuantileOf(c.tokens, 0.5), QuantileOf(c.turns, 0.5)
	r.Seconds, r.Depth = QuantileOf(c.seconds, 0.5), QuantileOf(c.depths, 0.5)
	r.WithDocs, r.WithoutDocs = c.docs.share(), c.noDocs.share()
	r.Search.Followed, r.Search.First, r.Search.Five = c.five.of, c.first.share(), c.five.share()
	c.addRelations(r)
	r.Sequences = c.sequences()
	r.Tiers = c.tiers.list()
	c.compareWithCatalog(r)
	r.Worst = problems(r, c.catalog)
	return r
}

// addRelations adds the relations between calls, the most frequent first.
func (c *counter) addRelations(r *Report) {
	for _, of := range slices.SortedFunc(maps.Keys(c.found), func(a, b relation) int {
		return cmp.Or(c.found[b].N-c.found[a].N, cmp.Compare(a.a, b.a), cmp.Compare(a.b, b.b), cmp.Compare(a.c, b.c))
	}) {
		g := c.found[of]
		switch of.kind {
		case confused:
			r.Confusions = append(r.Confusions, Confusion{of.a, of.b, c.works(of.a), c.works(of.b), g.Evidence, len(g.read)})
		case renamed:
			r.Renames = append(r.Renames, Rename{of.a, of.b, of.c, g.Evidence})
		case needed:
			if c.together[[2]string{of.a, of.b}] == c.alone[of.a] {
				r.Needs = append(r.Needs, Need{of.a, of.b, g.Evidence})
			}
		case originate:
			r.Origins = append(r.Origins, Origin{of.a, of.b, of.c, c.tools[of.a].used[of.b], g.Evidence})
		case missed:
			r.Search.Misses = append(r.Search.Misses, Miss{of.a, g.queries, g.Evidence})
		}
	}
}

// tool returns the row of what was counted.
func (t *tally) tool(name string) Tool {
	row := Tool{
		Name: name, Calls: t.calls, Sessions: t.first.of, Failed: t.failed,
		Failures: ShareOf(t.failed, t.calls), Codes: t.codes.list(),
		Fields: []Field{}, P50: QuantileOf(t.ms, 0.5), P95: QuantileOf(t.ms, 0.95), P99: QuantileOf(t.ms, 0.99),
		FirstTry: t.first.share(), Recovered: t.recovered.share(),
		Recovery: QuantileOf(t.recovery, 0.5), Kept: t.kept.share(), Repeated: t.repeated,
		Unknown: t.unknown.list(), Unused: []string{}, Arguments: t.arguments.list(),
		Contrasts: t.features.contrasts(),
	}
	for _, g := range t.fields {
		f := g.field
		name, _, _ := strings.Cut(strings.TrimPrefix(f.Pointer, "/"), "/")
		of := len(t.read)
		if f.Keyword != "required" {
			of = len(*at(&t.given, name))
		}
		read := len(g.read)
		row.Fields = append(row.Fields, Field{f.Pointer, f.Keyword, f.Expected, read, max(of, read), g.Evidence,
			g.sent.list()})
	}
	slices.SortFunc(row.Fields, func(a, b Field) int {
		return cmp.Or(b.N-a.N, cmp.Compare(a.Pointer+a.Keyword, b.Pointer+b.Keyword))
	})
	row.Fields = row.Fields[:min(len(row.Fields), maxListed)]
	return row
}

// unusedParameters returns the optional parameters of a tool that no successful call had.
func (c *counter) unusedParameters(name string, t *tally) []string {
	unused := []string{}
	if at, ok := Find(c.catalog, name); ok && t.calls-t.failed >= unusedAfter {
		for _, p := range manifest.Params(at.Tool.Params) {
			if !p.Required && t.used[p.Name] == 0 {
				unused = append(unused, p.Name)
			}
		}
	}
	return unused
}

// works returns how many calls of a tool succeeded, nil for too few calls.
func (c *counter) works(tool string) *Share {
	t := c.tools[tool]
	if t == nil {
		return nil
	}
	return ShareOf(t.calls-t.failed, t.calls)
}

// compareWithCatalog finds unused tools of plugins that are used, and deprecated tools that are used.
func (c *counter) compareWithCatalog(r *Report) {
	calls := map[string]int{} // calls of each plugin
	for _, t := range r.Tools {
		plugin, _, _ := strings.Cut(t.Name, ".")
		calls[plugin] += t.Calls
		if at, ok := Find(c.catalog, t.Name); ok && at.Tool.Deprecated != nil {
			r.Deprecated = append(r.Deprecated, Count{t.Name, t.Calls})
		}
	}
	for p, name := range Names(c.catalog) {
		plugin := p.Info().Name
		full := plugin + "." + name
		if calls[plugin] >= unusedAfter && c.tools[full] == nil && InScope(full, c.scope) {
			r.Unused = append(r.Unused, full)
		}
	}
}
