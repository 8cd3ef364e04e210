package keeper

import (
	"encoding/json"
	"strings"
	"time"
)

type targetInfo struct {
	ID     string `json:"targetId"`
	Type   string `json:"type"`
	URL    string `json:"url"`
	Title  string `json:"title"`
	Opener string `json:"openerId"`
	Parent string `json:"parentId"`
}

// event follows what changes the state of targets, keeps the event and hands it to
// listeners. The engine is locked.
func (e *engine) event(session, method string, params json.RawMessage) {
	t := e.sessions[session]
	id := BrowserTarget
	if t != nil {
		id = t.id
	}
	r := &record{t: time.Now().UnixMilli(), target: id, method: method, params: params, replayed: t != nil && t.replaying(method)}
	e.events.add(r)
	for l := range e.listeners {
		l.offer(r, t)
	}
	switch method {
	case "Target.targetCreated", "Target.targetInfoChanged", "Target.attachedToTarget":
		e.targetSeen(t, method, params)
	case "Target.targetDestroyed", "Target.targetCrashed", "Target.detachedFromTarget":
		e.targetLost(method, params)
	case "Inspector.targetCrashed":
		if t != nil {
			e.crash(t)
		}
	case "Inspector.targetReloadedAfterCrash":
		if t != nil {
			t.crashed = false
			e.broadcast()
		}
	case "Page.javascriptDialogOpening", "Page.javascriptDialogClosed":
		if t != nil {
			e.dialog(t, method, params)
		}
	case "Page.frameNavigated", "Page.loadEventFired":
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
	if t == nil {
		t = &target{id: p.Info.ID, kind: p.Info.Type, domains: map[string]*domain{}}
		e.targets[t.id] = t
		e.order = append(e.order, t)
	}
	t.kind, t.url, t.title, t.opener = p.Info.Type, p.Info.URL, p.Info.Title, p.Info.Opener
	if method == "Target.attachedToTarget" {
		e.attached(t, via, p.Session, p.Waiting)
	}
	if e.current == nil && t.kind == "page" {
		e.current = t
	}
	e.broadcast()
}

// attached prepares a new session. The commands are sent at once and in order, the
// one that lets the target run last, so that nothing of its life is missed.
func (e *engine) attached(t, via *target, session string, waiting bool) {
	if t.session != "" {
		// A second session of the same target, made by a caller: it must not stay paused.
		if waiting {
			second := &target{id: t.id, kind: t.kind, session: session}
			e.post(second, "Runtime.runIfWaitingForDebugger", "", nil)
		}
		return
	}
	t.session = session
	e.sessions[session] = t
	if via != nil && !via.within(t) && t.kind != "page" {
		t.parent = via
	}
	if e.lazy {
		e.post(t, "Target.setAutoAttach", `{"autoAttach":true,"waitForDebuggerOnStart":false,"flatten":true}`, nil)
	} else {
		e.post(t, "Target.setAutoAttach", autoAttach, nil)
	}
	if hasPage(t.kind) {
		// Without it no dialog is ever told, and one that is open can then only be ended by a reload.
		// Until it is answered a navigation to another process forgets it, so the target is not ready.
		e.post(t, "Page.enable", "", func(reply) {
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
		e.post(t, "Runtime.runIfWaitingForDebugger", "", nil)
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
	case "Target.targetCrashed":
		if t := e.targets[p.ID]; t != nil {
			e.crash(t)
		}
	case "Target.detachedFromTarget":
		if t := e.sessions[p.Session]; t != nil {
			delete(e.sessions, p.Session)
			t.session, t.ready, t.domains, t.dialog = "", false, map[string]*domain{}, nil
			e.failPending(t, closedTarget(t), nil)
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
		if p.target == t && p.method == "Page.close" {
			e.finish(p, reply{result: json.RawMessage("{}")})
		}
	}
	e.failPending(t, closedTarget(t), nil)
	if e.current == t {
		e.current = nil
		for _, other := range e.order {
			if other.kind == "page" {
				e.current = other
			}
		}
	}
	if e.spare == t {
		e.spare = nil
	}
}

// failPending ends the calls that wait for a target, but those that spare says.
func (e *engine) failPending(t *target, why *Error, spare func(*pending) bool) {
	for _, p := range e.pending {
		if p.target == t && (spare == nil || !spare(p)) {
			e.finish(p, reply{err: why})
		}
	}
}

func (e *engine) crash(t *target) {
	t.crashed, t.dialog = true, nil
	e.failPending(t, crashedTarget(t), nil)
	e.broadcast()
}

func (e *engine) dialog(t *target, method string, params json.RawMessage) {
	if method == "Page.javascriptDialogClosed" {
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
		case unblocks(p.method) && d.Type != "beforeunload":
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
	accept := `{"accept":false}`
	if how == DialogAccept {
		accept = `{"accept":true}`
	}
	e.post(t, "Page.handleJavaScriptDialog", accept, nil)
}

func (e *engine) navigated(t *target, method string, params json.RawMessage) {
	if method == "Page.loadEventFired" {
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
	if t == e.spare && p.Frame.URL != "about:blank" && !strings.HasPrefix(p.Frame.URL, "chrome-error:") {
		e.spare = nil // a caller has made it his own
	}
	if len(t.loaders) == 8 {
		t.loaders = append(t.loaders[:0], t.loaders[1:]...)
	}
	t.loaders = append(t.loaders, p.Frame.Loader)
	t.loaded, t.crashed, t.dialog = false, false, nil
	e.broadcast()
}
