package world

import "github.com/tetratelabs/wazero/experimental"

// The pages of linear memory.
const (
	PageBytes   = 1 << 16
	PagesPerMiB = 16
	MaxPages    = 1 << 16
)

// Memory is the linear memory of the instance of a call. Growth beyond the limit is recorded, because the guest only
// sees -1 and most guests crash on it.
type Memory struct {
	Control *Control
	all     []*boundedMemory
	Imaged  Pages // with the image, before the instance has it
	Denied  bool
}

// Allocate is what wazero requires of an allocator.
func (m *Memory) Allocate(_, limit uint64) experimental.LinearMemory {
	bound := min(limit, uint64(m.Control.Limits.Pages)*PageBytes)
	b := &boundedMemory{memory: m, limit: bound, pages: m.Imaged}
	if m.Imaged = nil; b.pages == nil {
		b.pages = NewPages(bound)
	}
	m.all = append(m.all, b)
	return b
}

// Free returns the memory of all instances of the call to the system.
func (m *Memory) Free() {
	for _, b := range m.all {
		b.Free()
	}
	if m.Imaged != nil {
		m.Imaged.Free()
	}
}

type boundedMemory struct {
	memory *Memory
	limit  uint64
	pages  Pages
}

func (b *boundedMemory) Reallocate(size uint64) []byte {
	if size > b.limit {
		b.memory.Denied = true
		return nil
	}
	return b.pages.Resize(size)
}

func (b *boundedMemory) Free() { b.pages.Free() }

// Pages is memory that can be resized up to the size that it was created for.
type Pages interface {
	Resize(size uint64) []byte
	Free()
}

// heapPages is memory on the Go heap, used if no other is available.
type heapPages struct{ data []byte }

func (h *heapPages) Resize(size uint64) []byte {
	if size > uint64(cap(h.data)) {
		grown := make([]byte, size)
		copy(grown, h.data)
		h.data = grown
	}
	h.data = h.data[:size]
	return h.data
}

func (h *heapPages) Free() { h.data = nil }
