package keeper

import (
	"context"
	"encoding/json"
	"time"

	"github.com/chromedp/cdproto/fetch"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/inspector"
	"github.com/chromedp/cdproto/page"
	cdptarget "github.com/chromedp/cdproto/target"

	"github.com/parley-tools/parley/cdp/internal/keeper/api"
	"github.com/parley-tools/parley/cdp/internal/keeper/mux"
	"github.com/parley-tools/parley/cdp/internal/keeper/scan"
)

// tracker follows the browser's targets by its events.
type tracker struct {
	mux      *mux.Mux
	sender   *sender
	domains  *enabler
	name     string // of the browser
	external bool   // a browser that Parley did not start: attach to a target on first use
	observer observer

	targets       map[string]*target
	order         []*target // the oldest first
	sessions      map[string]*target
	extraSessions map[string]*target // by the id of sessions that callers created beside the engine's
	frames        frames             // those inside of targets
	sparePage     *target            // the blank page for the first open
	started       bool               // the first page exists; new targets have owners
}

// observer hears what becomes of targets, and decides what is done with them. Its methods are called with the mux
// locked.
type observer interface {
	// onTarget is called when a target is new or its URL has changed. via is the target whose session reported it.
	onTarget(t *target, context string, via *target, fresh bool)
	onURL(t *target, url string)
	onNavigationRequested(t *target, params json.RawMessage)
	// onSession is called when a target has a session, before it runs, and onSessionEnd when that has ended.
	onSession(t *target)
	onSessionEnd(t *target)
	onForgotten(t *target)
	// wantsSession reports whether a new page of an external browser is attached to before somebody uses it.
	wantsSession(t *target) bool
	// onPaused is called for a request that was paused in a target. It returns false if it is for whom paused it.
	onPaused(t *target, params json.RawMessage) bool
	// onEvent is called for each other event, before the tracker follows it. t is the target of its session; of is that
	// of an extra session, too. Both are nil for the browser.
	onEvent(t, of *target, method string, params json.RawMessage)
	// onContexts is called when a caller has enabled Runtime whose contexts were reported before.
	onContexts(t *target)
	onLoss(method string) // of an event that was too large to be read
	onEnd()               // of the connection
}

// newTracker returns a tracker of the browser that a mux is connected with. The caller sets its observer before start.
func newTracker(m *mux.Mux, name string, external bool) *tracker {
	s := &sender{m}
	tr := &tracker{
		mux: m, sender: s, domains: &enabler{m, s}, name: name, external: external,
		targets:       map[string]*target{},
		sessions:      map[string]*target{},
		extraSessions: map[string]*target{},
		frames:        frames{},
	}
	m.Observe(tr)
	return tr
}

