package slots

import (
	"time"

	"golang.org/x/sys/unix"
)

// uptime returns the time of a clock that all processes of the machine share, and that nobody can set.
func uptime() time.Duration {
	var t unix.Timespec
	if unix.ClockGettime(unix.CLOCK_BOOTTIME, &t) != nil {
		return time.Duration(time.Now().UnixNano())
	}
	return time.Duration(t.Nano())
}
