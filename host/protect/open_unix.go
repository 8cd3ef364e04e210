//go:build unix

package protect

import "syscall"

// Nonblock are flags of open: it does not wait for the writer of a pipe, and no terminal becomes that of the process.
const Nonblock = syscall.O_NONBLOCK | syscall.O_NOCTTY
