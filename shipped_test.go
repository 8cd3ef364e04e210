package parley

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/call"
	"github.com/parley-tools/parley/host/caller"
	"github.com/parley-tools/parley/host/policy"
	"github.com/parley-tools/parley/host/providertest"
	"github.com/parley-tools/parley/host/wasm"
	"github.com/parley-tools/parley/host/wasm/store"
	"github.com/parley-tools/parley/internal/testhome"
	"github.com/parley-tools/parley/manifest"
	"github.com/parley-tools/parley/manifest/jsontext"
	"github.com/parley-tools/parley/plugins"
)

// testEngine returns an engine whose cache has the code of the shipped plugins.
func testEngine(t *testing.T) *wasm.Engine {
	e := wasm.New(wasm.Config{HostVersion: Version, CacheDir: filepath.Join(testhome.New(t), "cache", "wasm")})
	t.Cleanup(func() { _ = e.Close(t.Context()) })
	return e
}

// TestShippedExamples runs every runnable example of every shipped plugin, and of the fixture of kind wasi, through the
// whole path of a call, and compares the outcome with the declared one.
func TestShippedExamples(t *testing.T) {
	engine := testEngine(t)
	shipped, err := plugins.Shipped()
	if err != nil {
		t.Fatal(err)
	}
	var providers []host.Provider
	for _, f := range shipped {
		providers = append(providers, engine.Provider(shippedSource(f)))
	}
	fixture, err := store.ReadCandidateFile(filepath.Join("testdata", "wasm", "rev.wasm"), Version)
	if err != nil {
		t.Fatal(err)
	}
	providers = append(providers, engine.Provider(fixture.Source()))
	catalog, err := host.NewCatalog(providers...)
	if err != nil {
		t.Fatal(err)
	}
	h, err := call.New(call.Config{Catalog: catalog, Policy: policy.Default()})
	if err != nil {
		t.Fatal(err)
	}
	ran := 0
	for _, p := range catalog.Providers() {
		m, err := p.Manifest()
		if err != nil {
			t.Fatal(err)
		}
		for _, tool := range m.Tools {
			for _, e := range tool.Examples {
				if e.Runnable {
					ran++
					t.Run(fmt.Sprintf("%s.%s/%s", m.Name, tool.Name, e.Title), func(t *testing.T) {
						a, _ := h.Call(t.Context(), host.Call{Name: m.Name + "." + tool.Name, Params: e.Params,
							Principal: caller.Principal{Name: "cli"}})
						compare(t, e, a)
					})
				}
			}
		}
	}
	if ran < 20 {
		t.Errorf("only %d examples are runnable", ran)
	}
}

func compare(t *testing.T, e manifest.Example, a *host.Answer) {
	exit := 0
	if a.Err != nil {
		exit = a.Err.ExitCode()
	}
	if exit != e.ExitCode {
		t.Fatalf("exit code %d (%v), the example declares %d", exit, a.Err, e.ExitCode)
	}
	if len(e.Result) > 0 && canonical(t, e.Result) != canonical(t, a.Data) {
		t.Errorf("returned %s, the example declares %s", a.Data, e.Result)
	}
}

func canonical(t *testing.T, raw json.RawMessage) string {
	v, err := jsontext.Decode(raw, jsontext.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	return string(jsontext.Marshal(v))
}

// TestContracts runs the tests for providers on the shipped plugins and the C fixture.
func TestContracts(t *testing.T) {
	engine := testEngine(t)
	shipped, err := plugins.Shipped()
	if err != nil {
		t.Fatal(err)
	}
	calls := map[string]providertest.Case{
		"text": {Tool: "hash", Params: `{"text":"hello"}`, Want: `{"hex":"2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"}`},
		"js":   {Tool: "run", Params: `{"source":"return 1"}`, Want: `1`},
		"json": {Tool: "query", Params: `{"data":{"a":1},"filter":".a"}`, Want: `{"results":[1]}`},
	}
	for _, f := range shipped {
		t.Run(f.Name, func(t *testing.T) {
			providertest.Run(t, engine.Provider(shippedSource(f)),
				providertest.Options{Calls: []providertest.Case{calls[f.Name]}})
		})
	}
	t.Run("echo", func(t *testing.T) {
		c, err := store.ReadCandidateFile(filepath.Join("testdata", "wasm", "echo.wasm"), Version)
		if err != nil {
			t.Fatal(err)
		}
		providertest.Run(t, engine.Provider(c.Source()), providertest.Options{
			Calls: []providertest.Case{{Tool: "echo", Params: `{"a":1}`}},
			Slow:  &providertest.Case{Tool: "spin"},
		})
	})
}

// TestShippedExamplesAreVerified checks that describe says of the examples that TestShippedExamples runs, and of no
// others, that they are true.
func TestShippedExamplesAreVerified(t *testing.T) {
	p := New(Config{Home: t.TempDir()})
	t.Cleanup(func() { _ = p.Close() })
	catalog, err := p.Catalog()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"js", "json", "text"} {
		provider, _ := catalog.Provider(name)
		m, err := provider.Manifest()
		if err != nil {
			t.Fatal(err)
		}
		for i := range m.Tools {
			for j, e := range manifest.Describe(m, &m.Tools[i], manifest.Tier3).Examples {
				if verified := e.Verified == "parley "+Version; verified != m.Tools[i].Examples[j].Runnable {
					t.Errorf("%s.%s %q: verified %q", name, m.Tools[i].Name, e.Title, e.Verified)
				}
			}
		}
	}
}

// TestShippedManifestsParse holds what ships to the strict reader, which a start does not run.
func TestShippedManifestsParse(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("plugins", "*", "manifest.json"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%v, %v", files, err)
	}
	for _, path := range files {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := manifest.Parse(data, Version); err != nil {
			t.Errorf("%s: %v", path, err)
		}
	}
}
