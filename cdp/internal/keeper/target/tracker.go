// Package target knows the targets of the browser: pages, frames and workers, their sessions, documents and dialogs.
// It sends commands to them, reports why a command cannot be sent or does not return, and enables their domains. Its
// observer decides to whom the targets belong.
package target

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	cdpbrowser "github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/debugger"
	"github.com/chromedp/cdproto/dom"
	"github.com/chromedp/cdproto/fetch"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/inspector"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	cdptarget "github.com/chromedp/cdproto/target"
	"github.com/parley-tools/parley/cdp/internal/keeper/api"
	"github.com/parley-tools/parley/cdp/internal/keeper/mux"
	"github.com/parley-tools/parley/cdp/internal/keeper/scan"
)

// Tracker tracks the browser's targets by its events.
type Tracker struct {
	Mux      *mux.Mux
	Sender   *Sender
	Domains  *Domains
	Name     string // of the browser
	External bool   // a browser that Parley did not start: attach to a target on first use
	observer Observer

	ByID          map[string]*Target
	All           []*Target // the oldest first
	Sessions      map[string]*Target
	extraSessions map[string]*Target // by the ids of the sessions that callers created in addition to the keeper's
	Frames        Frames             // the frames inside targets
	SparePage     *Target            // the blank page for the first open
	Started       bool               // the first page exists; new targets have owners
}

// Observe sets the observer of targets.
func (tr *Tracker) Observe(o Observer) { tr.observer = o }

// Observer is told about changes of targets, and decides what is done with them. Its methods are called with the mux
// locked.
type Observer interface {
	// OnTarget is called when a target is new or its URL has changed. via is the target whose session reported it.
	OnTarget(t *Target, context string, via *Target, fresh bool)
	OnURL(t *Target, url string)
	OnNavigationRequested(t *Target, params json.RawMessage)
	// OnSession is called when a target has a session, before the target runs. OnSessionEnd is called when the session
	// has ended.
	OnSession(t *Target)
	OnSessionEnd(t *Target)
	OnForgotten(t *Target)
	// WantsSession reports whether to attach to a new page of an external browser before a call uses it.
	WantsSession(t *Target) bool
	// OnPaused is called for a request that was paused in a target, with the parameters of one of the events in pausing.
	// It returns false if the caller who paused the request has to handle it.
	OnPaused(t *Target, params json.RawMessage) bool
	// OnEvent is called for each other event, before the tracker processes it. t is the target of its session. of is the
	// same, and also set for an extra session. Both are nil for the browser.
	OnEvent(t, of *Target, method string, params json.RawMessage)
	// OnContexts is called when a caller has enabled Runtime after its contexts were reported.
	OnContexts(t *Target)
	OnLoss(method string) // an event was too large to be read
	OnEnd()               // the connection has ended
}

// NewTracker returns a tracker of the browser that a mux is connected to. The caller must call Observe before it runs
// the mux.
func NewTracker(m *mux.Mux, name string, external bool) *Tracker {
	byID := map[string]*Target{}
	s := &Sender{m, byID}
	tr := &Tracker{
		Mux: m, Sender: s, Domains: &Domains{m, s}, Name: name, External: external,
		ByID:          byID,
		Sessions:      map[string]*Target{},
		extraSessions: map[string]*Target{},
		Frames:        Frames{},
	}
	m.Observe(tr)
	return tr
}

// Start begins to read messages and to track targets.
func (tr *Tracker) Start(ctx context.Context) *api.Error {
	go tr.Mux.Read()
	if _, err := Execute(ctx, tr.Sender, nil, cdptarget.SetDiscoverTargets, discoverParams()); err != nil {
		return err
	}
	if tr.External {
		return nil
	}
	if _, err := Execute(ctx, tr.Sender, nil, cdptarget.SetAutoAttach, tr.autoAttachParams()); err != nil {
		return err
	}
	err := tr.Mux.Wait(ctx, "for the first page", func() (bool, *api.Error) {
		for _, t := range tr.All {
			if t.Kind == "page" && t.Session != "" {
				tr.SparePage, tr.Started = t, true
				Post(tr.Mux, t, page.BringToFront, cdp.Empty{}, nil) // give it the focus, which new pages have
				return true, nil
			}
		}
		return false, nil
	})
	return err
}

// targetFilter excludes tabs, which only wrap pages, and Chrome's own surfaces, such as the list under the address
// bar.
func targetFilter() cdptarget.Filter {
	return cdptarget.Filter{
		{Type: "browser", Exclude: true}, {Type: "tab", Exclude: true}, {Type: "browser_ui", Exclude: true}, {},
	}
}

func discoverParams() cdptarget.SetDiscoverTargetsParams {
	return cdptarget.SetDiscoverTargetsParams{Discover: true, Filter: targetFilter()}
}

