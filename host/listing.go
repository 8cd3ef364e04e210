package host

import (
	"slices"

	"github.com/parley-tools/parley/manifest"
)

// GroupsOf is what a provider with a whole manifest answers to Groups: in the manifest's order.
func GroupsOf(m *manifest.Manifest) []GroupLine {
	counts := map[string]int{}
	for i := range m.Tools {
		counts[m.Tools[i].Group]++
	}
	lines := []GroupLine{}
	for _, g := range m.Groups {
		lines = append(lines, GroupLine{Name: g.Name, Brief: manifest.CleanLine(g.Docs.Brief), Tools: counts[g.Name]})
	}
	return lines
}

// LinesOf is what it answers to Lines: the tools of a group, "" for those of none, in the manifest's order.
func LinesOf(m *manifest.Manifest, group string) []Line {
	lines := []Line{}
	for i := range m.Tools {
		t := &m.Tools[i]
		if t.Group != group {
			continue
		}
		lines = append(lines, Line{
			Name: t.Name, Signature: manifest.Signature(Bare(t.Name), manifest.Params(t.Params)), Brief: manifest.CleanLine(t.Docs.Brief),
			Effect: t.Effect, Deprecated: t.Deprecated != nil, Experimental: t.Experimental,
		})
	}
	return lines
}

// NamesOf is what it answers to Names: those of all tools, sorted.
func NamesOf(m *manifest.Manifest) []string {
	names := make([]string, len(m.Tools))
	for i := range m.Tools {
		names[i] = m.Tools[i].Name
	}
	slices.Sort(names)
	return names
}
