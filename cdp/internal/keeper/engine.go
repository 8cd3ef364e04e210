package keeper

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	cdpbrowser "github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	cdptarget "github.com/chromedp/cdproto/target"

	"github.com/parley-tools/parley/cdp/internal/browser"
	"github.com/parley-tools/parley/host"
)

// engine speaks with one browser: it numbers messages, follows targets, and sees to
// it that every call ends. All state is under mu; nothing blocks while holding it.
type engine struct {
	conn       browser.Conn
	name       string
	lazy       bool // a browser that others run: attach to a target when it is first used
	maxMessage int

	mu        sync.Mutex
	lastID    int64
	pending   map[int64]*pending
	targets   map[string]*target
	order     []*target // oldest first
	sessions  map[string]*target
	contexts  map[string]string  // of plugins: the caller's name by the id of his browser context
	current   *target            // the person's
	currents  map[string]*target // other callers', by their names
	scopes    map[string]*scope  // of plugins, by their names
	entering  chan struct{}      // held while a scope is made
	seconds   map[string]*target // of sessions that callers have made beside ours
	egress    host.Egress        // nil: plugins are refused
	chrome    int                // the browser's process
	spare     *target            // the blank page that the first open uses
	begun     bool               // what comes from now on was asked for by somebody
	asked     []askedPage        // by pages, the newest last
	downloads map[string]string  // under way: whose they are, by their ids
	events    *ring
	listeners map[*listener]bool
	calls     int64
	gone      *Error
	spool     *spool        // the reply that is being read, see spill
	changed   chan struct{} // closed and replaced at every change that somebody may wait for

	done chan struct{} // closed when the connection has ended
}

type target struct {
	id, kind, url, title string
	opener               string
	owner                string  // the name of the caller who opened it; "" if nobody did
	guessed              bool    // whether the owner may yet turn out to be another
	parent               *target // of a frame or worker
	session              string
	attaching            bool // in a browser of others: asked for, not yet there
	ready                bool // events of the page are on
	crashed, closed      bool
	deaf                 bool   // since it crashed, until it shows a page again
	strayed              *Error // why it is being closed: its owner may not have it
	dialog               *Dialog
	leaving              string   // for this URL, which has not come yet
	loaders              []string // of the main frame, the newest last
	loaded               bool     // the newest loader's load event came
	domains              map[string]*domain
}

// pending is a message that waits for its reply.
type pending struct {
	id       int64
	method   string
	by       string  // who asks; "" if the keeper does
	target   *target // nil: the browser
	maxBytes int64
	onDialog string
	pieces   bool
	done     chan reply
	after    func(reply) // called with the engine locked; may be nil
}

// reply is one of a result, a large result in a spool, and an error.
type reply struct {
	result json.RawMessage
	spool  *spool
	err    *Error
}

func newEngine(conn browser.Conn, name string, lazy bool, cfg *Config) *engine {
	e := &engine{
		conn: conn, name: name, lazy: lazy, maxMessage: cfg.MaxMessage,
		lastID:    1, // browser.AskVersion used it
		pending:   map[int64]*pending{},
		targets:   map[string]*target{},
		sessions:  map[string]*target{},
		contexts:  map[string]string{},
		currents:  map[string]*target{},
		scopes:    map[string]*scope{},
		entering:  make(chan struct{}, 1),
		seconds:   map[string]*target{},
		downloads: map[string]string{},
		events:    newRing(cfg.RingEvents, cfg.RingBytes),
		listeners: map[*listener]bool{},
		changed:   make(chan struct{}),
		done:      make(chan struct{}),
	}
	conn.Spill(e.spill)
	return e
}

// start begins to read and to follow targets.
func (e *engine) start(ctx context.Context) *Error {
	go e.read()
	if _, err := ask(ctx, e, nil, cdptarget.SetDiscoverTargets, discovery(), opts{}); err != nil {
		return err
	}
	if e.lazy {
		return nil
	}
	if _, err := ask(ctx, e, nil, cdptarget.SetAutoAttach, e.autoAttach(), opts{}); err != nil {
		return err
	}
	err := e.wait(ctx, "for the first page", func() (bool, *Error) {
		for _, t := range e.order {
			if t.kind == "page" && t.session != "" {
				e.current, e.spare, e.begun = t, t, true
				return true, nil
			}
		}
		return false, nil
	})
	return err
}

