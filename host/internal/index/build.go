package index

import (
	"cmp"
	"encoding/binary"
	"hash/crc32"
	"math"
	"slices"
	"sort"
	"strings"
)

// The fields of a document, in the order of the bits of a mask. A word's strongest field says why a document was found.
const (
	inName = iota
	inGroup
	inAlias
	inKeyword
	inTask
	inBrief
	inParam
	inText
	fieldCount
)

var fieldNames = [fieldCount]string{"name", "group", "alias", "keyword", "task", "brief", "parameter", "description"}

// weights are BM25F's: what one occurrence counts, and how much a field longer than usual (in words) takes from it.
// The usual lengths are constants, so that a document weighs the same in every plugin.
var weights = [fieldCount]struct{ boost, b, usual float64 }{
	inName:    {boost: 4.5, b: 0.5, usual: 3},
	inGroup:   {boost: 1.8},
	inAlias:   {boost: 4.5},
	inKeyword: {boost: 4},
	inTask:    {boost: 2.2},
	inBrief:   {boost: 5, b: 0.4, usual: 7},
	inParam:   {boost: 1.3, b: 0.4, usual: 8},
	inText:    {boost: 0.8, b: 0.5, usual: 25},
}

const saturation = 1.4 // BM25's k1

const (
	flagKind         = 3 // mask: 0 tool, 1 event, 2 type
	flagDeprecated   = 4
	flagExperimental = 8
)

var kinds = [3]string{"tool", "event", "type"}

// kindOf is the number of a kind, -1 for an unknown one. Empty means tool.
func kindOf(kind string) int {
	if kind == "" {
		return 0
	}
	return slices.Index(kinds[:], kind)
}

// Build packs the documents of a plugin into a segment. The same documents in any order give the same bytes. A document
// of an unknown kind is taken for a tool.
func Build(plugin string, docs []Doc) []byte {
	b := builder{terms: map[string]*term{}, numbers: map[string]int{}}
	var perKind [3]uint32
	sorted := make([]packed, len(docs))
	for i := range docs {
		sorted[i] = packed{doc: &docs[i], kind: max(0, kindOf(docs[i].Kind))}
		perKind[sorted[i].kind]++
		for _, s := range []string{docs[i].Group, docs[i].Category, docs[i].Effect} {
			b.numbers[s] = 0
		}
	}
	shared := b.number()
	for i := range sorted {
		sorted[i].record = b.record(sorted[i].doc, sorted[i].kind)
	}
	slices.SortStableFunc(sorted, func(x, y packed) int {
		return cmp.Or(cmp.Compare(x.kind, y.kind), cmp.Compare(x.doc.Name, y.doc.Name), slices.Compare(x.record, y.record))
	})
	for i, p := range sorted {
		b.words(i, p.doc)
	}
	groups := b.groups()
	terms, slots, width := hashed(groups)
	filter := filtered(groups, len(slots)/width)

	out := make([]byte, headerSize, headerSize+len(plugin)+8+len(shared)+len(terms)+len(slots))
	copy(out, magic)
	put := binary.LittleEndian.PutUint32
	put(out[8:], version)
	for k, n := range perKind {
		put(out[20+4*k:], n)
	}
	put(out[32:], uint32(len(slots)/width))
	put(out[36:], uint32(width))
	out = appendString(out, plugin)
	section := func(i int) { put(out[40+4*i:], uint32(len(out))) }
	section(0)
	out = append(out, shared...)
	section(1)
	at := 0
	for _, p := range sorted {
		out = binary.LittleEndian.AppendUint32(out, uint32(at))
		at += len(p.record)
	}
	for _, p := range sorted {
		group, _ := own(p.doc.Name)
		out = append(out, byte(min(255, len(identifier(group)))))
	}
	for _, p := range sorted[:perKind[0]] {
		m := meaningOf(plugin, p.doc).packed()
		out = append(out, m[:]...)
	}
	section(2)
	for _, p := range sorted {
		out = append(out, p.record...)
	}
	section(3)
	var firsts [3]int // where the names of each kind begin
	for _, p := range sorted {
		for k := p.kind + 1; k < 3; k++ {
			firsts[k] += len(identifier(p.doc.Name)) + 1
		}
		out = append(out, identifier(p.doc.Name)...)
		out = append(out, '\n')
	}
	put(out[64:], uint32(firsts[1]))
	put(out[68:], uint32(firsts[2]))
	section(4)
	out = append(out, filter...)
	out = append(out, slots...)
	section(5)
	out = append(out, terms...)
	put(out[12:], uint32(len(out)))
	put(out[16:], crc32.ChecksumIEEE(out[20:]))
	return out
}

