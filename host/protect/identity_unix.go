//go:build unix

package protect

import (
	"io/fs"
	"syscall"
)

// identify returns the identity of a file and how many names it has.
func identify(info fs.FileInfo) (id FileID, links uint64) {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return FileID{}, 1
	}
	return FileID{uint64(st.Dev), uint64(st.Ino)}, uint64(st.Nlink)
}
