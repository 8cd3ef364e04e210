package main

import (
	"encoding/json"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/parley-tools/parley/manifest"
	"github.com/parley-tools/parley/manifest/jsontext"
	"github.com/parley-tools/parley/manifest/schema"
)

// whole is the catalog that is measured.
var whole = sync.OnceValues(func() (*catalog, error) { return loadCatalog("../..", stride, 0) })

// TestCatalog checks that the catalog has enough tools, and enough facts of each class to damage.
func TestCatalog(t *testing.T) {
	c, err := whole()
	if err != nil {
		t.Fatal(err)
	}
	if n := len(c.wanted()); n < 100 || len(c.plugins) < 5 {
		t.Errorf("%d tools of %d plugins", n, len(c.plugins))
	}
	for _, class := range classes {
		n := 0
		for _, tool := range c.wanted() {
			n += min(1, len(tool.factsOf(class)))
		}
		if n < 10 {
			t.Errorf("%d tools can be damaged in the class %s", n, class)
		}
	}
}

// TestDamage damages tools in every class, and checks that describe, or search, no longer delivers the fact, and that
// the schema validates the same values as before.
func TestDamage(t *testing.T) {
	c, err := whole()
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]int{}
	for seed := range uint64(3) {
		for tool, d := range deal(c, rand.New(rand.NewPCG(seed, 0))) {
			seen[d.fact.class+" "+d.form]++
			doc := d.apply(tool.doc)
			before, after := tool.describe(&tool.doc), tool.describe(&doc)
			at := d.fact.class + " " + d.form + " of " + tool.name() + " " + d.fact.name
			switch d.fact.class {
			case classSearch:
				if len(doc.Tasks) > 0 || !tool.hidden {
					t.Errorf("%s: search still finds it", at)
				}
			case classClutter:
				if before.Text() == after.Text() { // which counts the parameters that it leaves out
					t.Errorf("%s: the clutter is not shown", at)
				}
			default:
				if !states(before, tool, d.fact) || states(after, tool, d.fact) || before.Text() == after.Text() {
					t.Errorf("%s: the fact is not removed:\n%s\n%s", at, before.Text(), after.Text())
				}
			}
			if d.fact.param != nil {
				checkSame(t, at, tool, d, doc.Params)
			}
		}
	}
	for _, kind := range []string{"enum then of strings", "enum else of null", "enum then of constants", "form pattern",
		"form range", "example values elsewhere", "example no other values", "alias ", "needs ", "from ", "slow ",
		"confusion ", "required ", "search ", "clutter "} {
		if seen[kind] == 0 {
			t.Errorf("no damage of the kind %q; got %v", kind, seen)
		}
	}
}

// checkSame checks that a damaged schema accepts the parameter's good values, refuses the bad ones, and requires it as
// before.
func checkSame(t *testing.T, at string, tool *tool, d *damage, damaged json.RawMessage) {
	t.Helper()
	valid := func(raw json.RawMessage, name string, value json.RawMessage) bool {
		compiled, err := schema.CompileUntrusted(raw)
		if err != nil {
			t.Fatalf("%s: %v", at, err)
		}
		params := map[string]json.RawMessage{}
		for i := range tool.params {
			if p := &tool.params[i]; p.Required && p.Name != d.fact.name {
				params[p.Name] = p.good[0]
			}
		}
		if value != nil {
			params[name] = value
		}
		decoded, err := jsontext.Decode(mustMarshal(params), jsontext.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		violations, err := compiled.Validate(decoded)
		return err == nil && len(violations) == 0
	}
	name := d.fact.name
	if d.odd != "" {
		name = d.odd
	}
	for _, value := range slices.Concat(d.fact.param.good, d.fact.param.bad, []json.RawMessage{nil}) {
		if before, after := valid(tool.doc.Params, d.fact.name, value), valid(damaged, name, value); before != after {
			t.Errorf("%s: %s is valid %v, then %v", at, value, before, after)
		}
	}
}

// TestStates checks what counts as stating a fact.
func TestStates(t *testing.T) {
	low, high := json.Number("1"), json.Number("99")
	size := &param{Param: manifest.Param{Name: "size", Enum: []json.RawMessage{[]byte(`"small"`), []byte(`"large"`)}}}
	size.accepts = func(v any) bool { return v == "ab-1" }
	ranged := &param{}
	ranged.keywords.Minimum, ranged.keywords.Maximum = &low, &high
	shaped := &param{accepts: size.accepts}
	shaped.keywords.Pattern = "^[a-z]{2}-[0-9]$"
	for _, c := range []struct {
		fact fact
		text string
		want bool
	}{
		{fact{classEnum, size, "size"}, "Small or large.", true},
		{fact{classEnum, size, "size"}, "Smaller or large.", false},
		{fact{classForm, ranged, "size"}, "From 1 to 99.", true},
		{fact{classForm, ranged, "size"}, "From 1 to 100.", false},
		{fact{classForm, shaped, "size"}, `Such as "ab-1".`, true},
		{fact{classForm, shaped, "size"}, "Expected: string matching ^[a-z]{2}-[0-9]$.", true},
		{fact{classForm, shaped, "size"}, "A name.", false},
		{fact{classRequired, size, "size"}, "How big. Required.", true},
		{fact{classRequired, size, "size"}, "How big.", false},
	} {
		d := &manifest.ToolDocs{Parameters: []manifest.Param{{Name: "size", Description: c.text}}}
		if got := states(d, &tool{}, c.fact); got != c.want {
			t.Errorf("%s in %q: %v", c.fact.class, c.text, got)
		}
	}
}

// TestSimulation checks loosely that the rules repair most damages and that agents get on better with the edited
// documentation, nearly as with the undamaged one, and that the same seed gives the same figures. Of so few tools one
// with false edits is more than 1 in 100; most say that parameters are rare which nobody in the simulation uses.
func TestSimulation(t *testing.T) {
	c, err := loadCatalog("../..", 12, 0)
	if err != nil {
		t.Fatal(err)
	}
	run := func(sessions int) *outcome {
		o, err := simulate(t.Context(), c, 1, sessions, misreadRate)
		if err != nil {
			t.Fatal(err)
		}
		return o
	}
	o := run(900)
	all, _ := o.sum()
	if gain := all.after.share() - all.before.share(); all.damaged < 60 || in100(all.repaired, all.damaged) < 80 ||
		gain < 0.2 || all.intact.share() < 0.85 || in100(o.affected, o.tools) > 4 {
		t.Errorf("the figures are far off:\n%s", o.report())
	}
	if a, b := run(40).report(), run(40).report(); a != b {
		t.Errorf("two runs with one seed:\n%s\n%s", a, b)
	}
}
