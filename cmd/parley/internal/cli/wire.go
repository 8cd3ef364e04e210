package cli

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"sync"

	"github.com/parley-tools/parley/cdp"
	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/audit"
	"github.com/parley-tools/parley/host/egress"
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
	rules    *policy.Policy
	log      *audit.Log
	signers_ *signers
	memory   *host.Sessions
	confirm  func(context.Context, host.Ask, string) (bool, error) // who is asked; nil: the person at the terminal
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
			CacheDir: filepath.Join(r.dirs().cache, "wasm"), HostVersion: Version, Child: host.SelfCommand,
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
		RunDir: r.dirs().run, CacheDir: r.dirs().cache, Env: r.app.Env, Chrome: s.Chrome, Idle: s.BrowserIdle, Version: Version, Debug: r.app.debugf,
		AttachHosts: func() ([]string, error) {
			rules, err := r.policy()
			if err != nil {
				return nil, err
			}
			return rules.AttachHosts()
		},
	})
	shipped, err := plugins.Shipped()
	if err != nil {
		return nil, err
	}
	store := r.store()
	entries, err := store.List()
	if err != nil {
		return nil, err
	}
	var providers []host.Provider
	found := make(map[string]int, len(entries)) // places in providers
	add := func(p host.Provider) {
		key := strings.ToLower(p.Info().Name)
		if at, ok := found[key]; ok {
			providers[at] = p
			return
		}
		found[key] = len(providers)
		providers = append(providers, p)
	}
	add(r.browser)
	for _, f := range shipped {
		add(r.engine().Provider(shippedSource(f)))
	}
	for _, e := range entries {
		if manifest.Reserved(e.Name) {
			r.app.notice(fmt.Sprintf("the installed plugin %s has a reserved name and is ignored", e.Name))
			continue
		}
		add(r.engine().Installed(store, e))
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
		if _, ok := found[key]; ok {
			r.app.debugf("--load %s takes the place of the plugin %s for this command", path, c.Manifest.Name)
		}
		r.signers().hold(c)
		add(r.engine().Provider(c.Source()))
	}
	if r.catalog_, err = host.NewCatalog(providers...); err != nil {
		return nil, err
	}
	r.catalog_.KeepSearchIn(filepath.Join(r.dirs().cache, "search"))
	return r.catalog_, nil
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

// host depends on catalog, settings, the policy and the audit log.
func (r *rooms) host(ctx context.Context) (*host.Host, error) {
	catalog, err := r.catalog()
	if err != nil {
		return nil, err
	}
	s, err := r.settings()
	if err != nil {
		return nil, err
	}
	if r.app.live {
		if err := r.browser.Live(ctx, cmp.Or(r.app.liveOf, s.Browser)); err != nil {
			return nil, err
		}
	}
	rules, err := r.policy()
	if err != nil {
		return nil, err
	}
	ask := confirm
	if r.confirm != nil {
		ask = r.confirm
	}
	return host.New(host.Config{
		Version: Version, Catalog: catalog, Policy: rules, Mode: s.DocMode,
		Recorder: trace.Open(filepath.Join(r.dirs().state, "traces"), trace.Config{
			Off: s.TracesOff, Values: s.TracesValues, KeepDays: s.TracesDays, MaxBytes: int64(s.TracesMiB) << 20,
			Warn: func(err error) { r.app.debugf("traces: %v", err) },
		}),
		Secrets:  rules,
		Egress:   egress.New(egress.Config{Rules: rules.Egress, UserAgent: "parley/" + Version}),
		Audit:    r.audit(),
		Sessions: r.sessions(),
		Confirm:  ask,
		Debug:    r.app.debugf,
	}), nil
}

// sessions depends on dirs.
func (r *rooms) sessions() *host.Sessions {
	if r.memory == nil {
		r.memory = &host.Sessions{Dir: filepath.Join(r.dirs().state, "sessions")}
	}
	return r.memory
}

// policy depends on dirs and signers. It reads its files again when they have changed. A list of trusted keys that cannot be
// read stops everything, as a policy does.
func (r *rooms) policy() (*policy.Policy, error) {
	if _, err := r.signers().trust.Keys(); err != nil {
		return nil, err
	}
	if r.rules == nil {
		rules, err := policy.Load(r.dirs().config, policy.Env{Store: r.secretStore().Dir, Signer: r.signers().signer, Difference: r.signers().difference})
		if err != nil {
			return nil, err
		}
		r.rules = rules
	}
	return r.rules, nil
}

// audit depends on dirs and the policy.
func (r *rooms) audit() *audit.Log {
	if r.log == nil {
		r.log = audit.Open(filepath.Join(r.dirs().state, "audit"), audit.Config{
			Mode: func() (string, error) {
				rules, err := r.policy()
				if err != nil {
					return "", err
				}
				return rules.Audit()
			},
			Warn: func(err error) { r.app.notice(err.Error()) },
		})
	}
	return r.log
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
	return saysYes(ctx, tty)
}
