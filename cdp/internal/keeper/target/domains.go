package target

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/chromedp/cdproto/debugger"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/parley-tools/parley/cdp/internal/keeper/api"
	"github.com/parley-tools/parley/cdp/internal/keeper/mux"
	"github.com/parley-tools/parley/cdp/internal/protocol"
	"github.com/parley-tools/parley/manifest"
)

// Domains enables and disables the domains of targets: for the recorder, for streams, for calls, and at the request
// of callers.
type Domains struct {
	mux    *mux.Mux
	sender *Sender
}

// Domain is the state of a DevTools domain in one session.
type Domain struct {
	name      string
	listeners int
	ByCaller  bool // a caller enabled it, so the keeper must not disable it
	recording bool // the recorder keeps it enabled until the session ends
	Enabling  bool // events that arrive now are replayed history
	Repeating bool // it was disabled and enabled again: the history that arrives now is stored already
	temporary
}

// Domain returns the state of a domain, which it creates if necessary.
func (t *Target) Domain(name string) *Domain {
	d := t.Domains[name]
	if d == nil {
		d = &Domain{name: name}
		t.Domains[name] = d
	}
	return d
}

// DomainState returns the state of an event's domain, which is zero where nobody has enabled it. t may be nil.
func (t *Target) DomainState(method string) Domain {
	if t == nil {
		return Domain{}
	}
	return *cmp.Or(t.Domains[api.DomainOf(method)], &Domain{})
}

// Enable is called for each listener that needs a domain in a session, disable when the listener ends. It returns
// true if the domain was enabled only for the recorder: then Chrome does not send the history again. The mux is
// locked.
func (en *Domains) Enable(t *Target, name string) (wasRecorded bool) {
	wasRecorded = t.OnlyRecorded(name)
	d := t.Domain(name)
	d.listeners++
	switch {
	case d.listeners > 1 || d.ByCaller || d.recording || name == "Page" && HasPage(t.Kind):
		return wasRecorded
	case d.calls > 0 && !d.before:
		d.Enabling = true // the end of the calls enables it again
	default:
		en.startDomain(t, name)
	}
	return false
}

// startDomain enables a domain for listeners or for the recorder.
func (en *Domains) startDomain(t *Target, name string) {
	d := t.Domain(name)
	d.Enabling = true
	en.setDomain(t, name, true, func(mux.Reply) {
		d.Enabling = false
		en.mux.Broadcast()
	})
}

// Disable ends what one Enable has begun.
func (en *Domains) Disable(t *Target, name string) {
	d := t.Domain(name)
	d.listeners--
	if d.listeners > 0 || d.ByCaller || d.recording || d.calls > 0 || d.Kept || name == "Page" || t.Closed ||
		t.Session == "" {
		return
	}
	en.setDomain(t, name, false, nil)
}

// setDomain enables or disables a domain.
func (en *Domains) setDomain(t *Target, name string, on bool, after func(mux.Reply)) {
	switch {
	case name == Lifecycle:
		Post(en.mux, t, page.SetLifecycleEventsEnabled, page.SetLifecycleEventsEnabledParams{Enabled: on}, after)
	case on && name == "Network":
		limits := network.EnableParams{
			MaxTotalBufferSize: new(int64(bodyBytes)), MaxResourceBufferSize: new(int64(maxBodyBytes)),
		}
		Post(en.mux, t, network.Enable, limits, after)
	case on && name == api.DebuggerDomain && !t.Domain(name).ByCaller:
		en.enableDebugger(t, after)
	case on:
		en.mux.Post(t.At(), name+".enable", nil, after)
	default:
		t.Domain(name).unpausing = false
		en.mux.Post(t.At(), name+".disable", nil, after)
	}
}

// reenableDomains enables a crashed page's domains again for the recorder and for listeners: the enable commands sent
// to the dead renderer had no effect. It runs once the new page exists, because whatever is sent earlier is lost, too.
func (en *Domains) reenableDomains(t *Target) {
	for name, d := range t.Domains {
		d.Repeating = false
		switch {
		case d.listeners > 0 || d.recording:
			en.setDomain(t, name, true, nil) // events that the new page has sent so far are not replayed
		case d.crashed && !d.ByCaller && d.calls == 0:
			en.stopDomain(t, d)
		}
		d.crashed = false
	}
}

// keepEnabled is called when a caller's command has been sent. If that disables a domain that others need, it enables
// the domain again at once, so that nothing is lost in between. Page is always needed, for dialogs and navigations.
// The mux is locked.
func (en *Domains) keepEnabled(t *Target, p *mux.Pending) {
	name, command, _ := strings.Cut(p.Method, ".")
	if command != "disable" {
		return
	}
	d := t.Domain(name)
	if !d.recording && d.listeners == 0 && name != "Page" {
		return
	}
	if name == api.DebuggerDomain { // for listeners, no longer for the caller
		en.enableDebugger(t, nil)
		return
	}
	if d.recording { // Chrome will repeat what is stored
		p.After = func(r mux.Reply) { d.Repeating = r.Err == nil }
	}
	en.setDomain(t, name, true, func(mux.Reply) { d.Repeating = false })
}

