//go:build linux || darwin

package wasm

import (
	"time"

	"golang.org/x/sys/unix"
)

// limitProcess sets kernel limits for the case that the process fails to end itself. It limits data instead of
// address space, because Go reserves far more addresses than it uses.
func limitProcess(b budget) {
	seconds := uint64(b.cpu/time.Second) + 2
	for resource, limit := range map[int]uint64{unix.RLIMIT_CPU: seconds, unix.RLIMIT_DATA: b.memory,
		unix.RLIMIT_CORE: 0, unix.RLIMIT_FSIZE: compileEntry} {
		// A lower limit that is already set stays in force.
		_ = unix.Setrlimit(resource, &unix.Rlimit{Cur: limit, Max: limit})
	}
}
