package cdp

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/parley-tools/parley/cdp/internal/keeper"
	"github.com/parley-tools/parley/cdp/internal/keeper/api"
	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/manifest"
)

// closeResult is the result of close.
type closeResult struct {
	Closed closed `json:"closed"`
}

// closed is what was closed. Browser is set if the browser has ended, Browsers with all.
type closed struct {
	api.Closed
	Browsers []string `json:"browsers,omitempty"`
}

func newCloseResult() closeResult {
	return closeResult{closed{Closed: api.Closed{Targets: []string{}, Contexts: []string{}}}}
}

// close closes what the caller's session has opened, one page, or everything.
func (p *Provider) close(ctx context.Context, r *host.Request) (*host.Result, error) {
	var q struct {
		All bool `json:"all"`
	}
	if err := json.Unmarshal(r.Params, &q); err != nil {
		return nil, err
	}
	switch {
	case q.All && !isPerson(r.Caller):
		return nil, deny("", "close: only the command line can close what other sessions have opened")
	case q.All:
		return p.closeEverything(ctx, r)
	case r.Options.Target != "":
		return p.closeTarget(ctx, r)
	}
	c, err := p.clientFor(ctx, r)
	if err != nil {
		return p.closeWithout(ctx, r, err)
	}
	found, err := c.CloseSession(ctx, "")
	if err != nil {
		return p.closeWithout(ctx, r, p.hostError(err, r))
	}
	var notes []string
	if found.Browser != "" {
		p.dropClient(r.Options.Browser, true)
	} else if len(found.Targets)+len(found.Contexts) == 0 {
		notes = append(notes, "this session had nothing open; the browser stays open for others")
	}
	return result(closeResult{closed{Closed: found}}, notes...)
}

// closeWithout is close for a keeper that does not respond: there is none, or it hangs. The command line ends one that
// hangs.
func (p *Provider) closeWithout(ctx context.Context, r *host.Request, err error) (*host.Result, error) {
	e := host.AsError(err)
	if !isPerson(r.Caller) && e.Code == host.ChromeConnection {
		return result(newCloseResult(), "no browser was open")
	}
	if !isPerson(r.Caller) || e.Code != host.ChromeConnection && e.Code != host.Timeout {
		return nil, err
	}
	done := newCloseResult()
	p.dropClient(r.Options.Browser, false)
	was, err := keeper.Stop(ctx, p.cfg.RunDir, r.Options.Browser, p.cfg.Version)
	switch {
	case err != nil:
		return nil, p.hostError(err, r)
	case !was:
		return result(done, "no browser was open")
	}
	done.Closed.Browser = displayName(r.Options.Browser)
	return result(done)
}

func (p *Provider) closeTarget(ctx context.Context, r *host.Request) (*host.Result, error) {
	c, err := p.clientFor(ctx, r)
	if err != nil {
		return nil, err
	}
	page, err := c.CloseTarget(ctx, r.Options.Target, r.Options.OnDialog)
	if err != nil {
		return nil, p.hostError(err, r)
	}
	done := newCloseResult()
	done.Closed.Targets = []string{page.Target}
	return result(done)
}

// closeEverything closes all browsers with what all sessions have opened in them.
func (p *Provider) closeEverything(ctx context.Context, r *host.Request) (*host.Result, error) {
	entries, err := keeper.List(p.cfg.RunDir)
	if err != nil {
		return nil, p.hostError(err, r)
	}
	done := newCloseResult()
	done.Closed.Browsers = []string{}
	var failed error
	for _, e := range entries {
		p.dropClient(e.Browser, false)
		was, err := keeper.Stop(ctx, p.cfg.RunDir, e.Browser, p.cfg.Version)
		if err != nil && failed == nil {
			failed = err // close the others nevertheless
		}
		if was {
			done.Closed.Browsers = append(done.Closed.Browsers, e.Browser)
		}
	}
	switch {
	case failed != nil:
		return nil, p.hostError(failed, r)
	case len(done.Closed.Browsers) == 0:
		return result(done, "no browser was open")
	}
	return result(done)
}

func displayName(name string) string {
	if name == "" {
		return keeper.DefaultBrowser
	}
	return name
}

func (p *Provider) status(ctx context.Context, r *host.Request) (*host.Result, error) {
	var q struct {
		All bool `json:"all"`
	}
	if err := json.Unmarshal(r.Params, &q); err != nil {
		return nil, err
	}
	entries, err := keeper.List(p.cfg.RunDir)
	if err != nil {
		return nil, p.hostError(err, r)
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
				sweepStale(p.cfg.RunDir)))
			continue
		}
		c, err := p.client(ctx, e.Browser)
		var s api.Status
		if err == nil {
			s, err = onBehalfOf(c, r).Status(ctx, q.All)
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
		notes = append(notes, fmt.Sprintf("browser %s is not open; these are: %s", displayName(r.Options.Browser),
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

func (p *Provider) targets(ctx context.Context, r *host.Request) (*host.Result, error) {
	c, err := p.clientFor(ctx, r)
	if err != nil {
		return nil, err
	}
	targets, err := c.Targets(ctx)
	if err != nil {
		return nil, p.hostError(err, r)
	}
	return result(struct {
		Targets []api.Target `json:"targets"`
	}{append([]api.Target{}, targets...)})
}

func (p *Provider) activate(ctx context.Context, r *host.Request) (*host.Result, error) {
	var q struct {
		Target string `json:"target"`
	}
	if err := json.Unmarshal(r.Params, &q); err != nil {
		return nil, err
	}
	c, err := p.clientFor(ctx, r)
	if err != nil {
		return nil, err
	}
	page, err := c.Activate(ctx, q.Target)
	if err != nil {
		return nil, p.hostError(err, r)
	}
	return result(page)
}