// Lifecycle is an event that must be enabled separately, in addition to its domain.
const Lifecycle = "Page.lifecycleEvent"

// recordedDomains are enabled by the recorder.
var recordedDomains = []string{"Network", "Runtime", "Log"}

// Limits of the bodies that Chrome stores for Network.getResponseBody.
const (
	bodyBytes    = 8 << 20 // for a target
	maxBodyBytes = 4 << 20 // of one of them
)

// startRecording enables the recorder's domains in a new session. The mux is locked.
func (en *Domains) startRecording(t *Target) {
	for _, name := range recordedDomains {
		t.Domain(name).recording = true
		en.startDomain(t, name)
	}
}

// OnlyRecorded reports whether a domain is enabled only for the recorder. If so, its events reach no stream.
func (t *Target) OnlyRecorded(domain string) bool {
	d := t.Domains[domain]
	return d != nil && d.recording && d.listeners == 0 && !d.ByCaller
}

// OnlyAwaited reports whether only calls that wait need the lifecycle events of a page.
func (t *Target) OnlyAwaited() bool {
	d := t.Domain(Lifecycle)
	return !d.ByCaller && d.listeners == t.IdleWaits
}

// The rest of this file enables domains for calls that Chrome refused because a domain is not enabled. The host names
// the domains in CallRequest.Enable, after it has asked the policy. They are disabled again when the call ends,
// unless ids or settings depend on them. Until then, nobody receives their events.

// temporary is the state of a domain that the keeper has enabled for calls, in one session.
type temporary struct {
	calls    int  // running calls that need it
	starting bool // its enable command is under way
	before   bool // it was enabled before the first of these calls
	Kept     bool // it stays enabled after the calls
	crashed  bool // the calls ended with the renderer: disable it when the page is back
	ending   int  // number of its disable commands under way

	unpausing bool // the debugger is being enabled without pauses; see enableDebugger
}

// Quiet reports whether a domain is enabled only because the keeper enabled it for calls.
func (d *Domain) Quiet() bool {
	return d.listeners == 0 && !d.ByCaller && !d.recording && (d.calls > 0 || d.Kept || d.crashed || d.ending > 0)
}

// EnableFor enables the domains that a call names, in their order. The caller passes the result to release when the
// call ends.
func (en *Domains) EnableFor(ctx context.Context, t *Target, q api.CallRequest) ([]*Domain, *api.Error) {
	for _, name := range q.Enable {
		if err := checkEnable(q.Method, name); err != nil {
			return nil, err
		}
	}
	var held []*Domain
	for _, name := range q.Enable {
		if name == "Page" && HasPage(t.Kind) {
			continue // the keeper always has it enabled
		}
		d, err := en.hold(ctx, t, name)
		if d != nil {
			held = append(held, d)
		}
		if err != nil {
			en.Release(t, held)
			return nil, err
		}
	}
	return held, nil
}

// checkEnable rejects a domain that the reviewed table does not enable for a command.
func checkEnable(method, name string) *api.Error {
	if enabling(name).Allows(protocol.Embedded().Rights(method).Effect) {
		return nil
	}
	return api.Errorf(api.CodeInvalidArgs, "%q is not enabled for %s: enabling it can affect the page",
		manifest.Clip(name, 80),
		manifest.Clip(method, 80))
}

// enabling returns what was reviewed about enabling a domain.
func enabling(name string) protocol.Enabling {
	d, _ := protocol.Embedded().Domain(name)
	return d.Enabling
}

// hold enables a domain and waits until that is done. The returned domain must be released, even with an error. hold
// asks Chrome even if the domain counts as enabled, because Chrome has just said that it is not.
func (en *Domains) hold(ctx context.Context, t *Target, name string) (*Domain, *api.Error) {
	en.mux.Lock()
	if err := en.sender.checkSendable(t, name+".enable"); err != nil {
		en.mux.Unlock()
		return nil, err
	}
	d := t.Domain(name)
	if d.calls++; d.calls == 1 {
		d.before, d.starting = d.listeners > 0 || d.ByCaller || d.recording || d.Kept, true
		en.setDomain(t, name, true, func(mux.Reply) { // if it fails, the call fails, too, with Chrome's reason
			d.starting = false
			en.mux.Broadcast()
		})
	}
	en.mux.Unlock()
	return d, en.mux.Wait(ctx, "for "+name+".enable", func() (bool, *api.Error) { return !d.starting, nil })
}

