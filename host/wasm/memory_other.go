//go:build !unix

package wasm

func newPages(uint64) pages { return &heapPages{} }
