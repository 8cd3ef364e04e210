package instrument_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"

	"github.com/parley-tools/parley/host/wasm/internal/instrument"
)

// program is a computation of a guest that takes one or a few milliseconds.
type program struct {
	language, name string
	wasm           func() ([]byte, error)
	run            func(m api.Module) (result string, err error)
}

// Kernels exist in testdata in three languages, with the same results.
var kernels = []struct {
	name string
	arg  uint64
}{{"sha256", 500}, {"fib", 24}, {"sieve", 200_000}, {"matmul", 2}}

// These exist in C only.
var more = []struct {
	name string
	arg  uint64
}{{"xorshift", 300_000}, {"sorted", 4_000}, {"moved", 5}}

// programs are those for which the cost of metering is limited.
func programs() []program {
	var all []program
	for _, l := range []struct {
		name          string
		kernels, json func() ([]byte, error)
		tool, params  string
		times         int // how often the tool is called
	}{
		{"C", fromFile("testdata/kernels-c.wasm"), fromFile("../../../../testdata/wasm/echo.wasm"), "echo", `{"value":%q}`,
			200},
		{"Rust", fromFile("testdata/kernels-rust.wasm"), fromFile("../../../../testdata/programs/tally.wasm"), "count",
			`{"text":%q,"top":3}`, 50},
		{"Go", goKernels, fromPacked("../../../../plugins/text/plugin.wasm.gz"), "hash", `{"text":%q,"algorithm":"sha256"}`,
			10},
	} {
		for _, k := range kernels {
			all = append(all, program{l.name, k.name, l.kernels, kernel(k.name, k.arg)})
		}
		request := fmt.Sprintf(`{"tool":%q,"params":`+l.params+`}`, l.tool, strings.Repeat("Some text with words. ", 20))
		all = append(all, program{l.name, "JSON call", l.json, calls(request, l.times)})
	}
	return all
}

func kernel(name string, arg uint64) func(api.Module) (string, error) {
	return func(m api.Module) (string, error) {
		// wazero only stops a guest with its context if the context can end.
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		got, err := m.ExportedFunction(name).Call(ctx, arg)
		return fmt.Sprint(got), err
	}
}

// calls sends the same request over the ABI of parley/1, like a host that pools instances.
func calls(request string, times int) func(api.Module) (string, error) {
	return func(m api.Module) (string, error) {
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		alloc, call := m.ExportedFunction("parley_alloc"), m.ExportedFunction("parley_call")
		var answer []byte
		for range times {
			at, err := alloc.Call(ctx, uint64(len(request)))
			if err != nil {
				return "", err
			}
			m.Memory().WriteString(uint32(at[0]), request)
			got, err := call.Call(ctx, at[0], uint64(len(request)))
			if err != nil {
				return "", err
			}
			answer, _ = m.Memory().Read(uint32(got[0]>>32), uint32(got[0]))
		}
		if !bytes.HasPrefix(answer, []byte(`{"ok":true`)) {
			return "", fmt.Errorf("returned %s", answer)
		}
		return string(answer), nil
	}
}

func fromFile(name string) func() ([]byte, error) {
	return func() ([]byte, error) { return os.ReadFile(name) }
}

func fromPacked(name string) func() ([]byte, error) {
	return func() ([]byte, error) {
		packed, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		defer packed.Close()
		z, err := gzip.NewReader(packed)
		if err != nil {
			return nil, err
		}
		return io.ReadAll(z)
	}
}

// goKernels builds the kernels in Go, which have several megabytes.
var goKernels = sync.OnceValues(func() ([]byte, error) {
	dir, err := os.MkdirTemp("", "parley-kernels-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	out := filepath.Join(dir, "kernels.wasm")
	cmd := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-buildmode=c-shared", "-ldflags=-s -w", "-o",
		out, "testdata/kernels.go")
	cmd.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "GOFLAGS=", "GOWASM=")
	if said, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%w\n%s", err, said)
	}
	return os.ReadFile(out)
})

// compiled is a module in a runtime of its own.
type compiled struct {
	runtime wazero.Runtime
	module  wazero.CompiledModule
	yields  *int // of all instances
}

