package wasm

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/job"
	"github.com/parley-tools/parley/host/step"
	"github.com/parley-tools/parley/host/wasm/internal/cache"
	"github.com/parley-tools/parley/host/wasm/internal/guest"
	"github.com/parley-tools/parley/host/wasm/internal/module"
	"github.com/parley-tools/parley/host/wasm/internal/world"
	"github.com/parley-tools/parley/host/wasm/store"
	"github.com/parley-tools/parley/internal/deadline"
	"github.com/parley-tools/parley/manifest"
	"github.com/parley-tools/parley/manifest/sections"
)

// Provider is one plugin as a [host.Provider]. Discovery reads only the manifest. The module is read, validated and
// compiled at the first call.
type Provider struct {
	engine    *Engine
	info      host.Info
	loadParts func() *pluginParts

	mu      sync.Mutex
	loading *loading // the last loading, unless it failed

	key string // see moduleKey; guarded by mu

	scriptEngine *Provider // see runsOn; guarded by mu
}

// pluginParts is what a provider needs beyond its info. It is created on first use, because listing a thousand
// plugins needs none of it.
type pluginParts struct {
	src      store.Source
	manifest func() (*manifest.Manifest, error) // whole
	discover func() (*store.Discovery, error)
	segment  func() ([]byte, error)
	text     func() (*sections.SourceFile, error) // see readText
}

// loading is the loading of a plugin. Every call that needs the plugin awaits it. It continues even if these calls
// end.
type loading struct {
	ahead     bool // ahead of calls; see [Engine.CompileAhead]
	compiling atomic.Bool
	done      chan struct{} // closed when plugin or err is set
	plugin    *compiledPlugin
	err       error
}

// waiter describes who waits for a loading. The zero value gets no progress.
type waiter struct {
	call  *host.Request
	ahead bool // as in loading
}

var _ host.Provider = (*Provider)(nil)

// Provider returns a plugin that consists of the parts in src.
func (e *Engine) Provider(src store.Source) *Provider {
	return e.newProvider(src.Info, func() store.Source { return src })
}

// Installed returns the plugin of a store's entry.
func (e *Engine) Installed(s *store.Store, entry store.Entry) *Provider {
	return e.newProvider(entry.Info(), func() store.Source { return s.Source(entry) })
}

func (e *Engine) newProvider(info host.Info, open func() store.Source) *Provider {
	p := &Provider{engine: e, info: info}
	p.loadParts = sync.OnceValue(func() *pluginParts {
		src := open()
		annotate := func(m *manifest.Manifest) {
			if e.cfg.Annotate != nil {
				e.cfg.Annotate(info.Digest, m)
			}
		}
		whole := sync.OnceValues(func() (*manifest.Manifest, error) {
			m, err := src.Manifest()
			if err == nil {
				annotate(m)
			}
			return m, err
		})
		discover := func() (*store.Discovery, error) {
			if src.Discover != nil {
				return src.Discover(annotate)
			}
			m, err := whole()
			return store.DiscoveryOf(m), err
		}
		return &pluginParts{src: src, manifest: whole, discover: sync.OnceValues(discover),
			segment: sync.OnceValues(src.Segment), text: sync.OnceValues(p.readText)}
	})
	return p
}

// Info returns the plugin's info. It reads nothing.
func (p *Provider) Info() host.Info { return p.info }

// Manifest returns the manifest. The manifest of an installed plugin has no tools: see [store.Discovery].
func (p *Provider) Manifest() (*manifest.Manifest, error) {
	d, err := p.loadParts().discover()
	if err != nil {
		return nil, err
	}
	return d.Head, nil
}

// Segment returns the search segment.
func (p *Provider) Segment() ([]byte, error) { return p.loadParts().segment() }

// Groups returns the groups in the order of the manifest.
func (p *Provider) Groups() ([]host.GroupLine, error) { return discovered(p, store.Tools.Groups) }

// Lines returns the tools of a group in the order of the manifest.
func (p *Provider) Lines(group string) ([]host.Line, error) {
	return discovered(p, func(t store.Tools) []host.Line { return t.Lines(group) })
}

// Names returns the names of all tools, sorted.
func (p *Provider) Names() ([]string, error) { return discovered(p, store.Tools.Names) }

// Tool returns the tool named name, or nil.
func (p *Provider) Tool(name string) (*manifest.Tool, error) {
	d, err := p.loadParts().discover()
	if err != nil {
		return nil, err
	}
	return d.Tool(name)
}

