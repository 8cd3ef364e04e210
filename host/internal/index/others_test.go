package index

import (
	"bufio"
	"cmp"
	"encoding/json"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/parley-tools/parley/host/internal/index/edits"
)

// maxBrief is the limit of a brief in a manifest; longer texts go into the documentation.
const maxBrief = 64

// others reads testdata/search/others_tools.jsonl, tools as described by third-party servers, and returns the documents
// of each plugin.
func others(t testing.TB) (plugins []string, docs map[string][]Doc) {
	t.Helper()
	docs = map[string][]Doc{}
	eachLine(t, "others_tools.jsonl", func(line []byte) error {
		var tool struct {
			Plugin, Name, Description string
			Params                    []struct {
				Name, Description string
				Enum              []string
			}
		}
		if err := json.Unmarshal(line, &tool); err != nil {
			return err
		}
		brief, rest, _ := strings.Cut(tool.Description, ". ")
		d := Doc{Name: tool.Name, Brief: brief, Text: rest}
		if len(brief) > maxBrief {
			d.Brief, d.Text = brief[:maxBrief], tool.Description
		}
		for _, p := range tool.Params {
			d.Params = append(d.Params, Param{Name: p.Name, Text: p.Description, Enum: p.Enum})
		}
		if docs[tool.Plugin] == nil {
			plugins = append(plugins, tool.Plugin)
		}
		docs[tool.Plugin] = append(docs[tool.Plugin], d)
		return nil
	})
	return plugins, docs
}

func eachLine(t testing.TB, file string, f func([]byte) error) {
	t.Helper()
	in, err := os.Open("../../../testdata/search/" + file)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	for lines := bufio.NewScanner(in); lines.Scan(); {
		if err := f(lines.Bytes()); err != nil {
			t.Fatalf("%s: %v in %s", file, err, lines.Text())
		}
	}
}

// TestOthers checks that search over tools without hand-written phrases keeps its scores and its lead over plain BM25F.
func TestOthers(t *testing.T) {
	plugins, docs := others(t)
	besideCDP := installed(t)
	segs := besideCDP[1:]
	plain := newBaseline(plugins, docs)
	rankers := []struct {
		name string
		rank func(query string) []string
	}{
		{"search", func(query string) []string { return names(Search(segs, Query{Text: query})) }},
		{"search beside cdp", func(query string) []string { return names(Search(besideCDP, Query{Text: query})) }},
		{"BM25F", plain.bm25f},
		{"substring, distance", plain.substring},
	}
	for file, least := range map[string]struct{ ndcg, lead, beside float64 }{ // of each half
		"others.jsonl":       {ndcg: 0.66, lead: 0.14, beside: 0.63},
		"others_later.jsonl": {ndcg: 0.46, lead: 0.08, beside: 0.41},
	} {
		t.Run(file, func(t *testing.T) {
			var scores [4][3]oneAnswer
			eachLine(t, file, func(line []byte) error {
				var q struct {
					Query, Half string
					Relevant    map[string]float64
				}
				if err := json.Unmarshal(line, &q); err != nil {
					return err
				}
				for i, r := range rankers {
					rank := slices.IndexFunc(r.rank(q.Query), func(name string) bool { return q.Relevant[name] > 0 })
					scores[i][0].add(rank)
					scores[i][1+strings.Index("ab", q.Half)].add(rank)
				}
				return nil
			})
			for half, name := range []string{"", "a", "b"} {
				for i, r := range rankers {
					s := scores[i][half]
					t.Logf("%1s %-19s %3.0f queries: success@1 %.3f, success@5 %.3f, NDCG@10 %.3f", name, r.name, s.queries,
						s.first/s.queries, s.five/s.queries, s.ndcg())
				}
				ours, beside, plain := scores[0][half].ndcg(), scores[1][half].ndcg(), scores[2][half].ndcg()
				if ours < least.ndcg || ours-plain < least.lead || beside < least.beside {
					t.Errorf("half %q: NDCG@10 %.3f, beside cdp %.3f, BM25F %.3f; expected %.2f, %.2f and a lead of %.2f", name, ours,
						beside, plain, least.ndcg, least.beside, least.lead)
				}
			}
		})
	}
}

