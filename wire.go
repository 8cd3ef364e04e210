package parley

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/parley-tools/parley/cdp"
	"github.com/parley-tools/parley/cdp/page"
	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/admit"
	"github.com/parley-tools/parley/host/api"
	"github.com/parley-tools/parley/host/approve"
	"github.com/parley-tools/parley/host/call"
	"github.com/parley-tools/parley/host/egress"
	"github.com/parley-tools/parley/host/grant"
	"github.com/parley-tools/parley/host/jq"
	"github.com/parley-tools/parley/host/login"
	"github.com/parley-tools/parley/host/mcp"
	"github.com/parley-tools/parley/host/outbound"
	"github.com/parley-tools/parley/host/overlay"
	"github.com/parley-tools/parley/host/policy"
	"github.com/parley-tools/parley/host/policy/operator"
	"github.com/parley-tools/parley/host/policy/secret"
	"github.com/parley-tools/parley/host/protect"
	"github.com/parley-tools/parley/host/quota"
	"github.com/parley-tools/parley/host/record/audit"
	"github.com/parley-tools/parley/host/record/trace"
	"github.com/parley-tools/parley/host/redact"
	"github.com/parley-tools/parley/host/segment"
	"github.com/parley-tools/parley/host/session"
	"github.com/parley-tools/parley/host/signature"
	"github.com/parley-tools/parley/host/wasm"
	"github.com/parley-tools/parley/host/wasm/store"
	"github.com/parley-tools/parley/internal/wire"
	"github.com/parley-tools/parley/manifest"
	"github.com/parley-tools/parley/plugins"
)

// parts are what a host is made of, each made when it is first needed. mu guards their making.
type parts struct {
	mu       sync.Mutex
	engine   *wasm.Engine
	chrome   *cdp.Provider
	pages    *page.Provider // made with chrome
	rules    *policy.Policy
	log      *audit.Log
	held     *redact.Redactor
	sessions *session.Store
	approver *approve.Approver
	engines  map[string]*wasm.Provider // engines of scripts, by digest
	shipped  []*wasm.Provider
	loaded   []host.Provider
	catalog  *host.Catalog
	stamp    catalogStamp // state from which catalog was made
	host     *call.Host
}

// catalogStamp identifies what decides about a catalog: the files of the store and of overlays, and what is published.
type catalogStamp struct {
	lock, overlays protect.Stamp
	published      uint64
}

func (s catalogStamp) same(o catalogStamp) bool {
	return s.lock.Same(o.lock) && s.overlays.Same(o.overlays) && s.published == o.published
}

// Dirs returns the folders of the host.
func (p *Parley) Dirs() Dirs { return p.dirs }

// Store returns the installed plugins.
func (p *Parley) Store() *store.Store {
	return store.Open(filepath.Join(p.dirs.Data, "plugins"), p.debugLine)
}

// Overlays returns the operator's edits of the documentation of plugins.
func (p *Parley) Overlays() *overlay.Store {
	return &overlay.Store{Dir: filepath.Join(p.dirs.Data, "docs"), Notice: p.cfg.Notice}
}

// Secrets returns the store of secret values.
func (p *Parley) Secrets() secret.Store {
	return secret.Store{Dir: filepath.Join(p.dirs.Data, "secrets")}
}

// Logins returns the client that logs in for secrets of a host, and refreshes the tokens.
func Logins(p *Parley) *login.Client { return &login.Client{Store: p.Secrets(), Egress: egressOf(p)} }

// egressOf returns the egress that makes all requests of a host, within the operator's rules.
func egressOf(p *Parley) outbound.Egress {
	return egress.New(egress.Config{UserAgent: "parley/" + Version, Tracer: p.cfg.Tracer,
		Rules: func() (outbound.Rules, error) { return byPolicy(p, (*policy.Policy).Egress) }})
}

// Trust returns the operator's list of trusted keys.
func (p *Parley) Trust() *signature.Trust { return p.trust }

func newTrust(d Dirs) *signature.Trust {
	path := filepath.Join(d.Config, signature.TrustFile)
	return &signature.Trust{Path: path, File: operator.File{Path: path}}
}

// Admission returns the installer, which admits, installs and removes plugins.
func (p *Parley) Admission() *admit.Installer { return p.admission }

