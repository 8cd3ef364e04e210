package keeper

import (
	"context"
	"strconv"
	"strings"

	cdpbrowser "github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/page"
	cdptarget "github.com/chromedp/cdproto/target"

	"github.com/parley-tools/parley/manifest"
)

// call is the command of a client.
func (e *engine) call(ctx context.Context, by Caller, q CallRequest) reply {
	domain, command, ok := strings.Cut(q.Method, ".")
	if !ok || domain == "" || command == "" {
		return reply{err: errf(CodeInvalidArgs, "%q is not a command's name, as Page.navigate is", manifest.Clip(q.Method, 80))}
	}
	if len(q.Params) > 0 && !isObject(q.Params) {
		return reply{err: errf(CodeInvalidArgs, "the parameters of %s are not one JSON object", q.Method)}
	}
	if err := checkOnDialog(q.OnDialog); err != nil {
		return reply{err: err}
	}
	e.mu.Lock()
	e.callCount++
	e.mu.Unlock()
	if by.isCommandLine() {
		return e.dispatch(ctx, by, q)
	}
	return e.callConfined(ctx, by, q)
}

// dispatch sends a command where it belongs.
func (e *engine) dispatch(ctx context.Context, by Caller, q CallRequest) reply {
	o := callOptions{by: by.Name, maxBytes: q.MaxBytes, onDialog: q.OnDialog, pieces: q.Pieces}
	if q.Target == BrowserTarget || q.Target == "" && isBrowserDomain(domainOf(q.Method)) && q.Method != getWindowForTarget {
		r := e.exchangeForCaller(ctx, nil, q, o)
		if r.err == nil && q.Method == cdptarget.CommandCreateTarget {
			e.assignCreated(by, r.result)
		}
		return r
	}
	t, err := e.resolve(by, q.Target)
	if err != nil {
		return reply{err: err}
	}
	e.mu.Lock()
	e.claim(by, t)
	if q.Method == page.CommandHandleJavaScriptDialog {
		t = t.root() // it answers for its frames
	}
	e.mu.Unlock()
	if err := e.attach(ctx, t, q.Method); err != nil {
		return reply{err: err}
	}
	return e.exchangeForCaller(ctx, t, q, o)
}

// exchangeForCaller is exchange for a caller's own command, which may change what the engine goes by.
func (e *engine) exchangeForCaller(ctx context.Context, t *target, q CallRequest, o callOptions) reply {
	r := e.exchange(ctx, t, q.Method, q.Params, o)
	if r.err == nil {
		e.mu.Lock()
		if t != nil {
			e.trackDomain(t, q.Method)
		}
		e.restoreTracking(t, q.Method)
		e.mu.Unlock()
		if q.Method == cdpbrowser.CommandClose {
			e.awaitDisconnect(ctx)
		}
	}
	return r
}

// awaitDisconnect waits for the browser to end as it said it would: what is called next must not meet what is left of it.
func (e *engine) awaitDisconnect(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, closeTimeout)
	defer cancel()
	select {
	case <-e.done:
	case <-ctx.Done():
	}
}

func checkOnDialog(s string) *Error {
	switch s {
	case "", DialogFail, DialogAccept, DialogDismiss:
		return nil
	}
	return errf(CodeInvalidArgs, "on_dialog is %q; it is accept, dismiss or fail", manifest.Clip(s, 40))
}

// getWindowForTarget is of the domain Browser and means the page that it is sent to.
const getWindowForTarget = "Browser.getWindowForTarget"

// isBrowserDomain names the domains that pages do not have, or that mean the browser.
func isBrowserDomain(domain string) bool {
	switch domain {
	case "Browser", "Target", "SystemInfo", "Tethering":
		return true
	}
	return false
}

// trackDomain remembers what a caller's own command changed. The engine is locked.
func (e *engine) trackDomain(t *target, method string) {
	domain, command, _ := strings.Cut(method, ".")
	switch {
	case command == "enable":
		t.domain(domain).byCaller = true
	case command == "disable":
		d := t.domain(domain)
		d.byCaller = false
		// Others still listen, or we need it ourselves to see dialogs and navigations.
		if d.listeners > 0 || domain == "Page" {
			e.post(t, domain+".enable", nil, nil)
		}
	}
}

