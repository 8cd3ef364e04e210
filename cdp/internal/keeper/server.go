package keeper

import (
	"bufio"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"log"
	"net"
	"os"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"github.com/parley-tools/parley/cdp/internal/keeper/api"
	"github.com/parley-tools/parley/cdp/internal/keeper/mux"
	"github.com/parley-tools/parley/cdp/internal/keeper/page"
	"github.com/parley-tools/parley/cdp/internal/keeper/page/act"
	"github.com/parley-tools/parley/cdp/internal/keeper/page/environment"
	"github.com/parley-tools/parley/cdp/internal/keeper/page/look"
	"github.com/parley-tools/parley/cdp/internal/keeper/scan"
	"github.com/parley-tools/parley/cdp/internal/keeper/target"
	"github.com/parley-tools/parley/cdp/internal/keeper/verb"
	"github.com/parley-tools/parley/internal/wire"
)

// server serves clients on the socket.
type server struct {
	verbs      *verb.Verbs
	pages      *page.Pages
	operations map[string]operation
	hello      hello
	status     func(by api.Caller, all bool) api.Status
	// requestStop asks the keeper to stop. Main then closes the browser and this server.
	requestStop func(reason string)
	connections *connections
	// stopped is closed when the browser has ended and its files are removed.
	stopped chan struct{}

	mu             sync.Mutex
	clients        map[*client]bool
	activeRequests int // number of requests under way
	lastUse        time.Time
}

// client is one connection. Each request has a goroutine that writes its responses, so the keeper never waits for a
// client that does not read.
type client struct {
	conn    net.Conn
	wire    *wire.Conn
	s       *server
	unsent  chan struct{}  // holds one element per request, from its beginning until its response is sent
	workers sync.WaitGroup // goroutines that run requests

	mu    sync.Mutex
	calls map[int64]context.CancelFunc // under way, by id
}

const (
	maxInFlight  = 256
	maxUnsent    = maxInFlight + 32 // the keeper reads no more requests of a client with as many
	helloTimeout = 10 * time.Second
)

func newServer(e *verb.Verbs, h hello, grace time.Duration) *server {
	s := &server{verbs: e, pages: page.New(e, act.Verbs, look.Verbs, environment.Verbs), hello: h,
		stopped: make(chan struct{}), clients: map[*client]bool{}, lastUse: time.Now()}
	s.operations = operationsOf(s)
	s.connections = newConnections(grace, s.endConnection)
	return s
}

// close closes what the caller's session has opened, or a session that a person names, and the browser if nothing is
// left in it.
func (s *server) close(ctx context.Context, by api.Caller, q api.CloseRequest) (api.Closed, *api.Error) {
	session := by.SessionKey()
	if q.Session != "" && by.IsCommandLine() {
		session = q.Session
	}
	closed, err := s.verbs.Tenancy.CloseSession(ctx, session)
	if err != nil && err.Code == api.CodeChromeConnection { // meanwhile, the last other session has closed, too
		err = nil
	}
	if err == nil && s.stopIfEmpty("closed by a client") {
		<-s.stopped
		closed.Browser = s.verbs.Tracker.Name
	}
	return closed, err
}

// endConnection closes what was opened over a connection whose grace is over.
func (s *server) endConnection(id string) {
	ctx, cancel := context.WithTimeout(context.Background(), api.DefaultTimeout)
	defer cancel()
	closed, err := s.verbs.Tenancy.CloseConnection(ctx, id)
	if err != nil {
		log.Print("closing what a connection has opened: ", err.Message)
	}
	if len(closed.Contexts)+len(closed.Targets) > 0 {
		s.stopIfEmpty("what its last connection had opened was closed")
	}
}

// stopIfEmpty stops the keeper if no session has anything in the browser, and reports whether it does so.
func (s *server) stopIfEmpty(reason string) bool {
	e := s.verbs
	empty := mux.Locked(e.Mux, func() bool { return len(e.Tenancy.OpenSessions()) == 0 })
	if empty {
		s.requestStop(reason)
	}
	return empty
}

// serve accepts clients until the listener is closed.
func (s *server) serve(l net.Listener) {
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		go s.serveClient(conn)
	}
}

