package keeper

import (
	"strings"

	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"

	"github.com/parley-tools/parley/cdp/internal/keeper/api"
	"github.com/parley-tools/parley/cdp/internal/keeper/mux"
)

// enabler enables and disables the domains of targets, for the recorder, for streams, for calls and as callers ask.
type enabler struct {
	mux    *mux.Mux
	sender *sender
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
	if d := t.domains[api.DomainOf(method)]; d != nil {
		return *d
	}
	return domain{}
}

// enable is called for each listener that needs a domain in a session, disable when the listener ends. It returns true
// if the domain was enabled for the recorder alone: then Chrome does not send the history again. The engine is locked.
func (en *enabler) enable(t *target, name string) (wasRecorded bool) {
	wasRecorded = t.onlyRecorded(name)
	d := t.domain(name)
	d.listeners++
	switch {
	case d.listeners > 1 || d.byCaller || d.recording || name == "Page" && hasPage(t.kind):
		return wasRecorded
	case d.calls > 0 && !d.before:
		d.enabling = true // the end of the calls enables it again
	default:
		en.startDomain(t, name)
	}
	return false
}

// startDomain enables a domain for listeners.
func (en *enabler) startDomain(t *target, name string) {
	d := t.domain(name)
	d.enabling = true
	en.setDomain(t, name, true, func(mux.Reply) {
		d.enabling = false
		en.mux.Broadcast()
	})
}

func (en *enabler) disable(t *target, name string) {
	d := t.domain(name)
	d.listeners--
	if d.listeners > 0 || d.byCaller || d.recording || d.calls > 0 || d.kept || name == "Page" || t.closed ||
		t.Session == "" {
		return
	}
	en.setDomain(t, name, false, nil)
}

// setDomain enables or disables a domain.
func (en *enabler) setDomain(t *target, name string, on bool, after func(mux.Reply)) {
	switch {
	case name == lifecycle:
		postCommand(en.mux, t, page.SetLifecycleEventsEnabled, page.SetLifecycleEventsEnabledParams{Enabled: on}, after)
	case on && name == "Network":
		limits := network.EnableParams{
			MaxTotalBufferSize: new(int64(bodyBytes)), MaxResourceBufferSize: new(int64(maxBodyBytes)),
		}
		postCommand(en.mux, t, network.Enable, limits, after)
	case on && name == api.DebuggerDomain && !t.domain(name).byCaller:
		en.enableDebugger(t, after)
	case on:
		en.mux.Post(t.at(), name+".enable", nil, after)
	default:
		t.domain(name).unpausing = false
		en.mux.Post(t.at(), name+".disable", nil, after)
	}
}

// reenableDomains enables a crashed page's domains again for the recorder and for listeners: the enable commands sent
// to the dead renderer had no effect. It runs once the new page exists, because whatever is sent earlier is lost, too.
func (en *enabler) reenableDomains(t *target) {
	for name, d := range t.domains {
		d.repeating = false
		switch {
		case d.listeners > 0 || d.recording:
			en.setDomain(t, name, true, nil) // events that the new page has sent so far are not replayed
		case d.crashed && !d.byCaller && d.calls == 0:
			en.stopDomain(t, name)
		}
		d.crashed = false
	}
}

// keepEnabled is called when a caller's command has been sent. If that disables a domain that others need, the domain
// is enabled again at once: nothing is lost in between. Page is always needed, for dialogs and navigations. The engine
// is locked.
func (en *enabler) keepEnabled(t *target, p *mux.Pending) {
	name, command, _ := strings.Cut(p.Method, ".")
	if command != "disable" {
		return
	}
	d := t.domain(name)
	if !d.recording && d.listeners == 0 && name != "Page" {
		return
	}
	if name == api.DebuggerDomain { // as for who listens, no longer as for the caller
		en.enableDebugger(t, nil)
		return
	}
	if d.recording { // Chrome will repeat what is stored
		p.After = func(r mux.Reply) { d.repeating = r.Err == nil }
	}
	en.setDomain(t, name, true, func(mux.Reply) { d.repeating = false })
}

// lifecycle is the event that has a switch of its own beside its domain's.
const lifecycle = "Page.lifecycleEvent"

// recordedDomains are enabled by the recorder.
var recordedDomains = []string{"Network", "Runtime", "Log"}

// Limits of what Chrome keeps of bodies for Network.getResponseBody.
const (
	bodyBytes    = 8 << 20 // for a target
	maxBodyBytes = 4 << 20 // of one of them
)

// startRecording enables the recorder's domains in a new session. The engine is locked.
func (en *enabler) startRecording(t *target) {
	for _, name := range recordedDomains {
		d := t.domain(name)
		d.recording, d.enabling = true, true
		en.setDomain(t, name, true, func(mux.Reply) {
			d.enabling = false
			en.mux.Broadcast()
		})
	}
}

// onlyRecorded reports whether a domain is enabled for the recorder alone. Its events reach no stream then.
func (t *target) onlyRecorded(domain string) bool {
	d := t.domains[domain]
	return d != nil && d.recording && d.listeners == 0 && !d.byCaller
}

// onlyAwaited reports whether nobody but calls that wait asked for the lifecycle events of a page.
func (t *target) onlyAwaited() bool {
	d := t.domain(lifecycle)
	return !d.byCaller && d.listeners == t.idleWaits
}
