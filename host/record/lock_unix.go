//go:build unix

package record

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
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
	// folder is locked by the process whose turn is next, which keeps one that writes all the time from taking the lock
	// again and again.
	folder *os.File
	isNext bool
}

// tryLock takes the lock unless it is held, or it is the turn of another process. Until it has the lock, or leave is
// called, this process is next.
func (l *lock) tryLock() (bool, error) {
	for {
		err := l.open()
		if err == nil && !l.isNext {
			err = tryFlock(l.folder)
			l.isNext = err == nil
		}
		if err == nil {
			err = tryFlock(l.file)
		}
		switch {
		case errors.Is(err, syscall.EWOULDBLOCK):
			return false, nil
		case err != nil:
			return false, err
		}
		l.leave()
		if there, err := os.Stat(l.path); err == nil && os.SameFile(l.opened, there) {
			return true, nil
		}
		_ = l.file.Close() // it was removed, and others lock the file that replaced it
		l.file = nil
	}
}

// leave ends the turn of this process.
func (l *lock) leave() {
	if l.isNext {
		_ = syscall.Flock(int(l.folder.Fd()), syscall.LOCK_UN)
	}
	l.isNext = false
}

func tryFlock(file *os.File) error {
	for {
		err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}

func (l *lock) open() (err error) {
	if l.file == nil {
		l.file, l.opened, err = protect.Append(l.path)
	}
	if err == nil && l.folder == nil {
		l.folder, err = os.Open(filepath.Dir(l.path))
	}
	return err
}

func (l *lock) unlock() { _ = syscall.Flock(int(l.file.Fd()), syscall.LOCK_UN) }
