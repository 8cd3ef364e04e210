package keeper

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/debugger"
	"github.com/chromedp/cdproto/dom"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	cdptarget "github.com/chromedp/cdproto/target"
)

// onAttached prepares a new session. The commands are sent at once and in order; the one that lets the target run
// comes last, so that no event is missed.
func (tr *tracker) onAttached(t, via *target, session string, waiting bool) {
	if t.session != "" {
		// A caller created a second session with the target. That one must not stay paused either.
		tr.extraSessions[session] = t
		if waiting {
			second := &target{id: t.id, kind: t.kind, session: session}
			postCommand(tr.mux, second, runtime.RunIfWaitingForDebugger, cdp.Empty{}, nil)
		}
		return
	}
	t.session = session
	tr.sessions[session] = t
	if via != nil && !via.within(t) && t.kind != "page" {
		t.parent = via
	}
	postCommand(tr.mux, t, cdptarget.SetAutoAttach, tr.autoAttachParams(), nil)
	tr.startRecording(t)
	if hasPage(t.kind) {
		// Without Page.enable no dialog is reported, and an open one can only be closed by a reload. Until Chrome
		// has processed it, a navigation to another process discards it; so the target is not ready before.
		postCommand(tr.mux, t, page.Enable, page.EnableParams{}, func(reply) {
			t.ready = true
			tr.broadcast()
		})
	} else {
		t.ready = true
	}
	for l := range tr.listeners {
		if l.covers(t) {
			for _, d := range l.domains {
				tr.enable(t, d)
			}
		}
	}
	if waiting {
		postCommand(tr.mux, t, runtime.RunIfWaitingForDebugger, cdp.Empty{}, nil)
	}
}

// reenableDomains enables a crashed page's domains again for the recorder and for listeners: the enable commands sent
// to the dead renderer had no effect. It runs once the new page exists, because whatever is sent earlier is lost, too.
func (tr *tracker) reenableDomains(t *target) {
	for name, d := range t.domains {
		d.repeating = false
		switch {
		case d.listeners > 0 || d.recording:
			tr.setDomain(t, name, true, nil) // events that the new page has sent so far are not replayed
		case d.crashed && !d.byCaller && d.calls == 0:
			tr.stopDomain(t, name)
		}
		d.crashed = false
	}
}

// trackDomain records which domains a caller's command enabled or disabled. The engine is locked.
func (tr *tracker) trackDomain(t *target, method string, params json.RawMessage) {
	domain, command, _ := strings.Cut(method, ".")
	tr.keepFor(t, method)
	switch {
	case command == "enable", method == dom.CommandGetDocument: // which enables its domain
		alone := t.onlyRecorded(domain)
		d := t.domain(domain)
		d.byCaller, d.kept = true, false
		switch {
		case alone && domain == "Runtime":
			tr.repeatContexts(t) // Chrome has reported them to the recorder
		case domain == debuggerDomain:
			tr.letPause(t)
		}
	case method == debugger.CommandSetSkipAllPauses, method == debugger.CommandSetBreakpointsActive:
		t.domain(domain).unpausing = false // as the caller says from now on
	case method == page.CommandSetLifecycleEventsEnabled:
		d := t.domain(lifecycle)
		d.byCaller = string(field(params, "enabled")) == "true"
		if !d.byCaller && d.listeners > 0 {
			tr.setDomain(t, lifecycle, true, nil)
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
			if t.session == "" && !tr.external {
				postCommand(tr.mux, nil, cdptarget.AttachToTarget, attachParams(t), nil)
			}
		}
	}
}

func attachParams(t *target) cdptarget.AttachToTargetParams {
	return cdptarget.AttachToTargetParams{TargetID: cdptarget.ID(t.id), Flatten: new(true)}
}

