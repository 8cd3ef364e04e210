package cdp

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/parley-tools/parley/cdp/internal/keeper"
	"github.com/parley-tools/parley/cdp/internal/keeper/api"
	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/caller"
	"github.com/parley-tools/parley/host/job"
	"github.com/parley-tools/parley/manifest"
)

// browsers has this process's connections to the keepers of browsers.
type browsers struct {
	cfg Config

	mu      sync.Mutex
	clients map[string]*keeper.Client // by browser name
}

// client returns this process's connection to a browser's keeper.
func (b *browsers) client(ctx context.Context, name string) (*keeper.Client, error) {
	b.mu.Lock()
	c := b.clients[name]
	b.mu.Unlock()
	if c != nil && !c.Ended() {
		return c, nil
	}
	c, err := keeper.Dial(ctx, b.cfg.RunDir, name, b.cfg.Version)
	if err != nil {
		return nil, err
	}
	return b.add(name, c), nil
}

// add stores a new connection. Of two concurrent connections the first stays, because it may have calls in
// progress.
func (b *browsers) add(name string, c *keeper.Client) *keeper.Client {
	b.mu.Lock()
	defer b.mu.Unlock()
	if first := b.clients[name]; first != nil {
		if !first.Ended() {
			_ = c.Close()
			return first
		}
		_ = first.Close()
	}
	b.clients[name] = c
	return c
}

// drop closes and forgets the connection to a browser. If it is forgotten because the browser has ended, another
// call may have replaced it by one to a new browser of that name, which stays.
func (b *browsers) drop(name string, onlyEnded bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if c := b.clients[name]; c != nil && (!onlyEnded || c.Ended()) {
		_ = c.Close()
		delete(b.clients, name)
	}
}

// clientFor returns this process's connection to the browser of a call, acting for the caller.
func (b *browsers) clientFor(ctx context.Context, r *host.Request) (*keeper.Client, error) {
	c, err := b.client(ctx, r.Options.Browser)
	if err != nil {
		return nil, err
	}
	return onBehalfOf(c, r), nil
}

// disconnect closes the connections.
func (b *browsers) disconnect() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, c := range b.clients {
		_ = c.Close()
	}
	clear(b.clients)
}

// closed says what close has closed: Browser if the browser has ended, Browsers if all were to be closed.
type closed struct {
	api.Closed
	Browsers []string `json:"browsers,omitempty"`
}

// closeResult returns the result of close.
func closeResult(c closed) map[string]closed {
	c.Targets, c.Contexts = append([]string{}, c.Targets...), append([]string{}, c.Contexts...)
	return map[string]closed{"closed": c}
}

// ofAll are the parameters of verbs that concern one browser or all.
type ofAll struct {
	All bool `json:"all"`
}

// close closes what the caller's session has opened, one page, or everything.
func (b *browsers) close(ctx context.Context, r *host.Request) (*job.Result, error) {
	var q ofAll
	if err := json.Unmarshal(r.Params, &q); err != nil {
		return nil, err
	}
	switch {
	case q.All && !isPerson(r.Caller):
		return nil, deny("close: only the command line can close what other sessions have opened")
	case q.All:
		return b.closeEverything(ctx)
	}
	c, err := b.clientFor(ctx, r)
	if r.Options.Target != "" {
		var page api.Page
		if err == nil {
			page, err = keeper.Ask(ctx, c, api.OpCloseTarget,
				api.TargetRequest{Target: r.Options.Target, OnDialog: r.Options.OnDialog})
		}
		if err != nil {
			return nil, err
		}
		return result(closeResult(closed{Closed: api.Closed{Targets: []string{page.Target}}}))
	}
	var found api.Closed
	if err == nil {
		found, err = c.CloseSession(ctx, "")
	}
	if err != nil {
		return b.closeWithout(ctx, r, err)
	}
	var notes []string
	if found.Browser != "" {
		b.drop(r.Options.Browser, true)
	} else if len(found.Targets)+len(found.Contexts) == 0 {
		notes = append(notes, "this session had nothing open; the browser stays open for other sessions")
	}
	return result(closeResult(closed{Closed: found}), notes...)
}

// closeWithout closes a browser whose keeper failed with err: no keeper runs, or it hangs. Only for a person at the
// command line it ends a keeper that hangs.
func (b *browsers) closeWithout(ctx context.Context, r *host.Request, err error) (*job.Result, error) {
	e, ok := errors.AsType[*api.Error](err)
	isGone, was := ok && e.Code == api.CodeChromeConnection, false
	if isPerson(r.Caller) && (isGone || ok && e.Code == api.CodeTimeout) {
		b.drop(r.Options.Browser, false)
		was, err = keeper.Stop(ctx, b.cfg.RunDir, r.Options.Browser, b.cfg.Version)
		isGone = err == nil
	}
	switch {
	case !isGone:
		return nil, err
	case !was:
		return result(closeResult(closed{}), "no browser was open")
	}
	return result(closeResult(closed{Closed: api.Closed{Browser: displayName(r.Options.Browser)}}))
}

