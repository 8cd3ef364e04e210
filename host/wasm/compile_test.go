package wasm

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"github.com/parley-tools/parley/host/wasm/internal/cache"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/grant"
	"github.com/parley-tools/parley/host/wasm/internal/instrument"
	"github.com/parley-tools/parley/host/wasm/internal/module"
	"github.com/parley-tools/parley/host/wasm/store"
	"github.com/parley-tools/parley/internal/wasmtest"
)

// cacheEngine returns an engine with a cache of its own, and the lines that it logs.
func cacheEngine(t testing.TB, cfg Config) (*Engine, *[]string) {
	t.Helper()
	var mu sync.Mutex
	lines := &[]string{}
	record := func(line string) {
		mu.Lock()
		defer mu.Unlock()
		*lines = append(*lines, line)
	}
	cfg.Notice, cfg.Debug, cfg.HostVersion = record, record, "0.1.0"
	e := New(cfg)
	t.Cleanup(func() { _ = e.Close(context.Background()) })
	return e, lines
}

// slotNames returns the names of the folders in a cache.
func slotNames(t testing.TB, dir string) []string {
	t.Helper()
	var names []string
	for _, d := range store.ReadDir(dir) {
		if d.IsDir() {
			names = append(names, d.Name())
		}
	}
	return names
}

// cpuBomb returns a command whose functions compile slowly: about 3 s of CPU time each.
func cpuBomb(functions int) []byte {
	body := wasmtest.IfBlocks(10_000)
	return testModule([]string{"->"}, wasmtest.Repeated(functions, 0), wasmtest.Repeated(functions, body),
		export("_start", 0),
		export("memory", 2))
}

