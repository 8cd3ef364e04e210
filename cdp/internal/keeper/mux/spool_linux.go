package mux

import (
	"os"

	"golang.org/x/sys/unix"
)

// openUnnamed opens a temporary file that never had a name. File systems without such files get one whose name is
// removed at once, which a process that is killed in between leaves behind.
func openUnnamed(dir string) (*os.File, error) {
	if f, err := os.OpenFile(dir, os.O_RDWR|unix.O_TMPFILE, 0o600); err == nil {
		return f, nil
	}
	return openNamed(dir)
}
