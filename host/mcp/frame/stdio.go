package frame

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// Stdio is a transport over a pair of pipes, with one message per line. An invalid line does not end the connection.
//
// The goroutine that reads requests also refuses those above the bounds. So a client that does not read responses
// blocks when it sends further requests.
type Stdio struct {
	In  io.Reader
	Out io.Writer
	// MaxMessage bounds a message, in bytes, and MaxOpen the requests that have no response yet.
	MaxMessage, MaxOpen int
	// Slots holds a value for each open request, also of other connections. Further requests are refused.
	Slots chan struct{}
	// HungUp is called when the client has hung up. The requests that it sent before still get responses.
	HungUp func()
}

// Connect implements [sdk.Transport].
func (t *Stdio) Connect(context.Context) (sdk.Connection, error) {
	c := &conn{Stdio: t, lines: make(chan line), closed: make(chan struct{}), open: map[string]request{},
		changed: make(chan struct{}, 1)}
	go c.readLines()
	return c, nil
}

// conn is the connection of a [Stdio].
type conn struct {
	*Stdio
	lines     chan line
	closed    chan struct{}
	closeOnce sync.Once
	queue     []jsonrpc.Message // messages of the last frame that Read has yet to return
	revision  string            // "" before initialize

	writing sync.Mutex // held while a line is written

	mu      sync.Mutex
	open    map[string]request // by id; those without a response
	unsent  int                // requests that have not ended
	changed chan struct{}      // holds a value when unsent may have become 0
}

// request is a request that has no response yet.
type request struct {
	batch     *batch // that it is part of, or nil
	cancelled bool   // gets no response, as the protocol requires on stdio
}

// batch collects the responses to a batch.
type batch struct {
	responses [][]byte
	missing   int
}

// line is a line of the input. A line that is too long is not held.
type line struct {
	data    []byte
	tooLong bool
	id      json.RawMessage // if it is too long
	err     error           // after the last line
}

// readLines passes lines on until the input or the connection ends.
func (c *conn) readLines() {
	r := bufio.NewReaderSize(c.In, 64<<10)
	for {
		l := readLine(r, c.MaxMessage)
		for _, l := range []line{{data: l.data, tooLong: l.tooLong, id: l.id}, {err: l.err}} {
			if len(bytes.TrimSpace(l.data)) == 0 && !l.tooLong && l.err == nil {
				continue
			}
			select {
			case c.lines <- l:
			case <-c.closed:
				return
			}
		}
		if l.err != nil {
			return
		}
	}
}

// readLine reads a line. It skims one that is longer than limit.
func readLine(r *bufio.Reader, limit int) (l line) {
	var s skimmer
	for {
		part, err := r.ReadSlice('\n')
		switch {
		case l.tooLong:
			s.write(part)
		case len(l.data)+len(bytes.TrimRight(part, "\r\n")) > limit:
			s.write(l.data)
			s.write(part)
			l.data, l.tooLong = nil, true
		default:
			l.data = append(l.data, part...)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			l.err, l.id = err, s.found()
			return l
		}
	}
}

// Read implements [sdk.Connection].
func (c *conn) Read(ctx context.Context) (jsonrpc.Message, error) {
	for len(c.queue) == 0 {
		select {
		case l := <-c.lines:
			if l.err != nil {
				if errors.Is(l.err, io.EOF) {
					c.HungUp()
					c.drain(ctx)
				}
				return nil, l.err
			}
			if err := c.accept(l); err != nil {
				return nil, err
			}
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-c.closed:
			return nil, io.EOF
		}
	}
	next := c.queue[0]
	c.queue = c.queue[1:]
	return next, nil
}

// accept queues the messages of a line for the SDK and answers what cannot be passed on.
func (c *conn) accept(l line) error {
	entries, isBatch := []entry{invalid(l.id, "the message is longer than %d bytes", c.MaxMessage)}, false
	if !l.tooLong {
		entries, isBatch = parse(l.data, func() string { return c.revision })
	}
	b := &batch{}
	for i := range entries {
		e := &entries[i]
		if e.isCall() {
			e.err = checkVersion(e.version)
		}
		if e.isCall() {
			e.err = c.begin(e.id, b, isBatch)
		}
		switch {
		case e.err != nil:
			b.responses = append(b.responses, errorResponse(e.id, e.err))
			continue
		case e.method == "initialize":
			c.revision = negotiated(e.params)
		case e.method == cancelled:
			c.cancel(e)
		}
		c.queue = append(c.queue, e.message())
	}
	switch {
	case len(b.responses) == 0 || b.missing > 0:
		return nil
	case isBatch:
		return c.writeLine(join(b.responses))
	}
	return c.writeLine(b.responses[0])
}

