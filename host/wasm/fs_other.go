//go:build !unix

package wasm

const openNonblock = 0
