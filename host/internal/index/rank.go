package index

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/parley-tools/parley/host/internal/index/edits"
	"github.com/parley-tools/parley/host/internal/index/language"
)

// fullStrength is the strength of a word in a name, which counts in full.
const fullStrength = 0.88

// wordShare is the maximum score of words by themselves. The rest is for names and phrases that match as a whole: if
// many documents contain the only word of the query, the shortest name comes first.
const wordShare = 0.86

// The weight of similar meanings.
const (
	meaningShare  = 0.5  // share of the missing score that an equal meaning adds
	minSimilarity = 0.35 // similarity that makes a document without any word of the query a candidate
	allCovered    = 0.9  // if a document covers this share of the query, such documents are not candidates
)

// Penalties for effects: of equally good matches, harmless tools come first.
const (
	lowerWrite       = 0.008
	lowerDestructive = 0.02
)

// lowerOther is the penalty for a tool that reads if the first word of the query asks for a change, and for a tool
// that changes something if that word asks to read.
const lowerOther = 0.07

// lowerUndoing is the penalty for a tool that undoes something, such as clearCookies, if the query does not ask for it.
const lowerUndoing = 0.05

// Among many tools, some match a part of any query by chance. So the part of the query that a tool does not match
// lowers its score, the more so the more tools its plugin has. If all is missing, the score is lowered by the share
// lowerLacking from manyTools tools on, and by minCrowd of that share up to fewTools, because plain words of small
// plugins match a part of many sentences.
const (
	lowerLacking = 0.4
	fewTools     = 40
	manyTools    = 640
	minCrowd     = 0.2
)

// A word that only task phrases contain counts as far as the query covers the best of them. Otherwise phrases about
// different things would match together: "read a log" and "open a page" are not about reading a page.
const (
	otherPhrase  = 0.6 // the maximum strength of a word of another phrase
	partOfPhrase = 0.7 // the same for a word of the best phrase if the query covers nothing else of it
	inPhraseOnly = 1<<inTask | 1<<inParam | 1<<inText
)

// candidate is a matching document with the score of its words and name.
type candidate struct {
	score float64
	cover float64 // share of the query's weight that the document matches in some form
	near  float64 // similarity of its meaning to the query's
	part  int32   // number of its part
	doc   int32
	name  int32 // 1 + index of the strongest evidence by name in source.evidence; 0 without any
}

// scored is a candidate after rescoring.
type scored struct {
	candidate
	part     *part
	doc      int
	name     *nameEvidence
	why      string
	sure     bool // the query is its name or one of its phrases
	excludes bool // the query is nearly a name or phrase that excludes something
	parts    []Part
}

// spellings are the words of the index that matched words of the query.
type spellings map[string][]spelling

// spelling is the weight of a word of the index that matched a word of the query.
type spelling struct {
	word   int
	weight float64
	scope  string // plugin it is limited to
}

// phrase is an alias or a task phrase of a document, compared with the query.
type phrase struct {
	text  string
	field int
	fit   float64 // 0..1
	cover float64 // share of its words that the query contains
	words wordSet // words of the query that it contains
}

// wordSet is a set of words of the query.
type wordSet [maxWords + maxUnknown + 1]bool

func (s *search) results() (out Results, meant bool) {
	found := s.gather()
	limit := s.q.Limit
	if limit == 0 {
		limit = defaultHits
	}
	if limit < 0 {
		limit = len(found)
	}
	order := func(a, b candidate) int {
		return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(a.part, b.part), cmp.Compare(a.doc, b.doc))
	}
	out.Total = len(found)
	found = topCandidates(found, max(candidates, 2*limit), order)
	s.readSpellings()
	list := make([]scored, len(found))
	for i := range list {
		c := &list[i]
		c.candidate, c.part, c.doc = found[i], s.parts[found[i].part], int(found[i].doc)
		if at := found[i].name; at > 0 {
			c.name = &c.part.src.evidence[at-1]
		}
		s.rescore(c)
	}
	slices.SortStableFunc(list, func(a, b scored) int { return order(a.candidate, b.candidate) })
	s.placeEquals(list)

	signals := s.signals(list)
	certain := certainty(signals)
	if len(list) > 0 && (list[0].sure || s.hasAll(&list[0])) {
		certain = max(certain, 0.5)
	}
	out.Weak = len(list) == 0 || certain < 0.5
	if out.Weak {
		out.Groups = s.nearestGroups(list)
	}
	for i := range list[:min(limit, len(list))] {
		c := &list[i]
		hit := c.part.src.seg.Doc(c.doc)
		hit.Score, hit.Why, hit.Confidence = c.score, c.why, confidence(list, i, certain)
		if s.q.Explain {
			hit.Parts = c.parts
		}
		out.Hits = append(out.Hits, hit)
	}
	if s.q.Explain {
		out.Signals = signals[:]
	}
	out.Foreign = language.Foreign(s.text, out.Weak && s.mostlyUnknown())
	return out, len(list) > 0 && list[0].excludes
}

