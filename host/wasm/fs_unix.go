//go:build unix

package wasm

import "syscall"

// openNonblock keeps the opening of a pipe from waiting for its other end, should one take a file's place.
const openNonblock = syscall.O_NONBLOCK
