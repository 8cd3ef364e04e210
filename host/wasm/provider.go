package wasm

import (
	"cmp"
	"context"
	"sync"
	"sync/atomic"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/manifest"
)

// Provider is one plugin as a [host.Provider]. Discovery reads only the manifest. The module is read, validated and
// compiled at the first call.
type Provider struct {
	engine     *Engine
	info       host.Info
	openSource func() Source
	partsOnce  sync.Once
	parts      pluginParts // see pluginParts

	plugin      *compiledPlugin
	activeCalls atomic.Int32 // calls in progress
}

// pluginParts is what a provider needs beyond its info. It is created on first use, because listing a thousand
// plugins needs none of it.
type pluginParts struct {
	src      Source
	manifest func() (*manifest.Manifest, error)
	segment  func() ([]byte, error)
	loading  chan struct{} // holds a token while the plugin is being loaded
}

var _ host.Provider = (*Provider)(nil)

// Provider returns a plugin made of the parts in src.
func (e *Engine) Provider(src Source) *Provider {
	return &Provider{engine: e, info: src.Info, openSource: func() Source { return src }}
}

// Installed returns the plugin of an entry of a store.
func (e *Engine) Installed(s *Store, entry Entry) *Provider {
	return &Provider{engine: e, info: entry.Info(), openSource: func() Source { return s.Source(entry) }}
}

func (p *Provider) loadParts() *pluginParts {
	p.partsOnce.Do(func() {
		src := p.openSource()
		read := func() (*manifest.Manifest, error) {
			m, err := src.Manifest()
			if annotate := p.engine.cfg.Annotate; err == nil && annotate != nil {
				annotate(p.info.Digest, m)
			}
			return m, err
		}
		p.parts = pluginParts{src: src, manifest: sync.OnceValues(read), segment: sync.OnceValues(src.Segment),
			loading: make(chan struct{}, 1)}
	})
	return &p.parts
}

// Info returns the plugin's info without reading anything.
func (p *Provider) Info() host.Info { return p.info }

// Manifest returns the whole manifest including tools.
func (p *Provider) Manifest() (*manifest.Manifest, error) { return p.loadParts().manifest() }

// Segment returns the search segment.
func (p *Provider) Segment() ([]byte, error) { return p.loadParts().segment() }

// Groups returns the groups in the order of the manifest.
func (p *Provider) Groups() ([]host.GroupLine, error) {
	m, err := p.Manifest()
	if err != nil {
		return nil, err
	}
	return host.GroupsOf(m), nil
}

// Lines returns the tools of a group in the order of the manifest.
func (p *Provider) Lines(group string) ([]host.Line, error) {
	m, err := p.Manifest()
	if err != nil {
		return nil, err
	}
	return host.LinesOf(m, group), nil
}

// Names returns the names of all tools, sorted.
func (p *Provider) Names() ([]string, error) {
	m, err := p.Manifest()
	if err != nil {
		return nil, err
	}
	return host.NamesOf(m), nil
}

// Tool returns the tool named name, or nil.
func (p *Provider) Tool(name string) (*manifest.Tool, error) {
	m, err := p.Manifest()
	if err != nil {
		return nil, err
	}
	return m.Tool(name), nil
}

// Prepare compiles the plugin if necessary. The first time this may take seconds, so callers that measure or limit
// a call's time can call Prepare before they start the clock. [Provider.Invoke] does it otherwise.
func (p *Provider) Prepare(ctx context.Context) error {
	_, err := p.load(ctx)
	return err
}

func (p *Provider) load(ctx context.Context) (*compiledPlugin, error) {
	select {
	case p.loadParts().loading <- struct{}{}:
		defer func() { <-p.loadParts().loading }()
	case <-ctx.Done():
		return nil, compileInterrupted(ctx, p.info.Name)
	}
	if p.plugin != nil {
		return p.plugin, nil
	}
	m, err := p.Manifest()
	if err != nil {
		return nil, err
	}
	p.plugin, err = p.engine.load(ctx, p.loadParts().src, m)
	return p.plugin, err
}

// Invoke runs a call in a fresh instance, on the caller's goroutine.
func (p *Provider) Invoke(ctx context.Context, r *host.Request) (*host.Result, error) {
	m, err := p.Manifest()
	if err != nil {
		return nil, err
	}
	plugin, err := p.load(ctx)
	if err != nil {
		return nil, err
	}
	release, err := p.acquire(r.Limits)
	if err != nil {
		return nil, err
	}
	defer release()
	functions := &hostFunctions{r: r}
	if r.Isolate == isolateProcess {
		return functions.withDenials(p.engine.runIsolated(ctx, plugin, m, r, functions))
	}
	return functions.withDenials(newCall(p.engine, plugin, m, r, functions).run(ctx))
}

// acquire counts a call that begins. The caller must call release when it ends.
func (p *Provider) acquire(l host.Limits) (release func(), err error) {
	releaseEngine, err := p.engine.acquire()
	if err != nil {
		return nil, err
	}
	release = func() {
		p.activeCalls.Add(-1)
		releaseEngine()
	}
	if limit := cmp.Or(l.ConcurrentCalls, defaultConcurrentCalls); int(p.activeCalls.Add(1)) > limit {
		release()
		return nil, host.Errorf(host.Busy,
			"the limit of %d concurrent calls of %s is reached; try again when one has ended", limit, p.info.Name)
	}
	return release, nil
}
