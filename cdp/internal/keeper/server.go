package keeper

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net"
	"os"
	"sync"
	"time"

	"github.com/parley-tools/parley/manifest"
)

// server answers clients on the socket.
type server struct {
	engine *engine
	hello  hello
	status func(by Caller) Status
	// requestStop asks the keeper to end, and is closed over what follows, see Main.
	requestStop func(reason string)
	// stopped is closed when the browser is gone and its files are removed.
	stopped chan struct{}

	mu             sync.Mutex
	clients        map[*client]bool
	activeRequests int // requests under way
	lastUse        time.Time
}

// client is one connection. Its writer sends replies first and events when no
// reply waits, so a reply never waits behind events, nor the engine for a client.
// While the writer has nothing to do, a reply is sent by who has it.
type client struct {
	conn net.Conn
	s    *server

	wake    chan struct{} // holds one when there may be something to send
	writeMu sync.Mutex    // held by who writes to conn

	mu          sync.Mutex
	replies     [][][]byte
	queuedBytes int           // bytes of replies
	drained     chan struct{} // holds one when there may be fewer of them
	streams     []*stream
	calls       map[int64]context.CancelFunc
	closing     bool
	closed      bool
}

// stream is what comes piece by piece: events of a listener, or the result in a spool.
type stream struct {
	id    int64
	l     *listener
	spool *spool
	done  chan struct{} // closed when the spool is read, or will not be
}

const (
	maxInFlight    = 256
	maxQueuedBytes = 16 << 20 // bytes of answers that wait for a client, above which it is not listened to
	helloTimeout   = 10 * time.Second
)

func newServer(e *engine, h hello) *server {
	return &server{engine: e, hello: h, stopped: make(chan struct{}), clients: map[*client]bool{}, lastUse: time.Now()}
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
	theirs, err := readHello(r)
	if err != nil {
		return
	}
	if writeFrame(conn, mustJSON(s.hello)) != nil {
		return
	}
	if theirs.Replace {
		s.requestStop("a program of another version replaces this keeper")
		return
	}
	if theirs.Wire != WireVersion {
		return
	}
	conn.SetDeadline(time.Time{})

	c := &client{conn: conn, s: s, wake: make(chan struct{}, 1), drained: make(chan struct{}, 1), calls: map[int64]context.CancelFunc{}}
	s.mu.Lock()
	s.clients[c] = true
	s.mu.Unlock()
	written := make(chan struct{})
	go func() {
		defer close(written)
		c.write()
		conn.Close()
		c.abandonAll() // for a client that is not listened to
	}()
	c.read(r)
	c.abandonAll()
	<-written
	s.mu.Lock()
	delete(s.clients, c)
	s.mu.Unlock()
}

// countRequest counts a request that begins (1) or ends (-1).
func (s *server) countRequest(change int) {
	s.mu.Lock()
	s.activeRequests += change
	s.lastUse = time.Now()
	s.mu.Unlock()
}

// idleFor is how long nobody asked anything; one who is only connected does not count,
// one who listens does.
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

// closeClients lets each client have what is already answered, and closes it.
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

// read takes requests until the client closes or says something that is none. One who asks on, and does not read, has to wait.
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
			c.sendReply(responseParts(q.id, "error", mustJSON(errf(CodeLimitExceeded, "%d requests are under way on this connection; wait for their answers", maxInFlight))))
			continue
		}
		c.s.countRequest(1)
		next := job{q, ctx, cancel}
		select {
		case jobs <- next:
		default:
			go c.work(next, jobs)
		}
	}
}

// awaitReader waits while more than maxUnread bytes wait for the client.
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

// appendReply lets a reply wait for the writer. The client is locked.
func (c *client) appendReply(parts [][]byte) {
	if !c.closed {
		c.replies = append(c.replies, parts)
		c.queuedBytes += totalSize(parts)
	}
}

// job is a request that is to be served.
type job struct {
	request
	ctx    context.Context
	cancel context.CancelFunc
}

// work serves a request, and then those that come while it has nothing to do: its stack has grown to what that takes.
func (c *client) work(j job, jobs <-chan job) {
	for ok := true; ok; j, ok = <-jobs {
		result, failure := c.handle(j.ctx, j.request)
		var rights []string
		if j.by.isPlugin() && (failure != nil || result != nil) {
			rights = c.s.engine.takeUsedRights(j.by)
		}
		switch {
		case failure != nil:
			c.finish(j.id, responseParts(j.id, "error", mustJSON(failure), rights...))
		case result != nil:
			c.finish(j.id, responseParts(j.id, "result", result, rights...))
		default: // a stream has answered
			c.finish(j.id, nil)
		}
		j.cancel()
		c.s.countRequest(-1)
	}
}

