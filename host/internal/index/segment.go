package index

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"sort"
	"sync"

	"github.com/parley-tools/parley/host/internal/index/edits"
)

const (
	magic      = "PARLEYIX"
	version    = 5
	headerSize = 64
)

var (
	// ErrVersion means that the segment was built by another version of this package and must be rebuilt.
	ErrVersion = errors.New("search index of another version")
	// ErrDamaged means that the bytes are not a segment, or were changed after it was built.
	ErrDamaged = errors.New("damaged search index")
)

// Segment is an open index of one plugin or, after [Merge], of many. It reads the bytes that it was opened with, which
// must not change. It is safe for concurrent use.
type Segment struct {
	members  []member // sorted by plugin
	totals   [3]int   // documents of each kind
	total    int
	offsets  []byte  // u32 each
	owns     []byte  // u8 each
	meanings []byte  // vectorSize/2 bytes for each tool
	owner    []int32 // by document: its member
	lines    []byte  // the names of all documents as identifiers
	stems    []byte  // u16 or u32 each
	width    int
	terms    []byte

	// Computed once, by the first search that requires it.
	idents func() []docName   // by document
	words  func() []vocabWord // all words, for correcting typos
}

// member is a plugin within a segment.
type member struct {
	plugin, build    string
	ident            string // plugin as an identifier
	first, docs      [3]int // by kind: its first document, and how many it has
	strings, records []byte
	excluded         bool // see Keep
}

// Open checks a segment and prepares it for search, without copying it. It costs one pass of CRC-32 over the bytes,
// about 15 µs for half a megabyte, and little for each plugin. The error is [ErrVersion] or [ErrDamaged], with details.
//
// A checksum is not a signature: reading never panics, and its cost is bounded by the size of the bytes, whatever they
// contain.
func Open(data []byte) (*Segment, error) {
	if len(data) < headerSize || string(data[:8]) != magic {
		return nil, fmt.Errorf("%w: the %d bytes do not begin with %s", ErrDamaged, len(data), magic)
	}
	u32 := func(at int) int { return int(binary.LittleEndian.Uint32(data[at:])) }
	if v := u32(8); v != version {
		return nil, fmt.Errorf("%w: %d, expected %d", ErrVersion, v, version)
	}
	if size := u32(12); size != len(data) {
		return nil, fmt.Errorf("%w: %d bytes, expected %d", ErrDamaged, len(data), size)
	}
	if crc32.ChecksumIEEE(data[20:]) != binary.LittleEndian.Uint32(data[16:]) {
		return nil, fmt.Errorf("%w: wrong checksum", ErrDamaged)
	}
	s := &Segment{totals: [3]int{u32(20), u32(24), u32(28)}, width: u32(32)}
	s.total = s.totals[0] + s.totals[1] + s.totals[2]
	var at [8]int
	for i := range 7 {
		at[i] = u32(36 + 4*i)
	}
	at[7] = len(data)
	before := headerSize
	for _, a := range at {
		if a < before || a > len(data) {
			return nil, fmt.Errorf("%w: sections overlap", ErrDamaged)
		}
		before = a
	}
	part := func(i int) []byte { return data[at[i]:at[i+1]:at[i+1]] }
	if s.totals[0] > len(data) || s.total > len(data) || len(part(2)) != 5*s.total+vectorSize/2*s.totals[0] ||
		len(part(4)) < s.total ||
		s.width != 2 && s.width != 4 || len(part(5))%s.width != 0 {
		return nil, fmt.Errorf("%w: counts and sizes differ", ErrDamaged)
	}
	s.offsets, s.owns, s.meanings = part(2)[:4*s.total], part(2)[4*s.total:5*s.total], part(2)[5*s.total:]
	s.stems, s.terms = part(5), part(6)
	s.lines = part(4)
	if bytes.Count(s.lines, []byte{'\n'}) != s.total || s.total > 0 && s.lines[len(s.lines)-1] != '\n' {
		return nil, fmt.Errorf("%w: names are missing", ErrDamaged)
	}
	s.idents, s.words = sync.OnceValue(s.readNames), sync.OnceValue(s.readWords)
	return s, s.readMembers(part(0), part(1), part(3))
}

// OpenFrom opens what load returns.
func OpenFrom(load func() ([]byte, error)) (*Segment, error) {
	data, err := load()
	if err != nil {
		return nil, err
	}
	return Open(data)
}

