package plugins

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/segment"
	"github.com/parley-tools/parley/manifest"
	"github.com/parley-tools/parley/manifest/sections"
)

var update = flag.Bool("update", false, "write generated files")

func shipped(t *testing.T) []File {
	files, err := Shipped()
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// TestGenerated compares index.json and the segments with what the manifests generate.
func TestGenerated(t *testing.T) {
	var infos []host.Info
	for _, f := range shipped(t) {
		m, err := manifest.Load(f.Manifest)
		if err != nil {
			t.Fatal(err)
		}
		infos = append(infos, host.Info{Name: m.Name, Version: m.Version, Kind: m.Kind, Brief: m.Docs.Brief,
			Groups: len(m.Groups), Tools: len(m.Tools)})
		generated(t, m.Name+"/segment", f.Segment, segment.Of(m))
	}
	want, err := json.MarshalIndent(infos, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	generated(t, "index.json", index, append(want, '\n'))
}

func generated(t *testing.T, path string, have, want []byte) {
	if *update {
		if err := os.WriteFile(path, want, 0o644); err != nil {
			t.Fatal(err)
		}
	} else if !bytes.Equal(have, want) {
		t.Errorf("%s differs from what the manifests generate; run go generate ./plugins", path)
	}
}

func TestEveryPluginIsShipped(t *testing.T) {
	var found []string
	for _, pattern := range []string{"*/plugin.go", "*/build.mjs"} {
		more, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		found = append(found, more...)
	}
	var folders []string
	for _, path := range found {
		folders = append(folders, filepath.Dir(path))
	}
	slices.Sort(folders)
	var names []string
	for _, f := range shipped(t) {
		names = append(names, f.Name)
	}
	if fmt.Sprint(folders) != fmt.Sprint(names) {
		t.Errorf("folders %v, shipped %v", folders, names)
	}
}

func TestShippedFilesAgree(t *testing.T) {
	for _, f := range shipped(t) {
		t.Run(f.Name, func(t *testing.T) {
			wasm, err := f.Wasm()
			if err != nil {
				t.Fatal(err)
			}
			if digest := fmt.Sprintf("sha256:%x", sha256.Sum256(wasm)); digest != f.Digest {
				t.Errorf("the wasm is %s, the file digest says %s", digest, f.Digest)
			}
			section, err := sections.ReadManifest(wasm)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(section, bytes.TrimSpace(f.Manifest)) {
				t.Error("the manifest in the wasm differs from manifest.json")
			}
			if len(f.Gzip) > 2_500_000 {
				t.Errorf("%d compressed bytes; the limit is 2.5 MB", len(f.Gzip))
			}
		})
	}
}

// TestManifestsTeach checks that the shipped manifests have an example of each kind, and describe every field. The
// linter's own test checks the rest.
func TestManifestsTeach(t *testing.T) {
	for _, f := range shipped(t) {
		m, err := manifest.Load(f.Manifest)
		if err != nil {
			t.Fatalf("%s: %v", f.Name, err)
		}
		if m.Name != f.Name {
			t.Errorf("folder %s contains plugin %s", f.Name, m.Name)
		}
		for i := range m.Tools {
			tool := &m.Tools[i]
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

// TestEffectsAreReviewed compares the effects of shipped plugins, on which rights depend, with those that were
// reviewed.
func TestEffectsAreReviewed(t *testing.T) {
	reviewed := map[string]string{
		"js.run":       "read", // its calls are those of its caller
		"json.convert": "read", "json.diff": "read", "json.merge": "read", "json.patch": "read", "json.query": "read",
		"json.repair": "read", "json.review": "read", "json.schema": "read",
		"text.count": "read", "text.decode": "read", "text.diff": "read", "text.encode": "read", "text.find": "read",
		"text.hash": "read", "text.replace": "read", "text.template": "read",
	}
	files, err := Shipped()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		m, err := manifest.Load(f.Manifest)
		if err != nil {
			t.Fatal(err)
		}
		for _, tool := range m.Tools {
			if name := m.Name + "." + tool.Name; reviewed[name] != tool.Effect {
				t.Errorf("%s has the effect %s, reviewed is %q", name, tool.Effect, reviewed[name])
			}
		}
	}
}
