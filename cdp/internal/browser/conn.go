package browser

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
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

// conn is a [Conn] over functions that carry whole messages. A bounded queue lies between the callers, which must not
// block, and the one goroutine that writes. A message is either written whole or the connection ends, so a browser
// that stops reading for a while finds an unbroken stream afterwards.
type conn struct {
	queue   chan []byte
	waiting atomic.Int64 // bytes in the queue, and of the message being written
	closed  chan struct{}
	limit   int
	receive func(add func(part []byte)) error // receives one message
	spill   func(beginning []byte) io.Writer
	close   func()
}

// newConn returns a connection. limit is the largest message received whole, in bytes; zero means DefaultMaxMessage.
func newConn(limit int, receive func(add func(part []byte)) error, send func([]byte) error, end func()) *conn {
	c := &conn{limit: cmp.Or(limit, DefaultMaxMessage), receive: receive, queue: make(chan []byte, maxQueued),
		closed: make(chan struct{})}
	c.close = sync.OnceFunc(func() {
		close(c.closed)
		end()
	})
	go func() {
		for {
			select {
			case message := <-c.queue:
				if send(message) != nil {
					c.close()
				}
				c.waiting.Add(-int64(len(message))) // only now: a message stuck in the pipe still counts
			case <-c.closed:
				return
			}
		}
	}()
	return c
}

func (c *conn) SetSpill(spill func([]byte) io.Writer) { c.spill = spill }

func (c *conn) Send(message []byte) error {
	size := int64(len(message))
	if size > MaxRequest {
		return &TooLargeError{len(message), MaxRequest}
	}
	select {
	case <-c.closed:
		return ErrClosed
	default:
	}
	if c.waiting.Add(size) <= maxQueuedBytes {
		select {
		case c.queue <- message:
			return nil
		default:
		}
	}
	c.waiting.Add(-size)
	return ErrFull
}

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

// NewPipe returns a connection over the two ends of a debugging pipe, which carries JSON texts, each terminated by a
// NUL byte. limit is the largest message read whole, in bytes; zero means DefaultMaxMessage.
func NewPipe(from io.ReadCloser, to io.WriteCloser, limit int) Conn {
	r := bufio.NewReaderSize(from, 256<<10)
	receive := func(add func(part []byte)) error {
		for {
			part, err := r.ReadSlice(0)
			switch {
			case err == nil:
				add(part[:len(part)-1])
				return nil
			case !errors.Is(err, bufio.ErrBufferFull):
				return err
			}
			add(part)
		}
	}
	send := func(message []byte) error {
		_, err := to.Write(append(message, 0))
		return err
	}
	return newConn(limit, receive, send, func() {
		to.Close()
		from.Close()
	})
}
