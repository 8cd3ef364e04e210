//go:build unix

package protect

import (
	"io/fs"
	"os"
	"syscall"
)

// Nonblock are flags of open: it does not wait for the writer of a pipe, and no terminal becomes the process's own.
const Nonblock = syscall.O_NONBLOCK | syscall.O_NOCTTY

// OwnedByUser reports whether a file belongs to this user.
func OwnedByUser(info fs.FileInfo) bool { return ownedBy(info, os.Geteuid()) }

func ownedByRoot(info fs.FileInfo) bool { return ownedBy(info, 0) }

func ownedBy(info fs.FileInfo, uid int) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(st.Uid) == uid
}

// IDOf returns the identity of a file and how many names it has.
func IDOf(info fs.FileInfo) (id FileID, links uint64) {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return FileID{}, 1
	}
	return FileID{uint64(st.Dev), uint64(st.Ino)}, uint64(st.Nlink)
}
