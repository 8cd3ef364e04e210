package protect

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
)

// maxLinks is how many links are followed on the way to a folder, as in Linux.
const maxLinks = 40

// OpenFolder opens a folder that the operator has named. Links of the operator and of the administrator are followed.
// A link of another user is an error: whoever owns the folder could have put the link in its place later, and thereby
// choose what was granted.
func OpenFolder(path string) (*os.Root, error) {
	info, err := follow(path)
	if err == nil && !info.IsDir() { // to open a pipe would wait for a writer
		err = syscall.ENOTDIR
	}
	if err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(path)
	if err != nil {
		return nil, err
	}
	if opened, err := root.Stat("."); err != nil || !os.SameFile(info, opened) {
		return nil, errors.Join(fmt.Errorf("%s was replaced while it was opened", path), err, root.Close())
	}
	return root, nil
}

// follow returns what is at a path, unless a link on the way belongs to another user.
func follow(path string) (info fs.FileInfo, err error) {
	if runtime.GOOS == "windows" {
		return os.Stat(path)
	}
	const separator = string(filepath.Separator)
	left, at := strings.Split(path, separator), separator
	for links := 0; len(left) > 0; left = left[1:] {
		next := filepath.Join(at, left[0])
		if info, err = os.Lstat(next); err != nil {
			return nil, err
		}
		if info.Mode()&fs.ModeSymlink == 0 {
			at = next
			continue
		}
		target, err := os.Readlink(next)
		switch links++; {
		case err != nil:
			return nil, err
		case links > maxLinks:
			return nil, syscall.ELOOP
		case OwnedByOther(info):
			return nil, fmt.Errorf("%s is a link that belongs to another user; name the folder that it leads to", next)
		case filepath.IsAbs(target):
			at = separator
		}
		left = append([]string{""}, append(strings.Split(target, separator), left[1:]...)...)
	}
	return info, nil
}
