//go:build unix

package wasm

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// syncDir makes the names in a folder last. Some file systems cannot: what they promise is all there is.
func syncDir(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	defer d.Close()
	if err := d.Sync(); err != nil && !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.ENOTSUP) {
		return err
	}
	return nil
}
