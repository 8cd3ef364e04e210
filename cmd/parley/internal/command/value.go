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
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular() && info.Mode()&os.ModeNamedPipe == 0:
		return nil, fmt.Errorf("%s: expected a file or a pipe, found %s", path, protect.KindOf(info))
	case info.Size() > limit:
		return nil, fmt.Errorf("%s: it is larger than %d bytes", path, limit)
	}
	type read struct {
		data []byte
		err  error
	}
	done := make(chan read, 1)
	go func() { // a pipe without a writer cannot be opened; the goroutine ends with the process then
		f, err := os.Open(path)
		if err != nil {
			done <- read{err: err}
			return
		}
		defer f.Close()
		if opened, err := f.Stat(); err != nil || opened.Mode().Type() != info.Mode().Type() {
			done <- read{err: fmt.Errorf("%s: it has changed", path)}
			return
		}
		data, err := io.ReadAll(io.LimitReader(f, limit+1))
		if err == nil && int64(len(data)) > limit {
			err = fmt.Errorf("%s: it is larger than %d bytes", path, limit)
		}
		done <- read{data, err}
	}()
	select {
	case r := <-done:
		return r.data, r.err
	case <-ctx.Done():
		if ctx.Err() == context.DeadlineExceeded {
			return nil, host.Errorf(host.Timeout, "%s: nobody has finished writing to it within the timeout", path)
		}
		return nil, context.Cause(ctx)
	}
}
