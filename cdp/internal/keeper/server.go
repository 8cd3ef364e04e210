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
	// end asks the keeper to end, and is closed over what follows, see Main.
	end func(reason string)
	// ended is closed when the browser is gone and its files are removed.
	ended chan struct{}

	mu      sync.Mutex
	clients map[*client]bool
	serving int // requests under way
	lastUse time.Time
}

// client is one connection. Its writer sends replies first and events when no
// reply waits, so a reply never waits behind events, nor the engine for a client.
// While the writer has nothing to do, a reply is sent by who has it.
type client struct {
	conn net.Conn
	s    *server

	wake    chan struct{} // holds one when there may be something to send
	sending sync.Mutex    // held by who writes to conn

	mu      sync.Mutex
	replies [][][]byte
	unread  int           // bytes of replies
	fewer   chan struct{} // holds one when there may be fewer of them
	streams []*stream
	calls   map[int64]context.CancelFunc
	ending  bool
	closed  bool
}

// stream is what comes piece by piece: events of a listener, or the result in a spool.
type stream struct {
	id    int64
	l     *listener
	spool *spool
	over  chan struct{} // closed when the spool is read, or will not be
}

const (
	maxInFlight  = 256
	maxUnread    = 16 << 20 // bytes of answers that wait for a client, above which it is not listened to
	helloTimeout = 10 * time.Second
)

func newServer(e *engine, h hello) *server {
	return &server{engine: e, hello: h, ended: make(chan struct{}), clients: map[*client]bool{}, lastUse: time.Now()}
}

// serve accepts clients until the listener is closed.
func (s *server) serve(l net.Listener) {
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		go s.client(conn)
	}
}

func (s *server) client(conn net.Conn) {
	defer conn.Close()
	if uid, _, err := peer(conn); err != nil || uid != os.Geteuid() {
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
		s.end("a program of another version replaces this keeper")
		return
	}
	if theirs.Wire != WireVersion {
		return
	}
	conn.SetDeadline(time.Time{})

	c := &client{conn: conn, s: s, wake: make(chan struct{}, 1), fewer: make(chan struct{}, 1), calls: map[int64]context.CancelFunc{}}
	s.mu.Lock()
	s.clients[c] = true
	s.mu.Unlock()
	written := make(chan struct{})
	go func() {
		defer close(written)
		c.write()
		conn.Close()
		c.drop() // for a client that is not listened to
	}()
	c.read(r)
	c.drop()
	<-written
	s.mu.Lock()
	delete(s.clients, c)
	s.mu.Unlock()
}

// used counts a request that begins (1) or ends (-1).
func (s *server) used(change int) {
	s.mu.Lock()
	s.serving += change
	s.lastUse = time.Now()
	s.mu.Unlock()
}

// idleFor is how long nobody asked anything; one who is only connected does not count,
// one who listens does.
func (s *server) idleFor() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.serving > 0 {
		return 0
	}
	return time.Since(s.lastUse)
}

func (s *server) clientCount() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.clients)
}

// hangUp lets each client have what is already answered, and closes it.
func (s *server) hangUp(patience time.Duration) {
	s.mu.Lock()
	var open []*client
	for c := range s.clients {
		open = append(open, c)
	}
	s.mu.Unlock()
	for _, c := range open {
		c.conn.SetWriteDeadline(time.Now().Add(patience))
		c.mu.Lock()
		c.ending = true
		c.mu.Unlock()
		c.stir()
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
			c.queue(answerParts(q.id, "error", mustJSON(errf(CodeLimitExceeded, "%d requests are under way on this connection; wait for their answers", maxInFlight))))
			continue
		}
		c.s.used(1)
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
		behind := c.unread > maxUnread && !c.closed
		c.mu.Unlock()
		if !behind {
			return
		}
		<-c.fewer
	}
}

