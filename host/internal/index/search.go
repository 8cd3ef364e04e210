package index

import (
	"cmp"
	"math"
	"slices"
	"strings"
)

const (
	maxQuery    = 8 << 10 // bytes of a query that are looked at
	maxWords    = 64      // words of it that count
	maxUnknown  = 12      // words of it that are taken for typos
	maxVariants = 400
	defaultHits = 10
	candidates  = 64 // documents that are looked at closely, at least
)

// Search ranks the documents of all segments for a query.
func Search(segs []*Segment, q Query) Results {
	s := newSearch(segs, q)
	if s == nil {
		return Results{Weak: true}
	}
	exact := s.names()
	s.wordByWord()
	if !exact {
		s.nearNames()
	}
	s.mend()
	s.weigh()
	s.compare()
	return s.results()
}

// search is one query under way.
type search struct {
	q        Query
	kind     int
	fields   []string // identifiers: the whole query first, then the fields of it that look like names
	words    []queryWord
	variants []variant
	whole    int // variant that is the whole query as one word
	parts    []*part
	docs     int // of the kind, in all segments
	arena    []cell
}

type queryWord struct {
	text, stem string
	idf        float64 // in all segments
	known      bool    // some segment holds the word itself
	plugin     bool    // some segment is called so
	light      float64 // share of its weight that it keeps
}

// how a variant stands to the word of the query.
const (
	asWord = iota
	asJoined
	asSynonym
	asPrefix
	asTypo
	asNamePart
	asPlugin
)

var hows = [...]string{"word", "joined", "synonym", "prefix", "typo", "name part", "plugin"}

// A variant is something to look up for a word of the query, or for two that were joined.
type variant struct {
	first, last int // words it stands for
	how         int
	text, stem  string
	hash        uint32
	exact       bool // only this word, not others of its stem
	weight      float64
	scope       string // plugin it is limited to
	docs        int    // that hold it, in all segments
	mask        byte   // fields it stands in, in all segments
}

// part is the search within one segment.
type part struct {
	seg     *Segment
	lo, hi  int
	names   []byte   // of the documents from lo to hi
	rows    [][]cell // by word, then document - lo; nil while nothing matched
	docs    []int32  // by variant: how many hold it
	named   []named
	idf     []float64 // by word
	most    []float64 // by variant: the most that a synonym may count, 0 for others
	ideal   float64
	alike   []float64 // by document - lo: how near its meaning comes to the query's; nil when the query has none
	nearest float64   // the most of alike
	allow   *allowed
	spell   []spelling // words of this index that matched, for comparing phrases
}

// cell is the best evidence that a document has for a word.
type cell struct {
	strength float32 // 0..1, 0 = none
	variant  uint16
	mask     byte
}

func newSearch(segs []*Segment, q Query) *search {
	s := &search{q: q, kind: kindOf(q.Kind)}
	if s.kind < 0 {
		return nil
	}
	text := q.Text[:min(len(q.Text), maxQuery)]
	s.readFields(text)
	s.readWords(text)
	if len(s.words) == 0 && len(s.fields) == 0 {
		return nil
	}
	s.parts = make([]*part, 0, len(segs))
	backing := make([]part, len(segs))
	for i, seg := range segs {
		p := &backing[i]
		p.seg = seg
		p.lo, p.hi = seg.bounds(s.kind)
		p.names = seg.names[s.kind]
		if p.lo == p.hi {
			continue
		}
		if q.Group != "" || q.Effect != "" || q.Category != "" {
			if p.allow = allow(seg, q); p.allow == nil {
				continue
			}
		}
		s.docs += p.hi - p.lo
		s.parts = append(s.parts, p)
	}
	// Equal scores go by name, so the order of the segments must not matter.
	slices.SortStableFunc(s.parts, func(a, b *part) int { return cmp.Compare(a.seg.plugin, b.seg.plugin) })
	return s
}

// readWords takes the words off the query, each stem once.
func (s *search) readWords(text string) {
	var all []string
	for _, c := range chunks(withoutAddresses(text), maxWords) {
		all = append(all, c.parts...)
	}
	content := slices.DeleteFunc(slices.Clone(all), stopWord)
	if len(content) == 0 {
		content = all
	}
	for _, w := range content {
		st := stem(w)
		if !slices.ContainsFunc(s.words, func(x queryWord) bool { return x.stem == st }) && len(s.words) < maxWords {
			s.words = append(s.words, newWord(w))
		}
	}
	for i := range s.words {
		s.addWord(i)
	}
	for i := 0; i+1 < len(s.words) && len(s.words) > 2; i++ {
		if j := s.words[i].text + s.words[i+1].text; len(j) <= maxTerm {
			s.add(variant{first: i, last: i + 1, how: asJoined, text: j, weight: 0.95})
		}
	}
	if n := len(s.words); n > 0 && len(s.fields) > 0 && s.fields[0] != s.words[0].text && len(s.fields[0]) <= maxTerm {
		s.whole = len(s.variants)
		s.add(variant{last: n - 1, how: asJoined, text: s.fields[0], weight: 0.95})
	}
}

