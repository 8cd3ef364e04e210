package keeper

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/chromedp/cdproto/cdp"
	cdptarget "github.com/chromedp/cdproto/target"

	"github.com/parley-tools/parley/cdp/internal/browser"
	"github.com/parley-tools/parley/host"
)

// engine drives one browser: it numbers messages, tracks targets and makes sure that every call ends. All state is
// guarded by mu, and nothing blocks while holding it.
type engine struct {
	conn       browser.Conn
	name       string
	external   bool // a browser that Parley did not start: attach to a target on first use
	maxMessage int

	mu             sync.Mutex
	lastID         int64
	pending        map[int64]*pending
	targets        map[string]*target
	order          []*target // the oldest first
	sessions       map[string]*target
	contextOwners  map[string]string  // plugin names by the id of their browser context
	current        *target            // of the command line
	callerCurrent  map[string]*target // of the other callers, by name
	scopes         map[string]*scope  // of plugins, by name
	scopeLock      chan struct{}      // holds one while a scope is created
	extraSessions  map[string]*target // by the id of sessions that callers created beside the engine's
	egress         host.Egress        // nil: plugins are denied
	chromePID      int                // the browser's process
	sparePage      *target            // the blank page for the first open
	started        bool               // the first page exists; new targets have owners
	requestedPages []requestedPage    // by pages, the newest last
	downloadOwners map[string]string  // of downloads under way, by download id
	events         *ring
	listeners      map[*listener]bool
	callCount      int64
	closeErr       *Error
	spool          *spool        // receives the current large reply, see spill
	changed        chan struct{} // closed and replaced on every change that wait may wait for

	done chan struct{} // closed when the connection has ended
}

type target struct {
	id, kind, url, title string
	opener               string
	owner                string  // the name of the owning caller; "" if there is none
	ownerTentative       bool    // the owner is a guess that later events may correct
	parent               *target // the page of a frame or worker
	session              string
	attaching            bool // an attach is under way; only in an external browser
	ready                bool // Page events are enabled
	crashed, closed      bool
	needsReenable        bool   // enabled domains were lost in a crash; cleared by the next page
	evictErr             *Error // why the engine closes it: the owner may not have it
	dialog               *Dialog
	pendingURL           string   // of a navigation under way
	loaders              []string // of the main frame, the newest last
	loaded               bool     // the load event of the newest loader was received
	domains              map[string]*domain
}

// pending is a message that awaits its reply.
type pending struct {
	id       int64
	method   string
	by       string  // the caller; "" for the engine's own messages
	target   *target // nil: the browser
	maxBytes int64
	onDialog string
	pieces   bool
	done     chan reply
	after    func(reply) // runs with the engine locked; may be nil
}

// reply holds a result, a large result in a spool, or an error.
type reply struct {
	result json.RawMessage
	spool  *spool
	err    *Error
}

func newEngine(conn browser.Conn, name string, external bool, cfg *Config) *engine {
	e := &engine{
		conn: conn, name: name, external: external, maxMessage: cfg.MaxMessage,
		lastID:         1, // browser.FetchVersion used it
		pending:        map[int64]*pending{},
		targets:        map[string]*target{},
		sessions:       map[string]*target{},
		contextOwners:  map[string]string{},
		callerCurrent:  map[string]*target{},
		scopes:         map[string]*scope{},
		scopeLock:      make(chan struct{}, 1),
		extraSessions:  map[string]*target{},
		downloadOwners: map[string]string{},
		events:         newRing(cfg.RingEvents, cfg.RingBytes),
		listeners:      map[*listener]bool{},
		changed:        make(chan struct{}),
		done:           make(chan struct{}),
	}
	conn.SetSpill(e.spill)
	return e
}

