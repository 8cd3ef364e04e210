package keeper

import (
	"cmp"
	"context"
	"time"

	cdptarget "github.com/chromedp/cdproto/target"

	"github.com/parley-tools/parley/cdp/internal/keeper/api"
)

// open creates a page, or uses the initial blank one, and waits for its load event.
func (e *engine) open(ctx context.Context, by api.Caller, q api.OpenRequest) (api.Page, *api.Error) {
	if q.URL == "" {
		q.URL = api.BlankURL
	}
	err := cmp.Or(api.CheckOnDialog(q.OnDialog), api.CheckWait(q.Wait), e.owners.checkURL("open", q.URL))
	if err != nil {
		return api.Page{}, err
	}
	s, release, err := e.tenancy.enter(ctx, by)
	if err != nil {
		return api.Page{}, err
	}
	defer release()
	var t *target
	if s == nil {
		t = e.owners.takeSpare(by)
	}
	first := t != nil
	if !first {
		if t, err = e.owners.newPage(ctx, by, s.browserContext()); err != nil {
			return api.Page{}, err
		}
	}
	since := s.refusalCount()
	p, err := e.loadPage(ctx, by, t, q, first)
	if err != nil && err.Code == api.CodeNavigationFailed {
		if refused := s.dialError(since, q.URL); refused != nil {
			return api.Page{}, refused
		}
	}
	return p, err
}

// loadPage navigates a new page to a URL and makes it the current one. first is set for the browser's initial page.
func (e *engine) loadPage(ctx context.Context, by api.Caller, t *target, q api.OpenRequest, first bool) (
	api.Page, *api.Error,
) {
	err := e.tracker.attach(ctx, t, "")
	if err == nil {
		e.tracker.awaitBlank(ctx, t)
		err = e.navigate(ctx, t, q)
	}
	if err != nil {
		e.discardFailed(by, t, err, first, ctx.Err() == context.Canceled)
		return api.Page{}, err
	}
	e.mux.Lock()
	e.owners.setCurrent(by, t)
	e.mux.Unlock()
	p, err := e.tracker.pageInfo(ctx, t)
	if err == nil && api.IsWebURL(p.URL) {
		p.Status = e.tracker.documentStatus(t)
	}
	return p, err
}

// discardFailed closes a page that never had content, or whose caller has cancelled the call. A page that is only
// slow, or shows a dialog, stays and becomes the current target, so that it can be inspected.
func (e *engine) discardFailed(by api.Caller, t *target, err *api.Error, first, givenUp bool) {
	switch {
	case !givenUp && err.Code != api.CodeNavigationFailed && err.Code != api.CodeProtocolError:
		e.mux.Lock()
		e.owners.setCurrent(by, t)
		e.mux.Unlock()
	case first && e.blank(t):
		e.mux.Lock()
		e.owners.giveBack(t)
		e.mux.Unlock()
	default:
		e.discard(t)
	}
}

// discard closes a page, whatever became of the call that created it.
func (e *engine) discard(t *target) {
	ctx, cancel := context.WithTimeout(context.Background(), discardTimeout)
	defer cancel()
	params := cdptarget.CloseTargetParams{TargetID: cdptarget.ID(t.ID)}
	execute(ctx, e.sender, nil, cdptarget.CloseTarget, params, callOptions{})
}

// blank navigates a page to the blank page, and reports whether it got there. It waits for the end of that navigation,
// whose commit would abort the next one.
func (e *engine) blank(t *target) bool {
	ctx, cancel := context.WithTimeout(context.Background(), discardTimeout)
	defer cancel()
	return e.navigate(ctx, t, api.OpenRequest{URL: api.BlankURL}) == nil
}

const discardTimeout = 2 * time.Second

// activate brings a page to the front and makes it the current target.
func (e *engine) activate(ctx context.Context, by api.Caller, selector string) (api.Page, *api.Error) {
	t, err := e.owners.resolve(by, selector)
	if err != nil {
		return api.Page{}, err
	}
	if t.kind == "page" {
		params := cdptarget.ActivateTargetParams{TargetID: cdptarget.ID(t.ID)}
		if _, err := execute(ctx, e.sender, nil, cdptarget.ActivateTarget, params, callOptions{}); err != nil {
			return api.Page{}, err
		}
	}
	e.mux.Lock()
	if t.owner == "" && e.tracker.external {
		e.owners.takeOver(by, t) // a person gives the page to the session
	}
	if t.owner == by.SessionKey() {
		e.owners.setCurrent(by, t)
	}
	e.mux.Unlock()
	return e.tracker.pageInfo(ctx, t)
}

// closeTarget closes a page and waits until it is gone.
func (e *engine) closeTarget(ctx context.Context, by api.Caller, selector, onDialog string) (api.Page, *api.Error) {
	t, err := e.owners.resolve(by, selector)
	if err != nil {
		return api.Page{}, err
	}
	e.mux.Lock()
	closed := api.Page{Browser: e.tracker.name, Target: t.ID, URL: t.url, Title: t.title}
	before := t.dialog // this one closes with the page
	e.mux.Unlock()
	params := cdptarget.CloseTargetParams{TargetID: cdptarget.ID(t.ID)}
	if _, err := execute(ctx, e.sender, nil, cdptarget.CloseTarget, params, callOptions{}); err != nil {
		return api.Page{}, err
	}
	err = e.mux.Wait(ctx, "for the page to close", func() (bool, *api.Error) {
		if d := t.dialog; d != nil && d != before && d.Type == api.BeforeUnload && !t.closed {
			if api.AcceptsDialogs(onDialog) {
				e.sender.answerDialog(t, onDialog)
				return false, nil
			}
			return false, blockedTarget(t, d)
		}
		return t.closed, nil
	})
	return closed, err
}