// meaningOf is what a document is about.
func meaningOf(plugin string, d *Doc) *meaning {
	m := &meaning{}
	m.add(plugin, 1)
	m.add(d.Name, 1)
	m.add(d.Brief, 1.5)
	m.add(d.Text, 0.5)
	for _, phrases := range [][]string{d.Aliases, d.Keywords, d.Tasks} {
		for _, p := range phrases {
			m.add(p, 0.5)
		}
	}
	for _, p := range d.Params {
		m.add(p.Name+" "+p.Text+" "+strings.Join(p.Enum, " "), 0.2)
	}
	return m
}

type packed struct {
	doc    *Doc
	kind   int
	record []byte
}

type builder struct {
	terms   map[string]*term
	numbers map[string]int // of shared strings
}

type term struct {
	word     string
	postings []posting
}

type posting struct {
	doc  int
	tf   [fieldCount]float64 // occurrences, already divided by the field's length norm
	mask byte
}

// number gives every shared string its number and returns the section that holds them.
func (b *builder) number() []byte {
	list := make([]string, 0, len(b.numbers))
	for s := range b.numbers {
		list = append(list, s)
	}
	sort.Strings(list)
	out := binary.AppendUvarint(nil, uint64(len(list)))
	for i, s := range list {
		b.numbers[s] = i
		out = appendString(out, s)
	}
	return out
}

func (b *builder) record(d *Doc, kind int) []byte {
	flags := byte(kind)
	if d.Deprecated {
		flags |= flagDeprecated
	}
	if d.Experimental {
		flags |= flagExperimental
	}
	r := appendString([]byte{flags}, d.Name)
	for _, s := range []string{d.Group, d.Category, d.Effect} {
		r = binary.AppendUvarint(r, uint64(b.numbers[s]))
	}
	r = appendString(r, d.Brief)
	r = appendString(r, d.Signature)
	r = binary.AppendUvarint(r, uint64(len(d.Aliases)))
	r = binary.AppendUvarint(r, uint64(len(d.Tasks)))
	for _, s := range d.Aliases {
		r = appendString(r, s)
	}
	for _, s := range d.Tasks {
		r = appendString(r, s)
	}
	return r
}

// words adds the words of a document to the terms.
func (b *builder) words(doc int, d *Doc) {
	prefix, name := own(d.Name)
	b.field(doc, inName, true, name)
	if prefix == "" {
		prefix = d.Group
	}
	b.field(doc, inGroup, true, prefix)
	b.field(doc, inAlias, true, d.Aliases...)
	b.field(doc, inKeyword, true, d.Keywords...)
	b.field(doc, inTask, false, d.Tasks...)
	b.field(doc, inBrief, false, d.Brief)
	text := []string{d.Text}
	var params []string
	for _, p := range d.Params {
		params = append(params, p.Name)
		if strings.ContainsAny(p.Name, "_-.") {
			params = append(params, identifier(p.Name))
		}
		params = append(params, p.Enum...)
		text = append(text, p.Text)
	}
	b.field(doc, inParam, true, params...)
	b.field(doc, inText, false, text...)
}

// field counts the words of texts; stop words only where every word matters.
func (b *builder) field(doc, field int, everyWord bool, texts ...string) {
	const most = 5000 // words of one document's field
	counts := map[string]float64{}
	length := 0.0
	for _, text := range texts {
		for _, c := range chunks(text, most) {
			for _, part := range c.parts {
				if !everyWord && stopWord(part) {
					continue
				}
				counts[part]++
				length++
				if letters := strings.TrimRight(part, "0123456789"); letters != part && len(letters) > 1 {
					counts[letters] += 0.5
				}
			}
			// WebSocket is also looked for as one word, and parameters by their whole names.
			if len(c.parts) > 1 && (len(c.parts) == 2 || field == inParam) && len(c.whole) <= maxTerm {
				counts[c.whole]++
			}
		}
	}
	w := weights[field]
	norm := 1.0
	if w.usual > 0 {
		norm = 1 - w.b + w.b*length/w.usual
	}
	for word, n := range counts {
		if len(word) > maxTerm {
			continue
		}
		t := b.terms[word]
		if t == nil {
			t = &term{word: word}
			b.terms[word] = t
		}
		if n := len(t.postings); n == 0 || t.postings[n-1].doc != doc {
			t.postings = append(t.postings, posting{doc: doc})
		}
		p := &t.postings[len(t.postings)-1]
		p.tf[field] += min(n, 3) / norm
		p.mask |= 1 << field
	}
}

