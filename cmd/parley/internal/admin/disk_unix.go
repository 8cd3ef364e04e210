//go:build unix

package admin

import "golang.org/x/sys/unix"

// freeSpace returns the number of bytes that a user can still write below dir.
func freeSpace(dir string) (uint64, bool) {
	var s unix.Statfs_t
	if unix.Statfs(dir, &s) != nil {
		return 0, false
	}
	return uint64(s.Bavail) * uint64(s.Bsize), true
}
