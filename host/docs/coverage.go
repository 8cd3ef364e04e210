package docs

import (
	"encoding/json"
	"math"
	"slices"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/manifest"
	"github.com/parley-tools/parley/manifest/spelling"
)

// Coverage is how much of a catalog is documented.
type Coverage struct {
	Plugins []PluginCoverage `json:"plugins"`
	Total   PluginCoverage   `json:"total"`
}

// PluginCoverage is the coverage of one plugin, or of all of them in [Coverage.Total].
type PluginCoverage struct {
	Plugin     string `json:"plugin,omitempty"`
	Groups     Share  `json:"groups"`     // groups with a brief
	Tools      Share  `json:"tools"`      // tools with a brief
	Parameters Share  `json:"parameters"` // parameters with a description
	Shown      Share  `json:"shown"`      // parameters that an example of their tool has
	Examples   Share  `json:"examples"`   // tools with an example
	Verified   Share  `json:"verified"`   // examples that were run and ended as they say
	// Errors counts tools with structured errors: the host validates their parameters, and they declare exit codes.
	Errors Share `json:"errors"`
	Tasks  Share `json:"tasks"` // tools with a task phrase, by which search finds them
	// WithoutTasks are the qualified names of the tools that have none.
	WithoutTasks []string `json:"without_tasks,omitempty"`
}

// Share is a number of things, and how many of them have what is counted.
type Share struct {
	Total int     `json:"total"`
	Have  int     `json:"have"`
	Share float64 `json:"share"` // 1 if Total is 0
}

func (s *Share) count(has bool) {
	s.Total++
	if has {
		s.Have++
	}
}

func (s *Share) add(other Share) {
	s.Total += other.Total
	s.Have += other.Have
}

func (s *Share) finish() {
	s.Share = 1
	if s.Total > 0 {
		s.Share = math.Floor(float64(s.Have)/float64(s.Total)*1e4) / 1e4 // rounded down, so that 1 means all of them
	}
}

// Cover measures the coverage of every plugin in a catalog.
func Cover(catalog *host.Catalog) (*Coverage, error) {
	c := &Coverage{Plugins: []PluginCoverage{}}
	for _, p := range catalog.Providers() {
		one, err := coverPlugin(p)
		if err != nil {
			return nil, err
		}
		for i, sum := range c.Total.shares() {
			sum.add(*one.shares()[i])
		}
		one.finish()
		c.Plugins = append(c.Plugins, one)
	}
	c.Total.finish()
	return c, nil
}

func (p *PluginCoverage) shares() []*Share {
	return []*Share{&p.Groups, &p.Tools, &p.Parameters, &p.Shown, &p.Examples, &p.Verified, &p.Errors, &p.Tasks}
}

func (p *PluginCoverage) finish() {
	for _, s := range p.shares() {
		s.finish()
	}
}

func coverPlugin(p host.Provider) (PluginCoverage, error) {
	info := p.Info()
	c := PluginCoverage{Plugin: info.Name}
	groups, err := p.Groups()
	if err != nil {
		return c, err
	}
	for _, g := range groups {
		c.Groups.count(describes(g.Brief, g.Name))
	}
	names, err := p.Names()
	if err != nil {
		return c, err
	}
	for _, name := range names {
		t, err := p.Tool(name)
		if err != nil {
			return c, err
		}
		if t == nil {
			continue
		}
		c.Tools.count(describes(t.Docs.Brief, t.Name))
		shown := shownIn(t.Examples)
		for _, param := range manifest.Params(t.Params) {
			c.Parameters.count(describes(param.Description, param.Name))
			c.Shown.count(shown[param.Name])
		}
		c.Examples.count(len(t.Examples) > 0)
		for _, e := range t.Examples {
			c.Verified.count(e.IsVerified())
		}
		c.Errors.count(info.Kind != manifest.KindExtism && len(t.ExitCodes) > 0)
		c.Tasks.count(len(t.Tasks) > 0)
		if len(t.Tasks) == 0 {
			c.WithoutTasks = append(c.WithoutTasks, info.Name+"."+t.Name)
		}
	}
	slices.Sort(c.WithoutTasks)
	return c, nil
}

// shownIn returns the names of the parameters that examples have.
func shownIn(examples []manifest.Example) map[string]bool {
	shown := map[string]bool{}
	for _, e := range examples {
		var params map[string]json.RawMessage
		if json.Unmarshal(e.Params, &params) != nil {
			continue
		}
		for name := range params {
			shown[name] = true
		}
	}
	return shown
}

// describes reports whether a text says more than a name does: it has a word that is not one of the name's.
func describes(text, name string) bool {
	known := spelling.Words(name)
	return slices.ContainsFunc(spelling.Words(manifest.CleanLine(text)), func(word string) bool {
		isKnown := func(k string) bool { return sameWord(k, word) }
		return !slices.Contains(fillers, word) && !slices.ContainsFunc(known, isKnown)
	})
}

// fillers are words that say nothing by themselves.
var fillers = []string{"a", "an", "the", "of", "for", "to", "this", "that", "is", "be", "it", "its", "in", "on", "and",
	"or", "given", "value", "parameter", "param", "argument", "option", "tool"}

// sameWord reports whether two words are the same but for an ending.
func sameWord(a, b string) bool {
	for _, ending := range []string{"s", "es", "d", "ed", "ing"} {
		if a+ending == b || b+ending == a {
			return true
		}
	}
	return a == b
}