// autoAttachParams asks Chrome to attach to all targets that a target opens. In our own browser they start paused, so
// that no event is missed; an external browser must not pause for Parley.
func (tr *Tracker) autoAttachParams() cdptarget.SetAutoAttachParams {
	return cdptarget.SetAutoAttachParams{
		AutoAttach: true, WaitForDebuggerOnStart: !tr.External, Flatten: new(true), Filter: targetFilter(),
	}
}

// of returns the target that an address belongs to, nil for the browser.
func (tr *Tracker) of(to *mux.Address) *Target {
	if to == nil {
		return nil
	}
	if t := tr.ByID[to.ID]; t != nil && t.receives(to) {
		return t
	}
	return nil // an extra session
}

// pausing are the events of requests that wait for an answer. The protocol calls the last one deprecated, but no
// other event names the request.
var pausing = []string{fetch.RequestPaused.Method, fetch.AuthRequired.Method, "Security.certificateError"}

// OnEvent implements [mux.Observer]: it updates the targets by an event, after the observer has received it.
func (tr *Tracker) OnEvent(session, method string, params json.RawMessage) {
	t := tr.Sessions[session]
	switch method {
	case cdptarget.TargetCreated.Method, cdptarget.TargetInfoChanged.Method, cdptarget.AttachedToTarget.Method:
		tr.onTargetInfo(t, method, params) // first, because the owner of the event depends on it
	}
	if t != nil && slices.Contains(pausing, method) && tr.observer.OnPaused(t, params) {
		return
	}
	if t.DomainState(method).unpausing && tr.Domains.resume(t, method) {
		return
	}
	if t != nil {
		t.followDocument(method, params)
	}
	tr.observer.OnEvent(t, tr.SessionOf(session), method, params)
	if t != nil && HasPage(t.Kind) {
		tr.Frames.follow(t, method, params)
	}
	switch method {
	case cdptarget.TargetDestroyed.Method, cdptarget.TargetCrashed.Method, cdptarget.DetachedFromTarget.Method:
		tr.onTargetGone(method, params)
	default:
		if t != nil && tr.onPageEvent(t, method, params) {
			tr.Mux.Broadcast()
		}
	}
}

// onPageEvent updates a target by an event, and reports whether the event was of that kind.
func (tr *Tracker) onPageEvent(t *Target, method string, params json.RawMessage) bool {
	isPage := t.Kind == "page"
	switch method {
	case inspector.TargetCrashed.Method:
		tr.onCrash(t)
	case inspector.TargetReloadedAfterCrash.Method:
		t.Crashed = false
	case page.JavascriptDialogOpening.Method:
		tr.onDialog(t, params)
	case page.JavascriptDialogClosed.Method:
		if t.Dialog != nil && t.Dialog.Type == api.BeforeUnload && string(scan.Field(params, "result")) == "false" {
			t.stays++
		}
		t.Dialog = nil
	case input.DragIntercepted.Method:
		t.Root().DragData = scan.Field(params, "data")
	case page.FrameRequestedNavigation.Method:
		tr.observer.OnNavigationRequested(t, params)
	case page.FrameStartedNavigating.Method, page.FrameStoppedLoading.Method:
		return isPage && t.onNavigating(method, params)
	case page.LifecycleEvent.Method:
		return isPage && t.onLifecycle(params)
	case page.LoadEventFired.Method:
		t.Loaded = isPage
	case page.FrameNavigated.Method:
		return isPage && tr.onNavigated(t, params)
	default:
		return false
	}
	return true
}

// OnLoss implements [mux.Observer].
func (tr *Tracker) OnLoss(method string) { tr.observer.OnLoss(method) }

// OnEnd implements [mux.Observer].
func (tr *Tracker) OnEnd() { tr.observer.OnEnd() }

func (tr *Tracker) onTargetInfo(via *Target, method string, params json.RawMessage) {
	info := scan.Field(params, "targetInfo")
	id := scan.Text(info, "targetId")
	if id == "" {
		return
	}
	t := tr.ByID[id]
	fresh := t == nil
	if fresh && method == cdptarget.TargetInfoChanged.Method {
		return // a frame in the back/forward cache: unreachable until it is attached again
	}
	if fresh {
		t = &Target{Address: mux.Address{ID: id}, Domains: map[string]*Domain{}}
		tr.ByID[t.ID] = t
		tr.All = append(tr.All, t)
	}
	t.Kind, t.URL = scan.Text(info, "type"), scan.Text(info, "url")
	t.Title, t.Opener = scan.Text(info, "title"), cmp.Or(scan.Text(info, "openerId"), t.Opener)
	tr.observer.OnTarget(t, scan.Text(info, "browserContextId"), via, fresh)
	if method == cdptarget.AttachedToTarget.Method {
		tr.onAttached(t, via, scan.Text(params, "sessionId"), string(scan.Field(params, "waitingForDebugger")) == "true")
	}
	if fresh && tr.External && method == cdptarget.TargetCreated.Method && tr.observer.WantsSession(t) {
		tr.AttachAsync(t)
	}
	tr.Mux.Broadcast()
}

