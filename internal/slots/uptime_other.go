//go:build !linux

package slots

import "time"

// uptime returns the time of a clock that all processes of the machine share. Setting the clock only disturbs the
// order of those that wait.
func uptime() time.Duration { return time.Duration(time.Now().UnixNano()) }
