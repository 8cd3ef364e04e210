package keeper

import (
	"context"
	"encoding/json"
	"maps"
	"strings"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/inspector"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	cdptarget "github.com/chromedp/cdproto/target"
)

// targetInfo has only the fields that the engine needs, so that no other field of a later browser can break the
// decoding.
type targetInfo struct {
	ID      string `json:"targetId"`
	Type    string `json:"type"`
	URL     string `json:"url"`
	Title   string `json:"title"`
	Opener  string `json:"openerId"`
	Parent  string `json:"parentId"`
	Context string `json:"browserContextId"`
}

// onEvent updates the state of targets, stores the event and offers it to the listeners. The engine is locked.
func (e *engine) onEvent(session, method string, params json.RawMessage) {
	t := e.sessions[session]
	id := BrowserTarget
	if t != nil {
		id = t.id
	}
	switch method {
	case cdptarget.TargetCreated.Method, cdptarget.TargetInfoChanged.Method, cdptarget.AttachedToTarget.Method:
		e.onTargetInfo(t, method, params) // first, because the owner of the event depends on it
	}
	of := t
	if of == nil && e.extraSessions[session] != nil {
		of = e.extraSessions[session]
		id = of.id
	}
	r := &record{
		t: time.Now().UnixMilli(), target: id, method: method, params: params,
		owner: e.ownerOf(of, method, params), replayed: t != nil && t.replaying(method),
	}
	e.events.add(r)
	for l := range e.listeners {
		l.offer(r, t)
	}
	switch method {
	case cdptarget.TargetDestroyed.Method, cdptarget.TargetCrashed.Method, cdptarget.DetachedFromTarget.Method:
		e.onTargetGone(method, params)
	case inspector.TargetCrashed.Method:
		if t != nil {
			e.onCrash(t)
		}
	case inspector.TargetReloadedAfterCrash.Method:
		if t != nil {
			t.crashed = false
			e.broadcast()
		}
	case page.JavascriptDialogOpening.Method, page.JavascriptDialogClosed.Method:
		if t != nil {
			e.onDialogEvent(t, method, params)
		}
	case page.FrameRequestedNavigation.Method:
		if t != nil {
			e.onNavigationRequested(t, params)
		}
	case page.FrameStartedNavigating.Method, page.FrameStoppedLoading.Method:
		if t != nil && t.kind == "page" {
			t.onNavigating(method, params)
		}
	case page.FrameNavigated.Method, page.LoadEventFired.Method:
		if t != nil && t.kind == "page" {
			e.onNavigated(t, method, params)
		}
	}
}

func (e *engine) onTargetInfo(via *target, method string, params json.RawMessage) {
	var p struct {
		Info    targetInfo `json:"targetInfo"`
		Session string     `json:"sessionId"`
		Waiting bool       `json:"waitingForDebugger"`
	}
	if json.Unmarshal(params, &p) != nil || p.Info.ID == "" {
		return
	}
	t := e.targets[p.Info.ID]
	fresh := t == nil
	if fresh && method == cdptarget.TargetInfoChanged.Method {
		return // a frame in the back/forward cache: unreachable until it is attached again
	}
	if fresh {
		t = &target{id: p.Info.ID, kind: p.Info.Type, domains: map[string]*domain{}}
		e.targets[t.id] = t
		e.order = append(e.order, t)
	}
	t.kind, t.url, t.title, t.opener = p.Info.Type, p.Info.URL, p.Info.Title, p.Info.Opener
	e.adopt(t, p.Info.Context, via)
	if fresh {
		e.guessOwner(t)
	}
	e.enforceURL(t, t.url)
	if fresh {
		e.enforcePageLimit(t)
	}
	if method == cdptarget.AttachedToTarget.Method {
		e.onAttached(t, via, p.Session, p.Waiting)
	}
	if fresh && e.external && method == cdptarget.TargetCreated.Method {
		for l := range e.listeners {
			if l.wantsAllPages() && l.needsAttach(t) {
				e.attachAsync(t)
				break
			}
		}
	}
	if e.current == nil && t.kind == "page" && !e.ownedByPlugin(t) {
		e.current = t
	}
	e.broadcast()
}

// refreshTimeout bounds how long a list of targets waits for a browser that does not respond.
const refreshTimeout = 500 * time.Millisecond

