package main

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/parley-tools/parley/host/learn/eval"

	"github.com/parley-tools/parley/bench/internal/ranked"
	"github.com/parley-tools/parley/bench/internal/tree"
	"github.com/parley-tools/parley/host/search"
)

// measured are the sets that the command measures. Tests run in the root of the tree.
var measured = sync.OnceValues(func() ([]set, error) {
	if err := tree.Enter(); err != nil {
		return nil, err
	}
	return loadSets()
})

// TestQueries checks that the queries are as many as the report says, are for tools that exist, and that nothing was
// tuned with them: none is a phrase of a tool, or is in another set.
func TestQueries(t *testing.T) {
	sets, err := measured()
	if err != nil {
		t.Fatal(err)
	}
	known, tools := map[string]string{}, map[string]bool{}
	for _, p := range sets[0].plugins {
		for _, tool := range p.Manifest.Tools {
			tools[p.Manifest.Name+"."+tool.Name] = true
		}
		for _, d := range p.Docs {
			for _, phrases := range [][]string{d.Tasks, d.Keywords, d.Aliases, {d.Brief}} {
				for _, phrase := range phrases {
					known[strings.ToLower(phrase)] = p.About.Name + "." + d.Name
				}
			}
		}
	}
	files, err := filepath.Glob("testdata/search/*.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if filepath.Base(file) == "others_tools.jsonl" {
			continue
		}
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		others, err := eval.Read(bytes.NewReader(data))
		if err != nil {
			t.Fatal(file, err)
		}
		for _, q := range others {
			known[strings.ToLower(q.Query)] = file
		}
	}
	kinds := map[string]int{}
	for _, q := range sets[0].queries {
		if where := known[strings.ToLower(q.Query)]; where != "" {
			t.Errorf("%q is also in %s", q.Query, where)
		}
		known[strings.ToLower(q.Query)] = "queries.jsonl"
		kinds[q.Kind]++
		for name := range q.Relevant {
			if !tools[name] {
				t.Errorf("%q: there is no tool %s", q.Query, name)
			}
		}
	}
	for _, kind := range []string{"verbose", "vague", "words", "several"} {
		if kinds[kind] != 50 || len(kinds) != 4 {
			t.Errorf("%d queries of the kind %s, want 50; kinds %v", kinds[kind], kind, kinds)
		}
	}
}

// TestReport checks that what is measured with everything is what the product ships, and is in the report.
func TestReport(t *testing.T) {
	sets, err := measured()
	if err != nil {
		t.Fatal(err)
	}
	for i, file := range []string{"cdp/segment.bin", "plugins/js/segment", "plugins/json/segment",
		"cdp/page/segment", "plugins/text/segment"} {
		if shipped, err := os.ReadFile(file); err != nil || !bytes.Equal(segmentOf(sets[0].plugins[i], part{}), shipped) {
			t.Errorf("%s is not what is measured (%v)", file, err)
		}
	}
	report, err := os.ReadFile("bench/search/report.md")
	if err != nil {
		t.Fatal(err)
	}
	whole, err := evaluate(sets, part{})
	if err != nil {
		t.Fatal(err)
	}
	figures := []string{sets[0].kinds(whole[0])}
	for i, s := range sets {
		figures = append(figures, s.row("everything", whole[i], nil))
	}
	for _, text := range figures {
		if !strings.Contains(string(report), text) {
			t.Errorf("report.md lacks what is measured; run go -C bench run ./search -update:\n%s", text)
		}
	}
	catalog, err := sets[0].catalog(part{})
	if err != nil {
		t.Fatal(err)
	}
	for i, q := range sets[0].queries {
		data, _, err := search.Rank(catalog, search.Query{Text: q.Query, Limit: 10}, search.Order{}, nil)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, r := range data.Results {
			names = append(names, r.Name)
		}
		got := ranked.Rate(names, q.Relevant)
		if got[2] = math.Round(got[2]*1e4) / 1e4; got != whole[0][i] {
			t.Errorf("%q: Rate %v, the host %v", q.Query, got, whole[0][i])
		}
	}
}
