package cdp

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/parley-tools/parley/cdp/internal/keeper"
	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/manifest"
)

func (p *Provider) close(ctx context.Context, r *host.Request) (*host.Result, error) {
	var q struct {
		All bool `json:"all"`
	}
	if err := json.Unmarshal(r.Params, &q); err != nil {
		return nil, err
	}
	if r.Options.Target != "" {
		c, err := p.clientFor(ctx, r)
		if err != nil {
			return nil, err
		}
		page, err := c.CloseTarget(ctx, r.Options.Target, r.Options.OnDialog)
		if err != nil {
			return nil, p.hostError(err, r)
		}
		return result(closeResult{[]string{page.Target}})
	}
	if isPlugin(r.Caller) {
		return p.closeOwn(ctx, r)
	}
	names := []string{r.Options.Browser}
	if q.All {
		entries, err := keeper.List(p.cfg.RunDir)
		if err != nil {
			return nil, p.hostError(err, r)
		}
		names = names[:0]
		for _, e := range entries {
			names = append(names, e.Browser)
		}
	}
	done := closeResult{[]string{}}
	var failed error
	for _, name := range names {
		p.dropClient(name)
		was, err := keeper.Stop(ctx, p.cfg.RunDir, name, p.cfg.Version)
		if err != nil && failed == nil {
			failed = err // close the others nevertheless
		}
		if was {
			done.Closed = append(done.Closed, displayName(name))
		}
	}
	switch {
	case failed != nil:
		return nil, p.hostError(failed, r)
	case len(done.Closed) == 0:
		return result(done, "no browser was open")
	}
	return result(done)
}

type closeResult struct {
	Closed []string `json:"closed"`
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
	var notes []string
	for _, e := range entries {
		if !q.All && e.Browser != displayName(r.Options.Browser) {
			continue
		}
		if !e.Alive {
			notes = append(notes, fmt.Sprintf("browser %s ended without cleaning up; its files %s", e.Browser,
				sweepStale(p.cfg.RunDir)))
			continue
		}
		c, err := p.client(ctx, e.Browser)
		var s keeper.Status
		if err == nil {
			s, err = onBehalfOf(c, r).Status(ctx)
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
	if len(list.Browsers) == 0 {
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
		Targets []keeper.Target `json:"targets"`
	}{append([]keeper.Target{}, targets...)})
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