func (s *server) serveClient(conn net.Conn) {
	defer conn.Close()
	if uid, _, err := peerCredentials(conn); err != nil || uid != os.Geteuid() {
		return
	}
	c := &client{conn: conn, wire: wire.NewConn(bufio.NewReaderSize(conn, 64<<10), conn), s: s,
		unsent: make(chan struct{}, maxUnsent), calls: map[int64]context.CancelFunc{}}
	conn.SetDeadline(time.Now().Add(helloTimeout))
	clientHello, err := readHello(c.wire)
	if err != nil || c.wire.SendJSON(wire.KindHello, s.hello) != nil {
		return
	}
	if clientHello.Replace {
		s.requestStop("a program of another version replaces this keeper")
		return
	}
	if clientHello.Wire != WireVersion {
		return
	}
	conn.SetDeadline(time.Time{})
	s.mu.Lock()
	s.clients[c] = true
	s.mu.Unlock()
	if err := c.read(); !errors.Is(err, os.ErrDeadlineExceeded) { // closeClients has set the deadline
		conn.Close()
		c.mu.Lock()
		for _, cancel := range c.calls {
			cancel()
		}
		c.mu.Unlock()
	}
	c.workers.Wait() // what a call is still opening must be closed with the connection
	s.connections.releaseAll(c)
	s.mu.Lock()
	delete(s.clients, c)
	s.mu.Unlock()
}

// countRequest counts the beginning (1) or the end (-1) of a request.
func (s *server) countRequest(change int) {
	s.mu.Lock()
	s.activeRequests += change
	s.lastUse = time.Now()
	s.mu.Unlock()
}

// idleFor returns the time since the last request. A connection alone does not count as use; a listener does.
func (s *server) idleFor() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.activeRequests > 0 {
		return 0
	}
	return time.Since(s.lastUse)
}

func (s *server) clientCount() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.clients)
}

// closeClients stops reading requests, and waits up to patience for the clients to read their responses.
func (s *server) closeClients(patience time.Duration) {
	deadline := time.Now().Add(patience)
	s.mu.Lock()
	for c := range s.clients {
		c.conn.SetWriteDeadline(deadline)
		c.conn.SetReadDeadline(time.Now())
	}
	s.mu.Unlock()
	for s.clientCount() > 0 && time.Now().Before(deadline) {
		time.Sleep(time.Millisecond)
	}
}

// read handles requests until the client closes the connection or sends an invalid request. A client that keeps
// sending without reading blocks.
func (c *client) read() error {
	jobs := make(chan job)
	defer close(jobs)
	for {
		q, err := readRequest(c.wire)
		if err != nil {
			return err
		}
		c.mu.Lock()
		cancel, known := c.calls[q.id]
		full := len(c.calls) >= maxInFlight
		c.mu.Unlock()
		switch {
		case q.op == "cancel":
			if known {
				cancel()
			}
			continue
		case known:
			return errors.New("two requests have the same id")
		case full:
			c.respond(q.id, "error", scan.Marshal(api.Errorf(api.CodeLimitExceeded,
				"%d requests are under way on this connection; wait for their responses", maxInFlight)), aside{})
			continue
		}
		c.unsent <- struct{}{}
		next := job{request: q}
		next.ctx, next.cancel = context.WithCancel(context.Background())
		c.mu.Lock()
		c.calls[q.id] = next.cancel
		c.mu.Unlock()
		c.s.countRequest(1)
		select {
		case jobs <- next:
		default:
			c.workers.Go(func() { c.work(next, jobs) })
		}
	}
}

// job is a request to be handled.
type job struct {
	request
	ctx    context.Context
	cancel context.CancelFunc
}

// work handles a request, and then further ones until the connection ends. Reusing the goroutine reuses its grown
// stack.
func (c *client) work(j job, jobs <-chan job) {
	for ok := true; ok; j, ok = <-jobs {
		var beside aside
		result, failure := c.handleSafely(j.ctx, j.request, &beside)
		if j.by.IsPlugin() {
			beside.rights = c.s.verbs.Tenancy.TakeUsedRights(j.by)
		}
		j.cancel()
		c.mu.Lock()
		delete(c.calls, j.id) // before the client can send another request
		c.mu.Unlock()
		if failure != nil {
			c.respond(j.id, "error", scan.Marshal(failure), beside)
		} else {
			c.respond(j.id, "result", result, beside)
		}
		c.s.countRequest(-1)
		<-c.unsent
	}
}

// respond sends the response to a request.
func (c *client) respond(id int64, field string, value []byte, beside aside) {
	c.send(wire.KindDone, responseParts(id, field, value, beside)...)
}

// send sends a frame. It closes a connection that does not accept a frame whole.
func (c *client) send(kind wire.Kind, parts ...[]byte) error {
	err := c.wire.Send(kind, parts...)
	if err != nil {
		c.conn.Close()
	}
	return err
}