func (p *Parley) newInstaller() *admit.Installer {
	return admit.New(admit.Config{
		Version: Version, Dir: filepath.Join(p.dirs.Data, "admissions"), Store: p.Store(), Trust: p.trust,
		Engine: p.Engine, EngineConfig: p.engineConfig, Rules: p.Policy, Providers: func() ([]host.Provider, error) {
			list, err := p.listProviders(func(string) {})
			if err != nil {
				return nil, err
			}
			return list.providers, nil
		},
		Shipped: shippedDigest, Admitted: p.cfg.Admitted,
		Uses:   func(plugin string) map[string]string { return trace.Uses(p.TraceDir(), plugin, lastWeek()) },
		Audit:  func(op, subject string, details ...string) error { return p.AuditLog().Note(op, subject, details...) },
		Notice: p.cfg.Notice, Debug: p.cfg.Debug,
	})
}

// shippedDigest returns the digest of the shipped plugin of a name, "" if there is none.
func shippedDigest(name string) (string, error) {
	files, err := plugins.Shipped()
	for _, f := range files {
		if strings.EqualFold(f.Name, name) {
			return f.Digest, nil
		}
	}
	return "", err
}

// partOf returns a part that cannot fail, and makes it if it is needed for the first time.
func partOf[T any](p *Parley, part **T, make func() *T) *T {
	p.parts.mu.Lock()
	defer p.parts.mu.Unlock()
	if *part == nil {
		*part = make()
	}
	return *part
}

// Engine returns the engine of wasm plugins. It starts nothing until a plugin is called.
func (p *Parley) Engine() *wasm.Engine {
	return partOf(p, &p.parts.engine, func() *wasm.Engine { return wasm.New(p.engineConfig()) })
}

func (p *Parley) engineConfig() wasm.Config {
	return wasm.Config{
		CacheDir: filepath.Join(p.dirs.Cache, "wasm"), RunDir: p.dirs.Run, RunnerIdle: p.cfg.RunnerIdle,
		SlotDir: filepath.Join(p.dirs.State, "slots"),
		Watch: []string{p.Store().LockPath(), filepath.Join(p.dirs.Config, policy.PolicyFile),
			filepath.Join(p.dirs.Config, policy.GrantsFile), filepath.Join(p.dirs.Config, signature.TrustFile)},
		HostVersion: Version, Child: wire.Self, Isolate: true, Away: p.cfg.Fleet.Away,
		Notice: p.cfg.Notice, Debug: p.debugLine, Redact: p.redactor, Annotate: p.admission.Annotate,
		ScriptEngine: p.scriptEngine, Requests: api.Run,
		ModuleLimits: func(plugin string) (grant.ModuleLimits, error) {
			return byPolicy(p, func(rules *policy.Policy) (grant.ModuleLimits, error) { return rules.ModuleLimits(plugin) })
		},
	}
}

// scriptEngine returns the plugin that runs plugins of kind script: an installed or a shipped one. A loaded file is not
// an engine, because loading one may need an engine.
func (p *Parley) scriptEngine(name, _ string) (*wasm.Provider, error) {
	engine := p.Engine()
	of, err := p.scriptEngineOf(engine, name)
	if of == nil || err != nil {
		return nil, err
	}
	p.parts.mu.Lock()
	defer p.parts.mu.Unlock()
	if known := p.parts.engines[of.Info().Digest]; known != nil {
		return known, nil // its code is compiled, or open
	}
	if p.parts.engines == nil {
		p.parts.engines = map[string]*wasm.Provider{}
	}
	p.parts.engines[of.Info().Digest] = of
	return of, nil
}

func (p *Parley) scriptEngineOf(engine *wasm.Engine, name string) (*wasm.Provider, error) {
	store := p.Store()
	entry, err := store.Find(name)
	if err == nil {
		return engine.Installed(store, entry), nil
	}
	if !errors.Is(err, host.NotFound) {
		return nil, err
	}
	return p.shippedProvider(name)
}