// attach waits until a target has a session that the command can be sent to.
func (tr *tracker) attach(ctx context.Context, t *target, method string) *Error {
	usable := func() bool {
		return t.session != "" && (t.ready || method == page.CommandHandleJavaScriptDialog || revives(method))
	}
	tr.mu.Lock()
	now, unattached := usable() || t.closed || t.crashed, tr.external && t.session == "" && !t.attaching
	tr.mu.Unlock()
	if now {
		return nil
	}
	if unattached {
		if _, err := execute(ctx, tr, nil, cdptarget.AttachToTarget, attachParams(t), callOptions{}); err != nil {
			return err
		}
	}
	err := tr.wait(ctx, "for target "+t.id+" to be attached", func() (bool, *Error) {
		return usable() || t.closed || t.crashed, nil
	})
	if err != nil && err.Code == CodeTimeout {
		err.Message += "; the page is busy, or had a JavaScript dialog open before Parley attached: Page.reload closes it"
	}
	return err
}

// attachAsync attaches to a target of an external browser without waiting for it. The engine is locked.
func (tr *tracker) attachAsync(t *target) {
	t.attaching = true
	postCommand(tr.mux, nil, cdptarget.AttachToTarget, attachParams(t), func(reply) {
		t.attaching = false
		tr.broadcast()
	})
}

// domain is the state of a DevTools domain in one session.
type domain struct {
	listeners int
	byCaller  bool // a caller enabled it, so the engine must not disable it
	recording bool // the recorder has it enabled for as long as the session lasts
	enabling  bool // events that arrive now are replayed history
	repeating bool // it was disabled and enabled again: the history that arrives now is stored already
	temporary
}

func (t *target) domain(name string) *domain {
	d := t.domains[name]
	if d == nil {
		d = &domain{}
		t.domains[name] = d
	}
	return d
}

// domainState returns the state of an event's domain, which is zero where nobody has enabled it. t may be nil.
func (t *target) domainState(method string) domain {
	if t == nil {
		return domain{}
	}
	if d := t.domains[domainOf(method)]; d != nil {
		return *d
	}
	return domain{}
}

// enable is called for each listener that needs a domain in a session, disable when the listener ends. It returns true
// if the domain was enabled for the recorder alone: then Chrome does not send the history again. The engine is locked.
func (tr *tracker) enable(t *target, name string) (wasRecorded bool) {
	wasRecorded = t.onlyRecorded(name)
	d := t.domain(name)
	d.listeners++
	switch {
	case d.listeners > 1 || d.byCaller || d.recording || name == "Page" && hasPage(t.kind):
		return wasRecorded
	case d.calls > 0 && !d.before:
		d.enabling = true // the end of the calls enables it again
	default:
		tr.startDomain(t, name)
	}
	return false
}

// startDomain enables a domain for listeners.
func (tr *tracker) startDomain(t *target, name string) {
	d := t.domain(name)
	d.enabling = true
	tr.setDomain(t, name, true, func(reply) {
		d.enabling = false
		tr.broadcast()
	})
}

func (tr *tracker) disable(t *target, name string) {
	d := t.domain(name)
	d.listeners--
	if d.listeners > 0 || d.byCaller || d.recording || d.calls > 0 || d.kept || name == "Page" || t.closed ||
		t.session == "" {
		return
	}
	tr.setDomain(t, name, false, nil)
}

// setDomain enables or disables a domain.
func (tr *tracker) setDomain(t *target, name string, on bool, after func(reply)) {
	switch {
	case name == lifecycle:
		postCommand(tr.mux, t, page.SetLifecycleEventsEnabled, page.SetLifecycleEventsEnabledParams{Enabled: on}, after)
	case on && name == "Network":
		limits := network.EnableParams{
			MaxTotalBufferSize: new(int64(bodyBytes)), MaxResourceBufferSize: new(int64(maxBodyBytes)),
		}
		postCommand(tr.mux, t, network.Enable, limits, after)
	case on && name == debuggerDomain && !t.domain(name).byCaller:
		tr.enableDebugger(t, after)
	case on:
		tr.post(t, name+".enable", nil, after)
	default:
		t.domain(name).unpausing = false
		tr.post(t, name+".disable", nil, after)
	}
}

// lifecycle is the event that has a switch of its own beside its domain's.
const lifecycle = "Page.lifecycleEvent"
