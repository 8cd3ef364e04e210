package target

import (
	"context"
	"slices"

	"github.com/chromedp/cdproto/debugger"

	"github.com/parley-tools/parley/cdp/internal/keeper/api"
	"github.com/parley-tools/parley/cdp/internal/keeper/mux"
	"github.com/parley-tools/parley/cdp/internal/protocol"
	"github.com/parley-tools/parley/manifest"
)

// This file enables domains for calls to which Chrome answered that they are not enabled. The host names them in
// CallRequest.Enable, after it has asked the policy. They are disabled again when the call ends, unless ids or settings
// depend on them, and until then their events are for nobody.

// temporary is the state of a domain that the keeper has enabled for calls, in one session.
type temporary struct {
	calls    int  // running calls that need it
	starting bool // its enable command is under way
	before   bool // it was enabled before the first of these calls
	Kept     bool // it stays enabled after the calls
	crashed  bool // the calls ended with the renderer: it is disabled when the page is back
	ending   int  // its disable commands under way

	unpausing bool // of the debugger; see enableDebugger
}

// Quiet reports whether a domain is enabled only because the keeper enabled it for calls.
func (d *Domain) Quiet() bool {
	return d.listeners == 0 && !d.ByCaller && !d.recording && (d.calls > 0 || d.Kept || d.crashed || d.ending > 0)
}

// heldDomain is a domain that a call holds enabled.
type heldDomain struct {
	name string
	*Domain
}

// EnableFor enables the domains that a call names, in their order. The caller passes the result to release when the
// call ends.
func (en *Domains) EnableFor(ctx context.Context, t *Target, q api.CallRequest) ([]heldDomain, *api.Error) {
	for _, name := range q.Enable {
		if err := checkEnable(q.Method, name); err != nil {
			return nil, err
		}
	}
	var held []heldDomain
	for _, name := range q.Enable {
		if name == "Page" && HasPage(t.Kind) {
			continue // the keeper has it enabled
		}
		d, err := en.hold(ctx, t, name)
		if d != nil {
			held = append(held, heldDomain{name, d})
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

// hold enables a domain and waits until that is done. The domain that it returns, also with an error, has to be
// released. It asks Chrome even where the domain counts as enabled, because Chrome has just said that it is not.
func (en *Domains) hold(ctx context.Context, t *Target, name string) (*Domain, *api.Error) {
	en.mux.Lock()
	if err := en.sender.checkSendable(t, name+".enable"); err != nil {
		en.mux.Unlock()
		return nil, err
	}
	d := t.Domain(name)
	if d.calls++; d.calls == 1 {
		d.before, d.starting = d.listeners > 0 || d.ByCaller || d.recording || d.Kept, true
		en.setDomain(t, name, true, func(mux.Reply) { // if it fails, so does the call, with Chrome's reason
			d.starting = false
			en.mux.Broadcast()
		})
	}
	en.mux.Unlock()
	return d, en.mux.Wait(ctx, "for "+name+".enable", func() (bool, *api.Error) { return !d.starting, nil })
}

// enableDebugger enables the debugger for the keeper. Until a caller enables it, neither debugger statements nor
// breakpoints pause the page. The first setting holds from before it is enabled until the next navigation, the second
// from then on. Chrome resets the second when it enables the debugger, and lets it overtake other commands.
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

// resume lets a page go on that pauses nevertheless, and returns true for an event of such a pause, which is for
// nobody. When another process takes over the page, Chrome restores that the debugger is enabled, but not its settings:
// the page can pause once after each navigation.
func (en *Domains) resume(t *Target, method string) bool {
	if method == debugger.Paused.Method {
		Post(en.mux, t, debugger.SetSkipAllPauses, debugger.SetSkipAllPausesParams{Skip: true}, nil)
		Post(en.mux, t, debugger.Resume, debugger.ResumeParams{}, nil)
	}
	return method == debugger.Paused.Method || method == debugger.Resumed.Method
}

// letPause ends the settings of enableDebugger, because a caller has enabled the debugger.
func (en *Domains) letPause(t *Target) {
	if d := t.Domain(api.DebuggerDomain); d.unpausing {
		d.unpausing = false
		Post(en.mux, t, debugger.SetBreakpointsActive, debugger.SetBreakpointsActiveParams{Active: true}, nil)
		Post(en.mux, t, debugger.SetSkipAllPauses, debugger.SetSkipAllPausesParams{}, nil)
	}
}

// Release ends a call's use of domains and disables those that nobody else needs.
func (en *Domains) Release(t *Target, held []heldDomain) (done api.Enabled) {
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
			en.endTemporary(t, d.name, d.Domain)
		}
	}
	en.mux.Broadcast()
	return done
}

// endTemporary disables a domain after the last call that needed it, unless somebody else needs it by now.
func (en *Domains) endTemporary(t *Target, name string, d *Domain) {
	switch {
	case t.Closed || t.Domains[name] != d: // its session has ended
	case d.ByCaller || d.recording || d.before && d.listeners > 0:
	case d.Kept:
		d.Enabling = false
	case t.Crashed:
		d.crashed = true // commands sent to the dead renderer are lost, and Chrome restores its domains in the next one
	case d.listeners > 0:
		// The listener came while the domain was enabled, so its history has not been replayed to it.
		en.setDomain(t, name, false, nil)
		en.startDomain(t, name)
	default:
		en.stopDomain(t, name)
	}
}

// stopDomain disables a domain that the keeper enabled for calls.
func (en *Domains) stopDomain(t *Target, name string) {
	d := t.Domain(name)
	d.ending++
	en.setDomain(t, name, false, func(mux.Reply) { d.ending-- })
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

// AwaitCalls waits, before a caller enables or disables a domain itself, until no call needs it: it would get no
// replayed events, or the call would lose the domain.
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
