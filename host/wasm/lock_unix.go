//go:build unix

package wasm

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// errLocked says that another process holds the lock.
var errLocked = error(unix.EWOULDBLOCK)

// tryLock takes the lock of an open file, without waiting. It ends when the file is closed or the process dies.
func tryLock(f *os.File) error {
	for {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// syncDir makes the names in a folder last. Some file systems cannot: what they promise is all there is.
func syncDir(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	defer d.Close()
	if err := d.Sync(); err != nil && !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.ENOTSUP) {
		return err
	}
	return nil
}
