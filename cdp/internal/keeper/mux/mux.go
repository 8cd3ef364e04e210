// Package mux has the wire between the keeper and its browser: commands and their replies, events, and the lock for
// all state of the browser.
package mux

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"

	"github.com/parley-tools/parley/cdp/internal/browser"
	"github.com/parley-tools/parley/cdp/internal/keeper/api"
	"github.com/parley-tools/parley/cdp/internal/keeper/scan"
)

// Mux exchanges messages with the browser: it numbers commands, delivers each reply to the command that awaits it, and
// makes sure that every command ends. Its lock guards the state of all rooms above it; nothing blocks while holding it.
type Mux struct {
	sync.Mutex
	conn       browser.Conn
	maxMessage int
	observer   Observer

	lastID   int64
	pending  map[int64]*Pending
	closeErr *api.Error    // why nothing more can be sent
	spool    *Spool        // receives the current large reply, see spill
	changed  chan struct{} // closed and replaced by Broadcast

	Done chan struct{} // closed when the connection has ended
}

// Observer receives all messages that are not replies. Its methods are called with the mux locked.
type Observer interface {
	OnEvent(session, method string, params json.RawMessage)
	OnLoss(method string) // an event was too large to be read
	OnEnd()               // the connection has ended
}

// New returns a mux that accepts replies of up to maxMessage bytes. The caller calls Observe, and then runs Read.
func New(conn browser.Conn, maxMessage int) *Mux {
	m := &Mux{
		conn: conn, maxMessage: maxMessage,
		lastID:  1, // browser.FetchVersion used it
		pending: map[int64]*Pending{},
		changed: make(chan struct{}),
		Done:    make(chan struct{}),
	}
	conn.SetSpill(m.spill)
	return m
}

// Observe sets the receiver of the messages that are not replies.
func (m *Mux) Observe(o Observer) { m.observer = o }

// Locked returns the result of read, which it calls with the mux locked.
func Locked[R any](m *Mux, read func() R) R {
	m.Lock()
	defer m.Unlock()
	return read()
}

// Address is where a command goes: a target, through a session with it.
type Address struct{ ID, Session string }

// Pending is a command that awaits its reply.
type Pending struct {
	id       int64
	Method   string
	By       api.Caller // the caller of the command; the zero value for the keeper's own
	To       *Address   // nil: the browser
	MaxBytes int64
	OnDialog string
	Pieces   bool
	Done     chan Reply
	After    func(Reply) // runs with the mux locked; may be nil
}

// Reply holds a result, a large result in a spool, or an error.
type Reply struct {
	Result json.RawMessage
	Spool  *Spool
	Err    *api.Error

	Enabled api.Enabled // the domains that were enabled for the command; the mux does not set it
}

// Read handles the browser's messages until the connection ends.
func (m *Mux) Read() {
	for {
		msg, err := m.conn.Receive()
		if err != nil {
			m.FailAll(api.Errorf(api.CodeChromeConnection,
				"the connection to the browser has ended: the browser was closed or has crashed"))
			close(m.Done)
			return
		}
		m.Handle(msg)
	}
}

// FailAll fails all waiting calls. The keeper calls it before it closes a browser, because the last messages of the
// browser would otherwise report closed targets as the cause.
func (m *Mux) FailAll(why *api.Error) {
	m.Lock()
	defer m.Unlock()
	if m.closeErr == nil {
		m.closeErr = why
	}
	for _, p := range m.pending {
		m.Finish(p, Reply{Err: m.closeErr})
	}
	m.observer.OnEnd()
	m.Broadcast()
}

// Handle handles one message.
func (m *Mux) Handle(msg browser.Message) {
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
	m.Lock()
	defer m.Unlock()
	if msg.Spilled {
		m.deliverSpool(id)
		return
	}
	if msg.Truncated() {
		if p := m.pending[id]; p != nil && id != 0 {
			m.Finish(p, Reply{Err: &api.Error{Code: api.CodeLimitExceeded, Bytes: msg.Size, Message: fmt.Sprintf(
				"the reply to %s has %d bytes; at most %d are read", p.Method, msg.Size, m.maxMessage)}})
		} else if id == 0 {
			m.observer.OnLoss(method)
		}
		return
	}
	if err != nil {
		return // not JSON; the call that waits for it ends by its own timeout
	}
	if id == 0 {
		m.observer.OnEvent(session, method, params)
		return
	}
	p := m.pending[id]
	if p == nil {
		return // the call was abandoned
	}
	switch {
	case failure != nil:
		m.Finish(p, Reply{Err: api.FromChrome(p.Method, failure)})
	case p.MaxBytes > 0 && int64(len(result)) > p.MaxBytes:
		m.Finish(p, Reply{Err: &api.Error{Code: api.CodeLimitExceeded, Bytes: int64(len(result)), Message: fmt.Sprintf(
			"the result of %s has %d bytes; at most %d were asked for", p.Method, len(result), p.MaxBytes)}})
	default:
		m.Finish(p, Reply{Result: result})
	}
}

