package index

import (
	"math"
	"slices"

	"github.com/parley-tools/parley/host/internal/index/language"
)

// NumSignals is the length of [Results.Signals].
const NumSignals = 7

// signals returns the signals that tell whether a right tool is among the first five results: which share of the
// subject of the query the first result has, how many words the query has, how much the first result leads the second,
// the fifth, and the first one of another plugin, whether the query is its name or one of its phrases, and how many
// tools there are.
func (s *search) signals(list []scored) (x [NumSignals]float64) {
	if len(list) == 0 {
		return x
	}
	first := &list[0]
	lead := func(than int) float64 {
		if than < 0 || than >= len(list) {
			return first.score
		}
		return first.score - list[than].score
	}
	sure := 0.0
	if first.sure {
		sure = 1
	}
	other := slices.IndexFunc(list, func(c scored) bool { return c.part != first.part })
	return [...]float64{s.subject(first), float64(len(s.words)), lead(1), lead(4), lead(other), sure,
		math.Log2(float64(s.docs))}
}

// subject returns which share of the subject of the query a candidate has. The subject is the words of the query, by
// their weight, without the verbs that say what to do.
func (s *search) subject(c *scored) float64 {
	const asAnother = 0.6 // share of a word that it has in another form
	has, of := 0.0, 0.0
	for w, row := range c.part.src.rows {
		weight := c.part.idf[w]
		if language.AsksFor(s.words[w].text) != "" {
			continue
		}
		of += weight
		if row == nil || row[c.doc-c.part.src.lo].strength == 0 {
			continue
		}
		switch s.variants[row[c.doc-c.part.src.lo].variant].how {
		case asPlugin, asAbout:
		case asWord, asJoined:
			has += weight
		default:
			has += asAnother * weight
		}
	}
	if of == 0 {
		return 0
	}
	return has / of
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
