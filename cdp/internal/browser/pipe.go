package browser

import (
	"bufio"
	"errors"
	"io"
	"sync"
)

// pipeConn is the debugging pipe: JSON texts, each ended by a NUL byte.
type pipeConn struct {
	r     *bufio.Reader
	from  io.Closer
	to    io.WriteCloser
	out   *outbox
	limit int
	spill func(beginning []byte) io.Writer
	once  sync.Once
}

// NewPipe makes a connection of the two ends of a debugging pipe. limit is the
// largest message read whole (0: DefaultMaxMessage).
func NewPipe(from io.ReadCloser, to io.WriteCloser, limit int) Conn {
	if limit <= 0 {
		limit = DefaultMaxMessage
	}
	c := &pipeConn{r: bufio.NewReaderSize(from, 256<<10), from: from, to: to, limit: limit}
	c.out = newOutbox(c.write, func() { c.Close() })
	return c
}

func (c *pipeConn) Send(message []byte) error { return c.out.send(message) }

func (c *pipeConn) write(message []byte) error {
	_, err := c.to.Write(append(message, 0))
	return err
}

func (c *pipeConn) Spill(where func([]byte) io.Writer) { c.spill = where }

func (c *pipeConn) Receive() (Message, error) {
	var (
		data  []byte
		size  int64
		asked bool
		into  io.Writer
	)
	for {
		part, err := c.r.ReadSlice(0)
		whole := err == nil
		if whole {
			part = part[:len(part)-1]
		} else if !errors.Is(err, bufio.ErrBufferFull) {
			return Message{}, closedError(err)
		}
		size += int64(len(part))
		if size > spillSize && !asked && c.spill != nil {
			asked = true
			if into = c.spill(data); into != nil {
				into.Write(data)
				data = beginning(data)
			}
		}
		switch {
		case into != nil:
			into.Write(part)
		case size <= int64(c.limit):
			data = append(data, part...)
		case len(data) > cutPrefix:
			data = beginning(data)
		case len(data) < cutPrefix:
			data = append(data, part[:min(len(part), cutPrefix-len(data))]...)
		}
		if whole {
			return Message{Data: data, Size: size, Spilled: into != nil}, nil
		}
	}
}

func (c *pipeConn) Close() error {
	c.once.Do(func() {
		c.out.close()
		c.to.Close()
		c.from.Close()
	})
	return nil
}

func closedError(err error) error {
	if errors.Is(err, io.EOF) {
		return ErrClosed
	}
	return errors.Join(ErrClosed, err)
}
