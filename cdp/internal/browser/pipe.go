package browser

import (
	"bufio"
	"errors"
	"io"
	"sync"
)

// pipeConn is a [Conn] over the debugging pipe: JSON texts, each terminated by a NUL byte.
type pipeConn struct {
	r     *bufio.Reader
	from  io.Closer
	to    io.WriteCloser
	queue *sendQueue
	limit int
	spill func(beginning []byte) io.Writer
	once  sync.Once
}

// NewPipe returns a connection over the two ends of a debugging pipe. limit is the largest message read whole, in
// bytes; zero means DefaultMaxMessage.
func NewPipe(from io.ReadCloser, to io.WriteCloser, limit int) Conn {
	if limit <= 0 {
		limit = DefaultMaxMessage
	}
	c := &pipeConn{r: bufio.NewReaderSize(from, 256<<10), from: from, to: to, limit: limit}
	c.queue = newSendQueue(c.write, func() { c.Close() })
	return c
}

func (c *pipeConn) Send(message []byte) error { return c.queue.send(message) }

func (c *pipeConn) write(message []byte) error {
	_, err := c.to.Write(append(message, 0))
	return err
}

func (c *pipeConn) SetSpill(spill func([]byte) io.Writer) { c.spill = spill }

func (c *pipeConn) Receive() (Message, error) {
	var (
		data    []byte
		size    int64
		offered bool
		spill   io.Writer
	)
	for {
		part, err := c.r.ReadSlice(0)
		complete := err == nil
		if complete {
			part = part[:len(part)-1]
		} else if !errors.Is(err, bufio.ErrBufferFull) {
			return Message{}, closedError(err)
		}
		size += int64(len(part))
		if size > spillSize && !offered && c.spill != nil {
			offered = true
			if spill = c.spill(data); spill != nil {
				spill.Write(data)
				data = prefix(data)
			}
		}
		switch {
		case spill != nil:
			spill.Write(part)
		case size <= int64(c.limit):
			data = append(data, part...)
		case len(data) > truncatedSize:
			data = prefix(data)
		case len(data) < truncatedSize:
			data = append(data, part[:min(len(part), truncatedSize-len(data))]...)
		}
		if complete {
			return Message{Data: data, Size: size, Spilled: spill != nil}, nil
		}
	}
}

func (c *pipeConn) Close() error {
	c.once.Do(func() {
		c.queue.close()
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
