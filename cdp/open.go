package cdp

import (
	"context"
	"encoding/json"
	"errors"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/parley-tools/parley/cdp/internal/browser"
	"github.com/parley-tools/parley/cdp/internal/keeper"
	"github.com/parley-tools/parley/cdp/internal/keeper/api"
	"github.com/parley-tools/parley/cdp/internal/protocol"
	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/job"
	"github.com/parley-tools/parley/host/protect"
	"github.com/parley-tools/parley/host/step"
	"github.com/parley-tools/parley/internal/durable"
	"github.com/parley-tools/parley/manifest"
)

type openParams struct {
	URL         string `json:"url"`
	Headed      bool   `json:"headed"`
	Attach      string `json:"attach"`
	UserDataDir string `json:"user_data_dir"`
	Chrome      string `json:"chrome"`
}

func (b *browsers) open(ctx context.Context, r *host.Request) (*job.Result, error) {
	var q openParams
	if err := json.Unmarshal(r.Params, &q); err != nil {
		return nil, err
	}
	attempts := maxOpenAttempts
	if q.Attach != "" {
		attempts = 1 // attaching may ask the browser's user for consent
	}
	var page api.Page
	var notes []string
	err := retryOpen(ctx, attempts, r.Options.Browser, func() (err error) {
		var c *keeper.Client
		if c, notes, err = b.opened(ctx, r, q); err == nil {
			page, err = keeper.Ask(ctx, c, api.OpOpen,
				api.OpenRequest{URL: q.URL, OnDialog: r.Options.OnDialog, Wait: r.Options.Wait})
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return result(page, notes...)
}

// maxOpenAttempts limits how often open tries when the browser ends meanwhile.
const maxOpenAttempts = 4

// retryOpen calls open again when the browser ended meanwhile, because it was just killed or another caller closed it:
// the caller asked for an open browser.
func retryOpen(ctx context.Context, attempts int, name string, open func() error) error {
	for attempt := 1; ; attempt++ {
		err := open()
		if e, ok := errors.AsType[*api.Error](err); !ok || e.Code != api.CodeChromeConnection || attempts == 1 ||
			ctx.Err() != nil {
			return err
		}
		if attempt == attempts {
			return host.Errorf(host.ChromeConnection, "browser %q ended %d times while it was being opened; it crashes, or "+
				"another caller closes it: %s", displayName(name), attempts, manifest.Clean(err.Error())).WithSteps(statusStep)
		}
	}
}

// opened returns the connection to the browser of a call, which it starts if none is open, and notes for the caller.
func (b *browsers) opened(ctx context.Context, r *host.Request, q openParams) (*keeper.Client, []string, error) {
	if !isPerson(r.Caller) {
		if err := keeper.CheckBrowserLimit(b.cfg.RunDir, r.Options.Browser); err != nil {
			return nil, nil, err
		}
	}
	c, notes, err := b.start(ctx, r.Options.Browser, q)
	if err != nil {
		return nil, nil, err
	}
	return onBehalfOf(c, r), notes, nil
}

// MissingPage returns the step that opens a page, and a browser if none is open, if the tool of a job requires it and
// the caller's session has none; nil otherwise. A job without a tool stands for one that acts on a page.
func (p *Provider) MissingPage(ctx context.Context, j *job.Job) *step.Step {
	if slices.Contains([]string{"open", "close", "status"}, j.Tool) {
		return nil
	}
	open, err := keeper.List(p.browsers.cfg.RunDir)
	if err != nil {
		return nil
	}
	if !slices.ContainsFunc(open, func(e keeper.Entry) bool { return e.Alive }) {
		return &openStep
	}
	actsOnPage := !slices.Contains([]string{"targets", "activate", "events", "state"}, j.Tool)
	if strings.Contains(j.Tool, ".") {
		actsOnPage = api.RequiresPage(j.Tool)
	}
	if j.Options.Target != "" || !actsOnPage {
		return nil
	}
	c, err := p.browsers.client(ctx, j.Options.Browser)
	if err != nil {
		return &openStep
	}
	s, err := keeper.Ask(ctx, c.As(callerOf(&host.Request{Job: *j})), api.OpStatus, api.StatusRequest{})
	// The blank page that a browser starts with belongs to no session and has nothing to act on.
	if err != nil || slices.ContainsFunc(s.Targets, func(t api.Target) bool { return t.URL != "about:blank" }) {
		return nil
	}
	return &openStep
}

// openStep opens a page, and a browser if none is open; statusStep lists the open browsers.
var (
	openStep   = step.Step{Op: step.OpCall, Tool: Name + ".open", Choose: []string{"url"}}
	statusStep = rawStep("status", `{"all":true}`)
)

// start connects to the keeper of a browser, which it starts if there is none.
func (b *browsers) start(ctx context.Context, name string, q openParams) (*keeper.Client, []string, error) {
	if q.Attach != "" { // the keeper has another working folder
		var err error
		if q.Attach, _, err = browser.Endpoint(q.Attach); err != nil {
			return nil, nil, host.Errorf(host.InvalidArgs, "%v", err)
		}
	}
	plain := q.Attach == "" && q.UserDataDir == "" && q.Chrome == "" && !q.Headed
	if plain {
		if c, err := b.client(ctx, name); err == nil {
			return c, nil, nil
		}
	}
	cfg := keeper.Config{
		RunDir: b.cfg.RunDir, Browser: name, Version: b.cfg.Version, Headed: q.Headed,
		UserDataDir: q.UserDataDir, Attach: q.Attach, Idle: b.cfg.Idle,
	}
	if deadline, ok := ctx.Deadline(); ok && q.Attach != "" {
		// The user may have to allow it in the browser first. The rest of the time lets the keeper report the outcome.
		cfg.LaunchTimeout = time.Until(deadline) * 9 / 10
	}
	if q.Attach != "" && b.cfg.AttachHosts != nil {
		var err error
		if cfg.AttachHosts, err = b.cfg.AttachHosts(); err != nil {
			return nil, nil, err
		}
	}
	if q.Attach == "" {
		found, err := findChrome(q.Chrome, b.cfg.Env, b.cfg.Chrome)
		if err != nil {
			return nil, nil, err
		}
		b.cfg.Debug("browser: %s: %s", found.Path, found.Why())
		cfg.Chrome, cfg.FoundBy, cfg.Why = found.Path, found.From, found.Why()
	}
	c, err := keeper.Start(ctx, cfg)
	if err != nil {
		return nil, nil, err
	}
	notes := c.Notes()
	if c.Started() {
		if s, err := keeper.Ask(ctx, c, api.OpStatus, api.StatusRequest{}); err == nil {
			notes = append(notes, s.Notes...)
		}
	}
	return b.add(name, c), notes, nil
}

// FindChrome returns the path of the browser that open would start, and a sentence that says why it is that one. The
// error is chrome_launch; it lists what was searched, and its first next step installs a browser.
func FindChrome(env func(string) string, configured string) (path, why string, err error) {
	found, err := findChrome("", env, configured)
	if err != nil {
		return "", "", err
	}
	return found.Path, found.Why(), nil
}

func findChrome(wanted string, env func(string) string, configured string) (browser.Found, error) {
	found, err := browser.Find(wanted, env(browser.EnvVar), configured)
	if err == nil {
		return found, nil
	}
	e := &host.Error{Code: host.ChromeLaunch, Message: err.Error(), Cause: err}
	if missing, ok := errors.AsType[*browser.NotFoundError](err); ok {
		e.Steps = []step.Step{step.Operator(step.OpSystem, missing.Install), step.Operator(step.OpDoctor)}
	}
	return browser.Found{}, e
}

// SocketPath returns the path of the socket on which the keeper of the default browser listens.
func SocketPath(runDir string) string { return keeper.SocketPath(runDir, "") }

// Keepers returns the names of the open browsers, and of those whose keeper died and left files.
func Keepers(runDir string) (open, stale []string, err error) {
	entries, err := keeper.List(runDir)
	for _, e := range entries {
		if e.Alive {
			open = append(open, e.Browser)
		} else {
			stale = append(stale, e.Browser)
		}
	}
	return open, stale, err
}

// AttachedTo returns the host and port of the running Chrome that the open browser of a name is attached to, "" if none
// is open or Parley has started it.
func (p *Provider) AttachedTo(name string) string {
	entries, _ := keeper.List(p.browsers.cfg.RunDir)
	for _, e := range entries {
		if u, err := url.Parse(e.Attach); e.Alive && e.Browser == displayName(name) && err == nil {
			return u.Host
		}
	}
	return ""
}

// Supported reports whether browsers can be opened on this platform.
func Supported() bool { return keeper.Supported() }

// Live replaces the embedded protocol with that of a browser for lists, documentation, search and validation. Call it
// before any other method. It uses the open browser of that name, or else the browser that open would start. The error
// is chrome_launch or chrome_connection.
func (p *Provider) Live(ctx context.Context, name string) error {
	if err := p.checkBrowser(name); err != nil {
		return err
	}
	document, product, err := p.browsers.fetchDocument(ctx, name)
	if err != nil {
		return p.hostError(err, nil)
	}
	live, err := protocol.Parse(document)
	if err != nil {
		return host.Errorf(host.ChromeConnection,
			"cannot read the protocol of %s: %v; use the embedded protocol instead", product, err).WithSteps(step.List(Name))
	}
	p.catalog = catalogOf(live)
	return nil
}

// fetchDocument returns the protocol document of a browser and the browser's product name. It asks an attached browser
// over its port. A browser without a port cannot be asked, so it starts the same binary once with a port and caches the
// document by product and revision.
func (b *browsers) fetchDocument(ctx context.Context, name string) (document []byte, product string, err error) {
	var open api.Status
	if c, err := b.client(ctx, name); err == nil {
		if open, err = keeper.Ask(ctx, c, api.OpStatus, api.StatusRequest{}); err != nil {
			return nil, "", err
		}
	}
	if open.Mode == "attached" {
		document, err = browser.FetchProtocol(ctx, open.Endpoint)
		if err != nil {
			return nil, "", host.Errorf(host.ChromeConnection, "cannot read the protocol of the attached browser: %v; "+
				"use the embedded protocol instead", err).WithSteps(step.List(Name))
		}
		return document, open.Product, nil
	}
	if open.Product != "" {
		document, err := protect.Read(b.cachePath(open.Product, open.Revision), 64<<20)
		if err == nil && json.Valid(document) {
			b.cfg.Debug("live: the protocol of %s comes from the cache", open.Product)
			return document, open.Product, nil
		}
	}
	path := open.Executable
	if path == "" {
		found, err := findChrome("", b.cfg.Env, b.cfg.Chrome)
		if err != nil {
			return nil, "", err
		}
		path = found.Path
	}
	b.cfg.Debug("live: starting %s to read its protocol", path)
	document, version, err := keeper.FetchProtocol(ctx, keeper.Config{RunDir: b.cfg.RunDir, Chrome: path})
	if err != nil {
		return nil, "", err
	}
	b.cacheDocument(b.cachePath(version.Product, version.Revision), document)
	return document, version.Product, nil
}

// cachePath returns the path of a cached protocol.
func (b *browsers) cachePath(product, revision string) string {
	return filepath.Join(b.cfg.CacheDir, "protocol", sanitizeFileName(product+"_"+revision)+".json")
}

// sanitizeFileName replaces characters that are not safe in a file name with underscores.
func sanitizeFileName(text string) string {
	return strings.Map(func(r rune) rune {
		if r == '.' || r == '-' || '0' <= r && r <= '9' || 'A' <= r && r <= 'Z' || 'a' <= r && r <= 'z' {
			return r
		}
		return '_'
	}, text)
}

// cacheDocument writes a protocol to the cache. The cache only saves time, so errors go to the debug log.
func (b *browsers) cacheDocument(path string, document []byte) {
	if b.cfg.CacheDir == "" {
		return
	}
	err := os.MkdirAll(filepath.Dir(path), 0o700)
	if err == nil {
		err = durable.Write(path, document)
	}
	if err != nil {
		b.cfg.Debug("live: cannot cache the protocol: %v", err)
	}
}