// refreshTargets fetches titles and URLs again, because a page's title changes after the last event that carries
// it.
func (e *engine) refreshTargets(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, refreshTimeout)
	defer cancel()
	request := mustJSON(cdptarget.GetTargetsParams{Filter: targetFilter()})
	raw, err := e.do(ctx, nil, cdptarget.GetTargets.Method, request, callOptions{})
	var p struct {
		Infos []targetInfo `json:"targetInfos"`
	}
	if err != nil || json.Unmarshal(raw, &p) != nil {
		return // keep what the events said
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, info := range p.Infos {
		if t := e.targets[info.ID]; t != nil {
			t.title = info.Title
			if info.URL != "" { // it is empty while a navigation is under way
				t.url = info.URL
			}
		}
	}
}

// onAttached prepares a new session. The commands are sent at once and in order; the one that lets the target run
// comes last, so that no event is missed.
func (e *engine) onAttached(t, via *target, session string, waiting bool) {
	if t.session != "" {
		// A caller created a second session with the target. That one must not stay paused either.
		e.extraSessions[session] = t
		if waiting {
			second := &target{id: t.id, kind: t.kind, session: session}
			postCommand(e, second, runtime.RunIfWaitingForDebugger, cdp.Empty{}, nil)
		}
		return
	}
	t.session = session
	e.sessions[session] = t
	if via != nil && !via.within(t) && t.kind != "page" {
		t.parent = via
	}
	postCommand(e, t, cdptarget.SetAutoAttach, e.autoAttachParams(), nil)
	if hasPage(t.kind) {
		// Without Page.enable no dialog is reported, and an open one can only be closed by a reload. Until Chrome
		// has processed it, a navigation to another process discards it; so the target is not ready before.
		postCommand(e, t, page.Enable, page.EnableParams{}, func(reply) {
			t.ready = true
			e.broadcast()
		})
	} else {
		t.ready = true
	}
	for l := range e.listeners {
		if l.covers(t) {
			for _, d := range l.domains {
				e.enable(t, d)
			}
		}
	}
	if waiting {
		postCommand(e, t, runtime.RunIfWaitingForDebugger, cdp.Empty{}, nil)
	}
}

func hasPage(kind string) bool { return kind == "page" || kind == "iframe" || kind == "webview" }

func (e *engine) onTargetGone(method string, params json.RawMessage) {
	var p struct {
		ID      string `json:"targetId"`
		Session string `json:"sessionId"`
	}
	if json.Unmarshal(params, &p) != nil {
		return
	}
	switch method {
	case cdptarget.TargetCrashed.Method:
		if t := e.targets[p.ID]; t != nil {
			e.onCrash(t)
		}
	case cdptarget.DetachedFromTarget.Method:
		delete(e.extraSessions, p.Session)
		if t := e.sessions[p.Session]; t != nil {
			delete(e.sessions, p.Session)
			t.session, t.ready, t.domains, t.dialog = "", false, map[string]*domain{}, nil
			e.failPending(t, closedTarget(t))
			// Destroyed frames and workers are reported only where targets are discovered.
			if !hasPage(t.kind) || t.kind == "iframe" {
				e.forget(t)
			}
		}
	default:
		if t := e.targets[p.ID]; t != nil {
			e.forget(t)
		}
	}
	e.broadcast()
}

func (e *engine) forget(t *target) {
	t.closed = true
	delete(e.targets, t.id)
	delete(e.sessions, t.session)
	for i, other := range e.order {
		if other == t {
			e.order = append(e.order[:i:i], e.order[i+1:]...)
			break
		}
	}
	// Page.close of a page that is now closed has succeeded.
	for _, p := range e.pending {
		if p.target == t && p.method == page.CommandClose {
			e.finish(p, reply{result: json.RawMessage("{}")})
		}
	}
	e.failPending(t, closedTarget(t))
	for l := range e.listeners {
		if l.scope == t {
			l.finish("closed")
		}
	}
	if e.current == t {
		e.current = e.newestPage(commandLine)
	}
	maps.DeleteFunc(e.callerCurrent, func(_ string, current *target) bool { return current == t })
	if e.sparePage == t {
		e.sparePage = nil
	}
}

// failPending fails the calls that wait for a target.
func (e *engine) failPending(t *target, why *Error) {
	for _, p := range e.pending {
		if p.target == t {
			e.finish(p, reply{err: why})
		}
	}
}

