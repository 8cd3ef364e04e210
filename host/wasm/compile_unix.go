//go:build unix

package wasm

import (
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// lowerPriority lets other processes run before this one and the processes of its group.
func lowerPriority() { _ = unix.Setpriority(unix.PRIO_PGRP, 0, 10) }

// cpuTime returns the CPU time that this process has used.
func cpuTime() time.Duration {
	var used syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &used) != nil {
		return 0
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
