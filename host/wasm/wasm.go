// Package wasm runs plugins that are WebAssembly modules. It supports the kinds parley/1 (a reactor that exchanges
// JSON) and wasi (any WASI preview 1 command). A module is read only when it is called. It is validated and
// instrumented before the engine sees it, and each call gets an instance of its own. Installed plugins are
// in the package store.
//
// A call runs on the caller's goroutine and ends by its deadline whatever the guest does: instrumented code returns
// to the host many times per millisecond (see internal/instrument), and every host function that can block or run
// long checks the context. Only the context decides whether a call ended in time, never the guest's output.
//
// Compilation can be neither bounded nor interrupted within a process. A separate process therefore compiles each
// module once: see [CompileMain]. The compilation continues even if the call that needed it ends, until the engine is
// closed. The resulting native code is cached in a folder that only this user may write to.
//
// Without grants a guest has no files and no environment, a wall clock that always shows 1970-01-01T00:00:00Z, a
// monotonic clock that starts at 0, and the same stream of random bytes in every call.
package wasm

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tetratelabs/wazero"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/grant"
	"github.com/parley-tools/parley/host/job"
	"github.com/parley-tools/parley/host/protect"
	"github.com/parley-tools/parley/host/step"
	"github.com/parley-tools/parley/host/wasm/internal/cache"
	"github.com/parley-tools/parley/host/wasm/internal/guest"
	"github.com/parley-tools/parley/host/wasm/internal/instrument"
	"github.com/parley-tools/parley/host/wasm/internal/module"
	"github.com/parley-tools/parley/host/wasm/internal/world"
	"github.com/parley-tools/parley/host/wasm/store"
	"github.com/parley-tools/parley/internal/slots"
	"github.com/parley-tools/parley/manifest"
)

// Config configures an [Engine]. The zero value is valid.
type Config struct {
	// CacheDir is the folder that keeps compiled code between processes. It is created with mode 0700 and must
	// belong to this user, because it holds native code. "" keeps compiled code in memory only.
	CacheDir string
	// CacheSize bounds the cached compiled code, in bytes; 0 means 1 GiB. The least recently used is removed first.
	CacheSize int64
	// Child returns a command that starts this program again, without arguments. With PARLEY_CHILD=compile in its
	// environment the program must call [CompileMain] first, with PARLEY_CHILD=runner [RunnerMain]. If Child is
	// nil, modules are compiled in this process without any bound, which is meant for tests and for trusted
	// modules, and isolated calls fail.
	Child func() *exec.Cmd
	// SlotDir is a folder through which processes share the bounds of concurrent calls and compilations. It is created
	// with mode 0700. If it is "", the bounds apply to this engine alone.
	SlotDir string
	// Isolate isolates calls by default if the system supports it. Otherwise they run in this process.
	Isolate bool
	// RunDir is the folder for the sockets of runners that serve several calls. It is created with mode 0700. Calls that
	// must be isolated run in these runners. If it is "", each such call gets a runner of its own.
	RunDir string
	// RunnerIdle is how long an unused runner stays. Zero means one minute. If it is negative, each runner serves one
	// call.
	RunnerIdle time.Duration
	// Fresh makes every instance begin without an image, to compare outcomes or to measure what images save. No other
	// engine may then use CacheDir.
	Fresh bool
	// Watch are files that affect calls, such as policies. A runner ends when one of them changes.
	Watch []string
	// HostVersion is the host's version in the requests that guests get.
	HostVersion string
	// Limits are the defaults for plugins that request no limits. Zero fields mean 256 MiB of memory, 30 s, and 1 MiB of
	// output.
	Limits grant.Limits
	// ModuleLimits, if not nil, returns the limits of the module of a plugin. Zero fields mean 128 MiB, 250,000 functions,
	// tables of 262,144 entries, 10 s of CPU time and 1 s for each MiB of code, and 2 GiB of memory.
	ModuleLimits func(plugin string) (grant.ModuleLimits, error)
	// ScriptEngine, if not nil, returns the plugin with a name that runs plugins of kind script, or nil if there is
	// none. digest identifies the build that a script is bound to, or is "".
	ScriptEngine func(name, digest string) (*Provider, error)
	// Requests runs calls of plugins of kind http, which have no code. If it is nil, such calls fail. The manifest may
	// have no tools.
	Requests func(ctx context.Context, m *manifest.Manifest, r *host.Request) (*job.Result, error)
	// Away, if not nil, finds places on other machines for calls with a pool; see [job.Job].
	Away Away
	// Runners bounds the shared runners on this machine. Zero means 8.
	Runners int
	// Annotate, if not nil, adds what is known about a build to its manifest when that is read: the runs of its
	// examples.
	Annotate func(digest string, m *manifest.Manifest)
	// Notice, if not nil, gets a line before a plugin is compiled for the first time, which may take seconds.
	Notice func(string)
	// Debug, if not nil, gets lines that help to diagnose problems.
	Debug func(string)
	// Redact, if not nil, returns a function that removes the values of secrets from texts about a runner.
	Redact func() func(string) string
}