// discovered returns what lists read of a plugin.
func discovered[T any](p *Provider, read func(store.Tools) T) (found T, err error) {
	d, err := p.loadParts().discover()
	if err != nil {
		return found, err
	}
	return read(d.Tools), nil
}

// Features says that a call may have to wait until the plugin is compiled.
func (p *Provider) Features() host.Features {
	f := host.Features{Prepare: p.prepareFor, Script: p.pageScript,
		Whole: func() (*manifest.Manifest, error) { return p.loadParts().manifest() }}
	if p.info.Kind == manifest.KindHTTP {
		f.Prepare = nil
	}
	return f
}

// pageScript returns the text of a script that the plugin ships.
func (p *Provider) pageScript(name string) ([]byte, error) {
	m, err := p.Manifest()
	if err != nil {
		return nil, err
	}
	s := m.Script(name)
	if s == nil {
		return nil, host.Errorf(host.NotFound, "%s ships no script %s", m.Name, manifest.CleanLine(name))
	}
	wasm, err := p.loadParts().src.Wasm()
	if err != nil {
		return nil, err
	}
	text, err := sections.ReadScript(wasm, s)
	if err != nil {
		return nil, host.Errorf(host.Integrity, "%s: %v", m.Name, err)
	}
	return bytes.Clone(text), nil
}

// Prepare compiles the plugin if necessary. The first time this may take seconds. A caller that measures or limits a
// call's time can call Prepare before it starts the clock; otherwise [Provider.Invoke] does it. When ctx ends, the
// error is timeout or interrupted, and the compilation continues for later calls, until the engine is closed.
func (p *Provider) Prepare(ctx context.Context) error {
	if p.info.Kind == manifest.KindHTTP {
		return nil
	}
	_, err := p.load(ctx, waiter{})
	return err
}

// prepareFor is [Provider.Prepare] for a call, which gets progress. If the call runs in a runner, it does not open
// the compiled code here.
func (p *Provider) prepareFor(ctx context.Context, r *host.Request) error {
	if goes, _ := p.goesAway(r); goes {
		return nil
	}
	level, err := p.engine.isolation(p.info.Name, r)
	if err != nil {
		return err
	}
	if level != isolateNone {
		if err := p.ensureCompiled(ctx, waiter{call: r}); !errors.Is(err, errNoRunner) {
			return err
		}
	}
	_, err = p.load(ctx, waiter{call: r})
	return err
}

// ensureCompiled makes sure that the compiled code is in the cache. It does not open the code, because a runner does
// that. The error is errNoRunner if the code is not in the cache because the cache cannot be written.
func (p *Provider) ensureCompiled(ctx context.Context, w waiter) error {
	key, err := p.moduleKey()
	if err != nil {
		return err
	}
	if info, err := os.Stat(filepath.Join(p.engine.cfg.CacheDir, key)); err == nil && info.IsDir() &&
		p.engine.cfg.Child != nil && p.engine.cfg.CacheDir != "" {
		return nil
	}
	return p.loadKept(ctx, w)
}

// loadKept loads the plugin, which verifies its compiled code or compiles it again. The error is errNoRunner if the
// code is stored where no other process can open it.
func (p *Provider) loadKept(ctx context.Context, w waiter) error {
	plugin, err := p.load(ctx, w)
	if err == nil && (p.engine.cfg.Child == nil || plugin.slot.Dir == "") {
		return errNoRunner
	}
	return err
}

