package wasm

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/tetratelabs/wazero"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/wasm/internal/instrument"
	"github.com/parley-tools/parley/manifest"
)

// Config of an Engine. Zero values are defaults.
type Config struct {
	// CacheDir keeps compiled code between processes; it is made 0700 and holds native code, so it must belong to
	// this user. "" keeps compiled code in memory only.
	CacheDir string
	// CacheSize is how many bytes of compiled code are kept, 1 GiB if 0; what was used least recently goes first.
	CacheSize int64
	// Child makes a command that runs this program again, without arguments, as the compiler: the program calls CompileMain first when the
	// environment says PARLEY_CHILD=compile. nil compiles in this process, without any bound: for tests, and for modules that can be trusted.
	Child func() *exec.Cmd
	// HostVersion is what guests are told in each request.
	HostVersion string
	// Limits replace the defaults for plugins that ask for none: 256 MiB of memory, 30 s, 1 MiB of output.
	Limits host.Limits
	// Notice is told when a plugin is compiled for the first time, which may take seconds. May be nil.
	Notice func(string)
	// Debug is told what may help to find a fault. May be nil.
	Debug func(string)
}

// Engine compiles and runs plugins. Making one costs nothing: whatever a plugin needs is made at its first call.
type Engine struct {
	cfg Config

	mu      sync.Mutex
	plugins map[*compiledPlugin]bool
	closed  bool
	// invalid are modules that cannot be compiled, by key.
	invalid map[string]*host.Error

	compiling chan struct{} // holds one token for each compile under way
	budget    func(codeBytes int) budget

	activeCalls atomic.Int32 // under way
}

// maxConcurrent bounds what calls under way may have together: memory above all. A call beyond it is refused and does not wait, because
// what it waited for might be the call that asked for it.
const maxConcurrent = 64

// acquire counts a call that begins; leave must be called when it ends.
func (e *Engine) acquire() (release func(), err error) {
	release = func() { e.activeCalls.Add(-1) }
	if n := e.activeCalls.Add(1); n > maxConcurrent {
		release()
		return nil, host.Errorf(host.Busy, "%d calls of plugins are under way, and no more are begun; try again when one has ended", maxConcurrent)
	}
	return release, nil
}

// New makes an engine.
func New(cfg Config) *Engine {
	if cfg.Notice == nil {
		cfg.Notice = func(string) {}
	}
	if cfg.Debug == nil {
		cfg.Debug = func(string) {}
	}
	return &Engine{cfg: cfg, plugins: map[*compiledPlugin]bool{}, invalid: map[string]*host.Error{}, compiling: make(chan struct{}, maxConcurrentCompiles), budget: compileBudget}
}

// Close frees all compiled code. No call may be under way.
func (e *Engine) Close(ctx context.Context) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.closed = true
	var all []error
	for p := range e.plugins {
		all = append(all, p.close(ctx))
	}
	clear(e.plugins)
	return errors.Join(all...)
}

// compiledPlugin is one compiled plugin. It has an engine of its own, so that nothing of one plugin can be found by another.
type compiledPlugin struct {
	module   *instrument.Module // without its wasm
	slot     slot               // where its compiled code is kept; without a folder where it is not
	runtime  wazero.Runtime
	cache    wazero.CompilationCache
	compiled wazero.CompiledModule
}

func (p *compiledPlugin) close(ctx context.Context) error {
	err := p.runtime.Close(ctx)
	if p.cache != nil {
		err = errors.Join(err, p.cache.Close(ctx))
	}
	return err
}

// load makes a compiled plugin of a module, from the cache where it can.
func (e *Engine) load(ctx context.Context, src Source, m *manifest.Manifest) (*compiledPlugin, error) {
	p, err := e.findOrCompile(ctx, src, m)
	if err != nil {
		return nil, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return nil, errors.Join(host.Errorf(host.Unavailable, "the engine is closed"), p.close(ctx))
	}
	e.plugins[p] = true
	return p, nil
}

// findOrCompile looks for compiled code by the bytes that the module comes from, and reads, judges, rewrites and compiles the module only where there is none.
func (e *Engine) findOrCompile(ctx context.Context, src Source, m *manifest.Manifest) (*compiledPlugin, error) {
	var wasm []byte
	var err error
	key := ""
	if len(src.Packed) > 0 {
		key = cacheKey("packed", src.Packed)
	} else {
		if wasm, err = src.Wasm(); err != nil {
			return nil, err
		}
		key = cacheKey("wasm", wasm)
	}
	dir := e.cacheDir()
	s := slot{filepath.Join(dir, key), key}
	if dir != "" {
		p, err := e.openCached(s, m)
		if err == nil || !errors.Is(err, fs.ErrNotExist) {
			return p, err
		}
	}
	if err := e.knownInvalid(key); err != nil {
		return nil, err
	}
	if wasm == nil {
		if wasm, err = src.Wasm(); err != nil {
			return nil, err
		}
	}
	module, err := validateModule(wasm, m)
	if err != nil {
		return nil, err
	}
	suffix := ""
	if dir != "" {
		suffix = " (happens once)"
	}
	e.cfg.Notice(fmt.Sprintf("compiling %s %s%s", m.Name, manifest.CleanLine(m.Version), suffix))
	p, err := e.compile(ctx, m.Name, module, s, dir)
	if known := (*host.Error)(nil); errors.As(err, &known) && known.Code == host.InvalidPlugin {
		e.rememberInvalid(key, known)
	}
	return p, err
}

