package instrument_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/parley-tools/parley/host/wasm/internal/instrument"
	"github.com/parley-tools/parley/internal/foreign"
)

// refuel is the export that refills the fuel for loops and functions, in modules of both generators.
const refuel = "hangLimitInitializer"

// moduleCount returns how many modules each generator makes: a small sample, or DIFFERENTIAL_MODULES.
func moduleCount() int {
	if n, err := strconv.Atoi(os.Getenv("DIFFERENTIAL_MODULES")); err == nil {
		return n
	}
	return 30
}

// TestDifferentialBinaryen runs modules that binaryen's wasm-opt generates from random bytes, both as they are and
// instrumented. Results, traps, calls of the host, memory and globals must be equal.
func TestDifferentialBinaryen(t *testing.T) {
	opt := wasmOpt(t)
	dir := t.TempDir()
	differential(t, func(seed uint64) ([]byte, error) {
		random := rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8), byte(seed >> 16)})
		bytes := make([]byte, 500<<(seed%6))
		_, _ = random.Read(bytes)
		from, to := filepath.Join(dir, fmt.Sprint(seed)), filepath.Join(dir, fmt.Sprint(seed, ".wasm"))
		if err := os.WriteFile(from, bytes, 0o600); err != nil {
			return nil, err
		}
		cmd := exec.Command(opt, from, "-ttf", "-o", to, "-q", "--enable-sign-ext", "--enable-mutable-globals",
			"--enable-nontrapping-float-to-int",
			"--enable-simd", "--enable-bulk-memory", "--enable-multivalue") // its reference types follow a draft
		if said, err := cmd.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("%w\n%s", err, said)
		}
		return os.ReadFile(to)
	})
}

// TestDifferentialGenerated does the same with modules of our own generator.
func TestDifferentialGenerated(t *testing.T) {
	differential(t, func(seed uint64) ([]byte, error) { return generate(seed), nil })
}

// root is the path of the repository from this package.
const root = "../../../.."

// wasmOpt finds binaryen, which .ci/programs unpacks into bin.
func wasmOpt(t *testing.T) string {
	t.Helper()
	if _, err := foreign.Fetch(root); err != nil {
		t.Log(err)
	}
	for _, name := range []string{filepath.Join(root, "bin/binaryen/usr/bin/wasm-opt"), "wasm-opt"} {
		if found, err := exec.LookPath(name); err == nil {
			return found
		}
	}
	if os.Getenv("CI") == "true" {
		t.Fatal("wasm-opt is missing")
	}
	t.Skip("wasm-opt of binaryen is missing; fetching it requires Debian")
	return ""
}

// differential compares moduleCount modules.
func differential(t *testing.T, make func(seed uint64) ([]byte, error)) {
	var all tally
	for seed := range uint64(moduleCount()) {
		wasm, err := make(seed)
		if err != nil {
			t.Fatal(err)
		}
		all.modules++
		if !compare(t, seed, wasm, &all) {
			name := filepath.Join(os.TempDir(), fmt.Sprintf("differential-%d.wasm", seed))
			t.Fatalf("seed %d: the module is in %s (%v)", seed, name, os.WriteFile(name, wasm, 0o600))
		}
	}
	t.Log(all)
	if all.refused+all.invalid > all.modules/10 || all.returned < 2*all.modules || all.trapped == 0 || all.yielded == 0 {
		t.Errorf("too few calls were compared: %v", all)
	}
}

// tally counts what was compared.
type tally struct{ modules, refused, invalid, trappedAtStart, returned, trapped, hostCalls, yielded int }

func (c tally) String() string {
	return fmt.Sprintf("%d modules, of which the gate refused %d, the engine %d, and %d trapped when instantiated; "+
		"%d calls returned, %d trapped, %d calls of the host, %d yields",
		c.modules, c.refused, c.invalid, c.trappedAtStart, c.returned, c.trapped, c.hostCalls, c.yielded)
}

// variant is a module, as it is or instrumented, and its behavior.
type variant struct {
	runtime  wazero.Runtime
	instance api.Module
	invalid  bool
	err      error    // of instantiation
	trace    []string // calls of the host
	yields   int
}

