//go:build !linux || !(amd64 || arm64)

package contain

import "runtime"

// Missing returns the protections that this system cannot give to a process: all of them.
func Missing() []string {
	return []string{"confinement: " + runtime.GOOS + "/" + runtime.GOARCH + " has none that parley uses"}
}

// Process takes from this process what it can on this system, which is not much, and returns what is missing.
func Process(_ Rights, b Bounds) (missing []string) {
	setBounds(b)
	return Missing()
}
