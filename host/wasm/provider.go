package wasm

import (
	"cmp"
	"context"
	"sync"
	"sync/atomic"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/manifest"
)

// Provider is one plugin. Discovery reads its manifest and nothing else; the module is read, judged and compiled at
// the first call.
type Provider struct {
	engine *Engine
	info   host.Info
	open   func() Source
	opened sync.Once
	made   body // see body

	unit  *unit
	calls atomic.Int32 // under way
}

// body is what a provider has as soon as it is asked for more than its info: a list of a thousand plugins asks none.
type body struct {
	src      Source
	manifest func() (*manifest.Manifest, error)
	segment  func() ([]byte, error)
	loading  chan struct{} // holds a token while somebody loads the unit
}

var _ host.Provider = (*Provider)(nil)

// Provider makes a plugin of its parts.
func (e *Engine) Provider(src Source) *Provider {
	return &Provider{engine: e, info: src.Info, open: func() Source { return src }}
}

// Installed makes a plugin of an entry of a store.
func (e *Engine) Installed(s *Store, entry Entry) *Provider {
	return &Provider{engine: e, info: entry.Info(), open: func() Source { return s.Source(entry) }}
}

func (p *Provider) body() *body {
	p.opened.Do(func() {
		src := p.open()
		p.made = body{src: src, manifest: sync.OnceValues(src.Manifest), segment: sync.OnceValues(src.Segment), loading: make(chan struct{}, 1)}
	})
	return &p.made
}

// Info returns what the source knows without reading anything.
func (p *Provider) Info() host.Info { return p.info }

// Manifest returns the whole manifest, tools included.
func (p *Provider) Manifest() (*manifest.Manifest, error) { return p.body().manifest() }

// Segment returns the search segment.
func (p *Provider) Segment() ([]byte, error) { return p.body().segment() }

// Groups returns the groups in the manifest's order.
func (p *Provider) Groups() ([]host.GroupLine, error) {
	m, err := p.Manifest()
	if err != nil {
		return nil, err
	}
	return host.GroupsOf(m), nil
}

// Lines returns the tools of a group in the manifest's order.
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

// Tool returns a tool, or nil.
func (p *Provider) Tool(name string) (*manifest.Tool, error) {
	m, err := p.Manifest()
	if err != nil {
		return nil, err
	}
	return m.Tool(name), nil
}

// Prepare compiles the plugin if that has not been done yet. It may take seconds the first time, so a caller that
// counts a call's time may want to do it before the clock starts. Invoke does it otherwise.
func (p *Provider) Prepare(ctx context.Context) error {
	_, err := p.load(ctx)
	return err
}

func (p *Provider) load(ctx context.Context) (*unit, error) {
	select {
	case p.body().loading <- struct{}{}:
		defer func() { <-p.body().loading }()
	case <-ctx.Done():
		return nil, stopped(ctx, p.info.Name)
	}
	if p.unit != nil {
		return p.unit, nil
	}
	m, err := p.Manifest()
	if err != nil {
		return nil, err
	}
	p.unit, err = p.engine.load(ctx, p.body().src, m)
	return p.unit, err
}

// Invoke runs a call in a fresh instance, on the goroutine that calls it.
func (p *Provider) Invoke(ctx context.Context, r *host.Request) (*host.Result, error) {
	m, err := p.Manifest()
	if err != nil {
		return nil, err
	}
	u, err := p.load(ctx)
	if err != nil {
		return nil, err
	}
	leave, err := p.enter(r.Limits)
	if err != nil {
		return nil, err
	}
	defer leave()
	d := &desk{r: r}
	if r.Isolate == isolateProcess {
		return d.conclude(p.engine.runApart(ctx, u, m, r, d))
	}
	return d.conclude(newCall(p.engine, u, m, r, d).run(ctx))
}

// enter counts a call that begins; leave must be called when it ends.
func (p *Provider) enter(l host.Limits) (leave func(), err error) {
	leaveEngine, err := p.engine.enter()
	if err != nil {
		return nil, err
	}
	leave = func() {
		p.calls.Add(-1)
		leaveEngine()
	}
	if most := cmp.Or(l.ConcurrentCalls, defaultConcurrentCalls); int(p.calls.Add(1)) > most {
		leave()
		return nil, host.Errorf(host.Busy, "%d calls of %s are under way, and it may have no more; try again when one has ended", most, p.info.Name)
	}
	return leave, nil
}