// Chrome returns the built-in plugin for Chrome. It starts nothing until a tool needs a browser.
func (p *Parley) Chrome() *cdp.Provider {
	return partOf(p, &p.parts.chrome, func() *cdp.Provider {
		chrome := cdp.New(cdp.Config{
			RunDir: p.dirs.Run, CacheDir: p.dirs.Cache, StateDir: filepath.Join(p.dirs.State, "browser"),
			Env: p.cfg.Env, Chrome: p.cfg.Chrome, Idle: p.cfg.BrowserIdle,
			Version: Version, Debug: p.cfg.Debug,
			AttachHosts: func() ([]string, error) { return byPolicy(p, (*policy.Policy).AttachHosts) },
		})
		p.parts.pages = page.New(chrome)
		return chrome
	})
}

// Policy returns the operator's policy. It reads its files again when they have changed. The error is config_error for
// a policy or a list of trusted keys that cannot be read, or folders that others can write to: then nothing runs.
func (p *Parley) Policy() (*policy.Policy, error) {
	if err := p.dirs.Check(); err != nil {
		return nil, err
	}
	if _, err := p.trust.Keys(); err != nil {
		return nil, err
	}
	p.parts.mu.Lock()
	defer p.parts.mu.Unlock()
	if p.parts.rules == nil {
		rules, err := policy.Load(p.dirs.Config, policy.Env{
			Own: p.ProtectedFiles(), Store: p.Secrets().Dir, Token: Logins(p).Token, Signer: p.admission.BuildSigner,
			Difference: p.admission.Difference, NotIsolated: wasm.MissingIsolation,
			Owner: func(plugin string) (identity, replaced string) {
				if catalog, err := p.Catalog(); err == nil {
					if of, ok := catalog.Provider(plugin); ok {
						return of.Info().Identity(), of.Info().ReplacedOwner
					}
				}
				return "", ""
			},
			Outside: func(pattern string) bool {
				catalog, err := p.Catalog()
				return err != nil || catalog.Outside(pattern)
			},
		})
		if err != nil {
			return nil, err
		}
		p.parts.rules = rules
	}
	return p.parts.rules, nil
}

// byPolicy returns the result of say for the operator's policy.
func byPolicy[T any](p *Parley, say func(*policy.Policy) (T, error)) (said T, err error) {
	rules, err := p.Policy()
	if err != nil {
		return said, err
	}
	return say(rules)
}

// ProtectedFiles returns the files of the host, without those that the policy names.
func (p *Parley) ProtectedFiles() *protect.Files {
	own := &protect.Files{Folders: p.dirs.own(), Programs: p.programs(), Named: filepath.Join(p.dirs.State, "named")}
	if docker := protect.DockerFolder(p.cfg.Env); docker != "" {
		own.Inputs = []string{filepath.Join(docker, "config.json")} // credentials of registries
	}
	return own
}

// programs returns the paths of this binary and of the browser that the configuration names.
func (p *Parley) programs() (paths []string) {
	if self, err := os.Executable(); err == nil {
		paths = append(paths, self)
	}
	if filepath.IsAbs(p.cfg.Chrome) {
		paths = append(paths, p.cfg.Chrome)
	}
	return paths
}

// AuditLog returns the audit log.
func (p *Parley) AuditLog() *audit.Log {
	return partOf(p, &p.parts.log, func() *audit.Log {
		return audit.Open(filepath.Join(p.dirs.State, "audit"), audit.Config{
			Mode: func() (string, error) { return byPolicy(p, (*policy.Policy).Audit) },
			Warn: func(err error) { p.cfg.Notice(err.Error()) }, Redact: p.redactor,
		})
	})
}

// redactor returns a function that removes the values of the secrets that the host holds now from texts to be stored.
// Without a policy the secrets are unknown, and the function returns texts as they are.
func (p *Parley) redactor() func(string) string {
	rules, err := p.Policy()
	if err != nil {
		return func(text string) string { return text }
	}
	return partOf(p, &p.parts.held, func() *redact.Redactor { return &redact.Redactor{Source: rules} }).Held()
}

// Approvals returns the approver, which has a person approve calls and changes, and stores open approvals.
func Approvals(p *Parley) *approve.Approver {
	return partOf(p, &p.parts.approver, func() *approve.Approver {
		store := &approve.Store{Dir: filepath.Join(p.dirs.State, "approvals")}
		return &approve.Approver{Store: store, AtHand: p.cfg.Approver, Patience: mcp.Patience(p.cfg.ConfirmWait)}
	})
}

