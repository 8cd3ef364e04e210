package cli

import (
	"context"
	"errors"
	"io"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// readiness returns what waits until a read of a file would not have to wait, or says why the context ended before; nil for what is no
// file. It saves a line of a batch two changes between threads.
func readiness(ctx context.Context, in io.Reader) func() error {
	f, isFile := in.(*os.File)
	if !isFile {
		return nil
	}
	over, end, err := os.Pipe()
	if err != nil {
		return nil
	}
	context.AfterFunc(ctx, func() { end.Close() })
	return func() error {
		defer runtime.KeepAlive(over)
		awaited := []unix.PollFd{{Fd: int32(f.Fd()), Events: unix.POLLIN}, {Fd: int32(over.Fd()), Events: unix.POLLIN}}
		for {
			_, err := unix.Poll(awaited, -1)
			switch {
			case errors.Is(err, unix.EINTR):
			case awaited[1].Revents != 0:
				return context.Cause(ctx)
			default:
				return err
			}
		}
	}
}
