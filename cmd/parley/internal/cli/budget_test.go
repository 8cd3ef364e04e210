package cli

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/parley-tools/parley"
	"github.com/parley-tools/parley/cdp"
	"github.com/parley-tools/parley/cmd/parley/internal/command"
	"github.com/parley-tools/parley/cmd/parley/internal/tools"
	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/call"
	"github.com/parley-tools/parley/host/caller"
	"github.com/parley-tools/parley/manifest"
)

// tokens estimates the tokens of a text. All budgets use this estimate.
func tokens(text string) float64 { return float64(len(text)) / 4.5 }

// chromeWithoutBrowser returns the plugin for Chrome, for its catalog.
func chromeWithoutBrowser(t *testing.T) *cdp.Provider {
	return cdp.New(cdp.Config{
		RunDir: t.TempDir(), Env: func(string) string { return "" }, Version: parley.Version, Debug: func(string, ...any) {},
	})
}

// TestDomainBudgets limits the list of every domain, without events, to 22 tokens for each method on average, and its
// lines to pipedLine columns.
func TestDomainBudgets(t *testing.T) {
	p := chromeWithoutBrowser(t)
	groups, err := p.Groups()
	if err != nil {
		t.Fatal(err)
	}
	if len(groups) < 50 {
		t.Fatalf("%d domains", len(groups))
	}
	all, methods := 0.0, 0
	for _, g := range groups {
		out, _, code := inProcess(t, "cdp", g.Name, "--list")
		if code != 0 {
			t.Fatalf("%s: exit code %d", g.Name, code)
		}
		text, events := "", ""
		for line := range strings.Lines(out) {
			switch {
			case strings.HasPrefix(line, g.Name+"."):
				text += line
			case strings.Contains(line, " event") && events == "":
				events = line
			}
		}
		for _, line := range strings.Split(out, "\n") {
			if n := len([]rune(line)); n > tools.PipedLine {
				t.Errorf("%s: a line of %d columns: %s", g.Name, n, line)
			}
		}
		if got := tokens(text) / float64(g.Tools); got > 22 {
			t.Errorf("%s: %.1f tokens a method", g.Name, got)
		}
		if g.Events > 0 && !strings.Contains(events, fmt.Sprintf("%d event", g.Events)) {
			t.Errorf("%s does not count its %d events: %q", g.Name, g.Events, events)
		}
		all += tokens(text)
		methods += g.Tools
	}
	t.Logf("%d methods, %.1f tokens each", methods, all/float64(methods))
}

// TestDescribeBudget limits tier 2 of every tool of cdp to 400 tokens of JSON, with everything that a call needs, and
// 30 for when to use a command. Tier 1 must be smaller.
func TestDescribeBudget(t *testing.T) {
	p := chromeWithoutBrowser(t)
	catalog, err := host.NewCatalog(p)
	if err != nil {
		t.Fatal(err)
	}
	h, err := call.New(call.Config{Catalog: catalog, Policy: host.DenyAll{}})
	if err != nil {
		t.Fatal(err)
	}
	groups, err := p.Groups()
	if err != nil {
		t.Fatal(err)
	}
	app := command.NewApp(&command.Streams{Env: func(string) string { return "" }}, nil)
	seen, widest := 0, 0.0
	for _, group := range append([]string{""}, groupNames(groups)...) {
		lines, err := p.Lines(group)
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range lines {
			name := "cdp." + line.Name
			if group != "" && !strings.Contains(line.Name, ".") {
				name = "cdp." + group + "." + line.Name
			}
			var sizes []float64
			const limit = 500 // as JSON; as text it is 400
			for tier := 1; tier <= 3; tier++ {
				docs, err := h.Describe(t.Context(), caller.Principal{Name: "cli"}, name, tier)
				if err != nil {
					t.Fatalf("%s: %v", name, err)
				}
				raw, err := manifest.Marshal(tools.Described(app, docs))
				if err != nil {
					t.Fatal(err)
				}
				sizes = append(sizes, tokens(string(raw)))
				if tier == 2 {
					checkDocs(t, name, raw)
				}
			}
			if sizes[1] > limit {
				t.Errorf("%s: tier 2 is %.0f tokens", name, sizes[1])
			}
			if sizes[0] > sizes[1] || sizes[1] > sizes[2] {
				t.Errorf("%s: tiers of %.0f tokens", name, sizes)
			}
			widest = max(widest, sizes[1])
			seen++
		}
	}
	if seen < 650 {
		t.Errorf("only %d tools", seen)
	}
	t.Logf("%d tools, tier 2 at most %.0f tokens", seen, widest)
}

