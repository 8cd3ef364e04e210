package host

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/parley-tools/parley/host/internal/private"
)

// MaxConfig is the size limit of a configuration file, in bytes.
const MaxConfig = 1 << 20

// ReadOwn reads a file that the host reads on its own: its configuration, and what it keeps. It must be a regular file
// of at most limit bytes that belongs to this user or the administrator; nothing waits, whatever is there. The error
// begins with the path. It is [fs.ErrNotExist] if there is no file.
func ReadOwn(path string, limit int64) ([]byte, error) { return private.Read(path, limit) }

// OpenOwn opens a file as [ReadOwn] does, without a size limit.
func OpenOwn(path string) (*os.File, error) {
	f, _, err := private.Open(path, 0)
	return f, err
}

// CheckFolder returns an error if other users could have put files into a folder of the host: it belongs to one of
// them, or everybody can write to it. A folder that does not exist is fine.
func CheckFolder(path string) error { return private.CheckFolder(path) }

// ReadValue reads a file that a caller names for a value, of at most limit bytes. It may belong to anybody and be a
// pipe, which is read to its end or until ctx ends: then the error is timeout, or the cause of ctx. Devices are
// refused, because they need not end.
func ReadValue(ctx context.Context, path string, limit int64) ([]byte, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular() && info.Mode()&fs.ModeNamedPipe == 0:
		return nil, fmt.Errorf("%s: expected a file or a pipe, found %s", path, private.KindOf(info))
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
			return nil, Errorf(Timeout, "%s: nobody has finished writing to it within the timeout", path)
		}
		return nil, context.Cause(ctx)
	}
}
