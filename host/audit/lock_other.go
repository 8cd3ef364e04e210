//go:build !unix

package audit

import "github.com/gofrs/flock"

// staysOpen says that a file that is open may still be renamed and removed by others.
const staysOpen = false

// lock is the file whose holder is the only writer among all processes.
type lock struct {
	path string
	held *flock.Flock
}

// try takes the lock unless somebody else has it.
func (l *lock) try() (bool, error) {
	l.held = flock.New(l.path, flock.SetPermissions(0o600))
	return l.held.TryLock()
}

func (l *lock) release() { _ = l.held.Unlock() }
