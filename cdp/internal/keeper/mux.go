package keeper

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"sync"

	"github.com/chromedp/cdproto/cdp"

	"github.com/parley-tools/parley/cdp/internal/browser"
	"github.com/parley-tools/parley/cdp/internal/keeper/api"
	"github.com/parley-tools/parley/cdp/internal/keeper/scan"
)

// mux exchanges messages with the browser: it numbers commands, delivers each reply to the command that awaits it, and
// makes sure that every command ends. Its lock guards the state of the whole engine.
type mux struct {
	conn       browser.Conn
	maxMessage int
	observer   observer

	mu       sync.Mutex
	lastID   int64
	pending  map[int64]*pending
	closeErr *api.Error    // why nothing can be sent any more
	spool    *spool        // receives the current large reply, see spill
	changed  chan struct{} // closed and replaced on every change that wait may wait for

	done chan struct{} // closed when the connection has ended
}

// observer receives what is not a reply. Its methods are called with the engine locked.
type observer interface {
	onEvent(session, method string, params json.RawMessage)
	onLoss(method string) // of an event that was too large to be read
	onEnd()               // of the connection
}

func newMux(conn browser.Conn, maxMessage int) *mux {
	m := &mux{
		conn: conn, maxMessage: maxMessage,
		lastID:  1, // browser.FetchVersion used it
		pending: map[int64]*pending{},
		changed: make(chan struct{}),
		done:    make(chan struct{}),
	}
	conn.SetSpill(m.spill)
	return m
}

// pending is a message that awaits its reply.
type pending struct {
	id       int64
	method   string
	by       api.Caller // whose command it is; the zero value for the engine's own
	target   *target    // nil: the browser
	maxBytes int64
	onDialog string
	pieces   bool
	done     chan reply
	after    func(reply) // runs with the engine locked; may be nil
}

// reply holds a result, a large result in a spool, or an error.
type reply struct {
	result  json.RawMessage
	spool   *spool
	err     *api.Error
	enabled api.Enabled // for the call
}

// read handles the browser's messages until the connection ends.
func (m *mux) read() {
	for {
		msg, err := m.conn.Receive()
		if err != nil {
			m.disconnect(api.Errorf(api.CodeChromeConnection,
				"the connection to the browser has ended: the browser was closed or has crashed"))
			return
		}
		m.handle(msg)
	}
}

// disconnect marks the end of the connection.
func (m *mux) disconnect(why *api.Error) {
	m.failAll(why)
	close(m.done)
}

// failAll fails everything that waits. Before the engine closes a browser it calls failAll by itself, because the
// last messages of the browser would report closed targets instead.
func (m *mux) failAll(why *api.Error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closeErr == nil {
		m.closeErr = why
	}
	for _, p := range m.pending {
		m.finish(p, reply{err: m.closeErr})
	}
	m.observer.onEnd()
	m.broadcast()
}

func (m *mux) handle(msg browser.Message) {
	var (
		id              int64
		method, session string
		params, result  json.RawMessage
		failure         json.RawMessage
	)
	err := scan.EachField(msg.Data, func(key, value []byte) (err error) {
		switch string(key) {
		case "id":
			id, err = strconv.ParseInt(string(value), 10, 64)
		case "method":
			method, err = scan.String(value)
		case "sessionId":
			session, err = scan.String(value)
		case "params":
			params = value
		case "result":
			result = value
		case "error":
			failure = value
		}
		return err
	})
	m.mu.Lock()
	defer m.mu.Unlock()
	if msg.Spilled {
		m.deliverSpool(id)
		return
	}
	if msg.Truncated() {
		if p := m.pending[id]; p != nil && id != 0 {
			m.finish(p, reply{err: &api.Error{Code: api.CodeLimitExceeded, Bytes: msg.Size, Message: fmt.Sprintf(
				"the reply to %s has %d bytes; at most %d are read", p.method, msg.Size, m.maxMessage)}})
		} else if id == 0 {
			m.observer.onLoss(method)
		}
		return
	}
	if err != nil {
		return // not JSON; the call that waits for it ends by its own timeout
	}
	if id == 0 {
		m.observer.onEvent(session, method, params)
		return
	}
	p := m.pending[id]
	if p == nil {
		return // the call was abandoned
	}
	switch {
	case failure != nil:
		m.finish(p, reply{err: api.FromChrome(p.method, failure)})
	case p.maxBytes > 0 && int64(len(result)) > p.maxBytes:
		m.finish(p, reply{err: &api.Error{Code: api.CodeLimitExceeded, Bytes: int64(len(result)), Message: fmt.Sprintf(
			"the result of %s has %d bytes; at most %d were asked for", p.method, len(result), p.maxBytes)}})
	default:
		m.finish(p, reply{result: result})
	}
}

// finish delivers a reply at once. Replies never wait behind events.
func (m *mux) finish(p *pending, r reply) {
	delete(m.pending, p.id)
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

// failPending fails the calls that wait for a target.
func (m *mux) failPending(t *target, why *api.Error) {
	for _, p := range m.pending {
		if p.target == t {
			m.finish(p, reply{err: why})
		}
	}
}

func (m *mux) broadcast() {
	close(m.changed)
	m.changed = make(chan struct{})
}

// wait blocks until ready returns true or an error. It calls ready with the engine locked, after every change.
func (m *mux) wait(ctx context.Context, what string, ready func() (bool, *api.Error)) *api.Error {
	for {
		m.mu.Lock()
		ok, err := ready()
		if !ok && err == nil {
			err = m.closeErr
		}
		changed := m.changed
		m.mu.Unlock()
		if ok || err != nil {
			return err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return api.ContextError(ctx, "waiting "+what)
		}
	}
}

// send assigns an id to a message and queues it. The engine is locked.
func (m *mux) send(p *pending, params json.RawMessage) *api.Error {
	if m.closeErr != nil {
		return m.closeErr
	}
	m.lastID++
	p.id = m.lastID
	p.done = make(chan reply, 1)
	b := make([]byte, 0, len(params)+len(p.method)+96)
	b = strconv.AppendInt(append(b, `{"id":`...), p.id, 10)
	b = append(append(b, `,"method":`...), scan.Quote(p.method)...)
	if len(params) > 0 {
		b = append(append(b, `,"params":`...), params...)
	}
	if p.target != nil {
		b = append(append(b, `,"sessionId":`...), scan.Quote(p.target.session)...)
	}
	b = append(b, '}')
	if err := m.conn.Send(b); err != nil {
		var tooLarge *browser.TooLargeError
		if errors.As(err, &tooLarge) {
			return &api.Error{Code: api.CodeLimitExceeded, Message: p.method + ": " + err.Error()}
		}
		return api.Errorf(api.CodeChromeConnection, "%s was not sent: %v", p.method, err)
	}
	m.pending[p.id] = p
	return nil
}

// post sends a message without waiting for its reply. The engine is locked.
func (m *mux) post(t *target, method string, params json.RawMessage, after func(reply)) {
	if t != nil && t.session == "" {
		return
	}
	m.send(&pending{method: method, target: t, after: after}, params)
}

// postCommand is post for a command of the protocol's generated types; after may be nil.
func postCommand[P, R any](m *mux, t *target, c cdp.Command[P, R], params P, after func(reply)) {
	m.post(t, c.Method, scan.Marshal(params), after)
}