// pages leaves out tabs, which only wrap pages, and Chrome's own surfaces, such as the
// address bar's list.
func pages() cdptarget.Filter {
	return cdptarget.Filter{{Type: "browser", Exclude: true}, {Type: "tab", Exclude: true}, {Type: "browser_ui", Exclude: true}, {}}
}

func discovery() cdptarget.SetDiscoverTargetsParams {
	return cdptarget.SetDiscoverTargetsParams{Discover: true, Filter: pages()}
}

// autoAttach follows what a target opens. In our own browser it starts paused, so that
// nothing of its life is missed; in a browser of others it must not stop for us.
func (e *engine) autoAttach() cdptarget.SetAutoAttachParams {
	return cdptarget.SetAutoAttachParams{AutoAttach: true, WaitForDebuggerOnStart: !e.lazy, Flatten: new(true), Filter: pages()}
}

// read takes every message of the browser until the end.
func (e *engine) read() {
	for {
		m, err := e.conn.Receive()
		if err != nil {
			e.fail(errf(CodeChromeConnection, "the connection to the browser has ended: it was closed or has crashed"))
			return
		}
		e.handle(m)
	}
}

// fail is the end of the connection.
func (e *engine) fail(why *Error) {
	e.end(why)
	close(e.done)
}

// end ends everything that waits. Before a browser is ended it is called for itself: the last messages would say that
// targets were closed.
func (e *engine) end(why *Error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.gone == nil {
		e.gone = why
	}
	for _, p := range e.pending {
		e.finish(p, reply{err: e.gone})
	}
	for l := range e.listeners {
		l.finish("closed")
	}
	e.broadcast()
}

func (e *engine) handle(m browser.Message) {
	var (
		id              int64
		method, session string
		params, result  json.RawMessage
		failure         json.RawMessage
	)
	err := fields(m.Data, func(key, value []byte) (err error) {
		switch string(key) {
		case "id":
			id, err = strconv.ParseInt(string(value), 10, 64)
		case "method":
			method, err = text(value)
		case "sessionId":
			session, err = text(value)
		case "params":
			params = value
		case "result":
			result = value
		case "error":
			failure = value
		}
		return err
	})
	e.mu.Lock()
	defer e.mu.Unlock()
	if m.Spilled {
		e.spilled(id)
		return
	}
	if m.Cut() {
		if p := e.pending[id]; p != nil && id != 0 {
			e.finish(p, reply{err: &Error{Code: CodeLimitExceeded, Bytes: m.Size, Message: fmt.Sprintf(
				"the reply to %s has %d bytes; at most %d are read", p.method, m.Size, e.maxMessage)}})
		} else if id == 0 {
			e.events.skip()
			for l := range e.listeners {
				l.lose(method, e.events.lastSeq)
			}
		}
		return
	}
	if err != nil {
		return // not a message; what waits for it ends by its own deadline
	}
	if id == 0 {
		e.event(session, method, params)
		return
	}
	p := e.pending[id]
	if p == nil {
		return // abandoned
	}
	switch {
	case failure != nil:
		e.finish(p, reply{err: chromeError(p.method, failure)})
	case p.maxBytes > 0 && int64(len(result)) > p.maxBytes:
		e.finish(p, reply{err: &Error{Code: CodeLimitExceeded, Bytes: int64(len(result)), Message: fmt.Sprintf(
			"the result of %s has %d bytes; at most %d were asked for", p.method, len(result), p.maxBytes)}})
	default:
		e.finish(p, reply{result: result})
	}
}

// finish delivers a reply, at once: it never waits behind events.
func (e *engine) finish(p *pending, r reply) {
	delete(e.pending, p.id)
	if r.err != nil && r.err.Target == "" && p.target != nil {
		withTarget := *r.err
		withTarget.Target = p.target.id
		r.err = &withTarget
	}
	if p.after != nil {
		p.after(r)
	}
	p.done <- r
}

func (e *engine) broadcast() {
	close(e.changed)
	e.changed = make(chan struct{})
}

// wait waits until ready, which is called with the engine locked, says so or fails.
func (e *engine) wait(ctx context.Context, what string, ready func() (bool, *Error)) *Error {
	for {
		e.mu.Lock()
		ok, err := ready()
		if !ok && err == nil {
			err = e.gone
		}
		changed := e.changed
		e.mu.Unlock()
		if ok || err != nil {
			return err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return contextError(ctx, "waiting "+what)
		}
	}
}

