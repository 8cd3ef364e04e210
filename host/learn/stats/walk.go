package stats

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/internal/lists"
	"github.com/parley-tools/parley/manifest/jsontext"
)

// walk follows the records of one session.
type walk struct {
	tools map[string]*tool

	began     time.Time // the first record
	took      float64   // until the first success, in seconds
	succeeded bool      // a call did
	open      bool      // discovery or an error came after the last success
	turns     int       // records until the first success
	tokens    int
	last      *host.Record   // the call before, if it failed
	described string         // the tool whose documentation was read last, before the call that failed
	search    *host.Record   // the search that no successful call has followed yet
	since     int            // calls since the search
	missed    string         // the last tool that succeeded after the search and is not among its hits
	read      counts         // tools of which tier 2 or 3 was sent
	asked     string         // the first tool that was described or called after the search
	done      []string       // the tools that succeeded, each once
	successes []*host.Record // the successful calls, in order
}

// tool is the state of a tool in a session.
type tool struct {
	called  bool
	errors  counts       // the kinds of errors that occurred
	waiting int          // calls since the first error after a success; 0 means that the last call succeeded
	failed  *host.Record // the last call, if it failed
	between []string     // tools that succeeded since then
}

// refused reports whether the last call failed by its parameters.
func (t *tool) refused() bool { return t.failed != nil && t.failed.Code == string(host.InvalidArgs) }

// searchReach is how many calls after a search count as its outcome.
const searchReach = 4

// step counts what a record means after the earlier ones.
func (w *walk) step(c *counter, r *host.Record) {
	if len(r.Tiers) > 0 && slices.Max(r.Tiers) > 1 {
		defer w.read.add(r.Tool)
	}
	if w.began.IsZero() {
		w.began = r.Time
	}
	if !w.succeeded {
		w.turns++
		w.took = r.Time.Sub(w.began).Seconds() + r.MS/1e3
		w.tokens += r.DocsTokens
	}
	if r.Op != "" {
		w.open = true
		if r.Op == "search" && r.ExitCode == 0 {
			w.closeSearch(c)
			w.search, w.since, w.asked = r, 0, ""
		}
		if r.Op == "describe" {
			w.asked = cmp.Or(w.asked, r.Tool)
			if w.last == nil {
				w.described = r.Tool
			}
		}
		return
	}
	if w.asked == "" {
		w.asked = r.Tool
	}
	in := InScope(r.Tool, c.scope)
	if in {
		w.tool(c, r)
	}
	sentAway := w.last != nil && w.described == r.Tool // the caller had read about this one, and called another one
	if r.ExitCode == 0 || r.Tool == w.described {
		w.described = ""
	}
	if r.ExitCode != 0 {
		w.open, w.last = true, r
		w.since++
		return
	}
	w.succeeded, w.open = true, false
	w.since++
	if w.last != nil && (sentAway || isConfusion(w.last, r)) && (in || InScope(w.last.Tool, c.scope)) {
		if g := c.relate(confused, w.last, w.last.Tool, r.Tool); sentAway {
			g.read.add(w.last.Session)
		}
	}
	w.last = nil
	w.succeed(c, r)
	if w.search == nil || !in {
		return
	}
	asked, known := Find(c.catalog, w.asked)
	switch rank := slices.Index(w.search.Hits, r.Tool); {
	case w.since > searchReach:
		w.closeSearch(c)
	case rank >= 0 && rank < 5:
		c.first.add(rank == 0)
		c.five.add(true)
		w.search, w.missed = nil, ""
	case r.Tool == w.asked || !known || !ComesBefore(asked, r.Tool): // else what was searched for has still to come
		w.missed = r.Tool
	}
}

// closeSearch counts a search after which no hit was called: it missed the tool that was called.
func (w *walk) closeSearch(c *counter) {
	if w.search != nil && w.missed != "" {
		c.first.add(false)
		c.five.add(false)
		g := c.relate(missed, w.search, w.missed)
		if q := w.search.Query; q != "" && !slices.Contains(g.queries, q) && len(g.queries) < maxListed {
			g.queries = append(g.queries, q)
		}
	}
	w.search, w.missed = nil, ""
}

// tool counts a call of a tool for the tool itself and for all tools.
func (w *walk) tool(c *counter, r *host.Record) {
	t := at(&w.tools, r.Tool)
	for _, sum := range []*tally{at(&c.tools, r.Tool), &c.all} {
		t.count(sum, r)
	}
	if t.refused() {
		after := &c.noDocs
		if t.failed.DocsTokens > 0 {
			after = &c.docs
		}
		after.add(r.ExitCode == 0)
	}
	t.called = true
	if r.ExitCode == 0 {
		t.compare(c, r)
		t.waiting, t.failed = 0, nil
		return
	}
	t.failed, t.between = r, nil
	t.waiting++
	for _, kind := range kinds(r) {
		t.errors.add(kind)
	}
}

