package keeper

import (
	"context"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/page"
	cdptarget "github.com/chromedp/cdproto/target"

	"github.com/parley-tools/parley/manifest"
)

// This file opens, navigates and closes pages, and limits how many a caller may have.

// open creates a page, or uses the initial blank one, and waits for its load event.
func (e *engine) open(ctx context.Context, by Caller, q OpenRequest) (Page, *Error) {
	if q.URL == "" {
		q.URL = blankURL
	}
	if err := checkOnDialog(q.OnDialog); err != nil {
		return Page{}, err
	}
	if by.isPlugin() {
		return e.openForPlugin(ctx, by, q)
	}
	e.mu.Lock()
	e.callCount++
	t := e.sparePage
	e.sparePage = nil
	usable := t != nil && !t.closed && !t.crashed && t.dialog == nil && by.canSee(t.owner)
	if usable {
		e.takeOver(by, t)
	}
	e.mu.Unlock()
	if !usable {
		var err *Error
		if t, err = e.newPage(ctx, by, ""); err != nil {
			return Page{}, err
		}
	}
	return e.loadPage(ctx, by, t, q, usable)
}

// openForPlugin is open for a plugin.
func (e *engine) openForPlugin(ctx context.Context, by Caller, q OpenRequest) (Page, *Error) {
	s, release, err := e.enterScope(ctx, by)
	if err != nil {
		return Page{}, err
	}
	defer release()
	e.mu.Lock()
	e.callCount++
	e.mu.Unlock()
	t, err := e.newPage(ctx, by, s.context)
	if err != nil {
		return Page{}, err
	}
	since := s.proxy.refusalCount()
	p, err := e.loadPage(ctx, by, t, q, false)
	if err != nil && err.Code == CodeNavigationFailed {
		if refused := s.dialError(since, q.URL); refused != nil {
			return Page{}, refused
		}
	}
	return p, err
}

// loadPage navigates a new page to a URL and makes it the current one. first is set for the browser's initial page.
func (e *engine) loadPage(ctx context.Context, by Caller, t *target, q OpenRequest, first bool) (Page, *Error) {
	err := e.attach(ctx, t, "")
	if err == nil {
		e.awaitBlank(ctx, t)
		err = e.navigate(ctx, t, q)
	}
	if err != nil {
		e.discardFailed(by, t, err, first, ctx.Err() == context.Canceled)
		return Page{}, err
	}
	e.mu.Lock()
	e.setCurrent(by, t)
	e.mu.Unlock()
	return e.pageInfo(ctx, t)
}

// awaitBlank waits until a new page has loaded its blank document, because the end of that navigation would abort
// the next one. The title shows it; in a browser whose blank page has no title, awaitBlank times out, and nothing
// else is lost.
func (e *engine) awaitBlank(ctx context.Context, t *target) {
	ctx, cancel := context.WithTimeout(ctx, awaitBlankTimeout)
	defer cancel()
	e.wait(ctx, "for the blank page", func() (bool, *Error) {
		return t.title != "" || t.closed || t.crashed, nil
	})
}

const awaitBlankTimeout = 5 * time.Second

// discardFailed closes a page that never had content, or whose caller has cancelled the call. A page that is only
// slow, or shows a dialog, stays and becomes the current target, so that it can be inspected.
func (e *engine) discardFailed(by Caller, t *target, err *Error, first, givenUp bool) {
	ctx, cancel := context.WithTimeout(context.Background(), discardTimeout)
	defer cancel()
	switch {
	case !givenUp && err.Code != CodeNavigationFailed && err.Code != CodeProtocolError:
		e.mu.Lock()
		e.setCurrent(by, t)
		e.mu.Unlock()
	case first:
		// Wait for this navigation: its commit would abort the next one.
		if e.navigate(ctx, t, OpenRequest{URL: blankURL}) == nil {
			e.mu.Lock()
			e.sparePage, t.owner = t, ""
			e.mu.Unlock()
		}
	default:
		execute(ctx, e, nil, cdptarget.CloseTarget, cdptarget.CloseTargetParams{TargetID: cdptarget.ID(t.id)}, callOptions{})
	}
}

const discardTimeout = 2 * time.Second

// navigate navigates a page to a URL and waits for its load event.
func (e *engine) navigate(ctx context.Context, t *target, q OpenRequest) *Error {
	nav, err := execute(ctx, e, t, page.Navigate, page.NavigateParams{URL: q.URL}, callOptions{onDialog: q.OnDialog})
	if err != nil {
		return err
	}
	if nav.ErrorText != "" {
		err := errf(CodeNavigationFailed, "cannot open %s: %s", manifest.Clip(q.URL, 200), nav.ErrorText)
		err.Target = t.id
		return err
	}
	if nav.LoaderID == "" {
		return nil // a navigation within the current document
	}
	err = e.wait(ctx, "for "+manifest.Clip(q.URL, 200)+" to load (the page stays open)", func() (bool, *Error) {
		switch {
		case t.closed:
			return false, closedTarget(t)
		case t.crashed:
			return false, crashedTarget(t)
		case t.dialog != nil:
			if q.OnDialog == DialogAccept || q.OnDialog == DialogDismiss {
				e.answerDialog(t, q.OnDialog)
				return false, nil
			}
			return false, blockedTarget(t, t.dialog)
		}
		return t.loaded && t.hasLoader(string(nav.LoaderID)), nil
	})
	if err != nil && err.Code == CodeTimeout {
		if diagnosis := e.unstick(t); diagnosis != "" {
			err.Message += "; " + diagnosis
		}
	}
	return err
}