// start begins to read messages and to track targets.
func (e *engine) start(ctx context.Context) *Error {
	go e.read()
	if _, err := execute(ctx, e, nil, cdptarget.SetDiscoverTargets, discoverParams(), callOptions{}); err != nil {
		return err
	}
	if e.external {
		return nil
	}
	if _, err := execute(ctx, e, nil, cdptarget.SetAutoAttach, e.autoAttachParams(), callOptions{}); err != nil {
		return err
	}
	err := e.wait(ctx, "for the first page", func() (bool, *Error) {
		for _, t := range e.order {
			if t.kind == "page" && t.session != "" {
				e.current, e.sparePage, e.started = t, t, true
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
func (e *engine) autoAttachParams() cdptarget.SetAutoAttachParams {
	return cdptarget.SetAutoAttachParams{
		AutoAttach: true, WaitForDebuggerOnStart: !e.external, Flatten: new(true), Filter: targetFilter(),
	}
}

// read handles the browser's messages until the connection ends.
func (e *engine) read() {
	for {
		m, err := e.conn.Receive()
		if err != nil {
			e.disconnect(errf(CodeChromeConnection,
				"the connection to the browser has ended: the browser was closed or has crashed"))
			return
		}
		e.handle(m)
	}
}

// disconnect marks the end of the connection.
func (e *engine) disconnect(why *Error) {
	e.failAll(why)
	close(e.done)
}

// failAll fails everything that waits. Before the engine closes a browser it calls failAll by itself, because the
// last messages of the browser would report closed targets instead.
func (e *engine) failAll(why *Error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closeErr == nil {
		e.closeErr = why
	}
	for _, p := range e.pending {
		e.finish(p, reply{err: e.closeErr})
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
	err := eachField(m.Data, func(key, value []byte) (err error) {
		switch string(key) {
		case "id":
			id, err = strconv.ParseInt(string(value), 10, 64)
		case "method":
			method, err = parseString(value)
		case "sessionId":
			session, err = parseString(value)
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
		e.deliverSpool(id)
		return
	}
	if m.Truncated() {
		if p := e.pending[id]; p != nil && id != 0 {
			e.finish(p, reply{err: &Error{Code: CodeLimitExceeded, Bytes: m.Size, Message: fmt.Sprintf(
				"the reply to %s has %d bytes; at most %d are read", p.method, m.Size, e.maxMessage)}})
		} else if id == 0 {
			e.events.skip()
			for l := range e.listeners {
				l.recordLoss(method, e.events.lastSeq)
			}
		}
		return
	}
	if err != nil {
		return // not JSON; the call that waits for it ends by its own timeout
	}
	if id == 0 {
		e.onEvent(session, method, params)
		return
	}
	p := e.pending[id]
	if p == nil {
		return // the call was abandoned
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

// finish delivers a reply at once. Replies never wait behind events.
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

// wait blocks until ready returns true or an error. It calls ready with the engine locked, after every change.
func (e *engine) wait(ctx context.Context, what string, ready func() (bool, *Error)) *Error {
	for {
		e.mu.Lock()
		ok, err := ready()
		if !ok && err == nil {
			err = e.closeErr
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
		return errf(CodeTimeout, "%s timed out", what)
	}
	return errf(CodeTimeout, "%s was cancelled by its caller", what)
}

// callOptions are the options of one command.
type callOptions struct {
	by       string
	maxBytes int64
	onDialog string
	pieces   bool
}

// execute sends one of the engine's own commands, built from the protocol's generated types, and waits for its result.
// It decodes the result with encoding/json, which tolerates new fields of later browsers and invalid text of pages; the
// generated types' own decoders are strict.
func execute[P, R any](
	ctx context.Context, e *engine, t *target, c cdp.Command[P, R], params P, o callOptions,
) (result R, err *Error) {
	raw, err := e.do(ctx, t, c.Method, mustJSON(params), o)
	if err != nil {
		return result, err
	}
	if err := json.Unmarshal(raw, &result); err != nil {
		return result, errf(CodeProtocolError, "the result of %s cannot be read: %v", c.Method, err)
	}
	return result, nil
}

// postCommand is execute without waiting for the reply; after may be nil. The engine is locked.
func postCommand[P, R any](e *engine, t *target, c cdp.Command[P, R], params P, after func(reply)) {
	e.post(t, c.Method, mustJSON(params), after)
}

// do sends one command to a target (nil: the browser) and waits for its reply, the end of the target or of ctx.
func (e *engine) do(
	ctx context.Context, t *target, method string, params json.RawMessage, o callOptions,
) (json.RawMessage, *Error) {
	r := e.exchange(ctx, t, method, params, o)
	return r.result, r.err
}

// exchange is do for a caller that accepts a large result in pieces.
func (e *engine) exchange(
	ctx context.Context, t *target, method string, params json.RawMessage, o callOptions,
) reply {
	started := time.Now()
	e.mu.Lock()
	// A dialog that an earlier call left open is not this call's to answer: OnDialog is about its own.
	if err := e.checkSendable(t, method); err != nil {
		e.mu.Unlock()
		return reply{err: err}
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
		p.after = e.closeCreated
	} else {
		delete(e.pending, p.id)
	}
	e.mu.Unlock()
	select {
	case r := <-p.done: // it arrived at the same moment
		return r
	default:
	}
	if !errors.Is(ctx.Err(), context.DeadlineExceeded) {
		go e.unstick(t)
		return reply{err: contextError(ctx, method)}
	}
	failure := errf(CodeTimeout, "%s did not return within %s", method, time.Since(started).Round(10*time.Millisecond))
	if diagnosis := e.unstick(t); diagnosis != "" {
		failure.Message += "; " + diagnosis
	}
	if t != nil {
		failure.Target = t.id
	}
	return reply{err: failure}
}

// closeCreated closes a new target whose creator no longer waits: it would belong to no caller. The engine is
// locked.
func (e *engine) closeCreated(r reply) {
	var made cdptarget.CreateTargetResult
	if json.Unmarshal(r.result, &made) == nil && made.TargetID != "" {
		e.postClose(made.TargetID)
	}
}

// postClose closes a target without waiting for it. The engine is locked.
func (e *engine) postClose(id cdptarget.ID) {
	postCommand(e, nil, cdptarget.CloseTarget, cdptarget.CloseTargetParams{TargetID: id}, nil)
}

// root returns the page whose dialogs block t: t itself, or the page of a frame.
func (t *target) root() *target {
	for t != nil && t.kind == "iframe" && t.parent != nil {
		t = t.parent
	}
	return t
}

// within reports whether t is top or one of its frames or workers.
func (t *target) within(top *target) bool {
	for t != nil && t != top {
		t = t.parent
	}
	return t != nil
}

// send assigns an id to a message and queues it. The engine is locked.
func (e *engine) send(p *pending, params json.RawMessage) *Error {
	if e.closeErr != nil {
		return e.closeErr
	}
	e.lastID++
	p.id = e.lastID
	p.done = make(chan reply, 1)
	b := make([]byte, 0, len(params)+len(p.method)+96)
	b = strconv.AppendInt(append(b, `{"id":`...), p.id, 10)
	b = append(append(b, `,"method":`...), quote(p.method)...)
	if len(params) > 0 {
		b = append(append(b, `,"params":`...), params...)
	}
	if p.target != nil {
		b = append(append(b, `,"sessionId":`...), quote(p.target.session)...)
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

// post sends a message without waiting for its reply. The engine is locked.
func (e *engine) post(t *target, method string, params json.RawMessage, after func(reply)) {
	if t != nil && t.session == "" {
		return
	}
	e.send(&pending{method: method, target: t, after: after}, params)
}
