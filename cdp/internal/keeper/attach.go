package keeper

import (
	"context"
	"encoding/json"
	"strings"

	cdpbrowser "github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/debugger"
	"github.com/chromedp/cdproto/dom"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	cdptarget "github.com/chromedp/cdproto/target"

	"github.com/parley-tools/parley/cdp/internal/keeper/api"
	"github.com/parley-tools/parley/cdp/internal/keeper/mux"
	"github.com/parley-tools/parley/cdp/internal/keeper/scan"
)

// onAttached prepares a new session. The commands are sent at once and in order; the one that lets the target run
// comes last, so that no event is missed.
func (tr *tracker) onAttached(t, via *target, session string, waiting bool) {
	if t.Session != "" {
		// A caller created a second session with the target. That one must not stay paused either.
		tr.extraSessions[session] = t
		if waiting {
			second := &target{Address: mux.Address{ID: t.ID, Session: session}, kind: t.kind}
			postCommand(tr.mux, second, runtime.RunIfWaitingForDebugger, cdp.Empty{}, nil)
		}
		return
	}
	t.Session = session
	tr.sessions[session] = t
	if via != nil && !via.within(t) && t.kind != "page" {
		t.parent = via
	}
	postCommand(tr.mux, t, cdptarget.SetAutoAttach, tr.autoAttachParams(), nil)
	tr.domains.startRecording(t)
	if hasPage(t.kind) {
		// Without Page.enable no dialog is reported, and an open one can only be closed by a reload. Until Chrome
		// has processed it, a navigation to another process discards it; so the target is not ready before.
		postCommand(tr.mux, t, page.Enable, page.EnableParams{}, func(mux.Reply) {
			t.ready = true
			tr.mux.Broadcast()
		})
	} else {
		t.ready = true
	}
	if hasPage(t.kind) && tr.external {
		tr.readFrames(t)
	}
	tr.observer.onSession(t)
	if waiting {
		postCommand(tr.mux, t, runtime.RunIfWaitingForDebugger, cdp.Empty{}, nil)
	}
}

// exchangeForCaller is exchange for a caller's own command, which may change the state that the engine tracks.
func (tr *tracker) exchangeForCaller(ctx context.Context, t *target, q api.CallRequest, o callOptions) mux.Reply {
	if t != nil {
		o.onSent = func(p *mux.Pending) { tr.domains.keepEnabled(t, p) }
	}
	r := tr.sender.exchange(ctx, t, q.Method, q.Params, o)
	if r.Err == nil {
		tr.mux.Lock()
		if t != nil {
			tr.trackDomain(t, q.Method, q.Params)
		}
		tr.restoreTracking(t, q.Method)
		tr.mux.Unlock()
		if q.Method == cdpbrowser.CommandClose {
			tr.sender.awaitDisconnect(ctx)
		}
	}
	return r
}

// trackDomain records which domains a caller's command enabled or disabled. The engine is locked.
func (tr *tracker) trackDomain(t *target, method string, params json.RawMessage) {
	domain, command, _ := strings.Cut(method, ".")
	tr.domains.keepFor(t, method)
	switch {
	case command == "enable", method == dom.CommandGetDocument: // which enables its domain
		alone := t.onlyRecorded(domain)
		d := t.domain(domain)
		d.byCaller, d.kept = true, false
		switch {
		case alone && domain == "Runtime":
			tr.observer.onContexts(t) // Chrome has reported them to the recorder
		case domain == api.DebuggerDomain:
			tr.domains.letPause(t)
		}
	case method == debugger.CommandSetSkipAllPauses, method == debugger.CommandSetBreakpointsActive:
		t.domain(domain).unpausing = false // as the caller says from now on
	case method == page.CommandSetLifecycleEventsEnabled:
		d := t.domain(lifecycle)
		d.byCaller = string(scan.Field(params, "enabled")) == "true"
		if !d.byCaller && d.listeners > 0 {
			tr.domains.setDomain(t, lifecycle, true, nil)
		}
	case command == "disable":
		d := t.domain(domain)
		d.byCaller, d.kept = false, false
	}
}

// restoreTracking sends the engine's own tracking settings again after a caller's command may have changed them.
// Without them the engine would not attach to new targets and would not notice closed ones. The engine is locked.
func (tr *tracker) restoreTracking(t *target, method string) {
	switch method {
	case cdptarget.CommandSetDiscoverTargets:
		postCommand(tr.mux, t, cdptarget.SetDiscoverTargets, discoverParams(), nil)
	case cdptarget.CommandSetAutoAttach:
		if t != nil || !tr.external {
			postCommand(tr.mux, t, cdptarget.SetAutoAttach, tr.autoAttachParams(), nil)
		}
	case cdptarget.CommandDetachFromTarget:
		for _, t := range tr.order {
			if t.Session == "" && !tr.external {
				postCommand(tr.mux, nil, cdptarget.AttachToTarget, attachParams(t), nil)
			}
		}
	}
}

func attachParams(t *target) cdptarget.AttachToTargetParams {
	return cdptarget.AttachToTargetParams{TargetID: cdptarget.ID(t.ID), Flatten: new(true)}
}

// attach waits until a target has a session that the command can be sent to.
func (tr *tracker) attach(ctx context.Context, t *target, method string) *api.Error {
	usable := func() bool {
		return t.Session != "" && (t.ready || method == page.CommandHandleJavaScriptDialog || revives(method))
	}
	tr.mux.Lock()
	now, unattached := usable() || t.closed || t.crashed, tr.external && t.Session == "" && !t.attaching
	tr.mux.Unlock()
	if now {
		return nil
	}
	if unattached {
		if _, err := execute(ctx, tr.sender, nil, cdptarget.AttachToTarget, attachParams(t), callOptions{}); err != nil {
			return err
		}
	}
	err := tr.mux.Wait(ctx, "for target "+t.ID+" to be attached", func() (bool, *api.Error) {
		return usable() || t.closed || t.crashed, nil
	})
	if err != nil && err.Code == api.CodeTimeout {
		err.Message += "; the page is busy, or had a JavaScript dialog open before Parley attached: Page.reload closes it"
	}
	return err
}

// attachAsync attaches to a target of an external browser without waiting for it. The engine is locked.
func (tr *tracker) attachAsync(t *target) {
	t.attaching = true
	postCommand(tr.mux, nil, cdptarget.AttachToTarget, attachParams(t), func(mux.Reply) {
		t.attaching = false
		tr.mux.Broadcast()
	})
}
