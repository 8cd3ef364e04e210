package host

import (
	"sync"

	"github.com/parley-tools/parley/host/internal/index"
	"github.com/parley-tools/parley/host/internal/index/merged"
)

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
