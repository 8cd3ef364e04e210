//go:build unix

package audit

import (
	"errors"
	"os"
	"syscall"
)

// syncDir makes the names in a folder last. Some file systems cannot: what they promise is all there is.
func syncDir(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	defer d.Close()
	if err := d.Sync(); err != nil && !errors.Is(err, syscall.EINVAL) && !errors.Is(err, syscall.ENOTSUP) {
		return err
	}
	return nil
}
