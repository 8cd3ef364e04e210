package index

import (
	"bytes"
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
	seg    *Segment
	lo, hi int
	names  []byte   // of the documents from lo to hi
	rows   [][]cell // by word, then document - lo; nil while nothing matched
	docs   []int32  // by variant: how many hold it
	named  []named
	idf    []float64 // by word
	most   []float64 // by variant: the most that a synonym may count, 0 for others
	ideal  float64
	allow  *allowed
	spell  []spelling // words of this index that matched, for comparing phrases
}

// cell is the best evidence that a document has for a word.
type cell struct {
	strength float32 // 0..1, 0 = none
	variant  uint16
	mask     byte
}

// named is evidence that the query is the name of a document, or a part of it.
type named struct {
	doc   int
	score float64
	how   int
	typo  string // the query's spelling, when it is not the name's
}

// how a query stands to a name.
const (
	isName = iota
	nearName
	inPartOfName
)

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
	for _, c := range chunks(text, maxWords) {
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
	if n := len(s.words); n > 1 && len(s.fields) > 0 && len(s.fields[0]) <= maxTerm {
		s.whole = len(s.variants)
		s.add(variant{last: n - 1, how: asJoined, text: s.fields[0], weight: 0.95})
	}
}

func newWord(text string) queryWord {
	st := stem(text)
	return queryWord{text: text, stem: st, light: light(st)}
}

