package verb

import "testing"

// TestDocumentNumbers checks that numbers differ, also modulo the cycle within a cycle, and are not foreseeable.
func TestDocumentNumbers(t *testing.T) {
	n, all, cycle := newDocumentNumbers(), map[int64]bool{}, map[int64]bool{}
	first := n.next()
	all[first], cycle[first%documentCycle] = true, true
	for range 2*documentCycle - 1 {
		next := n.next()
		all[next] = true
		if cycle[next%documentCycle] = true; next < 1 || len(all) == documentCycle &&
			len(cycle) != documentCycle {
			t.Fatalf("%d: %d numbers have %d words", next, len(all), len(cycle))
		}
	}
	if len(all) != 2*documentCycle {
		t.Errorf("%d numbers are different", len(all))
	}
	firsts := map[int64]bool{}
	for range 20 {
		n := newDocumentNumbers()
		firsts[n.next()] = true
	}
	if len(firsts) < 15 {
		t.Errorf("20 browsers begin with %d numbers", len(firsts))
	}
}
