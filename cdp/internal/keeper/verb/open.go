package verb

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/chromedp/cdproto/page"
	cdptarget "github.com/chromedp/cdproto/target"
	"github.com/parley-tools/parley/cdp/internal/keeper/api"
	"github.com/parley-tools/parley/cdp/internal/keeper/mux"
	"github.com/parley-tools/parley/cdp/internal/keeper/target"
	"github.com/parley-tools/parley/cdp/internal/keeper/tenant"
	"github.com/parley-tools/parley/manifest"
)

// Open creates a page, or uses the initial blank one, and waits for its load event.
func (e *Verbs) Open(ctx context.Context, by api.Caller, s *tenant.Scope, q api.OpenRequest) (
	api.Page, *api.Error,
) {
	if q.URL == "" {
		q.URL = api.BlankURL
	}
	err := cmp.Or(api.CheckOnDialog(q.OnDialog), api.CheckWait(q.Wait))
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
		err = e.navigate(ctx, by, t, q)
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
	if p.Status == http.StatusUnauthorized && e.Owners.AsksLogin(by.SessionKey(), p.URL) {
		return p, e.CannotOpen(ctx, by, t, q.URL, api.NoLogin)
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

// discard closes a page, whatever the outcome of the call that created it, and waits a little until it is gone.
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
	return e.navigate(ctx, api.Caller{}, t, api.OpenRequest{URL: api.BlankURL}) == nil
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
		t.Given = true
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
	if mux.Locked(e.Mux, func() bool { return t.Given && t.Owner == by.SessionKey() }) {
		return api.Page{}, api.Errorf(api.CodeDenied, "the tab was given to this session: only a person closes it")
	}
	e.Mux.Lock()
	closed := api.Page{Browser: e.Tracker.Name, Target: t.ID, URL: t.URL, Title: t.Title}
	before := t.Dialog // the present dialog closes with the page
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

// beginTimeout is how long a call waits for the navigation that it may have caused to begin. For a navigation by a
// script or an input event, Chrome reports the beginning at about the time at which the command returns.
const beginTimeout = 150 * time.Millisecond

// pageWait waits for the effect of a command on its page. Nil waits for nothing.
type pageWait struct {
	e        *Verbs
	page     *target.Target
	kind     string // WaitLoad or WaitIdle
	onDialog string
	commits  int // commits of the page before the command
}

// newPageWait prepares a wait for the effect of a command to a target. The caller must call close.
func (e *Verbs) newPageWait(t *target.Target, kind, onDialog string) *pageWait {
	e.Mux.Lock()
	defer e.Mux.Unlock()
	root := t.Root()
	if kind == "" || kind == api.WaitNone || root.Kind != "page" {
		return nil
	}
	if kind == api.WaitIdle {
		e.domains.Enable(root, target.Lifecycle)
		root.IdleWaits++
	}
	return &pageWait{e, root, kind, onDialog, root.Commits}
}

func (w *pageWait) close() {
	if w == nil || w.kind != api.WaitIdle {
		return
	}
	w.e.Mux.Lock()
	defer w.e.Mux.Unlock()
	if w.e.Mux.Err() == nil {
		w.page.IdleWaits--
		w.e.domains.Disable(w.page, target.Lifecycle)
	}
}

// after waits for the page once a caller's command has returned a result.
func (w *pageWait) after(ctx context.Context, method string, result json.RawMessage) (err *api.Error) {
	if w == nil {
		return nil
	}
	defer func() {
		if err != nil && err.Code == api.CodeTimeout {
			err.Target = w.page.ID
		}
	}()
	const what = "for the page to load (the command has run, and the page stays open)"
	if method == page.CommandNavigate {
		var nav page.NavigateResult
		if json.Unmarshal(result, &nav) != nil || nav.ErrorText != "" || nav.LoaderID == "" {
			return nil // it failed, or stays in the current document
		}
		return w.await(ctx, what, func() bool { return w.page.HasLoader(string(nav.LoaderID)) })
	}
	began := func() bool { return w.page.Commits > w.commits || w.page.PendingURL != "" }
	if method != page.CommandReload {
		soon, cancel := context.WithTimeout(ctx, beginTimeout)
		defer cancel()
		w.e.Mux.Wait(soon, "for a navigation", func() (bool, *api.Error) { return began() || w.page.Closed, nil })
	}
	if method != page.CommandReload && !mux.Locked(w.e.Mux, began) {
		return nil
	}
	ended := func() bool { // a download, for example, ends a navigation without a new document
		return method != page.CommandReload && w.page.Commits == w.commits && w.page.PendingURL == ""
	}
	return w.await(ctx, what, func() bool { return w.page.Commits > w.commits || ended() })
}

// await waits until committed returns true and the newest document has arrived. what names the wait in the error.
func (w *pageWait) await(ctx context.Context, what string, committed func() bool) *api.Error {
	if w == nil {
		return nil
	}
	t := w.page
	err := w.e.Mux.Wait(ctx, what, func() (bool, *api.Error) {
		if ok, err := w.e.showable(t, w.onDialog); !ok || err != nil {
			return false, err
		}
		return committed() && t.Loaded && (w.kind != api.WaitIdle || t.Idle), nil
	})
	if err != nil && err.Code == api.CodeTimeout {
		if diagnosis := w.e.sender.Unstick(t, nil); diagnosis != "" {
			err.Message += "; " + diagnosis
		}
	}
	return err
}

// showable reports whether a page can continue to load, or why it never will. It answers a dialog that blocks the
// page if OnDialog says so. The mux is locked.
func (e *Verbs) showable(t *target.Target, onDialog string) (bool, *api.Error) {
	switch {
	case t.Closed:
		return false, target.ClosedTarget(t)
	case t.Crashed:
		return false, target.CrashedTarget(t)
	case t.Dialog == nil:
		return true, nil
	case api.AnswersDialogs(onDialog):
		e.sender.AnswerDialog(t, onDialog)
		return false, nil
	}
	return false, target.BlockedTarget(t, t.Dialog)
}

// CannotOpen returns the error of a page whose navigation to a URL has failed, by the browser's reason.
func (e *Verbs) CannotOpen(ctx context.Context, by api.Caller, t *target.Target, url, reason string) *api.Error {
	e.Mux.Lock()
	owner, asked, status := t.Owner, t.Asked, t.ResponseStatus()
	e.Mux.Unlock()
	switch {
	case reason == api.NoPage && status == http.StatusUnauthorized:
		reason = api.NoLogin
	case reason == api.NoPage && status > 0:
		reason = fmt.Sprintf("HTTP %d (%s)", status, reason)
	default:
		reason = e.Owners.Reason(owner, asked, reason)
	}
	err := api.Errorf(api.CodeNavigationFailed, "cannot open %s: %s", manifest.Clip(url, 200), reason)
	err.Target, err.Remedy = t.ID, e.Owners.Remedy(ctx, by, asked, reason)
	return err
}

// navigate navigates a page to a URL and waits for its load event.
func (e *Verbs) navigate(ctx context.Context, by api.Caller, t *target.Target, q api.OpenRequest) *api.Error {
	w := e.newPageWait(t, cmp.Or(q.Wait, api.WaitLoad), q.OnDialog)
	defer w.close()
	nav, err := target.Execute(ctx, e.sender, t, page.Navigate, page.NavigateParams{URL: q.URL},
		target.CallOptions{OnDialog: q.OnDialog})
	if err != nil {
		return err
	}
	if nav.ErrorText != "" {
		return e.CannotOpen(ctx, by, t, q.URL, nav.ErrorText)
	}
	if nav.LoaderID == "" {
		return nil // a navigation within the current document
	}
	return w.await(ctx, "for "+manifest.Clip(q.URL, 200)+" to load (the page stays open)", func() bool {
		return t.HasLoader(string(nav.LoaderID))
	})
}
