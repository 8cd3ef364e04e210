package wasm

import (
	"context"
	"testing"

	"github.com/parley-tools/parley/host/grant"
	"github.com/parley-tools/parley/host/wasm/internal/module"
)

// callsToTime are calls of a small C guest, a C command and a Go guest of several MB.
func callsToTime(b *testing.B) []struct {
	name, tool, params string
	make               func(*Engine) *Provider
} {
	return []struct {
		name, tool, params string
		make               func(*Engine) *Provider
	}{
		{"C", "echo", `{"value":1}`, func(e *Engine) *Provider { return testGuest(b, e, "echo", "echo") }},
		{"command", "word", `{"text":"abc"}`, func(e *Engine) *Provider { return testGuest(b, e, "rev", "rev") }},
		{"Go", "count", `{"text":"abc"}`, func(e *Engine) *Provider { return shipped(b, e, "text") }},
	}
}

// BenchmarkCall measures a call in a fresh instance of a loaded plugin, with and without an image.
func BenchmarkCall(b *testing.B) {
	for _, c := range callsToTime(b) {
		b.Run(c.name, func(b *testing.B) { benchmarkCall(b, testEngine(b), c.make, c.tool, c.params) })
	}
	c := callsToTime(b)[2]
	b.Run(c.name+"WithoutImage", func(b *testing.B) {
		e := testEngine(b)
		e.cfg.CacheDir, e.cfg.Fresh = b.TempDir(), true
		benchmarkCall(b, e, c.make, c.tool, c.params)
	})
}

func benchmarkCall(b *testing.B, e *Engine, make func(*Engine) *Provider, tool, params string) {
	p := make(e)
	if _, err := invoke(b, p, tool, params); err != nil {
		b.Fatal(err)
	}
	r := requestFor(b, p, tool, params)
	b.ReportAllocs()
	before := cpuTime()
	for b.Loop() {
		if _, err := p.Invoke(context.Background(), r); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64((cpuTime()-before).Microseconds())/float64(b.N), "cpu-us/op")
}

// BenchmarkFirstCall measures the first call in a process, with compiled code in the cache on disk.
func BenchmarkFirstCall(b *testing.B) {
	for _, c := range callsToTime(b) {
		b.Run(c.name, func(b *testing.B) {
			if _, err := invoke(b, c.make(testEngine(b)), c.tool, c.params); err != nil {
				b.Fatal(err)
			}
			source := c.make(nil).loadParts().src
			for b.Loop() {
				e := New(Config{CacheDir: testCache})
				if _, err := invoke(b, e.Provider(source), c.tool, c.params); err != nil {
					b.Fatal(err)
				}
				if err := e.Close(context.Background()); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkAdmit measures validation and instrumentation.
func BenchmarkAdmit(b *testing.B) {
	for _, c := range callsToTime(b) {
		b.Run(c.name, func(b *testing.B) {
			p := c.make(nil)
			wasm, _ := p.loadParts().src.Wasm()
			m, _ := p.Manifest()
			b.SetBytes(int64(len(wasm)))
			for b.Loop() {
				if _, err := module.ValidateModule(wasm, m, grant.ModuleLimits{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
