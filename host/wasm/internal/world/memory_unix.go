//go:build unix

package world

import "golang.org/x/sys/unix"

// mappedPages is memory outside the Go heap. It costs the garbage collector nothing, does not move when it grows, and
// returns to the system at once.
type mappedPages struct {
	data []byte
	used uint64
}

// slowToUnmap is the size from which on unmapping a memory takes longer than a call may take to end.
const slowToUnmap = 32 << 20

// newPages reserves memory of up to limit bytes.
func newPages(limit uint64) pages {
	if limit == 0 {
		return &heapPages{}
	}
	data, err := unix.Mmap(-1, 0, int(limit), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE|mapNoReserve)
	if err != nil {
		return &heapPages{}
	}
	return &mappedPages{data: data}
}

// startsLarge is the size from which on a memory gets huge pages from the beginning. For the initial data of a Go
// guest, a fault for each small page takes longer than copying the data. A small guest would only take more memory.
const startsLarge = 2 << 20

func (m *mappedPages) Resize(size uint64) []byte {
	if m.used == 0 && size >= startsLarge {
		preferHugePages(m.data)
	}
	m.used = max(m.used, size)
	return m.data[:size:size]
}

func (m *mappedPages) Free() {
	data := m.data
	m.data = nil
	switch {
	case data == nil:
	case m.used > slowToUnmap:
		go func() { _ = unix.Munmap(data) }()
	default:
		_ = unix.Munmap(data)
	}
}
