//go:build unix

package private

import (
	"io/fs"
	"os"
	"syscall"
)

func owned(info fs.FileInfo) bool  { return belongs(info, os.Geteuid()) }
func ofRoot(info fs.FileInfo) bool { return belongs(info, 0) }

func belongs(info fs.FileInfo, uid int) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(st.Uid) == uid
}