func contextError(ctx context.Context, what string) *Error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return errf(CodeTimeout, "%s took longer than allowed", what)
	}
	return errf(CodeTimeout, "%s was given up, because the caller has gone", what)
}

// opts are the wishes of a call.
type opts struct {
	by       string
	maxBytes int64
	onDialog string
	pieces   bool
}

// ask sends a command of our own, made of the protocol's generated types, and reads its
// result with encoding/json: it takes what later browsers add or a page's broken text,
// where the generated types' own decoder is strict.
func ask[P, R any](ctx context.Context, e *engine, t *target, c cdp.Command[P, R], params P, o opts) (result R, err *Error) {
	raw, err := e.do(ctx, t, c.Method, mustJSON(params), o)
	if err != nil {
		return result, err
	}
	if err := json.Unmarshal(raw, &result); err != nil {
		return result, errf(CodeProtocolError, "the result of %s cannot be read: %v", c.Method, err)
	}
	return result, nil
}

// tell is ask for a reply that nobody waits for; after may be nil. The engine is locked.
func tell[P, R any](e *engine, t *target, c cdp.Command[P, R], params P, after func(reply)) {
	e.post(t, c.Method, mustJSON(params), after)
}

// do sends one command to a target (nil: the browser) and waits for its reply, the
// end of the target or the context's.
func (e *engine) do(ctx context.Context, t *target, method string, params json.RawMessage, o opts) (json.RawMessage, *Error) {
	r := e.exchange(ctx, t, method, params, o)
	return r.result, r.err
}

// exchange is do for a caller that may take a large result in pieces.
func (e *engine) exchange(ctx context.Context, t *target, method string, params json.RawMessage, o opts) reply {
	started := time.Now()
	for {
		e.mu.Lock()
		if err := e.refusal(t, method, o); err != nil {
			e.mu.Unlock()
			return reply{err: err}
		}
		root := t.root()
		if root == nil || root.dialog == nil || root.dialog.endedBy(method) {
			break
		}
		// The caller wants dialogs answered: this one first.
		e.answerDialog(root, o.onDialog)
		e.mu.Unlock()
		if err := e.wait(ctx, "for the dialog to close", func() (bool, *Error) { return root.dialog == nil || root.closed || root.crashed, nil }); err != nil {
			return reply{err: err}
		}
	}
	p := &pending{method: method, by: o.by, target: t, maxBytes: o.maxBytes, onDialog: o.onDialog, pieces: o.pieces}
	err := e.send(p, params)
	e.mu.Unlock()
	if err != nil {
		return reply{err: err}
	}
	select {
	case r := <-p.done:
		return r
	case <-ctx.Done():
	}
	e.mu.Lock()
	if method == cdptarget.CommandCreateTarget {
		p.after = e.closeMade
	} else {
		delete(e.pending, p.id)
	}
	e.mu.Unlock()
	select {
	case r := <-p.done: // it came at the same moment
		return r
	default:
	}
	if !errors.Is(ctx.Err(), context.DeadlineExceeded) {
		go e.unstick(t)
		return reply{err: contextError(ctx, method)}
	}
	failure := errf(CodeTimeout, "%s did not answer within %s", method, time.Since(started).Round(10*time.Millisecond))
	if said := e.unstick(t); said != "" {
		failure.Message += "; " + said
	}
	if t != nil {
		failure.Target = t.id
	}
	return reply{err: failure}
}

// closeMade closes a target that nobody waits for any more: it would belong to nobody. The engine is locked.
func (e *engine) closeMade(r reply) {
	var made cdptarget.CreateTargetResult
	if json.Unmarshal(r.result, &made) == nil && made.TargetID != "" {
		e.shut(made.TargetID)
	}
}

// shut closes a target without waiting for it. The engine is locked.
func (e *engine) shut(id cdptarget.ID) {
	tell(e, nil, cdptarget.CloseTarget, cdptarget.CloseTargetParams{TargetID: id}, nil)
}

