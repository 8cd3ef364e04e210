package docs

import (
	"math"
	"slices"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/manifest"
)

// Coverage says how much of a catalog is explained.
type Coverage struct {
	Plugins []PluginCoverage `json:"plugins"`
	Total   PluginCoverage   `json:"total"`
}

// PluginCoverage is one plugin's part, or the sum of all.
type PluginCoverage struct {
	Plugin     string `json:"plugin,omitempty"`
	Groups     Share  `json:"groups"`     // with a text of their own
	Tools      Share  `json:"tools"`      // with a text of their own
	Parameters Share  `json:"parameters"` // with a text of their own
	Examples   Share  `json:"examples"`   // tools with an example
	Errors     Share  `json:"errors"`     // tools with structured errors: parameters that the host checks, and declared exit codes
	Tasks      Share  `json:"tasks"`      // tools with a phrase that says what they are for
	// WithoutTasks are the tools that none of those leads to.
	WithoutTasks []string `json:"without_tasks,omitempty"`
}

// Share is how many of all have something.
type Share struct {
	Total int     `json:"total"`
	Have  int     `json:"have"`
	Share float64 `json:"share"` // 1 where there are none
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
		s.Share = math.Floor(float64(s.Have)/float64(s.Total)*1e4) / 1e4 // all of them, and only all, are 1
	}
}

// Cover counts what a catalog explains.
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
	return []*Share{&p.Groups, &p.Tools, &p.Parameters, &p.Examples, &p.Errors, &p.Tasks}
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
		c.Groups.count(manifest.CleanLine(g.Brief) != "")
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
		c.Tools.count(manifest.CleanLine(t.Docs.Brief) != "")
		for _, param := range manifest.Params(t.Params) {
			c.Parameters.count(param.Description != "")
		}
		c.Examples.count(len(t.Examples) > 0)
		c.Errors.count(info.Kind != manifest.KindMCP && len(t.ExitCodes) > 0)
		c.Tasks.count(len(t.Tasks) > 0)
		if len(t.Tasks) == 0 {
			c.WithoutTasks = append(c.WithoutTasks, info.Name+"."+t.Name)
		}
	}
	slices.Sort(c.WithoutTasks)
	return c, nil
}
