// Package stats computes statistics of use from traces: what is called, what fails and why, how callers recover, what
// they do not find. A [Report] is data; front ends render it. Each figure has the number of cases behind it and an
// interval, and there is none from fewer cases than it needs.
package stats

import (
	"cmp"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/manifest"
)

// Report is what traces say about a catalog. Calls without a session count, but what relates calls to each other, such
// as recovery, is known only within sessions. What concerns whole sessions and searches is of all tools, also in a
// report on some.
type Report struct {
	Since     time.Time `json:"since,omitzero"` // of the first record
	Until     time.Time `json:"until,omitzero"` // of the last one
	Calls     int       `json:"calls"`
	Searches  int       `json:"searches"`
	Describes int       `json:"describes"`
	Sessions  int       `json:"sessions"`

	All   Tool   `json:"all"`   // of all tools together; Name is ""
	Tools []Tool `json:"tools"` // most called first

	Abandoned  *Share      `json:"abandoned,omitempty"` // sessions that end with discovery or an error
	Tokens     *Quantile   `json:"tokens_to_success,omitempty"`
	Turns      *Quantile   `json:"turns_to_success,omitempty"`
	Confusions []Confusion `json:"confusions"`
	Renames    []Rename    `json:"renames"`
	Needs      []Need      `json:"needs"`
	Origins    []Origin    `json:"origins"`
	Sequences  []Sequence  `json:"sequences"`
	Search     Search      `json:"search"`
	Tiers      []Count     `json:"tiers"` // how often each tier of documentation was sent
	// WithDocs and WithoutDocs are the parameter errors after which the next call of the tool succeeded, with and without
	// documentation in the error.
	WithDocs    *Share `json:"after_error_with_docs,omitempty"`
	WithoutDocs *Share `json:"after_error_without_docs,omitempty"`

	Unused     []string  `json:"unused_tools"` // of plugins that are in use
	Deprecated []Count   `json:"deprecated_in_use"`
	Worst      []Problem `json:"worst"` // what is most worth fixing
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
	// Recovered are errors after which the tool succeeded in the same session, Recovery the calls that took.
	Recovered *Share    `json:"recovered,omitempty"`
	Recovery  *Quantile `json:"calls_to_recovery,omitempty"`
	// Kept are recoveries whose parameters were those that the error proposed.
	Kept     *Share   `json:"correction_used,omitempty"`
	Repeated int      `json:"repeated"` // errors that the session had made before with the tool
	Unknown  []Count  `json:"unknown_parameters"`
	Unused   []string `json:"unused_parameters"` // if it was called often enough to expect them
	// Arguments are the sets of parameters of successful calls, most frequent first.
	Arguments []Count `json:"arguments"`
}

// Field is what was wrong with a parameter.
type Field struct {
	Pointer  string `json:"pointer"`
	Keyword  string `json:"keyword"`
	Expected string `json:"expected"`
	N        int    `json:"n"`
	// Read are the sessions whose callers had read the documentation of the tool before, of all such sessions in which
	// the parameter was given. For a missing one Of are all sessions whose callers had read it.
	Read     int      `json:"read"`
	Of       int      `json:"of"`
	Sessions int      `json:"sessions"`
	Calls    []string `json:"calls"` // ids of the last such calls
}

// Count is how often something occurred.
type Count struct {
	Name string `json:"name"`
	N    int    `json:"n"`
}

// Confusion is a pair of tools: a call of one failed, and then a call of the other with similar parameters succeeded.
type Confusion struct {
	Called   string   `json:"called"`
	Meant    string   `json:"meant"`
	N        int      `json:"n"`
	Sessions int      `json:"sessions"`
	Calls    []string `json:"calls"` // ids of the last calls that failed
}

// Rename is a parameter that does not exist, in whose place the next call, which succeeded, had another one.
type Rename struct {
	Tool     string   `json:"tool"`
	Sent     string   `json:"sent"`
	Meant    string   `json:"meant"`
	N        int      `json:"n"`
	Sessions int      `json:"sessions"`
	Calls    []string `json:"calls"` // ids of the last calls that failed
}

// Need is a tool that failed, although its parameters were valid, and succeeded after a call of another one, without
// which it never succeeded.
type Need struct {
	Tool     string   `json:"tool"`
	Before   string   `json:"before"`
	N        int      `json:"n"`
	Sessions int      `json:"sessions"`
	Calls    []string `json:"calls"`
}

