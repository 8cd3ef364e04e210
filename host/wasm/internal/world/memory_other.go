//go:build !unix

package world

// NewPages returns memory of up to limit bytes.
func NewPages(uint64) Pages { return &heapPages{} }
