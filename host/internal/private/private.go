// Package private is about folders that no other user may reach into.
package private

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"
)

// Dir makes a folder that only this user may read and write, or takes such rights from one that is there. One that belongs to another
// user, and a link in its place, is an error.
func Dir(path string) error {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		if err = os.MkdirAll(path, 0o700); err == nil {
			info, err = os.Lstat(path)
		}
	}
	switch {
	case err != nil:
		return err
	case !info.IsDir():
		return fmt.Errorf("%s is not a folder", path)
	case !Owned(info):
		return fmt.Errorf("%s belongs to another user", path)
	case info.Mode().Perm()&0o077 != 0 && runtime.GOOS != "windows":
		return os.Chmod(path, 0o700)
	}
	return nil
}

// Owned tells whether a file belongs to this user.
func Owned(info fs.FileInfo) bool { return owned(info) }
