package instrument_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"

	"github.com/parley-tools/parley/host/wasm/internal/instrument"
)

// kernels are functions of testdata/kernels.c with an argument that takes about a millisecond or a few.
var kernels = []struct {
	name string
	arg  uint64
}{{"fib", 22}, {"sieve", 200_000}, {"xorshift", 300_000}, {"matmul", 2}, {"sha", 500}, {"sorted", 4_000}, {"moved", 5}}

// instance makes an instance of a module in an engine of its own. The result counts how often it yielded.
func instance(t testing.TB, wasm []byte, config wazero.RuntimeConfig) (api.Module, *int) {
	t.Helper()
	ctx := context.Background()
	r := wazero.NewRuntimeWithConfig(ctx, config)
	t.Cleanup(func() { _ = r.Close(ctx) })
	wasi_snapshot_preview1.MustInstantiate(ctx, r)
	yields := new(int)
	// What the module asks of module parley is there and does nothing.
	b := r.NewHostModuleBuilder("parley")
	i32, i64, f64 := api.ValueTypeI32, api.ValueTypeI64, api.ValueTypeF64
	for name, params := range map[string][]api.ValueType{
		"call_tool": {i32, i32}, "http_request": {i32, i32}, "read_secret": {i32, i32}, "log": {i32, i32, i32}, "progress": {f64, f64, i32, i32},
	} {
		results := []api.ValueType{i64}
		if len(params) > 2 {
			results = nil
		}
		b = b.NewFunctionBuilder().WithGoFunction(api.GoFunc(func(context.Context, []uint64) {}), params, results).Export(name)
	}
	if _, err := b.Instantiate(ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := r.NewHostModuleBuilder(instrument.YieldModule).NewFunctionBuilder().
		WithGoFunction(api.GoFunc(func(context.Context, []uint64) { *yields++ }), nil, nil).Export(instrument.YieldName).Instantiate(ctx); err != nil {
		t.Fatal(err)
	}
	m, err := r.InstantiateWithConfig(ctx, wasm, wazero.NewModuleConfig().WithStartFunctions("_initialize"))
	if err != nil {
		t.Fatal(err)
	}
	return m, yields
}

func rewrite(t testing.TB, wasm []byte, cfg instrument.Config) []byte {
	t.Helper()
	cfg.MaxPages = 1 << 16
	m, err := instrument.Rewrite(wasm, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return m.Wasm
}

// goGuest is the shipped plugin text; call runs one of its tools.
func goGuest(t testing.TB) []byte {
	t.Helper()
	packed, err := os.Open("../../../../plugins/text/plugin.wasm.gz")
	if err != nil {
		t.Skip("plugins/text has not been built")
	}
	defer packed.Close()
	z, err := gzip.NewReader(packed)
	if err != nil {
		t.Fatal(err)
	}
	wasm, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return wasm
}

func call(t testing.TB, m api.Module, request string) {
	t.Helper()
	ctx := context.Background()
	at, err := m.ExportedFunction("parley_alloc").Call(ctx, uint64(len(request)))
	if err != nil || !m.Memory().WriteString(uint32(at[0]), request) {
		t.Fatal(err)
	}
	got, err := m.ExportedFunction("parley_call").Call(ctx, at[0], uint64(len(request)))
	if err != nil {
		t.Fatal(err)
	}
	if answer, _ := m.Memory().Read(uint32(got[0]>>32), uint32(got[0])); !bytes.HasPrefix(answer, []byte(`{"ok":true`)) {
		t.Fatalf("%s", answer)
	}
}

// BenchmarkOverheadGo is BenchmarkOverhead for calls of a Go guest: a short one, and one that works for a while.
func BenchmarkOverheadGo(b *testing.B) {
	wasm := goGuest(b)
	config := wazero.NewRuntimeConfig()
	plain, _ := instance(b, wasm, config)
	metered, _ := instance(b, rewrite(b, wasm, instrument.Config{}), config)
	for name, n := range map[string]int{"short": 10, "long": 20_000} {
		request := fmt.Sprintf(`{"tool":"hash","params":{"text":%q,"algorithm":"sha256"}}`, strings.Repeat("text ", n))
		b.Run(name, func(b *testing.B) {
			best := [2]time.Duration{}
			for b.Loop() {
				for i, m := range []api.Module{plain, metered} {
					began := time.Now()
					call(b, m, request)
					if took := time.Since(began); best[i] == 0 || took < best[i] {
						best[i] = took
					}
				}
			}
			b.ReportMetric(float64(best[0].Nanoseconds())/1000, "us-plain")
			b.ReportMetric(float64(best[1])/float64(best[0]), "x-metered")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// BenchmarkOverhead compares plain code, metered code and wazero's own way to stop a guest. The three take turns, and the
// fastest turn of each counts, so that what else the machine does falls on all alike.
func BenchmarkOverhead(b *testing.B) {
	wasm, err := os.ReadFile("testdata/kernels.wasm")
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	config := wazero.NewRuntimeConfig()
	plain, _ := instance(b, wasm, config)
	metered, _ := instance(b, rewrite(b, wasm, instrument.Config{}), config)
	closing, _ := instance(b, wasm, config.WithCloseOnContextDone(true))
	for _, k := range kernels {
		b.Run(k.name, func(b *testing.B) {
			best := [3]time.Duration{}
			for b.Loop() {
				for i, m := range []api.Module{plain, metered, closing} {
					began := time.Now()
					if _, err := m.ExportedFunction(k.name).Call(ctx, k.arg); err != nil {
						b.Fatal(err)
					}
					if took := time.Since(began); best[i] == 0 || took < best[i] {
						best[i] = took
					}
				}
			}
			b.ReportMetric(float64(best[0].Microseconds()), "us-plain")
			b.ReportMetric(float64(best[1])/float64(best[0]), "x-metered")
			b.ReportMetric(float64(best[2])/float64(best[0]), "x-closing")
			b.ReportMetric(0, "ns/op")
		})
	}
}