// begin adds a request to the open ones, unless the bounds forbid it.
func (c *conn) begin(id json.RawMessage, b *batch, isBatch bool) *jsonrpc.Error {
	c.mu.Lock()
	defer c.mu.Unlock()
	key := innerID(id)
	if _, used := c.open[key]; used {
		return &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: "a request with this id has no response yet"}
	}
	busy := &jsonrpc.Error{Code: jsonrpc.CodeInternalError,
		Message: fmt.Sprintf("busy: %d requests have no response yet; nothing was run", c.MaxOpen)}
	if c.unsent >= c.MaxOpen {
		return busy
	}
	select {
	case c.Slots <- struct{}{}:
	default:
		return busy
	}
	c.unsent++
	c.open[key] = request{}
	if isBatch {
		c.open[key] = request{batch: b}
		b.missing++
	}
	return nil
}

// cancel marks the open request that a notification cancels, and spells its id as that request has it.
func (c *conn) cancel(e *entry) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e.spell(func(yield func(string) bool) {
		for inner, r := range c.open {
			id, _ := base64.RawURLEncoding.DecodeString(inner[len(mark()):])
			if !r.cancelled && !yield(string(id)) {
				return
			}
		}
	})
	key := innerID(member(e.params, "requestId"))
	if r, isOpen := c.open[key]; isOpen {
		c.open[key] = request{r.batch, true}
	}
}

// Write implements [sdk.Connection].
func (c *conn) Write(ctx context.Context, message jsonrpc.Message) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	r, isResponse := message.(*jsonrpc.Response)
	if !isResponse {
		raw, err := jsonrpc.EncodeMessage(message)
		if err != nil {
			return err
		}
		return c.writeLine(restore(raw))
	}
	id := outerID(r.ID)
	parts := [][]byte{[]byte(`{"jsonrpc":"2.0","id":`), id, []byte(`,"result":`), restore(r.Result), []byte("}")}
	if r.Error != nil {
		parts = [][]byte{errorResponse(id, outerError(r.Error))}
	}
	defer c.sent()
	if key, isText := r.ID.Raw().(string); isText {
		c.mu.Lock()
		of := c.open[key]
		delete(c.open, key) // the client may use the id again as soon as it has the response
		isSent := !of.cancelled
		if b := of.batch; b != nil {
			if isSent {
				b.responses = append(b.responses, slices.Concat(parts...))
			}
			b.missing--
			if isSent = b.missing == 0 && len(b.responses) > 0; isSent {
				parts = [][]byte{join(b.responses)}
			}
		}
		c.mu.Unlock()
		if !isSent {
			return nil
		}
	}
	return c.writeLine(parts...)
}

// largeLine is the size from which a line is written in parts instead of being copied.
const largeLine = 32 << 10

// writeLine writes the parts of a line.
func (c *conn) writeLine(parts ...[]byte) error {
	size := 0
	for _, part := range parts {
		size += len(part)
	}
	if parts = append(parts, []byte("\n")); size < largeLine {
		parts = [][]byte{slices.Concat(parts...)}
	}
	c.writing.Lock()
	defer c.writing.Unlock()
	for _, part := range parts {
		if _, err := c.Out.Write(part); err != nil {
			return err
		}
	}
	return nil
}

// sent ends a request whose response was written, or cannot be.
func (c *conn) sent() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.unsent == 0 {
		return
	}
	c.unsent--
	<-c.Slots
	if c.unsent == 0 {
		select {
		case c.changed <- struct{}{}:
		default:
		}
	}
}

// drain waits until each request that the client sent before it hung up has a response, or the connection ends.
func (c *conn) drain(ctx context.Context) {
	for {
		c.mu.Lock()
		empty := c.unsent == 0
		c.mu.Unlock()
		if empty {
			return
		}
		select {
		case <-c.changed:
		case <-c.closed:
			return
		case <-ctx.Done():
			return
		}
	}
}

// Close implements [sdk.Connection]. It also ends the requests that can no longer have a response.
func (c *conn) Close() error {
	c.closeOnce.Do(func() { close(c.closed) })
	c.mu.Lock()
	defer c.mu.Unlock()
	for ; c.unsent > 0; c.unsent-- {
		<-c.Slots
	}
	return nil
}

// SessionID implements [sdk.Connection].
func (c *conn) SessionID() string { return "" }
