package main

import (
	"bytes"
	"fmt"
	"os"
	"slices"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/call"
	"github.com/parley-tools/parley/host/learn/eval"

	"github.com/parley-tools/parley/bench/internal/ranked"
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
	remove func(about *host.SearchPlugin, d *host.SearchDoc)
	table  string
}

var parts = []part{
	{name: "without tasks", remove: func(_ *host.SearchPlugin, d *host.SearchDoc) { d.Tasks = nil }},
	{name: "without keywords", remove: func(_ *host.SearchPlugin, d *host.SearchDoc) { d.Keywords = nil }},
	{name: "without aliases", remove: func(_ *host.SearchPlugin, d *host.SearchDoc) { d.Aliases = nil }},
	{name: "without these three", remove: func(_ *host.SearchPlugin, d *host.SearchDoc) {
		d.Tasks, d.Keywords, d.Aliases = nil, nil, nil
	}},
	{name: "without docs and keywords of plugins", remove: func(about *host.SearchPlugin, _ *host.SearchDoc) {
		about.Text, about.Keywords = "", nil
	}},
	{name: "without parameters", remove: func(_ *host.SearchPlugin, d *host.SearchDoc) { d.Params = nil }},
	{name: "without longer descriptions", remove: func(_ *host.SearchPlugin, d *host.SearchDoc) { d.Text = "" }},
	{name: "names and briefs alone", remove: func(about *host.SearchPlugin, d *host.SearchDoc) {
		about.Text, about.Keywords = "", nil
		d.Tasks, d.Keywords, d.Aliases, d.Params, d.Text = nil, nil, nil, nil, ""
	}},
	{name: "without the thesaurus", table: "host/internal/index/thesaurus.table"},
	{name: "without word vectors", table: "host/internal/index/vectors.bin"},
}

// segment returns what search reads of a plugin without a part.
func segment(p ranked.Plugin, left part) []byte {
	docs := slices.Clone(p.Docs)
	for i := range docs {
		if left.remove != nil {
			left.remove(&p.About, &docs[i])
		}
	}
	return host.BuildSegment(p.About, docs)
}

// has reports whether a plugin of the set has a part.
func (s *set) has(p part) bool {
	return slices.ContainsFunc(s.plugins, func(x ranked.Plugin) bool {
		return !bytes.Equal(segment(x, p), segment(x, part{}))
	})
}

// host returns a host of the plugins of the set without a part.
func (s *set) host(left part) (*call.Host, error) {
	return ranked.Host(s.plugins, func(p ranked.Plugin) []byte { return segment(p, left) })
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
