package index

import "sync"

// scratch is the working memory of a search. It contains no pointers and is reused by the next search: a query over ten
// thousand tools fills a megabyte, and clearing that costs less than garbage collection.
type scratch struct {
	cells  arena[cell]
	floats arena[float64]
	counts arena[int32]
	flags  arena[bool]
	list   []candidate
	word   [2 * 256]byte
}

var scratches = sync.Pool{New: func() any { return &scratch{} }}

// arena allocates zeroed slices of one type, which are all freed at once.
type arena[T any] struct {
	all  []T
	used int
}

func (a *arena[T]) take(n int) []T {
	if a.used+n > len(a.all) {
		a.all, a.used = make([]T, 2*(a.used+n)), n // slices taken before keep the old array
		return a.all[:n:n]
	}
	out := a.all[a.used:][:n:n]
	a.used += n
	clear(out)
	return out
}

// release frees what was allocated and returns the memory to the pool.
func (s *scratch) release() {
	s.cells.used, s.floats.used, s.counts.used, s.flags.used, s.list = 0, 0, 0, 0, s.list[:0]
	scratches.Put(s)
}