// addWord adds the word itself and its synonyms.
func (s *search) addWord(i int) {
	w := s.words[i]
	s.add(variant{first: i, last: i, how: asWord, text: w.text, stem: w.stem, weight: 1})
	for _, syn := range thesaurus()[w.stem] {
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

// readFields finds what could be the name of a document.
func (s *search) readFields(text string) {
	const longest = 80
	fields := strings.Fields(text)
	if id := identifier(text); id != "" && len(id) <= longest {
		s.fields = append(s.fields, id)
	} else if id == "" {
		return
	} else {
		s.fields = append(s.fields, "")
	}
	if len(fields) < 2 {
		return
	}
	for _, f := range fields[:min(len(fields), maxWords)] {
		f = strings.Trim(f, "\"'`.,:;!?()[]{}<>")
		if id := identifier(f); looksLikeName(f) && len(id) >= 4 && len(id) <= longest && len(s.fields) < 8 {
			s.fields = append(s.fields, id)
		}
	}
}

func looksLikeName(field string) bool {
	for i := 1; i < len(field)-1; i++ {
		switch c := field[i]; {
		case c == '.' || c == '_' || c == '-' || c == ':':
			return true
		case c >= 'A' && c <= 'Z' && field[i-1] >= 'a' && field[i-1] <= 'z':
			return true
		}
	}
	return false
}

// names looks for names that the query is, or holds, or is a part of; found means that one is met exactly.
func (s *search) names() (found bool) {
	for _, p := range s.parts {
		for i, id := range s.fields {
			if id != "" && p.exactName(id, i > 0) {
				found = true
			}
		}
		if len(s.fields) > 0 && len(s.fields[0]) >= 3 {
			p.partOfName(s.fields[0])
		}
	}
	return found
}

// nearNames looks for names that the query, or a field of it, nearly is. A query of known words is only taken for a
// misspelt name when it is long, and with doubt when it is not written like one.
func (s *search) nearNames() {
	doubtful := s.doubtful()
	for i, id := range s.fields {
		doubt := 0.0
		switch {
		case i > 0:
			doubt = 0.08
		case doubtful || looksLikeName(s.q.Text) && len(strings.Fields(s.q.Text)) == 1:
		case len(s.words) <= 4:
			doubt = 0.15
		default:
			continue
		}
		if len(id) < 4 || !doubtful && len(id) < 10 {
			continue
		}
		for _, p := range s.parts {
			p.nearName(id, doubt)
		}
	}
}

// doubtful says whether some word of the query may be misspelt.
func (s *search) doubtful() bool {
	for i, w := range s.words {
		if !w.known || s.suspicious(i) {
			return true
		}
	}
	return len(s.words) == 0
}

// lines calls f with the identifier of each document of the part and where in it the document's own name begins.
func (p *part) lines(f func(doc int, line []byte, own int)) {
	names := p.names
	for doc := p.lo; doc < p.hi; doc++ {
		end := bytes.IndexByte(names, '\n')
		line := names[:end]
		f(doc, line, min(len(line), int(p.seg.owns[doc])))
		names = names[end+1:]
	}
}

// hits calls f for each document of the part whose identifier holds text, with the first place in it.
func (p *part) hits(text []byte, f func(doc int, line []byte, own, at int)) {
	names, doc := p.names, p.lo
	for {
		i := bytes.Index(names, text)
		if i < 0 {
			return
		}
		doc += bytes.Count(names[:i], newline)
		start := bytes.LastIndexByte(names[:i], '\n') + 1
		end := i + bytes.IndexByte(names[i:], '\n')
		line := names[start:end]
		f(doc, line, min(len(line), int(p.seg.owns[doc])), i-start)
		names = names[end+1:]
		doc++
	}
}

var newline = []byte{'\n'}

// exactName looks for documents that are called id: in full, with the plugin before it, or by their own name.
func (p *part) exactName(id string, within bool) bool {
	found := false
	full, bare := 1.0, 0.985
	if within {
		full, bare = 0.975, 0.97
	}
	local := strings.TrimPrefix(id, p.seg.ident)
	p.hits([]byte(id), func(doc int, line []byte, own, at int) {
		if len(line) == len(id) {
			p.named = append(p.named, named{doc: doc, score: full})
			found = true
		} else if at+len(id) == len(line) && string(line[own:]) == id {
			p.named = append(p.named, named{doc: doc, score: bare})
			found = true
		}
	})
	if local != id && local != "" {
		p.hits([]byte(local), func(doc int, line []byte, own, at int) {
			if len(line) == len(local) || string(line[own:]) == local {
				p.named = append(p.named, named{doc: doc, score: full})
				found = true
			}
		})
	}
	return found
}

// partOfName looks for documents whose name holds id.
func (p *part) partOfName(id string) {
	try := func(id string) {
		p.hits([]byte(id), func(doc int, line []byte, own, at int) {
			if at+len(id) <= own || len(line) == len(id) {
				return // in the group's name only
			}
			name := p.seg.record(doc).name
			starts := startsPart(name, at)
			ends := at+len(id) == len(line) || startsPart(name, at+len(id))
			length := len(line)
			if at >= own {
				length -= own
			}
			score := 0.0
			switch {
			case starts && ends:
				score = 0.8
			case starts && at == own && len(id) >= 6:
				score = 0.82
			case starts && len(id) >= 5:
				score = 0.74
			case starts:
				score = 0.6
			case len(id) >= 5:
				score = 0.3
			default:
				return
			}
			if starts && at != 0 && at != own {
				score -= 0.08
			}
			score += 0.15 * min(1, float64(len(id))/float64(length))
			p.named = append(p.named, named{doc: doc, score: score, how: inPartOfName})
		})
	}
	try(id)
	if local := strings.TrimPrefix(id, p.seg.ident); local != id && len(local) >= 3 {
		try(local)
	}
}

// startsPart says whether the letter of name that stands at place at of its identifier begins a part of the name.
func startsPart(name []byte, at int) bool {
	n := 0
	for i, c := range name {
		if !asciiLetter(c) && c < 0x80 {
			continue
		}
		if n == at {
			return i == 0 || !asciiLetter(name[i-1]) || boundary(name, i)
		}
		n++
	}
	return false
}

// nearName looks for documents whose name is id with up to three letters wrong.
func (p *part) nearName(id string, doubt float64) {
	most := 1
	switch {
	case len(id) >= 16:
		most = 3
	case len(id) >= 7:
		most = 2
	}
	try := func(id string) {
		pattern := []byte(id)
		set := letters(pattern)
		p.lines(func(doc int, line []byte, own int) {
			best := most + 1
			for _, name := range [2][]byte{line, line[own:]} {
				if d := len(name) - len(pattern); d > most || d < -most || len(name) < 4 {
					continue
				}
				if near(set, letters(name), most) {
					best = min(best, distance(pattern, name, most))
				}
				if own == 0 {
					break
				}
			}
			if best == 0 || best > most {
				return
			}
			score := 0.96 - 0.02*float64(best) - 0.3*float64(best)/float64(len(pattern)) - doubt
			p.named = append(p.named, named{doc: doc, score: score, how: nearName, typo: id})
		})
	}
	try(id)
	if local := strings.TrimPrefix(id, p.seg.ident); local != id && len(local) >= 4 {
		try(local)
	}
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

// mend looks for what unknown words could have meant.
func (s *search) mend() {
	var typos []*typo
	for i := range s.words {
		w := &s.words[i]
		if len(typos) == maxUnknown || len(w.text) < 3 {
			continue
		}
		if !w.known {
			if !s.matched(i, asSynonym) {
				typos = append(typos, newTypo(i, w.text, 1))
			}
		} else if len(w.text) >= 6 && s.suspicious(i) {
			// Texts bring misspellings into the index: a rare word of descriptions only may be one.
			t := newTypo(i, w.text, 0.5)
			t.most = 1
			typos = append(typos, t)
		}
	}
	if len(typos) == 0 {
		return
	}
	for _, p := range s.parts {
		scan(p.seg, typos)
	}
	for _, t := range typos {
		s.mendOne(t)
	}
}

func (s *search) matched(word, how int) bool {
	return slices.ContainsFunc(s.variants, func(v variant) bool { return v.first == word && v.how == how && v.docs > 0 })
}

func (s *search) suspicious(word int) bool {
	docs, mask := 0, byte(0)
	for _, v := range s.variants {
		if v.first <= word && word <= v.last && (v.how == asWord || v.how == asJoined || v.how == asPlugin) {
			docs += v.docs
			mask |= v.mask
		}
	}
	return docs <= 2 && mask&^(1<<inText) == 0
}

// typo is an unknown word and the words of the index that it comes near.
type typo struct {
	word   int
	text   []byte
	set    uint32
	most   int
	factor float64
	found  map[string]guess
}

type guess struct {
	text   string
	weight float64
	how    int
	strong bool
}

func newTypo(word int, text string, factor float64) *typo {
	t := &typo{word: word, text: []byte(text), factor: factor, found: map[string]guess{}}
	t.set = letters(t.text)
	switch {
	case len(text) >= 6:
		t.most = 2
	case len(text) >= 4:
		t.most = 1
	}
	return t
}

// scan goes through all words of a segment once for all typos. It reads the layout by hand, because it is the one loop
// of a search that sees every word of every plugin.
func scan(seg *Segment, typos []*typo) {
	shortest := maxTerm
	for _, t := range typos {
		shortest = min(shortest, len(t.text)-t.most)
	}
	var text [512]byte
	b := seg.terms
	for len(b) > 0 {
		n := int(b[0])
		if len(b) <= 1+n {
			return
		}
		st := b[1 : 1+n]
		r := reader{b: b[1+n:]}
		words := r.int()
		for range words {
			if len(r.b) < 2 {
				return
			}
			keep, rest := int(r.b[0]), int(r.b[1])
			if keep > n || len(r.b) < 2+rest {
				return
			}
			tail := r.b[2 : 2+rest]
			r.b = r.b[2+rest:]
			if r.take(r.int()); r.bad {
				return
			}
			if keep+rest >= shortest {
				copy(text[:], st[:keep])
				copy(text[keep:], tail)
				compare(text[:keep+rest], typos)
			}
		}
		b = r.b
	}
}

// compare notes which typos a word of the index may stand behind.
func compare(word []byte, typos []*typo) {
	set := uint32(0)
	for _, t := range typos {
		extra := len(word) - len(t.text)
		if extra < -t.most {
			continue
		}
		if extra > t.most {
			if t.factor == 1 && word[0] == t.text[0] && bytes.HasPrefix(word, t.text) {
				t.prefix(word)
			}
			continue
		}
		if set == 0 {
			set = letters(word)
		}
		if near(t.set, set, t.most) {
			if d := distance(t.text, word, t.most); d > 0 && d <= t.most {
				t.near(word, d)
				continue
			}
		}
		if extra > 0 && t.factor == 1 && bytes.HasPrefix(word, t.text) {
			t.prefix(word)
		}
	}
}

func (t *typo) near(text []byte, d int) {
	if _, ok := t.found[string(text)]; ok {
		return
	}
	n := float64(len(t.text))
	g := guess{text: string(text), how: asTypo, weight: 0.92 - 0.14*float64(d) - 0.5*float64(d)/n, strong: d == 1 || n >= 9}
	if text[0] != t.text[0] {
		g.weight *= 0.85
	}
	if digits(text) != digits(t.text) {
		g.weight *= 0.6 // sha1 is no slip of sha2
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
	if _, ok := t.found[string(text)]; ok {
		return
	}
	ratio := float64(len(t.text)) / float64(len(text))
	t.found[string(text)] = guess{text: string(text), how: asPrefix, weight: 0.45 + 0.45*ratio, strong: true}
}

// best are the strongest n guesses.
func (t *typo) best(strong bool, n int) []guess {
	var out []guess
	for _, g := range t.found {
		if g.strong == strong {
			out = append(out, g)
		}
	}
	slices.SortFunc(out, func(a, b guess) int { return cmp.Or(cmp.Compare(b.weight, a.weight), cmp.Compare(a.text, b.text)) })
	return out[:min(n, len(out))]
}

func (s *search) mendOne(t *typo) {
	if guesses := t.best(true, 6); len(guesses) > 0 {
		s.guess(t, guesses)
		return
	}
	if t.factor < 1 || s.nearThesaurus(t) || s.split(t) {
		return
	}
	s.guess(t, t.best(false, 4))
}

func (s *search) guess(t *typo, guesses []guess) {
	for _, g := range guesses {
		s.late(variant{first: t.word, last: t.word, how: g.how, text: g.text, exact: g.how == asPrefix, weight: g.weight})
	}
}

// late adds a variant and looks it up.
func (s *search) late(v variant) (docs int) {
	i := len(s.variants)
	s.add(v)
	if len(s.variants) == i {
		return 0
	}
	for _, p := range s.parts {
		p.docs = append(p.docs, 0)
		s.apply(p, i)
	}
	return s.variants[i].docs
}

// nearThesaurus takes a word with one letter wrong for a word of the thesaurus that has synonyms here.
func (s *search) nearThesaurus(t *typo) bool {
	if len(t.text) < 5 {
		return false
	}
	st := []byte(stem(string(t.text)))
	set, best := letters(st), ""
	for key := range thesaurus() {
		if d := len(key) - len(st); d > 1 || d < -1 || !near(set, letters([]byte(key)), 1) || distance(st, []byte(key), 1) > 1 {
			continue
		}
		if best == "" || key < best {
			best = key
		}
	}
	docs := 0
	for _, syn := range thesaurus()[best] {
		docs += s.late(variant{first: t.word, last: t.word, how: asSynonym, text: syn.stem, stem: syn.stem, weight: 0.8 * syn.weight, scope: syn.scope})
	}
	return docs > 0
}

// split takes a word for two known ones run together; the second becomes a word of its own.
func (s *search) split(t *typo) bool {
	const shortest = 3
	text := string(t.text)
	best, score := 0, 0
	for i := 2; i <= len(text)-2; i++ {
		digitsMeet := (text[i] >= '0' && text[i] <= '9') != (text[i-1] >= '0' && text[i-1] <= '9')
		if !digitsMeet && (i < shortest || len(text)-i < shortest) {
			continue
		}
		if n := min(i, len(text)-i); n > score && s.anyHolds(text[:i]) && s.anyHolds(text[i:]) {
			best, score = i, n
		}
	}
	if best == 0 || len(s.words) == maxWords {
		return false
	}
	s.words[t.word] = newWord(text[:best])
	s.words = append(s.words, newWord(text[best:]))
	for _, p := range s.parts {
		p.rows = append(p.rows, nil)
		p.rows[t.word] = nil
	}
	for _, w := range []int{t.word, len(s.words) - 1} {
		from := len(s.variants)
		s.addWord(w)
		for i := from; i < len(s.variants); i++ {
			for _, p := range s.parts {
				p.docs = append(p.docs, 0)
				s.apply(p, i)
			}
		}
	}
	return true
}

func (s *search) anyHolds(word string) bool {
	st := stem(word)
	h := hash(st)
	return slices.ContainsFunc(s.parts, func(p *part) bool {
		r := p.seg.find(st, h)
		return len(r.b) > 0
	})
}

// weigh settles what each word is worth: much when few documents hold it. A small segment knows little about that, so
// its own count is mixed with everybody's, as if it had borrowed prior documents from all segments.
func (s *search) weigh() {
	const prior = 30
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

// allowed are the numbers of the strings that the filters let pass; a nil set lets all pass.
type allowed struct{ group, category, effect map[int]bool }

// allow is nil when nothing of a segment can pass.
func allow(seg *Segment, q Query) *allowed {
	a := &allowed{}
	ok := true
	numbers := func(want string) map[int]bool {
		if want == "" {
			return nil
		}
		set := map[int]bool{}
		r := reader{b: seg.strings}
		for i := range r.count() {
			if strings.EqualFold(string(r.str()), want) {
				set[i] = true
			}
		}
		ok = ok && len(set) > 0
		return set
	}
	group := q.Group
	if i := strings.IndexByte(group, '.'); i >= 0 && strings.EqualFold(group[:i], seg.plugin) {
		group = group[i+1:]
	}
	a.group, a.category, a.effect = numbers(group), numbers(q.Category), numbers(q.Effect)
	if !ok {
		return nil
	}
	return a
}

func (p *part) allows(doc int) bool {
	if p.allow == nil {
		return true
	}
	r := p.seg.record(doc)
	pass := func(set map[int]bool, n int) bool { return set == nil || set[n] }
	return pass(p.allow.group, r.group) && pass(p.allow.category, r.category) && pass(p.allow.effect, r.effect)
}
