package wasm

import "github.com/tetratelabs/wazero/experimental"

const (
	pageBytes   = 1 << 16
	pagesPerMiB = 16
	maxPages    = 1 << 16
)

// memory is the linear memory of the instance of a call. Growth beyond the limit is recorded, because the guest only
// sees -1 and most guests crash on it.
type memory struct {
	control *control
	all     []*boundedMemory
	imaged  pages // with the image, before the instance has it
	denied  bool
}

// Allocate is what wazero requires of an allocator.
func (m *memory) Allocate(_, limit uint64) experimental.LinearMemory {
	bound := min(limit, uint64(m.control.limits.pages)*pageBytes)
	b := &boundedMemory{memory: m, limit: bound, pages: m.imaged}
	if m.imaged = nil; b.pages == nil {
		b.pages = newPages(bound)
	}
	m.all = append(m.all, b)
	return b
}

func (m *memory) free() {
	for _, b := range m.all {
		b.Free()
	}
	if m.imaged != nil {
		m.imaged.free()
	}
}

type boundedMemory struct {
	memory *memory
	limit  uint64
	pages  pages
}

func (b *boundedMemory) Reallocate(size uint64) []byte {
	if size > b.limit {
		b.memory.denied = true
		return nil
	}
	return b.pages.resize(size)
}

func (b *boundedMemory) Free() { b.pages.free() }

// pages is memory that can be resized up to the size that it was created for.
type pages interface {
	resize(size uint64) []byte
	free()
}

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