// handleSafely is handle, except that a panic ends only the call, and not the keeper with its browser and all pages.
func (c *client) handleSafely(ctx context.Context, q request, beside *aside) (result json.RawMessage,
	failure *api.Error) {
	defer func() {
		fault := recover()
		if fault == nil {
			return
		}
		log.Printf("%s has panicked: %v\n%s", q.op, fault, debug.Stack())
		m := c.s.verbs.Mux
		for until := time.Now().Add(muxTime); !m.TryLock(); time.Sleep(time.Millisecond) {
			if time.Now().After(until) {
				panic(fault) // the call had locked the mux, so nothing could continue
			}
		}
		m.Unlock()
		result, failure = nil, api.Errorf(api.CodeInternal, "the keeper failed in %s: %v", q.op, fault)
	}()
	return c.handle(ctx, q, beside)
}

// muxTime is how long other calls may hold the mux after a call has panicked.
const muxTime = 5 * time.Second

// handle runs one request and returns its result.
func (c *client) handle(ctx context.Context, q request, beside *aside) (json.RawMessage, *api.Error) {
	e := c.s.verbs
	if err := e.Tenancy.CheckCaller(q.by); err != nil {
		return nil, err
	}
	if q.by.Connection != "" {
		c.s.connections.hold(q.by.Connection, c)
	}
	unlimited := ctx
	ctx, cancel := context.WithTimeout(ctx, q.timeout)
	defer cancel()
	if q.by.HasContext() && q.op != "call" && q.op != "open" { // these enter the scope themselves
		if err := e.Tenancy.UpdateScope(ctx, q.by); err != nil {
			return nil, err
		}
	}
	switch run := c.s.operations[q.op]; {
	case q.op == "call":
		var b api.CallRequest
		if err := api.Decode(q.body, &b); err != nil {
			return nil, err
		}
		s, release, err := e.Tenancy.Enter(ctx, q.by)
		if err != nil {
			return nil, err
		}
		defer release()
		r := e.Call(ctx, q.by, s, b)
		beside.enabled = r.Enabled
		if r.Spool != nil {
			return c.sendPieces(ctx, q.id, r.Spool)
		}
		return r.Result, r.Err
	case q.op == "listen":
		var b api.ListenRequest
		if err := api.Decode(q.body, &b); err != nil {
			return nil, err
		}
		return c.listen(ctx, unlimited, q, b)
	case q.op == "end_connection":
		c.s.connections.release(q.by.Connection, c)
		return json.RawMessage("{}"), nil
	case run != nil:
		return run(ctx, q)
	case strings.HasPrefix(q.op, page.Prefix):
		return c.s.pages.Run(ctx, q.by, q.op, q.body)
	}
	return e.Run(ctx, q.by, q.op, q.body)
}

// operation serves the requests of one kind. Its result is the response.
type operation func(ctx context.Context, q request) (json.RawMessage, *api.Error)

// operationOf returns the operation that decodes a body, calls run and encodes the result.
func operationOf[Q, R any](run func(ctx context.Context, by api.Caller, q Q) (R, *api.Error)) operation {
	return func(ctx context.Context, q request) (json.RawMessage, *api.Error) {
		return api.Serve(q.body, func(body Q) (R, *api.Error) { return run(ctx, q.by, body) })
	}
}

// operationsOf returns the operations that involve more than the browser, by name.
func operationsOf(s *server) map[string]operation {
	e := s.verbs
	return map[string]operation{
		"close": operationOf(s.close),
		"close_target": operationOf(func(ctx context.Context, by api.Caller, q api.TargetRequest) (api.Page, *api.Error) {
			return e.CloseTarget(ctx, by, q.Target, q.OnDialog)
		}),
		"status": operationOf(func(ctx context.Context, by api.Caller, q api.StatusRequest) (api.Status, *api.Error) {
			e.Tracker.RefreshTargets(ctx)
			return s.status(by, q.All), nil
		}),
		"events": operationOf(func(_ context.Context, by api.Caller, q api.EventsRequest) (api.Events, *api.Error) {
			return e.Owners.StoredEvents(by, q)
		}),
		"sessions": operationOf(func(context.Context, api.Caller, struct{}) ([]api.SessionInfo, *api.Error) {
			e.Mux.Lock()
			defer e.Mux.Unlock()
			return e.Tenancy.OpenSessions(), nil
		}),
		"stop": operationOf(func(ctx context.Context, by api.Caller, _ struct{}) (struct{}, *api.Error) {
			if !by.IsCommandLine() {
				return struct{}{}, api.Errorf(api.CodeDenied, "only the command line can close what other sessions have opened")
			}
			if e.Tracker.External { // the browser stays open, without what was opened in it
				closing, cancel := context.WithTimeout(ctx, closeTimeout)
				defer cancel()
				if _, err := e.Tenancy.CloseOpened(closing); err != nil {
					log.Print("closing what was opened: ", err.Message)
				}
			}
			s.requestStop("closed by a client")
			<-s.stopped
			return struct{}{}, nil
		}),
	}
}