// start begins to read messages and to track targets.
func (tr *tracker) start(ctx context.Context) *api.Error {
	go tr.mux.Read()
	if _, err := execute(ctx, tr.sender, nil, cdptarget.SetDiscoverTargets, discoverParams(), callOptions{}); err != nil {
		return err
	}
	if tr.external {
		return nil
	}
	if _, err := execute(ctx, tr.sender, nil, cdptarget.SetAutoAttach, tr.autoAttachParams(), callOptions{}); err != nil {
		return err
	}
	err := tr.mux.Wait(ctx, "for the first page", func() (bool, *api.Error) {
		for _, t := range tr.order {
			if t.kind == "page" && t.Session != "" {
				tr.sparePage, tr.started = t, true
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

// autoAttachParams asks for sessions with all targets that a target opens. In our own browser those start paused,
// so that no event is missed; an external browser must not pause for Parley.
func (tr *tracker) autoAttachParams() cdptarget.SetAutoAttachParams {
	return cdptarget.SetAutoAttachParams{
		AutoAttach: true, WaitForDebuggerOnStart: !tr.external, Flatten: new(true), Filter: targetFilter(),
	}
}

// of returns the target to which commands to an address go, nil for the browser.
func (tr *tracker) of(to *mux.Address) *target {
	if to == nil {
		return nil
	}
	if t := tr.targets[to.ID]; t != nil && t.receives(to) {
		return t
	}
	return nil // an extra session
}

// OnEvent implements [mux.Observer]: it follows what an event says of targets, after the observer has heard it.
func (tr *tracker) OnEvent(session, method string, params json.RawMessage) {
	t := tr.sessions[session]
	switch method {
	case cdptarget.TargetCreated.Method, cdptarget.TargetInfoChanged.Method, cdptarget.AttachedToTarget.Method:
		tr.onTargetInfo(t, method, params) // first, because the owner of the event depends on it
	}
	if t != nil && method == fetch.RequestPaused.Method && tr.observer.onPaused(t, params) {
		return
	}
	if t.domainState(method).unpausing && tr.domains.resume(t, method) {
		return
	}
	if t != nil {
		t.followDocument(method, params)
	}
	tr.observer.onEvent(t, tr.sessionOf(session), method, params)
	if t != nil && hasPage(t.kind) {
		tr.frames.follow(t, method, params)
	}
	switch method {
	case cdptarget.TargetDestroyed.Method, cdptarget.TargetCrashed.Method, cdptarget.DetachedFromTarget.Method:
		tr.onTargetGone(method, params)
	case inspector.TargetCrashed.Method:
		if t != nil {
			tr.onCrash(t)
		}
	case inspector.TargetReloadedAfterCrash.Method:
		if t != nil {
			t.crashed = false
			tr.mux.Broadcast()
		}
	case page.JavascriptDialogOpening.Method, page.JavascriptDialogClosed.Method:
		if t != nil {
			tr.onDialogEvent(t, method, params)
		}
	case input.DragIntercepted.Method:
		if t != nil {
			t.root().dragData = scan.Field(params, "data")
			tr.mux.Broadcast()
		}
	case page.FrameRequestedNavigation.Method:
		if t != nil {
			tr.observer.onNavigationRequested(t, params)
		}
	case page.FrameStartedNavigating.Method, page.FrameStoppedLoading.Method:
		if t != nil && t.kind == "page" {
			t.onNavigating(method, params)
			tr.mux.Broadcast()
		}
	case page.LifecycleEvent.Method:
		if t != nil && t.kind == "page" {
			tr.onLifecycle(t, params)
		}
	case page.FrameNavigated.Method, page.LoadEventFired.Method:
		if t != nil && t.kind == "page" {
			tr.onNavigated(t, method, params)
		}
	}
}

// OnLoss implements [mux.Observer].
func (tr *tracker) OnLoss(method string) { tr.observer.onLoss(method) }

// OnEnd implements [mux.Observer].
func (tr *tracker) OnEnd() { tr.observer.onEnd() }

func (tr *tracker) onTargetInfo(via *target, method string, params json.RawMessage) {
	var p struct {
		Info    targetInfo `json:"targetInfo"`
		Session string     `json:"sessionId"`
		Waiting bool       `json:"waitingForDebugger"`
	}
	if json.Unmarshal(params, &p) != nil || p.Info.ID == "" {
		return
	}
	t := tr.targets[p.Info.ID]
	fresh := t == nil
	if fresh && method == cdptarget.TargetInfoChanged.Method {
		return // a frame in the back/forward cache: unreachable until it is attached again
	}
	if fresh {
		t = &target{Address: mux.Address{ID: p.Info.ID}, kind: p.Info.Type, domains: map[string]*domain{}}
		tr.targets[t.ID] = t
		tr.order = append(tr.order, t)
	}
	t.kind, t.url, t.title, t.opener = p.Info.Type, p.Info.URL, p.Info.Title, p.Info.Opener
	tr.observer.onTarget(t, p.Info.Context, via, fresh)
	if method == cdptarget.AttachedToTarget.Method {
		tr.onAttached(t, via, p.Session, p.Waiting)
	}
	if fresh && tr.external && method == cdptarget.TargetCreated.Method && tr.observer.wantsSession(t) {
		tr.attachAsync(t)
	}
	tr.mux.Broadcast()
}

// refreshTimeout bounds how long a list of targets waits for a browser that does not respond.
const refreshTimeout = 500 * time.Millisecond

// refreshTargets fetches titles and URLs again, because a page's title changes after the last event that carries
// it.
func (tr *tracker) refreshTargets(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, refreshTimeout)
	defer cancel()
	request := scan.Marshal(cdptarget.GetTargetsParams{Filter: targetFilter()})
	raw, err := tr.sender.do(ctx, nil, cdptarget.GetTargets.Method, request, callOptions{})
	var p struct {
		Infos []targetInfo `json:"targetInfos"`
	}
	if err != nil || json.Unmarshal(raw, &p) != nil {
		return // keep the state from the events
	}
	tr.mux.Lock()
	defer tr.mux.Unlock()
	for _, info := range p.Infos {
		if t := tr.targets[info.ID]; t != nil {
			t.title = info.Title
			if info.URL != "" { // it is empty while a navigation is under way
				t.url = info.URL
			}
		}
	}
}

func (tr *tracker) onTargetGone(method string, params json.RawMessage) {
	var p struct {
		ID      string `json:"targetId"`
		Session string `json:"sessionId"`
	}
	if json.Unmarshal(params, &p) != nil {
		return
	}
	switch method {
	case cdptarget.TargetCrashed.Method:
		if t := tr.targets[p.ID]; t != nil {
			tr.onCrash(t)
		}
	case cdptarget.DetachedFromTarget.Method:
		delete(tr.extraSessions, p.Session)
		if t := tr.sessions[p.Session]; t != nil {
			delete(tr.sessions, p.Session)
			t.Session, t.ready, t.domains, t.dialog = "", false, map[string]*domain{}, nil
			tr.frames.forgetIn(t)
			tr.mux.FailPending(t.at(), closedTarget(t))
			t.contexts, t.document = nil, mainResponse{}
			tr.observer.onSessionEnd(t)
			// Destroyed frames and workers are reported only where targets are discovered.
			if !hasPage(t.kind) || t.kind == "iframe" {
				tr.forget(t)
			}
		}
	default:
		if t := tr.targets[p.ID]; t != nil {
			tr.forget(t)
		}
	}
	tr.mux.Broadcast()
}

func (tr *tracker) forget(t *target) {
	t.closed = true
	delete(tr.targets, t.ID)
	tr.frames.forgetIn(t)
	delete(tr.sessions, t.Session)
	for i, other := range tr.order {
		if other == t {
			tr.order = append(tr.order[:i:i], tr.order[i+1:]...)
			break
		}
	}
	// Page.close of a page that is now closed has succeeded.
	for _, p := range tr.mux.Waiting(t.receives) {
		if p.Method == page.CommandClose {
			tr.mux.Finish(p, mux.Reply{Result: json.RawMessage("{}")})
		}
	}
	tr.mux.FailPending(t.at(), closedTarget(t))
	tr.observer.onForgotten(t)
	if tr.sparePage == t {
		tr.sparePage = nil
	}
}

// onCrash fails everything that waits for a crashed renderer. That includes navigations: one that was under way may
// never be answered. Chrome reports each crash by two events. When the second arrives, only the command that
// revives the target can be waiting, and the event of the revival is still to come.
func (tr *tracker) onCrash(t *target) {
	if t.crashed {
		return
	}
	t.crashed, t.needsReenable, t.dialog, t.pendingURL = true, true, nil, ""
	tr.frames.forgetIn(t)
	tr.mux.FailPending(t.at(), crashedTarget(t))
	tr.mux.Broadcast()
}

// sessionOf returns the target of a session, including the extra sessions that callers created.
func (tr *tracker) sessionOf(id string) *target {
	if t := tr.sessions[id]; t != nil {
		return t
	}
	return tr.extraSessions[id]
}
