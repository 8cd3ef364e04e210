package browser

import (
	"errors"
	"fmt"
	"io"
	"sync"
)

const (
	// DefaultMaxMessage is the default size limit of received messages: 128 MiB.
	DefaultMaxMessage = 128 << 20
	// MaxRequest is the largest message that Send accepts: 64 MiB. Chrome resets the connection somewhat above 100
	// MB.
	MaxRequest = 64 << 20

	// Limits of the messages queued for a Chrome that has stopped reading.
	maxQueued      = 4096
	maxQueuedBytes = 2 * MaxRequest
	// truncatedSize is how much is kept of a message over the limit. Chrome writes the id first, so the prefix has
	// it.
	truncatedSize = 4 << 10
	// spillSize is the size above which a message may be spilled: 1 MiB.
	spillSize = 1 << 20
)

var (
	// ErrClosed reports that the connection to the browser has ended.
	ErrClosed = errors.New("the connection to the browser is closed")
	// ErrFull reports that a message was not queued because the browser has stopped reading.
	ErrFull = errors.New("the browser has stopped reading its messages")
)

// Conn carries DevTools messages to and from a browser. Each message is one JSON text.
type Conn interface {
	// Send queues one message and never blocks. It returns ErrFull when the browser has stopped reading, ErrClosed
	// after the connection has ended, and a *TooLargeError above MaxRequest. The caller must not use the message
	// afterwards.
	Send(message []byte) error
	// Receive waits for the next message. One goroutine must call it in a loop, because Chrome drops messages when
	// its peer stops reading (it buffers 256 MiB).
	Receive() (Message, error)
	// SetSpill sets the function that Receive calls for a message above 1 MiB, with the beginning of the message.
	// If it returns a writer, Receive copies the whole message there and ignores write errors; if it returns nil,
	// the message is received as any other. Call SetSpill before the first Receive.
	SetSpill(spill func(beginning []byte) io.Writer)
	// Close ends the connection. A blocked Receive returns ErrClosed.
	Close() error
}

// Message is one message of the browser. If Size exceeds len(Data), Data is only the beginning: either the message
// was over the limit and the rest was dropped, or, with Spilled set, the whole message went to a spill writer.
type Message struct {
	Data    []byte
	Size    int64
	Spilled bool
}

// Truncated reports whether the message was over the limit, so that its end is lost.
func (m Message) Truncated() bool { return m.Size > int64(len(m.Data)) && !m.Spilled }

// conn is a [Conn] over what carries whole messages.
type conn struct {
	queue   *sendQueue
	limit   int
	receive func(add func(part []byte)) error // receives one message
	spill   func(beginning []byte) io.Writer
	close   func()
}

// newConn returns a connection. limit is the largest message received whole, in bytes; zero means DefaultMaxMessage.
func newConn(limit int, receive func(add func(part []byte)) error, send func([]byte) error, end func()) *conn {
	if limit <= 0 {
		limit = DefaultMaxMessage
	}
	c := &conn{limit: limit, receive: receive}
	c.queue = newSendQueue(send, func() { c.close() })
	c.close = sync.OnceFunc(func() {
		c.queue.close()
		end()
	})
	return c
}

func (c *conn) SetSpill(spill func([]byte) io.Writer) { c.spill = spill }

func (c *conn) Send(message []byte) error { return c.queue.send(message) }

func (c *conn) Receive() (Message, error) {
	var (
		m       Message
		offered bool
		spill   io.Writer
	)
	err := c.receive(func(part []byte) {
		m.Size += int64(len(part))
		if m.Size > spillSize && !offered && c.spill != nil {
			offered = true
			if spill = c.spill(m.Data); spill != nil {
				spill.Write(m.Data)
				m.Data, m.Spilled = prefix(m.Data), true
			}
		}
		switch {
		case m.Spilled:
			spill.Write(part)
		case m.Size <= int64(c.limit):
			m.Data = append(m.Data, part...)
		case len(m.Data) > truncatedSize:
			m.Data = prefix(m.Data)
		case len(m.Data) < truncatedSize:
			m.Data = append(m.Data, part[:min(len(part), truncatedSize-len(m.Data))]...)
		}
	})
	switch {
	case err == nil:
		return m, nil
	case errors.Is(err, io.EOF):
		return Message{}, ErrClosed
	}
	return Message{}, errors.Join(ErrClosed, err)
}

func (c *conn) Close() error {
	c.close()
	return nil
}

// prefix returns a copy of the beginning of a message that is not kept whole.
func prefix(data []byte) []byte { return append([]byte(nil), data[:min(len(data), truncatedSize)]...) }

// TooLargeError reports a message to the browser that exceeds MaxRequest. Both fields are in bytes.
type TooLargeError struct{ Size, Limit int }

func (e *TooLargeError) Error() string {
	return fmt.Sprintf("the message has %d bytes; the browser accepts at most %d", e.Size, e.Limit)
}

// sendQueue is the bounded queue between callers, which must not block, and the one goroutine that writes. It
// either writes a message whole or ends the connection, so a browser that pauses its reading finds an unbroken
// stream afterwards.
type sendQueue struct {
	mu     sync.Mutex
	wake   sync.Cond
	queue  [][]byte
	bytes  int
	closed bool
}

func newSendQueue(write func([]byte) error, onFailure func()) *sendQueue {
	q := &sendQueue{}
	q.wake.L = &q.mu
	go func() {
		for {
			message, ok := q.next()
			if !ok {
				return
			}
			if err := write(message); err != nil {
				q.close()
				onFailure()
				return
			}
			q.release(message)
		}
	}()
	return q
}

func (q *sendQueue) send(message []byte) error {
	if len(message) > MaxRequest {
		return &TooLargeError{len(message), MaxRequest}
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case q.closed:
		return ErrClosed
	case len(q.queue) >= maxQueued || q.bytes+len(message) > maxQueuedBytes:
		return ErrFull
	}
	q.queue = append(q.queue, message)
	q.bytes += len(message)
	q.wake.Signal()
	return nil
}

func (q *sendQueue) next() ([]byte, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.queue) == 0 && !q.closed {
		q.wake.Wait()
	}
	if q.closed {
		return nil, false
	}
	message := q.queue[0]
	q.queue[0] = nil
	q.queue = q.queue[1:]
	return message, true
}

// release subtracts a message's bytes only after the write, so that a message stuck in the pipe still counts.
func (q *sendQueue) release(message []byte) {
	q.mu.Lock()
	q.bytes -= len(message)
	q.mu.Unlock()
}

func (q *sendQueue) close() {
	q.mu.Lock()
	q.closed = true
	q.queue = nil
	q.mu.Unlock()
	q.wake.Broadcast()
}