// onCrash fails everything that waits for a crashed renderer. That includes navigations: one that was under way may
// never be answered. Chrome reports each crash by two events. When the second arrives, only the command that
// revives the target can be waiting, and the event of the revival is still to come.
func (e *engine) onCrash(t *target) {
	if t.crashed {
		return
	}
	t.crashed, t.needsReenable, t.dialog, t.pendingURL = true, true, nil, ""
	e.failPending(t, crashedTarget(t))
	e.broadcast()
}

// reenableDomains enables a crashed page's domains again for its listeners: the enable commands sent to the dead
// renderer had no effect. It runs once the new page exists, because whatever is sent earlier is lost, too.
func (e *engine) reenableDomains(t *target) {
	for name, d := range t.domains {
		if d.listeners > 0 {
			e.setDomain(t, name, true, nil) // events that the new page has sent so far are not replayed
		}
	}
}

func (e *engine) onDialogEvent(t *target, method string, params json.RawMessage) {
	if method == page.JavascriptDialogClosed.Method {
		t.dialog = nil
		e.broadcast()
		return
	}
	d := &Dialog{}
	if json.Unmarshal(params, d) != nil {
		return
	}
	t.dialog = d
	var blocked []*pending
	for _, p := range e.pending {
		if p.target != nil && p.target.root() == t && !d.endedBy(p.method) {
			blocked = append(blocked, p)
		}
	}
	if owner := dialogOwner(e.pending, t); owner != nil && (owner.onDialog == DialogAccept ||
		owner.onDialog == DialogDismiss) {
		e.answerDialog(t, owner.onDialog) // the calls behind it go on when it is closed
	} else {
		for _, p := range blocked {
			e.finish(p, reply{err: blockedTarget(t, d)})
		}
	}
	e.broadcast()
}

// dialogOwner returns the call that opened a dialog of a page: the one that was sent first. The page runs one call
// after the other, and those behind it have not begun.
func dialogOwner(calls map[int64]*pending, t *target) (owner *pending) {
	for _, p := range calls {
		if p.target != nil && p.target.root() == t && (owner == nil || p.id < owner.id) {
			owner = p
		}
	}
	return owner
}

// answerDialog closes the open dialog of a page. The engine is locked.
func (e *engine) answerDialog(t *target, how string) {
	answer := page.HandleJavaScriptDialogParams{Accept: how == DialogAccept}
	if t.dialog != nil && answer.Accept {
		answer.PromptText = t.dialog.Default // the preset text, as when a person presses OK
	}
	postCommand(e, t, page.HandleJavaScriptDialog, answer, nil)
}

// onNavigating tracks whether a page is being left for another URL.
func (t *target) onNavigating(method string, params json.RawMessage) {
	var p struct {
		Frame string `json:"frameId"`
		URL   string `json:"url"`
		Type  string `json:"navigationType"`
	}
	switch {
	case json.Unmarshal(params, &p) != nil || p.Frame != t.id:
	case method == page.FrameStoppedLoading.Method:
		t.pendingURL = ""
	case !strings.HasSuffix(strings.ToLower(p.Type), "samedocument"):
		t.pendingURL = p.URL
	}
}

func (e *engine) onNavigated(t *target, method string, params json.RawMessage) {
	if method == page.LoadEventFired.Method {
		t.loaded = true
		e.broadcast()
		return
	}
	var p struct {
		Frame struct {
			Parent string `json:"parentId"`
			Loader string `json:"loaderId"`
			URL    string `json:"url"`
		} `json:"frame"`
	}
	if json.Unmarshal(params, &p) != nil || p.Frame.Parent != "" {
		return
	}
	e.enforceURL(t, p.Frame.URL)
	if t == e.sparePage && p.Frame.URL != blankURL && !strings.HasPrefix(p.Frame.URL, "chrome-error:") {
		e.sparePage = nil // a caller has navigated it
	}
	if len(t.loaders) == 8 {
		t.loaders = append(t.loaders[:0], t.loaders[1:]...)
	}
	t.loaders = append(t.loaders, p.Frame.Loader)
	t.loaded, t.crashed, t.dialog, t.pendingURL = false, false, nil, ""
	if t.needsReenable {
		t.needsReenable = false
		e.reenableDomains(t)
	}
	e.broadcast()
}
