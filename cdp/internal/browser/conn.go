package browser

import (
	"errors"
	"fmt"
	"io"
	"sync"
)

const (
	// DefaultMaxMessage is the largest message that is read whole: 128 MiB.
	DefaultMaxMessage = 128 << 20
	// MaxRequest is the largest message that Send takes: 64 MiB. Chrome resets the
	// connection somewhat above 100 MB.
	MaxRequest = 64 << 20

	// What waits for a Chrome that has stopped reading is bounded, in messages and bytes.
	maxQueued      = 4096
	maxQueuedBytes = 2 * MaxRequest
	// Of a message over the limit, this much is kept: Chrome writes the id first.
	truncatedSize = 4 << 10
	// spillSize is the size from which a message may be spilled: 1 MiB.
	spillSize = 1 << 20
)

var (
	// ErrClosed says that the connection to Chrome has ended.
	ErrClosed = errors.New("the connection to the browser is closed")
	// ErrFull says that the browser has stopped reading, so that a message was not queued.
	ErrFull = errors.New("the browser has stopped reading its messages")
)

// Conn carries DevTools messages, each one JSON text, to and from a browser.
type Conn interface {
	// Send queues one message and never blocks: it answers ErrFull when the browser
	// has stopped reading, ErrClosed after the end, and a TooLargeError above MaxRequest.
	// The message must not be used afterwards.
	Send(message []byte) error
	// Receive waits for the next message. One goroutine must call it in a loop, for
	// Chrome drops messages when its peer stops reading (it buffers 256 MiB).
	Receive() (Message, error)
	// SetSpill says who is asked, within Receive, where a message of more than 1 MiB goes, by its
	// beginning: to a writer, whose errors are the writer's own matter, or nil for as any other.
	// It is called before the first Receive.
	SetSpill(spill func(beginning []byte) io.Writer)
	// Close ends the connection; a waiting Receive returns.
	Close() error
}

// Message is one message of the browser. When Size is above len(Data) it was over
// the limit: Data is its beginning only and the rest was read and dropped, or the whole
// went to the writer that Spill's function named.
type Message struct {
	Data    []byte
	Size    int64
	Spilled bool
}

// Truncated reports whether the message was over the limit.
func (m Message) Truncated() bool { return m.Size > int64(len(m.Data)) && !m.Spilled }

// prefix is what is kept of a message that is not kept.
func prefix(data []byte) []byte { return append([]byte(nil), data[:min(len(data), truncatedSize)]...) }

// TooLargeError says that a message to the browser is over MaxRequest.
type TooLargeError struct{ Size, Limit int }

func (e *TooLargeError) Error() string {
	return fmt.Sprintf("the message has %d bytes, the browser takes at most %d", e.Size, e.Limit)
}

// sendQueue is the bounded queue between callers, who must not block, and the one
// goroutine that writes. A message is written whole or the connection is over, so
// a browser that stops reading for a while finds an unbroken stream afterwards.
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

// release gives back the bytes only after the write, so that a message stuck in
// the pipe still counts.
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
