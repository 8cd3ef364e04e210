//go:build unix

package instrument_test

import (
	"syscall"
	"time"
)

// clock returns the processor time that this process has used. Other processes affect it less than the time of day.
func clock() time.Duration {
	var used syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &used) != nil {
		panic("getrusage failed")
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
