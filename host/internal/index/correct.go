package index

import (
	"bytes"
	"cmp"
	"maps"
	"slices"

	"github.com/parley-tools/parley/host/internal/index/edits"
)

// correctWords looks for known words that the unknown words of the query may stand for.
func (s *search) correctWords() {
	var typos []*typo
	for i := range s.words {
		switch w := &s.words[i]; {
		case len(typos) == maxUnknown || len(w.text) < 3:
		case !w.known && len(s.words) > 1 && vectorOf(w.text) != "":
			// A word of the dictionary is what it seems to be: weather is not rather.
		case !w.known && !s.variants.matched(i, asSynonym):
			t := newTypo(i, w.text, 1)
			if len(s.words) == 1 && t.maxEdits == 1 {
				t.maxEdits = 2 // there is no other evidence
			}
			typos = append(typos, t)
		case w.known && len(w.text) >= 6 && s.variants.likelyTypo(i):
			// Texts can contain misspellings: a rare word that occurs only in descriptions may be one.
			t := newTypo(i, w.text, 0.5)
			t.maxEdits = 1
			typos = append(typos, t)
		}
	}
	if len(typos) == 0 {
		return
	}
	for _, src := range s.sources {
		src.scan(typos)
	}
	for _, t := range typos {
		s.correctWord(t)
	}
}

// typo is an unknown word and the words of the index that it comes near.
type typo struct {
	word     int
	text     []byte
	set      uint32
	maxEdits int
	factor   float64
	found    map[string]guess
	seen     map[string]bool // words that were compared
}

type guess struct {
	text   string
	weight float64
	how    int
	strong bool
}

func newTypo(word int, text string, factor float64) *typo {
	t := &typo{word: word, text: []byte(text), factor: factor, found: map[string]guess{}, seen: map[string]bool{}}
	t.set = edits.Letters(t.text)
	switch {
	case len(text) >= 6:
		t.maxEdits = 2
	case len(text) >= 4:
		t.maxEdits = 1
	}
	return t
}

// scan compares all words of a segment with all typos.
func (src *source) scan(typos []*typo) {
	var buf [maxTerm]byte
	words := src.seg.words()
	for _, t := range typos {
		shortest, longest := len(t.text)-t.maxEdits, len(t.text)+t.maxEdits
		for i := range words {
			w := &words[i]
			n := int(w.size)
			if n < shortest {
				continue
			}
			if n <= longest && edits.Possible(t.set, w.set, t.maxEdits) || n > len(t.text) && t.set&^w.set == 0 {
				if word := src.seg.spell(*w, &buf); !t.seen[string(word)] && src.contains(src.seg.postings(*w)) {
					t.compare(word)
				}
			}
		}
	}
}

// contains reports whether a word occurs in a document, of any kind, of a plugin that is searched.
func (src *source) contains(postings []byte) (found bool) {
	if len(src.active) == len(src.parts) {
		return true
	}
	eachPosting(postings, 0, src.seg.total, func(doc int, _, _ byte) { found = found || src.partOf(doc) != nil })
	return found
}

// compare adds a guess if the typo may stand for a word of the index.
func (t *typo) compare(word []byte) {
	t.seen[string(word)] = true
	if extra := len(word) - len(t.text); extra <= t.maxEdits {
		if d := edits.Distance(t.text, word, t.maxEdits); d > 0 && d <= t.maxEdits {
			t.near(word, d)
			return
		}
	}
	if len(word) > len(t.text) && t.factor == 1 && bytes.HasPrefix(word, t.text) {
		t.prefix(word)
	}
}

func (t *typo) near(text []byte, d int) {
	n := float64(len(t.text))
	g := guess{text: string(text), how: asTypo, weight: 0.92 - 0.14*float64(d) - 0.5*float64(d)/n, strong: d == 1 ||
		n >= 9}
	if text[0] != t.text[0] {
		g.weight *= 0.85
	}
	if digits(text) != digits(t.text) {
		g.weight *= 0.6 // sha1 is not a typo of sha2
	}
	g.weight *= t.factor
	t.found[g.text] = g
}

func digits(text []byte) (n int) {
	for _, c := range text {
		if c >= '0' && c <= '9' {
			n = n*31 + int(c)
		}
	}
	return n
}