// readMembers reads the table of plugins and assigns to each its strings, records and documents.
func (s *Segment) readMembers(table, shared, records []byte) error {
	text := string(table) // one copy for all names
	r := reader{b: table}
	str := func() string {
		b := r.str()
		end := len(table) - len(r.b)
		return text[max(0, end-len(b)):end]
	}
	rest, bad := [2]reader{{b: shared}, {b: records}}, false
	const least = 7 // bytes of the shortest entry of a plugin
	n := r.count()
	if n > len(table)/least {
		return fmt.Errorf("%w: plugins are missing", ErrDamaged)
	}
	s.members = make([]member, n)
	s.owner = make([]int32, s.total)
	next := [3]int{0, s.totals[0], s.totals[0] + s.totals[1]}
	limit := [3]int{next[1], next[2], s.total}
	for i := range s.members {
		m := &s.members[i]
		m.plugin, m.build = str(), str()
		m.ident = identifier(m.plugin)
		for k := range kinds {
			docs := r.int()
			if docs > limit[k]-next[k] {
				return fmt.Errorf("%w: documents are missing", ErrDamaged)
			}
			m.first[k], m.docs[k] = next[k], docs
			next[k] += docs
			for doc := m.first[k]; doc < next[k]; doc++ {
				s.owner[doc] = int32(i)
			}
		}
		m.strings, m.records = rest[0].take(r.int()), rest[1].take(r.int())
		bad = bad || r.bad || rest[0].bad || rest[1].bad || i > 0 && s.members[i-1].plugin > m.plugin
	}
	if bad || r.bad || next != limit {
		return fmt.Errorf("%w: plugins are missing", ErrDamaged)
	}
	return nil
}

// Keep excludes plugins from all searches if keep returns false. Call it before the first search.
func (s *Segment) Keep(keep func(plugin, build string) bool) {
	for i := range s.members {
		m := &s.members[i]
		m.excluded = !keep(m.plugin, m.build)
	}
}

// Doc returns the stored fields of document i, without a score. Tools come first, then events, then types, each sorted
// by plugin and name. It returns the zero Hit if i is out of range.
func (s *Segment) Doc(i int) Hit {
	if i < 0 || i >= s.total {
		return Hit{}
	}
	r, m := s.record(i), &s.members[s.owner[i]]
	hit := Hit{
		Plugin: m.plugin, Name: string(r.name), Kind: kinds[r.kind()],
		Brief: string(r.brief), Signature: string(r.signature),
		Group: string(m.shared(r.group())), Category: string(m.shared(r.shared[1])), Effect: string(m.shared(r.effect())),
		Deprecated: r.flags&flagDeprecated != 0, Experimental: r.flags&flagExperimental != 0,
	}
	if r.flags&flagOwnName != 0 {
		_, name := splitName(hit.Name)
		hit.Signature = name + hit.Signature
	}
	return hit
}

// stored is a record in place.
type stored struct {
	flags                  byte
	name, brief, signature []byte
	shared                 [3]int // numbers of its group, category and effect
	aliases, tasks         int
	phrases                reader
}

func (r *stored) kind() int   { return min(2, int(r.flags&flagKind)) }
func (r *stored) group() int  { return r.shared[0] }
func (r *stored) effect() int { return r.shared[2] }

func (s *Segment) record(i int) stored {
	var out stored
	r := s.recordAt(i)
	out.flags = r.byte()
	out.name = r.str()
	for i := range out.shared {
		out.shared[i] = r.int()
	}
	out.brief, out.signature = r.str(), r.str()
	out.aliases, out.tasks = r.int(), r.int()
	out.phrases = r
	return out
}

// recordAt returns a reader that begins at the record of a document, and also has the records of later documents.
func (s *Segment) recordAt(i int) reader {
	at, records := int(binary.LittleEndian.Uint32(s.offsets[4*i:])), s.members[s.owner[i]].records
	return reader{b: records[min(at, len(records)):]}
}

// name returns the name of a document.
func (s *Segment) name(i int) []byte {
	r := s.recordAt(i)
	r.byte()
	return r.str()
}

// shared returns a shared string by its number, nil if there is none.
func (m *member) shared(number int) []byte {
	r := reader{b: m.strings}
	if n := r.int(); number < 0 || number >= n {
		return nil
	}
	for range number {
		if r.str(); r.bad {
			return nil
		}
	}
	return r.str()
}

// bounds returns the range of the documents of a kind.
func (s *Segment) bounds(kind int) (lo, hi int) {
	for k := range kind {
		lo += s.totals[k]
	}
	return lo, lo + s.totals[kind]
}

// find returns the group of words with a stem, or an empty reader.
func (s *Segment) find(stem string) reader {
	key := []byte(stem)
	i, found := sort.Find(len(s.stems)/s.width, func(i int) int {
		r := s.groupAt(i)
		return bytes.Compare(key, r.str())
	})
	if !found {
		return reader{}
	}
	return s.groupAt(i)
}

// groupAt returns a reader at group i of the terms, an empty one if the offset is damaged.
func (s *Segment) groupAt(i int) reader {
	var at int
	if s.width == 2 {
		at = int(binary.LittleEndian.Uint16(s.stems[2*i:]))
	} else {
		at = int(binary.LittleEndian.Uint32(s.stems[4*i:]))
	}
	return reader{b: s.terms[min(at, len(s.terms)):]}
}

