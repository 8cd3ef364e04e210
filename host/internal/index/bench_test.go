package index

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// synthetic returns n random tools of a plugin, with a vocabulary as large as that of real tools.
func synthetic(seed uint64, n int) []Doc {
	r := rand.New(rand.NewPCG(seed, 7))
	verbs := strings.Fields("get set list create delete update find search run send read write convert open close " +
		"start stop check parse format upload download merge split count sort move copy add remove")
	nouns := strings.Fields("cookie page issue file user message repository branch commit table row column image video " +
		"token secret key event log metric alert ticket project task note calendar contact mail folder bucket object " +
		"queue topic stream model prompt chart map route place weather price order invoice customer product cart payment " +
		"shipment account transaction node edge graph document section paragraph template style font color theme layer " +
		"frame request response header body session certificate domain record zone cluster container pod service volume " +
		"snapshot backup schedule job worker pipeline stage build release package version license dependency test suite " +
		"report coverage trace profile")
	var syllables = strings.Fields("ka lo mi ren tor vex pla sti bon dra fel gri hub jen kor lum nar")
	word := func() string {
		if r.IntN(4) > 0 {
			return nouns[int(float64(len(nouns))*r.Float64()*r.Float64())]
		}
		return syllables[r.IntN(len(syllables))] + syllables[r.IntN(len(syllables))] + syllables[r.IntN(len(syllables))]
	}
	text := func(words int) string {
		var b strings.Builder
		for range words {
			b.WriteString(word())
			b.WriteByte(' ')
		}
		return b.String()
	}
	docs := make([]Doc, n)
	for i := range docs {
		noun := word()
		name := verbs[r.IntN(len(verbs))] + "_" + noun + "_" + word()
		docs[i] = Doc{
			Name: name, Effect: "read", Brief: strings.TrimSpace("Does " + text(6)),
			Signature: name + "(" + noun + ": string, limit?: integer)", Text: text(15),
			Params: []Param{{Name: noun + "_id", Text: text(4)}, {Name: "limit", Text: "Most results"},
				{Name: word(), Text: text(4), Enum: []string{word(), word()}}},
		}
	}
	return docs
}

func fleet(b testing.TB, plugins, tools int) (segs []*Segment, size int) {
	for i := range plugins {
		data := Build(Plugin{Name: fmt.Sprintf("plugin%d", i)}, synthetic(uint64(i), tools))
		seg, err := Open(data)
		if err != nil {
			b.Fatal(err)
		}
		size += len(data)
		segs = append(segs, seg)
	}
	return segs, size
}

func BenchmarkSearch(b *testing.B) {
	for _, f := range []struct {
		plugins, tools int
		merged         bool
	}{{1, 677, false}, {1, 10000, false}, {1000, 10, false}, {1000, 10, true}} {
		segs, size := fleet(b, f.plugins, f.tools)
		if f.merged {
			data := Merge(segs, func(string) string { return "" })
			one, err := Open(data)
			if err != nil {
				b.Fatal(err)
			}
			segs, size = []*Segment{one}, len(data)
		}
		for _, q := range []string{"list_issues", "delete a row of the table", "set cokie", "screenshot of the whole page"} {
			b.Run(fmt.Sprintf("%dx%d,merged=%v/%s", f.plugins, f.tools, f.merged, strings.ReplaceAll(q, " ", "-")),
				func(b *testing.B) {
					b.ReportAllocs()
					for b.Loop() {
						Search(segs, Query{Text: q})
					}
					b.ReportMetric(float64(size)/1e6, "MB")
				})
		}
	}
}

func BenchmarkOpen(b *testing.B) {
	data := Build(Plugin{Name: "plugin"}, synthetic(1, 677))
	for b.Loop() {
		if _, err := Open(data); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkBuild(b *testing.B) {
	docs := synthetic(1, 677)
	for b.Loop() {
		Build(Plugin{Name: "plugin"}, docs)
	}
}

func BenchmarkMerge(b *testing.B) {
	segs, _ := fleet(b, 1000, 10)
	for b.Loop() {
		Merge(segs, func(string) string { return "" })
	}
}

func BenchmarkOpenMerged(b *testing.B) {
	segs, _ := fleet(b, 1000, 10)
	data := Merge(segs, func(string) string { return "" })
	for b.Loop() {
		if _, err := Open(data); err != nil {
			b.Fatal(err)
		}
	}
}
