//go:build !unix

package record

import "github.com/gofrs/flock"

// movableWhileOpen reports whether others may rename and remove an open file.
const movableWhileOpen = false

// lock is a file lock, whose holder is the only process that writes.
type lock struct {
	path string
	held *flock.Flock
}

// tryLock takes the lock unless it is held.
func (l *lock) tryLock() (bool, error) {
	l.held = flock.New(l.path, flock.SetPermissions(0o600))
	return l.held.TryLock()
}

func (*lock) leave() {}

func (l *lock) unlock() { _ = l.held.Unlock() }
