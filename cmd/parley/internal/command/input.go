package command

import (
	"context"
	"io"
)

// Input returns the standard input. Its reads end with the context, with [context.Cause].
func (a *App) Input(ctx context.Context) io.Reader {
	a.Signaled.handle() // the input may take long to come
	return newAbandonableReader(ctx, a.In)
}

// abandonableReader reads until its context ends. A read that waits cannot be ended, but it can be abandoned.
type abandonableReader struct {
	ctx    context.Context
	in     io.Reader
	ready  func() error // waits for data in place of a read; nil if the system has no such wait
	buffer []byte       // of reads without ready: an abandoned read may still write to it
}

func newAbandonableReader(ctx context.Context, in io.Reader) *abandonableReader {
	return &abandonableReader{ctx: ctx, in: in, ready: readiness(ctx, in)}
}

func (r *abandonableReader) Read(b []byte) (int, error) {
	if r.ctx.Err() != nil {
		return 0, context.Cause(r.ctx)
	}
	if r.ready != nil {
		if err := r.ready(); err != nil {
			return 0, err
		}
		return r.in.Read(b)
	}
	if len(r.buffer) < len(b) {
		r.buffer = make([]byte, len(b))
	}
	n, err := awaitOrAbandon(r.ctx, func() (int, error) { return r.in.Read(r.buffer[:len(b)]) })
	return copy(b, r.buffer[:n]), err
}

// awaitOrAbandon returns what wait returns, or [context.Cause] if the context ends first. Then it abandons wait, which
// keeps running: use it for what waits for a person or a program and cannot be interrupted.
func awaitOrAbandon[T any](ctx context.Context, wait func() (T, error)) (T, error) {
	type outcome struct {
		value T
		err   error
	}
	ended := make(chan outcome, 1)
	go func() {
		value, err := wait()
		ended <- outcome{value, err}
	}()
	select {
	case o := <-ended:
		return o.value, o.err
	case <-ctx.Done():
		var none T
		return none, context.Cause(ctx)
	}
}
