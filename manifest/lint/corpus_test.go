package lint

import (
	"bufio"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/parley-tools/parley/manifest"
)

// foreign returns the tools of third-party servers as manifests.
func foreign(t *testing.T) []*manifest.Manifest {
	t.Helper()
	in, err := os.Open("../../testdata/search/others_tools.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	byName := map[string]*manifest.Manifest{}
	var list []*manifest.Manifest
	for lines := bufio.NewScanner(in); lines.Scan(); {
		var tool struct {
			Plugin, Name, Description string
			Params                    []struct {
				Name, Description string
				Enum              []string
			}
		}
		if err := json.Unmarshal(lines.Bytes(), &tool); err != nil {
			t.Fatal(err)
		}
		properties := map[string]any{}
		for _, p := range tool.Params {
			properties[p.Name] = map[string]any{"type": "string", "description": p.Description}
			if len(p.Enum) > 0 {
				properties[p.Name] = map[string]any{"type": "string", "description": p.Description, "enum": p.Enum}
			}
		}
		params, err := json.Marshal(map[string]any{"type": "object", "properties": properties})
		if err != nil {
			t.Fatal(err)
		}
		brief, _, _ := strings.Cut(tool.Description, ". ")
		m := byName[tool.Plugin]
		if m == nil {
			m = &manifest.Manifest{Name: tool.Plugin, Version: "1.0.0", Kind: manifest.KindExtism}
			byName[tool.Plugin] = m
			list = append(list, m)
		}
		m.Tools = append(m.Tools, manifest.Tool{Name: tool.Name, Effect: manifest.EffectRead, Params: params,
			Docs: manifest.Docs{Brief: brief, Standard: tool.Description}})
	}
	return list
}

// TestForeign limits false positives: the texts of these servers are honest, so none may break a rule of poisoning, and
// few a rule about names and descriptions. The corpus does not say which parameters are required, so rules about
// that are not checked.
func TestForeign(t *testing.T) {
	list := foreign(t)
	var others []Plugin
	tools := 0
	for _, m := range list {
		p := Plugin{Name: m.Name}
		for _, tool := range m.Tools {
			p.Tools = append(p.Tools, &manifest.Tool{Name: tool.Name})
			tools++
		}
		others = append(others, p)
	}
	if tools < 600 {
		t.Fatalf("only %d tools", tools)
	}
	most := map[string]int{ // in percent of the tools
		"verb-name": 14, "near-duplicate": 1, "one-task": 1, "tautology": 5, "plain-brief": 1, "constraints": 4,
		"enum-in-prose": 1, "reference": 0, "tier-length": 0, "typed": 0, "nesting": 0,
	}
	counts := map[string]int{}
	for _, m := range list {
		for _, f := range Check(m, Neighbors{Plugins: others}) {
			counts[f.Rule]++
			if f.Severity == Error {
				t.Errorf("%s: %v", m.Name, f)
			}
		}
	}
	t.Logf("%d tools: %v", tools, counts)
	for name, percent := range most {
		if counts[name]*100 > percent*tools {
			t.Errorf("%d of %d tools break %s; at most %d %%", counts[name], tools, name, percent)
		}
	}
}

// rigs are plugins that only test a host. Their tools are named for what they do to it, nobody searches for them,
// and most cannot have an example.
var rigs = []string{"assets", "conformance", "echo", "escape", "fetch", "image", "smallest", "work"}

// TestOurs checks the shipped plugins and those in testdata.
func TestOurs(t *testing.T) {
	var files []string
	for _, glob := range []string{"../../plugins/*/manifest.json", "../../testdata/*/*.manifest.json",
		"../../testdata/home-0.1.0/home/data/plugins/*/*/manifest.json"} {
		found, err := filepath.Glob(glob)
		if err != nil || len(found) == 0 {
			t.Fatalf("%s: %v", glob, err)
		}
		files = append(files, found...)
	}
	for _, path := range files {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		m, err := manifest.Parse(data, "0.1.0")
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range Check(m, Neighbors{}) {
			rig := slices.Contains(rigs, m.Name) || strings.Contains(path, "home-0.1.0") // of an older version
			if !rig || f.Severity == Error {
				t.Errorf("%s: %v", path, f)
			}
		}
	}
}

func BenchmarkCheck(b *testing.B) {
	data, err := os.ReadFile("../../plugins/text/manifest.json")
	if err != nil {
		b.Fatal(err)
	}
	m, err := manifest.Load(data)
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		Check(m, Neighbors{})
	}
}
