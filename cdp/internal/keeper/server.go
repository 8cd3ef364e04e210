package keeper

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"log"
	"net"
	"os"
	"sync"
	"time"

	"github.com/parley-tools/parley/cdp/internal/keeper/api"
	"github.com/parley-tools/parley/cdp/internal/keeper/event"
	"github.com/parley-tools/parley/cdp/internal/keeper/mux"
	"github.com/parley-tools/parley/cdp/internal/keeper/scan"
	"github.com/parley-tools/parley/cdp/internal/keeper/target"
	"github.com/parley-tools/parley/cdp/internal/keeper/verb"
	"github.com/parley-tools/parley/manifest"
)

// server serves clients on the socket.
type server struct {
	verbs      *verb.Verbs
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

// client is one connection. Its writer sends replies first, and events only when no reply is queued. So a reply
// never waits behind events, and the keeper never waits for a client. While the writer is idle, the goroutine that
// has a reply sends it itself.
type client struct {
	conn net.Conn
	s    *server

	wake    chan struct{} // holds one when there may be something to send
	writeMu sync.Mutex    // guards writes to conn

	mu          sync.Mutex
	replies     []frame
	queuedBytes int           // the size of replies
	drained     chan struct{} // holds one when queuedBytes may have decreased
	streams     []*stream
	calls       map[int64]context.CancelFunc
	workers     sync.WaitGroup // goroutines that run calls
	closing     bool
	closed      bool
}

// stream is a sequence of frames: the events of a listener, or the pieces of a spool.
type stream struct {
	id    int64
	l     *event.Listener
	spool *mux.Spool
	aside aside         // of the response after the pieces
	done  chan struct{} // closed when the spool is read or abandoned
}

const (
	maxInFlight    = 256
	maxQueuedBytes = 16 << 20 // of responses; above it the keeper reads no requests of the client
	helloTimeout   = 10 * time.Second
)

func newServer(e *verb.Verbs, h hello, grace time.Duration) *server {
	s := &server{verbs: e, hello: h, stopped: make(chan struct{}), clients: map[*client]bool{}, lastUse: time.Now()}
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
	if err != nil && err.Code == api.CodeChromeConnection { // another session was the last one meanwhile
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

// stopIfEmpty stops the keeper if no session has anything in the browser, and reports whether it does.
func (s *server) stopIfEmpty(reason string) bool {
	e := s.verbs
	e.Mux.Lock()
	empty := len(e.Tenancy.OpenSessions()) == 0
	e.Mux.Unlock()
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
	r := bufio.NewReaderSize(conn, 64<<10)
	conn.SetDeadline(time.Now().Add(helloTimeout))
	clientHello, err := readHello(r)
	if err != nil {
		return
	}
	if writeHello(conn, s.hello) != nil {
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

	c := &client{
		conn: conn, s: s, wake: make(chan struct{}, 1), drained: make(chan struct{}, 1),
		calls: map[int64]context.CancelFunc{},
	}
	s.mu.Lock()
	s.clients[c] = true
	s.mu.Unlock()
	written := make(chan struct{})
	go func() {
		defer close(written)
		c.write()
		conn.Close()
		c.abandonAll() // also unblocks awaitReader
	}()
	c.read(r)
	c.abandonAll()
	<-written
	c.workers.Wait() // what a call still opens has to be closed with the connection
	s.connections.releaseAll(c)
	s.mu.Lock()
	delete(s.clients, c)
	s.mu.Unlock()
}

// countRequest counts the begin (1) or end (-1) of a request.
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

// closeClients lets each client read its queued responses, then closes it.
func (s *server) closeClients(patience time.Duration) {
	s.mu.Lock()
	var open []*client
	for c := range s.clients {
		open = append(open, c)
	}
	s.mu.Unlock()
	for _, c := range open {
		c.conn.SetWriteDeadline(time.Now().Add(patience))
		c.mu.Lock()
		c.closing = true
		c.mu.Unlock()
		c.wakeWriter()
	}
	deadline := time.Now().Add(patience)
	for s.clientCount() > 0 && time.Now().Before(deadline) {
		time.Sleep(time.Millisecond)
	}
}

// read handles requests until the client closes the connection or sends an invalid request. A client that keeps
// sending without reading blocks.
func (c *client) read(r *bufio.Reader) {
	jobs := make(chan job)
	defer close(jobs)
	for {
		c.awaitReader()
		q, err := readRequest(r)
		if err != nil {
			return
		}
		if q.op == "cancel" {
			c.mu.Lock()
			cancel := c.calls[q.id]
			c.mu.Unlock()
			if cancel != nil {
				cancel()
			}
			continue
		}
		ctx, cancel := context.WithCancel(context.Background())
		c.mu.Lock()
		_, twice := c.calls[q.id]
		full := len(c.calls) >= maxInFlight
		if !twice && !full {
			c.calls[q.id] = cancel
		}
		c.mu.Unlock()
		if twice || full {
			cancel()
			if twice {
				return
			}
			err := api.Errorf(api.CodeLimitExceeded, "%d requests are under way on this connection; wait for their responses",
				maxInFlight)
			c.sendReply(responseFrame(q.id, "error", scan.Marshal(err)))
			continue
		}
		c.s.countRequest(1)
		next := job{q, ctx, cancel}
		select {
		case jobs <- next:
		default:
			c.workers.Go(func() { c.work(next, jobs) })
		}
	}
}

// awaitReader blocks while more than maxQueuedBytes are queued for the client.
func (c *client) awaitReader() {
	for {
		c.mu.Lock()
		behind := c.queuedBytes > maxQueuedBytes && !c.closed
		c.mu.Unlock()
		if !behind {
			return
		}
		<-c.drained
	}
}

// appendReply queues a reply without waking the writer. The client is locked.
func (c *client) appendReply(f frame) {
	if !c.closed {
		c.replies = append(c.replies, f)
		c.queuedBytes += f.size()
	}
}

// job is a request to be handled.
type job struct {
	request
	ctx    context.Context
	cancel context.CancelFunc
}

// work handles a request, then further ones until the connection ends: reusing the goroutine reuses its grown
// stack.
func (c *client) work(j job, jobs <-chan job) {
	for ok := true; ok; j, ok = <-jobs {
		var beside aside
		result, failure := c.handle(j.ctx, j.request, &beside)
		if j.by.IsPlugin() && (failure != nil || result != nil) {
			beside.rights = c.s.verbs.Tenancy.TakeUsedRights(j.by)
		}
		switch {
		case failure != nil:
			c.finish(j.id, responseFrame(j.id, "error", scan.Marshal(failure), beside))
		case result != nil:
			c.finish(j.id, responseFrame(j.id, "result", result, beside))
		default: // a stream has sent its own response
			c.finish(j.id, frame{})
		}
		j.cancel()
		c.s.countRequest(-1)
	}
}

// finish frees the slot of a request and sends its response. While the writer is idle it sends here; a client that
// does not read then blocks only this goroutine.
func (c *client) finish(id int64, f frame) {
	writerIdle := f.parts != nil && c.writeMu.TryLock()
	if writerIdle {
		defer c.writeMu.Unlock()
	}
	c.mu.Lock()
	delete(c.calls, id)
	now := writerIdle && !c.closed && len(c.replies) == 0
	if f.parts != nil && !now {
		c.appendReply(f)
	}
	wake := !now || c.closing
	c.mu.Unlock()
	if now && f.write(c.conn) != nil {
		c.conn.Close()
	}
	if wake {
		c.wakeWriter()
	}
}

func (c *client) sendReply(f frame) {
	c.mu.Lock()
	c.appendReply(f)
	c.mu.Unlock()
	c.wakeWriter()
}

// abandonAll cancels all requests of the client.
func (c *client) abandonAll() {
	c.mu.Lock()
	c.closed = true
	for _, cancel := range c.calls {
		cancel()
	}
	streams := c.streams
	c.streams = nil
	c.mu.Unlock()
	c.wakeWriter()
	notify(c.drained)
	for _, s := range streams {
		c.releaseStream(s)
	}
}

// releaseStream frees the resources of a stream.
func (c *client) releaseStream(s *stream) {
	if s.l != nil {
		c.s.verbs.Events.Unlisten(s.l)
		return
	}
	s.spool.Close()
	close(s.done)
}

// write sends queued frames until the connection ends.
func (c *client) write() {
	w := bufio.NewWriterSize(c.conn, 64<<10)
	c.writeMu.Lock()
	defer c.writeMu.Unlock()
	for {
		f, idle, ok := c.next()
		if !ok {
			w.Flush()
			return
		}
		if idle {
			if w.Flush() != nil {
				return
			}
			c.writeMu.Unlock()
			more := c.awaitWork()
			c.writeMu.Lock()
			if !more {
				return
			}
			continue
		}
		if f.write(w) != nil {
			return
		}
	}
}

// next returns the next frame, replies first. idle is true if there is none, ok is false if the client has ended.
func (c *client) next() (f frame, idle, ok bool) {
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return frame{}, false, false
	}
	if len(c.replies) > 0 {
		f = c.replies[0]
		c.replies[0] = frame{}
		c.replies = c.replies[1:]
		c.queuedBytes -= f.size()
		c.mu.Unlock()
		notify(c.drained)
		return f, false, true
	}
	streams := c.streams
	c.mu.Unlock()
	for _, s := range streams {
		if s.spool != nil {
			return c.nextPiece(s), false, true
		}
		line, end := s.l.Next(c.s.verbs.Tracker.Name)
		switch {
		case line != nil:
			return responseFrame(s.id, "item", line), false, true
		case end != "":
			c.removeStream(s)
			return responseFrame(s.id, "result", scan.Marshal(api.ListenEnd{End: end})), false, true
		}
	}
	return frame{}, true, true
}

// nextPiece returns the frame with the next piece of a spool, or the final response.
func (c *client) nextPiece(s *stream) frame {
	piece, err := s.spool.Next()
	if err == nil {
		return pieceFrame(s.id, piece)
	}
	c.removeStream(s)
	if err != io.EOF {
		return responseFrame(s.id, "error", scan.Marshal(api.Errorf(api.CodeUnavailable,
			"the reply on disk cannot be read: %v", err)))
	}
	return responseFrame(s.id, "result", []byte("{}"), s.aside)
}

// awaitWork blocks until there may be something to send. It returns false when the client is to be closed.
func (c *client) awaitWork() bool {
	for {
		c.mu.Lock()
		closed := c.closed || c.closing && len(c.calls) == 0
		something := len(c.replies) > 0 || c.hasStreamWork()
		c.mu.Unlock()
		if something || closed {
			return something
		}
		<-c.wake
	}
}

func (c *client) hasStreamWork() bool {
	for _, s := range c.streams {
		if s.spool != nil {
			return true
		}
		s.l.Mu.Lock()
		waiting := len(s.l.Queue) > 0 || s.l.End != ""
		s.l.Mu.Unlock()
		if waiting {
			return true
		}
	}
	return false
}

// wakeWriter wakes the writer. It never blocks, because the keeper calls it while locked.
func (c *client) wakeWriter() { notify(c.wake) }

// notify sends to c, a channel of capacity one, unless a notification is pending.
func notify(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

func (c *client) removeStream(s *stream) {
	c.mu.Lock()
	remaining := make([]*stream, 0, len(c.streams))
	for _, other := range c.streams {
		if other != s {
			remaining = append(remaining, other)
		}
	}
	removed := len(remaining) < len(c.streams)
	c.streams = remaining
	c.mu.Unlock()
	if removed {
		c.releaseStream(s)
	}
}

// handle runs one request. If both results are nil, a stream sends the response later.
func (c *client) handle(ctx context.Context, q request, beside *aside) (json.RawMessage, *api.Error) {
	e := c.s.verbs
	if err := e.Tenancy.CheckCaller(q.by); err != nil {
		return nil, err
	}
	if q.by.Connection != "" {
		c.s.connections.hold(q.by.Connection, c)
	}
	if q.by.HasContext() && q.op != "call" && q.op != "open" { // those call EnterScope
		ctx, cancel := withTimeout(ctx, 0)
		defer cancel()
		if err := e.Tenancy.UpdateScope(ctx, q.by); err != nil {
			return nil, err
		}
	}
	switch run := c.s.operations[q.op]; {
	case q.op == "call":
		b, err := readCall(q.body)
		if err != nil {
			return nil, bodyError(q, err)
		}
		ctx, cancel := withTimeout(ctx, b.TimeoutMS)
		defer cancel()
		r := e.Call(ctx, q.by, b)
		beside.enabled = r.Enabled
		if r.Spool != nil {
			c.streamSpool(ctx, q.id, r)
		}
		return r.Result, r.Err
	case q.op == "listen":
		var b api.ListenRequest
		if err := decode(q, &b); err != nil {
			return nil, err
		}
		return nil, c.listen(ctx, q.id, q.by, b)
	case q.op == "end_connection":
		c.s.connections.release(q.by.Connection, c)
		return json.RawMessage("{}"), nil
	case run != nil:
		return run(ctx, q)
	}
	return nil, api.Errorf(api.CodeInvalidArgs, "the keeper has no operation %q", manifest.Clip(q.op, 40))
}

// operation serves the requests of a kind whose result is its response.
type operation func(ctx context.Context, q request) (json.RawMessage, *api.Error)

// operationOf returns the operation that decodes a body, runs within its timeout_ms and encodes the result.
func operationOf[Q, R any](run func(ctx context.Context, by api.Caller, q Q) (R, *api.Error)) operation {
	return func(ctx context.Context, q request) (json.RawMessage, *api.Error) {
		var body Q
		if err := decode(q, &body); err != nil {
			return nil, err
		}
		ctx, cancel := withTimeout(ctx, int64(scan.Number(q.body, "timeout_ms")))
		defer cancel()
		result, err := run(ctx, q.by, body)
		if err != nil {
			return nil, err
		}
		return scan.Marshal(result), nil
	}
}

// operationsOf returns the operations of a server by their names.
func operationsOf(s *server) map[string]operation {
	e := s.verbs
	state := operationOf(func(ctx context.Context, by api.Caller, q api.StateRequest) (any, *api.Error) {
		if q.State == nil {
			return e.SaveState(ctx, by, q.Origins)
		}
		return e.LoadState(ctx, by, q.Origins, *q.State)
	})
	return map[string]operation{
		"open":       operationOf(e.Open),
		"type":       operationOf(e.Type),
		"script":     operationOf(e.Script),
		"input":      operationOf(e.Input),
		"route":      operationOf(e.Route),
		"close":      operationOf(s.close),
		"save_state": state, "load_state": state,
		"uploads": operationOf(func(ctx context.Context, by api.Caller, _ struct{}) (api.UploadFolder, *api.Error) {
			return e.UploadFolder(ctx, by)
		}),
		"activate": operationOf(func(ctx context.Context, by api.Caller, q api.TargetRequest) (api.Page, *api.Error) {
			return e.Activate(ctx, by, q.Target)
		}),
		"close_target": operationOf(func(ctx context.Context, by api.Caller, q api.TargetRequest) (api.Page, *api.Error) {
			return e.CloseTarget(ctx, by, q.Target, q.OnDialog)
		}),
		"targets": operationOf(func(ctx context.Context, by api.Caller, _ struct{}) ([]api.Target, *api.Error) {
			e.Tracker.RefreshTargets(ctx)
			return e.Owners.ListTargets(by, false), nil
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
		"stop": operationOf(func(_ context.Context, by api.Caller, _ struct{}) (struct{}, *api.Error) {
			if !by.IsCommandLine() {
				return struct{}{}, api.Errorf(api.CodeDenied, "only the command line can close what other sessions have opened")
			}
			s.requestStop("closed by a client")
			<-s.stopped
			return struct{}{}, nil
		}),
	}
}

// streamSpool sends the spool of a reply in pieces. It returns when that is done or the call is abandoned.
func (c *client) streamSpool(ctx context.Context, id int64, r mux.Reply) {
	s := &stream{id: id, spool: r.Spool, aside: aside{enabled: r.Enabled}, done: make(chan struct{})}
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		s.spool.Close()
		return
	}
	c.streams = append(c.streams, s)
	c.mu.Unlock()
	c.wakeWriter()
	select {
	case <-ctx.Done():
		c.removeStream(s)
	case <-s.done:
	}
}

// listen starts a stream. It returns when the stream ends or is cancelled.
func (c *client) listen(ctx context.Context, id int64, by api.Caller, b api.ListenRequest) *api.Error {
	var scope *target.Target
	if b.Target != "" {
		var err *api.Error
		if scope, err = c.s.verbs.Owners.Resolve(by, b.Target); err != nil {
			return err
		}
		ctx, cancel := withTimeout(ctx, 0) // the stream itself may be unlimited
		defer cancel()
		if err := c.s.verbs.Tracker.Attach(ctx, scope, ""); err != nil {
			return err
		}
	}
	l, err := c.s.verbs.Events.Listen(by, b, scope, c.wakeWriter)
	if err != nil {
		return err
	}
	c.s.verbs.Events.AttachPages(ctx, l)
	c.s.verbs.Events.AwaitEnabled(ctx, l)
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		c.s.verbs.Events.Unlisten(l)
		return nil
	}
	// The first item notifies the client that the stream is complete from now on.
	c.appendReply(responseFrame(id, "item", []byte(`{"listening":true}`)))
	c.streams = append(c.streams, &stream{id: id, l: l})
	c.mu.Unlock()
	c.wakeWriter()
	go func() {
		var expired <-chan time.Time
		if b.TimeoutMS > 0 {
			timer := time.NewTimer(time.Duration(b.TimeoutMS) * time.Millisecond)
			defer timer.Stop()
			expired = timer.C
		}
		select {
		case <-expired:
			l.Finish("timeout")
		case <-l.Done:
		}
	}()
	select {
	case <-ctx.Done():
		l.Finish("closed")
	case <-l.Done:
	}
	return nil
}

func decode(q request, into any) *api.Error {
	if len(q.body) == 0 {
		return nil
	}
	if err := json.Unmarshal(q.body, into); err != nil {
		return bodyError(q, err)
	}
	return nil
}

func bodyError(q request, err error) *api.Error {
	return api.Errorf(api.CodeInvalidArgs, "the body of %s: %v", q.op, err)
}

func withTimeout(ctx context.Context, ms int64) (context.Context, context.CancelFunc) {
	d := api.DefaultTimeout
	if ms > 0 {
		d = time.Duration(ms) * time.Millisecond
	}
	return context.WithTimeout(ctx, d)
}
