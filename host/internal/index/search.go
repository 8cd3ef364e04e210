package index

import (
	"cmp"
	"math"
	"slices"

	"github.com/parley-tools/parley/host/internal/index/language"
)

const (
	maxQuery    = 8 << 10 // bytes of a query that are read
	maxWords    = 64      // words of a query that count
	maxUnknown  = 12      // words of a query that are treated as typos
	maxVariants = 400
	defaultHits = 10
	candidates  = 64 // minimum number of documents that are rescored
)

// Search ranks the documents of all segments for a query. What the query excludes ("screenshot without cookies") does
// not count, unless a document says that it excludes the same ("reload without cache").
func Search(segs []*Segment, q Query) Results {
	text := q.Text[:min(len(q.Text), maxQuery)]
	if asked := withoutExcluded(text); asked != text {
		if whole, meant := rank(segs, q, text); meant {
			return whole
		}
		text = asked
	}
	found, _ := rank(segs, q, text)
	return found
}

// rank ranks the documents for the part of a query that counts. meant reports that the first one excludes what the
// query excludes.
func rank(segs []*Segment, q Query, text string) (found Results, meant bool) {
	s := newSearch(segs, q, text)
	if s == nil {
		return Results{Weak: true, Foreign: language.Foreign(text, false)}, false
	}
	defer s.release()
	exact := s.names()
	s.wordByWord()
	if !exact {
		s.nearNames()
	}
	s.correctWords()
	s.computeIDF()
	s.compareMeanings()
	return s.results()
}

// search is the state of one query.
type search struct {
	q         Query
	kind      int
	fields    []string // identifiers: the whole query first, then the fields of it that look like names
	text      string   // the part of the query that counts
	words     []queryWord
	asks      string // what the first word asks for: read or write, "" for neither
	variants  variants
	about     []about
	whole     int // variant that is the whole query as one word
	sources   []*source
	parts     []*part // parts of all sources, by plugin
	docs      int     // number of documents of the kind, in all parts
	spellings spellings
	*scratch
}

type queryWord struct {
	text, stem string
	idf        float64 // in all segments
	known      bool    // some segment contains the word itself
	plugin     bool    // a plugin has this name
	about      bool    // the own documentation of a plugin contains it
	light      float64 // factor of its weight, less than 1 for light words
}

// How a variant relates to the word of the query.
const (
	asWord = iota
	asJoined
	asSynonym
	asPrefix
	asTypo
	asNamePart
	asPlugin
	asAbout // the plugin's own documentation contains it
)

// asKnown are the relations of a word that is known as it is.
var asKnown = []int{asWord, asJoined, asPlugin}

var matchKinds = [...]string{"word", "joined", "synonym", "prefix", "typo", "name part", "plugin", "about the plugin"}

// variant is a word to look up for a word of the query, or for two joined words.
type variant struct {
	first, last int // the words of the query that it stands for
	how         int
	text, stem  string
	exact       bool // only this word, not others of its stem
	weight      float64
	scope       string    // plugin it is limited to
	docs        int       // number of documents that contain it, in all segments
	mask        byte      // fields that contain it, in all segments
	counts      []int32   // by part: number of documents that contain it; nil if there are none
	maxIDF      []float64 // by part: maximum idf of a synonym; 0 if not yet computed
}

// about is a word of the query in the own documentation of a plugin.
type about struct {
	part     *part
	word     int
	strength float32
}

// source is the search within one segment, with the evidence for each of its documents.
type source struct {
	seg *Segment
	*scratch
	lo, hi     int                    // documents of the kind
	parts      []*part                // by member of the segment; nil for one that is not searched
	active     []*part                // searched parts, by plugin
	rows       [][]cell               // by word, then document - lo; nil while nothing matched
	matched    []int                  // words that have a row
	touched    []bool                 // by document - lo: whether a row has evidence for it
	nameCache  map[string][]nameMatch // by text: the documents whose names contain it
	evidence   []nameEvidence
	best       []int32   // by document - lo: 1 + index in evidence of its strongest; nil if there is none
	similarity []float64 // by document - lo: similarity of its meaning to the query's; nil if the query has none
}

// part is the search within one plugin.
type part struct {
	*member
	src     *source
	number  int // among all parts
	place   int // as Query.Place
	lo, hi  int
	idf     []float64 // by word
	ideal   float64
	nearest float64 // maximum of similarity
	filter  filter
}

// cell is the best evidence that a document has for a word.
type cell struct {
	strength float32 // 0..1, 0 = none
	variant  uint16
	mask     byte
}

