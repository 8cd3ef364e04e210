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

// Of events only the fields that matter here are read, so that nothing else that a
// later browser says in them can be in the way.
type targetInfo struct {
	ID      string `json:"targetId"`
	Type    string `json:"type"`
	URL     string `json:"url"`
	Title   string `json:"title"`
	Opener  string `json:"openerId"`
	Parent  string `json:"parentId"`
	Context string `json:"browserContextId"`
}

// event follows what changes the state of targets, keeps the event and hands it to
// listeners. The engine is locked.
func (e *engine) event(session, method string, params json.RawMessage) {
	t := e.sessions[session]
	id := BrowserTarget
	if t != nil {
		id = t.id
	}
	switch method {
	case cdptarget.TargetCreated.Method, cdptarget.TargetInfoChanged.Method, cdptarget.AttachedToTarget.Method:
		e.targetSeen(t, method, params) // first, for whose the event is follows from it
	}
	of := t
	if of == nil && e.seconds[session] != nil {
		of = e.seconds[session]
		id = of.id
	}
	r := &record{t: time.Now().UnixMilli(), target: id, method: method, params: params, owner: e.ownerOf(of, method, params), replayed: t != nil && t.replaying(method)}
	e.events.add(r)
	for l := range e.listeners {
		l.offer(r, t)
	}
	switch method {
	case cdptarget.TargetDestroyed.Method, cdptarget.TargetCrashed.Method, cdptarget.DetachedFromTarget.Method:
		e.targetLost(method, params)
	case inspector.TargetCrashed.Method:
		if t != nil {
			e.crash(t)
		}
	case inspector.TargetReloadedAfterCrash.Method:
		if t != nil {
			t.crashed = false
			e.broadcast()
		}
	case page.JavascriptDialogOpening.Method, page.JavascriptDialogClosed.Method:
		if t != nil {
			e.dialog(t, method, params)
		}
	case page.FrameRequestedNavigation.Method:
		if t != nil {
			e.requested(t, params)
		}
	case page.FrameStartedNavigating.Method, page.FrameStoppedLoading.Method:
		if t != nil && t.kind == "page" {
			t.leave(method, params)
		}
	case page.FrameNavigated.Method, page.LoadEventFired.Method:
		if t != nil && t.kind == "page" {
			e.navigated(t, method, params)
		}
	}
}

func (e *engine) targetSeen(via *target, method string, params json.RawMessage) {
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
		return // a frame of a page that was left, kept for going back: nothing reaches it until it is attached again
	}
	if fresh {
		t = &target{id: p.Info.ID, kind: p.Info.Type, domains: map[string]*domain{}}
		e.targets[t.id] = t
		e.order = append(e.order, t)
	}
	t.kind, t.url, t.title, t.opener = p.Info.Type, p.Info.URL, p.Info.Title, p.Info.Opener
	e.adopt(t, p.Info.Context, via)
	if fresh {
		e.guess(t)
	}
	e.keepWithin(t, t.url)
	if fresh {
		e.keepBounded(t)
	}
	if method == cdptarget.AttachedToTarget.Method {
		e.attached(t, via, p.Session, p.Waiting)
	}
	if fresh && e.lazy && method == cdptarget.TargetCreated.Method {
		for l := range e.listeners {
			if l.everyPage() && l.attaches(t) {
				e.attachTold(t)
				break
			}
		}
	}
	if e.current == nil && t.kind == "page" && !e.ofPlugin(t) {
		e.current = t
	}
	e.broadcast()
}

// refreshTime bounds how long a list of targets waits for a browser that does not answer.
const refreshTime = 500 * time.Millisecond

// refresh asks for titles and addresses again: a page's title comes after the last event that carries it.
func (e *engine) refresh(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, refreshTime)
	defer cancel()
	raw, err := e.do(ctx, nil, cdptarget.GetTargets.Method, mustJSON(cdptarget.GetTargetsParams{Filter: pages()}), opts{})
	var p struct {
		Infos []targetInfo `json:"targetInfos"`
	}
	if err != nil || json.Unmarshal(raw, &p) != nil {
		return // what the events said must do
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, info := range p.Infos {
		if t := e.targets[info.ID]; t != nil {
			t.title = info.Title
			if info.URL != "" { // as it is while a navigation is under way
				t.url = info.URL
			}
		}
	}
}

