package fleet

import (
	"cmp"
	"encoding/binary"
	"io"
	"sync"

	"github.com/nats-io/nats.go"
)

// stream is one side of the connection of a call. What is written goes out in messages that are counted, so that one
// that was lost, or sent by somebody else, ends the stream. A message without bytes is its end. The server says where
// one was sent if nobody listens there.
type stream struct {
	conn     *nats.Conn
	to, from string // subjects of the two sides
	most     int    // bytes of a message
	limit    int    // bytes that may wait to be read

	writing sync.Mutex
	sent    uint64

	mu       sync.Mutex
	came     sync.Cond
	received uint64
	waiting  [][]byte
	size     int    // of what waits
	cause    string // why it has ended; "" while it has not
}

const countBytes = 8

// Causes of an end that the other side has sent, and that this side has decided.
const endedByOther, endedHere = "it ended the call", "the call has ended"

// messageBytes is how large a message may be, so that it does not hold up others. The server may allow less.
const messageBytes = 256 << 10

func newStream(conn *nats.Conn, to, from string, limit int) *stream {
	most := min(messageBytes, cmp.Or(int(conn.MaxPayload()), messageBytes)) // 0 without a connection
	s := &stream{conn: conn, to: to, from: from, most: most - countBytes, limit: limit}
	s.came.L = &s.mu
	return s
}

// Write sends bytes.
func (s *stream) Write(p []byte) (int, error) {
	s.writing.Lock()
	defer s.writing.Unlock()
	for rest := p; len(rest) > 0; {
		part := rest[:min(len(rest), s.most)]
		rest = rest[len(part):]
		if s.reason() != "" || s.send(part) != nil {
			s.end("the connection to the fleet was lost")
			return 0, io.ErrUnexpectedEOF
		}
	}
	return len(p), nil
}

// send sends one message. writing is locked.
func (s *stream) send(part []byte) error {
	message := append(binary.BigEndian.AppendUint64(make([]byte, 0, countBytes+len(part)), s.sent), part...)
	s.sent++
	return s.conn.PublishRequest(s.to, s.from, message)
}

// finish tells the other side that this one has ended.
func (s *stream) finish() {
	s.writing.Lock()
	defer s.writing.Unlock()
	_ = s.send(nil)
}

// receive takes a message. It reports whether it is the first one.
func (s *stream) receive(m *nats.Msg) (first bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	message := m.Data
	switch {
	case s.cause != "":
	case isNobody(m):
		s.endLocked("the other side is gone")
	case len(message) < countBytes || binary.BigEndian.Uint64(message) != s.received:
		s.endLocked("a message was lost")
	case len(message) == countBytes:
		s.endLocked(endedByOther)
	case s.size+len(message) > s.limit:
		s.endLocked("it sent more than can be read")
	default:
		s.waiting, s.size = append(s.waiting, message[countBytes:]), s.size+len(message)-countBytes
	}
	s.received++
	s.came.Signal()
	return s.received == 1 && s.cause == ""
}

// isNobody reports whether a message is the server's: nobody listens where a message was sent.
func isNobody(m *nats.Msg) bool {
	const noResponders = "503"
	return len(m.Data) == 0 && m.Header.Get("Status") == noResponders
}

// Read returns what was received. After the end, and what came before it, the error is [io.ErrUnexpectedEOF].
func (s *stream) Read(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.waiting) == 0 {
		if s.cause != "" {
			return 0, io.ErrUnexpectedEOF
		}
		s.came.Wait()
	}
	n := copy(p, s.waiting[0])
	s.size -= n
	if s.waiting[0] = s.waiting[0][n:]; len(s.waiting[0]) == 0 {
		s.waiting = s.waiting[1:]
	}
	return n, nil
}

// end ends the stream for a reason; the first one counts.
func (s *stream) end(cause string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.endLocked(cause)
}

func (s *stream) endLocked(cause string) {
	if s.cause == "" {
		s.cause = cause
		s.came.Broadcast()
	}
}

// hasBegun reports whether a message has come.
func (s *stream) hasBegun() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.received > 0
}

// reason returns why the stream has ended, "" if it has not.
func (s *stream) reason() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cause
}
