package host

import (
	"slices"

	"github.com/parley-tools/parley/manifest"
)

// GroupsOf returns the groups of a manifest in its order, for Provider.Groups.
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

// LinesOf returns the tools of a group of a manifest in its order, for Provider.Lines. "" selects tools without a
// group.
func LinesOf(m *manifest.Manifest, group string) []Line {
	lines := []Line{}
	for i := range m.Tools {
		t := &m.Tools[i]
		if t.Group != group {
			continue
		}
		lines = append(lines, Line{
			Name: t.Name, Signature: manifest.Signature(LocalName(t.Name), manifest.Params(t.Params)),
			Brief:  manifest.CleanLine(t.Docs.Brief),
			Effect: t.Effect, Deprecated: t.Deprecated != nil, Experimental: t.Experimental,
		})
	}
	return lines
}

// NamesOf returns the names of all tools of a manifest, sorted, for Provider.Names.
func NamesOf(m *manifest.Manifest) []string {
	names := make([]string, len(m.Tools))
	for i := range m.Tools {
		names[i] = m.Tools[i].Name
	}
	slices.Sort(names)
	return names
}
