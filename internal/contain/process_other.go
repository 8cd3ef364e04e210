//go:build !linux || !(amd64 || arm64)

package contain

import "runtime"

// Missing returns what this system lacks to confine a process: everything.
func Missing(bool) []string {
	return []string{runtime.GOOS + "/" + runtime.GOARCH + " has no means that parley uses"}
}

// Process takes from this process what this system allows, which is little, and returns what is missing.
func Process(r Rights, b Bounds) (missing []string) {
	setBounds(b)
	return Missing(len(r.Folders) > 0)
}
