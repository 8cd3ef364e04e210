//go:build !linux

package slots

import "time"

// uptime is a clock that all processes of the machine share. Setting it disturbs the order of those that wait, nothing
// else.
func uptime() time.Duration { return time.Duration(time.Now().UnixNano()) }
