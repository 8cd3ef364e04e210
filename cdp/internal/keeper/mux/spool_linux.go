package mux

import (
	"os"

	"golang.org/x/sys/unix"
)

// openUnnamed opens a temporary file that never had a name. On file systems without such files it opens a named one
// and removes the name at once; a process that is killed in between leaves it behind.
func openUnnamed(dir string) (*os.File, error) {
	if f, err := os.OpenFile(dir, os.O_RDWR|unix.O_TMPFILE, 0o600); err == nil {
		return f, nil
	}
	return openNamed(dir)
}
