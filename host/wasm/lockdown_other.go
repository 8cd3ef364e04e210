//go:build !linux

package wasm

import "github.com/parley-tools/parley/host"

// MissingIsolation returns the protections that this system cannot give to the process of an isolated call.
func MissingIsolation() []string {
	return []string{"a private view of files: only Linux supports it here", "a filter of system calls: only Linux " +
		"supports it here"}
}

// lockDown does nothing: here the only protection is that the process can be killed.
func lockDown(limits, []host.FSGrant, int64) []string { return MissingIsolation() }
