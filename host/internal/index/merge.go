package index

import (
	"cmp"
	"slices"
)

// Merge combines many segments into one with the same search results, which looks each word up once. build returns what
// a plugin's part was built from, for [Segment.Keep] to compare later. Plugins that Keep has excluded are left out. A
// plugin must not be in two segments.
func Merge(segs []*Segment, build func(plugin string) string) []byte {
	type from struct{ seg, member int }
	var order []from
	for i, s := range segs {
		for k := range s.members {
			if !s.members[k].excluded {
				order = append(order, from{i, k})
			}
		}
	}
	at := func(f from) *member { return &segs[f.seg].members[f.member] }
	slices.SortStableFunc(order, func(a, b from) int { return cmp.Compare(at(a).plugin, at(b).plugin) })

	drafts := make([]draft, len(order))
	numbers := make([][]int32, len(segs)) // by segment and document: its new number + 1, 0 if it is left out
	for i, s := range segs {
		numbers[i] = make([]int32, s.total)
	}
	for i, f := range order {
		m := at(f)
		drafts[i] = draft{plugin: m.plugin, build: build(m.plugin), strings: m.strings}
		for k := range kinds {
			drafts[i].docs[k] = segs[f.seg].drafts(m, k)
		}
	}
	next := int32(1)
	for k := range kinds {
		for _, f := range order {
			for i := range at(f).docs[k] {
				numbers[f.seg][at(f).first[k]+i] = next
				next++
			}
		}
	}

	words := map[string]*entry{}
	var buf [2 * 256]byte
	for i, s := range segs {
		for r := (reader{b: s.terms}); len(r.b) > 0; {
			r.group(&buf, func(ix indexed) {
				if len(ix.text) > maxTerm {
					return
				}
				e := words[string(ix.text)]
				eachPosting(ix.postings, 0, s.total, func(doc int, weight, mask byte) {
					if n := numbers[i][doc]; n > 0 {
						if e == nil {
							e = &entry{word: string(ix.text)}
							words[e.word] = e
						}
						e.postings = append(e.postings, posting{int(n - 1), weight, mask})
					}
				})
			})
		}
	}
	for _, e := range words {
		if !slices.IsSortedFunc(e.postings, byDoc) {
			slices.SortStableFunc(e.postings, byDoc)
		}
	}
	return layout(drafts, words)
}

func byDoc(a, b posting) int { return cmp.Compare(a.doc, b.doc) }

// drafts returns a plugin's documents of a kind.
func (s *Segment) drafts(m *member, kind int) []draftDoc {
	docs := make([]draftDoc, m.docs[kind])
	names, remaining := s.idents(), len(m.records) // a damaged record may claim to be longer
	for i := range docs {
		d, doc := &docs[i], m.first[kind]+i
		d.name = s.lines[names[doc].at:][:names[doc].size]
		d.own = s.owns[doc]
		if size := s.recordSize(doc); size <= remaining {
			d.record = s.recordAt(doc).b[:size]
			remaining -= size
		}
		if kind == 0 {
			copy(d.meaning[:], s.meanings[vectorSize/2*doc:])
		}
	}
	return docs
}

// recordSize returns the length of a document's record, 0 if it is damaged.
func (s *Segment) recordSize(doc int) int {
	r := s.record(doc)
	rest := r.phrases
	for range r.aliases + r.tasks {
		if rest.str(); rest.bad {
			break
		}
	}
	if rest.bad {
		return 0
	}
	return len(s.recordAt(doc).b) - len(rest.b)
}