// run instantiates a module. Generated modules end by themselves.
func run(t *testing.T, wasm []byte) *variant {
	t.Helper()
	ctx := context.Background()
	r := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfig().WithDebugInfoEnabled(false))
	f := &variant{runtime: r}
	support := r.NewHostModuleBuilder("fuzzing-support")
	for name, kind := range map[string]api.ValueType{"log-i32": i32, "log-i64": i64, "log-f32": f32, "log-f64": f64,
		"log-v128": v128} {
		log := api.GoFunc(func(_ context.Context, stack []uint64) {
			f.trace = append(f.trace, fmt.Sprint(name, values([]api.ValueType{kind}, stack)))
		})
		support = support.NewFunctionBuilder().WithGoFunction(log, []api.ValueType{kind}, nil).Export(name)
	}
	yield := api.GoFunc(func(context.Context, []uint64) { f.yields++ })
	meter := r.NewHostModuleBuilder(instrument.YieldModule).NewFunctionBuilder().WithGoFunction(yield, nil,
		nil).Export(instrument.YieldName)
	for _, b := range []wazero.HostModuleBuilder{support, meter} {
		if _, err := b.Instantiate(ctx); err != nil {
			t.Fatal(err)
		}
	}
	module, err := r.CompileModule(ctx, wasm)
	if err != nil {
		f.invalid, f.err = true, err
		return f
	}
	f.instance, f.err = r.InstantiateModule(ctx, module, wazero.NewModuleConfig().WithName(""))
	return f
}

// words returns how many words a value takes.
func words(kind api.ValueType) int {
	if kind == v128 {
		return 2
	}
	return 1
}

// values makes words comparable. The bits above 32 are undefined. A function reference is an address that
// differs between instances, so only null is compared.
func values(kinds []api.ValueType, raw []uint64) []uint64 {
	var out []uint64
	for _, kind := range kinds {
		n := words(kind)
		for _, word := range raw[:n] {
			switch {
			case kind == i32 || kind == f32:
				word = uint64(uint32(word))
			case kind == funcref:
				word = min(word, 1)
			}
			out = append(out, word)
		}
		raw = raw[n:]
	}
	return out
}

// compare runs both variants of a module side by side and reports whether they agree.
func compare(t *testing.T, seed uint64, wasm []byte, all *tally) bool {
	t.Helper()
	exposed, globals := expose(wasm)
	m, err := instrument.Rewrite(exposed, instrument.Config{MaxPages: 1 << 16})
	if err != nil {
		all.refused++
		return true
	}
	stuck := time.AfterFunc(5*time.Minute, func() { panic(fmt.Sprintf("seed %d does not end", seed)) })
	defer stuck.Stop()
	before, after := run(t, exposed), run(t, m.Wasm)
	defer func() {
		all.yielded += after.yields
		all.hostCalls += len(after.trace)
		_ = before.runtime.Close(context.Background())
		_ = after.runtime.Close(context.Background())
	}()
	switch {
	case before.invalid != after.invalid || !before.invalid && trap(before.err) != trap(after.err):
		t.Errorf("instantiated: %v, instrumented %v", before.err, after.err)
		return false
	case before.invalid:
		all.invalid++
		return true
	case before.err != nil:
		all.trappedAtStart++
		return true
	}
	ctx := context.Background()
	random := rand.New(rand.NewPCG(seed, 1))
	definitions := before.instance.ExportedFunctionDefinitions()
	for round := range 3 {
		for _, name := range slices.Sorted(func(yield func(string) bool) {
			for name := range definitions {
				if !yield(name) {
					return
				}
			}
		}) {
			for _, f := range []*variant{before, after} {
				if fresh := f.instance.ExportedFunction(refuel); fresh != nil {
					if _, err := fresh.Call(ctx); err != nil {
						t.Error(err)
					}
				}
			}
			args := arguments(random, definitions[name].ParamTypes(), round)
			want, errWant := before.instance.ExportedFunction(name).Call(ctx, args...)
			got, errGot := after.instance.ExportedFunction(name).Call(ctx, args...)
			if kinds := definitions[name].ResultTypes(); trap(errWant) != trap(errGot) || errWant == nil &&
				!slices.Equal(values(kinds, want), values(kinds, got)) {
				t.Errorf("%s%v: %v %v, instrumented %v %v", name, args, want, errWant, got, errGot)
				return false
			}
			if errWant != nil {
				all.trapped++
			} else {
				all.returned++
			}
			if difference := sameState(before, after, globals); difference != "" {
				t.Errorf("after %s%v: %s", name, args, difference)
				return false
			}
		}
	}
	return true
}