// restoreTracking says again how targets are followed, after a caller's own command may have said otherwise: without it what is opened would never be
// attached, and what is closed never be missed. The engine is locked.
func (e *engine) restoreTracking(t *target, method string) {
	switch method {
	case cdptarget.CommandSetDiscoverTargets:
		postCommand(e, t, cdptarget.SetDiscoverTargets, discoverParams(), nil)
	case cdptarget.CommandSetAutoAttach:
		if t != nil || !e.external {
			postCommand(e, t, cdptarget.SetAutoAttach, e.autoAttachParams(), nil)
		}
	case cdptarget.CommandDetachFromTarget:
		for _, t := range e.order {
			if t.session == "" && !e.external {
				postCommand(e, nil, cdptarget.AttachToTarget, attachParams(t), nil)
			}
		}
	}
}

func attachParams(t *target) cdptarget.AttachToTargetParams {
	return cdptarget.AttachToTargetParams{TargetID: cdptarget.ID(t.id), Flatten: new(true)}
}

// attach makes sure that a target has a session in which a command can be sent, for as long as the caller waits.
func (e *engine) attach(ctx context.Context, t *target, method string) *Error {
	usable := func() bool {
		return t.session != "" && (t.ready || method == page.CommandHandleJavaScriptDialog || revives(method))
	}
	e.mu.Lock()
	now, unattached := usable() || t.closed || t.crashed, e.external && t.session == "" && !t.attaching
	e.mu.Unlock()
	if now {
		return nil
	}
	if unattached {
		if _, err := execute(ctx, e, nil, cdptarget.AttachToTarget, attachParams(t), callOptions{}); err != nil {
			return err
		}
	}
	err := e.wait(ctx, "for target "+t.id+" to be attached", func() (bool, *Error) { return usable() || t.closed || t.crashed, nil })
	if err != nil && err.Code == CodeTimeout {
		err.Message += "; the page is busy, or has a JavaScript dialog open that was there before: Page.reload frees it"
	}
	return err
}

// attachAsync attaches to a target of a browser of others without waiting for it. The engine is locked.
func (e *engine) attachAsync(t *target) {
	t.attaching = true
	postCommand(e, nil, cdptarget.AttachToTarget, attachParams(t), func(reply) {
		t.attaching = false
		e.broadcast()
	})
}

// resolve finds the target that a caller means by a selector. Of those that he may not use it does not even tell that they exist.
func (e *engine) resolve(by Caller, selector string) (*target, *Error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closeErr != nil {
		return nil, e.closeErr
	}
	if selector == "" {
		if t := e.currentOf(by); t != nil {
			return t, nil
		}
		if by.isCommandLine() {
			return nil, errf(CodeNotFound, "the browser has no page; open one")
		}
		return nil, errf(CodeNotFound, "%s has no page in this browser; open one", manifest.Clip(by.Name, 80))
	}
	all := e.visibleTo(by)
	if t := e.targets[selector]; t != nil && e.canUse(by, t) {
		return t, nil
	}
	if n, err := strconv.Atoi(selector); err == nil && len(selector) < 4 {
		if n < 0 || n >= len(all) {
			return nil, errf(CodeNotFound, "there is no target %d; there are %d, counted from 0", n, len(all))
		}
		return all[n], nil
	}
	for _, match := range []func(*target) bool{
		func(t *target) bool { return len(selector) >= 4 && strings.HasPrefix(t.id, strings.ToUpper(selector)) },
		func(t *target) bool { return t.kind == "page" && strings.Contains(t.url, selector) },
		func(t *target) bool { return strings.Contains(t.url, selector) },
	} {
		var found []*target
		for _, t := range all {
			if match(t) {
				found = append(found, t)
			}
		}
		switch {
		case len(found) == 1:
			return found[0], nil
		case len(found) > 1:
			var names []string
			for _, t := range found[:min(len(found), 5)] {
				names = append(names, t.id+" "+manifest.Clip(t.url, 60))
			}
			return nil, errf(CodeNotFound, "%q means %d targets: %s; give an id", manifest.Clip(selector, 80), len(found), strings.Join(names, ", "))
		}
	}
	return nil, errf(CodeNotFound, "no target has the id or the index %q, or has it in its URL; there are %d", manifest.Clip(selector, 80), len(all))
}
