package index

import (
	"hash/crc32"
	"math"
	"slices"
	"testing"
)

// TestVectorsBelongToVersion checks that a change of vectors.bin raises the version of segments, which contain sums of
// vectors.
func TestVectorsBelongToVersion(t *testing.T) {
	if sum, want := crc32.ChecksumIEEE([]byte(vectorData)), uint32(0xd47f0d2a); version != 5 || sum != want {
		t.Errorf("vectors.bin has checksum %#x in version %d, %#x in version 5: raise the version when it changes, then "+
			"update this test", sum, version, want)
	}
}

func TestVectorOf(t *testing.T) {
	n := vectorNumber(0)
	if n < 20000 || len(vectorData) != 4*(n+2)+vectorNumber(1+n)+vectorSize*n {
		t.Fatalf("%d words in %d bytes", n, len(vectorData))
	}
	words := vectorData[4*(n+2):]
	for i := range n {
		word := words[vectorNumber(1+i):vectorNumber(2+i)]
		if v := vectorOfForm(word); len(v) != vectorSize {
			t.Fatalf("%q is not found", word)
		}
	}
	for word, want := range map[string]string{"kanbans": "kanban", "kubectls": "kubectl", "kubectl": "kubectl",
		"xqzwv": "", "": "", "天気": ""} {
		if got := vectorOf(word); got != vectorOfForm(want) || (want == "") != (got == "") {
			t.Errorf("%q does not have the vector of %q", word, want)
		}
	}
}

func TestLikeness(t *testing.T) {
	cosine := func(a, b string) float64 {
		var x, y meaning
		x.add(a, 1)
		y.add(b, 2)
		query, ok := x.direction()
		if !ok {
			return 0
		}
		var like cosineTable
		like.init(query)
		packed := y.packed()
		return like.cosine(packed[:])
	}
	if c := cosine("merge branches of the repository", "merge branches of the repository"); math.Abs(c-1) > 0.2 {
		t.Errorf("a text and itself: %.3f", c)
	}
	for _, c := range []struct{ text, near, far string }{
		{"plane tickets", "search flights between airports", "restart a container"},
		{"song", "start playing a music track", "create an invoice"},
		{"refund", "give back money", "rotate the image"},
	} {
		if near, far := cosine(c.text, c.near), cosine(c.text, c.far); near < far+0.1 {
			t.Errorf("%q: %.3f to %q, %.3f to %q", c.text, near, c.near, far, c.far)
		}
	}
	if c := cosine("xqzwv", "song"); c != 0 {
		t.Errorf("an unknown word: %.3f", c)
	}
}

// TestMeaning finds a tool by its meaning that shares no word with the query. A query of one known word uses no
// meanings.
func TestMeaning(t *testing.T) {
	segs := []*Segment{open(t, "travel", []Doc{
		{Name: "search_flights", Brief: "Flights between two airports"}, {Name: "book_hotel", Brief: "Reserve a room"},
		{Name: "get_visa", Brief: "Papers for a country"},
	}), open(t, "ops", []Doc{{Name: "restart_pod", Brief: "Restart a container"},
		{Name: "scale", Brief: "Change the replicas"}})}
	r := Search(segs, Query{Text: "aircraft pilots", Explain: true})
	if len(r.Hits) == 0 || r.Hits[0].Name != "search_flights" || r.Hits[0].Why != "meaning" ||
		r.Hits[0].Confidence != "low" || !r.Weak {
		t.Errorf("got %+v", r)
	} else if p := r.Hits[0].Parts; !slices.ContainsFunc(p,
		func(p Part) bool { return p.How == "meaning" && p.Score > 0 }) {
		t.Errorf("parts %+v", p)
	}
	if r := Search(segs, Query{Text: "flights"}); r.Total != 1 {
		t.Errorf("one known word: %+v", r)
	}
	if r := Search(segs, Query{Text: "aircraft pilots", Effect: "write"}); r.Total != 0 {
		t.Errorf("a filter that excludes everything: %+v", r)
	}
}
