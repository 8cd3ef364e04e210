package index

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"math/rand/v2"
	"reflect"
	"slices"
	"sync"
	"testing"
)

func TestStoredFields(t *testing.T) {
	want := Hit{
		Plugin: "p", Name: "issue.list", Kind: "tool", Brief: "List issues", Signature: "list(repo: string)",
		Group: "issue", Effect: "read", Category: "query", Deprecated: true, Experimental: true,
	}
	seg := open(t, "p", []Doc{
		{Name: "T", Kind: "type"}, {Name: "E", Kind: "event"},
		{Name: want.Name, Brief: want.Brief, Signature: want.Signature, Group: want.Group, Effect: want.Effect,
			Category: want.Category, Deprecated: true, Experimental: true},
	})
	if seg.total != 3 {
		t.Errorf("%d documents", seg.total)
	}
	if got := seg.Doc(0); !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
	if a, b := seg.Doc(1).Kind, seg.Doc(2).Kind; a != "event" || b != "type" {
		t.Errorf("kinds %q and %q", a, b)
	}
	if got := seg.Doc(3); !reflect.DeepEqual(got, Hit{}) || !reflect.DeepEqual(seg.Doc(-1), Hit{}) {
		t.Errorf("a document that does not exist: %+v", got)
	}
}

func TestEmptySegment(t *testing.T) {
	seg := open(t, "empty", nil)
	if r := Search([]*Segment{seg}, Query{Text: "anything"}); r.Total != 0 || !r.Weak {
		t.Errorf("got %+v", r)
	}
}

func TestOddDocuments(t *testing.T) {
	docs := []Doc{
		{}, {}, {Name: "same"}, {Name: "same", Brief: "twice"}, {Name: "\n\x00|", Brief: "\xff\xfe"},
		{Name: "....", Kind: "nonsense"},
		{Name: string(make([]byte, 300)), Text: string(make([]byte, 100000))},
		{Name: "größe.Länge", Group: "größe", Params: []Param{{}, {Name: "", Enum: []string{"", "ß"}}},
			Tasks: []string{"", "x"}},
	}
	segs := []*Segment{open(t, "", docs)}
	if n := segs[0].total; n != len(docs) {
		t.Errorf("%d documents, expected %d", n, len(docs))
	}
	if r := Search(segs, Query{Text: "same"}); r.Total != 2 || r.Hits[0].Name != "same" {
		t.Errorf("got %+v", r)
	}
	if r := Search(segs, Query{Text: "Länge"}); r.Total != 1 {
		t.Errorf("got %+v", r)
	}
}

func TestOpenRefuses(t *testing.T) {
	good := Build(Plugin{Name: "cdp"}, browserDocs)
	other := slices.Clone(good)
	binary.LittleEndian.PutUint32(other[8:], version+1)
	for _, c := range []struct {
		name string
		data []byte
		want error
	}{
		{"nothing", nil, ErrDamaged},
		{"another file", make([]byte, 4096), ErrDamaged},
		{"another version", other, ErrVersion},
		{"more at the end", append(slices.Clone(good), 0), ErrDamaged},
	} {
		if _, err := Open(c.data); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, expected %v", c.name, err, c.want)
		}
	}
}

func TestOpenDetectsCorruption(t *testing.T) {
	good := Build(Plugin{Name: "text"}, textDocs)
	data := slices.Clone(good)
	for i := range data {
		for _, flip := range []byte{1, 0x80, 0xff} {
			data[i] ^= flip
			if _, err := Open(data); err == nil {
				t.Fatalf("a change of byte %d by %#x is not detected", i, flip)
			}
			data[i] ^= flip
		}
		if _, err := Open(good[:i]); err == nil {
			t.Fatalf("a cut after %d bytes is not detected", i)
		}
	}
}

// fixChecksum gives damaged bytes a matching size and checksum, as an attacker would.
func fixChecksum(data []byte) {
	if len(data) >= headerSize {
		copy(data, magic)
		binary.LittleEndian.PutUint32(data[8:], version)
		binary.LittleEndian.PutUint32(data[12:], uint32(len(data)))
		binary.LittleEndian.PutUint32(data[16:], crc32.ChecksumIEEE(data[20:]))
	}
}

// exercise calls everything that reads a segment.
func exercise(seg *Segment, queries ...string) {
	for i := range min(seg.total, 1000) {
		seg.Doc(i)
	}
	for _, q := range queries {
		for _, kind := range kinds {
			Search([]*Segment{seg}, Query{Text: q, Kind: kind, Limit: -1, Explain: true})
		}
		Search([]*Segment{seg}, Query{Text: q, Group: "x", Effect: "read"})
	}
	if merged, err := Open(Merge([]*Segment{seg}, func(string) string { return "" })); err == nil {
		for i := range min(merged.total, 1000) {
			merged.Doc(i)
		}
	} else {
		panic("a merged segment is refused: " + err.Error())
	}
}

func TestHostileSegments(t *testing.T) {
	good := Build(Plugin{Name: "text"}, textDocs)
	queries := []string{"json", "encode_base64", "chcksum of txt", "qqqq"}
	data := slices.Clone(good)
	for i := range data {
		for _, v := range []byte{0, 1, 0x7f, 0x80, 0xff} {
			old := data[i]
			data[i] = v
			fixChecksum(data)
			if seg, err := Open(data); err == nil && (i%7 == 0 || i < 400) {
				exercise(seg, queries...)
			}
			data[i] = old
		}
	}
	r := rand.New(rand.NewPCG(1, 1))
	for range 300 {
		data := slices.Clone(good)
		for range 1 + r.IntN(20) {
			data[headerSize+r.IntN(len(data)-headerSize)] = byte(r.IntN(256))
		}
		fixChecksum(data)
		if seg, err := Open(data); err == nil {
			exercise(seg, queries...)
		}
	}
}

func TestOneSegmentManyGoroutines(t *testing.T) {
	segs := corpus(t)
	want := Search(segs, Query{Text: "take a pictre of the page"})
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 20 {
				if got := Search(segs, Query{Text: "take a pictre of the page"}); !reflect.DeepEqual(got, want) {
					t.Error("concurrent searches differ")
				}
			}
		})
	}
	wg.Wait()
}

func FuzzOpen(f *testing.F) {
	f.Add([]byte(magic), "x")
	f.Add(Build(Plugin{Name: ""}, nil), "x")
	f.Add(Build(Plugin{Name: "text"}, textDocs), "encode jsn")
	f.Add(Build(Plugin{Name: "cdp"}, browserDocs[:8]), "getCokies")
	f.Fuzz(func(t *testing.T, data []byte, query string) {
		if seg, err := Open(data); err == nil {
			exercise(seg, query)
		}
		fixed := slices.Clone(data)
		fixChecksum(fixed)
		if seg, err := Open(fixed); err == nil {
			exercise(seg, query, "json", "a b")
		}
	})
}
