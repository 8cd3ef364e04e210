// Package ranked has what benchmarks of search share: catalogs of plugins that can be found, another search to compare
// with, and scores.
package ranked

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"

	"github.com/parley-tools/parley/cdp"
	"github.com/parley-tools/parley/cdp/page"
	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/segment"
	"github.com/parley-tools/parley/manifest"
)

// Plugin is what search reads of a plugin.
type Plugin struct {
	Manifest *manifest.Manifest // names of tools, and what replaces deprecated ones
	About    segment.Plugin
	Docs     []segment.Doc
}

// Catalog returns a catalog in which plugins can be found by the search segments that segment returns.
func Catalog(plugins []Plugin, segment func(Plugin) []byte) (*host.Catalog, error) {
	var providers []host.Provider
	for _, p := range plugins {
		providers = append(providers, found{m: p.Manifest, segment: segment(p)})
	}
	return host.NewCatalog(providers...)
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

// Shipped returns the plugins that ship with Parley. The root of the tree has to be the current folder.
func Shipped() (list []Plugin, err error) {
	chrome := cdp.New(cdp.Config{})
	natives := map[string]host.Provider{"cdp": chrome, "page": page.New(chrome)}
	for _, name := range []string{"cdp", "js", "json", "page", "text"} {
		read := func() (Plugin, error) { return wasmPlugin(name) }
		if native := natives[name]; native != nil {
			read = func() (Plugin, error) { return nativePlugin(native) }
		}
		p, err := read()
		if err != nil {
			return nil, err
		}
		list = append(list, p)
	}
	return list, nil
}

func nativePlugin(p host.Provider) (Plugin, error) {
	m, err := p.Manifest()
	if err != nil {
		return Plugin{}, err
	}
	names, err := p.Names()
	if err != nil {
		return Plugin{}, err
	}
	known := manifest.Manifest{Name: m.Name, Kind: m.Kind}
	for _, name := range names {
		t, err := p.Tool(name)
		if err != nil {
			return Plugin{}, err
		}
		known.Tools = append(known.Tools, manifest.Tool{Name: t.Name, Deprecated: t.Deprecated})
	}
	return Plugin{&known, segment.PluginOf(m), p.Features().SearchDocs()}, nil
}

func wasmPlugin(name string) (Plugin, error) {
	data, err := os.ReadFile("plugins/" + name + "/manifest.json")
	if err != nil {
		return Plugin{}, err
	}
	m, err := manifest.Load(data)
	if err != nil {
		return Plugin{}, err
	}
	return Plugin{m, segment.PluginOf(m), segment.DocsOf(m)}, nil
}

// maxBrief is the limit of a brief in a manifest; longer texts go into the documentation.
const maxBrief = 64

// Foreign reads tools as servers of third parties describe them, in the way of the test in host/internal/index.
func Foreign(path string) (list []Plugin, err error) {
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
			list = append(list, Plugin{Manifest: m, About: segment.Plugin{Name: t.Plugin}})
		}
		d := segment.Doc{Name: t.Name}
		d.Brief, d.Text = Described(t.Description)
		for _, p := range t.Params {
			d.Params = append(d.Params, segment.Param{Name: p.Name, Text: p.Description, Enum: p.Enum})
		}
		last := &list[len(list)-1]
		last.Docs = append(last.Docs, d)
		last.Manifest.Tools = append(last.Manifest.Tools, manifest.Tool{Name: t.Name})
	}
	return list, nil
}

// Score is what a query reaches: success@1, success@5 and NDCG@10.
type Score [3]float64

// Described returns the brief and the longer text of a tool that has one description.
func Described(description string) (brief, text string) {
	brief, text, _ = strings.Cut(description, ". ")
	if len(brief) > maxBrief {
		return strings.ToValidUTF8(brief[:maxBrief], ""), description
	}
	return brief, text
}

// Rate scores a ranking that is not that of a host. A test compares it with [eval.Evaluate].
func Rate(ranked []string, relevant map[string]float64) (s Score) {
	grades := slices.Sorted(maps.Values(relevant))
	slices.Reverse(grades)
	gain := func(rank int, grade float64) float64 { return (math.Exp2(grade) - 1) / math.Log2(float64(rank)+2) }
	ideal := 0.0
	for i, grade := range grades[:min(10, len(grades))] {
		ideal += gain(i, grade)
	}
	for i, name := range ranked {
		s[2] += gain(i, relevant[name]) / ideal
		for k, depth := range []int{1, 5} {
			if i < depth && relevant[name] >= min(2, grades[0]) {
				s[k] = 1
			}
		}
	}
	return s
}

// Interval returns the mean of values with its 95 % interval: the quantiles of the means of samples with replacement.
// The samples are the same in every run.
func Interval(format string, values []float64) (text string, low, high float64) {
	const samples = 4000
	random := rand.New(rand.NewPCG(1, 0))
	mean, means := 0.0, make([]float64, samples)
	for _, v := range values {
		mean += v / float64(len(values))
	}
	for i := range means {
		for range values {
			means[i] += values[random.IntN(len(values))] / float64(len(values))
		}
	}
	slices.Sort(means)
	low, high = means[samples*25/1000], means[samples*975/1000-1]
	return fmt.Sprintf(format+" ("+format+" to "+format+")", mean, low, high), low, high
}
