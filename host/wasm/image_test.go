package wasm

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/grant"
	"github.com/parley-tools/parley/host/wasm/internal/guest"
	"github.com/parley-tools/parley/host/wasm/internal/instrument"
	"github.com/parley-tools/parley/host/wasm/internal/module"
	"github.com/parley-tools/parley/host/wasm/internal/world"
	"github.com/parley-tools/parley/manifest"
	"github.com/parley-tools/parley/manifest/sections"
)

// imageGuest returns the guest image of testdata, with another mode and manifest, and what the engine says about it.
// Each has compiled code of its own.
func imageGuest(t testing.TB, e *Engine, mode byte, change func(*manifest.Manifest)) (p *Provider, said func() string) {
	t.Helper()
	module := readFile(t, filepath.Join(guestDir, "image.wasm"))
	module = bytes.Replace(module, []byte("the mode is ."), append([]byte("the mode is "), mode), 1)
	m := loadManifest(t, readFile(t, filepath.Join(guestDir, "image.manifest.json")))
	m.Assets = &manifest.Assets{Path: "/lib"}
	if change != nil {
		change(m)
	}
	whole, err := sections.WriteAssets(module, packed(t, file("greeting", "hi")))
	must(t, err)
	e.cfg.CacheDir = t.TempDir()
	var mu sync.Mutex
	var log strings.Builder
	e.cfg.Debug = func(line string) {
		mu.Lock()
		defer mu.Unlock()
		log.WriteString(line + "\n")
	}
	return e.Provider(sourceOf(whole, m)), func() string {
		mu.Lock()
		defer mu.Unlock()
		return log.String()
	}
}

// hasImage reports whether the one slot of the engine has an image.
func hasImage(e *Engine) bool {
	found, _ := filepath.Glob(filepath.Join(e.cfg.CacheDir, "*", guest.ImageName))
	return len(found) == 1
}

// TestImage: a call that begins with an image returns what it returns without one, in each place where guests run, and
// finds nothing of the call before it.
func TestImage(t *testing.T) {
	plain := testEngine(t)
	plain.cfg.Fresh = true
	p, _ := imageGuest(t, plain, '.', nil)
	want, failed := invoke(t, p, "show", `{}`)
	if failed != nil || !strings.Contains(string(want.Data), `"greeting":"hi"`) || hasImage(plain) {
		t.Fatalf("%v, %v", want, failed)
	}
	for _, isolate := range []string{isolateNone, isolateCall, isolateProcess} {
		t.Run(isolate, func(t *testing.T) {
			if isolate != isolateNone {
				skipWithoutRunners(t)
			}
			e := runnerEngine(t)
			p, _ := imageGuest(t, e, '.', nil)
			for range 3 {
				r := requestFor(t, p, "show", `{}`)
				r.Isolate = isolate
				result, err := invokeRequest(t, p, r)
				if err != nil || string(result.Data) != string(want.Data) {
					t.Fatalf("%v, %v; want %s", result, err, want.Data)
				}
			}
			if !hasImage(e) {
				t.Error("there is no image")
			}
		})
	}
}