// hasLoader reports whether the main frame has shown a loader's document. The page may have moved on since.
func (t *target) hasLoader(loader string) bool {
	for _, l := range t.loaders {
		if l == loader {
			return true
		}
	}
	return false
}

// pageInfo queries the browser, not the page, so it works however busy the page is.
func (e *engine) pageInfo(ctx context.Context, t *target) (Page, *Error) {
	params := cdptarget.GetTargetInfoParams{TargetID: cdptarget.ID(t.id)}
	result, err := execute(ctx, e, nil, cdptarget.GetTargetInfo, params, callOptions{})
	if err != nil {
		return Page{}, err
	}
	p := Page{Browser: e.name, Target: t.id}
	if info := result.TargetInfo; info != nil {
		p.URL, p.Title = info.URL, info.Title
	}
	return p, nil
}

// activate brings a page to the front and makes it the current target.
func (e *engine) activate(ctx context.Context, by Caller, selector string) (Page, *Error) {
	t, err := e.resolve(by, selector)
	if err != nil {
		return Page{}, err
	}
	if t.kind == "page" {
		params := cdptarget.ActivateTargetParams{TargetID: cdptarget.ID(t.id)}
		if _, err := execute(ctx, e, nil, cdptarget.ActivateTarget, params, callOptions{}); err != nil {
			return Page{}, err
		}
	}
	e.mu.Lock()
	e.setCurrent(by, t)
	e.mu.Unlock()
	return e.pageInfo(ctx, t)
}

// closeTarget closes a page and waits until it is gone.
func (e *engine) closeTarget(ctx context.Context, by Caller, selector, onDialog string) (Page, *Error) {
	t, err := e.resolve(by, selector)
	if err != nil {
		return Page{}, err
	}
	e.mu.Lock()
	closed := Page{Browser: e.name, Target: t.id, URL: t.url, Title: t.title}
	before := t.dialog // this one closes with the page
	e.mu.Unlock()
	params := cdptarget.CloseTargetParams{TargetID: cdptarget.ID(t.id)}
	if _, err := execute(ctx, e, nil, cdptarget.CloseTarget, params, callOptions{}); err != nil {
		return Page{}, err
	}
	err = e.wait(ctx, "for the page to close", func() (bool, *Error) {
		if d := t.dialog; d != nil && d != before && d.Type == beforeUnload && !t.closed {
			if onDialog == DialogAccept {
				e.answerDialog(t, onDialog)
				return false, nil
			}
			return false, blockedTarget(t, d)
		}
		return t.closed, nil
	})
	return closed, err
}

// listTargets returns the targets that a caller may use, the oldest first.
func (e *engine) listTargets(by Caller) []Target {
	e.mu.Lock()
	defer e.mu.Unlock()
	seen := e.visibleTo(by)
	current := e.currentOf(by)
	all := make([]Target, 0, len(seen))
	for i, t := range seen {
		one := Target{Index: i, ID: t.id, Type: t.kind, URL: t.url, Title: t.title, Current: t == current,
			Attached: t.session != "", Crashed: t.crashed, Opener: t.opener, Dialog: t.dialog}
		if t.parent != nil {
			one.Parent = t.parent.id
		}
		if t.owner != by.Name {
			one.Owner = t.owner
		}
		all = append(all, one)
	}
	return all
}

// maxPages limits the pages of each caller except the command line, including popups.
const maxPages = 32

// checkPageLimit returns an error if the caller may not open another page. The engine is locked.
func (e *engine) checkPageLimit(by Caller) *Error {
	if by.isCommandLine() || e.countPages(by.Name) < maxPages {
		return nil
	}
	return errf(CodeLimitExceeded, "%s has %d pages open in this browser, which is the limit: "+
		"close one first, by cdp.close with its target", manifest.Clip(by.Name, 80), maxPages)
}

func (e *engine) countPages(owner string) (n int) {
	for _, t := range e.order {
		if t.kind == "page" && t.owner == owner && t.evictErr == nil {
			n++
		}
	}
	return n
}

// enforcePageLimit closes a page that was opened without a request, such as a popup, if its owner has too many. The
// engine is locked.
func (e *engine) enforcePageLimit(t *target) {
	by := Caller{Name: t.owner}
	if t.kind != "page" || t.owner == "" || by.isCommandLine() || e.countPages(t.owner) <= maxPages {
		return
	}
	e.evict(t, errf(CodeLimitExceeded, "the page was closed: %s has %d pages open, which is the limit",
		manifest.Clip(t.owner, 80), maxPages))
}

// evict closes a page that its owner may not have. The engine is locked.
func (e *engine) evict(t *target, why *Error) {
	t.evictErr = why
	t.evictErr.Target = t.id
	e.failPending(t, t.evictErr)
	e.postClose(cdptarget.ID(t.id))
}

// newPage creates a blank page for a caller in a browser context. An empty in means the default context.
func (e *engine) newPage(ctx context.Context, by Caller, in cdp.BrowserContextID) (t *target, err *Error) {
	e.mu.Lock()
	err = e.checkPageLimit(by)
	e.mu.Unlock()
	if err != nil {
		return nil, err
	}
	params := cdptarget.CreateTargetParams{URL: blankURL, BrowserContextID: in}
	made, err := execute(ctx, e, nil, cdptarget.CreateTarget, params, callOptions{by: by.Name})
	if err != nil {
		return nil, err
	}
	err = e.wait(ctx, "for the new page", func() (bool, *Error) {
		if t = e.targets[string(made.TargetID)]; t != nil {
			e.assign(t, by)
		}
		return t != nil, nil
	})
	if err != nil {
		e.mu.Lock()
		e.postClose(made.TargetID)
		e.mu.Unlock()
	}
	return t, err
}