// moduleKey returns the key of the compiled code.
func (p *Provider) moduleKey() (string, error) {
	if on, err := p.runsOn(); err != nil || on != p {
		if err != nil {
			return "", err
		}
		return on.moduleKey()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.key == "" {
		key, _, err := moduleKey(&p.loadParts().src, p.engine.cacheDir())
		if err != nil {
			return "", err
		}
		p.key = key
	}
	return p.key, nil
}

func (p *Provider) load(ctx context.Context, w waiter) (*compiledPlugin, error) {
	p, err := p.runsOn()
	if err != nil {
		return nil, err
	}
	l, err := p.startLoading(w.ahead)
	if err == nil {
		err = p.await(ctx, l, w.call)
	}
	if err != nil {
		return nil, err
	}
	if known := (*host.Error)(nil); errors.As(l.err, &known) {
		copied := *known // callers add to errors
		return nil, &copied
	}
	return l.plugin, l.err
}

// await waits until the plugin is loaded. If the plugin is being compiled meanwhile, call gets progress, unless it is
// nil.
func (p *Provider) await(ctx context.Context, l *loading, call *host.Request) error {
	select {
	case <-l.done: // even if ctx has ended, because the plugin is not being compiled
		return nil
	default:
	}
	began, pause := time.Now(), p.engine.report
	due := time.NewTimer(pause)
	defer due.Stop()
	for {
		select {
		case <-l.done:
			return nil
		case <-ctx.Done():
			return l.waitError(ctx, p.info.Name)
		case <-due.C:
		}
		if waited := time.Since(began); call != nil && l.compiling.Load() {
			// Nothing of the call is done yet. The progress that the call itself reports later must be larger.
			call.Progress(waited.Seconds()/1e6, 0, fmt.Sprintf("compiling %s, %s so far", p.info.Name,
				waited.Round(time.Second)))
		}
		pause *= 2
		due.Reset(pause)
	}
}

// startLoading returns the loading of the plugin. It begins one if there is none yet, or if the previous one failed.
func (p *Provider) startLoading(ahead bool) (*loading, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.loading != nil {
		return p.loading, nil
	}
	l := &loading{ahead: ahead, done: make(chan struct{})}
	err := p.engine.inBackground(func() {
		defer close(l.done)
		if l.plugin, l.err = p.loadNow(l); l.err != nil {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.loading = nil
		}
	})
	if err != nil {
		return nil, err
	}
	p.loading = l
	return l, nil
}

func (p *Provider) loadNow(l *loading) (plugin *compiledPlugin, err error) {
	defer func() {
		if fault := recover(); fault != nil { // the plugin's caller cannot recover it in this goroutine
			plugin, err = nil, host.Errorf(host.Internal, "internal error: loading %s: %v", p.info.Name, fault)
		}
	}()
	m, err := p.loadParts().manifest()
	if err != nil {
		return nil, err
	}
	return p.engine.load(p.loadParts().src, m, l)
}

// waitError returns the error of a call that ended before the plugin was loaded.
func (l *loading) waitError(ctx context.Context, name string) *host.Error {
	what := name + " is still being loaded"
	if l.compiling.Load() {
		what = name + " is still being compiled"
	}
	if !deadline.Exceeded(ctx) {
		return &host.Error{Code: host.Interrupted, Cause: ctx.Err(), Message: "the call was interrupted; " + what}
	}
	return &host.Error{Code: host.Timeout, Cause: ctx.Err(), Message: what +
		"; that goes on while this process runs, and a retry in it will find it further along"}
}

// Invoke runs a call in a fresh instance: in a runner if the call must be isolated, otherwise on the caller's
// goroutine. A plugin of kind http has no instances.
func (p *Provider) Invoke(ctx context.Context, r *host.Request) (*job.Result, error) {
	if p.info.Kind == manifest.KindHTTP {
		return p.request(ctx, r)
	}
	result, err := p.invoke(ctx, r)
	if e := (*host.Error)(nil); errors.As(err, &e) && e.Trace != nil {
		p.nameFrames(e.Trace)
	}
	return result, err
}

// request runs a call of a plugin of kind http.
func (p *Provider) request(ctx context.Context, r *host.Request) (*job.Result, error) {
	m, err := p.Manifest()
	if err != nil {
		return nil, err
	}
	if p.engine.cfg.Requests == nil {
		return nil, module.Errorf(m, "this host makes no requests for plugins of kind %s", manifest.KindHTTP)
	}
	release, err := p.acquire(ctx, r)
	if err != nil {
		return nil, err
	}
	defer release()
	return p.engine.cfg.Requests(ctx, m, r)
}

func (p *Provider) invoke(ctx context.Context, r *host.Request) (*job.Result, error) {
	j, err := p.job(r)
	if err != nil {
		return nil, err
	}
	goes, why := p.goesAway(r)
	if goes {
		var result *job.Result
		if result, goes, why, err = p.runAway(ctx, j); goes {
			return result, err
		}
	}
	result, err := p.runHere(ctx, j)
	if err == nil && why != "" {
		result.Warnings = append(result.Warnings, "ran outside pool "+r.Pool+": "+why)
	}
	return result, err
}

// runHere runs a job on this machine.
func (p *Provider) runHere(ctx context.Context, j *guest.Job) (*job.Result, error) {
	r := j.Request
	level, err := p.engine.isolation(p.info.Name, r)
	if err != nil {
		return nil, err
	}
	result, err := p.runAt(ctx, j, level)
	switch {
	case !errors.Is(err, errNoRunner):
		return result, err
	case r.Isolate != "":
		return nil, host.Errorf(host.Unavailable, "%s must run in a process of its own, but there is no folder for its "+
			"compiled code; nothing was run", p.info.Name).WithSteps(step.Operator(step.OpDoctor))
	}
	if result, err = p.runAt(ctx, j, isolateNone); err == nil {
		result.Warnings = append(result.Warnings, p.info.Name+" was not isolated, because its compiled code cannot be kept; "+
			"parley doctor says why")
	}
	return result, err
}

// runAt runs a job at a level of isolation. Compiling does not count as its time. The error is errNoRunner if no
// runner is possible; nothing was run then.
func (p *Provider) runAt(ctx context.Context, j *guest.Job, level string) (*job.Result, error) {
	var plugin *compiledPlugin
	var err error
	if level == isolateNone {
		plugin, err = p.load(ctx, waiter{})
	} else {
		err = p.ensureCompiled(ctx, waiter{})
	}
	if err != nil {
		return nil, err
	}
	release, err := p.acquire(ctx, j.Request)
	if err != nil {
		return nil, err
	}
	defer release()
	if level != isolateNone {
		return p.engine.runners().run(ctx, j, p, level == isolateCall)
	}
	c := guest.New(plugin.code, j)
	defer c.Close()
	return c.Run(ctx)
}

// acquire takes the slots of a call: one of the plugin's, and one of this process. A call of a person or a client waits
// for them until its deadline. A plugin's call does not wait, because the call that made it may hold the slots. The
// caller must call release when the call has ended.
func (p *Provider) acquire(ctx context.Context, r *host.Request) (release func(), err error) {
	wait := !r.Inner()
	limit := cmp.Or(r.Limits.ConcurrentCalls, world.DefaultConcurrentCalls)
	releasePlugin, err := p.engine.shared.Acquire(ctx, p.info.Name, r.Caller, limit, wait)
	if err != nil {
		return nil, p.busyError(ctx, fmt.Sprintf("%d concurrent calls of %s", limit, p.info.Name))
	}
	releaseCall, err := p.engine.own.Acquire(ctx, callSlots, r.Caller, maxConcurrent, wait)
	if err != nil {
		releasePlugin()
		return nil, p.busyError(ctx, fmt.Sprintf("%d concurrent calls of plugins", maxConcurrent))
	}
	return func() { releaseCall(); releasePlugin() }, nil
}

func (p *Provider) busyError(ctx context.Context, limit string) *host.Error {
	switch {
	case ctx.Err() == nil:
		return host.Errorf(host.Busy, "the limit of %s is reached; nothing was run; try again when one has ended", limit)
	case deadline.Exceeded(ctx):
		return world.Failed(host.Busy, ctx.Err(), "the limit of %s was reached until the deadline of this call; nothing "+
			"was run", limit)
	}
	return &host.Error{Code: host.Interrupted, Cause: ctx.Err(), Message: "the call was interrupted before it began"}
}

// moduleKey returns the key of the compiled code, and the module if it had to be read. dir is the cache folder, or
// "". The digest also covers the manifest, which says what an image of the module may contain.
func moduleKey(s *store.Source, dir string) (key string, wasm []byte, err error) {
	if s.Info.Digest != "" { // the digest of the module in memory, or the one that the file must have
		key = cache.Key("digest", []byte(s.Info.Digest))
		if s.File != "" {
			wasm, err = readChanged(s, dir, key)
		}
		return key, wasm, err
	}
	if len(s.Packed) > 0 {
		return cache.Key("packed", s.Packed), nil, nil
	}
	if wasm, err = s.Wasm(); err != nil {
		return "", nil, err
	}
	return cache.Key("wasm", wasm), wasm, nil
}

// readChanged reads the file of the module and thereby checks its digest. It returns nil without reading a file that
// is unchanged since its compiled code was last used.
func readChanged(s *store.Source, dir, key string) (wasm []byte, err error) {
	if dir == "" {
		return s.Wasm()
	}
	of := cache.Slot{Dir: filepath.Join(dir, key), Key: key}
	if of.IsInstalled(s.File) {
		return nil, nil
	}
	info, statErr := os.Lstat(s.File)
	if wasm, err = s.Wasm(); err == nil && statErr == nil {
		of.SetInstalled(s.File, info)
	}
	return wasm, err
}
