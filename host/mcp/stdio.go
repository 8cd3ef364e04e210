package mcp

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/mcp/frame"
)

const (
	// maxMessage bounds one message of a client.
	maxMessage = host.MaxParams + 64<<10
	// maxOpen bounds the requests of one stdio client that have no response yet.
	maxOpen = 256
	// shutdownGrace is how long a server waits for the calls that it has ended.
	shutdownGrace = 3 * time.Second
)

// Stdio serves one client over a pair of pipes. It returns nil after the client has hung up and has been sent the
// responses to all its requests. When ctx ends, it ends the calls under way and returns the cause.
func (s *Server) Stdio(ctx context.Context, in io.Reader, out io.Writer) error {
	m, err := s.modeServer(s.cfg.Mode)
	if err != nil {
		return err
	}
	hungUp, hangUp := context.WithCancel(context.Background())
	defer hangUp()
	transport := &frame.Stdio{
		In: in, Out: out, MaxMessage: maxMessage, MaxOpen: maxOpen, Slots: s.requests, HungUp: hangUp,
	}
	connected := context.WithValue(context.WithoutCancel(ctx), hungUpKey{}, hungUp)
	session, err := m.server.Connect(connected, transport, nil)
	if err != nil {
		return err
	}
	defer s.watch()()
	ended := make(chan error, 1)
	go func() { ended <- session.Wait() }()
	select {
	case err := <-ended:
		s.shutdown(host.Errorf(host.Interrupted, "the client disconnected"))
		if errors.Is(err, io.EOF) {
			return nil
		}
		return err
	case <-ctx.Done():
		s.shutdown(context.Cause(ctx))
		go session.Close() // it waits for responses that a client may never read
		select {
		case <-ended:
		case <-time.After(s.shutdownGrace):
		}
		return context.Cause(ctx)
	}
}

// hungUpKey is the context key for a second context, which is done when the client of a stdio connection has hung up.
type hungUpKey struct{}

// hungUp returns a context that is done when the client of a request on stdio has hung up, and can no longer be asked.
func hungUp(ctx context.Context) context.Context {
	if c, ok := ctx.Value(hungUpKey{}).(context.Context); ok {
		return c
	}
	return context.Background()
}

func (s *Server) shutdown(cause error) {
	ctx, cancel := context.WithTimeout(context.Background(), s.shutdownGrace)
	defer cancel()
	s.Shutdown(ctx, cause)
}
