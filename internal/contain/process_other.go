//go:build !linux || !(amd64 || arm64)

package contain

import "runtime"

// Missing returns what this system lacks to confine a process: everything.
func Missing(bool) []string {
	return []string{runtime.GOOS + "/" + runtime.GOARCH + " has no means that parley uses"}
}

// Process takes from this process what it can on this system, which is not much, and returns what is missing.
func Process(r Rights, b Bounds) (missing []string) {
	setBounds(b)
	return Missing(len(r.Folders) > 0)
}
