package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/call"
	"github.com/parley-tools/parley/host/caller"
	"github.com/parley-tools/parley/host/learn/stats"
	"github.com/parley-tools/parley/host/learn/suggest"
	"github.com/parley-tools/parley/host/overlay"
	"github.com/parley-tools/parley/host/record"
	"github.com/parley-tools/parley/host/record/trace"
	"github.com/parley-tools/parley/host/search"
	"github.com/parley-tools/parley/manifest"
)

// world is a catalog with or without damage, its traces, and the edits that the operator applied.
type world struct {
	c         *catalog
	damaged   map[*tool]*damage
	state     *state
	providers []host.Provider
	overlays  *overlay.Store
	traces    string
	misread   float64
}

// newWorld returns a world whose files are in a folder.
func newWorld(c *catalog, damaged map[*tool]*damage, dir string, misread float64) *world {
	w := &world{c: c, damaged: damaged, misread: misread, traces: filepath.Join(dir, "traces"),
		state:    &state{clock: time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)},
		overlays: &overlay.Store{Dir: filepath.Join(dir, "docs")}}
	w.providers = services(c, damaged, w.state)
	return w
}

// catalog returns the plugins with the edits so far.
func (w *world) catalog() (*host.Catalog, error) {
	return host.NewCatalog(w.overlays.Wrap(w.providers)...)
}

// tally counts tasks, and those that went right at the first try.
type tally struct{ first, of int }

func (t *tally) add(o tally) { t.first, t.of = t.first+o.first, t.of+o.of }

// tasksOfSession is how many tasks an agent has in one session.
const tasksOfSession = 4

// round runs sessions, each with an agent of its own, and counts the tasks for each tool. All tools are wanted equally
// often. Name is part of the names of the sessions.
func (w *world) round(ctx context.Context, name string, sessions int, seed uint64) (map[*tool]*tally, error) {
	catalog, err := w.catalog()
	if err != nil {
		return nil, err
	}
	record := &recorder{w.state, trace.Open(w.traces, trace.Config{Values: true, MaxBytes: 1 << 40})}
	h, err := call.New(call.Config{Catalog: catalog, Policy: allow{}, Recorder: record})
	if err != nil {
		return nil, err
	}
	r := rand.New(rand.NewPCG(seed, uint64(number(name))))
	a := &agent{host: h, state: w.state, random: r, misread: w.misread, odd: map[string]string{},
		wrong: map[*tool]*misstatement{}}
	for t, d := range w.damaged {
		a.wrong[t] = d.wrong
		if d.odd != "" {
			a.odd[t.name()+" "+d.fact.name] = d.odd
		}
	}
	counts := map[*tool]*tally{}
	var deck []*tool
	for n := range sessions {
		a.begin(fmt.Sprintf("%s-%05d", name, n))
		clear(w.state.done)
		for range tasksOfSession {
			if len(deck) == 0 {
				deck = w.c.wanted()
				r.Shuffle(len(deck), func(i, j int) { deck[i], deck[j] = deck[j], deck[i] })
			}
			t := deck[0]
			deck = deck[1:]
			if counts[t] == nil {
				counts[t] = &tally{}
			}
			counts[t].of++
			k := newTask(t, r)
			k.insist(a.wrong[t], r)
			if a.do(ctx, k) {
				counts[t].first++
			}
		}
	}
	return counts, nil
}

// suggestions returns what the rules propose from the traces so far.
func (w *world) suggestions() ([]suggest.Suggestion, error) {
	var records []host.Record
	for r, err := range trace.Records(w.traces, nil).Read(record.Filter{}) {
		if err != nil {
			return nil, err
		}
		records = append(records, r)
	}
	catalog, err := w.catalog()
	if err != nil {
		return nil, err
	}
	return suggest.Suggest(stats.Compute(records, catalog, ""), catalog), nil
}

// edits are those that passed the gate, by tool, and those that it refused.
type edits struct {
	applied map[*tool][]overlay.Edit
	refused []suggest.Refusal
}

