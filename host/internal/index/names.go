package index

import (
	"bytes"
	"strings"
)

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
			if len(line) == len(local) {
				p.named = append(p.named, named{doc: doc, score: full})
				found = true
			} else if string(line[own:]) == local {
				p.named = append(p.named, named{doc: doc, score: bare})
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