// refusal says why a call cannot be sent now.
func (e *engine) refusal(t *target, method string, o opts) *Error {
	switch {
	case e.gone != nil:
		return e.gone
	case t == nil:
		return nil
	case t.strayed != nil:
		return t.strayed
	case t.closed:
		return closedTarget(t)
	case t.crashed && !revives(method):
		return crashedTarget(t)
	case t.session == "":
		return errf(CodeNotFound, "target %s (%s) is not attached any more; try again", t.id, clip(t.url, 80))
	}
	if d := t.root().dialog; d != nil && !d.endedBy(method) && o.onDialog != DialogAccept && o.onDialog != DialogDismiss {
		return blockedTarget(t, d)
	}
	return nil
}

func closedTarget(t *target) *Error {
	e := errf(CodeNotFound, "target %s (%s) was closed", t.id, clip(t.url, 80))
	e.Target = t.id
	return e
}

func crashedTarget(t *target) *Error {
	e := errf(CodeTargetCrashed, "the renderer of target %s (%s) has crashed; Page.reload or Page.navigate revives it", t.id, clip(t.url, 80))
	e.Target = t.id
	return e
}

func blockedTarget(t *target, d *Dialog) *Error {
	way := `{"accept":true}, or reload or close the page`
	if d.Type == beforeUnload {
		way = `{"accept":true}, which leaves the page, or {"accept":false}, which stays`
	}
	e := errf(CodeBusy, "a JavaScript dialog is open and blocks the page: %s %q; answer it with Page.handleJavaScriptDialog %s", d.Type, clip(d.Message, 300), way)
	e.Target, e.Dialog = t.id, d
	return e
}

// revives names the commands that a crashed target takes.
func revives(method string) bool {
	return method == page.CommandNavigate || method == page.CommandReload || method == page.CommandClose
}

// beforeUnload is the type of the dialog that asks whether the page may be left.
const beforeUnload = "beforeunload"

// endedBy reports whether a command ends the dialog. While a page asks whether it may be left, Chrome takes what would leave it and does nothing.
func (d *Dialog) endedBy(method string) bool {
	return method == page.CommandHandleJavaScriptDialog || revives(method) && d.Type != beforeUnload
}

// root is the page whose dialogs block t: itself, or the page of a frame.
func (t *target) root() *target {
	for t != nil && t.kind == "iframe" && t.parent != nil {
		t = t.parent
	}
	return t
}

// within reports whether t is top or belongs to it, as its frame or worker.
func (t *target) within(top *target) bool {
	for t != nil && t != top {
		t = t.parent
	}
	return t != nil
}

// send numbers a message and queues it. The engine is locked.
func (e *engine) send(p *pending, params json.RawMessage) *Error {
	if e.gone != nil {
		return e.gone
	}
	e.lastID++
	p.id = e.lastID
	p.done = make(chan reply, 1)
	b := make([]byte, 0, len(params)+len(p.method)+96)
	b = strconv.AppendInt(append(b, `{"id":`...), p.id, 10)
	b = append(append(b, `,"method":`...), quoted(p.method)...)
	if len(params) > 0 {
		b = append(append(b, `,"params":`...), params...)
	}
	if p.target != nil {
		b = append(append(b, `,"sessionId":`...), quoted(p.target.session)...)
	}
	b = append(b, '}')
	if err := e.conn.Send(b); err != nil {
		var tooLarge *browser.TooLargeError
		if errors.As(err, &tooLarge) {
			return &Error{Code: CodeLimitExceeded, Message: p.method + ": " + err.Error()}
		}
		return errf(CodeChromeConnection, "%s was not sent: %v", p.method, err)
	}
	e.pending[p.id] = p
	return nil
}

// post sends a message whose reply nobody waits for. The engine is locked.
func (e *engine) post(t *target, method string, params json.RawMessage, after func(reply)) {
	if t != nil && t.session == "" {
		return
	}
	e.send(&pending{method: method, target: t, after: after}, params)
}

// unstick looks whether a target whose call was given up is busy with a script, stops
// the script, and says what it found. A target that only waits, as for a promise,
// answers the probe and is left alone.
func (e *engine) unstick(t *target) string {
	if t == nil {
		return ""
	}
	e.mu.Lock()
	idle := e.gone != nil || t.closed || t.crashed || t.session == "" || t.root().dialog != nil
	e.mu.Unlock()
	if idle {
		return ""
	}
	answered, forget, err := e.probe(t)
	defer forget()
	if err != nil {
		return "the browser has stopped reading"
	}
	select {
	case <-answered:
		return ""
	case <-time.After(probeTime):
	}
	e.mu.Lock()
	leaving := t.root().leaving
	if leaving == "" {
		tell(e, t, runtime.TerminateExecution, cdp.Empty{}, nil)
	}
	e.mu.Unlock()
	if leaving != "" { // what is sent now goes to the page that comes, whose script must not be stopped
		return "a navigation to " + clip(leaving, 200) + " is under way, which has not been answered"
	}
	select {
	case <-answered:
		return "the page was busy with a script that did not end, which was stopped"
	case <-time.After(stopTime):
		return "the page does not answer at all, and its script could not be stopped; Page.reload or closing it may help"
	}
}

