package main

import (
	"bytes"
	"fmt"
	"os"
	"slices"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/learn/eval"

	"github.com/parley-tools/parley/bench/internal/ranked"
	"github.com/parley-tools/parley/host/segment"
)

// set is a set of queries with the plugins that they are for.
type set struct {
	name    string
	queries []eval.Query
	plugins []ranked.Plugin
}

// part is a part of search that is left out: remove takes it from what is indexed of a tool and its plugin, or table is
// a file that is compiled in, from the root of the tree. The zero part leaves nothing out.
type part struct {
	name   string
	remove func(about *segment.Plugin, d *segment.Doc)
	table  string
}

var parts = []part{
	{name: "without tasks", remove: func(_ *segment.Plugin, d *segment.Doc) { d.Tasks = nil }},
	{name: "without keywords", remove: func(_ *segment.Plugin, d *segment.Doc) { d.Keywords = nil }},
	{name: "without aliases", remove: func(_ *segment.Plugin, d *segment.Doc) { d.Aliases = nil }},
	{name: "without these three", remove: func(_ *segment.Plugin, d *segment.Doc) {
		d.Tasks, d.Keywords, d.Aliases = nil, nil, nil
	}},
	{name: "without docs and keywords of plugins", remove: func(about *segment.Plugin, _ *segment.Doc) {
		about.Text, about.Keywords = "", nil
	}},
	{name: "without parameters", remove: func(_ *segment.Plugin, d *segment.Doc) { d.Params = nil }},
	{name: "without longer descriptions", remove: func(_ *segment.Plugin, d *segment.Doc) { d.Text = "" }},
	{name: "names and briefs alone", remove: func(about *segment.Plugin, d *segment.Doc) {
		about.Text, about.Keywords = "", nil
		d.Tasks, d.Keywords, d.Aliases, d.Params, d.Text = nil, nil, nil, nil, ""
	}},
	{name: "without the thesaurus", table: "host/internal/index/thesaurus.table"},
	{name: "without word vectors", table: "host/internal/index/vectors.bin"},
}

// segmentOf returns what search reads of a plugin without a part.
func segmentOf(p ranked.Plugin, left part) []byte {
	docs := slices.Clone(p.Docs)
	for i := range docs {
		if left.remove != nil {
			left.remove(&p.About, &docs[i])
		}
	}
	return segment.Build(p.About, docs)
}

// has reports whether a plugin of the set has a part.
func (s *set) has(p part) bool {
	return slices.ContainsFunc(s.plugins, func(x ranked.Plugin) bool {
		return !bytes.Equal(segmentOf(x, p), segmentOf(x, part{}))
	})
}

// catalog returns a catalog of the plugins of the set without a part.
func (s *set) catalog(left part) (*host.Catalog, error) {
	return ranked.Catalog(s.plugins, func(p ranked.Plugin) []byte { return segmentOf(p, left) })
}

// loadSets returns the sets of the tree, whose root is the current folder; first that of this package.
func loadSets() ([]set, error) {
	shipped, err := ranked.Shipped()
	if err != nil {
		return nil, err
	}
	foreign, err := ranked.Foreign("testdata/search/others_tools.jsonl")
	if err != nil {
		return nil, err
	}
	sets := []set{{"held apart", nil, shipped}, {"foreign", nil, foreign}, {"foreign, later", nil, foreign}}
	for i, path := range []string{"bench/search/queries.jsonl", "testdata/search/others.jsonl",
		"testdata/search/others_later.jsonl"} {
		data, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		if sets[i].queries, err = eval.Read(bytes.NewReader(data)); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
	}
	sets[1].queries = slices.DeleteFunc(sets[1].queries, func(q eval.Query) bool { return q.Half != "b" })
	return sets, nil
}
