package keeper

import (
	"context"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/page"
	cdptarget "github.com/chromedp/cdproto/target"

	"github.com/parley-tools/parley/manifest"
)

// Pages: how they come to be, are shown and end, and how many a caller may have.

// open makes a page, or takes the blank one of the start, and waits for its load.
func (e *engine) open(ctx context.Context, by Caller, q OpenRequest) (Page, *Error) {
	if q.URL == "" {
		q.URL = blank
	}
	if err := checkOnDialog(q.OnDialog); err != nil {
		return Page{}, err
	}
	if by.plugin() {
		return e.openWithin(ctx, by, q)
	}
	e.mu.Lock()
	e.calls++
	t := e.spare
	e.spare = nil
	usable := t != nil && !t.closed && !t.crashed && t.dialog == nil && by.sees(t.owner)
	if usable {
		e.take(by, t)
	}
	e.mu.Unlock()
	if !usable {
		var err *Error
		if t, err = e.newPage(ctx, by, ""); err != nil {
			return Page{}, err
		}
	}
	return e.show(ctx, by, t, q, usable)
}

// openWithin is open for a plugin.
func (e *engine) openWithin(ctx context.Context, by Caller, q OpenRequest) (Page, *Error) {
	s, leave, err := e.enter(ctx, by)
	if err != nil {
		return Page{}, err
	}
	defer leave()
	e.mu.Lock()
	e.calls++
	e.mu.Unlock()
	t, err := e.newPage(ctx, by, s.context)
	if err != nil {
		return Page{}, err
	}
	since := s.proxy.refusals()
	p, err := e.show(ctx, by, t, q, false)
	if err != nil && err.Code == CodeNavigationFailed {
		if refused := s.refusedDial(since, q.URL); refused != nil {
			return Page{}, refused
		}
	}
	return p, err
}

// show brings a new page to a URL and makes it the current one; first says that it is the one of the browser's start.
func (e *engine) show(ctx context.Context, by Caller, t *target, q OpenRequest, first bool) (Page, *Error) {
	err := e.attach(ctx, t, "")
	if err == nil {
		e.settle(ctx, t)
		err = e.navigate(ctx, t, q)
	}
	if err != nil {
		e.discardFailed(by, t, err, first, ctx.Err() == context.Canceled)
		return Page{}, err
	}
	e.mu.Lock()
	e.makeCurrent(by, t)
	e.mu.Unlock()
	return e.page(ctx, t)
}

// settle waits until a new page shows its blank document, which it does by loading
// it: that navigation's end would abort ours. The title tells; a browser that gives
// the blank page none costs the time, no more.
func (e *engine) settle(ctx context.Context, t *target) {
	ctx, cancel := context.WithTimeout(ctx, settleTime)
	defer cancel()
	e.wait(ctx, "for the blank page", func() (bool, *Error) { return t.title != "" || t.closed || t.crashed, nil })
}

const settleTime = 5 * time.Second

// discardFailed removes a page that never had content, or whose caller has given it up; one that only is slow,
// or shows a dialog, stays and is the current target, so that it can be looked at.
func (e *engine) discardFailed(by Caller, t *target, err *Error, first, givenUp bool) {
	ctx, cancel := context.WithTimeout(context.Background(), discardTime)
	defer cancel()
	switch {
	case !givenUp && err.Code != CodeNavigationFailed && err.Code != CodeProtocolError:
		e.mu.Lock()
		e.makeCurrent(by, t)
		e.mu.Unlock()
	case first:
		// The next navigation would be aborted by this one's commit, so it is waited for.
		if e.navigate(ctx, t, OpenRequest{URL: blank}) == nil {
			e.mu.Lock()
			e.spare, t.owner = t, ""
			e.mu.Unlock()
		}
	default:
		ask(ctx, e, nil, cdptarget.CloseTarget, cdptarget.CloseTargetParams{TargetID: cdptarget.ID(t.id)}, opts{})
	}
}

const discardTime = 2 * time.Second

// navigate sends a page to a URL and waits for its load event.
func (e *engine) navigate(ctx context.Context, t *target, q OpenRequest) *Error {
	nav, err := ask(ctx, e, t, page.Navigate, page.NavigateParams{URL: q.URL}, opts{onDialog: q.OnDialog})
	if err != nil {
		return err
	}
	if nav.ErrorText != "" {
		err := errf(CodeNavigationFailed, "cannot open %s: %s", manifest.Clip(q.URL, 200), nav.ErrorText)
		err.Target = t.id
		return err
	}
	if nav.LoaderID == "" {
		return nil // within the document that is shown already
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
		return t.loaded && t.hasLoaded(string(nav.LoaderID)), nil
	})
	if err != nil && err.Code == CodeTimeout {
		if said := e.unstick(t); said != "" {
			err.Message += "; " + said
		}
	}
	return err
}

