package plugins

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"os"
	"testing"

	"github.com/parley-tools/parley/manifest"
)

func TestEveryFolderIsShipped(t *testing.T) {
	entries, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	var folders []string
	for _, e := range entries {
		if e.IsDir() {
			folders = append(folders, e.Name())
		}
	}
	var names []string
	for _, f := range Shipped() {
		names = append(names, f.Name)
	}
	if fmt.Sprint(folders) != fmt.Sprint(names) {
		t.Errorf("folders %v, shipped %v", folders, names)
	}
}

func TestShippedFilesAgree(t *testing.T) {
	for _, f := range Shipped() {
		t.Run(f.Name, func(t *testing.T) {
			wasm, err := f.Wasm()
			if err != nil {
				t.Fatal(err)
			}
			if digest := fmt.Sprintf("sha256:%x", sha256.Sum256(wasm)); digest != f.Digest {
				t.Errorf("the wasm is %s, the file digest says %s", digest, f.Digest)
			}
			section, err := manifest.ReadSection(wasm)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(section, bytes.TrimSpace(f.Manifest)) {
				t.Error("the wasm carries another manifest than manifest.json")
			}
			if len(f.Gzip) > 2_500_000 {
				t.Errorf("%d bytes packed, over 2.5 MB", len(f.Gzip))
			}
		})
	}
}

// TestManifestsTeach holds what ships to the budgets that authors are given.
func TestManifestsTeach(t *testing.T) {
	budget := map[int]int{manifest.Tier1: 50, manifest.Tier2: 120, manifest.Tier3: 300}
	for _, f := range Shipped() {
		m, err := manifest.Load(f.Manifest)
		if err != nil {
			t.Fatalf("%s: %v", f.Name, err)
		}
		if m.Name != f.Name {
			t.Errorf("folder %s holds plugin %s", f.Name, m.Name)
		}
		for i := range m.Tools {
			tool := &m.Tools[i]
			for tier, most := range budget {
				if n := manifest.Describe(m, tool, tier).Tokens(); n > most {
					t.Errorf("%s.%s: tier %d takes %d tokens, at most %d", m.Name, tool.Name, tier, n, most)
				}
			}
			kinds := map[string]bool{}
			for _, e := range tool.Examples {
				kinds[e.Kind] = true
				if e.ExitCode == 0 && e.Result == nil {
					t.Errorf("%s.%s: example %q has no result", m.Name, tool.Name, e.Title)
				}
			}
			for _, kind := range []string{"minimal", "common", "full", "error"} {
				if !kinds[kind] {
					t.Errorf("%s.%s: no %s example", m.Name, tool.Name, kind)
				}
			}
			for _, p := range append(manifest.Params(tool.Params), manifest.Params(tool.Returns)...) {
				if p.Description == "" {
					t.Errorf("%s.%s: %s has no description", m.Name, tool.Name, p.Name)
				}
			}
		}
	}
}