// keep lets a reply wait for the writer. The client is locked.
func (c *client) keep(parts [][]byte) {
	if !c.closed {
		c.replies = append(c.replies, parts)
		c.unread += sizeOf(parts)
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
		result, failure := c.serve(j.ctx, j.request)
		var touched []string
		if j.by.plugin() && (failure != nil || result != nil) {
			touched = c.s.engine.touched(j.by)
		}
		switch {
		case failure != nil:
			c.finish(j.id, answerParts(j.id, "error", mustJSON(failure), touched...))
		case result != nil:
			c.finish(j.id, answerParts(j.id, "result", result, touched...))
		default: // a stream has answered
			c.finish(j.id, nil)
		}
		j.cancel()
		c.s.used(-1)
	}
}

// finish makes room for another request, and then answers this one. While the writer sleeps the answer is sent here, which waits for a
// client that does not read, as nobody else does.
func (c *client) finish(id int64, parts [][]byte) {
	asleep := parts != nil && c.sending.TryLock()
	if asleep {
		defer c.sending.Unlock()
	}
	c.mu.Lock()
	delete(c.calls, id)
	now := asleep && !c.closed && len(c.replies) == 0
	if parts != nil && !now {
		c.keep(parts)
	}
	wake := !now || c.ending
	c.mu.Unlock()
	if now && writeFrame(c.conn, parts...) != nil {
		c.conn.Close()
	}
	if wake {
		c.stir()
	}
}

func (c *client) queue(parts [][]byte) {
	c.mu.Lock()
	c.keep(parts)
	c.mu.Unlock()
	c.stir()
}

// drop abandons everything that the client asked.
func (c *client) drop() {
	c.mu.Lock()
	c.closed = true
	for _, cancel := range c.calls {
		cancel()
	}
	streams := c.streams
	c.streams = nil
	c.mu.Unlock()
	c.stir()
	nudge(c.fewer)
	for _, s := range streams {
		c.end(s)
	}
}

// end frees what a stream holds.
func (c *client) end(s *stream) {
	if s.l != nil {
		c.s.engine.unlisten(s.l)
		return
	}
	s.spool.close()
	close(s.over)
}

// write sends what is there until the connection ends.
func (c *client) write() {
	w := bufio.NewWriterSize(c.conn, 64<<10)
	c.sending.Lock()
	defer c.sending.Unlock()
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
			c.sending.Unlock()
			more := c.sleep()
			c.sending.Lock()
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
		c.unread -= sizeOf(parts)
		c.mu.Unlock()
		nudge(c.fewer)
		return parts, false, true
	}
	streams := c.streams
	c.mu.Unlock()
	for _, s := range streams {
		if s.spool != nil {
			return c.piece(s), false, true
		}
		line, end := s.l.take(c.s.engine.name)
		switch {
		case line != nil:
			return answerParts(s.id, "item", line), false, true
		case end != "":
			c.removeStream(s)
			return answerParts(s.id, "result", mustJSON(ListenEnd{end})), false, true
		}
	}
	return nil, true, true
}

// piece answers the frame with the next piece of a spool, or the last of its answer.
func (c *client) piece(s *stream) [][]byte {
	piece, err := s.spool.next()
	if err == nil {
		return pieceParts(s.id, piece)
	}
	c.removeStream(s)
	if err != io.EOF {
		return answerParts(s.id, "error", mustJSON(errf(CodeUnavailable, "the reply on disk cannot be read: %v", err)))
	}
	return answerParts(s.id, "result", []byte("{}"))
}

// sleep waits until there may be something to send; false when the client is to be closed.
func (c *client) sleep() bool {
	for {
		c.mu.Lock()
		closed := c.closed || c.ending && len(c.calls) == 0
		something := len(c.replies) > 0 || c.anyWaiting()
		c.mu.Unlock()
		if something || closed {
			return something
		}
		<-c.wake
	}
}