// placeEquals puts hits that match equally well in the order of their plugins: the name of a plugin alone makes a small
// difference.
func (s *search) placeEquals(list []scored) {
	for first := 0; first < len(list); {
		end := first + 1
		for end < len(list) && round(list[first].score)-round(list[end].score) <= s.q.Near {
			end++
		}
		slices.SortStableFunc(list[first:end], func(a, b scored) int { return cmp.Compare(a.part.place, b.part.place) })
		first = end
	}
}

// gather scores every document and returns those that cover at least a third of what the best one covers.
func (s *search) gather() []candidate {
	list, best := s.list, 0.0
	for _, p := range s.parts {
		src := p.src
		if src.matched == nil {
			src.matched = make([]int, 0, len(src.rows))
			for w, row := range src.rows {
				if row != nil {
					src.matched = append(src.matched, w)
				}
			}
		}
		if len(src.matched) == 0 && src.best == nil && p.nearest < minSimilarity {
			continue
		}
		for doc := p.lo; doc < p.hi; doc++ {
			at, near := doc-src.lo, 0.0
			if src.similarity != nil {
				near = src.similarity[at]
			}
			name := int32(0)
			if src.best != nil {
				name = src.best[at]
			}
			if !src.touched[at] && name == 0 && near < minSimilarity || !p.allows(doc) {
				continue
			}
			c := candidate{part: int32(p.number), doc: int32(doc), name: name}
			for _, w := range src.matched {
				x := &src.rows[w][at]
				if x.strength == 0 {
					continue
				}
				idf := s.wordValue(p, w, *x)
				c.score += idf * min(1, float64(x.strength)/fullStrength)
				c.cover += idf * s.variants[x.variant].weight
			}
			if c.score == 0 && name == 0 && near < minSimilarity {
				continue
			}
			if p.ideal > 0 {
				c.score *= wordShare / p.ideal
				c.cover /= p.ideal
			}
			if c.name > 0 {
				c.score = max(c.score, src.evidence[c.name-1].score)
				c.cover = max(c.cover, 1)
			}
			if near > 0 {
				c.score += (1 - c.score) * meaningShare * near
			}
			if best = max(best, c.cover); c.cover >= best/3 || near >= minSimilarity {
				c.near = near
				list = append(list, c)
			}
		}
	}
	s.list = list
	return slices.DeleteFunc(list, func(c candidate) bool {
		return c.cover < best/3 && (best >= allCovered || c.near < minSimilarity)
	})
}

// wordValue returns the weight of a word in a document that matched it by c: a common synonym of a rare word counts as
// common.
func (s *search) wordValue(p *part, w int, c cell) float64 {
	v := &s.variants[c.variant]
	if v.how != asSynonym {
		return p.idf[w]
	}
	if v.maxIDF == nil {
		v.maxIDF = s.floats.take(len(s.parts))
	}
	maxIDF := &v.maxIDF[p.number]
	if *maxIDF == 0 {
		*maxIDF = idf(v.in(p), p.hi-p.lo, s.share(v.docs))
	}
	return min(p.idf[w], *maxIDF)
}

// topCandidates returns the first n of list, sorted by order.
func topCandidates(list []candidate, n int, order func(a, b candidate) int) []candidate {
	n = min(n, len(list))
	top := list[:n]
	slices.SortFunc(top, order)
	for _, c := range list[n:] {
		if order(c, top[n-1]) < 0 {
			at, _ := slices.BinarySearchFunc(top, c, order)
			copy(top[at+1:], top[at:])
			top[at] = c
		}
	}
	return top
}