// compile compiles a module. Its imports from module parley exist and do nothing.
func compile(t testing.TB, wasm []byte, config wazero.RuntimeConfig) *compiled {
	t.Helper()
	ctx := context.Background()
	c := &compiled{runtime: wazero.NewRuntimeWithConfig(ctx, config), yields: new(int)}
	t.Cleanup(func() { _ = c.runtime.Close(ctx) })
	wasi_snapshot_preview1.MustInstantiate(ctx, c.runtime)
	b := c.runtime.NewHostModuleBuilder("parley")
	i32, i64, f64 := api.ValueTypeI32, api.ValueTypeI64, api.ValueTypeF64
	for name, params := range map[string][]api.ValueType{
		"call_tool": {i32, i32}, "http_request": {i32, i32}, "read_secret": {i32, i32}, "log": {i32, i32, i32},
		"progress": {f64, f64, i32, i32},
	} {
		results := []api.ValueType{i64}
		if len(params) > 2 {
			results = nil
		}
		b = b.NewFunctionBuilder().WithGoFunction(api.GoFunc(func(context.Context, []uint64) {}), params,
			results).Export(name)
	}
	if _, err := b.Instantiate(ctx); err != nil {
		t.Fatal(err)
	}
	yield := api.GoFunc(func(ctx context.Context, _ []uint64) {
		*c.yields++
		if ctx.Err() == nil && !time.Now().IsZero() { // the host reads both, too
			runtime.Gosched()
		}
	})
	if _, err := c.runtime.NewHostModuleBuilder(instrument.YieldModule).NewFunctionBuilder().
		WithGoFunction(yield, nil, nil).Export(instrument.YieldName).Instantiate(ctx); err != nil {
		t.Fatal(err)
	}
	var err error
	if c.module, err = c.runtime.CompileModule(ctx, wasm); err != nil {
		t.Fatal(err)
	}
	return c
}

func (c *compiled) instance(t testing.TB) api.Module {
	t.Helper()
	m, err := c.runtime.InstantiateModule(context.Background(), c.module,
		wazero.NewModuleConfig().WithName("").WithStartFunctions("_initialize"))
	if err != nil {
		t.Fatal(err)
	}
	return m
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

// BenchmarkOverhead compares plain code, metered code, and wazero's own way to stop a guest. They take turns, each in
// a new instance with the same history, and each turn is compared with the preceding turn of plain code. Other load on
// the machine lasts longer than a turn and thus affects both. The median of the ratios counts. The third form is many
// times slower and gets fewer turns. make bench runs this benchmark and prints a table of the results.
func BenchmarkOverhead(b *testing.B) {
	cache := wazero.NewCompilationCache() // for modules with more than one program
	defer cache.Close(context.Background())
	config := wazero.NewRuntimeConfig().WithCompilationCache(cache)
	for _, p := range programs() {
		b.Run(p.language+"/"+p.name, func(b *testing.B) {
			wasm, err := p.wasm()
			if err != nil {
				b.Fatal(err)
			}
			plain := compile(b, wasm, config)
			metered := compile(b, rewrite(b, wasm, instrument.Config{}), config)
			closing := compile(b, wasm, config.WithCloseOnContextDone(true))
			least := time.Hour
			times := map[*compiled][]float64{} // the time of plain code
			for b.Loop() {
				for _, form := range []*compiled{closing, metered, metered, metered, metered} {
					base := plain.time(b, p)
					least = min(least, base)
					times[form] = append(times[form], float64(form.time(b, p))/float64(base))
				}
			}
			b.ReportMetric(float64(least.Nanoseconds())/1000, "us-plain")
			b.ReportMetric(median(times[metered]), "x-metered")
			b.ReportMetric(median(times[closing]), "x-closing")
			b.ReportMetric(0, "ns/op")
		})
	}
}

func median(list []float64) float64 {
	slices.Sort(list)
	return list[len(list)/2]
}

// time runs a program twice in a new instance and returns the time of the second run.
func (c *compiled) time(t testing.TB, p program) (took time.Duration) {
	t.Helper()
	m := c.instance(t)
	defer m.Close(context.Background())
	for range 2 {
		began := time.Now()
		if _, err := p.run(m); err != nil {
			t.Fatal(err)
		}
		took = time.Since(began)
	}
	return took
}