// finish makes room for another request, and then answers this one. While the writer sleeps the answer is sent here, which waits for a
// client that does not read, as nobody else does.
func (c *client) finish(id int64, parts [][]byte) {
	writerIdle := parts != nil && c.writeMu.TryLock()
	if writerIdle {
		defer c.writeMu.Unlock()
	}
	c.mu.Lock()
	delete(c.calls, id)
	now := writerIdle && !c.closed && len(c.replies) == 0
	if parts != nil && !now {
		c.appendReply(parts)
	}
	wake := !now || c.closing
	c.mu.Unlock()
	if now && writeFrame(c.conn, parts...) != nil {
		c.conn.Close()
	}
	if wake {
		c.wakeWriter()
	}
}

func (c *client) sendReply(parts [][]byte) {
	c.mu.Lock()
	c.appendReply(parts)
	c.mu.Unlock()
	c.wakeWriter()
}

// abandonAll abandons everything that the client asked.
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

// releaseStream frees what a stream holds.
func (c *client) releaseStream(s *stream) {
	if s.l != nil {
		c.s.engine.unlisten(s.l)
		return
	}
	s.spool.close()
	close(s.done)
}

// write sends what is there until the connection ends.
func (c *client) write() {
	w := bufio.NewWriterSize(c.conn, 64<<10)
	c.writeMu.Lock()
	defer c.writeMu.Unlock()
	for {
		parts, idle, ok := c.next()
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
		if writeFrame(w, parts...) != nil {
			return
		}
	}
}

// next answers the next frame, replies first; idle when there is none.
func (c *client) next() (parts [][]byte, idle, ok bool) {
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return nil, false, false
	}
	if len(c.replies) > 0 {
		parts = c.replies[0]
		c.replies[0] = nil
		c.replies = c.replies[1:]
		c.queuedBytes -= totalSize(parts)
		c.mu.Unlock()
		notify(c.drained)
		return parts, false, true
	}
	streams := c.streams
	c.mu.Unlock()
	for _, s := range streams {
		if s.spool != nil {
			return c.nextPiece(s), false, true
		}
		line, end := s.l.next(c.s.engine.name)
		switch {
		case line != nil:
			return responseParts(s.id, "item", line), false, true
		case end != "":
			c.removeStream(s)
			return responseParts(s.id, "result", mustJSON(ListenEnd{end})), false, true
		}
	}
	return nil, true, true
}

// nextPiece answers the frame with the next piece of a spool, or the last of its answer.
func (c *client) nextPiece(s *stream) [][]byte {
	piece, err := s.spool.next()
	if err == nil {
		return pieceParts(s.id, piece)
	}
	c.removeStream(s)
	if err != io.EOF {
		return responseParts(s.id, "error", mustJSON(errf(CodeUnavailable, "the reply on disk cannot be read: %v", err)))
	}
	return responseParts(s.id, "result", []byte("{}"))
}

// awaitWork waits until there may be something to send; false when the client is to be closed.
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
		s.l.mu.Lock()
		waiting := len(s.l.queue) > 0 || s.l.end != ""
		s.l.mu.Unlock()
		if waiting {
			return true
		}
	}
	return false
}

// wakeWriter wakes the writer and never waits, for the engine calls it while locked.
func (c *client) wakeWriter() { notify(c.wake) }