// rescore computes the final score of a candidate and why it was found.
func (s *search) rescore(c *scored) {
	p, src := c.part, c.part.src
	r := src.seg.record(c.doc)
	ph := s.spellings.bestPhrase(p, r)
	score, bestWord, bestWorth := 0.0, -1, 0.0
	for w, row := range src.rows {
		if row == nil || row[c.doc-src.lo].strength == 0 {
			continue
		}
		x := row[c.doc-src.lo]
		if x.mask&inPhraseOnly == x.mask && x.mask&(1<<inTask) != 0 {
			limit := otherPhrase
			if ph.words[w] {
				limit = partOfPhrase + (1-partOfPhrase)*ph.cover
			}
			x.strength = min(x.strength, float32(limit))
		}
		worth := wordShare * s.wordValue(p, w, x) * min(1, float64(x.strength)/fullStrength) / p.ideal
		score += worth
		if worth > bestWorth {
			bestWord, bestWorth = w, worth
		}
		if s.q.Explain {
			c.parts = append(c.parts, s.partOf(w, x, worth))
		}
	}
	grow := func(how, match string, share float64) {
		if add := (1 - score) * share; add > 0 {
			score += add
			c.explain(s, Part{How: how, Match: match, Score: round(add)})
		}
	}
	cover, asked, _ := s.spellings.fits(p, lastName(r.name), true)
	grow("name covered", string(r.name), 0.45*cover*asked)
	grow("brief covered", string(r.brief), 0.6*s.coversBrief(p, r))
	share := 0.8 * ph.fit * ph.fit
	if c.sure = ph.fit > 0.99; c.sure {
		share = 0.95 // the query is the phrase: words of a name that it also has count less
	}
	grow("phrase", ph.text, share)
	c.why = s.reason(c, bestWord, cover, ph)
	if s.wholeParameter(c) {
		v := s.variants[s.whole].text
		grow("parameter", v, 0.5)
		c.why = "parameter " + v
	}
	c.excludes = ph.fit > 0.8 && negates(ph.text)
	if c.near > 0 {
		grow("meaning", "", meaningShare*c.near)
	}
	if score > 0.9 {
		over := 0.4 * (score - 0.9) // words alone never score as high as a name
		c.explain(s, Part{How: "less than a name", Score: -round(over)})
		score -= over
	}
	rely := 0.0 // how much the evidence by name or phrase reduces penalties
	if c.sure {
		rely = 0.8
	}
	if n := c.name; n != nil {
		why, shield := "name", 0.98
		switch {
		case n.how == matchNamePart:
			why = "name part"
			shield = 0.7 * min(1, float64(len(s.fields[0]))/10)
		case n.typo != "":
			why = "typo " + n.typo + "≈" + string(r.name)
		}
		rely = max(rely, shield)
		if n.score >= score {
			grow("identifier", string(r.name), (n.score-score)/max(1e-9, 1-score))
			c.why = why
		}
		c.sure = c.sure || n.how == matchName
		c.excludes = c.excludes || n.how == matchName && n.score > 0.98
	}
	effect := string(p.shared(r.effect()))
	for _, penalty := range []struct {
		applies  bool
		how      string
		by, rely float64
	}{
		{c.cover < 1, "lacks a part", lowerLacking * (1 - c.cover) * p.crowd(), rely},
		{r.flags&flagDeprecated != 0, "deprecated", 0.22, rely},
		{!c.sure && s.spellings.lackUndoing(r.name), "undoes", lowerUndoing, 0},
		{r.flags&flagExperimental != 0, "experimental", 0.04, rely},
		{effect == "write", "write", lowerWrite, rely},
		{effect == "destructive", "destructive", lowerDestructive, rely},
		{s.asks != "" && (s.asks == "read") != (effect == "read"), "not the effect", lowerOther, rely},
	} {
		if penalty.applies {
			by := penalty.by * (score * (1 - penalty.rely))
			c.explain(s, Part{How: penalty.how, Score: -round(by)})
			score -= by
		}
	}
	c.score = round(min(1, score))
}

// undoing are the verbs of tools that end or take back what others do.
var undoing = []string{"cancel", "clear", "delete", "disable", "end", "remove", "reset", "stop"}

// lackUndoing reports whether a tool undoes something, by the verb in its name, and the query has no word for that.
func (sp spellings) lackUndoing(name []byte) bool {
	verb, first := "", true
	eachToken(lastName(name), func(word []byte) {
		if first {
			verb, first = string(word), false
		}
	})
	return slices.Contains(undoing, verb) && len(sp[verb]) == 0
}