func newSearch(segs []*Segment, q Query, text string) *search {
	s := &search{q: q, text: text, kind: kindOf(q.Kind), fields: nameFields(text), spellings: spellings{}}
	if s.kind < 0 {
		return nil
	}
	s.readWords(language.WithoutAddresses(text))
	if len(s.words) == 0 && len(s.fields) == 0 {
		return nil
	}
	s.scratch = scratches.Get().(*scratch)
	for _, seg := range segs {
		s.addSource(seg)
	}
	// Equal scores are sorted by name, so the order of the segments must not matter.
	slices.SortStableFunc(s.parts, func(a, b *part) int { return cmp.Compare(a.plugin, b.plugin) })
	for i, p := range s.parts {
		if p.number = i; q.Place != nil {
			p.place = q.Place(p.plugin)
		}
	}
	return s
}

// addSource adds the plugins of a segment that have documents of the kind and can pass the filters.
func (s *search) addSource(seg *Segment) {
	src := &source{seg: seg, scratch: s.scratch, parts: make([]*part, len(seg.members))}
	src.lo, src.hi = seg.bounds(s.kind)
	backing := make([]part, len(seg.members))
	for i := range seg.members {
		p := &backing[i]
		p.member, p.src = &seg.members[i], src
		p.lo = p.first[s.kind]
		p.hi = p.lo + p.docs[s.kind]
		if p.excluded || p.lo == p.hi {
			continue
		}
		var some bool
		if p.filter, some = newFilter(p.member, s.q); !some {
			continue
		}
		s.docs += p.hi - p.lo
		src.parts[i] = p
		src.active = append(src.active, p)
	}
	if len(src.active) > 0 {
		s.sources = append(s.sources, src)
		s.parts = append(s.parts, src.active...)
	}
}

// partOf returns the part that contains a document, nil if it is not searched.
func (src *source) partOf(doc int) *part { return src.parts[src.seg.owner[doc]] }

// readWords adds the words of the query, each stem once, and their variants.
func (s *search) readWords(text string) {
	var all []string
	for _, c := range chunks(text, maxWords) {
		all = append(all, c.words()...)
	}
	if len(all) > 0 {
		s.asks = language.AsksFor(all[0])
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
			s.variants.add(variant{first: i, last: i + 1, how: asJoined, text: j, weight: 0.95})
		}
	}
	if n := len(s.words); n > 0 && len(s.fields) > 0 && s.fields[0] != s.words[0].text && len(s.fields[0]) <= maxTerm {
		s.whole = len(s.variants)
		s.variants.add(variant{last: n - 1, how: asJoined, text: s.fields[0], weight: 0.95})
	}
}

func newWord(text string) queryWord {
	st := stem(text)
	return queryWord{text: text, stem: st, light: language.Light(st)}
}

// addWord adds the word itself and its synonyms, except those that are words of the query themselves: a word of a
// document matches only one word of the query.
func (s *search) addWord(i int) {
	w := s.words[i]
	s.variants.add(variant{first: i, last: i, how: asWord, text: w.text, stem: w.stem, weight: 1})
	for _, syn := range synonyms(w.stem) {
		if slices.ContainsFunc(s.words, func(w queryWord) bool { return w.stem == syn.stem }) {
			continue
		}
		s.variants.add(variant{first: i, last: i, how: asSynonym, text: syn.stem, stem: syn.stem, weight: syn.weight,
			scope: syn.scope})
	}
}

// variants are the words that are looked up for a query.
type variants []variant

// add adds a variant unless there are too many.
func (vs *variants) add(v variant) (added bool) {
	if len(*vs) >= maxVariants {
		return false
	}
	if v.stem == "" {
		v.stem = stem(v.text)
	}
	*vs = append(*vs, v)
	return true
}

// matched reports whether documents contain a variant of a word that relates to it in one of the ways of how.
func (vs variants) matched(word int, how ...int) bool {
	return slices.ContainsFunc(vs, func(v variant) bool {
		return v.first <= word && word <= v.last && v.docs > 0 && slices.Contains(how, v.how)
	})
}

// likelyTypo reports whether a known word is so rare, and only in descriptions, that it may be a typo there.
func (vs variants) likelyTypo(word int) bool {
	docs, mask := 0, byte(0)
	for _, v := range vs {
		if v.first <= word && word <= v.last && slices.Contains(asKnown, v.how) {
			docs += v.docs
			mask |= v.mask
		}
	}
	return docs <= 2 && mask&^(1<<inText) == 0
}

