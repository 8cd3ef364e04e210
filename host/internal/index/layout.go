package index

import (
	"cmp"
	"encoding/binary"
	"hash/crc32"
	"math"
	"slices"
)

// draft is a plugin to be written to a segment.
type draft struct {
	plugin, build string
	strings       []byte
	docs          [3][]draftDoc // by kind, sorted by name
}

type draftDoc struct {
	record  []byte
	name    []byte // as an identifier
	own     byte
	meaning [vectorSize / 2]byte // set for tools
}

// entry is a word to be written to a segment, with its documents in the order of the segment.
type entry struct {
	word     string
	postings []posting
}

type posting struct {
	doc          int
	weight, mask byte
}

// layout writes a segment. Only layout and [Open] know the order of its sections. The drafts must be sorted by plugin.
func layout(drafts []draft, words map[string]*entry) []byte {
	var shared, names, offsets, owns, meanings []byte
	records := make([][]byte, len(drafts)) // records of each plugin
	for k := range kinds {
		for i := range drafts {
			for _, doc := range drafts[i].docs[k] {
				offsets = binary.LittleEndian.AppendUint32(offsets, uint32(len(records[i])))
				records[i] = append(records[i], doc.record...)
				owns = append(owns, doc.own)
				names = append(append(names, doc.name...), '\n')
				if k == 0 {
					meanings = append(meanings, doc.meaning[:]...)
				}
			}
		}
	}
	var totals [3]int
	table := binary.AppendUvarint(nil, uint64(len(drafts)))
	for i, d := range drafts {
		table = appendString(appendString(table, d.plugin), d.build)
		for k := range kinds {
			totals[k] += len(d.docs[k])
			table = binary.AppendUvarint(table, uint64(len(d.docs[k])))
		}
		table = binary.AppendUvarint(binary.AppendUvarint(table, uint64(len(d.strings))), uint64(len(records[i])))
		shared = append(shared, d.strings...)
	}
	stems, terms, width := dictionary(words)

	out := make([]byte, headerSize)
	copy(out, magic)
	put := binary.LittleEndian.PutUint32
	put(out[8:], version)
	for k := range kinds {
		put(out[20+4*k:], uint32(totals[k]))
	}
	put(out[32:], uint32(width))
	docs := slices.Concat(offsets, owns, meanings)
	for i, section := range [][]byte{table, shared, docs, slices.Concat(records...), names, stems, terms} {
		put(out[36+4*i:], uint32(len(out)))
		out = append(out, section...)
	}
	put(out[12:], uint32(len(out)))
	put(out[16:], crc32.ChecksumIEEE(out[20:]))
	return out
}

// dictionary writes the words grouped by stem, and the offset of each group.
func dictionary(words map[string]*entry) (stems, terms []byte, width int) {
	type stemmed struct {
		*entry
		stem string
	}
	list := make([]stemmed, 0, len(words))
	for _, e := range words {
		list = append(list, stemmed{e, stem(e.word)})
	}
	slices.SortFunc(list, func(x, y stemmed) int {
		return cmp.Or(cmp.Compare(x.stem, y.stem), cmp.Compare(x.word, y.word))
	})
	var offsets []int
	var packed []byte
	for len(list) > 0 {
		stem, n := list[0].stem, 1
		for n < len(list) && list[n].stem == stem {
			n++
		}
		offsets = append(offsets, len(terms))
		terms = appendString(terms, stem)
		terms = binary.AppendUvarint(terms, uint64(n))
		for _, e := range list[:n] {
			keep := 0
			for keep < len(stem) && keep < len(e.word) && stem[keep] == e.word[keep] {
				keep++
			}
			terms = append(terms, byte(keep), byte(len(e.word)-keep))
			terms = append(terms, e.word[keep:]...)
			packed = e.packed(packed[:0])
			terms = append(binary.AppendUvarint(terms, uint64(len(packed))), packed...)
		}
		list = list[n:]
	}
	width = 2
	if len(terms) > math.MaxUint16 {
		width = 4
	}
	for _, o := range offsets {
		if width == 2 {
			stems = binary.LittleEndian.AppendUint16(stems, uint16(o))
		} else {
			stems = binary.LittleEndian.AppendUint32(stems, uint32(o))
		}
	}
	return stems, terms, width
}

func (e *entry) packed(out []byte) []byte {
	last := 0
	for _, p := range e.postings {
		out = binary.AppendUvarint(out, uint64(p.doc-last))
		out = append(out, p.weight, p.mask)
		last = p.doc
	}
	return out
}

func appendString[T string | []byte](b []byte, s T) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}
