package world

import "github.com/tetratelabs/wazero/experimental"

// The pages of linear memory.
const (
	PageBytes   = 1 << 16
	PagesPerMiB = 16
	MaxPages    = 1 << 16
)

// Memory is the linear memory of a call's instance. It records growth beyond the limit, because the guest only sees
// -1 and most guests crash on it.
type Memory struct {
	Control *Control
	pages   pages // nil until the instance has memory
	limit   uint64
	Denied  bool
	Peak    uint64 // its largest size so far, in bytes
}

// Allocate implements wazero's memory allocator. An instance has one memory.
func (m *Memory) Allocate(_, limit uint64) experimental.LinearMemory {
	m.limit = min(limit, uint64(m.Control.Limits.Pages)*PageBytes)
	if m.pages == nil {
		m.pages = newPages(m.limit)
	}
	return m
}

// Prepare creates the memory before the instance exists, with a limit, and returns it with a size.
func (m *Memory) Prepare(limit, size uint64) []byte {
	m.pages, m.Peak = newPages(limit), size
	return m.pages.Resize(size)
}

// Reallocate returns the memory with another size, or nil if that is beyond the limit.
func (m *Memory) Reallocate(size uint64) []byte {
	if size > m.limit {
		m.Denied = true
		return nil
	}
	m.Peak = max(m.Peak, size)
	return m.pages.Resize(size)
}

// Free returns the memory to the system.
func (m *Memory) Free() {
	if m.pages != nil {
		m.pages.Free()
	}
}

// pages is memory that can be resized up to the size that it was created for.
type pages interface {
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
