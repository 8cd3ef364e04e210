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

	mu     sync.Mutex
	units  map[*unit]bool
	closed bool
	// refused are modules that cannot be compiled, by key.
	refused map[string]*host.Error

	compiling chan struct{} // holds one token for each compile under way
	budget    func(codeBytes int) budget

	calls atomic.Int32 // under way
}

// maxConcurrent bounds what calls under way may have together: memory above all. A call beyond it is refused and does not wait, because
// what it waited for might be the call that asked for it.
const maxConcurrent = 64

// enter counts a call that begins; leave must be called when it ends.
func (e *Engine) enter() (leave func(), err error) {
	leave = func() { e.calls.Add(-1) }
	if n := e.calls.Add(1); n > maxConcurrent {
		leave()
		return nil, host.Errorf(host.Busy, "%d calls of plugins are under way, and no more are begun; try again when one has ended", maxConcurrent)
	}
	return leave, nil
}

// New makes an engine.
func New(cfg Config) *Engine {
	if cfg.Notice == nil {
		cfg.Notice = func(string) {}
	}
	if cfg.Debug == nil {
		cfg.Debug = func(string) {}
	}
	return &Engine{cfg: cfg, units: map[*unit]bool{}, refused: map[string]*host.Error{}, compiling: make(chan struct{}, maxCompiling), budget: compileBudget}
}

// Close frees all compiled code. No call may be under way.
func (e *Engine) Close(ctx context.Context) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.closed = true
	var all []error
	for u := range e.units {
		all = append(all, u.close(ctx))
	}
	clear(e.units)
	return errors.Join(all...)
}

// unit is one compiled plugin. It has an engine of its own, so that nothing of one plugin can be found by another.
type unit struct {
	module   *instrument.Module // without its wasm
	slot     slot               // where its compiled code is kept; without a folder where it is not
	runtime  wazero.Runtime
	cache    wazero.CompilationCache
	compiled wazero.CompiledModule
}

func (u *unit) close(ctx context.Context) error {
	err := u.runtime.Close(ctx)
	if u.cache != nil {
		err = errors.Join(err, u.cache.Close(ctx))
	}
	return err
}

// load makes a unit of a module, from the cache where it can.
func (e *Engine) load(ctx context.Context, src Source, m *manifest.Manifest) (*unit, error) {
	u, err := e.unit(ctx, src, m)
	if err != nil {
		return nil, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return nil, errors.Join(host.Errorf(host.Unavailable, "the engine is closed"), u.close(ctx))
	}
	e.units[u] = true
	return u, nil
}

// unit looks for compiled code by the bytes that the module comes from, and reads, judges, rewrites and compiles the module only where there is none.
func (e *Engine) unit(ctx context.Context, src Source, m *manifest.Manifest) (*unit, error) {
	var wasm []byte
	var err error
	key := ""
	if len(src.Packed) > 0 {
		key = keyOf("packed", src.Packed)
	} else {
		if wasm, err = src.Wasm(); err != nil {
			return nil, err
		}
		key = keyOf("wasm", wasm)
	}
	dir := e.cacheDir()
	s := slot{filepath.Join(dir, key), key}
	if dir != "" {
		u, err := e.fromCache(s, m)
		if err == nil || !errors.Is(err, fs.ErrNotExist) {
			return u, err
		}
	}
	if err := e.refusedBefore(key); err != nil {
		return nil, err
	}
	if wasm == nil {
		if wasm, err = src.Wasm(); err != nil {
			return nil, err
		}
	}
	module, err := admit(wasm, m)
	if err != nil {
		return nil, err
	}
	once := ""
	if dir != "" {
		once = " (happens once)"
	}
	e.cfg.Notice(fmt.Sprintf("compiling %s %s%s", m.Name, manifest.CleanLine(m.Version), once))
	u, err := e.compile(ctx, m.Name, module, s, dir)
	if known := (*host.Error)(nil); errors.As(err, &known) && known.Code == host.InvalidPlugin {
		e.refuse(key, known)
	}
	return u, err
}