// notify lets a channel hold one.
func notify(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

func (c *client) removeStream(s *stream) {
	c.mu.Lock()
	kept := make([]*stream, 0, len(c.streams))
	for _, other := range c.streams {
		if other != s {
			kept = append(kept, other)
		}
	}
	was := len(kept) < len(c.streams)
	c.streams = kept
	c.mu.Unlock()
	if was {
		c.releaseStream(s)
	}
}

// handle runs one request. A nil result without a failure: a stream answers later.
func (c *client) handle(ctx context.Context, q request) (json.RawMessage, *Error) {
	e := c.s.engine
	if err := e.checkCaller(q.by); err != nil {
		return nil, err
	}
	if q.by.isPlugin() && q.op != "call" && q.op != "open" { // which enter
		ctx, cancel := withTimeout(ctx, 0)
		defer cancel()
		if err := e.updateScope(ctx, q.by); err != nil {
			return nil, err
		}
	}
	switch q.op {
	case "call":
		b, err := readCall(q.body)
		if err != nil {
			return nil, bodyError(q, err)
		}
		ctx, cancel := withTimeout(ctx, b.TimeoutMS)
		defer cancel()
		r := e.call(ctx, q.by, b)
		if r.spool != nil {
			c.streamSpool(ctx, q.id, r.spool)
		}
		return r.result, r.err
	case "open":
		var b OpenRequest
		if err := decode(q, &b); err != nil {
			return nil, err
		}
		ctx, cancel := withTimeout(ctx, b.TimeoutMS)
		defer cancel()
		return marshalResult(e.open(ctx, q.by, b))
	case "activate", "close_target":
		var b targetRequest
		if err := decode(q, &b); err != nil {
			return nil, err
		}
		ctx, cancel := withTimeout(ctx, b.TimeoutMS)
		defer cancel()
		if q.op == "activate" {
			return marshalResult(e.activate(ctx, q.by, b.Target))
		}
		return marshalResult(e.closeTarget(ctx, q.by, b.Target, b.OnDialog))
	case "targets":
		e.refreshTargets(ctx)
		return mustJSON(e.listTargets(q.by)), nil
	case "status":
		e.refreshTargets(ctx)
		return mustJSON(c.s.status(q.by)), nil
	case "events":
		var b EventsRequest
		if err := decode(q, &b); err != nil {
			return nil, err
		}
		return marshalResult(e.storedEvents(q.by, b))
	case "listen":
		var b ListenRequest
		if err := decode(q, &b); err != nil {
			return nil, err
		}
		return nil, c.listen(ctx, q.id, q.by, b)
	case "close":
		if q.by.isPlugin() {
			return marshalResult(e.closeScope(q.by))
		}
		c.s.requestStop("closed by a client")
		<-c.s.stopped
		return json.RawMessage("{}"), nil
	}
	return nil, errf(CodeInvalidArgs, "the keeper has no operation %q", manifest.Clip(q.op, 40))
}

// streamSpool sends a spool piece by piece, and stays until that is done or given up.
func (c *client) streamSpool(ctx context.Context, id int64, spool *spool) {
	s := &stream{id: id, spool: spool, done: make(chan struct{})}
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		spool.close()
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

// listen starts a stream and stays until it ends or is cancelled.
func (c *client) listen(ctx context.Context, id int64, by Caller, b ListenRequest) *Error {
	var scope *target
	if b.Target != "" {
		var err *Error
		if scope, err = c.s.engine.resolve(by, b.Target); err != nil {
			return err
		}
		ctx, cancel := withTimeout(ctx, 0) // the stream itself may have no end
		defer cancel()
		if err := c.s.engine.attach(ctx, scope, ""); err != nil {
			return err
		}
	}
	l, err := c.s.engine.listen(by, b, scope, c.wakeWriter)
	if err != nil {
		return err
	}
	c.s.engine.attachPages(ctx, l)
	c.s.engine.awaitEnabled(ctx, l)
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		c.s.engine.unlisten(l)
		return nil
	}
	// The first item is the promise that nothing after it is missed.
	c.appendReply(responseParts(id, "item", []byte(`{"listening":true}`)))
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
			l.finish("timeout")
		case <-l.done:
		}
	}()
	select {
	case <-ctx.Done():
		l.finish("closed")
	case <-l.done:
	}
	return nil
}

func decode(q request, into any) *Error {
	if len(q.body) == 0 {
		return nil
	}
	if err := json.Unmarshal(q.body, into); err != nil {
		return bodyError(q, err)
	}
	return nil
}

func bodyError(q request, err error) *Error {
	return errf(CodeInvalidArgs, "the body of %s: %v", q.op, err)
}

func marshalResult[T any](result T, err *Error) (json.RawMessage, *Error) {
	if err != nil {
		return nil, err
	}
	return mustJSON(result), nil
}

func withTimeout(ctx context.Context, ms int64) (context.Context, context.CancelFunc) {
	d := DefaultTimeout
	if ms > 0 {
		d = time.Duration(ms) * time.Millisecond
	}
	return context.WithTimeout(ctx, d)
}
