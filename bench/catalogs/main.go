// Command catalogs measures search and lint with the tools of 30 public MCP servers that this project did not write:
// what search finds beside BM25F, whether its warnings can be believed, and which contradictions lint finds. No figure
// fails the command. With -update it writes the figures into bench/catalogs/report.md.
//
// The servers come from npm by the lock file. Each is started once to list its tools, and its list has to be the one
// whose digest is in lists.jsonl. README.md says how the data was made and what it must not be used for.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"strings"

	"github.com/parley-tools/parley/host"

	"github.com/parley-tools/parley/bench/internal/ranked"
	"github.com/parley-tools/parley/bench/internal/tree"
	"github.com/parley-tools/parley/host/search"
	"github.com/parley-tools/parley/host/segment"
)

func main() {
	accept := flag.Bool("accept", false, "start the servers again and write what they list into lists.jsonl")
	update := flag.Bool("update", false, "write the figures into bench/catalogs/report.md")
	fit := flag.Bool("fit", false, "fit the certainty of search again, which changes host/internal/index/weights.go")
	verbose := flag.Bool("v", false, "show each contradiction and each false finding")
	flag.Parse()
	tree.Main("catalogs", func(ctx context.Context) error {
		text, err := run(ctx, *accept, *fit, *verbose)
		if err == nil && *update && !*fit {
			err = tree.Section{File: "bench/catalogs/report.md", Name: "figures"}.Write("\n" + text + "\n")
		}
		return err
	})
}

// query is a task with the tools for it, or a wish that no tool serves.
type query struct {
	Query    string             `json:"query"`
	Kind     string             `json:"kind"`
	Half     string             `json:"half"`
	Relevant map[string]float64 `json:"relevant"`
	Except   []string           `json:"except"` // servers that serve a wish
	From     string             `json:"from"`   // in bench/search
}

func run(ctx context.Context, accept, fit, verbose bool) (string, error) {
	tools, err := lists(ctx, accept)
	if err != nil {
		return "", err
	}
	plugins, err := pluginsOf(tools)
	if err != nil {
		return "", err
	}
	if fit {
		return "", fitCertainty(plugins)
	}
	var parts []string
	for _, measure := range []func([]ranked.Plugin) (string, error){measureSearch, measureCertainty, measureLanguages,
		func([]ranked.Plugin) (string, error) { return measureProse(tools, verbose) }} {
		text, err := measure(plugins)
		if err != nil {
			return "", err
		}
		fmt.Println(text)
		parts = append(parts, text)
	}
	return strings.Join(parts, "\n"), nil
}

// pluginsOf returns the servers as plugins that can be found.
func pluginsOf(tools map[string][]json.RawMessage) (list []ranked.Plugin, err error) {
	for _, s := range servers {
		m, err := imported(s.Name, tools[s.Name])
		if err != nil {
			return nil, err
		}
		list = append(list, ranked.Plugin{Manifest: m, About: segment.PluginOf(m), Docs: segment.DocsOf(m)})
	}
	return list, nil
}

// catalogOf returns a catalog in which plugins can be found.
func catalogOf(plugins []ranked.Plugin) (*host.Catalog, error) {
	return ranked.Catalog(plugins, func(p ranked.Plugin) []byte { return segment.Build(p.About, p.Docs) })
}

// found are the names of the first ten tools, and whether there is a warning that none of them matches well.
type found struct {
	names   []string
	weak    bool
	foreign bool
	signals []float64
}

func searchFor(catalog *host.Catalog, query string) (f found, err error) {
	data, weak, err := search.Rank(catalog, search.Query{Text: query, Limit: 10, Explain: true}, search.Order{}, nil)
	if err != nil {
		return f, err
	}
	for _, r := range data.Results {
		f.names = append(f.names, r.Name)
	}
	f.weak, f.foreign, f.signals = weak, data.Foreign, data.Signals
	return f, nil
}

// measureSearch compares search with BM25F over all servers together.
func measureSearch(plugins []ranked.Plugin) (string, error) {
	tasks, err := read[query]("queries.jsonl")
	if err != nil {
		return "", err
	}
	catalog, err := catalogOf(plugins)
	if err != nil {
		return "", err
	}
	baseline := ranked.NewBM25F(plugins)
	var ours, theirs []ranked.Score
	for _, q := range tasks {
		f, err := searchFor(catalog, q.Query)
		if err != nil {
			return "", err
		}
		ours = append(ours, ranked.Rate(f.names, q.Relevant))
		theirs = append(theirs, ranked.Rate(baseline.Rank(q.Query), q.Relevant))
	}
	var t strings.Builder
	fmt.Fprint(&t, "| tasks | search | success@1 | success@5 | NDCG@10 |\n|---|---|---|---|---|\n")
	for _, set := range []string{"all", "a", "b", "sentence", "short", "vague"} {
		var rows [3][3][]float64 // of search, BM25F and the difference: each measure
		for i, q := range tasks {
			if set != "all" && set != q.Half && set != q.Kind {
				continue
			}
			for m := range 3 {
				for row, v := range []float64{ours[i][m], theirs[i][m], ours[i][m] - theirs[i][m]} {
					rows[row][m] = append(rows[row][m], v)
				}
			}
		}
		for row, name := range []string{"Parley", "BM25F", "difference"} {
			fmt.Fprintf(&t, "| %s, %d | %s |", set, len(rows[0][0]), name)
			for _, values := range rows[row] {
				text, _, _ := ranked.Interval(map[bool]string{true: "%+.3f", false: "%.3f"}[row == 2], values)
				fmt.Fprintf(&t, " %s |", text)
			}
			fmt.Fprintln(&t)
		}
	}
	return t.String(), nil
}

// measureLanguages counts the queries that are said not to be in English.
func measureLanguages(plugins []ranked.Plugin) (string, error) {
	type line struct{ Query, Language string }
	lines, err := read[line]("languages.jsonl")
	if err != nil {
		return "", err
	}
	catalog, err := catalogOf(plugins)
	if err != nil {
		return "", err
	}
	counts := map[bool][2]int{} // English or not: queries, those called foreign
	for _, l := range lines {
		f, err := searchFor(catalog, l.Query)
		if err != nil {
			return "", err
		}
		c := counts[l.Language == "en"]
		if c[0]++; f.foreign {
			c[1]++
		}
		counts[l.Language == "en"] = c
	}
	return fmt.Sprintf("Called foreign: %d of %d queries in other languages, %d of %d English ones.\n", counts[false][1],
		counts[false][0], counts[true][1], counts[true][0]), nil
}
