//go:build unix

package audit

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

// movableWhileOpen says that a file that is open may still be renamed and removed by others.
const movableWhileOpen = true

// lock is the file whose holder is the only writer among all processes. It stays open between two turns, for opening it costs more than
// locking it.
type lock struct {
	path   string
	file   *os.File
	opened fs.FileInfo // file as it was opened
}

// tryLock takes the lock unless somebody else has it.
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
		_ = l.file.Close() // it was removed, so that the others lock another one
		l.file = nil
	}
}

func (l *lock) open() (err error) {
	if l.file != nil {
		return nil
	}
	if l.file, err = os.OpenFile(l.path, os.O_RDONLY|os.O_CREATE, 0o600); err != nil {
		return err
	}
	if l.opened, err = l.file.Stat(); err != nil {
		_ = l.file.Close()
		l.file = nil
	}
	return err
}

func (l *lock) unlock() { _ = syscall.Flock(int(l.file.Fd()), syscall.LOCK_UN) }
