package mux

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"

	"github.com/parley-tools/parley/cdp/internal/keeper/api"
	"github.com/parley-tools/parley/cdp/internal/keeper/scan"
)

// Spool holds a large reply on disk between the browser and a caller that takes it in pieces. So the browser and the
// caller each transfer at their own speed. The file has no name, so it cannot be left behind.
type Spool struct {
	file     *os.File
	tail     []byte // what follows the result in the browser's message
	start    int64  // offset of the result
	size     int64  // the size of the message; once result was called, of the unread rest
	writeErr error  // the first write error
}

// newSpool returns nil if the beginning of a message does not belong to a result.
func newSpool(beginning []byte, session string) *Spool {
	const key = `"result":`
	at := bytes.Index(beginning[:min(len(beginning), 100)], []byte(key))
	if at < 0 {
		return nil
	}
	s := &Spool{start: int64(at + len(key)), tail: []byte("}")}
	if session != "" {
		s.tail = append([]byte(`,"sessionId":`), append(scan.Quote(session), '}')...)
	}
	s.file, s.writeErr = openUnnamed(os.TempDir())
	return s
}

// openNamed opens a temporary file and removes its name.
func openNamed(dir string) (*os.File, error) {
	f, err := os.CreateTemp(dir, "parley-reply-")
	if err != nil {
		return nil, err
	}
	return f, os.Remove(f.Name())
}

// Write stores a piece of the message. It never fails, because the browser's message must be read to its end.
func (s *Spool) Write(b []byte) (int, error) {
	if s.writeErr == nil {
		_, s.writeErr = s.file.Write(b)
	}
	s.size += int64(len(b))
	return len(b), nil
}

// result prepares the spool for reading: only the result, without the rest of the message.
func (s *Spool) result() error {
	if s.writeErr != nil {
		return s.writeErr
	}
	end := make([]byte, len(s.tail))
	if _, err := s.file.ReadAt(end, s.size-int64(len(end))); err != nil {
		return err
	}
	if !bytes.Equal(end, s.tail) {
		return errors.New("the browser's message does not end as expected: " + strconv.QuoteToASCII(string(end)))
	}
	s.size -= s.start + int64(len(end))
	_, err := s.file.Seek(s.start, io.SeekStart)
	return err
}

// Next returns the next piece of the result, or io.EOF after the last.
func (s *Spool) Next() ([]byte, error) {
	if s.size == 0 {
		return nil, io.EOF
	}
	piece := make([]byte, min(s.size, pieceSize))
	if _, err := io.ReadFull(s.file, piece); err != nil {
		return nil, fmt.Errorf("the spool is shorter than it was: %w", err)
	}
	s.size -= int64(len(piece))
	return piece, nil
}

const pieceSize = 256 << 10

// Close frees the spool; it may be nil.
func (s *Spool) Close() {
	if s != nil && s.file != nil {
		s.file.Close()
	}
}

// spill returns the spool for a large message if it is the reply to a call that accepts pieces, else nil.
func (m *Mux) spill(beginning []byte) io.Writer {
	m.Lock()
	defer m.Unlock()
	p := m.pending[int64(scan.Number(beginning, "id"))]
	if p == nil || !p.Pieces {
		return nil
	}
	session := ""
	if p.To != nil {
		session = p.To.Session
	}
	if m.spool = newSpool(beginning, session); m.spool == nil {
		return nil
	}
	return m.spool
}

// deliverSpool finishes a call with the spool.
func (m *Mux) deliverSpool(id int64) {
	s := m.spool
	m.spool = nil
	p := m.pending[id]
	if p == nil {
		s.Close() // the call was abandoned
		return
	}
	if err := s.result(); err != nil {
		s.Close()
		m.Finish(p, Reply{Err: api.Errorf(api.CodeUnavailable, "the reply to %s cannot be stored in %s: %v",
			p.Method, os.TempDir(), err)})
		return
	}
	m.Finish(p, Reply{Spool: s})
}
