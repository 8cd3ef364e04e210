package command

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/protect"
)

// ReadValue reads a file that a caller names for a value, of at most limit bytes. It may belong to anybody and be a
// pipe, which is read to its end or until ctx ends: then the error is timeout, or the cause of ctx. Devices are
// refused, because they need not end.
func ReadValue(ctx context.Context, path string, limit int64) ([]byte, error) {
	tooLarge := fmt.Errorf("%s: it is larger than %d bytes", path, limit)
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular() && info.Mode()&os.ModeNamedPipe == 0:
		return nil, fmt.Errorf("%s: expected a file or a pipe, found %s", path, protect.KindOf(info))
	case info.Size() > limit:
		return nil, tooLarge
	}
	data, err := awaitOrAbandon(ctx, func() ([]byte, error) { // a pipe without a writer cannot be opened
		f, err := os.Open(path)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		if opened, err := f.Stat(); err != nil || opened.Mode().Type() != info.Mode().Type() {
			return nil, fmt.Errorf("%s: it has changed", path)
		}
		data, err := io.ReadAll(io.LimitReader(f, limit+1))
		if err == nil && int64(len(data)) > limit {
			err = tooLarge
		}
		return data, err
	})
	if err != nil && ctx.Err() == context.DeadlineExceeded {
		err = host.Errorf(host.Timeout, "%s: nobody has finished writing to it within the timeout", path)
	}
	return data, err
}

// Input returns the standard input. Its reads end with the context, with [context.Cause].
func (a *App) Input(ctx context.Context) io.Reader {
	a.Signaled.handle() // the input may take long to come
	return &abandonableReader{ctx: ctx, in: a.In}
}

// abandonableReader reads until its context ends. A read that waits cannot be ended, but it can be abandoned.
type abandonableReader struct {
	ctx    context.Context
	in     io.Reader
	buffer []byte // an abandoned read may still write to it
}

func (r *abandonableReader) Read(b []byte) (int, error) {
	if r.ctx.Err() != nil {
		return 0, context.Cause(r.ctx)
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