// probe asks a target for what costs nothing.
func (e *engine) probe(t *target) (answered <-chan reply, forget func(), err *Error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	p := &pending{method: runtime.CommandEvaluate, target: t}
	err = e.send(p, mustJSON(runtime.EvaluateParams{Expression: "0", Silent: new(true)}))
	return p.done, func() {
		e.mu.Lock()
		delete(e.pending, p.id)
		e.mu.Unlock()
	}, err
}

const (
	// probeTime is long enough for a page on a busy machine: one that is only slow must not lose its script.
	probeTime = time.Second
	stopTime  = 2 * time.Second // for a script to be stopped
)

// call is the command of a client.
func (e *engine) call(ctx context.Context, by Caller, q CallRequest) reply {
	domain, command, ok := strings.Cut(q.Method, ".")
	if !ok || domain == "" || command == "" {
		return reply{err: errf(CodeInvalidArgs, "%q is not a command's name, as Page.navigate is", clip(q.Method, 80))}
	}
	if len(q.Params) > 0 && !object(q.Params) {
		return reply{err: errf(CodeInvalidArgs, "the parameters of %s are not one JSON object", q.Method)}
	}
	if err := checkOnDialog(q.OnDialog); err != nil {
		return reply{err: err}
	}
	e.mu.Lock()
	e.calls++
	e.mu.Unlock()
	if by.person() {
		return e.direct(ctx, by, q)
	}
	return e.called(ctx, by, q)
}

// direct sends a command where it belongs.
func (e *engine) direct(ctx context.Context, by Caller, q CallRequest) reply {
	o := opts{by: by.Name, maxBytes: q.MaxBytes, onDialog: q.OnDialog, pieces: q.Pieces}
	if q.Target == BrowserTarget || q.Target == "" && ofBrowser(domainOf(q.Method)) && q.Method != windowOf {
		r := e.exchanged(ctx, nil, q, o)
		if r.err == nil && q.Method == cdptarget.CommandCreateTarget {
			e.opened(by, r.result)
		}
		return r
	}
	t, err := e.resolve(by, q.Target)
	if err != nil {
		return reply{err: err}
	}
	e.mu.Lock()
	e.claim(by, t)
	if q.Method == page.CommandHandleJavaScriptDialog {
		t = t.root() // it answers for its frames
	}
	e.mu.Unlock()
	if err := e.attach(ctx, t, q.Method); err != nil {
		return reply{err: err}
	}
	return e.exchanged(ctx, t, q, o)
}

// exchanged is exchange for a caller's own command, which may change what the engine goes by.
func (e *engine) exchanged(ctx context.Context, t *target, q CallRequest, o opts) reply {
	r := e.exchange(ctx, t, q.Method, q.Params, o)
	if r.err == nil {
		e.mu.Lock()
		if t != nil {
			e.noteCalled(t, q.Method)
		}
		e.followOn(t, q.Method)
		e.mu.Unlock()
		if q.Method == cdpbrowser.CommandClose {
			e.awaitEnd(ctx)
		}
	}
	return r
}

// awaitEnd waits for the browser to end as it said it would: what is called next must not meet what is left of it.
func (e *engine) awaitEnd(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, closePatience)
	defer cancel()
	select {
	case <-e.done:
	case <-ctx.Done():
	}
}

func checkOnDialog(s string) *Error {
	switch s {
	case "", DialogFail, DialogAccept, DialogDismiss:
		return nil
	}
	return errf(CodeInvalidArgs, "on_dialog is %q; it is accept, dismiss or fail", clip(s, 40))
}

// windowOf is of the domain Browser and means the page that it is sent to.
const windowOf = "Browser.getWindowForTarget"

// ofBrowser names the domains that pages do not have, or that mean the browser.
func ofBrowser(domain string) bool {
	switch domain {
	case "Browser", "Target", "SystemInfo", "Tethering":
		return true
	}
	return false
}