// Engine compiles and runs plugins. Creating one is cheap: what a plugin needs is created at its first call.
type Engine struct {
	cfg Config

	mu      sync.Mutex
	plugins map[*compiledPlugin]bool
	closed  bool
	// refused has the errors of modules that cannot be compiled, by cache key and bounds.
	refused map[string]*host.Error

	// Plugins are loaded in this context, independently of calls, until the engine is closed.
	background context.Context
	stop       context.CancelFunc
	loads      sync.WaitGroup
	budget     func(codeBytes int) budget
	report     time.Duration               // when a waiting call first gets progress; the time doubles
	missing    func(folders bool) []string // MissingIsolation, except in tests

	shared slots.Pool // calls of one plugin, and compilations, over all processes
	own    slots.Pool // calls of all plugins, and lookups and compilations of modules, in this process

	poolOnce sync.Once
	pool     *runnerPool // see runners

	lostRunners atomic.Int64
}

// Names of slots that no plugin can have: a plugin's name begins with a letter.
const (
	compileSlots = "_compile"
	aheadSlots   = "_ahead"
	callSlots    = "_calls"
	runnerSlots  = "_runners"
	moduleSlots  = "_module " // followed by a cache key
)

// maxConcurrent bounds the calls in progress, and therefore their memory.
const maxConcurrent = 64

// New returns an engine.
func New(cfg Config) *Engine {
	if cfg.Notice == nil {
		cfg.Notice = func(string) {}
	}
	if cfg.ModuleLimits == nil {
		cfg.ModuleLimits = func(string) (grant.ModuleLimits, error) { return grant.ModuleLimits{}, nil }
	}
	if cfg.Debug == nil {
		cfg.Debug = func(string) {}
	}
	e := &Engine{cfg: cfg, plugins: map[*compiledPlugin]bool{}, refused: map[string]*host.Error{},
		budget: compileBudget, report: time.Second, missing: MissingIsolation}
	e.shared.Dir = cfg.SlotDir
	e.cfg.Runners = cmp.Or(cfg.Runners, maxRunners)
	e.background, e.stop = context.WithCancel(context.Background())
	return e
}

// closeWait bounds how long Close waits for a compilation in this process, which cannot be interrupted.
const closeWait = 2 * time.Second

// Close ends compilations that are under way and frees all compiled code. There must be no call in progress. Without
// [Config].Child a compilation cannot be ended. Close waits for it at most two seconds, and its result is discarded
// later.
func (e *Engine) Close(ctx context.Context) error {
	e.mu.Lock()
	e.closed = true
	e.mu.Unlock()
	e.stop()
	ended := make(chan struct{})
	go func() {
		e.loads.Wait()
		close(ended)
	}()
	select {
	case <-ended:
	case <-ctx.Done():
	case <-time.After(closeWait):
	}
	e.runners().close()
	e.mu.Lock()
	defer e.mu.Unlock()
	var all []error
	for p := range e.plugins {
		all = append(all, p.code.Close(ctx))
	}
	clear(e.plugins)
	return errors.Join(all...)
}

// compiledPlugin is one compiled plugin.
type compiledPlugin struct {
	code *guest.Code
	slot cache.Slot // where its compiled code is cached; without a folder if it is not cached
}

// LostRunners returns how many runners ended while a call used them. They were replaced by others.
func (e *Engine) LostRunners() int { return int(e.lostRunners.Load()) }

// CompileAhead compiles plugins that are not compiled yet, before a call needs them. It does so in the background,
// after a pause, one at a time over all processes, and with low priority. A call of a plugin that is being compiled
// waits for that compilation. CompileAhead ends with the engine, and does nothing without [Config].Child.
func (e *Engine) CompileAhead(pause time.Duration, plugins []*Provider) {
	if e.cfg.Child == nil {
		return
	}
	_ = e.inBackground(func() {
		select {
		case <-time.After(pause):
		case <-e.background.Done():
			return
		}
		for _, p := range plugins {
			release, err := e.shared.Acquire(e.background, aheadSlots, "", 1, true)
			if err != nil {
				return // the engine is closed
			}
			if err := p.ensureCompiled(e.background, waiter{ahead: true}); err != nil {
				e.cfg.Debug(fmt.Sprintf("%s is not compiled ahead: %v", p.info.Name, err))
			}
			release()
		}
	})
}