// Sessions returns what agents have been shown, by session.
func (p *Parley) Sessions() *session.Store {
	return partOf(p, &p.parts.sessions, func() *session.Store {
		return &session.Store{Dir: filepath.Join(p.dirs.State, "sessions"), Redact: p.redactor}
	})
}

// TraceDir returns the folder of the traces.
func (p *Parley) TraceDir() string { return filepath.Join(p.dirs.State, "traces") }

// Catalog returns the plugins: Chrome, what is shipped, what is installed, what the configuration loads, and what is
// published. An installed plugin replaces a shipped plugin of the same name, a loaded one replaces both, and a
// published one replaces none. The documentation of all but loaded ones has the edits of [Parley.Overlays].
func (p *Parley) Catalog() (*host.Catalog, error) {
	if h := p.madeHost(); h != nil {
		h.Refresh()
		return h.Catalog(), nil
	}
	catalog, _, err := p.currentCatalog()
	return catalog, err
}

// currentCatalog returns the catalog, made again if the lock file of the store or what is published has changed, and
// whether it was.
func (p *Parley) currentCatalog() (catalog *host.Catalog, changed bool, err error) {
	stamp := catalogStamp{lock: protect.StampOf(p.Store().LockPath()), overlays: protect.StampOf(p.Overlays().Dir)}
	var published []host.Provider
	if p.cfg.Fleet.Published != nil {
		published, stamp.published = p.cfg.Fleet.Published(p)
	}
	p.parts.mu.Lock()
	made := p.parts.catalog
	if made != nil && p.parts.stamp.same(stamp) {
		p.parts.mu.Unlock()
		return made, false, nil
	}
	p.parts.mu.Unlock()

	loaded, err := p.loadedProviders()
	if err != nil {
		return nil, false, err
	}
	list, err := p.listProviders(p.cfg.Notice)
	if err != nil {
		return nil, false, err
	}
	for _, other := range published {
		if !list.has(other.Info().Name) {
			list.add(other)
		}
	}
	list.providers = p.Overlays().Wrap(list.providers)
	for _, l := range loaded {
		if name := l.Info().Name; list.has(name) {
			p.cfg.Debug("a loaded file replaces the plugin %s in this host", name)
		}
		list.add(l)
	}
	if catalog, err = host.NewCatalog(list.providers...); err != nil {
		return nil, false, err
	}
	catalog.KeepSearchIn(filepath.Join(p.dirs.Cache, "search"))
	p.parts.mu.Lock()
	defer p.parts.mu.Unlock()
	p.parts.catalog, p.parts.stamp = catalog, stamp
	return catalog, made != nil, nil
}

// listProviders returns the built-in, shipped and installed plugins. notice takes messages about their names.
func (p *Parley) listProviders(notice func(string)) (*providerList, error) {
	shipped, err := p.shippedProviders()
	if err != nil {
		return nil, err
	}
	engine, store := p.Engine(), p.Store()
	entries, err := store.List()
	if err != nil {
		return nil, err
	}
	list := &providerList{index: make(map[string]int, len(entries))}
	list.add(p.Chrome())
	list.add(p.parts.pages)
	for _, s := range shipped {
		list.add(s)
	}
	for _, e := range entries {
		switch {
		case manifest.Builtin(e.Name):
			if e.Info().Owner != host.OwnerShipped { // a shipped one is an earlier form of the built-in plugin
				notice("the installed plugin " + e.Name + " has the name of a built-in plugin and is ignored; remove it: " +
					"parley plugin remove " + e.Name)
			}
			continue
		case manifest.Reserved(e.Name):
			notice("the installed plugin " + e.Name + " has a name that Parley reserves for a command: its tools are " +
				"called by their full names, such as " + e.Name + ".TOOL")
		}
		list.add(engine.Installed(store, e))
	}
	return list, nil
}

// shippedProviders returns the plugins that are part of this binary.
func (p *Parley) shippedProviders() ([]*wasm.Provider, error) {
	engine := p.Engine()
	p.parts.mu.Lock()
	defer p.parts.mu.Unlock()
	if p.parts.shipped != nil {
		return p.parts.shipped, nil
	}
	files, err := plugins.Shipped()
	if err != nil {
		return nil, err
	}
	p.parts.shipped = make([]*wasm.Provider, 0, len(files))
	for _, f := range files {
		p.parts.shipped = append(p.parts.shipped, engine.Provider(shippedSource(f)))
	}
	return p.parts.shipped, nil
}