// Origin is a result that the values of a parameter came from, in calls that succeeded.
type Origin struct {
	Tool      string   `json:"tool"`
	Parameter string   `json:"parameter"`
	From      string   `json:"from"` // TOOL/POINTER, with 0 for each index
	N         int      `json:"n"`
	Of        int      `json:"of"` // calls that succeeded with the parameter
	Sessions  int      `json:"sessions"`
	Calls     []string `json:"calls"`
}

// Search is how searches did that a successful call followed in the session.
type Search struct {
	Followed int    `json:"followed"`
	First    *Share `json:"first,omitempty"`      // the tool was the first hit
	Five     *Share `json:"first_five,omitempty"` // it was among the first five
	Misses   []Miss `json:"misses"`
}

// Miss are the searches after which a tool was called that was not among their first five hits.
type Miss struct {
	Tool     string   `json:"tool"`
	N        int      `json:"n"`
	Sessions int      `json:"sessions"`
	Queries  []string `json:"queries,omitempty"` // as far as traces have values
	Calls    []string `json:"calls"`             // ids of the last such searches
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
func Compute(records iter.Seq[host.Record], catalog *host.Catalog, scope string) *Report {
	c := &counter{
		catalog: catalog, scope: scope, tools: map[string]*tally{}, sessions: map[string]*walk{},
		confusions: map[[2]string]*group{}, misses: map[string]*group{}, tiers: map[string]int{},
		renames: map[[3]string]*group{}, origins: map[[3]string]*group{}, needs: map[[2]string]*group{},
		together: map[[2]string]int{}, alone: map[string]int{},
	}
	for r := range records {
		c.add(&r)
	}
	return c.report()
}

// InScope reports whether a name is a tool, or one of its plugin or group.
func InScope(tool, scope string) bool {
	return scope == "" || strings.EqualFold(tool, scope) ||
		len(tool) > len(scope) && tool[len(scope)] == '.' && strings.EqualFold(tool[:len(scope)], scope)
}

// counter gathers what a report needs.
type counter struct {
	catalog    *host.Catalog
	scope      string
	rep        Report
	all        tally
	tools      map[string]*tally
	sessions   map[string]*walk
	confusions map[[2]string]*group
	misses     map[string]*group
	renames    map[[3]string]*group
	origins    map[[3]string]*group // tool, parameter, source
	needs      map[[2]string]*group
	together   map[[2]string]int // sessions in which a tool succeeded after another one
	alone      map[string]int    // sessions in which a tool succeeded
	tiers      map[string]int

	abandoned             int
	tokens, turns         []float64
	followed, first, five int
	docs, noDocs          [2]int // parameter errors, and those after which the next call succeeded
}

// group counts cases, the sessions that they are from, and the last call.
type group struct {
	n        int
	sessions set
	calls    []string
	queries  []string
	field    host.Violation
	read     set // sessions whose callers had read the documentation
}

// set is a set of sessions.
type set map[string]bool

func (s *set) add(session string) {
	if *s == nil {
		*s = set{}
	}
	(*s)[session] = true
}

func (g *group) add(r *host.Record) {
	g.n++
	g.calls = append(g.calls, r.Call)
	g.calls = g.calls[max(0, len(g.calls)-maxCalls):]
	if r.Session != "" {
		g.sessions.add(r.Session)
	}
}

// at returns the group of a key, which it makes.
func at[K comparable](groups map[K]*group, key K) *group {
	if groups[key] == nil {
		groups[key] = &group{}
	}
	return groups[key]
}

// tally counts the calls of a tool.
type tally struct {
	calls, failed, repeated int
	codes, unknown, used    map[string]int
	given                   map[string]set // sessions with a parameter, whose callers had read the documentation
	read                    set            // all of these
	arguments               map[string]int
	fields                  map[string]*group
	ms                      []float64
	first, firstOK          int
	errors, recovered       int
	offered, kept           int
	recovery                []float64
}

func (c *counter) tally(tool string) *tally {
	t := c.tools[tool]
	if t == nil {
		t = &tally{}
		c.tools[tool] = t
	}
	return t
}

// add counts a record.
func (c *counter) add(r *host.Record) {
	rep := &c.rep
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
		read := r.Session != "" && r.Mode == fullMode || s != nil && s.read[r.Tool]
		c.tally(r.Tool).add(r, read)
		c.all.add(r, read)
		for name, source := range r.From {
			at(c.origins, [3]string{r.Tool, name, source}).add(r)
		}
	}
	if in && r.DocsTokens > 0 {
		for _, tier := range r.Tiers {
			c.tiers["tier "+string(rune('0'+tier))]++
		}
	}
	if r.Session == "" {
		return
	}
	s := c.sessions[r.Session]
	if s == nil {
		s = &walk{tools: map[string]*tool{}, read: map[string]bool{}}
		c.sessions[r.Session] = s
	}
	s.step(c, r)
}