// apply applies suggestions as `docs apply` does: plugin by plugin, through the gate.
func (w *world) apply(ctx context.Context, list []suggest.Suggestion) (*edits, error) {
	made := &edits{applied: map[*tool][]overlay.Edit{}}
	proposals := map[string][]suggest.Proposal{}
	var order []string
	for _, s := range list {
		if proposals[s.Plugin] == nil {
			order = append(order, s.Plugin)
		}
		proposals[s.Plugin] = append(proposals[s.Plugin], suggest.Proposal{Edit: s.Edit, Sessions: s.Sessions})
	}
	for _, plugin := range order {
		catalog, err := w.catalog()
		if err != nil {
			return nil, err
		}
		p, ok := catalog.Provider(plugin)
		if !ok {
			continue
		}
		current, err := w.overlays.Load(p.Info())
		if err != nil {
			return nil, err
		}
		gate := &suggest.Gate{Catalog: catalog, Run: w.tryExample}
		checked, refused, err := gate.Check(ctx, p, current, proposals[plugin])
		if err != nil {
			return nil, err
		}
		made.refused = append(made.refused, refused...)
		for _, e := range checked.Edits {
			t := w.state.tools[plugin+"."+e.Tool]
			made.applied[t] = append(made.applied[t], e)
		}
		if err := w.overlays.Save(overlay.Change{Provider: p, From: current, To: checked}); err != nil {
			return nil, err
		}
	}
	return made, nil
}

// tryExample runs an example for the gate, after the calls that have to come before.
func (w *world) tryExample(ctx context.Context, name string, params json.RawMessage) error {
	h, err := newHost(w.overlays.Wrap(w.providers))
	if err != nil {
		return err
	}
	t := w.state.tools[name]
	for _, before := range []*tool{t.needs, t.from} {
		if before != nil {
			w.state.done["gate "+before.name()] = true
		}
	}
	w.state.wanted = nil
	_, err = h.Call(ctx, host.Call{Name: name, Params: params, Principal: caller.Principal{Name: "gate",
		Session: caller.Session{Name: "gate"}}})
	return err
}

// repaired reports whether edits restored what a damage removed, by what the host delivers now. The criterion is
// whether the documentation states the fact again, with these exceptions:
//
//   - alias: corrections know the everyday name, which describe does not show
//   - search: half of the tool's own tasks find it among the first five
//   - clutter: none of the added parameters is described at tier 2
func (w *world) repaired(ctx context.Context, d *damage, made []overlay.Edit) (bool, error) {
	h, err := newHost(w.overlays.Wrap(w.providers))
	if err != nil {
		return false, err
	}
	docs, err := h.Describe(ctx, caller.Principal{Name: "judge"}, d.tool.name(), manifest.Tier2)
	if err != nil {
		return false, err
	}
	switch d.fact.class {
	case classAlias:
		return slices.ContainsFunc(made, func(e overlay.Edit) bool {
			return e.Field == overlay.ParamAlias && e.Param == d.odd && strings.EqualFold(e.Value, d.fact.name)
		}), nil
	case classClutter:
		return !slices.ContainsFunc(docs.Parameters, func(p manifest.Param) bool {
			return slices.ContainsFunc(clutter, func(c clutterParam) bool { return c.name == p.Name })
		}), nil
	case classSearch:
		found := 0
		for _, phrase := range d.tool.tasks {
			if isFound(ctx, h, phrase, d.tool) {
				found++
			}
		}
		return 2*found >= len(d.tool.tasks), nil
	}
	return states(docs.ToolDocs, d.tool, d.fact), nil
}

// newHost returns a host that records nothing.
func newHost(providers []host.Provider) (*call.Host, error) {
	catalog, err := host.NewCatalog(providers...)
	if err != nil {
		return nil, err
	}
	return call.New(call.Config{Catalog: catalog, Policy: allow{}})
}

// isFound reports whether a query finds a tool among the first five.
func isFound(ctx context.Context, h *call.Host, query string, t *tool) bool {
	data, _, err := h.Search(ctx, caller.Principal{Name: "judge"}, search.Query{Text: query, Limit: 5})
	return err == nil && slices.ContainsFunc(data.Results, func(r search.Result) bool { return r.Name == t.name() })
}
