package host

import (
	"encoding/json"
	"strings"
	"sync"

	"github.com/parley-tools/parley/host/internal/index"
	"github.com/parley-tools/parley/host/internal/index/merged"
	"github.com/parley-tools/parley/internal/lists"
	"github.com/parley-tools/parley/manifest"
)

// SearchDoc is a tool, event or type as search indexes it; see [BuildSegment].
type SearchDoc = index.Doc

// SearchParam is a parameter in a [SearchDoc].
type SearchParam = index.Param

// SearchPlugin is what search indexes of a plugin itself.
type SearchPlugin = index.Plugin

// BuildSegment returns the search segment of a plugin. It is built when the plugin is installed, or generated if the
// plugin is built in, and combined with the segments of other plugins at query time.
func BuildSegment(plugin SearchPlugin, docs []SearchDoc) []byte { return index.Build(plugin, docs) }

// ManifestSegment returns the search segment of a manifest.
func ManifestSegment(m *manifest.Manifest) []byte {
	return BuildSegment(SearchPluginOf(m), SearchDocs(m))
}

// SearchPluginOf returns what search indexes of a plugin itself: its brief, its standard documentation, its keywords.
func SearchPluginOf(m *manifest.Manifest) SearchPlugin {
	return SearchPlugin{
		Name: m.Name, Text: manifest.CleanLine(m.Docs.Brief + " " + m.Docs.Standard), Keywords: cleanPhrases(m.Keywords),
	}
}

// SegmentUsable returns an error if call.Host.Search cannot read a segment.
func SegmentUsable(segment []byte) error {
	_, err := index.Open(segment)
	return err
}

// SearchDocs returns the tools of a manifest as search indexes them.
func SearchDocs(m *manifest.Manifest) []SearchDoc {
	docs := make([]SearchDoc, 0, len(m.Tools))
	for i := range m.Tools {
		docs = append(docs, SearchDocOf(&m.Tools[i]))
	}
	return docs
}

// SearchDocOf returns a tool as search indexes it.
func SearchDocOf(t *manifest.Tool) SearchDoc {
	params := manifest.Params(t.Params)
	d := SearchDoc{
		Name: t.Name, Group: t.Group, Category: t.Category, Effect: t.Effect,
		Brief: manifest.CleanLine(t.Docs.Brief), Signature: manifest.Signature(LocalName(t.Name), params),
		Deprecated: t.Deprecated != nil, Experimental: t.Experimental,
		Text:    manifest.CleanLine(strings.Join([]string{t.Docs.Standard, t.Docs.Full, t.When}, " ")),
		Aliases: cleanPhrases(t.Aliases), Keywords: cleanPhrases(t.Keywords), Tasks: cleanPhrases(t.Tasks),
	}
	for _, p := range params {
		sp := SearchParam{Name: p.Name, Text: manifest.CleanLine(p.Description)}
		for _, v := range p.Enum {
			sp.Enum = append(sp.Enum, strings.Trim(string(v), `"`))
		}
		d.Params = append(d.Params, sp)
	}
	return d
}

// cleanPhrases removes control characters from phrases of a plugin, because results repeat a phrase as the reason of a
// hit.
func cleanPhrases(phrases []string) []string { return lists.Map(phrases, manifest.CleanLine) }

// SearchQuery is a query with filters. An empty filter matches everything.
type SearchQuery struct {
	Text, Plugin, Group, Effect, Category string

	Kind    string // tool (default), event or type
	Limit   int    // 0: 10
	Explain bool
}

// SearchPart is one contribution to a score.
type SearchPart = index.Part

// SearchData is the result of a search.
type SearchData struct {
	Query         string         `json:"query"`
	Total         int            `json:"total"`
	Results       []SearchResult `json:"results"`
	NearestGroups []string       `json:"nearest_groups,omitempty"`

	Signals        []float64 `json:"-"` // with Explain: what decides whether to warn that nothing matches well
	Foreign, Whole bool      `json:"-"` // the query is probably not in English; Query is the whole query
}

