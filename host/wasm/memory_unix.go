//go:build unix

package wasm

import "golang.org/x/sys/unix"

// mappedPages lie outside the Go heap: they cost the collector nothing, never move when they grow, and go back to the system at once.
type mappedPages struct{ data []byte }

func newPages(limit uint64) pages {
	if limit == 0 {
		return &heapPages{}
	}
	data, err := unix.Mmap(-1, 0, int(limit), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE|mapNoReserve)
	if err != nil {
		return &heapPages{}
	}
	return &mappedPages{data}
}

func (m *mappedPages) resize(size uint64) []byte { return m.data[:size:size] }

func (m *mappedPages) free() {
	if m.data != nil {
		_ = unix.Munmap(m.data)
		m.data = nil
	}
}