// TestConfidenceOthers checks that low confidence means that a tool is missing: two shares add up to much less than 1,
// of the queries with low confidence whose answer is among the first five, and of the others, their plugin removed.
// bench/catalogs measures that by the size of the catalog.
func TestConfidenceOthers(t *testing.T) {
	plugins, docs := others(t)
	segs := make([]*Segment, len(plugins))
	for i, p := range plugins {
		segs[i] = open(t, p, docs[p])
	}
	low := func(r Results) bool { return len(r.Hits) == 0 || r.Hits[0].Confidence == "low" }
	for file, most := range map[string]float64{"others.jsonl": 0.66, "others_later.jsonl": 0.78} {
		answered, lowThoughFound, found, lowWithout := 0.0, 0.0, 0.0, 0.0
		eachLine(t, file, func(line []byte) error {
			var q struct {
				Query    string
				Relevant map[string]float64
			}
			if err := json.Unmarshal(line, &q); err != nil {
				return err
			}
			answered++
			r := Search(segs, Query{Text: q.Query, Limit: 5})
			if slices.ContainsFunc(r.Hits, func(h Hit) bool { return q.Relevant[full(h)] > 0 }) {
				if found++; low(r) {
					lowThoughFound++
				}
			}
			for name := range q.Relevant {
				plugin, _, _ := strings.Cut(name, ".")
				i := slices.Index(plugins, plugin)
				if low(Search(slices.Concat(segs[:i], segs[i+1:]), Query{Text: q.Query, Limit: 1})) {
					lowWithout++
				}
			}
			return nil
		})
		warned, trusted := lowThoughFound/found, 1-lowWithout/answered
		t.Logf("%s: low for %.2f of the queries whose answer is among the first five, not low for %.2f without one",
			file, warned, trusted)
		if warned+trusted > most {
			t.Errorf("%s: %.2f and %.2f, want a sum of at most %.2f", file, warned, trusted, most)
		}
	}
}

// oneAnswer counts queries with one relevant tool each.
type oneAnswer struct{ queries, first, five, gain float64 }

// add counts a query whose relevant tool has a rank from 0 on, -1 if it was not found.
func (s *oneAnswer) add(rank int) {
	s.queries++
	if rank < 0 || rank >= 10 {
		return
	}
	s.gain += 1 / math.Log2(float64(rank)+2)
	if rank == 0 {
		s.first++
	}
	if rank < 5 {
		s.five++
	}
}

func (s *oneAnswer) ndcg() float64 { return s.gain / s.queries }

func names(r Results) (out []string) {
	for _, h := range r.Hits {
		out = append(out, full(h))
	}
	return out
}

// baseline ranks the same documents in two simple ways, for comparison.
type baseline struct {
	names []string
	texts [][3][]string // per document the stems of its name, its description and its parameters
	lower []string
	docs  map[string]int // by stem: number of documents that contain it
	mean  [3]float64     // length of each field
}

func newBaseline(plugins []string, docs map[string][]Doc) *baseline {
	b := &baseline{docs: map[string]int{}}
	for _, plugin := range plugins {
		for _, d := range docs[plugin] {
			var params []string
			for _, p := range d.Params {
				params = append(append(params, p.Name, p.Text), p.Enum...)
			}
			texts := [3]string{plugin + " " + d.Name, d.Brief + " " + d.Text, strings.Join(params, " ")}
			var stems [3][]string
			seen := map[string]bool{}
			for f, text := range texts {
				stems[f] = stemsOf(text)
				b.mean[f] += float64(len(stems[f]))
				for _, s := range stems[f] {
					if !seen[s] {
						b.docs[s]++
					}
					seen[s] = true
				}
			}
			b.names = append(b.names, plugin+"."+d.Name)
			b.texts = append(b.texts, stems)
			b.lower = append(b.lower, strings.ToLower(strings.Join(texts[:], " ")))
		}
	}
	for f := range b.mean {
		b.mean[f] /= float64(len(b.names))
	}
	return b
}

func stemsOf(text string) (out []string) {
	for _, c := range chunks(text, 1000) {
		for _, p := range c.parts {
			if !stopWord(p) {
				out = append(out, stem(p))
			}
		}
	}
	return out
}

func (b *baseline) ranked(score func(doc int) float64) (out []string) {
	type hit struct {
		name  string
		score float64
	}
	var hits []hit
	for i, name := range b.names {
		if s := score(i); s > 0 {
			hits = append(hits, hit{name, s})
		}
	}
	slices.SortFunc(hits, func(x, y hit) int { return cmp.Or(cmp.Compare(y.score, x.score), cmp.Compare(x.name, y.name)) })
	for _, h := range hits[:min(10, len(hits))] {
		out = append(out, h.name)
	}
	return out
}

// bm25f is the textbook's formula over three fields, with Porter2 stems.
func (b *baseline) bm25f(query string) []string {
	boost := [3]float64{3, 1.5, 1}
	return b.ranked(func(doc int) (sum float64) {
		for _, q := range stemsOf(query) {
			tf := 0.0
			for f, words := range b.texts[doc] {
				n := 0.0
				for _, w := range words {
					if w == q {
						n++
					}
				}
				tf += boost[f] * n / (0.25 + 0.75*float64(len(words))/b.mean[f])
			}
			n, of := float64(b.docs[q]), float64(len(b.names))
			sum += math.Log(1+(of-n+0.5)/(n+0.5)) * tf / (1.2 + tf)
		}
		return sum
	})
}

// substring scores a text that contains the whole query, or else the distance of the query to the name.
func (b *baseline) substring(query string) []string {
	query = strings.ToLower(query)
	return b.ranked(func(doc int) float64 {
		if strings.Contains(b.lower[doc], query) {
			return 1
		}
		a, n := identifier(query), identifier(b.names[doc])
		return max(0, 0.9-float64(edits.Distance([]byte(a), []byte(n), 20))/20)
	})
}