// trap returns the engine's reason why a call ended, or "" if it returned.
func trap(err error) string {
	if err == nil {
		return ""
	}
	return innermostLoop(err)
}

// arguments returns zeros in the first round, then small and large numbers. A function reference is null, an
// external one any number.
func arguments(random *rand.Rand, kinds []api.ValueType, round int) []uint64 {
	var args []uint64
	for _, kind := range kinds {
		for range words(kind) {
			word := uint64(0)
			if round > 0 && kind != funcref {
				word = random.Uint64() >> random.IntN(64)
			}
			args = append(args, word)
		}
	}
	return values(kinds, args)
}

// sameState compares the state after a call and returns the difference.
func sameState(before, after *variant, globals int) string {
	if !slices.Equal(before.trace, after.trace) {
		return fmt.Sprintf("the host was called with %v, instrumented with %v", before.trace, after.trace)
	}
	for i := range globals {
		name := exposedGlobal(i)
		want, got := before.instance.ExportedGlobal(name), after.instance.ExportedGlobal(name)
		// wazero only returns the lower half of a vector.
		kinds := []api.ValueType{want.Type()}
		if !slices.Equal(values(kinds, []uint64{want.Get(), 0}), values(kinds, []uint64{got.Get(), 0})) {
			return fmt.Sprintf("global %d is %v, instrumented %v", i, want, got)
		}
	}
	if before.instance.ExportedMemory(exposedMemory) == nil {
		return ""
	}
	want, got := before.instance.ExportedMemory(exposedMemory), after.instance.ExportedMemory(exposedMemory)
	a, _ := want.Read(0, want.Size())
	b, _ := got.Read(0, got.Size())
	if !bytes.Equal(a, b) {
		return fmt.Sprintf("memory of %d and %d bytes differs", len(a), len(b))
	}
	return ""
}

const exposedMemory = "exposed memory"

func exposedGlobal(i int) string { return fmt.Sprint("exposed global ", i) }

// expose exports the memory and all globals of a module, and returns the number of globals.
func expose(wasm []byte) (_ []byte, globals int) {
	type section struct {
		id      byte
		content []byte
	}
	var sections []section
	exports, memories := -1, 0
	for rest := wasm[8:]; len(rest) > 0; {
		id := rest[0]
		size, content := unleb(rest[1:])
		switch id {
		case 5:
			memories, _ = unleb(content)
		case 6:
			globals, _ = unleb(content)
		case 7:
			exports = len(sections)
		}
		sections = append(sections, section{id, content[:size]})
		rest = content[size:]
	}
	if exports < 0 {
		exports = slices.IndexFunc(sections, func(s section) bool { return s.id > 7 })
		sections = slices.Insert(sections, exports, section{7, []byte{0}})
	}
	count, old := unleb(sections[exports].content)
	added := bytes.Clone(old)
	if memories > 0 {
		added = append(append(added, text(exposedMemory)...), 2, 0)
		count++
	}
	for i := range globals {
		added = append(append(append(added, text(exposedGlobal(i))...), 3), leb(i)...)
	}
	sections[exports].content = append(leb(count+globals), added...)
	var parts [][]byte
	for _, s := range sections {
		parts = append(parts, append([]byte{s.id}, s.content...))
	}
	return module(parts...), globals
}

func unleb(b []byte) (n int, rest []byte) {
	for i, shift := 0, 0; ; i, shift = i+1, shift+7 {
		n |= int(b[i]&0x7f) << shift
		if b[i] < 0x80 {
			return n, b[i+1:]
		}
	}
}