// enableDebugger enables the debugger for the keeper. Until a caller enables it, neither debugger statements nor
// breakpoints pause the page. The first setting applies from before the debugger is enabled until the next
// navigation, the second from then on. Chrome resets the second when it enables the debugger, and lets it overtake
// other commands.
func (en *Domains) enableDebugger(t *Target, after func(mux.Reply)) {
	t.Domain(api.DebuggerDomain).unpausing = true
	Post(en.mux, t, debugger.SetSkipAllPauses, debugger.SetSkipAllPausesParams{Skip: true}, nil)
	en.mux.Post(t.At(), debugger.CommandEnable, nil, func(r mux.Reply) {
		if t.Domain(api.DebuggerDomain).unpausing {
			Post(en.mux, t, debugger.SetBreakpointsActive, debugger.SetBreakpointsActiveParams{}, nil)
		}
		if after != nil {
			after(r)
		}
	})
}

// resume continues a page that has paused nevertheless. It returns true for an event of such a pause, which nobody
// receives. When another process takes over the page, Chrome restores the enabled debugger, but not its settings: the
// page can pause once after each navigation.
func (en *Domains) resume(t *Target, method string) bool {
	if method == debugger.Paused.Method {
		Post(en.mux, t, debugger.SetSkipAllPauses, debugger.SetSkipAllPausesParams{Skip: true}, nil)
		Post(en.mux, t, debugger.Resume, debugger.ResumeParams{}, nil)
	}
	return method == debugger.Paused.Method || method == debugger.Resumed.Method
}

// letPause undoes the settings of enableDebugger, because a caller has enabled the debugger.
func (en *Domains) letPause(t *Target) {
	if d := t.Domain(api.DebuggerDomain); d.unpausing {
		d.unpausing = false
		Post(en.mux, t, debugger.SetBreakpointsActive, debugger.SetBreakpointsActiveParams{Active: true}, nil)
		Post(en.mux, t, debugger.SetSkipAllPauses, debugger.SetSkipAllPausesParams{}, nil)
	}
}

// Release ends a call's use of domains and disables those that nobody else needs.
func (en *Domains) Release(t *Target, held []*Domain) (done api.Enabled) {
	if len(held) == 0 {
		return done
	}
	en.mux.Lock()
	defer en.mux.Unlock()
	for _, d := range slices.Backward(held) {
		switch {
		case d.before || d.listeners > 0 || d.ByCaller:
		case d.Kept:
			done.Kept = append(done.Kept, d.name)
		default:
			done.Off = append(done.Off, d.name)
		}
		if d.calls--; d.calls == 0 {
			en.endTemporary(t, d)
		}
	}
	en.mux.Broadcast()
	return done
}

// endTemporary disables a domain after the last call that needed it, unless somebody else needs it by now.
func (en *Domains) endTemporary(t *Target, d *Domain) {
	switch {
	case t.Closed || t.Domains[d.name] != d: // its session has ended
	case d.ByCaller || d.recording || d.before && d.listeners > 0:
	case d.Kept:
		d.Enabling = false
	case t.Crashed:
		d.crashed = true // commands sent to the dead renderer are lost, and Chrome restores its domains in the next one
	case d.listeners > 0:
		// The listener came while the domain was enabled, so its history has not been replayed to it.
		en.setDomain(t, d.name, false, nil)
		en.startDomain(t, d.name)
	default:
		en.stopDomain(t, d)
	}
}

// stopDomain disables a domain that the keeper enabled for calls.
func (en *Domains) stopDomain(t *Target, d *Domain) {
	d.ending++
	en.setDomain(t, d.name, false, func(mux.Reply) { d.ending-- })
}

// keepFor records that domains stay enabled after a command that has succeeded. The mux is locked.
func (en *Domains) keepFor(t *Target, method string) {
	for name, d := range t.Domains {
		if d.calls == 0 || !enabling(name).KeptBy(method) {
			continue
		}
		for _, kept := range append(enabling(name).Needs, name) {
			t.Domain(kept).Kept = !t.Domain(kept).ByCaller && !t.Domain(kept).recording
		}
	}
}

// AwaitCalls waits until no call needs a domain that a caller wants to enable or disable itself. Otherwise the caller
// would get no replayed events, or the call would lose the domain.
func (en *Domains) AwaitCalls(ctx context.Context, t *Target, method string) *api.Error {
	name := api.DomainOf(method)
	if method != name+".enable" && method != name+".disable" {
		return nil
	}
	return en.mux.Wait(ctx, "for the calls that need "+name, func() (bool, *api.Error) {
		d := t.Domains[name]
		return d == nil || d.calls == 0, nil
	})
}
