package index

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"sync"
)

const (
	magic      = "PARLEYIX"
	version    = 3
	headerSize = 72
)

var (
	// ErrVersion means that the segment was built by another version of this package: build it again.
	ErrVersion = errors.New("search index of another version")
	// ErrDamaged means that the bytes are no segment, or not as they were built.
	ErrDamaged = errors.New("damaged search index")
)

// Segment is an open index of one plugin. It reads the bytes it was opened with, which must not change, and may be used
// by many goroutines at once.
type Segment struct {
	plugin  string
	ident   string // plugin's name as an identifier
	perKind [3]int
	total   int
	strings []byte
	offsets []byte // u32 each
	owns    []byte // u8 each
	vectors []byte // vectorSize/2 bytes for each tool
	records []byte
	names   [3][]byte // by kind, one line each
	filter  []byte
	slots   []byte
	width   int
	terms   []byte

	once  sync.Once
	words []spelled // all words, for finding slips; read when the first is looked for
}

// Open checks a segment and readies it for search, without copying it. It costs one pass of CRC-32 over the bytes, some
// 15 µs for half a megabyte. The error is ErrVersion or ErrDamaged, with what was found.
//
// A checksum is no signature: whatever else the bytes hold, reading them never panics and is bounded by their size.
func Open(data []byte) (*Segment, error) {
	if len(data) < headerSize || string(data[:8]) != magic {
		return nil, fmt.Errorf("%w: %d bytes that do not begin with %s", ErrDamaged, len(data), magic)
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
	s := &Segment{perKind: [3]int{u32(20), u32(24), u32(28)}, width: u32(36)}
	s.total = s.perKind[0] + s.perKind[1] + s.perKind[2]
	var at [7]int
	for i := range 6 {
		at[i] = u32(40 + 4*i)
	}
	at[6] = len(data)
	before := headerSize
	for _, a := range at {
		if a < before || a > len(data) {
			return nil, fmt.Errorf("%w: sections overlap", ErrDamaged)
		}
		before = a
	}
	part := func(i int) []byte { return data[at[i]:at[i+1]:at[i+1]] }
	slots := u32(32)
	if s.perKind[0] > len(data) || s.total > len(data) || len(part(1)) != 5*s.total+vectorSize/2*s.perKind[0] || len(part(3)) < s.total ||
		s.width != 2 && s.width != 4 || slots <= 0 || slots&(slots-1) != 0 || len(part(4))/(s.width+1) != slots || len(part(4))%(s.width+1) != 0 {
		return nil, fmt.Errorf("%w: counts and sizes differ", ErrDamaged)
	}
	r := reader{b: data[headerSize:at[0]]}
	s.plugin = string(r.str())
	s.ident = identifier(s.plugin)
	s.strings, s.records, s.terms = part(0), part(2), part(5)
	s.filter, s.slots = part(4)[:slots:slots], part(4)[slots:]
	names, first, second := part(3), u32(64), u32(68)
	if first > second || second > len(names) {
		return nil, fmt.Errorf("%w: names are missing", ErrDamaged)
	}
	s.names = [3][]byte{names[:first], names[first:second], names[second:]}
	s.offsets, s.owns, s.vectors = part(1)[:4*s.total], part(1)[4*s.total:5*s.total], part(1)[5*s.total:]
	for k, lines := range s.names {
		if r.bad || bytes.Count(lines, newline) != s.perKind[k] || len(lines) > 0 && lines[len(lines)-1] != '\n' {
			return nil, fmt.Errorf("%w: names are missing", ErrDamaged)
		}
	}
	return s, nil
}

// Plugin is the name that the segment was built for.
func (s *Segment) Plugin() string { return s.plugin }

// Len is the number of documents of all kinds.
func (s *Segment) Len() int { return s.total }

// Doc is what is stored of document i, without score: tools first, then events, then types, each sorted by name.
func (s *Segment) Doc(i int) Hit {
	if i < 0 || i >= s.total {
		return Hit{}
	}
	r := s.record(i)
	return Hit{
		Plugin: s.plugin, Name: string(r.name), Kind: kinds[r.kind()],
		Brief: string(r.brief), Signature: string(r.signature),
		Group: string(s.shared(r.group)), Category: string(s.shared(r.category)), Effect: string(s.shared(r.effect)),
		Deprecated: r.flags&flagDeprecated != 0, Experimental: r.flags&flagExperimental != 0,
	}
}

// stored is a record in place.
type stored struct {
	flags                   byte
	name, brief, signature  []byte
	group, category, effect int
	aliases, tasks          int
	phrases                 reader
}

func (r *stored) kind() int { return min(2, int(r.flags&flagKind)) }

func (s *Segment) record(i int) stored {
	var out stored
	at := int(binary.LittleEndian.Uint32(s.offsets[4*i:]))
	if at >= len(s.records) {
		return out
	}
	r := reader{b: s.records[at:]}
	out.flags = r.byte()
	out.name = r.str()
	out.group, out.category, out.effect = r.int(), r.int(), r.int()
	out.brief, out.signature = r.str(), r.str()
	out.aliases, out.tasks = r.int(), r.int()
	out.phrases = r
	return out
}

// shared is a string by its number.
func (s *Segment) shared(number int) []byte {
	r := reader{b: s.strings}
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

// bounds is the range of the documents of a kind.
func (s *Segment) bounds(kind int) (lo, hi int) {
	for k := range kind {
		lo += s.perKind[k]
	}
	return lo, lo + s.perKind[kind]
}

// find returns the group of words with a stem whose hash is h, or an empty reader.
func (s *Segment) find(stem string, h uint32) reader {
	if a, b := filterBits(h, len(s.filter)); s.filter[a>>3]&(1<<(a&7)) == 0 || s.filter[b>>3]&(1<<(b&7)) == 0 {
		return reader{}
	}
	mask := len(s.slots)/s.width - 1
	for i := range mask + 1 {
		at := (int(h) + i) & mask
		offset := slotValue(s.slots[at*s.width:][:s.width]) - 1
		if offset < 0 || offset >= len(s.terms) {
			return reader{}
		}
		r := reader{b: s.terms[offset:]}
		if n := int(r.byte()); string(r.take(n)) == stem {
			return reader{b: s.terms[offset:]}
		}
	}
	return reader{}
}

// A word is a term of the index in place; its text is valid until the next one is read.
type indexed struct {
	text     []byte
	postings []byte
}

// group reads the next group of words, calling f for each.
func (r *reader) group(buf *[2 * 256]byte, f func(indexed)) {
	stem := r.take(int(r.byte()))
	for range r.count() {
		keep, rest := int(r.byte()), int(r.byte())
		tail := r.take(rest)
		postings := r.str()
		if r.bad || keep > len(stem) {
			r.bad = true
			return
		}
		n := copy(buf[:], stem[:keep])
		n += copy(buf[n:], tail)
		f(indexed{buf[:n], postings})
	}
}

// spelled is a word of a segment in a form that is fast to go through.
type spelled struct {
	set      uint32 // its letters
	stem, at uint32 // where in terms its group and its own entry begin
	size     uint8
}

// vocabulary is all words of the segment. They are read at the first call, which costs a few µs for a plugin of ten
// tools: a search for slips looks at every word of every plugin.
func (s *Segment) vocabulary() []spelled {
	s.once.Do(func() {
		s.words = make([]spelled, 0, len(s.slots)/s.width)
		var text [2 * 256]byte
		r := reader{b: s.terms}
		for len(r.b) > 0 {
			group := len(s.terms) - len(r.b)
			stem := r.take(int(r.byte()))
			copy(text[:], stem)
			for range r.count() {
				at := len(s.terms) - len(r.b)
				keep, rest := int(r.byte()), int(r.byte())
				tail := r.take(rest)
				r.take(r.int())
				if r.bad || keep > len(stem) {
					return
				}
				if n := keep + rest; n <= maxTerm {
					copy(text[:], stem[:keep])
					copy(text[keep:], tail)
					s.words = append(s.words, spelled{letters(text[:n]), uint32(group), uint32(at), uint8(n)})
				}
			}
		}
	})
	return s.words
}

// spell puts a word of the vocabulary together.
func (s *Segment) spell(w spelled, buf *[maxTerm]byte) []byte {
	keep, rest := int(s.terms[w.at]), int(s.terms[w.at+1])
	n := copy(buf[:], s.terms[w.stem+1:][:keep])
	n += copy(buf[n:], s.terms[w.at+2:][:rest])
	return buf[:n]
}

// each calls f for every posting of a document within [lo, hi).
func each(postings []byte, lo, hi int, f func(doc int, weight, mask byte)) {
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

func slotValue(slot []byte) int {
	if len(slot) == 2 {
		return int(binary.LittleEndian.Uint16(slot))
	}
	return int(binary.LittleEndian.Uint32(slot))
}

// reader takes values off foreign bytes; once one is missing, all others are empty.
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

// int is a varint below 2^31.
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

// count is a number of things that take at least a byte each.
func (r *reader) count() int {
	n := r.int()
	if n > len(r.b) {
		r.b, r.bad = nil, true
		return 0
	}
	return n
}

func (r *reader) str() []byte { return r.take(r.int()) }