// load returns a compiled plugin, from the cache if possible. It sets l.compiling when it compiles, or when it waits
// for another load of the module.
func (e *Engine) load(src store.Source, m *manifest.Manifest, l *loading) (*compiledPlugin, error) {
	p, err := e.findOrCompile(src, m, l)
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case e.closed && p != nil:
		return nil, errors.Join(closedError(), p.code.Close(context.Background()))
	case e.closed:
		return nil, closedError()
	case err != nil:
		return nil, err
	}
	e.plugins[p] = true
	return p, nil
}

// inBackground runs load in a goroutine of its own, for which Close waits. It returns an error if the engine is
// closed.
func (e *Engine) inBackground(load func()) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return closedError()
	}
	e.loads.Go(load)
	return nil
}

func closedError() *host.Error { return host.Errorf(host.Unavailable, "the engine is closed") }

// lockModule waits until nobody else looks up or compiles the module with a cache key. It sets compiling if it has to
// wait. The caller must call unlock.
func (e *Engine) lockModule(key string, compiling *atomic.Bool) (unlock func(), err error) {
	name := moduleSlots + key
	if unlock, err = e.own.Acquire(e.background, name, "", 1, false); err == nil {
		return unlock, nil
	}
	compiling.Store(true)
	if unlock, err = e.own.Acquire(e.background, name, "", 1, true); err != nil {
		return nil, closedError()
	}
	return unlock, nil
}

// Forget removes the compiled code of an installed build, which nobody can call any more.
func (e *Engine) Forget(digest string) {
	if dir := e.cacheDir(); dir != "" {
		_ = cache.Slot{Dir: filepath.Join(dir, cache.Key("digest", []byte(digest)))}.Remove() // it may not be compiled
	}
}

// cacheDir returns the cache folder, or "" if there is no folder that only this user can write to.
func (e *Engine) cacheDir() string {
	if e.cfg.CacheDir == "" {
		return ""
	}
	if err := protect.Dir(e.cfg.CacheDir); err != nil {
		e.cfg.Debug("no compile cache: " + err.Error())
		return ""
	}
	return e.cfg.CacheDir
}

// findOrCompile looks up compiled code by the hash of the module's bytes. Only if it finds none, it reads, validates,
// instruments and compiles the module.
func (e *Engine) findOrCompile(src store.Source, m *manifest.Manifest, l *loading) (*compiledPlugin, error) {
	dir := e.cacheDir()
	key, wasm, err := moduleKey(&src, dir)
	if err != nil {
		return nil, err
	}
	s := cache.Slot{Dir: filepath.Join(dir, key), Key: key}
	if dir != "" {
		unlock, err := e.lockModule(key, &l.compiling)
		if err != nil {
			return nil, err
		}
		defer unlock()
		p, err := e.openCached(s, m)
		if err == nil || !errors.Is(err, fs.ErrNotExist) {
			return p, err
		}
	}
	limits, err := e.cfg.ModuleLimits(m.Name)
	if err != nil {
		return nil, err
	}
	if err := e.knownRefusal(dir, key, limits); err != nil {
		return nil, err
	}
	l.compiling.Store(true)
	if wasm == nil {
		if wasm, err = src.Wasm(); err != nil {
			return nil, err
		}
	}
	built, assets, err := module.Read(wasm, m, limits)
	if err != nil {
		return nil, err
	}
	suffix := ""
	if dir != "" {
		suffix = " (happens once)"
	}
	say := e.cfg.Notice
	if l.ahead {
		say = e.cfg.Debug
	}
	say(fmt.Sprintf("compiling %s %s%s", m.Name, manifest.CleanLine(m.Version), suffix))
	p, err := e.compile(&compileJob{m, built, limits, assets, l.ahead}, s, dir)
	if known := (*host.Error)(nil); errors.As(err, &known) && known.Code == host.InvalidPlugin {
		e.rememberRefusal(dir, key, limits, known)
	}
	return p, err
}

