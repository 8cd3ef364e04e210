package wasm

import "github.com/tetratelabs/wazero/experimental"

const (
	pageBytes   = 1 << 16
	pagesPerMiB = 16
	maxPages    = 1 << 16
)

// Allocate returns the linear memory of a call's instance. Growth beyond the limit is recorded, because the guest
// only sees -1 and most guests crash on it.
func (c *call) Allocate(_, limit uint64) experimental.LinearMemory {
	bound := min(limit, uint64(c.limits.pages)*pageBytes)
	m := &boundedMemory{call: c, limit: bound, pages: c.imaged}
	if c.imaged = nil; m.pages == nil {
		m.pages = newPages(bound)
	}
	c.memory = append(c.memory, m)
	return m
}

type boundedMemory struct {
	call  *call
	limit uint64
	pages pages
}

// pages is memory that can be resized up to the size that it was created for.
type pages interface {
	resize(size uint64) []byte
	free()
}

func (m *boundedMemory) Reallocate(size uint64) []byte {
	if size > m.limit {
		m.call.memoryDenied = true
		return nil
	}
	return m.pages.resize(size)
}

func (m *boundedMemory) Free() { m.pages.free() }

// heapPages is memory on the Go heap, used if no other is available.
type heapPages struct{ data []byte }

func (h *heapPages) resize(size uint64) []byte {
	if size > uint64(cap(h.data)) {
		grown := make([]byte, size)
		copy(grown, h.data)
		h.data = grown
	}
	h.data = h.data[:size]
	return h.data
}

func (h *heapPages) free() { h.data = nil }
