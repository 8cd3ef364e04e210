package index

import (
	"bytes"
	"strings"

	"github.com/parley-tools/parley/host/internal/index/edits"
)

// nameEvidence is evidence that the query is the name of a document, or part of it.
type nameEvidence struct {
	doc   int
	score float64
	how   int
	typo  string // the query's spelling, if it differs from the name
}

// How a query relates to a name.
const (
	matchName = iota
	matchNearName
	matchNamePart
)

// nameFields returns the parts of a query that could be a name, as identifiers: the whole query first ("" if it is too
// long), then the fields of it that look like names. It returns nil for a query without letters and digits.
func nameFields(text string) []string {
	const longest = 80
	whole := identifier(text)
	if whole == "" {
		return nil
	}
	if len(whole) > longest {
		whole = ""
	}
	ids, fields := []string{whole}, strings.Fields(text)
	if len(fields) < 2 {
		return ids
	}
	for _, f := range fields[:min(len(fields), maxWords)] {
		f = strings.Trim(f, "\"'`.,:;!?()[]{}<>")
		if id := identifier(f); looksLikeName(f) && len(id) >= 4 && len(id) <= longest && len(ids) < 8 {
			ids = append(ids, id)
		}
	}
	return ids
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

// names looks for names that are the query, contain it or are contained in it. It reports whether a name matches
// exactly.
func (s *search) names() (found bool) {
	for _, src := range s.sources {
		for i, id := range s.fields {
			if id != "" && src.exactName(id, i > 0) {
				found = true
			}
		}
		if len(s.fields) > 0 && len(s.fields[0]) >= 3 {
			src.partOfName(s.fields[0])
		}
	}
	return found
}

// nearNames looks for names that the query, or a field of it, nearly equals. A query of known words counts as a
// misspelled name only if it is long, and for less if it does not look like a name.
func (s *search) nearNames() {
	mayBeMisspelled := s.mayBeMisspelled()
	for i, id := range s.fields {
		doubt := 0.0
		switch {
		case i > 0:
			doubt = 0.08
		case mayBeMisspelled || looksLikeName(s.text) && len(strings.Fields(s.text)) == 1:
		case len(s.words) <= 4:
			doubt = 0.15
		default:
			continue
		}
		if len(id) < 4 || !mayBeMisspelled && len(id) < 10 {
			continue
		}
		for _, src := range s.sources {
			src.nearName(id, i > 0, doubt)
		}
	}
}

// note adds evidence for a document. The strongest counts, and the first of equally strong ones.
func (src *source) note(n nameEvidence) {
	if src.best == nil {
		src.best = src.counts.take(src.hi - src.lo)
	}
	if best := &src.best[n.doc-src.lo]; *best == 0 || n.score > src.evidence[*best-1].score {
		src.evidence = append(src.evidence, n)
		*best = int32(len(src.evidence))
	}
}

// nameMatch is a document whose identifier contains a text.
type nameMatch struct {
	doc     int
	line    []byte // the identifier
	own, at int    // offsets in it of the document's own name and of the first occurrence of the text
}

// nameMatches finds a text in the identifiers of all documents. It caches the result, because a query of one word is
// looked up as a name, as part of a name and as a word.
func (src *source) nameMatches(text string) []nameMatch {
	list, ok := src.nameCache[text]
	if !ok {
		list = src.nameMatchesIn(src.lo, src.hi, text)
		if src.nameCache == nil {
			src.nameCache = map[string][]nameMatch{}
		}
		src.nameCache[text] = list
	}
	return list
}

func (src *source) nameMatchesIn(lo, hi int, text string) (list []nameMatch) {
	pattern, names := []byte(text), src.seg.idents()
	set := edits.Letters(pattern)
	for doc := lo; doc < hi; doc++ {
		n := &names[doc]
		if n.set&set != set {
			continue
		}
		line := src.seg.lines[n.at:][:n.size]
		if at := bytes.Index(line, pattern); at >= 0 && src.partOf(doc) != nil {
			list = append(list, nameMatch{doc, line, int(n.own), at})
		}
	}
	return list
}

// eachPrefixed calls f for each plugin that id begins with, with the rest of id.
func (src *source) eachPrefixed(id string, f func(p *part, local string)) {
	for _, p := range src.active {
		if local := strings.TrimPrefix(id, p.ident); local != id {
			f(p, local)
		}
	}
}

// lastName returns a name without its group.
func lastName(name []byte) []byte { return name[bytes.LastIndexByte(name, '.')+1:] }

// compound reports whether a name has several parts. A field of a longer query is an identifier only if it equals two
// parts or more: JavaScript, e-mail and YouTube are plain words, even where a tool is called javascript.
func compound(name []byte) bool {
	for i := 1; i < len(name); i++ {
		if !asciiLetter(name[i]) && name[i] < 0x80 || boundary(name, i) {
			return true
		}
	}
	return false
}

// exactName looks for documents whose name is id: in full, with the plugin's name before it, or only their own name.
// within means that id is a field of a longer query.
func (src *source) exactName(id string, within bool) (found bool) {
	full, bare := 1.0, 0.985
	if within {
		full, bare = 0.975, 0.97
	}
	for _, h := range src.nameMatches(id) {
		switch {
		case within && !compound(lastName(src.seg.name(h.doc))) && (h.own == 0 || len(h.line) != len(id)):
		case len(h.line) == len(id):
			src.note(nameEvidence{doc: h.doc, score: full})
			found = true
		case h.at+len(id) == len(h.line) && string(h.line[h.own:]) == id:
			src.note(nameEvidence{doc: h.doc, score: bare})
			found = true
		}
	}
	src.eachPrefixed(id, func(p *part, local string) {
		if local == "" {
			return
		}
		for _, h := range src.nameMatchesIn(p.lo, p.hi, local) {
			if len(h.line) == len(local) {
				src.note(nameEvidence{doc: h.doc, score: full})
				found = true
			} else if string(h.line[h.own:]) == local {
				src.note(nameEvidence{doc: h.doc, score: bare})
				found = true
			}
		}
	})
	return found
}

// partOfName looks for documents whose name contains id.
func (src *source) partOfName(id string) {
	for _, h := range src.nameMatches(id) {
		src.addPart(h, id)
	}
	src.eachPrefixed(id, func(p *part, local string) {
		if len(local) >= 3 {
			for _, h := range src.nameMatchesIn(p.lo, p.hi, local) {
				src.addPart(h, local)
			}
		}
	})
}

// addPart adds evidence that the name of a document contains id.
func (src *source) addPart(h nameMatch, id string) {
	if h.at+len(id) <= h.own || len(h.line) == len(id) {
		return // only in the group's name
	}
	name := src.seg.name(h.doc)
	starts := startsNamePart(name, h.at)
	ends := h.at+len(id) == len(h.line) || startsNamePart(name, h.at+len(id))
	length := len(h.line)
	if h.at >= h.own {
		length -= h.own
	}
	score := 0.0
	switch {
	case starts && ends:
		score = 0.8
	case starts && h.at == h.own && len(id) >= 6:
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
	if starts && h.at != 0 && h.at != h.own {
		score -= 0.08
	}
	score += 0.15 * min(1, float64(len(id))/float64(length))
	src.note(nameEvidence{doc: h.doc, score: score, how: matchNamePart})
}

// startsNamePart reports whether the letter of name at offset at of its identifier begins a part of the name.
func startsNamePart(name []byte, at int) bool {
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

// nearName looks for documents whose name is id with up to three typos. within means that id is a field of a longer
// query.
func (src *source) nearName(id string, within bool, doubt float64) {
	maxEdits := 1
	switch {
	case len(id) >= 16:
		maxEdits = 3
	case len(id) >= 7:
		maxEdits = 2
	}
	names, lines := src.seg.idents(), src.seg.lines
	try := func(lo, hi int, id string, within bool) {
		pattern := []byte(id)
		set, shortest, longest := edits.Letters(pattern), max(4, len(id)-maxEdits), len(id)+maxEdits
		for doc := lo; doc < hi; doc++ {
			n := &names[doc]
			size, own := int(n.size), int(n.own)
			fits := size >= shortest && size <= longest && edits.Possible(set, n.set, maxEdits)
			ownFits := own > 0 && size-own >= shortest && size-own <= longest && edits.Possible(set, n.ownSet, maxEdits)
			if !fits && !ownFits || src.partOf(doc) == nil {
				continue
			}
			if within && !compound(lastName(src.seg.name(doc))) {
				if ownFits = false; own == 0 || !fits {
					continue
				}
			}
			best, line := maxEdits+1, lines[n.at:][:n.size]
			if fits {
				best = edits.Distance(pattern, line, maxEdits)
			}
			if ownFits {
				best = min(best, edits.Distance(pattern, line[own:], maxEdits))
			}
			if best == 0 || best > maxEdits {
				continue
			}
			score := 0.96 - 0.02*float64(best) - 0.3*float64(best)/float64(len(pattern)) - doubt
			src.note(nameEvidence{doc: doc, score: score, how: matchNearName, typo: id})
		}
	}
	try(src.lo, src.hi, id, within)
	src.eachPrefixed(id, func(p *part, local string) {
		if len(local) >= 4 {
			try(p.lo, p.hi, local, false) // the plugin's name is the other part
		}
	})
}