// counting returns the variants that count as a word: the word itself if it is known.
func (vs variants) counting(word int) (out []int) {
	for _, want := range [][]int{{asWord, asJoined}, {asTypo, asPrefix, asNamePart}, {asSynonym}} {
		for i, v := range vs {
			if v.first <= word && word <= v.last && v.docs > 0 && slices.Contains(want, v.how) {
				out = append(out, i)
			}
		}
		if len(out) > 0 {
			return out
		}
	}
	return nil
}

// wordByWord looks up every variant in every segment.
func (s *search) wordByWord() {
	for _, src := range s.sources {
		src.rows = make([][]cell, len(s.words))
		src.touched = s.flags.take(src.hi - src.lo)
	}
	for i := range s.variants {
		s.apply(i)
	}
	for i := range s.words {
		s.namePart(i)
	}
	s.applyAbout()
	for i := range s.words {
		s.words[i].known = s.words[i].about || s.variants.matched(i, asKnown...)
	}
}

// applyAbout adds weak evidence for each tool of a plugin if the plugin's own documentation contains a word.
func (s *search) applyAbout() {
	const weight = 0.3 // share of the word that such evidence covers
	for word := range s.words {
		i := len(s.variants)
		for _, a := range s.about {
			if a.word != word {
				continue
			}
			if w := &s.words[word]; len(s.variants) == i && !s.variants.add(variant{first: word, last: word, how: asAbout,
				text: w.text, stem: w.stem, weight: weight}) {
				return
			}
			for doc := a.part.lo; doc < a.part.hi; doc++ {
				a.part.src.put(word, doc, cell{a.strength, uint16(i), 0})
			}
		}
	}
}

// apply looks variant i up and adds its matches to the rows.
func (s *search) apply(i int) {
	for _, src := range s.sources {
		s.applyTo(src, i)
	}
}

func (s *search) applyTo(src *source, i int) {
	v := &s.variants[i]
	if v.how == asWord {
		for _, p := range src.active {
			if p.ident == v.text {
				s.applyPlugin(p, i)
			}
		}
	}
	if v.scope != "" && !slices.ContainsFunc(src.active, v.appliesTo) {
		return
	}
	src.eachForm(v, func(ix indexed, weight float64) {
		if v.counts == nil {
			v.counts = s.counts.take(len(s.parts))
		}
		eachPosting(ix.postings, src.lo, src.hi, func(doc int, w, mask byte) {
			p := src.partOf(doc)
			if p == nil || !v.appliesTo(p) {
				return
			}
			if mask == 0 {
				s.addAbout(p, v, weight*float64(w)/255)
				return
			}
			v.counts[p.number]++
			v.mask |= mask
			strength := float32(weight * float64(w) / 255)
			for word := v.first; word <= v.last; word++ {
				src.put(word, doc, cell{strength, uint16(i), mask})
			}
		})
	})
	if v.counts == nil {
		return
	}
	for _, p := range src.active {
		n := &v.counts[p.number]
		*n = min(*n, int32(p.hi-p.lo))
		v.docs += int(*n)
	}
}

// addAbout notes that the own documentation of a plugin contains a variant.
func (s *search) addAbout(p *part, v *variant, strength float64) {
	if v.how == asWord || v.how == asSynonym {
		s.about = append(s.about, about{p, v.first, float32(strength)})
		if v.how == asWord {
			s.words[v.first].about = true
		}
	}
}

// eachWord calls f for the words of the segment with a stem.
func (src *source) eachWord(stem string, f func(indexed)) {
	if r := src.seg.find(stem); len(r.b) > 0 {
		r.group(&src.word, f)
	}
}

// eachForm calls f for the words of the segment that a variant matches, with the weight of each.
func (src *source) eachForm(v *variant, f func(ix indexed, weight float64)) {
	src.eachWord(v.stem, func(ix indexed) {
		if weight := v.weight * form(v, ix.text); weight > 0 {
			f(ix, weight)
		}
	})
}

// appliesTo reports whether a variant applies to a plugin.
func (v *variant) appliesTo(p *part) bool { return v.scope == "" || v.scope == p.plugin }

// in returns the number of documents of a part that contain the variant.
func (v *variant) in(p *part) int {
	if v.counts == nil {
		return 0
	}
	return int(v.counts[p.number])
}

// applyPlugin adds weak evidence for each document of a plugin if its name is in the query.
func (s *search) applyPlugin(p *part, i int) {
	v := &s.variants[i]
	s.words[v.first].plugin = true
	for doc := p.lo; doc < p.hi; doc++ {
		p.src.put(v.first, doc, cell{0.3, uint16(i), 0})
	}
	v.docs++
}

