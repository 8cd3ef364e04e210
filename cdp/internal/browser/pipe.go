package browser

import (
	"bufio"
	"errors"
	"io"
)

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
