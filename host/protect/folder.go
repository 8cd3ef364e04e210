package protect

import (
	"errors"
	"fmt"
	"io/fs"
	"iter"
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
	links := 0
	for at := range walk(path) {
		if info, err = os.Lstat(at); err != nil {
			return nil, err
		}
		if info.Mode()&fs.ModeSymlink == 0 {
			continue
		}
		if links++; links > maxLinks {
			return nil, syscall.ELOOP
		}
		if OwnedByOther(info) {
			return nil, fmt.Errorf("%s is a link that belongs to another user; name the folder that it leads to", at)
		}
	}
	return info, nil
}

// walk yields the paths of the names in an absolute path, one after the other. After a symbolic link come those of its
// target; it goes on for ever if links lead to each other.
func walk(path string) iter.Seq[string] {
	const separator = string(filepath.Separator)
	root := filepath.VolumeName(path) + separator
	namesIn := func(path string) []string { return strings.Split(strings.TrimPrefix(path, root), separator) }
	return func(yield func(string) bool) {
		at, names := root, namesIn(path)
		for len(names) > 0 {
			next := filepath.Join(at, names[0]) // no part of at is a link
			if !yield(next) {
				return
			}
			names = names[1:]
			target, err := os.Readlink(next)
			if err != nil {
				at = next
				continue
			}
			if filepath.IsAbs(target) {
				at = root
			}
			names = append(namesIn(target), names...)
		}
	}
}