// withoutAddresses puts the word url in the place of each URL: its parts are no words of a tool.
func withoutAddresses(text string) string {
	if !strings.Contains(text, "://") {
		return text
	}
	fields := strings.Fields(text)
	for i, f := range fields {
		if strings.Contains(f, "://") {
			fields[i] = "url"
		}
	}
	return strings.Join(fields, " ")
}

func newWord(text string) queryWord {
	st := stem(text)
	return queryWord{text: text, stem: st, light: light(st)}
}

// addWord adds the word itself and its synonyms, without those that are asked for themselves: a word of a document answers one of the query's.
func (s *search) addWord(i int) {
	w := s.words[i]
	s.add(variant{first: i, last: i, how: asWord, text: w.text, stem: w.stem, weight: 1})
	for _, syn := range thesaurus()[w.stem] {
		if slices.ContainsFunc(s.words, func(w queryWord) bool { return w.stem == syn.stem }) {
			continue
		}
		s.add(variant{first: i, last: i, how: asSynonym, text: syn.stem, stem: syn.stem, weight: syn.weight, scope: syn.scope})
	}
}

func (s *search) add(v variant) {
	if len(s.variants) >= maxVariants {
		return
	}
	if v.stem == "" {
		v.stem = stem(v.text)
	}
	v.hash = hash(v.stem)
	s.variants = append(s.variants, v)
}

// wordByWord looks up every variant in every segment.
func (s *search) wordByWord() {
	words, variants := len(s.words), len(s.variants)
	wide, long := words+4, variants+words+8 // with room for what mend adds
	rows, docs := make([][]cell, wide*len(s.parts)), make([]int32, long*len(s.parts))
	for k, p := range s.parts {
		p.rows = rows[k*wide:][:words:wide]
		p.docs = docs[k*long:][:variants:long]
		for i := range s.variants {
			s.apply(p, i)
		}
	}
	for i := range s.words {
		s.namePart(i)
	}
	for i := range s.words {
		s.words[i].known = s.knows(i)
	}
}

// knows says whether some segment holds word i itself, alone or joined to its neighbour, or is called so.
func (s *search) knows(i int) bool {
	return slices.ContainsFunc(s.variants, func(v variant) bool {
		return v.first <= i && i <= v.last && v.docs > 0 && (v.how == asWord || v.how == asJoined || v.how == asPlugin)
	})
}

// apply puts what variant i meets in a segment into its rows.
func (s *search) apply(p *part, i int) {
	v := &s.variants[i]
	if v.scope != "" && v.scope != p.seg.plugin {
		return
	}
	if v.how == asWord && v.text == p.seg.ident {
		s.applyPlugin(p, i)
	}
	r := p.seg.find(v.stem, v.hash)
	if len(r.b) == 0 {
		return
	}
	var buf [512]byte
	count := int32(0)
	r.group(&buf, func(ix indexed) {
		weight := v.weight * form(v, ix.text)
		if weight == 0 {
			return
		}
		each(ix.postings, p.lo, p.hi, func(doc int, w, mask byte) {
			count++
			v.mask |= mask
			strength := float32(weight * float64(w) / 255)
			for word := v.first; word <= v.last; word++ {
				s.put(p, word, doc, cell{strength, uint16(i), mask})
			}
		})
	})
	p.docs[i] = min(count, int32(p.hi-p.lo))
	v.docs += int(p.docs[i])
}

// applyPlugin lets the plugin's own name speak a little for each of its documents.
func (s *search) applyPlugin(p *part, i int) {
	v := &s.variants[i]
	s.words[v.first].plugin = true
	for doc := p.lo; doc < p.hi; doc++ {
		s.put(p, v.first, doc, cell{0.3, uint16(i), 0})
	}
	v.docs++
}

func (s *search) put(p *part, word, doc int, c cell) {
	if p.rows[word] == nil {
		p.rows[word] = s.row(p.hi - p.lo)
	}
	if at := &p.rows[word][doc-p.lo]; c.strength > at.strength {
		*at = c
	}
}

// row takes n cells from the arena: a search of many small segments needs thousands of short rows.
func (s *search) row(n int) []cell {
	if n > len(s.arena) {
		s.arena = make([]cell, max(n, 8192))
	}
	row := s.arena[:n:n]
	s.arena = s.arena[n:]
	return row
}

// form is what a word of the index counts for a variant of the same stem: all when it is written alike, little when the
// stem hides that they differ much (Porter2 stems access and accessibility alike).
func form(v *variant, text []byte) float64 {
	if string(text) == v.text || v.how == asSynonym {
		return 1
	}
	if v.exact {
		return 0
	}
	if d := len(text) - len(v.text); d > 4 || d < -4 {
		return 0.7
	}
	return 0.93
}

