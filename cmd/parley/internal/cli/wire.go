package cli

import (
	"bufio"
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"sync"

	"github.com/parley-tools/parley/cdp"
	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/policy"
	"github.com/parley-tools/parley/host/trace"
	"github.com/parley-tools/parley/host/wasm"
	"github.com/parley-tools/parley/manifest"
	"github.com/parley-tools/parley/plugins"
)

// rooms are the parts that a command may need, each made when it is first asked for: `--help` makes none.
type rooms struct {
	app      *App
	full     bool
	helpErr  error
	settled  *settings
	catalog_ *host.Catalog
	browser  *cdp.Provider
	engine_  *wasm.Engine
	places   *dirs
}

// dirs depends on the environment alone.
func (r *rooms) dirs() dirs {
	if r.places == nil {
		d := findDirs(r.app.Env)
		r.places = &d
	}
	return *r.places
}

// settings depends on dirs.
func (r *rooms) settings() (*settings, error) {
	if r.settled == nil {
		s, err := loadSettings(r.app.Env, r.dirs().config)
		if err != nil {
			return nil, err
		}
		r.settled = s
	}
	return r.settled, nil
}

// store depends on dirs.
func (r *rooms) store() *wasm.Store {
	return wasm.OpenStore(filepath.Join(r.dirs().data, "plugins"), r.debugLine())
}

func (r *rooms) debugLine() func(string) {
	if !r.app.debug {
		return nil
	}
	return func(line string) { r.app.debugf("%s", line) }
}

// engine depends on dirs. It starts nothing until a wasm plugin is called.
func (r *rooms) engine() *wasm.Engine {
	if r.engine_ == nil {
		r.engine_ = wasm.New(wasm.Config{
			CacheDir: filepath.Join(r.dirs().cache, "wasm"), HostVersion: Version, Child: selfCommand,
			Notice: r.app.notice, Debug: func(line string) { r.app.debugf("%s", line) },
		})
	}
	return r.engine_
}

// catalog depends on engine, store and settings: CDP, what is shipped, what is installed, what --load names. An
// installed plugin takes the place of a shipped one of its name, and a loaded one that of either.
func (r *rooms) catalog() (*host.Catalog, error) {
	if r.catalog_ != nil {
		return r.catalog_, nil
	}
	s, err := r.settings()
	if err != nil {
		return nil, err
	}
	r.browser = cdp.New(cdp.Config{
		RunDir: r.dirs().run, Env: r.app.Env, Chrome: s.Chrome, Idle: s.BrowserIdle, Version: Version, Debug: r.app.debugf,
	})
	found := map[string]host.Provider{}
	var order []string
	add := func(p host.Provider) {
		key := strings.ToLower(p.Info().Name)
		if found[key] == nil {
			order = append(order, key)
		}
		found[key] = p
	}
	add(r.browser)
	shipped, err := plugins.Shipped()
	if err != nil {
		return nil, err
	}
	for _, f := range shipped {
		add(r.engine().Provider(shippedSource(f)))
	}
	store := r.store()
	entries, err := store.List()
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if manifest.Reserved(e.Name) {
			r.app.notice(fmt.Sprintf("the installed plugin %s has a reserved name and is ignored", e.Name))
			continue
		}
		add(r.engine().Provider(store.Source(e)))
	}
	loaded := map[string]string{}
	for _, path := range r.app.loads {
		c, err := wasm.ReadCandidateFile(path, Version)
		if err != nil {
			return nil, err
		}
		key := strings.ToLower(c.Manifest.Name)
		if other, twice := loaded[key]; twice {
			return nil, host.Errorf(host.AlreadyExists, "--load %s and --load %s are both named %s", other, path, c.Manifest.Name)
		}
		loaded[key] = path
		if found[key] != nil {
			r.app.debugf("--load %s takes the place of the plugin %s for this command", path, c.Manifest.Name)
		}
		add(r.engine().Provider(c.Source()))
	}
	providers := make([]host.Provider, 0, len(order))
	for _, key := range order {
		providers = append(providers, found[key])
	}
	r.catalog_, err = host.NewCatalog(providers...)
	return r.catalog_, err
}

// shippedSource makes a source of a plugin that is part of this binary: its docs stand beside the wasm, which is
// unpacked for a call only.
func shippedSource(f plugins.File) wasm.Source {
	parsed := sync.OnceValues(func() (*manifest.Manifest, error) { return manifest.Load(f.Manifest) })
	return wasm.Source{
		Info:     f.Info,
		Manifest: parsed,
		Wasm:     f.Wasm,
		Packed:   f.Gzip,
		Segment: func() ([]byte, error) {
			if host.SegmentUsable(f.Segment) == nil {
				return f.Segment, nil
			}
			m, err := parsed() // generated for another version of the index
			if err != nil {
				return nil, err
			}
			return host.BuildSegment(m.Name, host.SearchDocs(m)), nil
		},
	}
}

// host depends on catalog, settings and the policy.
func (r *rooms) host(ctx context.Context) (*host.Host, error) {
	catalog, err := r.catalog()
	if err != nil {
		return nil, err
	}
	s, err := r.settings()
	if err != nil {
		return nil, err
	}
	rules, err := r.policy()
	if err != nil {
		return nil, err
	}
	return host.New(host.Config{
		Version: Version, Catalog: catalog, Policy: rules, Mode: s.DocMode,
		Recorder: trace.Open(filepath.Join(r.dirs().state, "traces"), trace.Config{
			Off: s.TracesOff, Values: s.TracesValues, Warn: func(err error) { r.app.debugf("traces: %v", err) },
		}),
		Sessions: &host.Sessions{Dir: filepath.Join(r.dirs().state, "sessions")},
		Confirm:  confirm,
		Debug:    r.app.debugf,
	}), nil
}

// policy depends on dirs.
func (r *rooms) policy() (*policy.Policy, error) {
	return policy.Load(r.dirs().config, policy.Env{Store: filepath.Join(r.dirs().data, "secrets")})
}

// close ends what a command has started in this process.
func (r *rooms) close() {
	if r.browser != nil {
		r.browser.Close()
	}
	if r.engine_ != nil {
		_ = r.engine_.Close(context.Background())
	}
}

// confirm asks the person at the controlling terminal; where there is none, nobody can say yes.
func confirm(ctx context.Context, ask host.Ask, reason string) (bool, error) {
	tty, err := openTerminal()
	if err != nil {
		return false, host.Errorf(host.Denied, "%s.%s must be confirmed (%s), and there is no terminal to ask on; nothing was run", ask.Plugin, ask.Tool, manifest.CleanLine(reason)).
			WithNext("parley policy explain " + ask.Plugin + "." + ask.Tool)
	}
	defer tty.Close()
	fmt.Fprintf(tty, "%s wants to call %s.%s (%s). Go on? [y/N] ", ask.Caller, ask.Plugin, ask.Tool, manifest.CleanLine(reason))
	answers := make(chan string, 1)
	go func() {
		line, _ := bufio.NewReader(tty).ReadString('\n')
		answers <- strings.ToLower(strings.TrimSpace(line))
	}()
	select {
	case a := <-answers:
		return a == "y" || a == "yes", nil
	case <-ctx.Done():
		return false, context.Cause(ctx)
	}
}
