//go:build unix

package keeper

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

func openLock(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW, 0o600)
}

func flock(file *os.File) error {
	for {
		switch err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); {
		case err == nil:
			return nil
		case errors.Is(err, syscall.EINTR):
		case errors.Is(err, syscall.EWOULDBLOCK):
			return errLocked
		default:
			return err
		}
	}
}

func sameFile(file *os.File, path string) bool {
	a, errA := file.Stat()
	b, errB := os.Lstat(path)
	return errA == nil && errB == nil && os.SameFile(a, b)
}

// ensurePrivateDir creates a folder that only this user can enter. It rejects an existing one of another user.
func ensurePrivateDir(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	st, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	sys, ok := st.Sys().(*syscall.Stat_t)
	switch {
	case !st.IsDir():
		return fmt.Errorf("%s is not a folder but a %s", dir, st.Mode().Type())
	case !ok || int(sys.Uid) != os.Geteuid():
		return fmt.Errorf("%s belongs to another user", dir)
	case st.Mode().Perm()&0o077 != 0:
		return os.Chmod(dir, 0o700)
	}
	return nil
}

// checkSocket rejects everything but a socket that only this user can reach: a planted link, another user's socket,
// a socket open to others, or one in a folder where others can replace it. The peer's credentials are checked again
// after connecting.
func checkSocket(path string) error {
	for _, one := range []struct {
		path   string
		kind   os.FileMode
		name   string
		others os.FileMode // permission bits that others must not have
	}{
		{filepath.Dir(path), os.ModeDir, "folder", 0o022},
		{path, os.ModeSocket, "socket", 0o077},
	} {
		st, err := os.Lstat(one.path)
		if err != nil {
			return err
		}
		sys, ok := st.Sys().(*syscall.Stat_t)
		switch {
		case st.Mode().Type() != one.kind || !ok || int(sys.Uid) != os.Geteuid():
			return &socketError{one.path, "is not a " + one.name + " of this user"}
		case st.Mode().Perm()&one.others != 0:
			return &socketError{one.path, "is open to other users"}
		}
	}
	return nil
}