func groupNames(groups []host.GroupLine) (names []string) {
	for _, g := range groups {
		names = append(names, g.Name)
	}
	return names
}

// checkDocs checks that documentation has the required parts, and commands that a shell accepts.
func checkDocs(t *testing.T, name string, raw json.RawMessage) {
	t.Helper()
	var d struct {
		Name, Plugin, Tool, Brief, Effect string
		Tier                              int
		Parameters, Returns               []struct{ Name, Type string }
		Examples                          []struct {
			Title, Kind, Command string
			Params               json.RawMessage
		}
		Next []string
	}
	if err := json.Unmarshal(raw, &d); err != nil {
		t.Fatal(err)
	}
	if d.Name != name || d.Plugin != "cdp" || d.Tier != 2 || d.Brief == "" || d.Effect == "" ||
		len(d.Next) == 0 || len(d.Examples) == 0 {
		t.Errorf("%s: incomplete: %s", name, raw)
		return
	}
	for _, p := range append(d.Parameters, d.Returns...) {
		if p.Name == "" || p.Type == "" {
			t.Errorf("%s: a parameter without name or type: %s", name, raw)
		}
	}
	if e := d.Examples[0]; e.Title == "" || e.Kind == "" || !strings.HasPrefix(e.Command, "parley cdp "+d.Tool) &&
		!strings.HasPrefix(e.Command, "parley plan "+name) {
		t.Errorf("%s: its example is %+v", name, e)
	}
}

// TestPluginBudget limits --list to 60 tokens for each plugin.
func TestPluginBudget(t *testing.T) {
	text, _, _ := inProcess(t, "--list")
	if lines := strings.Count(text, "\n") - 1; tokens(text) > float64(60*lines) {
		t.Errorf("%.0f tokens for %d plugins", tokens(text), lines)
	}
	for _, line := range strings.Split(text, "\n") {
		if tokens(line) > 60 {
			t.Errorf("%.0f tokens: %s", tokens(line), line)
		}
	}
}

// TestZeroKnowledgeCosts limits what an agent that knows nothing reads up to its first call: 7 calls and 3,000 tokens
// by the lists, 4 calls and 1,500 tokens by search. The two calls of the browser themselves cost about 60 tokens each.
func TestZeroKnowledgeCosts(t *testing.T) {
	cost := func(limit float64, commands ...[]string) {
		t.Helper()
		sum := 120.0 // open and evaluate
		for _, c := range commands {
			out, errs, code := inProcess(t, c...)
			if code != 0 {
				t.Fatalf("parley %s: %s", strings.Join(c, " "), errs)
			}
			t.Logf("%5.0f  parley %s", tokens(out), strings.Join(c, " "))
			sum += tokens(out)
		}
		if sum > limit {
			t.Errorf("%.0f tokens, %.0f are allowed", sum, limit)
		}
	}
	cost(3000, []string{"--help", "--json"}, []string{"--list"}, []string{"cdp", "--list"},
		[]string{"cdp", "Network", "--list"}, []string{"cdp", "Network.getCookies", "--describe"})
	cost(1500, []string{"--help", "--json"}, []string{"search", "run javascript in the page"})
	cost(1500, []string{"--help", "--json"}, []string{"search", "run javascript in the page", "--json"})
}

// TestShippedTiers limits the tiers of the shipped plugins, as text.
func TestShippedTiers(t *testing.T) {
	for _, plugin := range []string{"text", "json"} {
		out, _, _ := inProcess(t, plugin, "--list", "--json")
		var list struct {
			Data struct{ Tools []struct{ Name string } }
		}
		if err := json.Unmarshal([]byte(out), &list); err != nil {
			t.Fatal(err)
		}
		for _, tool := range list.Data.Tools {
			for tier, limit := range map[int]float64{manifest.Tier1: 50, manifest.Tier2: 120, manifest.Tier3: 300} {
				raw, _, code := inProcess(t, tool.Name, "--describe", "--tier", fmt.Sprint(tier))
				if code != 0 {
					t.Fatal(tool.Name, code)
				}
				var docs host.Docs
				if err := json.Unmarshal([]byte(raw), &docs); err != nil {
					t.Fatal(err)
				}
				if got := docs.Tokens(); float64(got) > limit {
					t.Errorf("%s: tier %d is %d tokens of %.0f", tool.Name, tier, got, limit)
				}
			}
		}
	}
}