// noteCalled remembers what a caller's own command changed. The engine is locked.
func (e *engine) noteCalled(t *target, method string) {
	domain, command, _ := strings.Cut(method, ".")
	switch {
	case command == "enable":
		t.domain(domain).byCaller = true
	case command == "disable":
		d := t.domain(domain)
		d.byCaller = false
		// Others still listen, or we need it ourselves to see dialogs and navigations.
		if d.listeners > 0 || domain == "Page" {
			e.post(t, domain+".enable", nil, nil)
		}
	}
}

// followOn says again how targets are followed, after a caller's own command may have said otherwise: without it what is opened would never be
// attached, and what is closed never be missed. The engine is locked.
func (e *engine) followOn(t *target, method string) {
	switch method {
	case cdptarget.CommandSetDiscoverTargets:
		tell(e, t, cdptarget.SetDiscoverTargets, discovery(), nil)
	case cdptarget.CommandSetAutoAttach:
		if t != nil || !e.lazy {
			tell(e, t, cdptarget.SetAutoAttach, e.autoAttach(), nil)
		}
	case cdptarget.CommandDetachFromTarget:
		for _, t := range e.order {
			if t.session == "" && !e.lazy {
				tell(e, nil, cdptarget.AttachToTarget, attachment(t), nil)
			}
		}
	}
}

func attachment(t *target) cdptarget.AttachToTargetParams {
	return cdptarget.AttachToTargetParams{TargetID: cdptarget.ID(t.id), Flatten: new(true)}
}

// attach makes sure that a target has a session in which a command can be sent, for as long as the caller waits.
func (e *engine) attach(ctx context.Context, t *target, method string) *Error {
	usable := func() bool {
		return t.session != "" && (t.ready || method == page.CommandHandleJavaScriptDialog || revives(method))
	}
	e.mu.Lock()
	now, unasked := usable() || t.closed || t.crashed, e.lazy && t.session == "" && !t.attaching
	e.mu.Unlock()
	if now {
		return nil
	}
	if unasked {
		if _, err := ask(ctx, e, nil, cdptarget.AttachToTarget, attachment(t), opts{}); err != nil {
			return err
		}
	}
	err := e.wait(ctx, "for target "+t.id+" to be attached", func() (bool, *Error) { return usable() || t.closed || t.crashed, nil })
	if err != nil && err.Code == CodeTimeout {
		err.Message += "; the page is busy, or has a JavaScript dialog open that was there before: Page.reload frees it"
	}
	return err
}

// attachTold attaches to a target of a browser of others without waiting for it. The engine is locked.
func (e *engine) attachTold(t *target) {
	t.attaching = true
	tell(e, nil, cdptarget.AttachToTarget, attachment(t), func(reply) {
		t.attaching = false
		e.broadcast()
	})
}

// resolve finds the target that a caller means by a selector. Of those that he may not use it does not even tell that they exist.
func (e *engine) resolve(by Caller, selector string) (*target, *Error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.gone != nil {
		return nil, e.gone
	}
	if selector == "" {
		if t := e.currentOf(by); t != nil {
			return t, nil
		}
		if by.person() {
			return nil, errf(CodeNotFound, "the browser has no page; open one")
		}
		return nil, errf(CodeNotFound, "%s has no page in this browser; open one", clip(by.Name, 80))
	}
	all := e.seen(by)
	if t := e.targets[selector]; t != nil && e.uses(by, t) {
		return t, nil
	}
	if n, err := strconv.Atoi(selector); err == nil && len(selector) < 4 {
		if n < 0 || n >= len(all) {
			return nil, errf(CodeNotFound, "there is no target %d; there are %d, counted from 0", n, len(all))
		}
		return all[n], nil
	}
	for _, match := range []func(*target) bool{
		func(t *target) bool { return len(selector) >= 4 && strings.HasPrefix(t.id, strings.ToUpper(selector)) },
		func(t *target) bool { return t.kind == "page" && strings.Contains(t.url, selector) },
		func(t *target) bool { return strings.Contains(t.url, selector) },
	} {
		var found []*target
		for _, t := range all {
			if match(t) {
				found = append(found, t)
			}
		}
		switch {
		case len(found) == 1:
			return found[0], nil
		case len(found) > 1:
			var names []string
			for _, t := range found[:min(len(found), 5)] {
				names = append(names, t.id+" "+clip(t.url, 60))
			}
			return nil, errf(CodeNotFound, "%q means %d targets: %s; give an id", clip(selector, 80), len(found), strings.Join(names, ", "))
		}
	}
	return nil, errf(CodeNotFound, "no target has the id or the index %q, or has it in its URL; there are %d", clip(selector, 80), len(all))
}

