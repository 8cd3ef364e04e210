// Package private is about files and folders that no other user may reach into.
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
	case !Alone(info):
		return os.Chmod(path, 0o700)
	}
	return nil
}

// Alone tells whether nobody but the owner has any right to a file. On Windows it relies on the access list that a user's own folders have.
func Alone(info fs.FileInfo) bool { return runtime.GOOS == "windows" || info.Mode().Perm()&0o077 == 0 }

// Trusted tells whether a file belongs to this user and nobody else may write to it.
func Trusted(info fs.FileInfo) bool {
	return Owned(info) && (runtime.GOOS == "windows" || info.Mode().Perm()&0o022 == 0)
}

// Still returns what is at a path, and whether that is the file that was opened there before and for its owner alone.
func Still(path string, opened fs.FileInfo) (there fs.FileInfo, same bool) {
	there, err := os.Lstat(path)
	return there, err == nil && os.SameFile(opened, there) && Alone(there)
}

// Owned tells whether a file belongs to this user.
func Owned(info fs.FileInfo) bool { return owned(info) }

// Foreign tells whether a file belongs to somebody who is neither this user nor the administrator.
func Foreign(info fs.FileInfo) bool { return !Owned(info) && !ofRoot(info) }
