// Package segment builds a plugin's part of the search index.
package segment

import (
	"strings"

	"github.com/parley-tools/parley/host/internal/index"
	"github.com/parley-tools/parley/internal/lists"
	"github.com/parley-tools/parley/manifest"
)

// Doc is a tool, event or type as search indexes it; see [Build].
type Doc = index.Doc

// Param is a parameter in a [Doc].
type Param = index.Param

// Plugin is what search indexes of a plugin itself.
type Plugin = index.Plugin

// Build returns the search segment of a plugin. It is built when the plugin is installed, or generated if the
// plugin is built in, and combined with the segments of other plugins at query time.
func Build(plugin Plugin, docs []Doc) []byte { return index.Build(plugin, docs) }

// Of returns the search segment of a manifest.
func Of(m *manifest.Manifest) []byte {
	return Build(PluginOf(m), DocsOf(m))
}

// PluginOf returns what search indexes of a plugin itself: its brief, its standard documentation, its keywords.
func PluginOf(m *manifest.Manifest) Plugin {
	return Plugin{
		Name: m.Name, Text: manifest.CleanLine(m.Docs.Brief + " " + m.Docs.Standard), Keywords: cleanPhrases(m.Keywords),
	}
}

// Check returns an error if call.Host.Search cannot read a segment.
func Check(segment []byte) error {
	_, err := index.Open(segment)
	return err
}

// DocsOf returns the tools of a manifest as search indexes them.
func DocsOf(m *manifest.Manifest) []Doc {
	docs := make([]Doc, 0, len(m.Tools))
	for i := range m.Tools {
		docs = append(docs, DocOf(&m.Tools[i]))
	}
	return docs
}

// DocOf returns a tool as search indexes it.
func DocOf(t *manifest.Tool) Doc {
	params := manifest.Params(t.Params)
	d := Doc{
		Name: t.Name, Group: t.Group, Category: t.Category, Effect: t.Effect,
		Brief: manifest.CleanLine(t.Docs.Brief), Signature: manifest.Signature(manifest.LocalName(t.Name), params),
		Deprecated: t.Deprecated != nil, Experimental: t.Experimental,
		Text:    manifest.CleanLine(strings.Join([]string{t.Docs.Standard, t.Docs.Full, t.When}, " ")),
		Aliases: cleanPhrases(t.Aliases), Keywords: cleanPhrases(t.Keywords), Tasks: cleanPhrases(t.Tasks),
	}
	for _, p := range params {
		sp := Param{Name: p.Name, Text: manifest.CleanLine(p.Description)}
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