// attached prepares a new session. The commands are sent at once and in order, the
// one that lets the target run last, so that nothing of its life is missed.
func (e *engine) attached(t, via *target, session string, waiting bool) {
	if t.session != "" {
		// A second session of the same target, made by a caller: it must not stay paused.
		e.seconds[session] = t
		if waiting {
			second := &target{id: t.id, kind: t.kind, session: session}
			tell(e, second, runtime.RunIfWaitingForDebugger, cdp.Empty{}, nil)
		}
		return
	}
	t.session = session
	e.sessions[session] = t
	if via != nil && !via.within(t) && t.kind != "page" {
		t.parent = via
	}
	tell(e, t, cdptarget.SetAutoAttach, e.autoAttach(), nil)
	if hasPage(t.kind) {
		// Without it no dialog is ever told, and one that is open can then only be ended by a reload.
		// Until it is answered a navigation to another process forgets it, so the target is not ready.
		tell(e, t, page.Enable, page.EnableParams{}, func(reply) {
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
		tell(e, t, runtime.RunIfWaitingForDebugger, cdp.Empty{}, nil)
	}
}

func hasPage(kind string) bool { return kind == "page" || kind == "iframe" || kind == "webview" }

func (e *engine) targetLost(method string, params json.RawMessage) {
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
			e.crash(t)
		}
	case cdptarget.DetachedFromTarget.Method:
		delete(e.seconds, p.Session)
		if t := e.sessions[p.Session]; t != nil {
			delete(e.sessions, p.Session)
			t.session, t.ready, t.domains, t.dialog = "", false, map[string]*domain{}, nil
			e.failPending(t, closedTarget(t))
			// Frames and workers are told as destroyed only where targets are discovered.
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
	// Closing what is closed has succeeded.
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
		e.current = e.newest(commandLine)
	}
	maps.DeleteFunc(e.currents, func(_ string, current *target) bool { return current == t })
	if e.spare == t {
		e.spare = nil
	}
}

// failPending ends the calls that wait for a target.
func (e *engine) failPending(t *target, why *Error) {
	for _, p := range e.pending {
		if p.target == t {
			e.finish(p, reply{err: why})
		}
	}
}

// crash fails what waits for a renderer that is gone, a navigation too, for one that was
// under way may never be answered. Two events tell of each crash; when the second comes,
// only what revives the target can be waiting, and what told of the revival comes after it.
func (e *engine) crash(t *target) {
	if t.crashed {
		return
	}
	t.crashed, t.deaf, t.dialog, t.leaving = true, true, nil, ""
	e.failPending(t, crashedTarget(t))
	e.broadcast()
}

// turnOnAgain says again what a crashed page was told for streams: Chrome answered it, but nobody heard it. It is said when the new page is there, for what comes
// before is lost as well.
func (e *engine) turnOnAgain(t *target) {
	for name, d := range t.domains {
		if d.listeners > 0 {
			e.turn(t, name, true, nil) // what the new page has said until now is no history
		}
	}
}

func (e *engine) dialog(t *target, method string, params json.RawMessage) {
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
	answer := ""
	for _, p := range e.pending {
		if p.target == nil || p.target.root() != t {
			continue
		}
		switch {
		case p.onDialog == DialogAccept || p.onDialog == DialogDismiss:
			answer = p.onDialog
		case d.endedBy(p.method):
		default:
			e.finish(p, reply{err: blockedTarget(t, d)})
		}
	}
	if answer != "" {
		e.answerDialog(t, answer)
	}
	e.broadcast()
}

// answerDialog answers the open dialog of a page. The engine is locked.
func (e *engine) answerDialog(t *target, how string) {
	answer := page.HandleJavaScriptDialogParams{Accept: how == DialogAccept}
	if t.dialog != nil && answer.Accept {
		answer.PromptText = t.dialog.Default // what stands there already, as for a person who presses OK
	}
	tell(e, t, page.HandleJavaScriptDialog, answer, nil)
}

// leave follows whether a page is being left for another one.
func (t *target) leave(method string, params json.RawMessage) {
	var p struct {
		Frame string `json:"frameId"`
		URL   string `json:"url"`
		Type  string `json:"navigationType"`
	}
	switch {
	case json.Unmarshal(params, &p) != nil || p.Frame != t.id:
	case method == page.FrameStoppedLoading.Method:
		t.leaving = ""
	case !strings.HasSuffix(strings.ToLower(p.Type), "samedocument"):
		t.leaving = p.URL
	}
}

func (e *engine) navigated(t *target, method string, params json.RawMessage) {
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
	e.keepWithin(t, p.Frame.URL)
	if t == e.spare && p.Frame.URL != blank && !strings.HasPrefix(p.Frame.URL, "chrome-error:") {
		e.spare = nil // a caller has made it his own
	}
	if len(t.loaders) == 8 {
		t.loaders = append(t.loaders[:0], t.loaders[1:]...)
	}
	t.loaders = append(t.loaders, p.Frame.Loader)
	t.loaded, t.crashed, t.dialog, t.leaving = false, false, nil, ""
	if t.deaf {
		t.deaf = false
		e.turnOnAgain(t)
	}
	e.broadcast()
}
