package parley_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/parley-tools/parley"
	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/call"
	"github.com/parley-tools/parley/internal/testhome"
	"github.com/parley-tools/parley/manifest"
)

// TestMain also runs the child processes that a host starts from the test binary.
func TestMain(m *testing.M) {
	parley.Child()
	os.Exit(m.Run())
}

func fixture(name string) string { return filepath.Join("testdata", "wasm", name+".wasm") }

// TestLiveCatalog installs, replaces and removes a plugin while a host runs, from another host over the same folders.
func TestLiveCatalog(t *testing.T) {
	home := t.TempDir()
	p, err := parley.Open(t.Context(), parley.Config{Home: home})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	var mu sync.Mutex
	swaps := 0
	cancel, err := p.Subscribe(func(e host.Event) {
		if e.Op == "catalog" {
			mu.Lock()
			defer mu.Unlock()
			swaps++
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	defer cancel()
	call := func() (string, error) {
		a, err := p.Call(t.Context(), "echo.echo", map[string]any{"a": 1})
		return string(a.Data), err
	}
	if _, err := call(); !errors.Is(err, host.NotFound) {
		t.Fatalf("before the install: %v", err)
	}

	other := parley.New(parley.Config{Home: home})
	defer other.Close()
	if _, err := other.Install(t.Context(), fixture("echo")); err != nil {
		t.Fatal(err)
	}
	if data, err := call(); err != nil || data != `{"a":1}` {
		t.Fatalf("after the install: %s, %v", data, err)
	}
	if found, err := p.Search(t.Context(), "echo"); err != nil || len(found.Results) == 0 ||
		!strings.HasPrefix(found.Results[0].Name, "echo.") {
		t.Errorf("a search after the install finds %+v, %v", found, err)
	}
	if _, err := other.Install(t.Context(), testhome.CopyPlugin(t, fixture("echo"), "99.0.0")); err != nil {
		t.Fatal(err)
	}
	infos, err := p.List()
	if err != nil || !strings.Contains(fmt.Sprint(infos), "echo 99.0.0") {
		t.Errorf("after the replacement: %v, %v", infos, err)
	}
	if data, err := call(); err != nil || data != `{"a":1}` {
		t.Fatalf("after the replacement: %s, %v", data, err)
	}
	if _, err := other.Admission().Remove("echo"); err != nil {
		t.Fatal(err)
	}
	if _, err := call(); !errors.Is(err, host.NotFound) {
		t.Errorf("after the removal: %v", err)
	}
	mu.Lock()
	defer mu.Unlock()
	if swaps != 3 {
		t.Errorf("subscribers got %d changes of the catalog, want 3", swaps)
	}
}

// TestRemoveBuiltin checks that a part of the binary cannot be removed like an installed plugin.
func TestRemoveBuiltin(t *testing.T) {
	p := parley.New(parley.Config{Home: t.TempDir()})
	defer p.Close()
	for name, want := range map[string]host.Code{"text": host.InvalidArgs, "cdp": host.InvalidArgs,
		"nothing": host.NotFound} {
		if _, err := p.Admission().Remove(name); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %s", name, err, want)
		}
	}
}

// TestBuiltinNames checks that the names of the built-in plugins, and only those, are known as such without a catalog.
func TestBuiltinNames(t *testing.T) {
	p := parley.New(parley.Config{Home: t.TempDir()})
	defer p.Close()
	catalog, err := p.Catalog()
	if err != nil {
		t.Fatal(err)
	}
	for _, of := range catalog.Providers() {
		if info := of.Info(); manifest.Builtin(info.Name) != (info.Kind == manifest.KindBuiltin) {
			t.Errorf("%s, of kind %s: Builtin is %v", info.Name, info.Kind, manifest.Builtin(info.Name))
		}
	}
}

// TestZeroPolicy checks that a host without a policy is an error, not a panic at the first call.
func TestZeroPolicy(t *testing.T) {
	catalog, err := host.NewCatalog()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := call.New(call.Config{Catalog: catalog}); !errors.Is(err, host.ConfigError) {
		t.Errorf("got %v", err)
	}
}
