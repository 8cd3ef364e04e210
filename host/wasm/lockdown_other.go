//go:build !linux

package wasm

import "github.com/parley-tools/parley/host"

// MissingIsolation says what this system does not give to the process of an isolated call.
func MissingIsolation() []string {
	return []string{"a private view of files: only Linux has it here", "a filter of system calls: only Linux has it here"}
}

// lockDown leaves the process as it is: it can be killed, and has nothing else.
func lockDown(limits, []host.FSGrant, int64) []string { return MissingIsolation() }