// sendPieces sends the result of a call in pieces, before its response.
func (c *client) sendPieces(ctx context.Context, id int64, spool *mux.Spool) (json.RawMessage, *api.Error) {
	defer spool.Close()
	head := binary.BigEndian.AppendUint64(nil, uint64(id))
	for ctx.Err() == nil {
		piece, err := spool.Next()
		if err == io.EOF {
			return json.RawMessage("{}"), nil
		}
		if err != nil {
			return nil, api.Errorf(api.CodeUnavailable, "the reply on disk cannot be read: %v", err)
		}
		if c.send(wire.KindPiece, head, piece) != nil {
			break
		}
	}
	return nil, api.ContextError(ctx, "sending the result")
}

// listen serves a stream until it ends or is cancelled. ctx limits the time until the stream begins.
func (c *client) listen(ctx, during context.Context, q request, b api.ListenRequest) (json.RawMessage, *api.Error) {
	e := c.s.verbs
	var scope *target.Target
	if b.Target != "" {
		var err *api.Error
		if scope, err = e.Owners.Resolve(q.by, b.Target); err != nil {
			return nil, err
		}
		if err := e.Tracker.Attach(ctx, scope, ""); err != nil {
			return nil, err
		}
	}
	l, err := e.Events.Listen(q.by, b, scope)
	if err != nil {
		return nil, err
	}
	defer e.Events.Unlisten(l)
	e.Events.AttachPages(ctx, l)
	e.Events.AwaitEnabled(ctx, l)
	// The first item notifies the client that the stream is complete from now on.
	c.send(wire.KindEvent, responseParts(q.id, "item", []byte(`{"listening":true}`), aside{})...)
	if b.TimeoutMS > 0 {
		timer := time.AfterFunc(time.Duration(b.TimeoutMS)*time.Millisecond, func() { l.Finish("timeout") })
		defer timer.Stop()
	}
	defer context.AfterFunc(during, func() { l.Finish("closed") })()
	for {
		lines, end := l.Next(e.Tracker.Name)
		if len(lines) == 0 {
			return scan.Marshal(api.ListenEnd{End: end}), nil
		}
		last := len(lines) - 1
		for _, line := range lines[:last] {
			c.wire.Queue(wire.KindEvent, responseParts(q.id, "item", line, aside{})...)
		}
		c.send(wire.KindEvent, responseParts(q.id, "item", lines[last], aside{})...)
	}
}

// connections tracks which of the callers' connections, such as those of MCP clients, still exist. A connection is
// held by the keeper clients, one for each process, that serve it. It ends a grace period after the last of them has
// released it or is gone.
type connections struct {
	grace time.Duration
	end   func(id string)

	mu   sync.Mutex
	byID map[string]*heldConnection
}

type heldConnection struct {
	holders map[*client]bool
	ending  *time.Timer // nil while it is held
}

func newConnections(grace time.Duration, end func(id string)) *connections {
	return &connections{grace: grace, end: end, byID: map[string]*heldConnection{}}
}

// hold notes that a client serves a connection.
func (cs *connections) hold(id string, c *client) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	h := cs.byID[id]
	if h == nil {
		h = &heldConnection{holders: map[*client]bool{}}
		cs.byID[id] = h
	}
	h.holders[c] = true
	if h.ending != nil {
		h.ending.Stop()
		h.ending = nil
	}
}

// release notes that a client no longer serves a connection.
func (cs *connections) release(id string, c *client) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	cs.releaseLocked(id, c)
}

// releaseAll releases all connections held by a client that is gone.
func (cs *connections) releaseAll(c *client) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	for id := range cs.byID {
		cs.releaseLocked(id, c)
	}
}

func (cs *connections) releaseLocked(id string, c *client) {
	h := cs.byID[id]
	if h == nil || !h.holders[c] {
		return
	}
	delete(h.holders, c)
	if len(h.holders) > 0 {
		return
	}
	h.ending = time.AfterFunc(cs.grace, func() {
		cs.mu.Lock()
		over := cs.byID[id] == h && h.ending != nil
		if over {
			delete(cs.byID, id)
		}
		cs.mu.Unlock()
		if over {
			cs.end(id)
		}
	})
}