// hasLoaded reports whether the main frame showed a loader; a page may have moved on since.
func (t *target) hasLoaded(loader string) bool {
	for _, l := range t.loaders {
		if l == loader {
			return true
		}
	}
	return false
}

// page asks the browser, not the page, so it answers however busy the page is.
func (e *engine) page(ctx context.Context, t *target) (Page, *Error) {
	answer, err := ask(ctx, e, nil, cdptarget.GetTargetInfo, cdptarget.GetTargetInfoParams{TargetID: cdptarget.ID(t.id)}, opts{})
	if err != nil {
		return Page{}, err
	}
	p := Page{Browser: e.name, Target: t.id}
	if info := answer.TargetInfo; info != nil {
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
		if _, err := ask(ctx, e, nil, cdptarget.ActivateTarget, cdptarget.ActivateTargetParams{TargetID: cdptarget.ID(t.id)}, opts{}); err != nil {
			return Page{}, err
		}
	}
	e.mu.Lock()
	e.makeCurrent(by, t)
	e.mu.Unlock()
	return e.page(ctx, t)
}

// closeTarget closes a page and waits until it is gone.
func (e *engine) closeTarget(ctx context.Context, by Caller, selector, onDialog string) (Page, *Error) {
	t, err := e.resolve(by, selector)
	if err != nil {
		return Page{}, err
	}
	e.mu.Lock()
	closed := Page{Browser: e.name, Target: t.id, URL: t.url, Title: t.title}
	before := t.dialog // ends with the page
	e.mu.Unlock()
	if _, err := ask(ctx, e, nil, cdptarget.CloseTarget, cdptarget.CloseTargetParams{TargetID: cdptarget.ID(t.id)}, opts{}); err != nil {
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

// list answers the targets that a caller may use, the oldest first.
func (e *engine) list(by Caller) []Target {
	e.mu.Lock()
	defer e.mu.Unlock()
	seen := e.seen(by)
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

// maxPages bounds the pages of a caller other than the person, pop-ups among them.
const maxPages = 32

// crowded refuses a caller one page more than he may have. The engine is locked.
func (e *engine) crowded(by Caller) *Error {
	if by.person() || e.pagesOf(by.Name) < maxPages {
		return nil
	}
	return errf(CodeLimitExceeded, "%s has %d pages open in this browser, which is the most: close one first, by cdp.close with its target", manifest.Clip(by.Name, 80), maxPages)
}

func (e *engine) pagesOf(owner string) (n int) {
	for _, t := range e.order {
		if t.kind == "page" && t.owner == owner && t.strayed == nil {
			n++
		}
	}
	return n
}

// keepBounded closes a page that came without being asked for, as pop-ups do, where its owner has as many as he may. The engine is locked.
func (e *engine) keepBounded(t *target) {
	by := Caller{Name: t.owner}
	if t.kind != "page" || t.owner == "" || by.person() || e.pagesOf(t.owner) <= maxPages {
		return
	}
	e.expel(t, errf(CodeLimitExceeded, "the page was closed: %s has %d pages open, which is the most", manifest.Clip(t.owner, 80), maxPages))
}

// expel closes a page that its owner may not have. The engine is locked.
func (e *engine) expel(t *target, why *Error) {
	t.strayed = why
	t.strayed.Target = t.id
	e.failPending(t, t.strayed)
	e.shut(cdptarget.ID(t.id))
}

// newPage makes a blank page in a context, "" for the person's, for a caller.
func (e *engine) newPage(ctx context.Context, by Caller, in cdp.BrowserContextID) (t *target, err *Error) {
	e.mu.Lock()
	err = e.crowded(by)
	e.mu.Unlock()
	if err != nil {
		return nil, err
	}
	made, err := ask(ctx, e, nil, cdptarget.CreateTarget, cdptarget.CreateTargetParams{URL: blank, BrowserContextID: in}, opts{by: by.Name})
	if err != nil {
		return nil, err
	}
	err = e.wait(ctx, "for the new page", func() (bool, *Error) {
		if t = e.targets[string(made.TargetID)]; t != nil {
			e.give(t, by)
		}
		return t != nil, nil
	})
	if err != nil {
		e.mu.Lock()
		e.shut(made.TargetID)
		e.mu.Unlock()
	}
	return t, err
}