// closeEverything closes all browsers with what all sessions have opened in them.
func (b *browsers) closeEverything(ctx context.Context) (*job.Result, error) {
	entries, err := keeper.List(b.cfg.RunDir)
	if err != nil {
		return nil, err
	}
	var done closed
	var failed error
	for _, e := range entries {
		b.drop(e.Browser, false)
		was, err := keeper.Stop(ctx, b.cfg.RunDir, e.Browser, b.cfg.Version)
		if err != nil && failed == nil {
			failed = err // close the others nevertheless
		}
		if was {
			done.Browsers = append(done.Browsers, e.Browser)
		}
	}
	switch {
	case failed != nil:
		return nil, failed
	case len(done.Browsers) == 0:
		return result(closeResult(done), "no browser was open")
	}
	return result(closeResult(done))
}

func displayName(name string) string { return cmp.Or(name, keeper.DefaultBrowser) }

func (b *browsers) status(ctx context.Context, r *host.Request) (*job.Result, error) {
	var q ofAll
	if err := json.Unmarshal(r.Params, &q); err != nil {
		return nil, err
	}
	entries, err := keeper.List(b.cfg.RunDir)
	if err != nil {
		return nil, err
	}
	list := struct {
		Browsers []any `json:"browsers"`
	}{[]any{}}
	var notes, others []string
	for _, e := range entries {
		if !q.All && e.Browser != displayName(r.Options.Browser) {
			if e.Alive {
				others = append(others, e.Browser)
			}
			continue
		}
		if !e.Alive {
			notes = append(notes, fmt.Sprintf("browser %s ended without cleaning up; its files %s", e.Browser,
				sweepStale(b.cfg.RunDir)))
			continue
		}
		c, err := b.client(ctx, e.Browser)
		var s api.Status
		if err == nil {
			s, err = keeper.Ask(ctx, onBehalfOf(c, r), api.OpStatus, api.StatusRequest{All: q.All})
		}
		if err == nil {
			list.Browsers = append(list.Browsers, s)
			continue
		}
		notes = append(notes, fmt.Sprintf("browser %s: %s", e.Browser, manifest.CleanLine(err.Error())))
		if isPerson(r.Caller) {
			list.Browsers = append(list.Browsers, e)
		}
	}
	switch {
	case len(list.Browsers) > 0 || len(others) > 0 && len(notes) > 0:
	case len(others) > 0:
		notes = append(notes, fmt.Sprintf("browser %s is not open; open browsers: %s", displayName(r.Options.Browser),
			strings.Join(others, ", ")))
	default:
		notes = append(notes, "no browser is open")
	}
	return result(list, notes...)
}

// sweepStale removes the files of dead keepers and describes the outcome.
func sweepStale(runDir string) string {
	if _, err := keeper.Sweep(runDir); err != nil {
		return "cannot be removed: " + manifest.CleanLine(err.Error())
	}
	return "were removed"
}

var _ host.SessionEnder = (*Provider)(nil)

// SessionInfo is what a session has in an open browser.
type SessionInfo struct {
	Session string // as [caller.Session.Key]
	Browser string
	Pages   int
	Current string    // URL of the current page; "" if there is none
	Used    time.Time // its last call; zero if there was none
}

// Sessions returns the sessions that have anything in the open browsers.
func (p *Provider) Sessions(ctx context.Context) ([]SessionInfo, error) {
	var all []SessionInfo
	err := p.eachBrowser(ctx, func(name string, c *keeper.Client) error {
		found, err := keeper.Ask(ctx, c.As(api.CommandLine), api.OpSessions, struct{}{})
		for _, s := range found {
			key, _, _ := strings.Cut(s.Session, contextMark)
			if key == api.DefaultSession {
				key = caller.Session{}.Key()
			}
			info := SessionInfo{Session: key, Browser: name, Pages: s.Pages, Current: s.Current}
			if s.Used > 0 {
				info.Used = time.UnixMilli(s.Used)
			}
			all = append(all, info)
		}
		return err
	})
	return all, err
}

// EndSession implements [host.SessionEnder].
func (p *Provider) EndSession(ctx context.Context, of caller.Session) error {
	return p.eachBrowser(ctx, func(name string, c *keeper.Client) error {
		closed, err := c.As(api.CommandLine).CloseSession(ctx, sessionKey(of.Key()))
		if closed.Browser != "" {
			p.browsers.drop(name, true)
		}
		return err
	})
}

// EndConnection implements [host.SessionEnder].
func (p *Provider) EndConnection(id string) {
	p.browsers.mu.Lock()
	defer p.browsers.mu.Unlock()
	for _, c := range p.browsers.clients {
		of := c.As(api.Caller{Name: api.CommandLine.Name, Connection: id})
		go keeper.Ask(context.Background(), of, api.OpEndConnection, struct{}{})
	}
}

// eachBrowser calls f with each open browser. Browsers that end meanwhile are left out.
func (p *Provider) eachBrowser(ctx context.Context, f func(name string, c *keeper.Client) error) error {
	entries, err := keeper.List(p.browsers.cfg.RunDir)
	if err != nil {
		return p.hostError(err, nil)
	}
	var failures []error
	for _, e := range entries {
		if !e.Alive {
			continue
		}
		c, err := p.browsers.client(ctx, e.Browser)
		if err == nil {
			err = f(e.Browser, c)
		}
		if err = p.hostError(err, nil); err != nil && host.AsError(err).Code != host.ChromeConnection {
			failures = append(failures, err)
		}
	}
	return errors.Join(failures...)
}
