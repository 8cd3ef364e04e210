package tutorial

import (
	"strings"
	"testing"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/manifest"
)

// plugin is a provider that can only be looked up.
type plugin struct {
	host.Provider
	m *manifest.Manifest
}

func (p plugin) Info() host.Info                          { return host.Info{Name: p.m.Name} }
func (p plugin) Groups() ([]host.GroupLine, error)        { return nil, nil }
func (p plugin) Names() ([]string, error)                 { return nil, nil }
func (p plugin) Tool(name string) (*manifest.Tool, error) { return p.m.Tool(name), nil }

func TestWalk(t *testing.T) {
	catalog, err := host.NewCatalog(plugin{m: &manifest.Manifest{Name: "shop",
		Tools: []manifest.Tool{{Name: "add"}, {Name: "sell"}}}})
	if err != nil {
		t.Fatal(err)
	}
	steps := []manifest.Step{
		{Say: "Look around.", Run: "parley shop --list"},
		{Say: "Add something.", Run: "parley shop add tea"},
		{Say: "This is what it was for."},
		{Say: "Find out how to sell.", Run: `parley shop --search "sell tea"`},
		{Say: "Sell what is not there.", Run: `parley call shop.sell --params '{"what":"it''s"}'`,
			Expect: &manifest.Expect{ExitCode: 10}},
		{Say: "That is all.\x1b[2J"},
	}
	add, search := host.Record{Tool: "shop.Add", Code: "ok"}, host.Record{Op: "search", Code: "ok"}
	sold := host.Record{Tool: "shop.sell", Code: "ok"}
	soldOut := host.Record{Tool: "shop.sell", Code: "tool_failed", ExitCode: 10}
	wrong := host.Record{Tool: "shop.add", Code: "invalid_args", ExitCode: 81}
	for _, c := range []struct {
		name     string
		records  []host.Record
		states   string // d: done, n: now, l: later
		tried    int
		finished bool
	}{
		{"nothing", nil, "nnllll", 0, false},
		{"one", []host.Record{add}, "ddnnll", 0, false},
		{"described is not called", []host.Record{{Op: "describe", Tool: "shop.add"}}, "nnllll", 0, false},
		{"failed", []host.Record{wrong, wrong}, "nnllll", 81, false},
		{"failed, then not", []host.Record{wrong, add}, "ddnnll", 0, false},
		{"failed, after it was done", []host.Record{add, wrong}, "ddnnll", 0, false},
		{"out of turn", []host.Record{search, soldOut, add}, "ddnnll", 0, false},
		{"two", []host.Record{add, search}, "ddddnl", 0, false},
		{"succeeded, and should fail", []host.Record{add, search, sold}, "ddddnl", 0, false},
		{"all, with others between", []host.Record{add, add, search, sold, soldOut, add}, "dddddn", 0, true},
	} {
		p := Walk(catalog, "shop", steps, c.records)
		states, done := "", 0
		for _, s := range p.Steps {
			states += s.State[:1]
			if s.State == Done {
				done++
			}
		}
		tried := p.LastTry != nil
		wantTried := c.tried != 0 || strings.HasPrefix(c.name, "succeeded")
		if states != c.states || p.Finished != c.finished || p.Done != done || tried != wantTried ||
			tried && p.LastTry.ExitCode != c.tried {
			t.Errorf("%s: %s, %+v", c.name, states, p)
		}
	}
	if say := Walk(catalog, "shop", steps, nil).Steps[5].Say; say != `That is all.\u001b[2J` {
		t.Errorf("said is %q", say)
	}
}

// TestWalkOfStepsThatCannotBeSeen: if no step of a tutorial leaves a trace, all steps are due at once.
func TestWalkOfStepsThatCannotBeSeen(t *testing.T) {
	catalog, err := host.NewCatalog()
	if err != nil {
		t.Fatal(err)
	}
	p := Walk(catalog, "gone", []manifest.Step{{Say: "List.", Run: "parley --list"},
		{Say: "Run what is not there.", Run: "parley gone tool"}}, nil)
	if !p.Finished || len(p.Due()) != 2 || p.Done != 0 {
		t.Errorf("%+v", p)
	}
}
