package fleet

import (
	"context"
	"log/slog"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/parley-tools/parley"
	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/admit"
	"github.com/parley-tools/parley/host/signature"
	"github.com/parley-tools/parley/host/wasm"
	"github.com/parley-tools/parley/host/wasm/store"
	"github.com/parley-tools/parley/internal/wire"
	"github.com/parley-tools/parley/manifest"
)

// library has the plugins that a worker runs, each by its digest. It trusts nobody but its own list.
type library struct {
	// fetch gets a build that is published. Its digest is verified, its signature is not.
	fetch  func(ctx context.Context, digest string) (*store.Candidate, error)
	trust  []string
	engine *wasm.Engine

	mu    sync.Mutex
	found map[string]*wasm.Provider // by digest
}

// newLibrary returns a library that keeps compiled code in the folders of a host.
func newLibrary(dirs parley.Dirs, of WorkerConfig, log *slog.Logger) *library {
	l := &library{trust: of.Trust, found: map[string]*wasm.Provider{}}
	l.engine = wasm.New(wasm.Config{
		CacheDir: filepath.Join(dirs.Cache, "wasm"), RunDir: dirs.Run, SlotDir: filepath.Join(dirs.State, "slots"),
		HostVersion: parley.Version, Child: wire.Self, Isolate: true, Runners: of.Slots,
		Notice: func(text string) { log.Info(text) }, Debug: func(text string) { log.Debug(text) },
		ScriptEngine: func(_, digest string) (*wasm.Provider, error) {
			l.mu.Lock()
			defer l.mu.Unlock()
			return l.found[digest], nil
		},
	})
	return l
}

// find returns the plugin of a digest, and gets it if it is not here. engine is the digest of its engine if it is of
// kind script, else "". The error is config_error for a build that this worker does not trust, or that of fetch.
func (l *library) find(ctx context.Context, digest, engine string) (*wasm.Provider, error) {
	l.mu.Lock()
	p := l.found[digest]
	l.mu.Unlock()
	if p != nil {
		return p, nil
	}
	if engine != "" {
		if _, err := l.find(ctx, engine, ""); err != nil {
			return nil, err
		}
	}
	source, err := parley.ShippedSource(digest)
	if err == nil && source == nil {
		source, err = l.published(ctx, digest)
	}
	if err != nil {
		return nil, err
	}
	source.Engine = engine
	l.mu.Lock()
	defer l.mu.Unlock()
	if p = l.found[digest]; p == nil { // else another call was faster
		p = l.engine.Provider(*source)
		l.found[digest] = p
	}
	return p, nil
}

// published gets a build that is published.
func (l *library) published(ctx context.Context, digest string) (*store.Source, error) {
	c, err := l.fetch(ctx, digest)
	if at, ok := ctx.Deadline(); ctx.Err() != nil || ok && !time.Now().Before(at) { // that says nothing about the build
		return nil, context.DeadlineExceeded
	}
	if err == nil {
		err = l.check(c)
	}
	if err != nil {
		return nil, err
	}
	source := c.Source()
	c.Wasm = nil
	source.Wasm = func() ([]byte, error) { // once it is compiled, perhaps before, the module is hardly needed again
		again, err := l.fetch(context.Background(), digest)
		if err != nil {
			return nil, err
		}
		return again.Wasm, nil
	}
	return &source, nil
}

// check checks that a build is trusted.
func (l *library) check(c *store.Candidate) error {
	if slices.Contains(l.trust, c.Digest) {
		return nil
	}
	var keys []signature.Key
	for _, text := range l.trust {
		if key, err := signature.ParseKey(text); err == nil {
			keys = append(keys, key)
		}
	}
	if c.Signature == nil {
		return host.Errorf(host.ConfigError, "the worker does not trust %s: it has no signature; sign it, or add its digest "+
			"%s to worker.trust", c.Manifest.Name, c.Digest)
	}
	signed, err := signature.Parse(c.Signature)
	if err == nil {
		_, err = signed.Verify(admit.BuildOf(c), keys...)
	}
	if err != nil {
		return host.Errorf(host.ConfigError, "the worker does not trust %s: %v; add the key of its signer to worker.trust",
			c.Manifest.Name, manifest.CleanLine(err.Error()))
	}
	return nil
}
