package mcp

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/parley-tools/parley/host"
)

const (
	// maxMessage bounds one message of a client.
	maxMessage = host.MaxParams + 64<<10
	// maxOpen bounds the requests of one stdio client that have no response yet.
	maxOpen = 256
	// shutdownGrace is how long a server waits for the calls that it has ended.
	shutdownGrace = 3 * time.Second
)

// Stdio serves one client over a pair of pipes. It returns nil after the client has hung up and has been sent the
// responses to all its requests. When ctx ends, it ends the calls under way and returns the cause.
func (s *Server) Stdio(ctx context.Context, in io.Reader, out io.Writer) error {
	m, err := s.modeServer(s.cfg.Mode)
	if err != nil {
		return err
	}
	hungUp, hangUp := context.WithCancel(context.Background())
	defer hangUp()
	w := &lineWriter{w: out}
	r := newLineReader(in, w)
	transport := &boundedTransport{
		hangUp: hangUp, requests: s.requests, reader: r, writer: w,
		inner: &sdk.IOTransport{Reader: r, Writer: w, MaxLineLength: maxMessage + 2},
	}
	connected := context.WithValue(context.WithoutCancel(ctx), hungUpKey{}, hungUp)
	session, err := m.server.Connect(connected, transport, nil)
	if err != nil {
		return err
	}
	defer s.watch()()
	ended := make(chan error, 1)
	go func() { ended <- session.Wait() }()
	select {
	case err := <-ended:
		s.shutdown(host.Errorf(host.Interrupted, "the client hung up"))
		if errors.Is(err, io.EOF) {
			return nil
		}
		return err
	case <-ctx.Done():
		s.shutdown(context.Cause(ctx))
		go session.Close() // it waits for responses that a client may never read
		select {
		case <-ended:
		case <-time.After(s.shutdownGrace):
		}
		return context.Cause(ctx)
	}
}

// hungUpKey is the key of the context of a stdio connection under which a context stands that is done when the client
// has hung up.
type hungUpKey struct{}

// hungUp returns a context that is done when the client of a request on stdio has hung up, and can no longer be asked.
func hungUp(ctx context.Context) context.Context {
	if c, ok := ctx.Value(hungUpKey{}).(context.Context); ok {
		return c
	}
	return context.Background()
}

func (s *Server) shutdown(cause error) {
	ctx, cancel := context.WithTimeout(context.Background(), s.shutdownGrace)
	defer cancel()
	s.Shutdown(ctx, cause)
}

// lineWriter writes one line at a time, for several goroutines.
type lineWriter struct {
	mu sync.Mutex
	w  io.Writer
}

func (l *lineWriter) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(p)
}

func (l *lineWriter) Close() error { return nil }

// writeResult writes the response to a request. The result is JSON on one line.
func (l *lineWriter) writeResult(id jsonrpc.ID, result json.RawMessage) error {
	raw, err := json.Marshal(id.Raw())
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, part := range [][]byte{[]byte(`{"jsonrpc":"2.0","id":`), raw, []byte(`,"result":`), result, []byte("}\n")} {
		if _, err := l.w.Write(part); err != nil {
			return err
		}
	}
	return nil
}

// lineReader reads one message per line. It responds to a line that is too long or not JSON with an error and skips it,
// so that one mistake does not end the connection.
type lineReader struct {
	r      *bufio.Reader
	out    io.Writer
	rest   []byte
	err    error
	closed chan struct{}
	once   sync.Once

	batched atomic.Bool // whether the client has sent several messages in one line
}

func newLineReader(in io.Reader, out io.Writer) *lineReader {
	return &lineReader{r: bufio.NewReaderSize(in, 64<<10), out: out, closed: make(chan struct{})}
}

func (l *lineReader) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

func (l *lineReader) Read(p []byte) (int, error) {
	for len(l.rest) == 0 {
		if l.err != nil {
			return 0, l.err
		}
		l.next()
	}
	n := copy(p, l.rest)
	l.rest = l.rest[n:]
	return n, nil
}

func (l *lineReader) next() {
	line, tooLong, err := readLine(l.r, maxMessage)
	l.err = err
	switch line = bytes.TrimSpace(line); {
	case tooLong:
		l.reportError(jsonrpc.CodeInvalidRequest, fmt.Sprintf("a message is longer than %d bytes", maxMessage))
	case len(line) == 0:
	case !json.Valid(line):
		l.reportError(jsonrpc.CodeParseError, "a line is not one JSON value")
	default:
		if line[0] == '[' {
			l.batched.Store(true)
		}
		l.rest = append(line, '\n')
	}
}