// add counts a call.
func (t *tally) add(r *host.Record, read bool) {
	t.calls++
	if r.Code != string(host.Timeout) { // that is how long the caller waited
		t.ms = append(t.ms, r.MS)
	}
	names := parameters(r)
	if read {
		t.read.add(r.Session)
		for _, name := range names {
			if t.given == nil {
				t.given = map[string]set{}
			}
			given := t.given[name]
			given.add(r.Session)
			t.given[name] = given
		}
	}
	if r.ExitCode == 0 {
		increase(&t.arguments, strings.Join(names, ", "))
		for _, name := range names {
			increase(&t.used, name)
		}
		return
	}
	t.failed++
	increase(&t.codes, r.Code)
	for _, e := range r.Errors {
		if t.fields == nil {
			t.fields = map[string]*group{}
		}
		g := at(t.fields, e.Pointer+"\x00"+e.Keyword)
		g.field = e
		g.add(r)
		if read {
			g.read.add(r.Session)
		}
		if e.Keyword == "additionalProperties" {
			increase(&t.unknown, strings.TrimPrefix(e.Pointer, "/"))
		}
	}
}

func increase(counts *map[string]int, name string) {
	if *counts == nil {
		*counts = map[string]int{}
	}
	(*counts)[name]++
}

// counts returns the most frequent names first.
func counts(of map[string]int) []Count {
	list := []Count{}
	for name, n := range of {
		list = append(list, Count{name, n})
	}
	slices.SortFunc(list, func(a, b Count) int { return cmp.Or(b.N-a.N, cmp.Compare(a.Name, b.Name)) })
	return list[:min(len(list), maxListed)]
}

// report returns the statistics of what was counted.
func (c *counter) report() *Report {
	r := &c.rep
	r.Sessions = len(c.sessions)
	for _, key := range slices.Sorted(maps.Keys(c.sessions)) {
		c.sessions[key].end(c)
	}
	r.All = c.all.tool("")
	r.Tools = []Tool{}
	for name, t := range c.tools {
		if t.calls > 0 {
			row := t.tool(name)
			row.Unused = c.unusedParameters(name, t)
			r.Tools = append(r.Tools, row)
		}
	}
	slices.SortFunc(r.Tools, func(a, b Tool) int { return cmp.Or(b.Calls-a.Calls, cmp.Compare(a.Name, b.Name)) })
	r.Abandoned = ShareOf(c.abandoned, r.Sessions)
	r.Tokens, r.Turns = QuantileOf(c.tokens, 0.5), QuantileOf(c.turns, 0.5)
	r.WithDocs, r.WithoutDocs = ShareOf(c.docs[1], c.docs[0]), ShareOf(c.noDocs[1], c.noDocs[0])
	r.Confusions = []Confusion{}
	for pair, g := range c.confusions {
		r.Confusions = append(r.Confusions, Confusion{pair[0], pair[1], g.n, len(g.sessions), g.calls})
	}
	slices.SortFunc(r.Confusions, func(a, b Confusion) int {
		return cmp.Or(b.N-a.N, cmp.Compare(a.Called+" "+a.Meant, b.Called+" "+b.Meant))
	})
	r.Search = Search{Followed: c.followed, First: ShareOf(c.first, c.followed), Five: ShareOf(c.five, c.followed),
		Misses: []Miss{}}
	for tool, g := range c.misses {
		r.Search.Misses = append(r.Search.Misses, Miss{tool, g.n, len(g.sessions), g.queries, g.calls})
	}
	slices.SortFunc(r.Search.Misses, func(a, b Miss) int { return cmp.Or(b.N-a.N, cmp.Compare(a.Tool, b.Tool)) })
	c.addRelations(r)
	r.Sequences = c.sequences()
	r.Tiers = counts(c.tiers)
	c.compareWithCatalog(r)
	r.Worst = problems(r)
	return r
}

