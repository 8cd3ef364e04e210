package parley_test

import (
	"testing"

	"github.com/parley-tools/parley"
	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/wasm/store"
	"github.com/parley-tools/parley/internal/testhome"
)

// A published plugin is listed and called, replaces no plugin of the host, and goes when it is no longer published.
func TestPublished(t *testing.T) {
	var published []host.Provider
	var version uint64
	p, err := parley.Open(t.Context(), parley.Config{Home: testhome.New(t),
		Fleet: parley.Fleet{Published: func(*parley.Parley) ([]host.Provider, uint64) { return published, version }}})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	swaps := 0
	cancel, err := p.Subscribe(func(e host.Event) {
		if e.Op == "catalog" {
			swaps++
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	defer cancel()
	publish := func(names ...string) {
		published, version = nil, version+1
		for _, name := range names {
			c, err := store.ReadCandidate(fixture("smallest"), parley.Version)
			if err != nil {
				t.Fatal(err)
			}
			src := c.Source()
			src.Info.Name, src.Info.Version = name, "9.9.9"
			published = append(published, p.Engine().Provider(src))
		}
	}
	for _, step := range []struct {
		name  string
		do    func()
		found map[string]string // versions by names; "" for a plugin that is not there
		swaps int
	}{
		{"none", func() {}, map[string]string{"smallest": ""}, 0},
		{"one", func() { publish("smallest") }, map[string]string{"smallest": "9.9.9"}, 1},
		{"the same", func() {}, map[string]string{"smallest": "9.9.9"}, 1},
		{"with the name of a shipped one", func() { publish("smallest", "Text") },
			map[string]string{"smallest": "9.9.9", "text": "0.1.0"}, 2},
		{"one is installed", func() {
			if _, err := p.Install(t.Context(), fixture("smallest")); err != nil {
				t.Fatal(err)
			}
		}, map[string]string{"smallest": "1.0.0"}, 3},
		{"it is removed", func() {
			if _, err := p.Admission().Remove("smallest"); err != nil {
				t.Fatal(err)
			}
		}, map[string]string{"smallest": "9.9.9"}, 4},
		{"withdrawn", func() { publish() }, map[string]string{"smallest": "", "text": "0.1.0"}, 5},
	} {
		step.do()
		catalog, err := p.Catalog()
		if err != nil {
			t.Fatal(err)
		}
		for name, want := range step.found {
			got := ""
			if of, ok := catalog.Provider(name); ok {
				got = of.Info().Version
			}
			if got != want {
				t.Errorf("%s: %s has the version %q, want %q", step.name, name, got, want)
			}
		}
		if _, err := p.Call(t.Context(), "smallest.call", nil); (err == nil) != (step.found["smallest"] != "") {
			t.Errorf("%s: a call: %v", step.name, err)
		}
		if swaps != step.swaps {
			t.Errorf("%s: %d events, want %d", step.name, swaps, step.swaps)
		}
	}
}
