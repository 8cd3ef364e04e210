package wasm

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/wasm/internal/instrument"
	"github.com/parley-tools/parley/manifest"
)

// Config of an Engine. Zero values are defaults.
type Config struct {
	// CacheDir keeps compiled code between processes; it is made 0700 and holds native code, so it must belong to
	// this user. "" keeps compiled code in memory only.
	CacheDir string
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
	return &Engine{cfg: cfg, units: map[*unit]bool{}}
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

// unit is one compiled plugin. It has an engine of its own, so that nothing of one plugin can be found by another,
// and a cache folder of its own, so that a damaged entry can be thrown away.
type unit struct {
	module   *instrument.Module
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
	wasm, err := src.Wasm()
	if err != nil {
		return nil, err
	}
	module, err := admit(wasm, m)
	if err != nil {
		return nil, err
	}
	dir := e.cacheFolder(wasm)
	if dir == "" {
		e.cfg.Notice(fmt.Sprintf("compiling %s %s", m.Name, manifest.CleanLine(m.Version)))
	} else if entries, _ := os.ReadDir(dir); len(entries) == 0 {
		e.cfg.Notice(fmt.Sprintf("compiling %s %s (happens once)", m.Name, manifest.CleanLine(m.Version)))
	}
	u, err := compile(module, dir)
	if err != nil && dir != "" && damagedCache(err) {
		e.cfg.Debug(fmt.Sprintf("the compile cache of %s is damaged and is made anew", m.Name))
		if err := os.RemoveAll(dir); err != nil {
			dir = ""
		}
		u, err = compile(module, dir)
	}
	if err != nil {
		e.cfg.Debug("wazero: " + manifest.CleanLine(err.Error()))
		return nil, &host.Error{Code: host.InvalidPlugin, Cause: err,
			Message: fmt.Sprintf("%s cannot be compiled: %s", m.Name, cut(manifest.CleanLine(err.Error()), 300))}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return nil, errors.Join(host.Errorf(host.Unavailable, "the engine is closed"), u.close(ctx))
	}
	e.units[u] = true
	return u, nil
}

// compile hands an instrumented module to wazero. It cannot be interrupted: what would take too long is for the gate to refuse.
func compile(module *instrument.Module, dir string) (_ *unit, err error) {
	ctx := experimental.WithCompilationWorkers(context.Background(), min(runtime.NumCPU(), 4))
	config := wazero.NewRuntimeConfig().WithCoreFeatures(api.CoreFeaturesV2).WithDebugInfoEnabled(false)
	u := &unit{module: module}
	if dir != "" {
		if u.cache, err = wazero.NewCompilationCacheWithDir(dir); err != nil {
			return nil, err
		}
		config = config.WithCompilationCache(u.cache)
	}
	u.runtime = wazero.NewRuntimeWithConfig(ctx, config)
	defer func() {
		if err != nil {
			_ = u.close(ctx)
		}
	}()
	if u.compiled, err = u.runtime.CompileModule(ctx, module.Wasm); err != nil {
		return nil, err
	}
	if err = hostModules(ctx, u); err != nil {
		return nil, err
	}
	return u, nil
}

// damagedCache recognises wazero's complaint about an entry, which it treats as a hard error (v1.12.0).
func damagedCache(err error) bool { return strings.Contains(err.Error(), "compilationcache:") }

// cacheFolder is where a module's compiled code is kept: one folder for each module and version of the
// instrumentation. It returns "" where there is no folder that only this user can write to.
func (e *Engine) cacheFolder(wasm []byte) string {
	if e.cfg.CacheDir == "" {
		return ""
	}
	if err := privateDir(e.cfg.CacheDir); err != nil {
		e.cfg.Debug("no compile cache: " + err.Error())
		return ""
	}
	sum := sha256.Sum256(wasm)
	dir := filepath.Join(e.cfg.CacheDir, fmt.Sprintf("%s-%d", hex.EncodeToString(sum[:16]), instrument.Version))
	if err := privateDir(dir); err != nil {
		e.cfg.Debug("no compile cache: " + err.Error())
		return ""
	}
	return dir
}

// privateDir makes a folder that only this user may read and write, or takes such rights from one that is there.
func privateDir(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	info, err := os.Lstat(dir)
	switch {
	case err != nil:
		return err
	case !info.IsDir():
		return fmt.Errorf("%s is not a folder", dir)
	case !ownedByUser(info):
		return fmt.Errorf("%s belongs to another user", dir)
	case info.Mode().Perm()&0o077 != 0:
		return os.Chmod(dir, 0o700)
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