func (t *typo) prefix(text []byte) {
	ratio := float64(len(t.text)) / float64(len(text))
	t.found[string(text)] = guess{text: string(text), how: asPrefix, weight: 0.45 + 0.45*ratio, strong: true}
}

// best returns the strongest n guesses.
func (t *typo) best(strong bool, n int) []guess {
	out := slices.SortedFunc(maps.Values(t.found), func(a, b guess) int {
		return cmp.Or(cmp.Compare(b.weight, a.weight), cmp.Compare(a.text, b.text))
	})
	out = slices.DeleteFunc(out, func(g guess) bool { return g.strong != strong })
	return out[:min(n, len(out))]
}

func (s *search) correctWord(t *typo) {
	if s.guess(t, true, 6) {
		return
	}
	if t.factor < 1 || s.matchThesaurus(t) && len(s.words) > 1 || s.split(t) {
		return
	}
	s.guess(t, false, 4)
}

// guess looks up the best guesses until limit of them match: some words occur only in documents of another kind.
func (s *search) guess(t *typo, strong bool, limit int) (met bool) {
	left := limit
	for _, g := range t.best(strong, 4*limit) {
		if s.addLate(variant{first: t.word, last: t.word, how: g.how, text: g.text, exact: g.how == asPrefix,
			weight: g.weight}) > 0 {
			met = true
			if left--; left == 0 {
				break
			}
		}
	}
	return met
}

// addLate adds a variant and looks it up. It returns the number of documents that contain it.
func (s *search) addLate(v variant) (docs int) {
	i := len(s.variants)
	if !s.variants.add(v) {
		return 0
	}
	s.apply(i)
	return s.variants[i].docs
}

// matchThesaurus corrects one typo to a word of the thesaurus whose synonyms occur in the index.
func (s *search) matchThesaurus(t *typo) bool {
	if len(t.text) < 5 {
		return false
	}
	st := []byte(stem(string(t.text)))
	set, best := edits.Letters(st), ""
	for _, line := range thesaurusLines() {
		key := []byte(stemOf(line))
		if edits.Possible(set, edits.Letters(key), 1) && edits.Distance(st, key, 1) <= 1 {
			best = string(key)
			break
		}
	}
	docs := 0
	for _, syn := range synonyms(best) {
		docs += s.addLate(variant{first: t.word, last: t.word, how: asSynonym, text: syn.stem, stem: syn.stem,
			weight: 0.8 * syn.weight, scope: syn.scope})
	}
	return docs > 0
}

// split splits a word into two known words. The second becomes a word of the query of its own.
func (s *search) split(t *typo) bool {
	const shortest = 3
	text := string(t.text)
	best, score := 0, 0
	for i := 2; i <= len(text)-2; i++ {
		digitsMeet := (text[i] >= '0' && text[i] <= '9') != (text[i-1] >= '0' && text[i-1] <= '9')
		if !digitsMeet && (i < shortest || len(text)-i < shortest) {
			continue
		}
		if n := min(i, len(text)-i); n > score && s.anyContains(text[:i]) && s.anyContains(text[i:]) {
			best, score = i, n
		}
	}
	if best == 0 || len(s.words) == maxWords {
		return false
	}
	s.words[t.word] = newWord(text[:best])
	s.words = append(s.words, newWord(text[best:]))
	for _, src := range s.sources {
		src.rows = append(src.rows, nil)
		src.rows[t.word] = nil
	}
	for _, w := range []int{t.word, len(s.words) - 1} {
		from := len(s.variants)
		s.addWord(w)
		for i := from; i < len(s.variants); i++ {
			s.apply(i)
		}
	}
	return true
}

func (s *search) anyContains(word string) bool {
	st := stem(word)
	return slices.ContainsFunc(s.sources, func(src *source) (found bool) {
		src.eachWord(st, func(ix indexed) { found = found || src.contains(ix.postings) })
		return found
	})
}

// mayBeMisspelled reports whether some word of the query may be misspelled.
func (s *search) mayBeMisspelled() bool {
	for i, w := range s.words {
		if !w.known || s.variants.likelyTypo(i) {
			return true
		}
	}
	return len(s.words) == 0
}
