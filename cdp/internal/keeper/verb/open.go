package verb

import (
	"cmp"
	"context"
	"time"

	cdptarget "github.com/chromedp/cdproto/target"

	"github.com/parley-tools/parley/cdp/internal/keeper/api"
	"github.com/parley-tools/parley/cdp/internal/keeper/target"
	"github.com/parley-tools/parley/cdp/internal/keeper/tenant"
)

// Open creates a page, or uses the initial blank one, and waits for its load event.
func (e *Verbs) Open(ctx context.Context, by api.Caller, s *tenant.Scope, q api.OpenRequest) (
	api.Page, *api.Error,
) {
	if q.URL == "" {
		q.URL = api.BlankURL
	}
	err := cmp.Or(api.CheckOnDialog(q.OnDialog), api.CheckWait(q.Wait), e.Owners.CheckURL("open", q.URL))
	if err != nil {
		return api.Page{}, err
	}
	var t *target.Target
	if s == nil {
		t = e.Owners.TakeSpare(by)
	}
	first := t != nil
	if !first {
		if t, err = e.Owners.NewPage(ctx, by, s.BrowserContext()); err != nil {
			return api.Page{}, err
		}
	}
	refusals := s.Refusals()
	p, err := e.loadPage(ctx, by, t, q, first)
	if err != nil && err.Code == api.CodeNavigationFailed {
		if refused := refusals(q.URL); refused != nil {
			return api.Page{}, refused
		}
	}
	return p, err
}

// loadPage navigates a new page to a URL and makes it the current one. first is set for the browser's initial page.
func (e *Verbs) loadPage(ctx context.Context, by api.Caller, t *target.Target, q api.OpenRequest, first bool) (
	api.Page, *api.Error,
) {
	err := e.Tracker.Attach(ctx, t, "")
	if err == nil {
		e.Tracker.AwaitBlank(ctx, t)
		err = e.navigate(ctx, t, q)
	}
	if err != nil {
		e.discardFailed(by, t, err, first, ctx.Err() == context.Canceled)
		return api.Page{}, err
	}
	e.Owners.SetCurrent(by, t)
	p, err := e.Tracker.PageInfo(ctx, t)
	if err == nil && api.IsWebURL(p.URL) {
		p.Status = e.Tracker.DocumentStatus(t)
	}
	return p, err
}

// discardFailed closes a page that never had content, or whose caller has cancelled the call. A page that is only
// slow, or shows a dialog, stays and becomes the current target, so that it can be inspected.
func (e *Verbs) discardFailed(by api.Caller, t *target.Target, err *api.Error, first, givenUp bool) {
	switch {
	case !givenUp && err.Code != api.CodeNavigationFailed && err.Code != api.CodeProtocolError:
		e.Owners.SetCurrent(by, t)
	case first && blank(e, t):
		e.Owners.GiveBack(t)
	default:
		e.discard(t)
	}
}

// discard closes a page, whatever became of the call that created it, and waits a little until it is gone.
func (e *Verbs) discard(t *target.Target) {
	ctx, cancel := context.WithTimeout(context.Background(), discardTimeout)
	defer cancel()
	e.Mux.Lock()
	e.sender.PostClose(t.ID)
	e.Mux.Unlock()
	e.Mux.Wait(ctx, "for the page to close", func() (bool, *api.Error) { return t.Closed, nil })
}

// blank navigates a page to the blank page, and reports whether it got there. It waits for the end of that navigation,
// whose commit would abort the next one.
func blank(e *Verbs, t *target.Target) bool {
	ctx, cancel := context.WithTimeout(context.Background(), discardTimeout)
	defer cancel()
	return e.navigate(ctx, t, api.OpenRequest{URL: api.BlankURL}) == nil
}

const discardTimeout = 2 * time.Second

// Activate brings a page to the front and makes it the current target.
func (e *Verbs) Activate(ctx context.Context, by api.Caller, selector string) (api.Page, *api.Error) {
	t, err := e.Owners.Resolve(by, selector)
	if err != nil {
		return api.Page{}, err
	}
	if t.Kind == "page" {
		params := cdptarget.ActivateTargetParams{TargetID: cdptarget.ID(t.ID)}
		if _, err := target.Execute(ctx, e.sender, nil, cdptarget.ActivateTarget, params); err != nil {
			return api.Page{}, err
		}
	}
	e.Mux.Lock()
	if t.Owner == "" && e.Tracker.External {
		e.Owners.TakeOver(by, t) // a person gives the page to the session
	}
	own := t.Owner == by.SessionKey()
	e.Mux.Unlock()
	if own {
		e.Owners.SetCurrent(by, t)
	}
	return e.Tracker.PageInfo(ctx, t)
}

// CloseTarget closes a page and waits until it is gone.
func (e *Verbs) CloseTarget(ctx context.Context, by api.Caller, selector, onDialog string) (api.Page, *api.Error) {
	t, err := e.Owners.Resolve(by, selector)
	if err != nil {
		return api.Page{}, err
	}
	e.Mux.Lock()
	closed := api.Page{Browser: e.Tracker.Name, Target: t.ID, URL: t.URL, Title: t.Title}
	before := t.Dialog // this one closes with the page
	e.sender.PostClose(t.ID)
	e.Mux.Unlock()
	err = e.Mux.Wait(ctx, "for the page to close", func() (bool, *api.Error) {
		if d := t.Dialog; d != nil && d != before && d.Type == api.BeforeUnload && !t.Closed {
			if api.AcceptsDialogs(onDialog) {
				e.sender.AnswerDialog(t, onDialog)
				return false, nil
			}
			return false, target.BlockedTarget(t, d)
		}
		return t.Closed, nil
	})
	return closed, err
}