// addRelations adds what is known of parameters that were sent in place of others, of tools that need others, and of
// where values come from.
func (c *counter) addRelations(r *Report) {
	r.Renames, r.Needs, r.Origins = []Rename{}, []Need{}, []Origin{}
	for key, g := range c.renames {
		r.Renames = append(r.Renames, Rename{key[0], key[1], key[2], g.n, len(g.sessions), g.calls})
	}
	slices.SortFunc(r.Renames, func(a, b Rename) int {
		return cmp.Or(b.N-a.N, cmp.Compare(a.Tool+" "+a.Sent+" "+a.Meant, b.Tool+" "+b.Sent+" "+b.Meant))
	})
	for key, g := range c.needs {
		if c.together[key] == c.alone[key[0]] {
			r.Needs = append(r.Needs, Need{key[0], key[1], g.n, len(g.sessions), g.calls})
		}
	}
	slices.SortFunc(r.Needs, func(a, b Need) int {
		return cmp.Or(b.N-a.N, cmp.Compare(a.Tool+" "+a.Before, b.Tool+" "+b.Before))
	})
	for key, g := range c.origins {
		r.Origins = append(r.Origins, Origin{key[0], key[1], key[2], g.n, c.tally(key[0]).used[key[1]], len(g.sessions),
			g.calls})
	}
	slices.SortFunc(r.Origins, func(a, b Origin) int {
		return cmp.Or(b.N-a.N, cmp.Compare(a.Tool+" "+a.Parameter+" "+a.From, b.Tool+" "+b.Parameter+" "+b.From))
	})
}

// tool returns the row of what was counted.
func (t *tally) tool(name string) Tool {
	row := Tool{
		Name: name, Calls: t.calls, Sessions: t.first, Failed: t.failed,
		Failures: ShareOf(t.failed, t.calls), Codes: counts(t.codes),
		Fields: []Field{}, P50: QuantileOf(t.ms, 0.5), P95: QuantileOf(t.ms, 0.95), P99: QuantileOf(t.ms, 0.99),
		FirstTry: ShareOf(t.firstOK, t.first), Recovered: ShareOf(t.recovered, t.errors),
		Recovery: QuantileOf(t.recovery, 0.5), Kept: ShareOf(t.kept, t.offered), Repeated: t.repeated,
		Unknown: counts(t.unknown), Unused: []string{}, Arguments: counts(t.arguments),
	}
	for _, g := range t.fields {
		f := g.field
		name, _, _ := strings.Cut(strings.TrimPrefix(f.Pointer, "/"), "/")
		of := len(t.given[name])
		if f.Keyword == "required" {
			of = len(t.read)
		}
		row.Fields = append(row.Fields, Field{f.Pointer, f.Keyword, f.Expected, g.n, len(g.read), max(of, len(g.read)),
			len(g.sessions), g.calls})
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
	if t.calls-t.failed < unusedAfter || c.catalog == nil {
		return unused
	}
	at, err := c.catalog.Find(name)
	if err != nil || at.Tool == nil {
		return unused
	}
	for _, p := range manifest.Params(at.Tool.Params) {
		if !p.Required && t.used[p.Name] == 0 {
			unused = append(unused, p.Name)
		}
	}
	return unused
}

// compareWithCatalog finds tools that are not used, of plugins that are, and deprecated ones that are.
func (c *counter) compareWithCatalog(r *Report) {
	r.Unused, r.Deprecated = []string{}, []Count{}
	if c.catalog == nil {
		return
	}
	calls := map[string]int{} // of each plugin
	for _, t := range r.Tools {
		plugin, _, _ := strings.Cut(t.Name, ".")
		calls[plugin] += t.Calls
		if at, err := c.catalog.Find(t.Name); err == nil && at.Tool != nil && at.Tool.Deprecated != nil {
			r.Deprecated = append(r.Deprecated, Count{t.Name, t.Calls})
		}
	}
	for _, p := range c.catalog.Providers() {
		plugin := p.Info().Name
		if calls[plugin] < unusedAfter {
			continue
		}
		names, err := p.Names()
		if err != nil {
			continue // a damaged plugin; lists say so
		}
		for _, name := range names {
			if full := plugin + "." + name; c.tools[full] == nil && InScope(full, c.scope) {
				r.Unused = append(r.Unused, full)
			}
		}
	}
}