// shippedProvider returns the shipped plugin of a name, nil if there is none.
func (p *Parley) shippedProvider(name string) (*wasm.Provider, error) {
	shipped, err := p.shippedProviders()
	for _, s := range shipped {
		if strings.EqualFold(s.Info().Name, name) {
			return s, nil
		}
	}
	return nil, err
}

// filterPlugin returns the shipped plugin that filters results, also where another plugin has taken its name.
func (p *Parley) filterPlugin() (host.Provider, error) {
	shipped, err := p.shippedProvider("json")
	if shipped == nil {
		return nil, err
	}
	return shipped, nil
}

// loadedProviders returns the plugins of [Config].Plugins, once each has been admitted.
func (p *Parley) loadedProviders() ([]host.Provider, error) {
	p.parts.mu.Lock()
	loaded := p.parts.loaded
	p.parts.mu.Unlock()
	if loaded != nil {
		return loaded, nil
	}
	loaded = []host.Provider{}
	paths := map[string]string{}
	for _, path := range p.cfg.Plugins {
		c, err := store.ReadCandidateFile(path, Version)
		if err != nil {
			return nil, err
		}
		key := strings.ToLower(c.Manifest.Name)
		if other, twice := paths[key]; twice {
			return nil, host.Errorf(host.AlreadyExists, "%s and %s are both named %s", other, path, c.Manifest.Name)
		}
		paths[key] = path
		if err := p.admission.Load(c, p.cfg.Accept, p.cfg.Replace); err != nil {
			return nil, err
		}
		loaded = append(loaded, p.Engine().Provider(c.Source()))
	}
	p.parts.mu.Lock()
	defer p.parts.mu.Unlock()
	p.parts.loaded = loaded
	return loaded, nil
}

// providerList gathers providers; a later one replaces an earlier one of its name.
type providerList struct {
	providers []host.Provider
	index     map[string]int
}

func (l *providerList) has(name string) bool {
	_, ok := l.index[strings.ToLower(name)]
	return ok
}

func (l *providerList) add(p host.Provider) {
	key := strings.ToLower(p.Info().Name)
	if i, ok := l.index[key]; ok {
		l.providers[i] = p
		return
	}
	l.index[key] = len(l.providers)
	l.providers = append(l.providers, p)
}

// ShippedSource returns the plugin with this digest that ships with this program, or nil.
func ShippedSource(digest string) (*store.Source, error) {
	files, err := plugins.Shipped()
	for _, f := range files {
		if f.Digest == digest {
			source := shippedSource(f)
			return &source, err
		}
	}
	return nil, err
}

// shippedSource makes a source of a plugin that is part of this binary. Its wasm is unpacked only for a call.
func shippedSource(f plugins.File) store.Source {
	parsed := sync.OnceValues(func() (*manifest.Manifest, error) { return manifest.Load(f.Manifest) })
	f.Info.Owner = host.OwnerShipped
	return store.Source{
		Info:     f.Info,
		Manifest: parsed,
		Wasm:     f.Wasm,
		Packed:   f.Gzip,
		Segment: func() ([]byte, error) {
			if segment.Check(f.Segment) == nil {
				return f.Segment, nil
			}
			m, err := parsed() // the segment was generated for another version of the index
			if err != nil {
				return nil, err
			}
			return segment.Of(m), nil
		},
	}
}

