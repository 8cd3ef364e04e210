package command

import (
	"context"
	"errors"
	"io"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// readiness returns a function that waits until a read of in would not block, or until the context ends: then it
// returns [context.Cause]. It returns nil if in is not a file. Compared with a goroutine that reads, polling saves each
// line of a batch two switches between threads.
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