// crowd rates the number of documents of a part, from minCrowd for few to 1 for many.
func (p *part) crowd() float64 {
	return min(1, max(minCrowd, math.Log2(float64(p.hi-p.lo)/fewTools)/math.Log2(manyTools/fewTools)))
}

func (c *scored) explain(s *search, p Part) {
	if s.q.Explain {
		c.parts = append(c.parts, p)
	}
}

// partOf returns what a word of the query contributes to a score.
func (s *search) partOf(word int, x cell, worth float64) Part {
	v := s.variants[x.variant]
	return Part{Word: s.words[word].text, Match: v.text, How: matchKinds[v.how], Field: firstField(x.mask),
		Score: round(worth)}
}

// coversBrief returns how far the query says just the brief of a tool, from 0 to 1. It is small unless they are nearly
// equal, and 0 for a single word, which is a subject and does not say what to do with it.
func (s *search) coversBrief(p *part, r stored) float64 {
	if len(s.words) < 2 {
		return 0
	}
	ofBrief, asked, _ := s.spellings.fits(p, r.brief, false)
	return math.Pow(ofBrief*asked, 3)
}

// round keeps four digits: further digits differ between machines and must not affect the order.
func round(x float64) float64 { return math.Round(x*1e4) / 1e4 }

// readSpellings collects the words of the segments that matched, to compare phrases with them.
func (s *search) readSpellings() {
	for i := range s.variants {
		v := &s.variants[i]
		if v.docs == 0 || v.how == asNamePart {
			continue
		}
		for _, src := range s.sources {
			src.eachForm(v, func(ix indexed, weight float64) {
				for w := v.first; w <= v.last; w++ {
					s.spellings.add(string(ix.text), spelling{w, weight, v.scope})
				}
			})
		}
	}
}

// add adds a spelling unless it is known, because many segments contain the same words.
func (sp spellings) add(text string, s spelling) {
	if !slices.Contains(sp[text], s) {
		sp[text] = append(sp[text], s)
	}
}

// foreignFit is the best fit of a phrase that is not the author's. It is too low for the query to count as the name of
// the document.
const foreignFit = 0.85

// Limits on a document's phrases, which bound the cost of a search whatever a plugin contains.
const (
	maxPhrases = 100
	maxPhrase  = 250 // bytes
)

// fits compares the words of a text with the query. It returns the shares of the text and of the query that match, and
// the words of the query in the text.
func (sp spellings) fits(p *part, text []byte, everyWord bool) (cover, asked float64, words wordSet) {
	var met [len(words)]float64
	n, hit := 0, 0.0
	token := func(word []byte) {
		if !everyWord && stopWord(word) {
			return
		}
		n++
		best := 0.0
		for _, s := range sp[string(word)] {
			if s.scope == "" || s.scope == p.plugin {
				best = max(best, s.weight)
				met[s.word] = max(met[s.word], s.weight)
			}
		}
		hit += best
	}
	eachToken(text[:min(len(text), maxPhrase)], token)
	if n == 0 || p.ideal == 0 {
		return 0, 0, words
	}
	for w, idf := range p.idf {
		asked += met[w] * idf
		words[w] = met[w] > 0
	}
	return hit / float64(n), asked / p.ideal, words
}

// eachToken calls f for the words of chunks(text), which are valid during the call. It allocates nothing for plain
// ASCII without inner capitals.
func eachToken(text []byte, f func([]byte)) {
	for i, c := range text {
		if c >= 0x80 || c == '\'' || upper(c) && i > 0 && lower(text[i-1]) {
			for _, c := range chunks(string(text), maxWords) {
				for _, word := range c.words() {
					f([]byte(word))
				}
			}
			return
		}
	}
	var word [maxTerm]byte
	n := 0
	flush := func() {
		if n > 0 && n <= maxTerm {
			f(word[:n])
		}
		n = 0
	}
	for i, c := range text {
		switch {
		case !asciiLetter(c):
			flush()
			continue
		case upper(c) && n > 0 && boundary(text, i): // PDFFile
			flush()
		}
		if upper(c) {
			c += 'a' - 'A'
		}
		if n < maxTerm {
			word[n] = c
		}
		n++
	}
	flush()
}

func asciiLetter(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
}