// namePart finds a word inside the parts of names: screen in captureScreenshot.
func (s *search) namePart(word int) {
	text := s.words[word].text
	if len(text) < 3 {
		return
	}
	i := len(s.variants)
	s.add(variant{first: word, last: word, how: asNamePart, text: text, stem: text, weight: 1})
	if len(s.variants) == i {
		return
	}
	v, pattern := &s.variants[i], []byte(text)
	for _, p := range s.parts {
		p.docs = append(p.docs, 0)
		p.hits(pattern, func(doc int, line []byte, own, at int) {
			if row := p.rows[word]; row != nil && row[doc-p.lo].mask&(1<<inName|1<<inGroup) != 0 {
				return
			}
			c := cell{0.28, uint16(i), 1 << inName}
			r := p.seg.record(doc)
			if startsPart(r.name, at) {
				c.strength = 0.52
			} else if len(text) < 5 {
				return
			}
			if at < own {
				c.mask = 1 << inGroup
				c.strength /= 2
			}
			p.docs[i]++
			v.docs++
			s.put(p, word, doc, c)
		})
	}
}

// weigh settles what each word is worth: much when few documents hold it. A small segment knows little about that, so
// its own count is mixed with everybody's, as if it had borrowed prior documents from all segments. Borrowing many keeps
// a word that is all over a plugin, and says what it is for, from counting less there than in one that has it in passing.
func (s *search) weigh() {
	const prior = 1000
	idf := func(docs, of int, all float64) float64 {
		share := (float64(docs) + prior*all) / (float64(of) + prior)
		return min(6, max(0.35, -math.Log(share)))
	}
	share := func(docs int) float64 { return min(1, (float64(docs)+0.5)/(float64(s.docs)+1)) }
	known, sum := 0, 0.0
	counts := make([][]int, len(s.words)) // variants that say how common a word is
	for w := range s.words {
		counts[w] = s.counting(w)
		docs := 0
		for _, v := range counts[w] {
			docs += s.variants[v].docs
		}
		if docs > 0 {
			s.words[w].idf = idf(0, 0, share(docs)) * s.words[w].light
			known++
			sum += s.words[w].idf
		}
	}
	for w := range s.words {
		if s.words[w].idf == 0 {
			// Nobody knows it: it counts against all alike, less than the words that can be found.
			s.words[w].idf = 0.6 * max(1, sum/float64(max(1, known)))
		}
	}
	words, variants := len(s.words), len(s.variants)
	floats := make([]float64, (words+variants)*len(s.parts))
	for k, p := range s.parts {
		own := floats[k*(words+variants):][:words+variants]
		p.idf, p.most = own[:words], own[words:]
		for w := range s.words {
			docs, all := 0, 0
			for _, v := range counts[w] {
				docs += int(p.docs[v])
				all += s.variants[v].docs
			}
			switch {
			case all == 0:
				p.idf[w] = s.words[w].idf
			case s.words[w].plugin:
				p.idf[w] = 2.5
			default:
				p.idf[w] = idf(min(docs, p.hi-p.lo), p.hi-p.lo, share(all)) * s.words[w].light
			}
			p.ideal += p.idf[w]
		}
		for i, v := range s.variants {
			if v.how == asSynonym && p.docs[i] > 0 {
				p.most[i] = idf(int(p.docs[i]), p.hi-p.lo, share(v.docs))
			}
		}
	}
}

// compare says of each document how near its meaning comes to the query's.
func (s *search) compare() {
	if s.kind != 0 || len(s.words) == 1 && s.words[0].known {
		return // events and types have none; of one known word all is said
	}
	var m meaning
	known, of := 0.0, 0.0
	for _, w := range s.words {
		if of += w.light; m.add(w.text, w.light) {
			known += w.light
		}
	}
	query, ok := m.direction()
	if !ok {
		return
	}
	var like likeness
	like.to(query)
	all := make([]float64, s.docs)
	for _, p := range s.parts {
		p.alike, all = all[:p.hi-p.lo], all[p.hi-p.lo:]
		for i := range p.alike {
			p.alike[i] = known / of * like.of(p.seg.vectors[vectorSize/2*i:])
			p.nearest = max(p.nearest, p.alike[i])
		}
	}
}

// counting are the variants whose documents count as holding word w: the word itself where it is known.
func (s *search) counting(w int) (out []int) {
	for _, want := range [][]int{{asWord, asJoined}, {asTypo, asPrefix, asNamePart}, {asSynonym}} {
		for i, v := range s.variants {
			if v.first <= w && w <= v.last && v.docs > 0 && slices.Contains(want, v.how) {
				out = append(out, i)
			}
		}
		if len(out) > 0 {
			return out
		}
	}
	return nil
}