// succeed notes which tools have succeeded before a tool.
func (w *walk) succeed(c *counter, r *host.Record) {
	for name, t := range w.tools {
		if name != r.Tool && t.failed != nil && !slices.Contains(t.between, r.Tool) {
			t.between = append(t.between, r.Tool)
		}
	}
	if len(w.successes) < maxSuccesses && InScope(r.Tool, c.scope) {
		w.successes = append(w.successes, r)
	}
	if slices.Contains(w.done, r.Tool) {
		return
	}
	c.alone.add(r.Tool)
	for _, before := range w.done {
		c.together[[2]string{r.Tool, before}]++
	}
	if len(w.done) < maxListed {
		w.done = append(w.done, r.Tool)
	}
}

// compare finds out what a successful call had that the failed call before it did not have.
func (t *tool) compare(c *counter, r *host.Record) {
	if t.failed == nil {
		return
	}
	if !t.refused() {
		if len(t.between) == 1 && slices.Equal(parameters(t.failed), parameters(r)) {
			c.relate(needed, t.failed, r.Tool, t.between[0])
		}
		return
	}
	given, now := parameters(t.failed), parameters(r)
	var sent []string
	for _, e := range t.failed.Errors {
		name := strings.TrimPrefix(e.Pointer, "/")
		if e.Keyword == "additionalProperties" && slices.Contains(given, name) && !slices.Contains(now, name) {
			sent = append(sent, name)
		}
	}
	meant := lists.Filter(now, func(name string) bool { return !slices.Contains(given, name) })
	if len(sent) == 1 && len(meant) == 1 {
		c.relate(renamed, t.failed, r.Tool, sent[0], meant[0])
	}
}

// count counts a call for the tool itself, or for all.
func (t *tool) count(sum *tally, r *host.Record) {
	ok := r.ExitCode == 0
	if !t.called {
		sum.first.add(ok)
	}
	switch {
	case !ok && t.waiting == 0:
		sum.recovered.of++
	case ok && t.waiting > 0:
		sum.recovered.n++
		sum.recovery = append(sum.recovery, float64(t.waiting))
		if len(t.failed.Changes) > 0 {
			sum.kept.add(r.SuggestionUsed)
		}
	}
	if !ok && slices.ContainsFunc(kinds(r), func(kind string) bool { return t.errors[kind] > 0 }) {
		sum.repeated++
	}
}

// end counts what is known only when a session has ended.
func (w *walk) end(c *counter) {
	w.closeSearch(c)
	if w.open {
		c.abandoned++
	}
	if w.succeeded {
		c.tokens, c.turns = append(c.tokens, float64(w.tokens)), append(c.turns, float64(w.turns))
		c.seconds, c.depths = append(c.seconds, w.took), append(c.depths, float64(len(w.done)))
	}
}

// kinds returns what was wrong in a failed call, without values.
func kinds(r *host.Record) []string {
	if len(r.Errors) == 0 {
		return []string{r.Code}
	}
	return lists.Map(r.Errors, func(e host.Violation) string { return e.Pointer + " " + e.Keyword })
}

// isConfusion reports whether a failed call was probably meant for the tool of the next one, which succeeded: at least
// half of their parameters have the same names. A call that was denied or that had no browser does not count.
func isConfusion(failed, next *host.Record) bool {
	switch host.Code(failed.Code) {
	case host.InvalidArgs, host.ToolFailed, host.NotFound, host.InvalidURL:
	default:
		return false
	}
	if strings.EqualFold(failed.Tool, next.Tool) {
		return false
	}
	a, b := parameters(failed), parameters(next)
	both := len(lists.Filter(a, func(name string) bool { return slices.Contains(b, name) }))
	return (both > 0 || failed.Code == string(host.NotFound)) && 2*both >= max(len(a), len(b))
}

// parameters returns the names of the parameters of a call, sorted.
func parameters(r *host.Record) []string {
	names := []string{}
	eachParameter(r, func(name string, _ json.RawMessage) { names = append(names, name) })
	slices.Sort(names)
	return names
}

// eachParameter visits the parameters of a call with their values or shapes, but not the mark of those left out.
func eachParameter(r *host.Record, visit func(name string, value json.RawMessage)) {
	s := jsontext.Scan(r.Params)
	s.Members(func(key []byte) {
		value := bytes.TrimSpace(s.Skip())
		if name, ok := jsontext.Unquote(key); ok && name != "…" {
			visit(name, value)
		}
	})
}