// SearchResult is one hit.
type SearchResult struct {
	Name         string       `json:"name"` // qualified
	Brief        string       `json:"brief"`
	Why          string       `json:"why"`
	Score        float64      `json:"score"`
	Confidence   string       `json:"confidence"`
	Signature    string       `json:"signature,omitempty"`
	Template     *Template    `json:"template,omitempty"` // set for the first three results
	Effect       string       `json:"effect,omitempty"`
	Kind         string       `json:"kind,omitempty"` // "event" or "type"
	Deprecated   bool         `json:"deprecated,omitempty"`
	Experimental bool         `json:"experimental,omitempty"`
	Unsigned     bool         `json:"unsigned,omitempty"` // its plugin is neither shipped nor signed with a trusted key
	Parts        []SearchPart `json:"parts,omitempty"`
	// Typed is the qualified name and signature as texts show it, with the values of enums and the type of the result.
	Typed string `json:"-"`
}

// Template is a call of a tool to fill in: Params has a hole, "<name: type, what it is>", for each parameter that is
// required, or for the positional ones if none is. Texts also show Others, which names other parameters with their
// types: "timeout: integer, format: \"png\"|\"webp\"".
type Template struct {
	Tool   string          `json:"tool"` // qualified
	Params json.RawMessage `json:"params"`
	Others string          `json:"-"`
}

// String returns the template as texts show it.
func (t *Template) String() string {
	if t.Others == "" {
		return string(t.Params)
	}
	return string(t.Params) + "  or also " + t.Others
}

// searchIndex holds the open segments of a catalog.
type searchIndex struct {
	dir      string // folder of the merged segment; "": none
	once     sync.Once
	merged   *index.Segment // nil: not needed, or it cannot be stored
	separate []Provider     // plugins that are not in merged

	opened sync.Map // plugin -> *index.Segment
}

// KeepSearchIn sets the folder in which the merged search index of many plugins is stored, so that a process does not
// have to open the segment of each. Call it before the first search. Without it no merged index is used.
func (c *Catalog) KeepSearchIn(dir string) { c.searchIndex.dir = dir }

// SegmentsOf opens the segments of plugins. It skips and logs those that cannot be read. debug may be nil.
func (c *Catalog) SegmentsOf(providers []Provider, debug func(string, ...any)) (list []*index.Segment) {
	if debug == nil {
		debug = func(string, ...any) {}
	}
	if s := &c.searchIndex; len(providers) == len(c.providers) {
		s.once.Do(func() { s.merged, s.separate = c.mergedSegment(debug) })
		if s.merged != nil {
			list = append(list, s.merged)
		}
		providers = s.separate
	}
	for _, p := range providers {
		segment, err := c.segment(p)
		if err != nil {
			debug("search: %s has no usable index: %v", p.Info().Name, err)
			continue
		}
		list = append(list, segment)
	}
	return list
}

// segment opens a plugin's search segment once, because an open segment caches what it has decoded.
func (c *Catalog) segment(p Provider) (*index.Segment, error) {
	name := p.Info().Name
	if s, ok := c.searchIndex.opened.Load(name); ok {
		return s.(*index.Segment), nil
	}
	opened, err := index.OpenFrom(p.Segment)
	if err != nil {
		return nil, err
	}
	s, _ := c.searchIndex.opened.LoadOrStore(name, opened)
	return s.(*index.Segment), nil
}

// mergedSegment returns the merged segment of a catalog, and the plugins that are not in it.
func (c *Catalog) mergedSegment(debug func(string, ...any)) (segment *index.Segment, separate []Provider) {
	if c.searchIndex.dir == "" {
		return nil, c.providers
	}
	var plugins []merged.Plugin
	for _, p := range c.providers {
		if info := p.Info(); info.Digest != "" && !p.Features().Overlaid {
			plugins = append(plugins, merged.Plugin{Name: info.Name, Build: info.Digest, Segment: p.Segment})
		}
	}
	segment, found := merged.Open(c.searchIndex.dir, plugins, debug)
	for _, p := range c.providers {
		if !found[p.Info().Name] {
			separate = append(separate, p)
		}
	}
	return segment, separate
}
