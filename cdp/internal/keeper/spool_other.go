//go:build !linux

package keeper

import "os"

// openUnnamed opens a temporary file and removes its name at once.
func openUnnamed(dir string) (*os.File, error) { return openNamed(dir) }