// TestCompileBudget checks that compilation is bounded in CPU time and memory.
func TestCompileBudget(t *testing.T) {
	memory := uint64(48)
	if raceDetector {
		memory = 160 // the race detector's runtime needs that much
	}
	tests := []struct {
		name     string
		budget   budget
		wantText string
	}{
		{"cpu", budget{500 * time.Millisecond, compileMemory}, "500ms of CPU time; to allow more, set compile_time " +
			"under [plugin.bomb.limits] in policy.toml"},
		{"memory", budget{time.Minute, memory << 20}, fmt.Sprint(memory, " MiB of memory; to "+
			"allow more, set compile_memory_mib under [plugin.bomb.limits] in policy.toml")},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			e, lines := cacheEngine(t, Config{CacheDir: dir, Child: compiler})
			e.budget = func(int) budget { return tt.budget }
			p := e.Provider(sourceOf(cpuBomb(2), wasmtest.Command(t, "bomb")))
			_, err := invoke(t, p, "run", "{}")
			if err == nil || err.Code != host.InvalidPlugin || err.ExitCode() != 86 ||
				!strings.Contains(err.Message, tt.wantText) {
				t.Fatalf("%v, want 86 and %q", err, tt.wantText)
			}
			*lines = nil
			if _, again := invoke(t, p, "run", "{}"); again == nil || again.Message != err.Message || len(*lines) > 0 {
				t.Errorf("%v, want the same without compiling; logged %q", again, *lines)
			}
			// Another process with the same bounds knows it, one with others compiles again.
			for _, same := range []bool{true, false} {
				later, logged := cacheEngine(t, Config{CacheDir: dir, Child: compiler})
				later.budget = func(int) budget { return tt.budget }
				if !same {
					later.budget = func(int) budget { return budget{tt.budget.cpu + 1, tt.budget.memory} }
				}
				_, again := invoke(t, later.Provider(sourceOf(cpuBomb(2), wasmtest.Command(t, "bomb"))), "run", "{}")
				if again == nil || same && again.Message != err.Message || same != (len(*logged) == 0) {
					t.Errorf("same bounds %v: %v; logged %q", same, again, *logged)
				}
			}
			if remaining := slotNames(t, dir); len(remaining) > 0 {
				t.Errorf("left behind: %q", remaining)
			}
			// Other plugins are unaffected.
			e.budget = compileBudget
			if _, err := invoke(t, testGuest(t, e, "smallest", "smallest"), "call", "{}"); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestModuleLimits checks that the limits of a plugin decide whether its module is compiled, and that a refusal names
// the setting that accepts it.
func TestModuleLimits(t *testing.T) {
	var limits grant.ModuleLimits
	dir := t.TempDir()
	e, _ := cacheEngine(t, Config{CacheDir: dir, Child: compiler, ModuleLimits: func(plugin string) (grant.ModuleLimits,
		error) {
		if plugin != "rev" {
			t.Errorf("the limits of %s", plugin)
		}
		return limits, nil
	}})
	refused := ""
	for _, tt := range []struct {
		limits grant.ModuleLimits
		says   string // "" if it runs
	}{
		{grant.ModuleLimits{Functions: 10}, "at most 10 are accepted (section function, offset "},
		{grant.ModuleLimits{TableEntries: 1}, "entries is declared, at most 1 are accepted"},
		{grant.ModuleLimits{}, ""},
	} {
		limits = tt.limits
		_, err := invoke(t, testGuest(t, e, "rev", "rev"), "word", `{"text":"abc"}`)
		switch {
		case tt.says == "" && err != nil:
			t.Errorf("%+v: %v", tt.limits, err)
		case tt.says != "" && (err == nil || err.Code != host.InvalidPlugin || !strings.Contains(err.Message, tt.says)):
			t.Errorf("%+v: %v, want %q", tt.limits, err, tt.says)
		case tt.limits.Functions > 0:
			refused = err.Message
		}
	}
	// What it says is enough.
	var functions int
	if _, setting, ok := strings.Cut(refused, "set functions = "); !ok {
		t.Fatalf("%q names no setting", refused)
	} else if _, err := fmt.Sscanf(setting, "%d under [plugin.rev.limits]", &functions); err != nil {
		t.Fatalf("%q: %v", setting, err)
	}
	m := loadManifest(t, readFile(t, filepath.Join(guestDir, "rev.manifest.json")))
	for n, want := range map[int]bool{functions: true, functions - 1: false} {
		_, err := module.ValidateModule(readFile(t, filepath.Join(guestDir, "rev.wasm")), m, grant.ModuleLimits{Functions: n})
		if (err == nil) != want {
			t.Errorf("%d functions: %v", n, err)
		}
	}
}

func TestCompileBudgetGrows(t *testing.T) {
	for mib, want := range map[int]time.Duration{0: 10 * time.Second, 1: 11 * time.Second, 30: 40 * time.Second,
		128: 60 * time.Second} {
		if got := compileBudget(mib << 20); got.cpu != want || got.memory != 2<<30 {
			t.Errorf("%d MiB: %+v, want %v", mib, got, want)
		}
	}
	set := grant.ModuleLimits{CompileTime: time.Minute * 3, CompileMemoryMiB: 4096}
	if got := New(Config{}).budgetWithin(set, 1<<20); got != (budget{3 * time.Minute, 4 << 30}) {
		t.Errorf("%+v with %+v", got, set)
	}
}

// TestCompileGoesOn checks that a call whose plugin is not compiled yet ends at its deadline, and that the compilation
// goes on: one, for all calls and plugins that need the module, in this process and in the next one.
func TestCompileGoesOn(t *testing.T) {
	for _, isolate := range []string{"none", isolateProcess} {
		t.Run(isolate, func(t *testing.T) {
			dir := t.TempDir()
			child, listener := heldCompiler(t)
			e, lines := cacheEngine(t, Config{CacheDir: dir, Child: child})
			if raceDetector {
				e.budget = func(int) budget { return budget{10 * time.Minute, compileMemory} }
			}
			plugins := []*Provider{testGuest(t, e, "rev", "rev"), testGuest(t, e, "rev", "rev")}
			call := func(ctx context.Context, p *Provider) (string, error) {
				r := requestFor(t, p, "word", `{"text":"abc"}`)
				r.Isolate = isolate
				result, err := p.Invoke(ctx, r)
				if err != nil {
					return "", err
				}
				return string(result.Data), nil
			}
			ended, cancel := context.WithTimeout(t.Context(), 0)
			defer cancel()
			for _, p := range plugins {
				if _, err := call(ended, p); host.AsError(err).Code != host.Timeout {
					t.Fatalf("%v, want a timeout", err)
				}
				for !p.loading.compiling.Load() {
					runtime.Gosched()
				}
			}
			for range 2 {
				for _, p := range plugins {
					ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
					_, err := call(ctx, p)
					cancel()
					if e := host.AsError(err); e.Code != host.Timeout || e.ExitCode() != 102 ||
						!strings.Contains(e.Message, "rev is still being compiled; that goes on") {
						t.Fatalf("%v, want a timeout", err)
					}
				}
			}
			compiling, err := listener.Accept()
			must(t, err)
			must(t, compiling.Close()) // the compiler begins
			for _, p := range plugins {
				if data, err := call(t.Context(), p); err != nil || data != `"cba\n"` {
					t.Errorf("%s %v", data, err)
				}
			}
			for range 20 {
				if err := plugins[0].Prepare(ended); err != nil {
					t.Fatalf("%v, want no error for a plugin that is compiled", err)
				}
			}
			if n := strings.Count(strings.Join(*lines, "\n"), "compiling rev"); n != 1 {
				t.Errorf("compiled %d times: %q", n, *lines)
			}
			next, lines := cacheEngine(t, Config{CacheDir: dir, Child: child})
			if data, err := call(t.Context(), testGuest(t, next, "rev", "rev")); err != nil || data != `"cba\n"` ||
				strings.Contains(strings.Join(*lines, "\n"), "compiling") {
				t.Errorf("%s %v %q", data, err, *lines)
			}
		})
	}
}

// TestCompileInterrupted checks that a call that is canceled ends at once, also while it waits for a free compiler, and
// that closing the engine ends what is being compiled.
func TestCompileInterrupted(t *testing.T) {
	dir := t.TempDir()
	child, listener := heldCompiler(t)
	e, _ := cacheEngine(t, Config{CacheDir: dir, Child: child})
	names := []string{"rev", "echo", "smallest"}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, len(names))
	for _, name := range names {
		p := testGuest(t, e, name, name)
		go func() { done <- p.Prepare(ctx) }()
	}
	var compilers []net.Conn
	for range maxConcurrentCompiles {
		conn, err := listener.Accept()
		must(t, err)
		compilers = append(compilers, conn)
	}
	cancel()
	for range names {
		if err := <-done; host.AsError(err).Code != host.Interrupted || !errors.Is(err, context.Canceled) {
			t.Errorf("%v, want interrupted", err)
		}
	}
	if _, err := e.shared.Acquire(t.Context(), compileSlots, "cli", maxConcurrentCompiles, false); err == nil {
		t.Error("fewer compilations are running")
	}
	must(t, e.Close(t.Context()))
	for _, conn := range compilers {
		if n, _ := conn.Read(make([]byte, 1)); n != 0 { // the compiler has ended
			t.Error("a compiler wrote output")
		}
	}
	if remaining := slotNames(t, dir); len(remaining) > 0 {
		t.Errorf("left behind: %q", remaining)
	}
	if err := testGuest(t, e, "rev", "rev").Prepare(t.Context()); host.AsError(err).Code != host.Unavailable {
		t.Errorf("%v, want unavailable after Close", err)
	}
}

// TestCloseIsBounded checks that Close waits only for a limited time for a compilation that it cannot end, and discards
// its result.
func TestCloseIsBounded(t *testing.T) {
	dir := t.TempDir()
	e, _ := cacheEngine(t, Config{CacheDir: dir})
	p := testGuest(t, e, "smallest", "smallest")
	read, proceed := p.loadParts().src.Wasm, make(chan struct{})
	p.loadParts().src.Wasm = func() ([]byte, error) { <-proceed; return read() }
	done := make(chan error, 1)
	go func() { done <- p.Prepare(context.Background()) }()
	for loading := (*loading)(nil); loading == nil; runtime.Gosched() {
		p.mu.Lock()
		loading = p.loading
		p.mu.Unlock()
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	must(t, e.Close(ended))
	close(proceed)
	if err := <-done; host.AsError(err).Code != host.Unavailable {
		t.Errorf("%v, want unavailable", err)
	}
	e.loads.Wait()
	if len(e.plugins) > 0 {
		t.Error("a plugin was loaded after Close")
	}
}

// TestCompilerFailures tests a compiler that cannot start, one that crashes, and one that is started by hand.
func TestCompilerFailures(t *testing.T) {
	for _, tt := range []struct {
		child    func() *exec.Cmd
		code     host.Code
		wantText string
	}{
		{func() *exec.Cmd { return exec.Command(filepath.Join(t.TempDir(), "nothing")) }, host.Unavailable,
			"cannot start the compiler"},
		{func() *exec.Cmd { c := compiler(); c.Env = []string{"PARLEY_TEST_CRASH=1"}; return c }, host.InvalidPlugin,
			"crashed"},
	} {
		e, _ := cacheEngine(t, Config{CacheDir: t.TempDir(), Child: tt.child})
		_, err := invoke(t, testGuest(t, e, "smallest", "smallest"), "call", "{}")
		if err == nil || err.Code != tt.code || !strings.Contains(err.Message, tt.wantText) {
			t.Errorf("%v, want %s and %q", err, tt.code, tt.wantText)
		}
	}
	misused := compiler()
	misused.Env = []string{"PARLEY_CHILD=" + CompileJob}
	if out, err := misused.CombinedOutput(); err == nil || !strings.Contains(string(out), "cannot be started by hand") {
		t.Errorf("%v: %s", err, out)
	}
}

// TestInvalidCode checks that the engine's reason is reported for code that only the engine refuses.
func TestInvalidCode(t *testing.T) {
	// i32.add of nothing
	wasm := testModule([]string{"->"}, []int{0}, [][]byte{{0x6a, 0x1a}}, export("_start", 0), export("memory", 2))
	for _, child := range []func() *exec.Cmd{nil, compiler} {
		e, _ := cacheEngine(t, Config{CacheDir: t.TempDir(), Child: child})
		_, err := invoke(t, e.Provider(sourceOf(wasm, wasmtest.Command(t, "bad"))), "run", "{}")
		if err == nil || err.Code != host.InvalidPlugin ||
			!strings.Contains(err.Message, "cannot be compiled: invalid function[") {
			t.Errorf("%v", err)
		}
	}
}

// TestDamagedCache checks that calls succeed with any damage to the compile cache, and that damaged code is
// compiled again.
func TestDamagedCache(t *testing.T) {
	skipWithRace(t)
	dir := t.TempDir()
	call := func(want string) {
		t.Helper()
		e, logged := cacheEngine(t, Config{CacheDir: dir, Child: compiler})
		if _, err := invoke(t, testGuest(t, e, "smallest", "smallest"), "call", "{}"); err != nil {
			t.Fatal(err)
		}
		if text := strings.Join(*logged, "\n"); !strings.Contains(text, want) || want == "" && text != "" {
			t.Errorf("logged %q, want %q", text, want)
		}
	}
	call("compiling smallest 1.0.0 (happens once)")
	call("")
	only := slotNames(t, dir)
	if len(only) != 1 {
		t.Fatalf("%q", only)
	}
	in := func(name string) string { return filepath.Join(dir, only[0], name) }
	code, err := filepath.Glob(in("wazero-*/*"))
	if err != nil || len(code) != 1 {
		t.Fatal(code, err)
	}
	overwrite := func(path string) func() {
		return func() { put(t, path, bytes.Repeat([]byte{'x'}, len(content(t, path)))) }
	}

	tests := map[string]func(){
		"stub":                overwrite(in(cache.StubName)),
		"code":                overwrite(code[0]),
		"code bit":            func() { b := []byte(content(t, code[0])); b[30] ^= 1; put(t, code[0], b) },
		"checksums":           overwrite(in(cache.ChecksumsName)),
		"checksums truncated": func() { put(t, in(cache.ChecksumsName), []byte(content(t, in(cache.ChecksumsName))[:100])) },
		"code truncated":      func() { put(t, code[0], nil) },
		"code missing":        func() { os.Remove(code[0]) },
		"stub missing":        func() { os.Remove(in(cache.StubName)) },
		"checksums missing":   func() { os.Remove(in(cache.ChecksumsName)) },
		"path outside": func() {
			put(t, in(cache.ChecksumsName), []byte(strings.Replace(content(t, in(cache.ChecksumsName)), `"name":"wazero-`,
				`"name":"../wazero-`, 1)))
		},
		"another slot": func() {
			put(t, in(cache.ChecksumsName), []byte(strings.Replace(content(t, in(cache.ChecksumsName)), only[0], "another", 1)))
		},
	}
	if runtime.GOOS != "windows" {
		tests["writable by others"] = func() { os.Chmod(in(""), 0o777) }
		tests["symbolic link"] = func() {
			elsewhere := filepath.Join(t.TempDir(), "code")
			os.Rename(code[0], elsewhere)
			os.Symlink(elsewhere, code[0])
		}
	}
	for name, damage := range tests {
		t.Run(name, func(t *testing.T) {
			damage()
			call("discarded")
			call("")
			if now := slotNames(t, dir); len(now) != 1 || now[0] != only[0] {
				t.Errorf("%q is in the cache, want %q", now, only)
			}
		})
	}
	info, err := os.Stat(dir)
	if err != nil || runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0 {
		t.Errorf("%v %v: other users can access the cache", info.Mode(), err)
	}
}

// TestStubRequiresCode checks that missing native code is detected when the stub is opened: the stub alone would
// only trap.
func TestStubRequiresCode(t *testing.T) {
	dir := t.TempDir()
	e, _ := cacheEngine(t, Config{CacheDir: dir})
	if _, err := invoke(t, testGuest(t, e, "smallest", "smallest"), "call", "{}"); err != nil {
		t.Fatal(err)
	}
	key := slotNames(t, dir)[0]
	s := cache.Slot{Dir: filepath.Join(dir, key), Key: key}
	sums, err := s.Read()
	if err != nil {
		t.Fatal(err)
	}
	code := filepath.Join(s.Dir, sums.Code.Name)
	if err := os.Link(code, code+".link"); err != nil { // a harmless change
		t.Fatal(err)
	}
	u, err := openSlot(s, sums)
	if err != nil {
		t.Fatal("linked: ", err)
	}
	_ = u.code.Close(context.Background())
	if sums, err = s.Read(); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(code); err != nil {
		t.Fatal(err)
	}
	if _, err := openSlot(s, sums); err == nil || !strings.Contains(err.Error(), "changed while it was opened") {
		t.Errorf("%v", err)
	}
}

// TestChecksumsAvoidHashing checks that files are hashed again only if they have changed or may have.
func TestChecksumsAvoidHashing(t *testing.T) {
	dir := t.TempDir()
	e, _ := cacheEngine(t, Config{CacheDir: dir})
	if _, err := invoke(t, testGuest(t, e, "smallest", "smallest"), "call", "{}"); err != nil {
		t.Fatal(err)
	}
	key := slotNames(t, dir)[0]
	s := cache.Slot{Dir: filepath.Join(dir, key), Key: key}
	sums, err := s.Read()
	if err != nil {
		t.Fatal(err)
	}
	// Pretend that the files were hashed long after they were written. Then their metadata suffices.
	sums.Checked = time.Now().Add(time.Hour)
	if err := s.Write(cache.ChecksumsName, sums); err != nil {
		t.Fatal(err)
	}
	again, err := s.Read()
	if err != nil || !again.Checked.Equal(sums.Checked) {
		t.Errorf("%v %v, want no check after %v", again, err, sums.Checked)
	}
	code := filepath.Join(s.Dir, sums.Code.Name)
	before, err := os.Stat(code)
	if err != nil {
		t.Fatal(err)
	}
	data := []byte(content(t, code))
	data[len(data)/2] ^= 1
	put(t, code, data)
	if err := os.Chtimes(code, before.ModTime(), before.ModTime()); err != nil {
		t.Fatal(err)
	}
	if runtime.GOOS == "windows" {
		return // on systems where resetting the time hides a change
	}
	if _, err := s.Read(); err == nil || !strings.Contains(err.Error(), "is damaged") {
		t.Errorf("%v: a change in place was not detected", err)
	}
}

// TestNoCache checks that calls work, more slowly, if the cache folder cannot be created.
func TestNoCache(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	put(t, file, nil)
	for _, dir := range []string{"", file, filepath.Join(file, "below")} {
		temp := t.TempDir()
		t.Setenv("TMPDIR", temp)
		e, logged := cacheEngine(t, Config{CacheDir: dir, Child: compiler})
		if _, err := invoke(t, testGuest(t, e, "smallest", "smallest"), "call", "{}"); err != nil {
			t.Error(err)
		}
		if text := strings.Join(*logged, "\n"); !strings.Contains(text, "compiling smallest 1.0.0") ||
			strings.Contains(text, "once") {
			t.Errorf("logged %q", text)
		}
		if remaining := slotNames(t, temp); len(remaining) > 0 {
			t.Errorf("left behind: %q", remaining)
		}
	}
}

// TestEviction checks that the cache removes the least recently used slots to keep its size.
func TestEviction(t *testing.T) {
	dir, measure := t.TempDir(), t.TempDir()
	use := func(dir string, size int64, name, manifest, tool, params string) {
		t.Helper()
		e, _ := cacheEngine(t, Config{CacheDir: dir, CacheSize: size})
		if _, err := invoke(t, testGuest(t, e, name, manifest), tool, params); err != nil {
			t.Fatal(err)
		}
	}
	use(dir, 0, "smallest", "smallest", "call", "{}")
	smallest := slotNames(t, dir)[0]
	past := time.Now().Add(-48 * time.Hour)
	if err := os.Chtimes(filepath.Join(dir, smallest), past, past); err != nil {
		t.Fatal(err)
	}
	// slots of an older version and an abandoned one, and a file that is not Parley's
	for _, name := range []string{strings.Repeat("0", 32) + "-1", "filling-1.tmp", "mine"} {
		put(t, filepath.Join(dir, name, "x"), make([]byte, 1000))
		if err := os.Chtimes(filepath.Join(dir, name), past.Add(-time.Hour), past.Add(-time.Hour)); err != nil {
			t.Fatal(err)
		}
	}
	use(dir, 0, "smallest", "smallest", "call", "{}") // marks it as used
	use(measure, 0, "rev", "rev", "word", `{"text":"a"}`)
	use(dir, sizeOf(t, dir)-2500+sizeOf(t, measure), "rev", "rev", "word", `{"text":"a"}`)
	remaining := strings.Join(slotNames(t, dir), " ")
	if !strings.Contains(remaining, smallest) || strings.Contains(remaining, "000000") ||
		strings.Contains(remaining, "tmp") || !strings.Contains(remaining, "mine") {
		t.Errorf("remaining: %s", remaining)
	}
	use(dir, 1, "echo", "echo", "echo", `{"value":1}`)
	if remaining := slotNames(t, dir); len(remaining) != 2 || remaining[1] != "mine" && remaining[0] != "mine" {
		t.Errorf("remaining: %q, want only the new slot and the file that is not Parley's", remaining)
	}
}

// TestSharedCache fills an empty cache from many engines at once.
func TestSharedCache(t *testing.T) {
	dir := t.TempDir()
	var wg sync.WaitGroup
	for range 8 {
		e, _ := cacheEngine(t, Config{CacheDir: dir, Child: compiler})
		p := testGuest(t, e, "rev", "rev")
		r := requestFor(t, p, "word", `{"text":"abc"}`)
		wg.Go(func() {
			if result, err := p.Invoke(context.Background(), r); err != nil || string(result.Data) != `"cba\n"` {
				t.Errorf("%v %v", result, err)
			}
		})
	}
	wg.Wait()
	if remaining := slotNames(t, dir); len(remaining) != 1 {
		t.Errorf("remaining: %q", remaining)
	}
}

// TestPackedLookup checks that compiled code is found by the compressed bytes, and that another manifest is still
// checked against it.
func TestPackedLookup(t *testing.T) {
	dir := t.TempDir()
	unpacked := 0
	call := func(manifest string) *host.Error {
		e, _ := cacheEngine(t, Config{CacheDir: dir})
		p := testGuest(t, e, "smallest", manifest)
		wasm := p.loadParts().src.Wasm
		p.loadParts().src.Packed = []byte("packed")
		p.loadParts().src.Wasm = func() ([]byte, error) { unpacked++; return wasm() }
		tool := "call"
		if manifest == "rev" {
			tool = "word"
		}
		_, err := invoke(t, p, tool, "{}")
		return err
	}
	for range 3 {
		if err := call("smallest"); err != nil {
			t.Fatal(err)
		}
	}
	if unpacked != 1 {
		t.Errorf("unpacked %d times, want once", unpacked)
	}
	if err := call("rev"); err == nil || err.Code != host.InvalidPlugin || !strings.Contains(err.Message, "_start") {
		t.Errorf("%v, want the gate's refusal", err)
	}
}

// TestStub checks that the engine accepts the stub of a module, and that it equals its own stub.
func TestStub(t *testing.T) {
	whole, err := module.ValidateModule(readFile(t, filepath.Join(guestDir, "echo.wasm")),
		loadManifest(t, readFile(t, filepath.Join(guestDir, "echo.manifest.json"))), grant.ModuleLimits{})
	if err != nil {
		t.Fatal(err)
	}
	stub := instrument.Stub(whole.Wasm)
	if err := compileInto(t.TempDir(), stub, nil); err != nil {
		t.Error(err)
	}
	if again := instrument.Stub(stub); !bytes.Equal(again, stub) || len(stub) >= len(whole.Wasm) {
		t.Errorf("the stub has %d bytes, the module %d", len(stub), len(whole.Wasm))
	}
}

// sizeOf returns the bytes of the files in a folder.
func sizeOf(t *testing.T, dir string) (total int64) {
	t.Helper()
	must(t, fs.WalkDir(os.DirFS(dir), ".", func(_ string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			info, err := d.Info()
			total += info.Size()
			return err
		}
		return err
	}))
	return total
}