// TestNoImage: whoever does more before its first call than an image can hold has no image, and behaves as it would
// without.
func TestNoImage(t *testing.T) {
	asks := func(c manifest.Capabilities) func(*manifest.Manifest) {
		return func(m *manifest.Manifest) { m.Capabilities = c }
	}
	clock := asks(manifest.Capabilities{Clock: &manifest.PlainCapability{}})
	random := asks(manifest.Capabilities{Random: &manifest.PlainCapability{}})
	variables := asks(manifest.Capabilities{Env: []manifest.NamedCapability{{Name: "HOME"}}})
	folders := asks(manifest.Capabilities{FS: []manifest.FSCapability{{Path: "/d", Mode: "ro"}}})
	small := func(m *manifest.Manifest) { m.Limits.MemoryMiB = 64 }
	for _, tt := range []struct {
		name   string
		mode   byte
		change func(*manifest.Manifest)
		why    string // what the engine says; "" if it does not even try
		image  bool
		code   host.Code // of a call
	}{
		{name: "nothing else", mode: '.', image: true},
		{name: "a log line", mode: 'l', why: "calls log"},
		{name: "stderr", mode: 'e', why: "calls fd_write"},
		{name: "a trap", mode: 't', why: "unreachable", code: host.Trapped},
		{name: "an exit", mode: 'x', why: "calls proc_exit", code: host.ToolFailed},
		{name: "a sleep", mode: 's', why: "calls poll_oneoff"},
		{name: "an open file", mode: 'o', why: "open files"},
		{name: "an endless loop", mode: '8', why: "was stopped", code: host.Timeout},
		{name: "the time, which is fixed", mode: 'w', image: true},
		{name: "the time", mode: 'w', change: clock, why: "read the clock"},
		{name: "a clock that it does not read", mode: '.', change: clock, image: true},
		{name: "randomness", mode: '.', change: random},
		{name: "variables", mode: '.', change: variables},
		{name: "folders", mode: '.', change: folders},
		{name: "more memory than it may have", mode: 'm', change: small, image: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			e := testEngine(t)
			p, said := imageGuest(t, e, tt.mode, tt.change)
			r := requestFor(t, p, "show", `{}`)
			if tt.code == host.Timeout {
				_, err := p.load(t.Context(), waiter{}) // compiling takes longer than the call may
				must(t, err)
				r.Options.Timeout = 50 * time.Millisecond
			}
			_, err := invokeRequest(t, p, r)
			if tt.code == "" && err != nil || tt.code != "" && (err == nil || err.Code != tt.code) {
				t.Errorf("the call: %v, want %q", err, tt.code)
			}
			if hasImage(e) != tt.image {
				t.Errorf("has an image: %v", !tt.image)
			}
			if got := said(); strings.Contains(got, "without an image") != (tt.why != "") || !strings.Contains(got, tt.why) {
				t.Errorf("the engine says %q, want %q", got, tt.why)
			}
		})
	}
}

// TestOrderImage checks which manifests allow an image.
func TestOrderImage(t *testing.T) {
	module, err := module.RewriteModule(readFile(t, filepath.Join(guestDir, "image.wasm")), module.LargestModule)
	must(t, err)
	for _, tt := range []struct {
		name   string
		asks   manifest.Capabilities
		kind   string
		orders bool
	}{
		{"nothing", manifest.Capabilities{}, manifest.KindParley, true},
		{"the clock", manifest.Capabilities{Clock: &manifest.PlainCapability{}}, manifest.KindParley, true},
		{"randomness", manifest.Capabilities{Random: &manifest.PlainCapability{}}, manifest.KindParley, false},
		{"variables", manifest.Capabilities{Env: []manifest.NamedCapability{{Name: "HOME"}}}, manifest.KindParley, false},
		{"folders", manifest.Capabilities{FS: []manifest.FSCapability{{Path: "/d", Mode: "ro"}}}, manifest.KindParley, false},
		{"another kind", manifest.Capabilities{}, manifest.KindWASI, false},
	} {
		m := loadManifest(t, readFile(t, filepath.Join(guestDir, "image.manifest.json")))
		m.Kind, m.Capabilities = tt.kind, tt.asks
		if o := guest.OrderImage(module, m); (o != nil) != tt.orders {
			t.Errorf("%s: %+v", tt.name, o)
		}
	}
}

// TestTakeImage checks in this process what TestNoImage checks in a compiler: of what a guest could ask the host for
// while it initializes, it gets only what is the same in every call.
func TestTakeImage(t *testing.T) {
	original := readFile(t, filepath.Join(guestDir, "image.wasm"))
	assets := packed(t, file("greeting", "hi"))
	for _, tt := range []struct {
		mode  byte
		clock bool
		why   string // "" if there is an image
	}{
		{'.', true, ""}, {'w', false, ""}, {'w', true, "read the clock"}, {'o', false, "open files"},
		{'l', false, "calls log"}, {'e', false, "calls fd_write"}, {'x', false, "calls proc_exit"},
		{'s', false, "calls poll_oneoff"},
	} {
		dir := t.TempDir()
		must(t, os.WriteFile(filepath.Join(dir, world.AssetsName), assets, 0o600))
		changed := bytes.Replace(original, []byte("the mode is ."), append([]byte("the mode is "), tt.mode), 1)
		module, err := module.RewriteModule(changed, module.LargestModule)
		must(t, err)
		wasm, globals := instrument.ExportGlobals(module.Wasm)
		r := wazero.NewRuntimeWithConfig(t.Context(), wazero.NewRuntimeConfigInterpreter().
			WithCoreFeatures(api.CoreFeaturesV2|experimental.CoreFeaturesExtendedConst))
		compiled, err := r.CompileModule(t.Context(), wasm)
		must(t, err)
		_, err = guest.TakeImage(r, compiled, globals, dir,
			&guest.ImageOrder{Name: "image", Pages: 64 * world.PagesPerMiB, Assets: "/lib", Clock: tt.clock})
		if tt.why == "" && err != nil || tt.why != "" && (err == nil || !strings.Contains(err.Error(), tt.why)) {
			t.Errorf("%c: %v, want %q", tt.mode, err, tt.why)
		}
		must(t, r.Close(t.Context()))
	}
}

