package main

import (
	"encoding/json"
	"strconv"
	"testing"

	"github.com/parley-tools/parley/cdp"
	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/advice"
	"github.com/parley-tools/parley/host/caller"
	"github.com/parley-tools/parley/host/step"
	"github.com/parley-tools/parley/manifest"
)

// opened is the provider of cdp in a session that has a page.
type opened struct{ *cdp.Provider }

func (o opened) Features() host.Features {
	f := o.Provider.Features()
	f.MissingPage = nil
	return f
}

// TestPastedExamplesAreThoseThatRan checks for every example of a command that what documentation offers to run is what
// ran on the prepared page: the same calls before it, and the same parameters.
func TestPastedExamplesAreThoseThatRan(t *testing.T) {
	provider := opened{provider}
	catalog, err := host.NewCatalog(provider)
	if err != nil {
		t.Fatal(err)
	}
	names, err := provider.Names()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		tool, err := provider.Tool(name)
		if err != nil {
			t.Fatal(err)
		}
		for tier := manifest.Tier2; tier <= manifest.Tier3; tier++ {
			docs := provider.Describe(tool, tier)
			for i, e := range docs.Examples {
				ran := append([]manifest.BatchLine{}, tool.Examples[i].Before...)
				ran = append(ran, manifest.BatchLine{Tool: docs.Name, Params: e.Params})
				if pasted := calls(t, catalog, advice.ExampleStep(docs, i)); pasted != inBrief(t, ran) {
					t.Errorf("%s %q runs in tier %d\n%s\nand ran as\n%s", name, e.Title, tier, pasted, inBrief(t, ran))
				}
			}
		}
	}
}

// calls returns the calls that a step makes.
func calls(t *testing.T, catalog *host.Catalog, s step.Step) string {
	if s.Op == step.OpCall {
		return inBrief(t, []manifest.BatchLine{{Tool: s.Tool, Params: s.Params}})
	}
	q := advice.PlanQuery{Tool: s.Tool, Params: s.Params, Principal: caller.Principal{Name: "cli"}}
	if len(s.Args) > 0 {
		q.Example, _ = strconv.Atoi(s.Args[0])
	}
	plan, err := advice.PlanOf(t.Context(), catalog, q)
	if err != nil {
		return err.Error()
	}
	return inBrief(t, plan.Calls)
}

// inBrief writes calls without the numbers of lines, one a line.
func inBrief(t *testing.T, calls any) (text string) {
	raw, err := json.Marshal(calls)
	if err != nil {
		t.Fatal(err)
	}
	var lines []struct {
		Tool    string
		Params  map[string]any `json:",omitempty"`
		Options map[string]any `json:",omitempty"`
	}
	if err := json.Unmarshal(raw, &lines); err != nil {
		t.Fatal(err)
	}
	for _, line := range lines {
		raw, _ := json.Marshal(line)
		text += string(raw) + "\n"
	}
	return text
}
