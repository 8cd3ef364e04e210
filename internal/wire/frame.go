// Package wire is the framed wire between a host and the processes that run calls for it: runners, and workers on
// other machines. Each side first sends a [Hello]. The host then sends a [Call], and the other side sends the guest's
// requests to the host, the events of the call, and its outcome. A call is plain data: code by digest and rights by
// name, never a path, a descriptor or the value of a secret or variable. The process that runs a call was given those
// when it was started. The keepers of browsers use the same frames, with requests and a hello of their own.
//
// The package moves bytes and does not check rights. A receiver bounds and cleans what it does not trust; see
// [Error.Untrusted].
package wire

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"

	"github.com/parley-tools/parley/manifest"
)

// Kind is the kind of a frame.
type Kind byte

// The kinds of frames. The host sends hello, call and reply; the other side sends the others, and its own hello.
const (
	KindHello Kind = 'h' // [Hello], the first frame of each side
	KindStart Kind = 's' // for a process that the host has started: what it must know before its first call
	KindCall  Kind = 'c' // [Call]
	KindBegun Kind = 'b' // empty: from now on the guest may have run
	KindAsk   Kind = 'a' // the name of a function of the host, newline, its argument
	KindReply Kind = 'r' // reply to an ask, in the form that the guest gets
	KindEvent Kind = 'v' // job.Event
	KindDone  Kind = 'e' // [Outcome], the last frame of a call
	KindPiece Kind = 'p' // piece of a large outcome, sent before it; only keepers send pieces
)

// headBytes is the size of a frame without its body: the kind, and the length of the body as a big-endian uint32.
const headBytes = 5

// eagerBytes is the maximum length of a body for which memory is allocated before it has arrived.
const eagerBytes = 64 << 10

// TooLargeError reports a frame that is longer than its receiver accepts.
type TooLargeError struct{ Bytes, Limit int64 }

func (e *TooLargeError) Error() string {
	return fmt.Sprintf("a frame of %d bytes, the limit is %d", e.Bytes, e.Limit)
}

// Conn sends and receives frames. Send and Queue may be called from several goroutines, Receive from one at a time.
type Conn struct {
	in  io.Reader
	mu  sync.Mutex
	out io.Writer
	buf []byte // frames that have not been sent yet

	Greeted bool // the other side's hello has arrived, as ReceiveHello sets it
}

// NewConn returns a connection that reads frames from in and writes them to out. A slow in should be buffered.
func NewConn(in io.Reader, out io.Writer) *Conn { return &Conn{in: in, out: out} }

// Queue adds a frame, with the parts as its body, to the frames that the next Send writes.
func (c *Conn) Queue(kind Kind, parts ...[]byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	err := c.begin(kind, parts)
	if err == nil {
		c.add(parts)
	}
	return err
}

// begin adds the head of a frame.
func (c *Conn) begin(kind Kind, parts [][]byte) error {
	size := int64(sizeOf(parts))
	if size > 1<<32-1 {
		return &TooLargeError{size, 1<<32 - 1}
	}
	c.buf = binary.BigEndian.AppendUint32(append(c.buf, byte(kind)), uint32(size))
	return nil
}

func (c *Conn) add(parts [][]byte) {
	for _, p := range parts {
		c.buf = append(c.buf, p...)
	}
}

func sizeOf(parts [][]byte) (size int) {
	for _, p := range parts {
		size += len(p)
	}
	return size
}

// keptBytes bounds the buffer that a connection keeps between frames. Larger bodies are not copied into it.
const keptBytes = 256 << 10

// Send writes the queued frames and this one, in one write unless it is large.
func (c *Conn) Send(kind Kind, parts ...[]byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.begin(kind, parts); err != nil {
		return err
	}
	if sizeOf(parts) <= keptBytes {
		c.add(parts)
		parts = nil
	}
	_, err := c.out.Write(c.buf)
	if err == nil && parts != nil {
		large := append(net.Buffers(nil), parts...) // a copy, because WriteTo changes it
		_, err = large.WriteTo(c.out)
	}
	if c.buf = c.buf[:0]; cap(c.buf) > keptBytes {
		c.buf = nil
	}
	return err
}

// SendJSON sends a value as JSON.
func (c *Conn) SendJSON(kind Kind, v any) error {
	body, err := manifest.Marshal(v)
	if err != nil {
		return err
	}
	return c.Send(kind, body)
}

// Receive reads a frame whose body has at most limit bytes. The error is io.EOF between frames, io.ErrUnexpectedEOF
// within one, and a *[TooLargeError] for a longer body, after which nothing more can be read.
func (c *Conn) Receive(limit int) (Kind, []byte, error) {
	var head [headBytes]byte
	if _, err := io.ReadFull(c.in, head[:]); err != nil {
		return 0, nil, err
	}
	n := int64(binary.BigEndian.Uint32(head[1:]))
	if n > int64(limit) {
		return 0, nil, &TooLargeError{n, int64(limit)}
	}
	kind := Kind(head[0])
	if n <= eagerBytes {
		body := make([]byte, n)
		_, err := io.ReadFull(c.in, body)
		return kind, body, within(err)
	}
	// The buffer grows as data arrives, because the length is only a claim.
	var body bytes.Buffer
	_, err := io.CopyN(&body, c.in, n)
	return kind, body.Bytes(), within(err)
}

// within returns the error for a frame that is incomplete.
func within(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
