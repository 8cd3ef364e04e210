package cdp

import (
	"context"

	"github.com/parley-tools/parley/cdp/internal/keeper"
	"github.com/parley-tools/parley/cdp/internal/keeper/api"
	"github.com/parley-tools/parley/host"
)

// This file has what the plugin page uses of this one: its verbs run in the same keepers, for the same callers.

// PageVerb runs a verb of the plugin page in one trip to the keeper of the call's browser. Start is how often it may
// start a browser if none is open. The notes are what the user should know. Pass an error of the keeper to
// [Provider.HostError].
func (p *Provider) PageVerb(ctx context.Context, r *host.Request, verb string, q api.PageRequest, start int) (
	done api.PageResult, notes []string, err error,
) {
	if err := p.checkBrowser(r.Options.Browser); err != nil {
		return done, nil, err
	}
	err = retryOpen(ctx, max(start, 1), r.Options.Browser, func() (err error) {
		var c *keeper.Client
		if start == 0 {
			c, err = p.browsers.clientFor(ctx, r)
		} else {
			c, notes, err = p.browsers.opened(ctx, r, openParams{})
		}
		if err == nil {
			done, err = c.Page(ctx, verb, q)
		}
		return err
	})
	return done, notes, err
}

// MaxStarts is how often an open may start its browser: it may end meanwhile.
const MaxStarts = maxOpenAttempts

// Files returns the paths of files for a page. If start is set, it starts a browser if none is open. It copies files
// that the host has handed to the call to the upload folder of the session.
func (p *Provider) Files(ctx context.Context, r *host.Request, given []string, start bool) ([]string, error) {
	c, err := p.browsers.clientFor(ctx, r)
	if err != nil && start {
		c, _, err = p.browsers.opened(ctx, r, openParams{})
	}
	if err != nil {
		return nil, err
	}
	return filesFor(ctx, c, r, given)
}

// HostError turns an error of a keeper into the error that callers see, and returns any other unchanged.
func (p *Provider) HostError(err error, r *host.Request) error { return p.hostError(err, r) }

// CheckPaste refuses a call that pastes unless the calling plugin was granted the tool by its name: the clipboard is
// outside the page.
func CheckPaste(r *host.Request, tool string) error {
	if !isPlugin(r.Caller) || grantedByName(r, tool) {
		return nil
	}
	const why = "pasting reads the clipboard, which is outside the page, and a wildcard never grants access outside " +
		"the page"
	e := host.NotGranted("tool:"+tool, why)
	e.Message += ": " + why + "; nothing was run"
	return e.WithSteps(grantStep(r, "tool:"+tool))
}
