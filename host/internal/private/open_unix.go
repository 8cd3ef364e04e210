//go:build unix

package private

import "syscall"

// openNonblock keeps open from waiting for the writer of a pipe, and from becoming the terminal of the process.
const openNonblock = syscall.O_NONBLOCK | syscall.O_NOCTTY
