package target

import (
	"strings"

	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"

	"github.com/parley-tools/parley/cdp/internal/keeper/api"
	"github.com/parley-tools/parley/cdp/internal/keeper/mux"
)

// Domains enables and disables the domains of targets, for the recorder, for streams, for calls and as callers ask.
type Domains struct {
	mux    *mux.Mux
	sender *Sender
}

// Domain is the state of a DevTools domain in one session.
type Domain struct {
	listeners int
	ByCaller  bool // a caller enabled it, so the keeper must not disable it
	recording bool // the recorder has it enabled for as long as the session lasts
	Enabling  bool // events that arrive now are replayed history
	Repeating bool // it was disabled and enabled again: the history that arrives now is stored already
	temporary
}

// Domain returns the state of a domain, which it creates if necessary.
func (t *Target) Domain(name string) *Domain {
	d := t.Domains[name]
	if d == nil {
		d = &Domain{}
		t.Domains[name] = d
	}
	return d
}

// DomainState returns the state of an event's domain, which is zero where nobody has enabled it. t may be nil.
func (t *Target) DomainState(method string) Domain {
	if t == nil {
		return Domain{}
	}
	if d := t.Domains[api.DomainOf(method)]; d != nil {
		return *d
	}
	return Domain{}
}

// Enable is called for each listener that needs a domain in a session, disable when the listener ends. It returns true
// if the domain was enabled for the recorder alone: then Chrome does not send the history again. The mux is locked.
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

// startDomain enables a domain for listeners.
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
			en.stopDomain(t, name)
		}
		d.crashed = false
	}
}

// keepEnabled is called when a caller's command has been sent. If that disables a domain that others need, the domain
// is enabled again at once: nothing is lost in between. Page is always needed, for dialogs and navigations. The mux
// is locked.
func (en *Domains) keepEnabled(t *Target, p *mux.Pending) {
	name, command, _ := strings.Cut(p.Method, ".")
	if command != "disable" {
		return
	}
	d := t.Domain(name)
	if !d.recording && d.listeners == 0 && name != "Page" {
		return
	}
	if name == api.DebuggerDomain { // as for who listens, no longer as for the caller
		en.enableDebugger(t, nil)
		return
	}
	if d.recording { // Chrome will repeat what is stored
		p.After = func(r mux.Reply) { d.Repeating = r.Err == nil }
	}
	en.setDomain(t, name, true, func(mux.Reply) { d.Repeating = false })
}

// Lifecycle is the event that has a switch of its own beside its domain's.
const Lifecycle = "Page.lifecycleEvent"

// recordedDomains are enabled by the recorder.
var recordedDomains = []string{"Network", "Runtime", "Log"}

// Limits of what Chrome keeps of bodies for Network.getResponseBody.
const (
	bodyBytes    = 8 << 20 // for a target
	maxBodyBytes = 4 << 20 // of one of them
)

// startRecording enables the recorder's domains in a new session. The mux is locked.
func (en *Domains) startRecording(t *Target) {
	for _, name := range recordedDomains {
		d := t.Domain(name)
		d.recording, d.Enabling = true, true
		en.setDomain(t, name, true, func(mux.Reply) {
			d.Enabling = false
			en.mux.Broadcast()
		})
	}
}

// OnlyRecorded reports whether a domain is enabled for the recorder alone. Its events reach no stream then.
func (t *Target) OnlyRecorded(domain string) bool {
	d := t.Domains[domain]
	return d != nil && d.recording && d.listeners == 0 && !d.ByCaller
}

// OnlyAwaited reports whether nobody but calls that wait asked for the lifecycle events of a page.
func (t *Target) OnlyAwaited() bool {
	d := t.Domain(Lifecycle)
	return !d.ByCaller && d.listeners == t.IdleWaits
}
