package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/parley-tools/parley/cdp"
	"github.com/parley-tools/parley/cdp/page"
	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/call"
	"github.com/parley-tools/parley/host/learn/eval"
	"github.com/parley-tools/parley/manifest"
)

// set is a set of queries with the plugins that they are for.
type set struct {
	name    string
	queries []eval.Query
	plugins []plugin
}

// plugin is what search reads of a plugin.
type plugin struct {
	Manifest *manifest.Manifest // names of tools, and what replaces deprecated ones
	About    host.SearchPlugin
	Docs     []host.SearchDoc
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
func (p *plugin) segment(left part) []byte {
	about, docs := p.About, slices.Clone(p.Docs)
	for i := range docs {
		if left.remove != nil {
			left.remove(&about, &docs[i])
		}
	}
	return host.BuildSegment(about, docs)
}

// has reports whether a plugin of the set has a part.
func (s *set) has(p part) bool {
	return slices.ContainsFunc(s.plugins, func(x plugin) bool { return !bytes.Equal(x.segment(p), x.segment(part{})) })
}

// host returns a host of the plugins of the set without a part.
func (s *set) host(left part) (*call.Host, error) {
	var providers []host.Provider
	for _, p := range s.plugins {
		providers = append(providers, found{m: p.Manifest, segment: p.segment(left)})
	}
	catalog, err := host.NewCatalog(providers...)
	if err != nil {
		return nil, err
	}
	return call.New(call.Config{Catalog: catalog, Policy: host.DenyAll{}})
}

// found is a plugin that can be found, but neither listed nor called: search needs none of the other methods.
type found struct {
	host.Provider
	m       *manifest.Manifest
	segment []byte
}

func (f found) Info() host.Info {
	return host.Info{Name: f.m.Name, Kind: f.m.Kind, Owner: host.OwnerShipped}
}
func (f found) Tool(name string) (*manifest.Tool, error) { return f.m.Tool(name), nil }
func (f found) Groups() ([]host.GroupLine, error)        { return nil, nil }
func (f found) Segment() ([]byte, error)                 { return f.segment, nil }
func (f found) Features() host.Features                  { return host.Features{} }

// loadSets returns the sets of the tree, whose root is the current folder; first that of this package.
func loadSets() ([]set, error) {
	shipped, err := shippedPlugins()
	if err != nil {
		return nil, err
	}
	foreign, err := foreignPlugins("testdata/search/others_tools.jsonl")
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

func shippedPlugins() (list []plugin, err error) {
	chrome := cdp.New(cdp.Config{})
	natives := map[string]host.Provider{"cdp": chrome, "page": page.New(chrome)}
	for _, name := range []string{"cdp", "js", "json", "page", "text"} {
		read := func() (plugin, error) { return wasmPlugin(name) }
		if native := natives[name]; native != nil {
			read = func() (plugin, error) { return nativePlugin(native) }
		}
		p, err := read()
		if err != nil {
			return nil, err
		}
		list = append(list, p)
	}
	return list, nil
}

func nativePlugin(p host.Provider) (plugin, error) {
	m, err := p.Manifest()
	if err != nil {
		return plugin{}, err
	}
	names, err := p.Names()
	if err != nil {
		return plugin{}, err
	}
	known := manifest.Manifest{Name: m.Name, Kind: m.Kind}
	for _, name := range names {
		t, err := p.Tool(name)
		if err != nil {
			return plugin{}, err
		}
		known.Tools = append(known.Tools, manifest.Tool{Name: t.Name, Deprecated: t.Deprecated})
	}
	return plugin{&known, host.SearchPluginOf(m), p.Features().SearchDocs()}, nil
}

func wasmPlugin(name string) (plugin, error) {
	data, err := os.ReadFile("plugins/" + name + "/manifest.json")
	if err != nil {
		return plugin{}, err
	}
	m, err := manifest.Load(data)
	if err != nil {
		return plugin{}, err
	}
	return plugin{m, host.SearchPluginOf(m), host.SearchDocs(m)}, nil
}

// maxBrief is the limit of a brief in a manifest; longer texts go into the documentation.
const maxBrief = 64

// foreignPlugins reads tools as servers of third parties describe them, in the way of the test in host/internal/index.
func foreignPlugins(path string) (list []plugin, err error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	for line := range bytes.Lines(data) {
		var t struct {
			Plugin, Name, Description string
			Params                    []struct {
				Name, Description string
				Enum              []string
			}
		}
		if err := json.Unmarshal(line, &t); err != nil {
			return nil, err
		}
		if n := len(list); n == 0 || list[n-1].About.Name != t.Plugin {
			m := &manifest.Manifest{Name: t.Plugin, Kind: manifest.KindExtism}
			list = append(list, plugin{Manifest: m, About: host.SearchPlugin{Name: t.Plugin}})
		}
		brief, rest, _ := strings.Cut(t.Description, ". ")
		d := host.SearchDoc{Name: t.Name, Brief: brief, Text: rest}
		if len(brief) > maxBrief {
			d.Brief, d.Text = brief[:maxBrief], t.Description
		}
		for _, p := range t.Params {
			d.Params = append(d.Params, host.SearchParam{Name: p.Name, Text: p.Description, Enum: p.Enum})
		}
		last := &list[len(list)-1]
		last.Docs = append(last.Docs, d)
		last.Manifest.Tools = append(last.Manifest.Tools, manifest.Tool{Name: t.Name})
	}
	return list, nil
}