// bestPhrase returns the alias or task that matches the whole query best.
func (sp spellings) bestPhrase(p *part, r stored) phrase {
	var best phrase
	b := r.phrases
	for i := range min(r.aliases+r.tasks, maxPhrases) {
		text := b.str()
		if b.bad {
			break
		}
		field := inAlias
		if i >= r.aliases {
			field = inTask
		}
		text, foreign := bytes.CutPrefix(text, []byte(foreignMark))
		cover, asked, words := sp.fits(p, text, false)
		fit := asked * (0.35 + 0.65*cover)
		if foreign {
			fit *= foreignFit
		}
		if fit > best.fit {
			best = phrase{string(text), field, fit, cover, words}
		}
	}
	return best
}

// wholeParameter reports whether the whole query, of several words, is a parameter of the document or one of its
// values.
func (s *search) wholeParameter(c *scored) (found bool) {
	p := c.part
	if s.whole == 0 || s.variants[s.whole].in(p) == 0 {
		return false
	}
	v := &s.variants[s.whole]
	p.src.eachWord(v.stem, func(ix indexed) {
		if string(ix.text) == v.text {
			eachPosting(ix.postings, c.doc, c.doc+1, func(_ int, _, mask byte) { found = found || mask&(1<<inParam) != 0 })
		}
	})
	return found
}

// reason returns in a few words why a document was found.
func (s *search) reason(c *scored, word int, cover float64, ph phrase) string {
	if ph.fit >= 0.6 {
		return fmt.Sprintf("%s %q", fieldNames[ph.field], ph.text)
	}
	if word < 0 {
		if c.name == nil {
			return "meaning"
		}
		return "name"
	}
	src := c.part.src
	for w, row := range src.rows {
		if row != nil && row[c.doc-src.lo].strength > 0 && s.variants[row[c.doc-src.lo].variant].how == asTypo {
			word = w
			break
		}
	}
	x := src.rows[word][c.doc-src.lo]
	v := s.variants[x.variant]
	switch v.how {
	case asTypo:
		return "typo " + s.words[word].text + "≈" + v.text
	case asSynonym:
		return "synonym " + s.words[word].text + "≈" + v.text
	case asNamePart:
		return "name part"
	case asPlugin, asAbout:
		return "plugin"
	}
	switch field := firstField(x.mask); field {
	case "name":
		if cover < 0.99 {
			return "name part"
		}
		return field
	case "parameter":
		return "parameter " + v.text
	case "alias", "task":
		if ph.text != "" {
			return fmt.Sprintf("%s %q", fieldNames[ph.field], ph.text)
		}
		return field
	case "brief":
		return "description"
	default:
		return cmp.Or(field, "plugin")
	}
}

func firstField(mask byte) string {
	for f, name := range fieldNames {
		if mask&(1<<f) != 0 {
			return name
		}
	}
	return ""
}

// nearestGroups returns the groups of the best candidates. If there are none, it returns the groups with the names
// nearest to a word.
func (s *search) nearestGroups(list []scored) []string {
	scores := map[string]float64{}
	for _, c := range list[:min(20, len(list))] {
		r := c.part.src.seg.record(c.doc)
		scores[groupName(c.part.member, r.group())] += c.score
	}
	if len(list) == 0 {
		for _, p := range s.parts {
			s.groupsLike(p, scores)
		}
	}
	names := slices.SortedFunc(maps.Keys(scores), func(a, b string) int {
		return cmp.Or(cmp.Compare(round(scores[b]), round(scores[a])), cmp.Compare(a, b))
	})
	return names[:min(3, len(names))]
}

func groupName(m *member, number int) string {
	if group := m.shared(number); len(group) > 0 {
		return m.plugin + "." + string(group)
	}
	return m.plugin
}

// groupsLike scores the groups of a plugin by how near their names, or the plugin's, are to a word of the query.
func (s *search) groupsLike(p *part, scores map[string]float64) {
	used := map[int]bool{}
	for doc := p.lo; doc < p.hi; doc++ {
		r := p.src.seg.record(doc)
		used[r.group()] = true
	}
	list := reader{b: p.strings}
	for number := range list.count() {
		group := string(list.str())
		if !used[number] {
			continue
		}
		full := groupName(p.member, number)
		for _, name := range []string{p.plugin, group} {
			id := identifier(name)
			for _, w := range s.words {
				maxDist := min(4, len(w.text)/2)
				if d := edits.Distance([]byte(w.text), []byte(id), maxDist); d <= maxDist {
					scores[full] = max(scores[full], 1-float64(d)/float64(len(w.text)+1))
				}
			}
		}
	}
}