// Finish delivers a reply at once. Replies never wait behind events.
func (m *Mux) Finish(p *Pending, r Reply) {
	delete(m.pending, p.id)
	if r.Err != nil && r.Err.Target == "" && p.To != nil {
		withTarget := *r.Err
		withTarget.Target = p.To.ID
		r.Err = &withTarget
	}
	if p.After != nil {
		p.After(r)
	}
	p.Done <- r
}

// Waiting returns the commands that await a reply from an address, in the order in which they were sent. The mux is
// locked, as for all methods below that do not block.
func (m *Mux) Waiting(from func(*Address) bool) []*Pending {
	var all []*Pending
	for _, p := range m.pending {
		if from(p.To) {
			all = append(all, p)
		}
	}
	slices.SortFunc(all, func(a, b *Pending) int { return cmp.Compare(a.id, b.id) })
	return all
}

// FailPending fails the commands that wait for an address.
func (m *Mux) FailPending(to *Address, why *api.Error) {
	for _, p := range m.pending {
		if p.To == to {
			m.Finish(p, Reply{Err: why})
		}
	}
}

// Forget drops the replies of commands for which nobody waits any more.
func (m *Mux) Forget(all ...*Pending) {
	for _, p := range all {
		delete(m.pending, p.id)
	}
}

// Err returns why nothing more can be sent, or nil while the connection lasts.
func (m *Mux) Err() *api.Error { return m.closeErr }

// Close ends the connection, and waits until all waiting calls have failed.
func (m *Mux) Close() {
	m.conn.Close()
	<-m.Done
}

// Broadcast makes each wait check its condition again.
func (m *Mux) Broadcast() {
	close(m.changed)
	m.changed = make(chan struct{})
}

// Changed returns a channel that the next broadcast closes. It returns an error if the connection has ended. The mux
// is not locked.
func (m *Mux) Changed() (<-chan struct{}, *api.Error) {
	m.Lock()
	defer m.Unlock()
	return m.changed, m.closeErr
}

// Wait blocks until ready returns true or an error. It calls ready with the mux locked, after every broadcast.
func (m *Mux) Wait(ctx context.Context, what string, ready func() (bool, *api.Error)) *api.Error {
	for {
		m.Lock()
		ok, err := ready()
		if !ok && err == nil {
			err = m.closeErr
		}
		changed := m.changed
		m.Unlock()
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

// Send assigns an id to a command and sends it.
func (m *Mux) Send(p *Pending, params json.RawMessage) *api.Error {
	if m.closeErr != nil {
		return m.closeErr
	}
	m.lastID++
	p.id = m.lastID
	p.Done = make(chan Reply, 1)
	b := make([]byte, 0, len(params)+len(p.Method)+96)
	b = fmt.Appendf(b, `{"id":%d,"method":%s`, p.id, scan.Quote(p.Method))
	if len(params) > 0 {
		b = append(append(b, `,"params":`...), params...)
	}
	if p.To != nil {
		b = fmt.Appendf(b, `,"sessionId":%s`, scan.Quote(p.To.Session))
	}
	b = append(b, '}')
	if err := m.conn.Send(b); err != nil {
		if _, tooLarge := errors.AsType[*browser.TooLargeError](err); tooLarge {
			return &api.Error{Code: api.CodeLimitExceeded, Message: p.Method + ": " + err.Error()}
		}
		return api.Errorf(api.CodeChromeConnection, "%s was not sent: %v", p.Method, err)
	}
	m.pending[p.id] = p
	return nil
}

// Post sends a command without waiting for its reply, unless the session with its target has ended; after may be nil.
func (m *Mux) Post(to *Address, method string, params json.RawMessage, after func(Reply)) {
	if to != nil && to.Session == "" {
		return
	}
	m.Send(&Pending{Method: method, To: to, After: after}, params)
}
