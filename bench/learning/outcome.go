package main

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/parley-tools/parley/host/learn/stats"
	"github.com/parley-tools/parley/host/learn/suggest"
)

// outcome is what was counted, for one seed or for several.
type outcome struct {
	classes  map[string]*counts // by class, and in a class of several forms by class and form
	overall  []overall          // for each seed
	rules    map[string]int     // false edits, by rule
	refused  map[string]int     // edits that the gate refused, by rule
	tools    int                // that were not damaged
	affected int                // of these, tools with a false edit
}

// counts are those of a class.
type counts struct {
	damaged, repaired int
	edited            int   // not repaired, but edited
	before, after     tally // of the damaged tools, in round 1 and round 2
	intact            tally // of the same tools without damage
}

// overall are the figures of one seed.
type overall struct {
	seed              uint64
	all               counts
	falseEdits, tools int
}

func newOutcome() *outcome {
	return &outcome{classes: map[string]*counts{}, rules: map[string]int{}, refused: map[string]int{}}
}

func (o *outcome) at(class string) *counts {
	if o.classes[class] == nil {
		o.classes[class] = &counts{}
	}
	return o.classes[class]
}

func (o *outcome) add(p *outcome) {
	for class, c := range p.classes {
		o.at(class).add(c)
	}
	o.overall = append(o.overall, p.overall...)
	for _, pair := range [][2]map[string]int{{o.rules, p.rules}, {o.refused, p.refused}} {
		for rule, n := range pair[1] {
			pair[0][rule] += n
		}
	}
	o.tools, o.affected = o.tools+p.tools, o.affected+p.affected
}

// simulate runs two rounds with damaged tools and one with undamaged ones.
func simulate(ctx context.Context, c *catalog, seed uint64, sessions int, misread float64) (*outcome, error) {
	dir, err := os.MkdirTemp("", "parley-learning-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	o := newOutcome()
	damaged := deal(c, rand.New(rand.NewPCG(seed, 0)))
	w := newWorld(c, damaged, filepath.Join(dir, "damaged"), misread)
	before, err := w.round(ctx, "before", sessions, seed)
	if err != nil {
		return nil, err
	}
	proposed, err := w.suggestions()
	if err != nil {
		return nil, err
	}
	made, err := w.apply(ctx, proposed)
	if err != nil {
		return nil, err
	}
	after, err := w.round(ctx, "after", sessions, seed)
	if err != nil {
		return nil, err
	}
	twin := newWorld(c, nil, filepath.Join(dir, "twin"), misread)
	intact, err := twin.round(ctx, "before", sessions, seed)
	if err != nil {
		return nil, err
	}
	wrong, err := twin.suggestions()
	if err != nil {
		return nil, err
	}
	for _, t := range c.wanted() {
		d := damaged[t]
		if d == nil || before[t] == nil || after[t] == nil || intact[t] == nil {
			continue
		}
		ok, err := w.repaired(ctx, d, made.applied[t])
		if err != nil {
			return nil, err
		}
		keys := []string{d.fact.class}
		if d.form != "" {
			keys = append(keys, d.fact.class+": "+d.form)
		}
		for _, key := range keys {
			k := o.at(key)
			k.damaged++
			if ok {
				k.repaired++
			} else if len(made.applied[t]) > 0 {
				k.edited++
			}
			k.before.add(*before[t])
			k.after.add(*after[t])
			k.intact.add(*intact[t])
		}
	}
	for _, r := range made.refused {
		o.refused[strings.TrimPrefix(r.Edit.Origin, "rule ")]++
	}
	o.countFalse(twin, wrong)
	all, falseEdits := o.sum()
	o.overall = []overall{{seed, all, falseEdits, o.tools}}
	return o, nil
}

// countFalse counts the edits that were proposed for tools without damage.
func (o *outcome) countFalse(w *world, wrong []suggest.Suggestion) {
	affected := map[*tool]bool{}
	for _, s := range wrong {
		o.rules[s.Rule]++
		affected[w.state.tools[s.Plugin+"."+s.Edit.Tool]] = true
	}
	o.tools, o.affected = len(w.c.wanted()), len(affected)
}

// sum returns the counts of all classes, and the false edits.
func (o *outcome) sum() (all counts, falseEdits int) {
	for class, c := range o.classes {
		if !strings.Contains(class, ":") {
			all.add(c)
		}
	}
	for _, n := range o.rules {
		falseEdits += n
	}
	return all, falseEdits
}

func (k *counts) add(o *counts) {
	k.damaged, k.repaired, k.edited = k.damaged+o.damaged, k.repaired+o.repaired, k.edited+o.edited
	k.before.add(o.before)
	k.after.add(o.after)
	k.intact.add(o.intact)
}

// report returns the tables.
func (o *outcome) report() string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	head := func(what string) {
		line("| %s | damaged | repaired | share | other edits | first try: round 1 | round 2 | undamaged | gain |",
			what)
		line("|---|---|---|---|---|---|---|---|---|")
	}
	row := func(name string, k *counts) {
		line("| %s | %d | %d | %s | %d | %s | %s | %s | %+.1f |", name, k.damaged, k.repaired,
			share(k.repaired, k.damaged), k.edited, k.before, k.after, k.intact, 100*(k.after.share()-k.before.share()))
	}
	all, falseEdits := o.sum()
	head("class")
	names := slices.Sorted(maps.Keys(o.classes))
	for _, class := range names {
		if !strings.Contains(class, ":") {
			row(class, o.classes[class])
		}
	}
	row("**all**", &all)
	line("")
	head("form of a class")
	for _, class := range names {
		if strings.Contains(class, ":") {
			row(class, o.classes[class])
		}
	}
	line("")
	line("%d false edits of %d undamaged tools, %.1f in 100; tools with one: %s.\nBy rule: %s.\n"+
		"Edits of damaged tools that the gate refused: %s.", falseEdits, o.tools, in100(falseEdits, o.tools),
		share(o.affected, o.tools), byRule(o.rules), byRule(o.refused))
	line("")
	line("| seed | repaired | false edits in 100 tools | first try: round 1 | round 2 | undamaged |")
	line("|---|---|---|---|---|---|")
	for _, s := range o.overall {
		line("| %d | %s | %.1f | %s | %s | %s |", s.seed, share(s.all.repaired, s.all.damaged),
			in100(s.falseEdits, s.tools), s.all.before, s.all.after, s.all.intact)
	}
	return b.String()
}

func in100(n, of int) float64 { return 100 * float64(n) / float64(max(1, of)) }

func (t tally) share() float64 { return float64(t.first) / float64(max(1, t.of)) }

// String returns the share as a percentage, with its interval.
func (t tally) String() string { return share(t.first, t.of) }

func share(n, of int) string {
	low, high := stats.Wilson(n, of)
	return fmt.Sprintf("%.1f %% (%.1f to %.1f)", 100*float64(n)/float64(max(1, of)), 100*low, 100*high)
}

// byRule lists numbers, the greatest first.
func byRule(n map[string]int) string {
	var parts []string
	for _, rule := range slices.SortedFunc(maps.Keys(n), func(a, b string) int {
		return cmp.Or(n[b]-n[a], cmp.Compare(a, b))
	}) {
		parts = append(parts, fmt.Sprintf("%s %d", rule, n[rule]))
	}
	return cmp.Or(strings.Join(parts, ", "), "none")
}
