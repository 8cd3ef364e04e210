package target

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
func (tr *Tracker) onAttached(t, via *Target, session string, waiting bool) {
	if t.Session != "" {
		// A caller created a second session with the target. That one must not stay paused either.
		tr.extraSessions[session] = t
		if waiting {
			second := &Target{Address: mux.Address{ID: t.ID, Session: session}, Kind: t.Kind}
			Post(tr.Mux, second, runtime.RunIfWaitingForDebugger, cdp.Empty{}, nil)
		}
		return
	}
	t.Session = session
	tr.Sessions[session] = t
	if via != nil && !via.Within(t) && t.Kind != "page" {
		t.Parent = via
	}
	Post(tr.Mux, t, cdptarget.SetAutoAttach, tr.autoAttachParams(), nil)
	tr.Domains.startRecording(t)
	if HasPage(t.Kind) {
		// Without Page.enable no dialog is reported, and an open one can only be closed by a reload. Until Chrome
		// has processed it, a navigation to another process discards it; so the target is not ready before.
		Post(tr.Mux, t, page.Enable, page.EnableParams{}, func(mux.Reply) {
			t.ready = true
			tr.Mux.Broadcast()
		})
	} else {
		t.ready = true
	}
	if HasPage(t.Kind) && tr.External {
		tr.readFrames(t)
	}
	tr.observer.OnSession(t)
	if waiting {
		Post(tr.Mux, t, runtime.RunIfWaitingForDebugger, cdp.Empty{}, nil)
	}
}

// ExchangeForCaller is exchange for a caller's own command, which may change the state that the keeper tracks.
func (tr *Tracker) ExchangeForCaller(ctx context.Context, t *Target, q api.CallRequest, o CallOptions) mux.Reply {
	if t != nil {
		o.onSent = func(p *mux.Pending) { tr.Domains.keepEnabled(t, p) }
	}
	r := tr.Sender.exchange(ctx, t, q.Method, q.Params, o)
	if r.Err == nil {
		tr.Mux.Lock()
		if t != nil {
			tr.trackDomain(t, q.Method, q.Params)
		}
		tr.restoreTracking(t, q.Method)
		tr.Mux.Unlock()
		if q.Method == cdpbrowser.CommandClose {
			tr.Sender.awaitDisconnect(ctx)
		}
	}
	return r
}

// trackDomain records which domains a caller's command enabled or disabled. The mux is locked.
func (tr *Tracker) trackDomain(t *Target, method string, params json.RawMessage) {
	domain, command, _ := strings.Cut(method, ".")
	tr.Domains.keepFor(t, method)
	switch {
	case command == "enable", method == dom.CommandGetDocument: // which enables its domain
		alone := t.OnlyRecorded(domain)
		d := t.Domain(domain)
		d.ByCaller, d.Kept = true, false
		switch {
		case alone && domain == "Runtime":
			tr.observer.OnContexts(t) // Chrome has reported them to the recorder
		case domain == api.DebuggerDomain:
			tr.Domains.letPause(t)
		}
	case method == debugger.CommandSetSkipAllPauses, method == debugger.CommandSetBreakpointsActive:
		t.Domain(domain).unpausing = false // as the caller says from now on
	case method == page.CommandSetLifecycleEventsEnabled:
		d := t.Domain(Lifecycle)
		d.ByCaller = string(scan.Field(params, "enabled")) == "true"
		if !d.ByCaller && d.listeners > 0 {
			tr.Domains.setDomain(t, Lifecycle, true, nil)
		}
	case command == "disable":
		d := t.Domain(domain)
		d.ByCaller, d.Kept = false, false
	}
}

// restoreTracking sends the keeper's own tracking settings again after a caller's command may have changed them.
// Without them the keeper would not attach to new targets and would not notice closed ones. The mux is locked.
func (tr *Tracker) restoreTracking(t *Target, method string) {
	switch method {
	case cdptarget.CommandSetDiscoverTargets:
		Post(tr.Mux, t, cdptarget.SetDiscoverTargets, discoverParams(), nil)
	case cdptarget.CommandSetAutoAttach:
		if t != nil || !tr.External {
			Post(tr.Mux, t, cdptarget.SetAutoAttach, tr.autoAttachParams(), nil)
		}
	case cdptarget.CommandDetachFromTarget:
		for _, t := range tr.All {
			if t.Session == "" && !tr.External {
				Post(tr.Mux, nil, cdptarget.AttachToTarget, attachParams(t), nil)
			}
		}
	}
}

func attachParams(t *Target) cdptarget.AttachToTargetParams {
	return cdptarget.AttachToTargetParams{TargetID: cdptarget.ID(t.ID), Flatten: new(true)}
}

// Attach waits until a target has a session that the command can be sent to.
func (tr *Tracker) Attach(ctx context.Context, t *Target, method string) *api.Error {
	usable := func() bool {
		return t.Session != "" && (t.ready || method == page.CommandHandleJavaScriptDialog || revives(method))
	}
	tr.Mux.Lock()
	now, unattached := usable() || t.Closed || t.Crashed, tr.External && t.Session == "" && !t.Attaching
	tr.Mux.Unlock()
	if now {
		return nil
	}
	if unattached {
		if _, err := Execute(ctx, tr.Sender, nil, cdptarget.AttachToTarget, attachParams(t)); err != nil {
			return err
		}
	}
	err := tr.Mux.Wait(ctx, "for target "+t.ID+" to be attached", func() (bool, *api.Error) {
		return usable() || t.Closed || t.Crashed, nil
	})
	if err != nil && err.Code == api.CodeTimeout {
		err.Message += "; the page is busy, or had a JavaScript dialog open before Parley attached: Page.reload closes it"
	}
	return err
}

// AttachAsync attaches to a target of an external browser without waiting for it. The mux is locked.
func (tr *Tracker) AttachAsync(t *Target) {
	t.Attaching = true
	Post(tr.Mux, nil, cdptarget.AttachToTarget, attachParams(t), func(mux.Reply) {
		t.Attaching = false
		tr.Mux.Broadcast()
	})
}
