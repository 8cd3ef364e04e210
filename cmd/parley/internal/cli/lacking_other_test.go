//go:build !linux

package cli

// lacking needs the seccomp of Linux.
func lacking() { panic("no runners here") }
