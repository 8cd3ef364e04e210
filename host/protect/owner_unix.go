//go:build unix

package protect

import (
	"io/fs"
	"os"
	"syscall"
)

// OwnedByUser reports whether a file belongs to this user.
func OwnedByUser(info fs.FileInfo) bool { return ownedBy(info, os.Geteuid()) }

func ownedByRoot(info fs.FileInfo) bool { return ownedBy(info, 0) }

func ownedBy(info fs.FileInfo, uid int) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(st.Uid) == uid
}
