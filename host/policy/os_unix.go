//go:build unix

package policy

import (
	"io/fs"
	"syscall"
)

// writableByAll reports whether users who are neither the owner nor in the group may write.
func writableByAll(info fs.FileInfo) bool { return info.Mode().Perm()&0o002 != 0 }

func inode(info fs.FileInfo) uint64 {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return uint64(st.Ino)
	}
	return 0
}
