//go:build unix

package record

import (
	"errors"
	"io/fs"
	"os"
	"syscall"

	"github.com/parley-tools/parley/host/protect"
)

// movableWhileOpen reports whether others may rename and remove an open file.
const movableWhileOpen = true

// lock is a file lock, whose holder is the only process that writes. The file stays open between uses, because opening
// it costs more than locking it.
type lock struct {
	path   string
	file   *os.File
	opened fs.FileInfo // file when it was opened
}

// tryLock takes the lock unless it is held.
func (l *lock) tryLock() (bool, error) {
	for {
		if err := l.open(); err != nil {
			return false, err
		}
		switch err := syscall.Flock(int(l.file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); {
		case errors.Is(err, syscall.EINTR):
			continue
		case errors.Is(err, syscall.EWOULDBLOCK):
			return false, nil
		case err != nil:
			return false, err
		}
		if there, err := os.Stat(l.path); err == nil && os.SameFile(l.opened, there) {
			return true, nil
		}
		_ = l.file.Close() // it was removed, and others lock the file that replaced it
		l.file = nil
	}
}

func (l *lock) open() (err error) {
	if l.file != nil {
		return nil
	}
	l.file, l.opened, err = protect.Append(l.path)
	return err
}

func (l *lock) unlock() { _ = syscall.Flock(int(l.file.Fd()), syscall.LOCK_UN) }
