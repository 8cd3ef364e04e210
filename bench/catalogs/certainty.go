package main

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/parley-tools/parley/bench/internal/ranked"
)

// size is a size of catalog, with the catalogs that were drawn.
type size struct {
	name  string
	draws [][]ranked.Plugin
}

// drawn returns the catalogs that certainty is measured with. They are the same in every run.
func drawn(plugins []ranked.Plugin) ([]size, error) {
	random := rand.New(rand.NewPCG(38, 0))
	shipped, err := ranked.Shipped()
	if err != nil {
		return nil, err
	}
	shipped = slices.DeleteFunc(shipped, func(p ranked.Plugin) bool { return p.About.Name == "js" }) // has no wishes
	others, err := ranked.Foreign("testdata/search/others_tools.jsonl")
	if err != nil {
		return nil, err
	}
	// A catalog has each name once.
	others = slices.DeleteFunc(others, func(o ranked.Plugin) bool {
		return slices.ContainsFunc(plugins, func(p ranked.Plugin) bool { return p.About.Name == o.About.Name })
	})
	pick := func(from []ranked.Plugin, n int) (list []ranked.Plugin) {
		for _, i := range random.Perm(len(from))[:n] {
			list = append(list, from[i])
		}
		return list
	}
	sizes := []size{{name: "1"}, {name: "5"}, {"30", [][]ranked.Plugin{plugins}},
		{"30 + shipped", [][]ranked.Plugin{slices.Concat(plugins, shipped)}}, {name: "70"}}
	for i := range plugins {
		sizes[0].draws = append(sizes[0].draws, plugins[i:i+1])
		sizes[1].draws = append(sizes[1].draws, pick(plugins, 5))
	}
	for range 10 {
		sizes[4].draws = append(sizes[4].draws, slices.Concat(plugins, shipped, pick(others, 70-len(plugins)-len(shipped))))
	}
	return sizes, nil
}

// tally counts searches for one query: those without an answer, and among them those without a warning; those with a
// right tool among the first five, and among them those with a warning.
type tally struct{ unanswerable, trusted, answered, warned float64 }

func (t tally) plus(u tally) tally {
	return tally{t.unanswerable + u.unanswerable, t.trusted + u.trusted, t.answered + u.answered, t.warned + u.warned}
}

// rates returns the share of unanswerable searches without a warning, that of answered ones with one, and the sum.
func (t tally) rates() (trusted, warned, sum float64) {
	trusted, warned = t.trusted/max(1, t.unanswerable), t.warned/max(1, t.answered)
	return trusted, warned, trusted + warned
}

// judge tells what a query is in a catalog. A task whose tools are there but not found counts as neither.
func judge(q query, f found, has map[string]bool) (t tally) {
	for _, served := range q.Except {
		if has[served] {
			return t
		}
	}
	possible := false
	for name := range q.Relevant {
		server, _, _ := strings.Cut(name, ".")
		possible = possible || has[server]
	}
	grade := 0.0
	for _, of := range q.Relevant {
		grade = max(grade, min(2, of))
	}
	right := slices.ContainsFunc(f.names[:min(5, len(f.names))], func(name string) bool {
		return grade > 0 && q.Relevant[name] >= grade
	})
	switch {
	case !possible:
		t.unanswerable = 1
		if !f.weak {
			t.trusted = 1
		}
	case right:
		t.answered = 1
		if f.weak {
			t.warned = 1
		}
	}
	return t
}

// measureCertainty compares warnings with what is there, by size of the catalog.
func measureCertainty(plugins []ranked.Plugin) (string, error) {
	tasks, err := read[query]("queries.jsonl")
	if err != nil {
		return "", err
	}
	wishes, err := read[query]("wishes.jsonl")
	if err != nil {
		return "", err
	}
	sizes, err := drawn(plugins)
	if err != nil {
		return "", err
	}
	queries := slices.Concat(tasks, wishes)
	var t strings.Builder
	fmt.Fprint(&t, "| plugins | half | unanswerable | without a warning | answered | with a warning | sum |\n"+
		"|---|---|---:|---:|---:|---:|---|\n")
	for _, s := range sizes {
		tallies, err := judgeAll(s.draws, queries)
		if err != nil {
			return "", err
		}
		for _, half := range []string{"a", "b"} {
			var of []tally
			for i, q := range queries {
				if q.Half == half {
					of = append(of, tallies[i])
				}
			}
			t.WriteString(row(s.name, half, of))
		}
	}
	// What ships with Parley, with the tasks of bench/search, which are held apart, and half b of the wishes.
	shipped, err := ranked.Shipped()
	if err != nil {
		return "", err
	}
	apart, err := read[query]("../search/queries.jsonl")
	if err != nil {
		return "", err
	}
	apart = append(apart, slices.DeleteFunc(wishes, func(q query) bool { return q.Half != "b" })...)
	tallies, err := judgeAll([][]ranked.Plugin{shipped}, apart)
	if err != nil {
		return "", err
	}
	t.WriteString(row("shipped", "b", tallies))
	return t.String(), nil
}

// judgeAll searches for each query in each catalog, and returns the tally of each query.
func judgeAll(draws [][]ranked.Plugin, queries []query) ([]tally, error) {
	tallies := make([]tally, len(queries))
	for _, draw := range draws {
		catalog, err := catalogOf(draw)
		if err != nil {
			return nil, err
		}
		has := names(draw)
		for i, q := range queries {
			f, err := searchFor(catalog, q.Query)
			if err != nil {
				return nil, err
			}
			tallies[i] = tallies[i].plus(judge(q, f, has))
		}
	}
	return tallies, nil
}

// row sums the tallies of queries. The interval of the sum of the rates is from samples of queries with replacement.
func row(name, half string, of []tally) string {
	const samples = 4000
	random := rand.New(rand.NewPCG(1, 0))
	sums := make([]float64, samples)
	for i := range sums {
		var drawn tally
		for range of {
			drawn = drawn.plus(of[random.IntN(len(of))])
		}
		_, _, sums[i] = drawn.rates()
	}
	slices.Sort(sums)
	var all tally
	for _, t := range of {
		all = all.plus(t)
	}
	trusted, warned, sum := all.rates()
	return fmt.Sprintf("| %s | %s | %.0f | %.3f | %.0f | %.3f | %.3f (%.3f to %.3f) |\n", name, half, all.unanswerable,
		trusted, all.answered, warned, sum, sums[samples*25/1000], sums[samples*975/1000-1])
}