// refreshTimeout bounds how long listing targets waits for a browser that does not respond.
const refreshTimeout = 500 * time.Millisecond

// RefreshTargets fetches titles and URLs again, because a page's title changes after the last event that carries
// it.
func (tr *Tracker) RefreshTargets(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, refreshTimeout)
	defer cancel()
	request := scan.Marshal(cdptarget.GetTargetsParams{Filter: targetFilter()})
	raw, err := tr.Sender.Do(ctx, nil, cdptarget.GetTargets.Method, request)
	if err != nil {
		return // keep the state from the events
	}
	tr.Mux.Lock()
	defer tr.Mux.Unlock()
	scan.EachElement(scan.Field(raw, "targetInfos"), func(info []byte) {
		if t := tr.ByID[scan.Text(info, "targetId")]; t != nil {
			t.Title = scan.Text(info, "title")
			t.URL = cmp.Or(scan.Text(info, "url"), t.URL) // it is empty while a navigation is under way
		}
	})
}

func (tr *Tracker) onTargetGone(method string, params json.RawMessage) {
	of := tr.ByID[scan.Text(params, "targetId")]
	switch method {
	case cdptarget.TargetCrashed.Method:
		if of != nil {
			tr.onCrash(of)
		}
	case cdptarget.DetachedFromTarget.Method:
		session := scan.Text(params, "sessionId")
		delete(tr.extraSessions, session)
		if t := tr.Sessions[session]; t != nil {
			delete(tr.Sessions, session)
			t.Session, t.ready, t.Domains, t.Dialog = "", false, map[string]*Domain{}, nil
			tr.Frames.forgetIn(t)
			tr.Mux.FailPending(t.At(), ClosedTarget(t))
			t.Contexts, t.responses = nil, nil
			tr.observer.OnSessionEnd(t)
			// The end of frames and workers is reported only where targets are discovered.
			if !HasPage(t.Kind) || t.Kind == "iframe" {
				tr.forget(t)
			}
		}
	default:
		if of != nil {
			tr.forget(of)
		}
	}
	tr.Mux.Broadcast()
}

func (tr *Tracker) forget(t *Target) {
	t.Closed = true
	delete(tr.ByID, t.ID)
	tr.Frames.forgetIn(t)
	delete(tr.Sessions, t.Session)
	tr.All = slices.DeleteFunc(slices.Clone(tr.All), func(other *Target) bool { return other == t })
	// Page.close of a page that is now closed has succeeded.
	for _, p := range tr.Mux.Waiting(t.receives) {
		if p.Method == page.CommandClose {
			tr.Mux.Finish(p, mux.Reply{Result: json.RawMessage("{}")})
		}
	}
	tr.Mux.FailPending(t.At(), ClosedTarget(t))
	tr.observer.OnForgotten(t)
	if tr.SparePage == t {
		tr.SparePage = nil
	}
}

// onCrash fails all calls that wait for a crashed renderer, including navigations: one under way may never get a
// reply. Chrome reports each crash by two events. When the second arrives, only the command that revives the target
// can be waiting, and the event of the revival is still to come.
func (tr *Tracker) onCrash(t *Target) {
	if t.Crashed {
		return
	}
	t.Crashed, t.needsReenable, t.Dialog, t.PendingURL = true, true, nil, ""
	tr.Frames.forgetIn(t)
	tr.Mux.FailPending(t.At(), CrashedTarget(t))
	tr.Mux.Broadcast()
}

// SessionOf returns the target of a session, including the extra sessions that callers created.
func (tr *Tracker) SessionOf(id string) *Target {
	return cmp.Or(tr.Sessions[id], tr.extraSessions[id])
}

// onAttached prepares a new session. It sends the commands at once and in order. The command that lets the target run
// comes last, so that no event is missed.
func (tr *Tracker) onAttached(t, via *Target, session string, waiting bool) {
	if t.Session != "" {
		// A caller created a second session with the target. It must not stay paused either.
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
	if HasPage(t.Kind) && !waiting {
		tr.readFrames(t) // a frame that changes its process does not wait, and may have frames before Page.enable
	}
	if HasPage(t.Kind) && !tr.External { // a person's own browser shows its file choosers
		Post(tr.Mux, t, page.SetInterceptFileChooserDialog, page.SetInterceptFileChooserDialogParams{Enabled: true}, nil)
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
	case command == "enable", method == dom.CommandGetDocument: // the latter enables its domain
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
		t.Domain(domain).unpausing = false // from now on, the caller's settings apply
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

// restoreTracking sends the keeper's own tracking settings again, after a caller's command that may have changed
// them. Without them the keeper would not attach to new targets, and would not notice closed ones. The mux is locked.
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

// Attach waits until a target has a session to which the command can be sent.
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
		err.Message += "; the page is busy, or had a JavaScript dialog open before Parley attached, which a reload closes"
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
