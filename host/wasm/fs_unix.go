//go:build unix

package wasm

import "syscall"

// openNonblock keeps open from blocking on a pipe that has replaced a file meanwhile.
const openNonblock = syscall.O_NONBLOCK