func (l *lineReader) reportError(code int64, message string) {
	_, err := fmt.Fprintf(l.out, `{"jsonrpc":"2.0","id":null,"error":{"code":%d,"message":%q}}`+"\n", code, message)
	if err != nil && l.err == nil {
		l.err = err
	}
}

// readLine reads a line. It discards a line that is longer than limit.
func readLine(r *bufio.Reader, limit int) (line []byte, tooLong bool, err error) {
	for {
		part, err := r.ReadSlice('\n')
		if tooLong = tooLong || len(line)+len(part) > limit; tooLong {
			line = nil
		} else {
			line = append(line, part...)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, tooLong, err
		}
	}
}

// boundedTransport bounds the requests of a client that have no response yet. The goroutine that reads requests also
// refuses those above the bound. So a client that does not read responses blocks when it sends further requests.
type boundedTransport struct {
	inner    sdk.Transport
	hangUp   func()
	requests chan struct{}
	reader   *lineReader
	writer   *lineWriter
}

func (t *boundedTransport) Connect(ctx context.Context) (sdk.Connection, error) {
	inner, err := t.inner.Connect(ctx)
	return &boundedConn{
		Connection: inner, hangUp: t.hangUp, requests: t.requests, reader: t.reader, writer: t.writer,
		open: map[jsonrpc.ID]bool{}, changed: make(chan struct{}, 1),
	}, err
}

type boundedConn struct {
	sdk.Connection
	hangUp   func()
	requests chan struct{} // the server's; it holds a value for each open request
	reader   *lineReader
	writer   *lineWriter
	mu       sync.Mutex
	open     map[jsonrpc.ID]bool // requests without a response
	changed  chan struct{}       // holds a value when open may have become empty
}

func (c *boundedConn) Read(ctx context.Context) (jsonrpc.Message, error) {
	for {
		message, err := c.Connection.Read(ctx)
		if errors.Is(err, io.EOF) {
			c.hangUp()
			c.drain(ctx)
		}
		request, ok := message.(*jsonrpc.Request)
		if err != nil || !ok || !request.IsCall() {
			return message, err
		}
		if c.begin(request.ID) {
			return message, nil
		}
		busy := &jsonrpc.Response{ID: request.ID, Error: &jsonrpc.Error{
			Code:    jsonrpc.CodeInternalError,
			Message: fmt.Sprintf("busy: %d requests have no response yet; nothing was run", maxOpen),
		}}
		if err := c.Connection.Write(ctx, busy); err != nil {
			return nil, err
		}
	}
}

// begin adds a request to the open ones, and reports whether the bound allows it.
func (c *boundedConn) begin(id jsonrpc.ID) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open[id] {
		return true
	}
	if len(c.open) >= maxOpen {
		return false
	}
	select {
	case c.requests <- struct{}{}:
	default:
		return false
	}
	c.open[id] = true
	return true
}

// Close also ends the requests that can no longer have a response.
func (c *boundedConn) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for id := range c.open {
		c.end(id)
	}
	return c.Connection.Close()
}

// end removes a request from the open ones. The caller holds c.mu.
func (c *boundedConn) end(id jsonrpc.ID) {
	if c.open[id] {
		delete(c.open, id)
		<-c.requests
	}
}

// largeResult is the size from which a result is written as it is. The SDK would check it and copy it once more.
const largeResult = 32 << 10

func (c *boundedConn) Write(ctx context.Context, message jsonrpc.Message) (err error) {
	response, ok := message.(*jsonrpc.Response)
	if ok && len(response.Result) >= largeResult && response.Error == nil && ctx.Err() == nil &&
		!c.reader.batched.Load() { // the SDK collects the responses to a batch
		err = c.writer.writeResult(response.ID, response.Result)
	} else {
		err = c.Connection.Write(ctx, message)
	}
	if ok {
		c.mu.Lock()
		c.end(response.ID)
		empty := len(c.open) == 0
		c.mu.Unlock()
		if empty {
			select {
			case c.changed <- struct{}{}:
			default:
			}
		}
	}
	return err
}

// drain waits until each request that the client sent before it hung up has a response.
func (c *boundedConn) drain(ctx context.Context) {
	for {
		c.mu.Lock()
		empty := len(c.open) == 0
		c.mu.Unlock()
		if empty {
			return
		}
		select {
		case <-c.changed:
		case <-ctx.Done():
			return
		}
	}
}
