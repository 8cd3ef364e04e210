//go:build !unix

package world

// newPages returns memory of up to limit bytes.
func newPages(uint64) pages { return &heapPages{} }
