package index

import (
	"math"
	"slices"

	"github.com/parley-tools/parley/host/internal/index/language"
)

// NumSignals is the length of [Results.Signals].
const NumSignals = 6

// signals returns the signals that tell whether a right tool is among the first five results: the score of the first
// result times its share of the subject of the query, the number of words of the subject, the share of them that the
// first result lacks, the share of the subject that the first five have together, by how much the first leads the first
// one of another plugin, and the number of tools of its plugin, since of many tools some match a part of any query.
func (s *search) signals(list []scored) (x [NumSignals]float64) {
	if len(list) == 0 {
		return x
	}
	first := &list[0]
	has, words, lacks := s.subject(list[:1])
	together, _, _ := s.subject(list[:min(5, len(list))])
	lead := first.score
	if i := slices.IndexFunc(list, func(c scored) bool { return c.part != first.part }); i >= 0 {
		lead -= list[i].score
	}
	return [...]float64{first.score * has, words, lacks, together, lead, math.Log2(float64(first.part.hi - first.part.lo))}
}

// subject returns the share of the query's subject that the candidates have together, by the weight of its words. The
// subject is the words of the query without the verbs that say what to do. It also returns the number of these words,
// and the share of them that no candidate has; a word that no document has counts in full there.
func (s *search) subject(list []scored) (share, words, lacks float64) {
	const asAnother = 0.6 // share of a word that is there in another form
	has, of := 0.0, 0.0
	for i, w := range s.words {
		if language.AsksFor(w.text) != "" {
			continue
		}
		best, isThere := 0.0, false
		for _, c := range list {
			row := c.part.src.rows[i]
			if row == nil || row[c.doc-c.part.src.lo].strength == 0 {
				continue
			}
			isThere = true
			switch s.variants[row[c.doc-c.part.src.lo].variant].how {
			case asPlugin, asAbout:
			case asWord, asJoined:
				best = 1
			default:
				best = max(best, asAnother)
			}
		}
		has, of, words = has+best*w.idf, of+w.idf, words+1
		if !isThere {
			lacks++
		}
	}
	return has / max(of, 0.1), words, lacks / max(words, 1)
}

// hasAll reports whether a candidate has each word of the query as it is, and not only in passing.
func (s *search) hasAll(c *scored) bool {
	const inPassing = 0.8
	for _, row := range c.part.src.rows {
		if row == nil || row[c.doc-c.part.src.lo].strength == 0 ||
			!slices.Contains(asKnown, s.variants[row[c.doc-c.part.src.lo].variant].how) {
			return false
		}
	}
	return c.score >= inPassing
}

// Names and phrases have high confidence, and so has a first result with at least this certainty and this lead.
// Further results have medium confidence from mediumScore on.
const (
	highCertainty = 0.75
	highLead      = 0.03
	mediumScore   = 0.4
)

// confidence rates result i. If nothing matches well, only a result that the query names does.
func confidence(list []scored, i int, certain float64) string {
	c := &list[i]
	switch {
	case c.sure && c.score >= 0.8,
		i == 0 && certain >= highCertainty && (len(list) == 1 || c.score-list[1].score >= highLead):
		return "high"
	case certain >= 0.5 && (i == 0 || c.score >= mediumScore):
		return "medium"
	}
	return "low"
}

// certainty returns how likely it is that a right tool is among the first five results, if queries with and without a
// right tool are equally frequent.
func certainty(x [NumSignals]float64) float64 {
	z := certaintyWeights[NumSignals]
	for i, v := range x {
		z += certaintyWeights[i] * v
	}
	return 1 / (1 + math.Exp(-z))
}

// mostlyUnknown reports whether neither the documents nor the dictionary contain most words of the query.
func (s *search) mostlyUnknown() bool {
	unknown := 0
	for _, w := range s.words {
		if !w.known && vectorOf(w.text) == "" {
			unknown++
		}
	}
	return len(s.words) > 0 && 2*unknown > len(s.words)
}
