//go:build unix

package policy

import (
	"io/fs"
	"os"
	"syscall"
)

// writableByAll tells whether users who are neither the owner nor in the group may write.
func writableByAll(info fs.FileInfo) bool { return info.Mode().Perm()&0o002 != 0 }

// readableByOthers tells whether anybody but the owner may read.
func readableByOthers(info fs.FileInfo) bool { return info.Mode().Perm()&0o077 != 0 }

// foreign tells whether a file belongs to somebody who is neither this user nor root.
func foreign(info fs.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && st.Uid != 0 && int(st.Uid) != os.Geteuid()
}

func inode(info fs.FileInfo) uint64 {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return uint64(st.Ino)
	}
	return 0
}