// TestWarmImage: where the manifest allows it, an example has run in the image. If it did what an image cannot hold,
// the image has the state before it. The guest counts its calls.
func TestWarmImage(t *testing.T) {
	warm := func(m *manifest.Manifest) {
		m.Warm = true
		m.Tools[0].Examples = []manifest.Example{
			{Params: []byte(`{}`), ExitCode: 10}, {Params: []byte(`{}`), Before: []manifest.BatchLine{{Tool: "image.show"}}},
			{Params: []byte(`{}`)},
		}
	}
	large := func(m *manifest.Manifest) {
		warm(m)
		m.Tools[0].Examples[2].Params = []byte(`{"` + strings.Repeat("x", guest.MaxWarmUp) + `":1}`)
	}
	for _, tt := range []struct {
		name   string
		mode   byte
		change func(*manifest.Manifest)
		fresh  bool
		calls  string
	}{
		{"an example", '.', warm, false, `"calls":2`},
		{"an engine without images", '.', warm, true, `"calls":1`},
		{"no example is allowed", '.', nil, false, `"calls":1`},
		{"the example logs", 'L', warm, false, `"calls":1`},
		{"a large example", '.', large, false, `"calls":1`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			e := testEngine(t)
			e.cfg.Fresh = tt.fresh
			p, said := imageGuest(t, e, tt.mode, tt.change)
			for range 2 {
				r, err := invoke(t, p, "show", `{}`)
				if err != nil || !strings.Contains(string(r.Data), tt.calls) || !strings.Contains(string(r.Data), `"later":true`) {
					t.Errorf("%v, %v; want %s", r, err, tt.calls)
				}
			}
			if hasImage(e) == tt.fresh {
				t.Errorf("has an image: %v; the engine says %q", !tt.fresh, said())
			}
		})
	}
}

// TestImageBounds: an image needs its memory before the first call, and rights that its manifest does not name do not
// begin with one.
func TestImageBounds(t *testing.T) {
	e := testEngine(t)
	p, _ := imageGuest(t, e, 'm', nil)
	r := requestFor(t, p, "show", `{}`)
	r.Limits.MemoryMiB = 64
	if _, err := invokeRequest(t, p, r); err == nil || err.Code != host.LimitExceeded ||
		!strings.Contains(err.Message, "the limit is 64 MiB") {
		t.Errorf("with 64 MiB: %v", err)
	}
	if _, err := invoke(t, p, "show", `{}`); err != nil {
		t.Errorf("with the default: %v", err)
	}
	for _, grant := range []grant.Grant{{Random: true}, {Env: map[string]string{"A": "b"}}} {
		r := requestFor(t, p, "show", `{}`)
		r.Grant = grant
		if _, err := invokeRequest(t, p, r); err == nil {
			t.Errorf("%+v: no error", grant)
		}
	}
}

// TestImageIsDamaged: a changed image is taken again, and a slot without its image is not used.
func TestImageIsDamaged(t *testing.T) {
	e := testEngine(t)
	p, _ := imageGuest(t, e, '.', nil)
	want, err := invoke(t, p, "show", `{}`)
	if err != nil {
		t.Fatal(err)
	}
	found, _ := filepath.Glob(filepath.Join(e.cfg.CacheDir, "*", guest.ImageName))
	if len(found) != 1 {
		t.Fatal("there is no image")
	}
	image := readFile(t, found[0])
	for name, damage := range map[string]func() error{
		"changed":  func() error { image[len(image)/2] ^= 1; return os.WriteFile(found[0], image, 0o600) },
		"cut":      func() error { return os.Truncate(found[0], int64(len(image)/2)) },
		"removed":  func() error { return os.Remove(found[0]) },
		"replaced": func() error { return errors.Join(os.Remove(found[0]), os.WriteFile(found[0], image, 0o600)) },
	} {
		must(t, damage())
		fresh := e.Provider(p.loadParts().src)
		got, err := invoke(t, fresh, "show", `{}`)
		if err != nil || string(got.Data) != string(want.Data) {
			t.Errorf("%s: %v, %v; want %s", name, got, err, want.Data)
		}
	}
}