func (c *client) anyWaiting() bool {
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

// stir wakes the writer and never waits, for the engine calls it while locked.
func (c *client) stir() { nudge(c.wake) }

// nudge lets a channel hold one.
func nudge(one chan struct{}) {
	select {
	case one <- struct{}{}:
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
		c.end(s)
	}
}

// serve runs one request. A nil result without a failure: a stream answers later.
func (c *client) serve(ctx context.Context, q request) (json.RawMessage, *Error) {
	e := c.s.engine
	if err := e.admit(q.by); err != nil {
		return nil, err
	}
	if q.by.plugin() && q.op != "call" && q.op != "open" { // which enter
		ctx, cancel := timeout(ctx, 0)
		defer cancel()
		if err := e.hold(ctx, q.by); err != nil {
			return nil, err
		}
	}
	switch q.op {
	case "call":
		b, err := readCall(q.body)
		if err != nil {
			return nil, badBody(q, err)
		}
		ctx, cancel := timeout(ctx, b.TimeoutMS)
		defer cancel()
		r := e.call(ctx, q.by, b)
		if r.spool != nil {
			c.pour(ctx, q.id, r.spool)
		}
		return r.result, r.err
	case "open":
		var b OpenRequest
		if err := decode(q, &b); err != nil {
			return nil, err
		}
		ctx, cancel := timeout(ctx, b.TimeoutMS)
		defer cancel()
		return answered(e.open(ctx, q.by, b))
	case "activate", "close_target":
		var b targetRequest
		if err := decode(q, &b); err != nil {
			return nil, err
		}
		ctx, cancel := timeout(ctx, b.TimeoutMS)
		defer cancel()
		if q.op == "activate" {
			return answered(e.activate(ctx, q.by, b.Target))
		}
		return answered(e.closeTarget(ctx, q.by, b.Target, b.OnDialog))
	case "targets":
		e.refresh(ctx)
		return mustJSON(e.list(q.by)), nil
	case "status":
		e.refresh(ctx)
		return mustJSON(c.s.status(q.by)), nil
	case "events":
		var b EventsRequest
		if err := decode(q, &b); err != nil {
			return nil, err
		}
		return answered(e.kept(q.by, b))
	case "listen":
		var b ListenRequest
		if err := decode(q, &b); err != nil {
			return nil, err
		}
		return nil, c.listen(ctx, q.id, q.by, b)
	case "close":
		if q.by.plugin() {
			return answered(e.closeAll(q.by))
		}
		c.s.end("closed by a client")
		<-c.s.ended
		return json.RawMessage("{}"), nil
	}
	return nil, errf(CodeInvalidArgs, "the keeper has no operation %q", manifest.Clip(q.op, 40))
}

// pour sends a spool piece by piece, and stays until that is done or given up.
func (c *client) pour(ctx context.Context, id int64, spool *spool) {
	s := &stream{id: id, spool: spool, over: make(chan struct{})}
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		spool.close()
		return
	}
	c.streams = append(c.streams, s)
	c.mu.Unlock()
	c.stir()
	select {
	case <-ctx.Done():
		c.removeStream(s)
	case <-s.over:
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
		ctx, cancel := timeout(ctx, 0) // the stream itself may have no end
		defer cancel()
		if err := c.s.engine.attach(ctx, scope, ""); err != nil {
			return err
		}
	}
	l, err := c.s.engine.listen(by, b, scope, c.stir)
	if err != nil {
		return err
	}
	c.s.engine.join(ctx, l)
	c.s.engine.heard(ctx, l)
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		c.s.engine.unlisten(l)
		return nil
	}
	// The first item is the promise that nothing after it is missed.
	c.keep(answerParts(id, "item", []byte(`{"listening":true}`)))
	c.streams = append(c.streams, &stream{id: id, l: l})
	c.mu.Unlock()
	c.stir()
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
		case <-l.over:
		}
	}()
	select {
	case <-ctx.Done():
		l.finish("closed")
	case <-l.over:
	}
	return nil
}

func decode(q request, into any) *Error {
	if len(q.body) == 0 {
		return nil
	}
	if err := json.Unmarshal(q.body, into); err != nil {
		return badBody(q, err)
	}
	return nil
}

func badBody(q request, err error) *Error {
	return errf(CodeInvalidArgs, "the body of %s: %v", q.op, err)
}

func answered[T any](result T, err *Error) (json.RawMessage, *Error) {
	if err != nil {
		return nil, err
	}
	return mustJSON(result), nil
}

func timeout(ctx context.Context, ms int64) (context.Context, context.CancelFunc) {
	d := DefaultTimeout
	if ms > 0 {
		d = time.Duration(ms) * time.Millisecond
	}
	return context.WithTimeout(ctx, d)
}