// indexed is a word of the index in place. Its text is valid until the next word is read.
type indexed struct {
	text     []byte
	postings []byte
	left     int // bytes of the terms from the word on
}

// group reads the next group of words, calling f for each.
func (r *reader) group(buf *[2 * 256]byte, f func(indexed)) {
	stem := r.str()
	for range r.count() {
		left, keep, rest := len(r.b), int(r.byte()), int(r.byte())
		tail := r.take(rest)
		postings := r.str()
		if r.bad || keep > len(stem) {
			r.b, r.bad = nil, true
			return
		}
		n := copy(buf[:], stem[:keep])
		n += copy(buf[n:], tail)
		f(indexed{buf[:n], postings, left})
	}
}

// vocabWord is a word of a segment in a form that is fast to scan.
type vocabWord struct {
	set      uint32 // its letters
	stem, at uint32 // offsets in terms of its group's stem and of its own entry
	size     uint8
}

// readWords reads all words of the segment, because correcting typos compares every one.
func (s *Segment) readWords() []vocabWord {
	words := make([]vocabWord, 0, len(s.stems)/s.width*3/2)
	var buf [2 * 256]byte
	for r := (reader{b: s.terms}); len(r.b) > 0; {
		head := r
		size := len(head.str())
		stem := len(s.terms) - len(head.b) - size
		r.group(&buf, func(ix indexed) {
			if len(ix.text) <= maxTerm {
				at := uint32(len(s.terms) - ix.left)
				words = append(words, vocabWord{edits.Letters(ix.text), uint32(stem), at, uint8(len(ix.text))})
			}
		})
	}
	return words
}

// docName is the name of a document as an identifier, in a form that is fast to scan.
type docName struct {
	at, size, own uint32 // its offset in lines, its length, and the offset in it of the document's own name
	set, ownSet   uint32 // the letters of both
}

// readNames reads the names of all documents.
func (s *Segment) readNames() []docName {
	all := make([]docName, s.total)
	at := 0
	for doc := range all {
		size := bytes.IndexByte(s.lines[at:], '\n')
		line := s.lines[at : at+size]
		n := docName{at: uint32(at), size: uint32(size), own: uint32(min(size, int(s.owns[doc])))}
		n.set = edits.Letters(line)
		if n.ownSet = n.set; n.own > 0 {
			n.ownSet = edits.Letters(line[n.own:])
		}
		all[doc] = n
		at += size + 1
	}
	return all
}

// spell returns the text of a word, in buf.
func (s *Segment) spell(w vocabWord, buf *[maxTerm]byte) []byte {
	keep, rest := int(s.terms[w.at]), int(s.terms[w.at+1])
	n := copy(buf[:], s.terms[w.stem:][:keep])
	n += copy(buf[n:], s.terms[w.at+2:][:rest])
	return buf[:n]
}

// postings returns the postings of a word.
func (s *Segment) postings(w vocabWord) []byte {
	r := reader{b: s.terms[int(w.at)+2+int(s.terms[w.at+1]):]}
	return r.str()
}

// eachPosting calls f for the postings of the documents in [lo, hi).
func eachPosting(postings []byte, lo, hi int, f func(doc int, weight, mask byte)) {
	r := reader{b: postings}
	doc := 0
	for len(r.b) > 0 {
		doc += r.int()
		weight, mask := r.byte(), r.byte()
		if r.bad || doc >= hi {
			return
		}
		if doc >= lo {
			f(doc, weight, mask)
		}
	}
}

// reader reads values from untrusted bytes. After a value is missing, all others are zero.
type reader struct {
	b   []byte
	bad bool
}

func (r *reader) take(n int) []byte {
	if n < 0 || n > len(r.b) {
		r.b, r.bad = nil, true
		return nil
	}
	v := r.b[:n:n]
	r.b = r.b[n:]
	return v
}

func (r *reader) byte() byte {
	if len(r.b) == 0 {
		r.bad = true
		return 0
	}
	v := r.b[0]
	r.b = r.b[1:]
	return v
}

// int reads a varint below 2^31.
func (r *reader) int() int {
	if len(r.b) > 0 && r.b[0] < 0x80 {
		v := int(r.b[0])
		r.b = r.b[1:]
		return v
	}
	v, n := binary.Uvarint(r.b)
	if n <= 0 || v > 1<<31-1 {
		r.b, r.bad = nil, true
		return 0
	}
	r.b = r.b[n:]
	return int(v)
}

// count reads the number of items that take at least one byte each.
func (r *reader) count() int {
	n := r.int()
	if n > len(r.b) {
		r.b, r.bad = nil, true
		return 0
	}
	return n
}

func (r *reader) str() []byte { return r.take(r.int()) }
