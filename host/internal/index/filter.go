package index

import "strings"

// filter has the numbers of the groups, categories and effects that pass the query's filters. A nil set lets all pass.
type filter [len(stored{}.shared)]map[int]bool

// newFilter returns the filter for a plugin, and reports whether some of its documents can pass.
func newFilter(m *member, q Query) (f filter, some bool) {
	group := q.Group
	if plugin, local, dotted := strings.Cut(group, "."); dotted && strings.EqualFold(plugin, m.plugin) {
		group = local
	}
	for i, want := range [len(f)]string{group, q.Category, q.Effect} {
		if want == "" {
			continue
		}
		f[i] = map[int]bool{}
		r := reader{b: m.strings}
		for number := range r.count() {
			if strings.EqualFold(string(r.str()), want) {
				f[i][number] = true
			}
		}
		if len(f[i]) == 0 {
			return f, false
		}
	}
	return f, true
}

func (p *part) allows(doc int) bool {
	for i, set := range p.filter {
		if set != nil && !set[p.src.seg.record(doc).shared[i]] {
			return false
		}
	}
	return true
}
