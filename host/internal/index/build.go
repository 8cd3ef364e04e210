package index

import (
	"cmp"
	"encoding/binary"
	"maps"
	"math"
	"slices"
	"strings"
)

// The fields of a document, in the order of the bits of a mask. The first matching field explains why a document was
// found.
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

// weights are the parameters of BM25F: the boost of one occurrence, and the penalty b for fields longer than usual (in
// words). The usual lengths are constants, so that a document has the same weight in every plugin.
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
	// foreignMark begins a phrase in a record that is not the author's. Phrases of authors have no control characters.
	foreignMark = "\x01"
	// foreignShare is the weight of such a phrase, as a share of the weight of an author's phrase.
	foreignShare = 0.6
)

const (
	flagKind         = 3 // mask: 0 tool, 1 event, 2 type
	flagDeprecated   = 4
	flagExperimental = 8
	flagOwnName      = 16 // the signature begins with the document's own name, which is left out
)

var kinds = [3]string{"tool", "event", "type"}

// kindOf returns the number of a kind, -1 for an unknown one. Empty means tool.
func kindOf(kind string) int {
	if kind == "" {
		return 0
	}
	return slices.Index(kinds[:], kind)
}

// Build packs the documents of a plugin into a segment. The bytes do not depend on the order of the documents. A
// document of an unknown kind counts as a tool.
func Build(plugin Plugin, docs []Doc) []byte {
	b := builder{terms: map[string][]occurrences{}, numbers: map[string]int{}}
	sorted := make([]packed, len(docs))
	for i := range docs {
		sorted[i] = packed{doc: &docs[i], kind: max(0, kindOf(docs[i].Kind))}
		for _, s := range []string{docs[i].Group, docs[i].Category, docs[i].Effect} {
			b.numbers[s] = 0
		}
	}
	m := draft{plugin: plugin.Name, strings: b.number()}
	for i := range sorted {
		sorted[i].record = b.record(sorted[i].doc, sorted[i].kind)
	}
	slices.SortStableFunc(sorted, func(x, y packed) int {
		return cmp.Or(cmp.Compare(x.kind, y.kind), cmp.Compare(x.doc.Name, y.doc.Name), slices.Compare(x.record, y.record))
	})
	for i, p := range sorted {
		b.words(i, p.doc)
		group, _ := splitName(p.doc.Name)
		d := draftDoc{record: p.record, name: []byte(identifier(p.doc.Name)), own: byte(min(255, len(identifier(group))))}
		if p.kind == 0 {
			d.meaning = meaningOf(plugin.Name, p.doc).packed()
		}
		m.docs[p.kind] = append(m.docs[p.kind], d)
	}
	entries := b.entries()
	if len(m.docs[0]) > 0 {
		plugin.addTo(entries)
	}
	return layout([]draft{m}, entries)
}

// maxAbout is how many words of a plugin's own documentation are indexed.
const maxAbout = 200

// addTo adds the words that say what the plugin is for. A posting without a field applies to all of its tools; it
// stands at the first of them.
func (p Plugin) addTo(entries map[string]*entry) {
	add := func(text string, weight byte) {
		for _, c := range chunks(text, maxAbout) {
			for _, word := range c.parts {
				if stopWord(word) || len(word) > maxTerm {
					continue
				}
				e := entries[word]
				if e == nil {
					e = &entry{word: word}
					entries[word] = e
				}
				if len(e.postings) > 0 && e.postings[0].mask == 0 {
					e.postings[0].weight = max(e.postings[0].weight, weight)
					continue
				}
				e.postings = slices.Insert(e.postings, 0, posting{weight: weight})
			}
		}
	}
	add(p.Text, aboutText)
	add(strings.Join(p.Keywords, " "), aboutKeyword)
}

// The weights of words that describe a whole plugin.
const (
	aboutText    = 50
	aboutKeyword = 70
)

// meaningOf returns the meaning of a document.
func meaningOf(plugin string, d *Doc) *meaning {
	m := &meaning{}
	m.add(plugin, 1)
	m.add(d.Name, 1)
	m.add(d.Brief, 1.5)
	m.add(d.Text, 0.5)
	for _, phrases := range [][]string{d.Aliases, d.Keywords, d.Tasks, d.Phrases} {
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
	terms   map[string][]occurrences // by word
	numbers map[string]int           // numbers of shared strings
}

// occurrences are the occurrences of a word in a document.
type occurrences struct {
	doc  int
	tf   [fieldCount]float64 // already divided by the field's length norm
	mask byte
}

// number numbers the shared strings and returns the section that contains them.
func (b *builder) number() []byte {
	list := slices.Sorted(maps.Keys(b.numbers))
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
	signature := d.Signature
	if _, name := splitName(d.Name); strings.HasPrefix(signature, name) {
		flags |= flagOwnName
		signature = signature[len(name):]
	}
	r := appendString([]byte{flags}, d.Name)
	for _, s := range []string{d.Group, d.Category, d.Effect} {
		r = binary.AppendUvarint(r, uint64(b.numbers[s]))
	}
	r = appendString(r, d.Brief)
	r = appendString(r, signature)
	r = binary.AppendUvarint(r, uint64(len(d.Aliases)))
	r = binary.AppendUvarint(r, uint64(len(d.Tasks)+len(d.Phrases)))
	for _, s := range d.Aliases {
		r = appendString(r, s)
	}
	for _, s := range d.Tasks {
		r = appendString(r, s)
	}
	for _, s := range d.Phrases {
		r = appendString(r, foreignMark+s)
	}
	return r
}

// words adds the words of a document to the terms.
func (b *builder) words(doc int, d *Doc) {
	prefix, name := splitName(d.Name)
	b.field(doc, inName, 1, true, name)
	if prefix == "" {
		prefix = d.Group
	}
	b.field(doc, inGroup, 1, true, prefix)
	b.field(doc, inAlias, 1, true, d.Aliases...)
	b.field(doc, inKeyword, 1, true, d.Keywords...)
	b.field(doc, inTask, 1, false, d.Tasks...)
	b.field(doc, inTask, foreignShare, false, d.Phrases...)
	b.field(doc, inBrief, 1, false, d.Brief)
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
	b.field(doc, inParam, 1, true, params...)
	b.field(doc, inText, 1, false, text...)
}

// field counts the words of texts, each by the given share. It includes stop words if every word matters.
func (b *builder) field(doc, field int, share float64, everyWord bool, texts ...string) {
	const maxCount = 5000 // words of one document's field
	counts := map[string]float64{}
	length := 0.0
	for _, text := range texts {
		for _, c := range chunks(text, maxCount) {
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
			// Queries also contain WebSocket as one word, and whole names of parameters.
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
		docs := b.terms[word]
		if n := len(docs); n == 0 || docs[n-1].doc != doc {
			docs = append(docs, occurrences{doc: doc})
			b.terms[word] = docs
		}
		p := &docs[len(docs)-1]
		p.tf[field] += share * min(n, 3) / norm
		p.mask |= 1 << field
	}
}

// entries returns the terms with the weight of each in a document as a byte.
func (b *builder) entries() map[string]*entry {
	out := make(map[string]*entry, len(b.terms))
	for word, docs := range b.terms {
		e := &entry{word: word, postings: make([]posting, len(docs))}
		for i, o := range docs {
			sum := 0.0
			for f, tf := range o.tf {
				sum += weights[f].boost * tf
			}
			weight := math.Round(255 * sum / (saturation + sum))
			e.postings[i] = posting{doc: o.doc, weight: byte(max(1, weight)), mask: o.mask}
		}
		out[word] = e
	}
	return out
}