type group struct {
	stem  string
	terms []*term
}

// groups are the terms by their stems, sorted.
func (b *builder) groups() []group {
	byStem := map[string]int{}
	var out []group
	for word, t := range b.terms {
		s := stem(word)
		i, ok := byStem[s]
		if !ok {
			i = len(out)
			byStem[s] = i
			out = append(out, group{stem: s})
		}
		out[i].terms = append(out[i].terms, t)
	}
	slices.SortFunc(out, func(x, y group) int { return cmp.Compare(x.stem, y.stem) })
	for _, g := range out {
		slices.SortFunc(g.terms, func(x, y *term) int { return cmp.Compare(x.word, y.word) })
	}
	return out
}

// hashed writes the groups and the table that finds them by stem.
func hashed(groups []group) (terms, slots []byte, width int) {
	offsets := make([]int, len(groups))
	for i, g := range groups {
		offsets[i] = len(terms)
		terms = append(terms, byte(len(g.stem)))
		terms = append(terms, g.stem...)
		terms = binary.AppendUvarint(terms, uint64(len(g.terms)))
		for _, t := range g.terms {
			keep := 0
			for keep < len(g.stem) && keep < len(t.word) && g.stem[keep] == t.word[keep] {
				keep++
			}
			terms = append(terms, byte(keep), byte(len(t.word)-keep))
			terms = append(terms, t.word[keep:]...)
			terms = appendString(terms, string(t.packed()))
		}
	}
	n := 1
	for 3*n < 4*len(groups) { // at most three quarters full
		n *= 2
	}
	width = 2
	if len(terms) >= math.MaxUint16 {
		width = 4
	}
	slots = make([]byte, n*width)
	for i, g := range groups {
		for h := hash(g.stem); ; h++ {
			slot := slots[int(h&uint32(n-1))*width:][:width]
			if slotValue(slot) != 0 {
				continue
			}
			if width == 2 {
				binary.LittleEndian.PutUint16(slot, uint16(offsets[i]+1))
			} else {
				binary.LittleEndian.PutUint32(slot, uint32(offsets[i]+1))
			}
			break
		}
	}
	return terms, slots, width
}

// filtered is a Bloom filter of two bits a stem over as many bytes as there are slots, which is 11 to 21 bits a stem: all
// but a few in a hundred of the stems that a segment does not hold are refused without touching its table. A search of
// a thousand plugins asks for tens of thousands.
func filtered(groups []group, size int) []byte {
	filter := make([]byte, size)
	for _, g := range groups {
		a, b := filterBits(hash(g.stem), size)
		filter[a>>3] |= 1 << (a & 7)
		filter[b>>3] |= 1 << (b & 7)
	}
	return filter
}

// filterBits are the bits of a stem in a filter of size bytes, a power of two.
func filterBits(h uint32, size int) (a, b uint32) {
	mask := uint32(8*size - 1)
	return h >> 5 & mask, h * 0x9e3779b1 >> 3 & mask
}

// packed are the postings of a term in bytes.
func (t *term) packed() []byte {
	var out []byte
	last := 0
	for _, p := range t.postings {
		sum := 0.0
		for f, tf := range p.tf {
			sum += weights[f].boost * tf
		}
		weight := math.Round(255 * sum / (saturation + sum))
		out = binary.AppendUvarint(out, uint64(p.doc-last))
		out = append(out, byte(max(1, weight)), p.mask)
		last = p.doc
	}
	return out
}

// hash is FNV-1a.
func hash(s string) uint32 {
	h := uint32(2166136261)
	for i := 0; i < len(s); i++ {
		h = (h ^ uint32(s[i])) * 16777619
	}
	return h
}

func appendString(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}
