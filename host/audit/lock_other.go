//go:build !unix

package audit

import "github.com/gofrs/flock"

// movableWhileOpen says that a file that is open may still be renamed and removed by others.
const movableWhileOpen = false

// lock is the file whose holder is the only writer among all processes.
type lock struct {
	path string
	held *flock.Flock
}

// tryLock takes the lock unless somebody else has it.
func (l *lock) tryLock() (bool, error) {
	l.held = flock.New(l.path, flock.SetPermissions(0o600))
	return l.held.TryLock()
}

func (l *lock) unlock() { _ = l.held.Unlock() }