// open makes a page, or takes the blank one of the start, and waits for its load.
func (e *engine) open(ctx context.Context, by Caller, q OpenRequest) (Page, *Error) {
	if q.URL == "" {
		q.URL = blank
	}
	if err := checkOnDialog(q.OnDialog); err != nil {
		return Page{}, err
	}
	if by.plugin() {
		return e.openWithin(ctx, by, q)
	}
	e.mu.Lock()
	e.calls++
	t := e.spare
	e.spare = nil
	usable := t != nil && !t.closed && !t.crashed && t.dialog == nil && by.sees(t.owner)
	if usable {
		e.take(by, t)
	}
	e.mu.Unlock()
	if !usable {
		var err *Error
		if t, err = e.newPage(ctx, by, ""); err != nil {
			return Page{}, err
		}
	}
	return e.show(ctx, by, t, q, usable)
}

// openWithin is open for a plugin.
func (e *engine) openWithin(ctx context.Context, by Caller, q OpenRequest) (Page, *Error) {
	s, leave, err := e.enter(ctx, by)
	if err != nil {
		return Page{}, err
	}
	defer leave()
	e.mu.Lock()
	e.calls++
	e.mu.Unlock()
	t, err := e.newPage(ctx, by, s.context)
	if err != nil {
		return Page{}, err
	}
	since := s.proxy.refusals()
	p, err := e.show(ctx, by, t, q, false)
	if err != nil && err.Code == CodeNavigationFailed {
		if refused := s.refusedDial(since, q.URL); refused != nil {
			return Page{}, refused
		}
	}
	return p, err
}

// show brings a new page to a URL and makes it the current one; first says that it is the one of the browser's start.
func (e *engine) show(ctx context.Context, by Caller, t *target, q OpenRequest, first bool) (Page, *Error) {
	err := e.attach(ctx, t, "")
	if err == nil {
		e.settle(ctx, t)
		err = e.navigate(ctx, t, q)
	}
	if err != nil {
		e.discardFailed(by, t, err, first, ctx.Err() == context.Canceled)
		return Page{}, err
	}
	e.mu.Lock()
	e.makeCurrent(by, t)
	e.mu.Unlock()
	return e.page(ctx, t)
}

// settle waits until a new page shows its blank document, which it does by loading
// it: that navigation's end would abort ours. The title tells; a browser that gives
// the blank page none costs the time, no more.
func (e *engine) settle(ctx context.Context, t *target) {
	ctx, cancel := context.WithTimeout(ctx, settleTime)
	defer cancel()
	e.wait(ctx, "for the blank page", func() (bool, *Error) { return t.title != "" || t.closed || t.crashed, nil })
}

const settleTime = 5 * time.Second

// discardFailed removes a page that never had content, or whose caller has given it up; one that only is slow,
// or shows a dialog, stays and is the current target, so that it can be looked at.
func (e *engine) discardFailed(by Caller, t *target, err *Error, first, givenUp bool) {
	ctx, cancel := context.WithTimeout(context.Background(), discardTime)
	defer cancel()
	switch {
	case !givenUp && err.Code != CodeNavigationFailed && err.Code != CodeProtocolError:
		e.mu.Lock()
		e.makeCurrent(by, t)
		e.mu.Unlock()
	case first:
		// The next navigation would be aborted by this one's commit, so it is waited for.
		if e.navigate(ctx, t, OpenRequest{URL: blank}) == nil {
			e.mu.Lock()
			e.spare, t.owner = t, ""
			e.mu.Unlock()
		}
	default:
		ask(ctx, e, nil, cdptarget.CloseTarget, cdptarget.CloseTargetParams{TargetID: cdptarget.ID(t.id)}, opts{})
	}
}

const discardTime = 2 * time.Second