// put adds the evidence that a document has for a word. The strongest counts.
func (src *source) put(word, doc int, c cell) {
	if src.rows[word] == nil {
		src.rows[word] = src.cells.take(src.hi - src.lo)
	}
	src.touched[doc-src.lo] = true
	if at := &src.rows[word][doc-src.lo]; c.strength > at.strength {
		*at = c
	}
}

// form returns the weight of a word of the index for a variant of the same stem: 1 if they are equal, less if the words
// differ much although their stems are the same (Porter2 stems access and accessibility alike).
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

// namePart finds a word inside the parts of names, such as screen in captureScreenshot.
func (s *search) namePart(word int) {
	text := s.words[word].text
	if len(text) < 3 {
		return
	}
	i := len(s.variants)
	if !s.variants.add(variant{first: word, last: word, how: asNamePart, text: text, stem: text, weight: 1}) {
		return
	}
	v := &s.variants[i]
	v.counts = s.counts.take(len(s.parts))
	for _, src := range s.sources {
		for _, h := range src.nameMatches(text) {
			if row := src.rows[word]; row != nil && row[h.doc-src.lo].mask&(1<<inName|1<<inGroup) != 0 {
				continue
			}
			c := cell{0.28, uint16(i), 1 << inName}
			if startsNamePart(src.seg.name(h.doc), h.at) {
				c.strength = 0.52
			} else if len(text) < 5 {
				continue
			}
			if h.at < h.own {
				c.mask = 1 << inGroup
				c.strength /= 2
			}
			v.counts[src.partOf(h.doc).number]++
			v.docs++
			src.put(word, h.doc, c)
		}
	}
}

// computeIDF computes the weight of each word: high if few documents contain it. The counts of a small segment say
// little, so they are mixed with those of all segments, as if the segment had borrowed prior documents from them.
// Borrowing many keeps a word that is frequent in a plugin, and says what the plugin is for, from counting less there
// than in a plugin that mentions it in passing.
func (s *search) computeIDF() {
	known, sum := 0, 0.0
	counts := make([][]int, len(s.words)) // by word: the variants that count for it
	docsWith := make([]int, len(s.words)) // by word: the documents with such a variant
	for w := range s.words {
		counts[w] = s.variants.counting(w)
		for _, v := range counts[w] {
			docsWith[w] += s.variants[v].docs
		}
		if docsWith[w] > 0 {
			s.words[w].idf = idf(0, 0, s.share(docsWith[w])) * s.words[w].light
			known++
			sum += s.words[w].idf
		}
	}
	for w := range s.words {
		if s.words[w].idf == 0 {
			// No document contains it: it lowers all scores equally, by less than a word that can be found.
			s.words[w].idf = 0.6 * max(1, sum/float64(max(1, known)))
		}
	}
	floats := s.floats.take(len(s.words) * len(s.parts))
	for w := range s.words {
		share := s.share(docsWith[w])
		var last struct {
			docs, of int
			idf      float64
		}
		for i, p := range s.parts {
			p.idf = floats[i*len(s.words):][:len(s.words)]
			docs := 0
			for _, v := range counts[w] {
				docs += s.variants[v].in(p)
			}
			switch of := p.hi - p.lo; {
			case docsWith[w] == 0:
				p.idf[w] = s.words[w].idf
			case s.words[w].plugin:
				p.idf[w] = 2.5
			default:
				if docs = min(docs, of); of != last.of || docs != last.docs {
					last.docs, last.of, last.idf = docs, of, idf(docs, of, share)*s.words[w].light
				}
				p.idf[w] = last.idf // many small plugins have equal counts
			}
			p.ideal += p.idf[w]
		}
	}
}

// idf returns the weight of a word that docs of a part's documents contain, and a share of all documents.
func idf(docs, of int, all float64) float64 {
	const prior = 1000
	share := (float64(docs) + prior*all) / (float64(of) + prior)
	return min(6, max(0.35, -math.Log(share)))
}

// share returns the share of docs in all documents.
func (s *search) share(docs int) float64 { return min(1, (float64(docs)+0.5)/(float64(s.docs)+1)) }

// compareMeanings computes the similarity of each document's meaning to the query's.
func (s *search) compareMeanings() {
	if s.kind != 0 || len(s.words) == 1 && s.words[0].known {
		return // events and types have no meaning; one known word needs none
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
	var like cosineTable
	like.init(query)
	for _, src := range s.sources {
		src.similarity = s.floats.take(src.hi - src.lo)
		for _, p := range src.active {
			for doc := p.lo; doc < p.hi; doc++ {
				near := known / of * like.cosine(src.seg.meanings[vectorSize/2*doc:])
				src.similarity[doc-src.lo] = near
				p.nearest = max(p.nearest, near)
			}
		}
	}
}
