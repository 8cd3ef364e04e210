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

// call runs a caller's command.
func (e *engine) call(ctx context.Context, by Caller, q CallRequest) reply {
	domain, command, ok := strings.Cut(q.Method, ".")
	if !ok || domain == "" || command == "" {
		return reply{err: errf(CodeInvalidArgs, "%q is not the name of a command; expected a name such as Page.navigate",
			manifest.Clip(q.Method, 80))}
	}
	if len(q.Params) > 0 && !isObject(q.Params) {
		return reply{err: errf(CodeInvalidArgs, "the parameters of %s are not a JSON object", q.Method)}
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

// dispatch sends a command to the browser or to the target that it names.
func (e *engine) dispatch(ctx context.Context, by Caller, q CallRequest) reply {
	o := callOptions{by: by.Name, maxBytes: q.MaxBytes, onDialog: q.OnDialog, pieces: q.Pieces}
	if q.Target == BrowserTarget ||
		q.Target == "" && isBrowserDomain(domainOf(q.Method)) && q.Method != getWindowForTarget {
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
		t = t.root() // a page handles the dialogs of its frames
	}
	e.mu.Unlock()
	if err := e.attach(ctx, t, q.Method); err != nil {
		return reply{err: err}
	}
	return e.exchangeForCaller(ctx, t, q, o)
}

// exchangeForCaller is exchange for a caller's own command, which may change the state that the engine tracks.
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

// awaitDisconnect waits until the browser has exited after Browser.close, so that the next call does not meet a
// dying one.
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
	return errf(CodeInvalidArgs, "on_dialog is %q; expected accept, dismiss or fail", manifest.Clip(s, 40))
}

// getWindowForTarget belongs to the Browser domain but refers to the page that it is sent to.
const getWindowForTarget = "Browser.getWindowForTarget"

// isBrowserDomain reports whether commands of a domain go to the browser unless a target is named.
func isBrowserDomain(domain string) bool {
	switch domain {
	case "Browser", "Target", "SystemInfo", "Tethering":
		return true
	}
	return false
}

// trackDomain records which domains a caller's command enabled or disabled. The engine is locked.
func (e *engine) trackDomain(t *target, method string) {
	domain, command, _ := strings.Cut(method, ".")
	switch {
	case command == "enable":
		t.domain(domain).byCaller = true
	case command == "disable":
		d := t.domain(domain)
		d.byCaller = false
		// Listeners still need the domain, or the engine does: it needs Page for dialogs and navigations.
		if d.listeners > 0 || domain == "Page" {
			e.post(t, domain+".enable", nil, nil)
		}
	}
}

// restoreTracking sends the engine's own tracking settings again after a caller's command may have changed them.
// Without them the engine would not attach to new targets and would not notice closed ones. The engine is locked.
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

// attach waits until a target has a session that the command can be sent to.
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
	err := e.wait(ctx, "for target "+t.id+" to be attached", func() (bool, *Error) {
		return usable() || t.closed || t.crashed, nil
	})
	if err != nil && err.Code == CodeTimeout {
		err.Message += "; the page is busy, or had a JavaScript dialog open before Parley attached: Page.reload closes it"
	}
	return err
}

// attachAsync attaches to a target of an external browser without waiting for it. The engine is locked.
func (e *engine) attachAsync(t *target) {
	t.attaching = true
	postCommand(e, nil, cdptarget.AttachToTarget, attachParams(t), func(reply) {
		t.attaching = false
		e.broadcast()
	})
}

// resolve returns the target that a caller's selector names. For targets that the caller may not use it returns the
// same error as for missing ones.
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
			return nil, errf(CodeNotFound, "the browser has no page; open one first")
		}
		return nil, errf(CodeNotFound, "%s has no page in this browser; open one first", manifest.Clip(by.Name, 80))
	}
	all := e.visibleTo(by)
	if t := e.targets[selector]; t != nil && e.canUse(by, t) {
		return t, nil
	}
	if n, err := strconv.Atoi(selector); err == nil && len(selector) < 4 {
		if n < 0 || n >= len(all) {
			return nil, errf(CodeNotFound, "there is no target %d; there are %d, numbered from 0", n, len(all))
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
			return nil, errf(CodeNotFound, "%q matches %d targets: %s; use an id",
				manifest.Clip(selector, 80), len(found), strings.Join(names, ", "))
		}
	}
	return nil, errf(CodeNotFound, "no target matches %q by id, index or URL; there are %d targets",
		manifest.Clip(selector, 80), len(all))
}
