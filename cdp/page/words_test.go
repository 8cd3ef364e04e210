package page

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/parley-tools/parley/cdp"
	"github.com/parley-tools/parley/internal/schemafacts"
	"github.com/parley-tools/parley/manifest"
	"github.com/parley-tools/parley/manifest/lint"
	"github.com/parley-tools/parley/manifest/schema"
)

// whole returns the manifest with the tools.
func whole(t *testing.T) *manifest.Manifest {
	t.Helper()
	m, err := New(cdp.New(cdp.Config{})).Manifest()
	if err != nil {
		t.Fatal(err)
	}
	all := *m
	all.Tools = tools.All()
	return &all
}

// TestParses holds the manifest to the strict reader, as that of a plugin.
func TestParses(t *testing.T) {
	m := whole(t)
	m.Kind = manifest.KindParley
	text, err := manifest.Marshal(m)
	if err == nil {
		_, err = manifest.Parse(text, "0.1.0")
	}
	if err != nil {
		t.Error(err)
	}
}

// known are warnings about tools that are named for what they show, and that set some of many things at a time.
var known = []string{
	"verb-name /tools/31/name", "one-task /tools/3/params/properties/action",
	"one-task /tools/28/params/properties/action",
	"one-task /tools/29/params/properties/action", "required /tools/29/params/required",
	"required /tools/30/params/required",
}

func TestLint(t *testing.T) {
	m := whole(t)
	m.Capabilities.Browser = &manifest.BrowserCapability{Context: "session", Why: "acts there"} // as a plugin would
	for _, f := range lint.Check(m, lint.Neighbors{}) {
		if f.Severity == lint.Error || !slices.Contains(known, f.Rule+" "+f.Pointer) {
			t.Error(f)
		}
	}
}

// TestChromeContradictsNothing checks the texts of cdp, most of which are those of the protocol.
func TestChromeContradictsNothing(t *testing.T) {
	chrome := cdp.New(cdp.Config{})
	m, err := chrome.Manifest()
	if err != nil {
		t.Fatal(err)
	}
	names, err := chrome.Names()
	if err != nil || len(names) < 500 {
		t.Fatalf("%d tools, %v", len(names), err)
	}
	whole := *m
	for _, name := range names {
		tool, err := chrome.Tool(name)
		if err != nil {
			t.Fatal(err)
		}
		whole.Tools = append(whole.Tools, *tool)
	}
	m = &whole
	for i := range m.Tools {
		for _, c := range lint.Contradictions(m, &m.Tools[i]) {
			t.Errorf("%s %s: %v", m.Tools[i].Name, c.Pointer, c)
		}
	}
}

// TestEveryFactIsShown checks the tiers of all tools against their schemas.
func TestEveryFactIsShown(t *testing.T) {
	m := whole(t)
	for _, tool := range m.Tools {
		schemafacts.CheckTiers(t, &tool, manifest.Describe(m, &tool, manifest.Tier2),
			manifest.Describe(m, &tool, manifest.Tier3), true)
	}
}

// TestManifestTeaches checks that each tool has an example of each kind that its schemas accept, and describes every
// field, and that every code that it lists is declared.
func TestManifestTeaches(t *testing.T) {
	m, _ := New(cdp.New(cdp.Config{})).Manifest()
	for _, tool := range tools.All() {
		kinds := map[string]bool{}
		returns, err := schema.CompileTrusted(tool.Returns)
		if err != nil {
			t.Fatal(tool.Name, err)
		}
		for _, e := range tool.Examples {
			kinds[e.Kind] = true
			if e.ExitCode == 0 && e.Result == nil {
				t.Errorf("%s: example %q has no result", tool.Name, e.Title)
			}
			if e.ExitCode > 1 && e.ExitCode < 80 &&
				len(tool.ExitCodes) > 0 && !slices.Contains(tool.ExitCodes, m.ExitCode(e.ExitCode).Name) {
				t.Errorf("%s: example %q ends with a code that it does not list", tool.Name, e.Title)
			}
			var result any
			if e.Result != nil && json.Unmarshal(e.Result, &result) == nil {
				if wrong, err := returns.Validate(result); err != nil || len(wrong) > 0 {
					t.Errorf("%s: example %q: %v %v", tool.Name, e.Title, wrong, err)
				}
			}
		}
		for _, kind := range []string{"minimal", "common", "full", "error"} {
			if !kinds[kind] {
				t.Errorf("%s: no %s example", tool.Name, kind)
			}
		}
		for _, p := range append(manifest.Params(tool.Params), manifest.Params(tool.Returns)...) {
			if p.Description == "" {
				t.Errorf("%s: %s has no description", tool.Name, p.Name)
			}
		}
	}
}
