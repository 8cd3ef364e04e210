package protect

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"
)

// Dir makes a folder that only this user can access, or removes the rights of others from an existing one. A link, and
// a folder that belongs to another user or to which everybody could write, is an error.
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
	case !OwnedByUser(info):
		return fmt.Errorf("%s belongs to another user", path)
	case WritableByAll(info):
		return CheckFolder(path)
	case !OwnerOnly(info):
		return os.Chmod(path, 0o700)
	}
	return nil
}

// OwnerOnly reports whether only the owner has rights to a file. On Windows it relies on the access list that a user's
// own folders have.
func OwnerOnly(info fs.FileInfo) bool {
	return runtime.GOOS == "windows" || info.Mode().Perm()&0o077 == 0
}

// TrustedFile reports whether a file belongs to this user and nobody else may write to it.
func TrustedFile(info fs.FileInfo) bool {
	return OwnedByUser(info) && (runtime.GOOS == "windows" || info.Mode().Perm()&0o022 == 0)
}

// Unchanged returns what is at a path, and reports whether it is the file that was opened there and only its owner has
// rights to it.
func Unchanged(path string, opened fs.FileInfo) (info fs.FileInfo, same bool) {
	info, err := os.Lstat(path)
	return info, err == nil && os.SameFile(opened, info) && OwnerOnly(info)
}

// WritableByAll reports whether users who are neither the owner nor in the group may write. On Windows modes say
// nothing about others: access lists do.
func WritableByAll(info fs.FileInfo) bool {
	return runtime.GOOS != "windows" && info.Mode().Perm()&0o002 != 0
}

// OwnedByOther reports whether a file belongs to neither this user nor the administrator.
func OwnedByOther(info fs.FileInfo) bool { return !OwnedByUser(info) && !ownedByRoot(info) }
