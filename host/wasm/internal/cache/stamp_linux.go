package cache

import (
	"io/fs"
	"syscall"
	"time"
)

// stamp returns two values that change whenever a file is replaced or written: its inode, and the time of its last
// status change, which no system call can set back.
func stamp(info fs.FileInfo) (inode uint64, changed time.Time) {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return st.Ino, time.Unix(st.Ctim.Unix())
	}
	return 0, info.ModTime()
}
