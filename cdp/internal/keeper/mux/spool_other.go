//go:build !linux

package mux

import "os"

// openUnnamed opens a temporary file and removes its name at once.
func openUnnamed(dir string) (*os.File, error) { return openNamed(dir) }