// fromCache opens a slot. fs.ErrNotExist says that there was none, or that there is none any more because it was damaged.
func (e *Engine) fromCache(s slot, m *manifest.Manifest) (*unit, error) {
	sealed, err := s.read()
	if errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if err == nil {
		if err := suits(&sealed.Module, m); err != nil {
			return nil, err
		}
		var u *unit
		if u, err = open(s, sealed); err == nil {
			return u, nil
		}
	}
	e.cfg.Debug(fmt.Sprintf("the compiled code of %s is thrown away and made anew: %s", m.Name, cut(manifest.CleanLine(err.Error()), 300)))
	if err := s.remove(); err != nil {
		e.cfg.Debug(err.Error())
	}
	return nil, fs.ErrNotExist
}

// compile fills a new folder, opens it and makes it the slot s; where there is no cache folder (dir is "") or nothing can be written to it, the
// folder is one for temporary files and does not stay.
func (e *Engine) compile(ctx context.Context, name string, module *instrument.Module, s slot, dir string) (*unit, error) {
	var why error
	for _, parent := range slices.Compact([]string{dir, ""}) {
		temp, err := os.MkdirTemp(parent, "filling-*"+tempSuffix)
		if err == nil {
			var u *unit
			u, err = e.compileIn(ctx, name, module, slot{temp, s.key})
			if err == nil && parent != "" && os.Rename(temp, s.dir) == nil {
				u.slot = s
				e.evict(dir, s.key)
				return u, nil
			}
			if u != nil {
				u.slot = slot{}
			}
			if err := os.RemoveAll(temp); err != nil {
				e.cfg.Debug(err.Error())
			}
			if known := (*host.Error)(nil); err == nil || errors.As(err, &known) {
				return u, err
			}
		}
		e.cfg.Debug("compiled code cannot be kept: " + manifest.CleanLine(err.Error()))
		why = err
	}
	return nil, &host.Error{Code: host.Unavailable, Cause: why, Next: []string{"parley doctor"},
		Message: fmt.Sprintf("the compiled code of %s cannot be written: %s", name, cut(manifest.CleanLine(why.Error()), 300))}
}

// compileIn fills a folder, seals it and opens it. What is no *host.Error is a fault of the folder.
func (e *Engine) compileIn(ctx context.Context, name string, module *instrument.Module, s slot) (*unit, error) {
	if err := e.fill(ctx, name, module, s.dir); err != nil {
		return nil, err
	}
	sealed, err := s.seal(module)
	if err != nil {
		return nil, err
	}
	return open(s, sealed)
}

// open hands the husk of a slot to wazero, which finds the native code in the slot.
func open(s slot, sealed *seal) (_ *unit, err error) {
	ctx := compilerContext()
	u := &unit{module: &sealed.Module, slot: s}
	if u.cache, err = wazero.NewCompilationCacheWithDir(s.dir); err != nil {
		return nil, err
	}
	u.runtime = wazero.NewRuntimeWithConfig(ctx, runtimeConfig().WithCompilationCache(u.cache))
	defer func() {
		if err != nil {
			_ = u.close(ctx)
		}
	}()
	if u.compiled, err = u.runtime.CompileModule(ctx, sealed.Module.Wasm); err != nil {
		return nil, err
	}
	sealed.Module.Wasm = nil
	if !s.unchanged(sealed) {
		return nil, errors.New("it was changed while it was opened")
	}
	if err = hostModules(ctx, u); err != nil {
		return nil, err
	}
	return u, nil
}

// maxRefused bounds how many verdicts are remembered.
const maxRefused = 1000

// refuse remembers that a module cannot be compiled, so that asking for it again costs nothing.
func (e *Engine) refuse(key string, err *host.Error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.refused) >= maxRefused {
		clear(e.refused)
	}
	e.refused[key] = err
}

// refusedBefore returns a fresh copy, for callers add to errors.
func (e *Engine) refusedBefore(key string) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if err := e.refused[key]; err != nil {
		again := *err
		return &again
	}
	return nil
}

// cut shortens a text that is shown to people, saying so.
func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "") + fmt.Sprintf("… (%d bytes in all)", len(s))
}