// navigate sends a page to a URL and waits for its load event.
func (e *engine) navigate(ctx context.Context, t *target, q OpenRequest) *Error {
	nav, err := ask(ctx, e, t, page.Navigate, page.NavigateParams{URL: q.URL}, opts{onDialog: q.OnDialog})
	if err != nil {
		return err
	}
	if nav.ErrorText != "" {
		err := errf(CodeNavigationFailed, "cannot open %s: %s", clip(q.URL, 200), nav.ErrorText)
		err.Target = t.id
		return err
	}
	if nav.LoaderID == "" {
		return nil // within the document that is shown already
	}
	err = e.wait(ctx, "for "+clip(q.URL, 200)+" to load (the page stays open)", func() (bool, *Error) {
		switch {
		case t.closed:
			return false, closedTarget(t)
		case t.crashed:
			return false, crashedTarget(t)
		case t.dialog != nil:
			if q.OnDialog == DialogAccept || q.OnDialog == DialogDismiss {
				e.answerDialog(t, q.OnDialog)
				return false, nil
			}
			return false, blockedTarget(t, t.dialog)
		}
		return t.loaded && t.hasLoaded(string(nav.LoaderID)), nil
	})
	if err != nil && err.Code == CodeTimeout {
		if said := e.unstick(t); said != "" {
			err.Message += "; " + said
		}
	}
	return err
}

// hasLoaded reports whether the main frame showed a loader; a page may have moved on since.
func (t *target) hasLoaded(loader string) bool {
	for _, l := range t.loaders {
		if l == loader {
			return true
		}
	}
	return false
}

// page asks the browser, not the page, so it answers however busy the page is.
func (e *engine) page(ctx context.Context, t *target) (Page, *Error) {
	answer, err := ask(ctx, e, nil, cdptarget.GetTargetInfo, cdptarget.GetTargetInfoParams{TargetID: cdptarget.ID(t.id)}, opts{})
	if err != nil {
		return Page{}, err
	}
	p := Page{Browser: e.name, Target: t.id}
	if info := answer.TargetInfo; info != nil {
		p.URL, p.Title = info.URL, info.Title
	}
	return p, nil
}

// activate brings a page to the front and makes it the current target.
func (e *engine) activate(ctx context.Context, by Caller, selector string) (Page, *Error) {
	t, err := e.resolve(by, selector)
	if err != nil {
		return Page{}, err
	}
	if t.kind == "page" {
		if _, err := ask(ctx, e, nil, cdptarget.ActivateTarget, cdptarget.ActivateTargetParams{TargetID: cdptarget.ID(t.id)}, opts{}); err != nil {
			return Page{}, err
		}
	}
	e.mu.Lock()
	e.makeCurrent(by, t)
	e.mu.Unlock()
	return e.page(ctx, t)
}

// closeTarget closes a page and waits until it is gone.
func (e *engine) closeTarget(ctx context.Context, by Caller, selector, onDialog string) (Page, *Error) {
	t, err := e.resolve(by, selector)
	if err != nil {
		return Page{}, err
	}
	e.mu.Lock()
	closed := Page{Browser: e.name, Target: t.id, URL: t.url, Title: t.title}
	before := t.dialog // ends with the page
	e.mu.Unlock()
	if _, err := ask(ctx, e, nil, cdptarget.CloseTarget, cdptarget.CloseTargetParams{TargetID: cdptarget.ID(t.id)}, opts{}); err != nil {
		return Page{}, err
	}
	err = e.wait(ctx, "for the page to close", func() (bool, *Error) {
		if d := t.dialog; d != nil && d != before && d.Type == beforeUnload && !t.closed {
			if onDialog == DialogAccept {
				e.answerDialog(t, onDialog)
				return false, nil
			}
			return false, blockedTarget(t, d)
		}
		return t.closed, nil
	})
	return closed, err
}

// list answers the targets that a caller may use, the oldest first.
func (e *engine) list(by Caller) []Target {
	e.mu.Lock()
	defer e.mu.Unlock()
	seen := e.seen(by)
	current := e.currentOf(by)
	all := make([]Target, 0, len(seen))
	for i, t := range seen {
		one := Target{Index: i, ID: t.id, Type: t.kind, URL: t.url, Title: t.title, Current: t == current,
			Attached: t.session != "", Crashed: t.crashed, Opener: t.opener, Dialog: t.dialog}
		if t.parent != nil {
			one.Parent = t.parent.id
		}
		if t.owner != by.Name {
			one.Owner = t.owner
		}
		all = append(all, one)
	}
	return all
}