// Host returns the host over all parts. The error is config_error for a policy that cannot be read. Otherwise it says
// why a plugin cannot be loaded.
func (p *Parley) Host() (*call.Host, error) {
	if h := p.madeHost(); h != nil {
		return h, nil
	}
	catalog, err := p.Catalog()
	if err != nil {
		return nil, err
	}
	rules, err := p.Policy()
	if err != nil {
		return nil, err
	}
	if err := p.checkRecords(); err != nil {
		return nil, err
	}
	log, sessions, approver := p.AuditLog(), p.Sessions(), Approvals(p)
	p.parts.mu.Lock()
	defer p.parts.mu.Unlock()
	if p.parts.host != nil {
		return p.parts.host, nil
	}
	p.parts.host, err = call.New(call.Config{
		Catalog: catalog, Reload: p.currentCatalog, Policy: rules, Mode: p.cfg.Mode,
		Recorder: trace.Open(p.TraceDir(), trace.Config{
			Off: p.cfg.Traces.Off, Values: p.cfg.Traces.Values, KeepDays: p.cfg.Traces.KeepDays, MaxBytes: p.cfg.Traces.MaxBytes,
			Warn: func(err error) { p.cfg.Debug("traces: %v", err) },
		}),
		Costs: func(tools []string) map[string]host.Cost {
			return trace.Costs(p.TraceDir(), tools, lastWeek())
		},
		Secrets:  rules,
		Own:      rules.Own(),
		Filter:   jq.Sandbox{Plugin: p.filterPlugin},
		Trusts:   p.admission.Trusts,
		Prefer:   p.cfg.Prefer,
		Egress:   egressOf(p),
		Audit:    log,
		Quotas:   quota.Open(filepath.Join(p.dirs.State, "quota")),
		Sessions: sessions,
		Approver: approver,
		Tracer:   p.cfg.Tracer,
		Debug:    p.cfg.Debug,
	})
	if err != nil {
		return nil, err
	}
	p.parts.host.Subscribe(func(e host.Event) {
		if e.Op == "session_end" {
			if err := approver.Store.EndSession(e.Session); err != nil {
				p.cfg.Notice(err.Error())
			}
		}
	})
	return p.parts.host, nil
}

// checkRecords returns a config_error if something other than a regular file is in the place of a file of records.
func (p *Parley) checkRecords() error {
	paths := []string{p.AuditLog().Path(), trace.PathOf(p.TraceDir(), time.Now())}
	for _, path := range paths {
		if err := protect.CheckRecord(path); err != nil {
			return host.Errorf(host.ConfigError, "records cannot be written: %v; nothing was run", err).
				WithNext("move " + path + " away")
		}
	}
	return nil
}

// compilePause is how long a server answers before it begins to compile.
const compilePause = time.Second

// MCP returns a server of the Model Context Protocol over the host: on stdio by [mcp.Server.Stdio], or in any mux by
// [mcp.Server.Handler]. Host, Version, Sessions and Used of cfg are set here; an empty mode means [mcp.Progressive]. It
// begins to compile the shipped plugins in the background, so that a first call seldom waits; [Parley.Close] ends that.
func (p *Parley) MCP(cfg mcp.Config) (*mcp.Server, error) {
	h, err := p.Host()
	if err != nil {
		return nil, err
	}
	if cfg.Mode == "" {
		cfg.Mode = mcp.Progressive
	}
	shipped, err := p.shippedProviders()
	if err != nil {
		return nil, err
	}
	p.Engine().CompileAhead(compilePause, shipped)
	cfg.Host, cfg.Version, cfg.Sessions = h, Version, p.Sessions()
	cfg.Private = p.dirs.Private()
	cfg.Used = func(caller string) []string { return usedVerbs(p, caller) }
	return mcp.New(cfg)
}

func lastWeek() time.Time { return time.Now().AddDate(0, 0, -7) }

// usedVerbs returns the tools that a caller called at least 20 times with success within a week, the most called first:
// none that is deprecated, and no command of the browser's protocol.
func usedVerbs(p *Parley, caller string) []string {
	catalog, err := p.Catalog()
	if err != nil {
		return nil
	}
	used := trace.Used(p.TraceDir(), caller, 20, lastWeek())
	return slices.DeleteFunc(used, func(name string) bool {
		a, err := catalog.Find(name)
		return err != nil || a.Tool == nil || a.Tool.Deprecated != nil ||
			a.Plugin == "cdp" && strings.Contains(a.Tool.Name, ".")
	})
}

// madeHost returns the host if it was made before, or nil.
func (p *Parley) madeHost() *call.Host {
	p.parts.mu.Lock()
	defer p.parts.mu.Unlock()
	return p.parts.host
}

// Close ends what this process has started. A browser that was opened stays open, for its keeper owns it.
func (p *Parley) Close() error {
	p.parts.mu.Lock()
	chrome, engine := p.parts.chrome, p.parts.engine
	p.parts.mu.Unlock()
	if chrome != nil {
		chrome.Close()
	}
	if engine != nil {
		return engine.Close(context.Background())
	}
	return nil
}
