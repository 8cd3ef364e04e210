//go:build linux || darwin

package contain

import (
	"math"

	"golang.org/x/sys/unix"
)

// setBounds sets the bounds in the kernel.
func setBounds(b Bounds) {
	for resource, limit := range map[int]uint64{unix.RLIMIT_CORE: 0, unix.RLIMIT_CPU: uint64(math.Ceil(b.CPU.Seconds())),
		unix.RLIMIT_DATA: b.Memory, unix.RLIMIT_NOFILE: b.OpenFiles, unix.RLIMIT_FSIZE: b.FileBytes} {
		if limit == 0 && resource != unix.RLIMIT_CORE { // a core dump is never written
			continue
		}
		var now unix.Rlimit
		if unix.Getrlimit(resource, &now) == nil {
			limit = min(limit, now.Max)
		}
		_ = unix.Setrlimit(resource, &unix.Rlimit{Cur: limit, Max: limit})
	}
}
