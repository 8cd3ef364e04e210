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
//
// The other side confirms what it has read. Only a window of messages is ever under way, so that a large value takes
// little memory at the server and here, and holds up neither other calls nor signs of life on a slow network.
type stream struct {
	conn     *nats.Conn
	to, from string // subjects of the two sides
	most     int    // bytes of a message

	writing sync.Mutex
	sent    uint64

	mu        sync.Mutex
	came      sync.Cond // a message, or the end
	received  uint64
	confirmed uint64 // how many of the messages that were sent the other side has read
	waiting   [][]byte
	cause     string // why it has ended; "" while it has not
}

// Each message begins with its number. One with confirmBit is not counted: it says how many the sender has read. One
// with refuseBit is an end, of a worker that cannot run the call.
const (
	countBytes = 8
	confirmBit = 1 << 63
	refuseBit  = 1 << 62
)

// messageBytes is how large a message may be. The server may allow less. window is how many may be under way.
const messageBytes, window = 32 << 10, 8

// Causes of an end that the other side has sent, and that this side has decided.
const endedByOther, refusedByOther, endedHere = "it ended the call", "it cannot run the call", "the call has ended"

func newStream(conn *nats.Conn, to, from string) *stream {
	most := min(messageBytes, cmp.Or(int(conn.MaxPayload()), messageBytes)) // 0 without a connection
	s := &stream{conn: conn, to: to, from: from, most: most - countBytes}
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
		if !s.awaitWindow() || s.publish(s.sent, part) != nil {
			s.end("the connection to the fleet was lost")
			return 0, io.ErrUnexpectedEOF
		}
		s.sent++
	}
	return len(p), nil
}

// awaitWindow waits until one more message may be under way, and reports whether the stream goes on. writing is locked.
func (s *stream) awaitWindow() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.cause == "" && s.sent >= s.confirmed+window {
		s.came.Wait()
	}
	return s.cause == ""
}

func (s *stream) publish(count uint64, part []byte) error {
	message := binary.BigEndian.AppendUint64(make([]byte, 0, countBytes+len(part)), count)
	return s.conn.PublishRequest(s.to, s.from, append(message, part...))
}

// finish tells the other side that this one has ended. bit is refuseBit or 0.
func (s *stream) finish(bit uint64) {
	s.writing.Lock()
	defer s.writing.Unlock()
	_ = s.publish(s.sent|bit, nil)
}

// receive takes a message. It reports whether it is the first one.
func (s *stream) receive(m *nats.Msg) (first bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer s.came.Broadcast()
	message, count := m.Data, uint64(0)
	if len(message) >= countBytes {
		count = binary.BigEndian.Uint64(message)
	}
	switch {
	case s.cause != "":
	case isNobody(m):
		s.cause = "the other side is gone"
	case count&confirmBit != 0:
		s.confirmed = max(s.confirmed, count&^confirmBit)
		return false
	case count == s.received|refuseBit:
		s.cause = refusedByOther
	case len(message) < countBytes || count != s.received:
		s.cause = "a message was lost"
	case len(message) == countBytes:
		s.cause = endedByOther
	case len(s.waiting) > window:
		s.cause = "it sent more than was confirmed"
	default:
		s.waiting = append(s.waiting, message[countBytes:])
	}
	s.received++
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
	for len(s.waiting) == 0 && s.cause == "" {
		s.came.Wait()
	}
	if len(s.waiting) == 0 {
		s.mu.Unlock()
		return 0, io.ErrUnexpectedEOF
	}
	n, read := copy(p, s.waiting[0]), uint64(0)
	if s.waiting[0] = s.waiting[0][n:]; len(s.waiting[0]) == 0 {
		s.waiting = s.waiting[1:]
		read = s.received - uint64(len(s.waiting))
	}
	goesOn := s.cause == ""
	s.mu.Unlock()
	if goesOn && read > 0 && read%(window/2) == 0 { // a short call has nothing to confirm
		_ = s.publish(confirmBit|read, nil)
	}
	return n, nil
}

// end ends the stream for a reason; the first one counts.
func (s *stream) end(cause string) {
	s.mu.Lock()
	defer s.mu.Unlock()
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