// openCached opens a slot. fs.ErrNotExist says that there was none, or that there is none any more because it was damaged.
func (e *Engine) openCached(s slot, m *manifest.Manifest) (*compiledPlugin, error) {
	sums, err := s.read()
	if errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if err == nil {
		if err := checkModule(&sums.Module, m); err != nil {
			return nil, err
		}
		var p *compiledPlugin
		if p, err = openSlot(s, sums); err == nil {
			return p, nil
		}
	}
	e.cfg.Debug(fmt.Sprintf("the compiled code of %s is thrown away and made anew: %s", m.Name, truncate(manifest.CleanLine(err.Error()), 300)))
	if err := s.remove(); err != nil {
		e.cfg.Debug(err.Error())
	}
	return nil, fs.ErrNotExist
}

// compile fills a new folder, opens it and makes it the slot s; where there is no cache folder (dir is "") or nothing can be written to it, the
// folder is one for temporary files and does not stay.
func (e *Engine) compile(ctx context.Context, name string, module *instrument.Module, s slot, dir string) (*compiledPlugin, error) {
	var lastErr error
	for _, parent := range slices.Compact([]string{dir, ""}) {
		temp, err := os.MkdirTemp(parent, "filling-*"+tempSuffix)
		if err == nil {
			var p *compiledPlugin
			p, err = e.compileIn(ctx, name, module, slot{temp, s.key})
			if err == nil && parent != "" && os.Rename(temp, s.dir) == nil {
				p.slot = s
				e.evict(dir, s.key)
				return p, nil
			}
			if p != nil {
				p.slot = slot{}
			}
			if err := os.RemoveAll(temp); err != nil {
				e.cfg.Debug(err.Error())
			}
			if known := (*host.Error)(nil); err == nil || errors.As(err, &known) {
				return p, err
			}
		}
		e.cfg.Debug("compiled code cannot be kept: " + manifest.CleanLine(err.Error()))
		lastErr = err
	}
	return nil, &host.Error{Code: host.Unavailable, Cause: lastErr, Next: []string{"parley doctor"},
		Message: fmt.Sprintf("the compiled code of %s cannot be written: %s", name, truncate(manifest.CleanLine(lastErr.Error()), 300))}
}

// compileIn fills a folder, seals it and opens it. What is no *host.Error is a fault of the folder.
func (e *Engine) compileIn(ctx context.Context, name string, module *instrument.Module, s slot) (*compiledPlugin, error) {
	if err := e.runCompiler(ctx, name, module, s.dir); err != nil {
		return nil, err
	}
	sums, err := s.writeChecksums(module)
	if err != nil {
		return nil, err
	}
	return openSlot(s, sums)
}

// openSlot hands the husk of a slot to wazero, which finds the native code in the slot.
func openSlot(s slot, sums *checksums) (_ *compiledPlugin, err error) {
	ctx := compilerContext()
	p := &compiledPlugin{module: &sums.Module, slot: s}
	if p.cache, err = wazero.NewCompilationCacheWithDir(s.dir); err != nil {
		return nil, err
	}
	p.runtime = wazero.NewRuntimeWithConfig(ctx, engineConfig().WithCompilationCache(p.cache))
	defer func() {
		if err != nil {
			_ = p.close(ctx)
		}
	}()
	if p.compiled, err = p.runtime.CompileModule(ctx, sums.Module.Wasm); err != nil {
		return nil, err
	}
	sums.Module.Wasm = nil
	if !s.isUnchanged(sums) {
		return nil, errors.New("it was changed while it was opened")
	}
	if err = instantiateHostModules(ctx, p); err != nil {
		return nil, err
	}
	return p, nil
}

// maxKnownInvalid bounds how many verdicts are remembered.
const maxKnownInvalid = 1000

// rememberInvalid remembers that a module cannot be compiled, so that asking for it again costs nothing.
func (e *Engine) rememberInvalid(key string, err *host.Error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.invalid) >= maxKnownInvalid {
		clear(e.invalid)
	}
	e.invalid[key] = err
}

// knownInvalid returns a fresh copy, for callers add to errors.
func (e *Engine) knownInvalid(key string) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if err := e.invalid[key]; err != nil {
		copied := *err
		return &copied
	}
	return nil
}

// truncate shortens a text that is shown to people, saying so.
func truncate(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "") + fmt.Sprintf("… (%d bytes in all)", len(s))
}
