package index

import "strings"

// filter contains the numbers of the strings that pass the query's filters. A nil set lets all strings pass.
type filter struct{ group, category, effect map[int]bool }

// newFilter returns the filter for a plugin, nil if none of its documents can pass.
func newFilter(m *member, q Query) *filter {
	a := &filter{}
	ok := true
	numbers := func(want string) map[int]bool {
		if want == "" {
			return nil
		}
		set := map[int]bool{}
		r := reader{b: m.strings}
		for i := range r.count() {
			if strings.EqualFold(string(r.str()), want) {
				set[i] = true
			}
		}
		ok = ok && len(set) > 0
		return set
	}
	group := q.Group
	if i := strings.IndexByte(group, '.'); i >= 0 && strings.EqualFold(group[:i], m.plugin) {
		group = group[i+1:]
	}
	a.group, a.category, a.effect = numbers(group), numbers(q.Category), numbers(q.Effect)
	if !ok {
		return nil
	}
	return a
}

func (p *part) allows(doc int) bool {
	if p.filter == nil {
		return true
	}
	r := p.src.seg.record(doc)
	pass := func(set map[int]bool, n int) bool { return set == nil || set[n] }
	return pass(p.filter.group, r.group) && pass(p.filter.category, r.category) && pass(p.filter.effect, r.effect)
}