// openCached opens a slot. fs.ErrNotExist means that there is no slot, or that it was damaged and has been removed.
func (e *Engine) openCached(s cache.Slot, m *manifest.Manifest) (*compiledPlugin, error) {
	sums, err := s.Read()
	if errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if err == nil {
		if err := module.CheckRead(&sums.Module, sums.Assets.Name != "", m); err != nil {
			return nil, err
		}
		var p *compiledPlugin
		if p, err = openSlot(s, sums); err == nil {
			return p, nil
		}
	}
	e.cfg.Debug(fmt.Sprintf("the compiled code of %s is discarded and compiled again: %s", m.Name,
		world.Line(err.Error(), 300)))
	if err := s.Remove(); err != nil {
		e.cfg.Debug(err.Error())
	}
	return nil, fs.ErrNotExist
}

// compileJob is a module to compile.
type compileJob struct {
	manifest *manifest.Manifest
	module   *instrument.Module
	limits   grant.ModuleLimits
	assets   []byte
	low      bool // compile with low priority
}

// compile fills a new folder, opens it and renames it to the slot s. If there is no cache folder (dir is "") or it
// cannot be written, a temporary folder is used and removed.
func (e *Engine) compile(j *compileJob, s cache.Slot, dir string) (*compiledPlugin, error) {
	var lastErr error
	for _, parent := range slices.Compact([]string{dir, ""}) {
		temp, err := os.MkdirTemp(parent, "filling-*"+store.TempSuffix)
		if err == nil {
			var p *compiledPlugin
			p, err = e.compileIn(j, cache.Slot{Dir: temp, Key: s.Key})
			if err == nil && parent != "" && os.Rename(temp, s.Dir) == nil {
				p.slot = s
				cache.Evict(dir, s.Key, refusedSuffix, e.cfg.CacheSize, e.cfg.Debug)
				return p, nil
			}
			if p != nil {
				p.slot = cache.Slot{}
			}
			if err := os.RemoveAll(temp); err != nil {
				e.cfg.Debug(err.Error())
			}
			if known := (*host.Error)(nil); err == nil || errors.As(err, &known) {
				return p, err
			}
		}
		e.cfg.Debug("cannot cache compiled code: " + manifest.CleanLine(err.Error()))
		lastErr = err
	}
	return nil, world.Failed(host.Unavailable, lastErr, "cannot write the compiled code of %s: %s", j.manifest.Name,
		world.Line(lastErr.Error(), 300)).WithSteps(step.Operator(step.OpDoctor))
}

// compileIn fills a folder, writes its checksums and opens it. An error that is not a *host.Error concerns the
// folder.
func (e *Engine) compileIn(j *compileJob, s cache.Slot) (*compiledPlugin, error) {
	if j.assets != nil {
		if err := os.WriteFile(filepath.Join(s.Dir, world.AssetsName), j.assets, 0o600); err != nil {
			return nil, err
		}
	}
	order := guest.OrderImage(j.module, j.manifest)
	if e.cfg.Fresh {
		order = nil
	}
	if err := e.runCompiler(j, order, s.Dir); err != nil {
		return nil, err
	}
	sums, err := s.WriteChecksums(j.module, j.assets != nil)
	if err != nil {
		return nil, err
	}
	return openSlot(s, sums)
}

// openSlot gives the stub module of a slot to wazero, which finds the native code in the slot.
func openSlot(s cache.Slot, sums *cache.Checksums) (_ *compiledPlugin, err error) {
	ctx := compilerContext()
	p := &compiledPlugin{code: &guest.Code{Module: &sums.Module, Image: sums.Image}, slot: s}
	if sums.Assets.Name != "" {
		if p.code.Assets, err = world.ReadAssets(s.Dir); err != nil {
			return nil, err
		}
	}
	if p.code.Image != nil {
		if err = p.code.Image.Open(s.Dir); err != nil {
			return nil, err
		}
	}
	if p.code.Cache, err = wazero.NewCompilationCacheWithDir(s.Dir); err != nil {
		return nil, err
	}
	p.code.Runtime = wazero.NewRuntimeWithConfig(ctx, engineConfig().WithCompilationCache(p.code.Cache))
	defer func() {
		if err != nil {
			_ = p.code.Close(ctx)
		}
	}()
	if p.code.Compiled, err = p.code.Runtime.CompileModule(ctx, sums.Module.Wasm); err != nil {
		return nil, err
	}
	sums.Module.Wasm = nil
	if !s.IsUnchanged(sums) {
		return nil, errors.New("it changed while it was opened")
	}
	if err = p.code.Link(ctx, nil); err != nil {
		return nil, err
	}
	return p, nil
}
