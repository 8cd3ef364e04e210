//go:build !unix

package record

import "github.com/parley-tools/parley/host/protect"

// movableWhileOpen reports whether others may rename and remove an open file.
const movableWhileOpen = false

// lock is a file lock, whose holder is the only process that writes.
type lock struct {
	path string
	held interface{ Unlock() error }
}

// tryLock takes the lock unless it is held.
func (l *lock) tryLock() (bool, error) {
	held := protect.NewLock(l.path)
	l.held = held
	return held.TryLock()
}

func (*lock) leave() {}

func (l *lock) unlock() { _ = l.held.Unlock() }
