package host

import (
	"errors"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/parley-tools/parley/host/internal/index"
	"github.com/parley-tools/parley/host/protect"
)

const (
	// maxSeparate is the maximum number of installed plugins that are searched in segments of their own. For more, opening
	// the segments would take most of the time of a search, so they are merged into one file.
	maxSeparate = 24
	// mergedName is the file of the merged segment. It is replaced atomically, by a rename.
	mergedName = "merged"
	mergedTemp = "merged-*.tmp"
	maxMerged  = 1 << 30
	staleTemp  = time.Hour // age of a temporary file that was abandoned
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
	opened, err := openSegment(p)
	if err != nil {
		return nil, err
	}
	s, _ := c.searchIndex.opened.LoadOrStore(name, opened)
	return s.(*index.Segment), nil
}

func openSegment(p Provider) (*index.Segment, error) {
	raw, err := p.Segment()
	if err != nil {
		return nil, err
	}
	return index.Open(raw)
}

// mergedSegment returns the merged segment of a catalog, and the plugins that are not in it. The file is not rebuilt
// for every change: removed plugins are filtered out, and a few new ones are searched separately. A rebuild takes
// plugins that have not changed from the old file.
func (c *Catalog) mergedSegment(debug func(string, ...any)) (*index.Segment, []Provider) {
	builds := make(map[string]string, len(c.providers))
	for _, p := range c.providers {
		if info := p.Info(); info.Digest != "" && !p.Features().Overlaid {
			builds[info.Name] = info.Digest
		}
	}
	dir := c.searchIndex.dir
	if dir == "" || len(builds) <= maxSeparate {
		return nil, c.providers
	}
	if err := protect.Dir(dir); err != nil {
		debug("search: no merged index: %v", err)
		return nil, c.providers
	}
	merged, err := readMerged(dir)
	if err != nil {
		debug("search: rebuilding the merged index: %v", err)
	}
	usable, gone := usableParts(merged, builds)
	if len(builds)-len(usable)+gone > maxSeparate {
		if renewed, err := c.renewMerged(merged, usable, builds); err == nil {
			merged = renewed
			usable, _ = usableParts(merged, builds)
		} else {
			debug("search: no new merged index: %v", err)
		}
	}
	var separate []Provider
	for _, p := range c.providers {
		if !usable[p.Info().Name] {
			separate = append(separate, p)
		}
	}
	return merged, separate
}

// usableParts removes plugins of other builds from a merged segment. It returns the remaining ones, and the number of
// removed ones.
func usableParts(merged *index.Segment, builds map[string]string) (usable map[string]bool, gone int) {
	usable = make(map[string]bool, len(builds))
	if merged == nil {
		return usable, 0
	}
	merged.Keep(func(plugin, build string) bool {
		if builds[plugin] != build {
			gone++
			return false
		}
		usable[plugin] = true
		return true
	})
	return usable, gone
}

// readMerged reads the merged segment of a private folder. It returns nil without an error if the file does not exist.
func readMerged(dir string) (*index.Segment, error) {
	f, info, err := protect.Open(filepath.Join(dir, mergedName), maxMerged)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if !protect.TrustedFile(info) {
		return nil, errors.New("other users can write to it")
	}
	data, err := protect.ReadAll(f, info, maxMerged)
	if err != nil {
		return nil, err
	}
	return index.Open(data)
}

// renewMerged merges the segments of all installed plugins and stores the result. It takes usable ones from the old
// merged segment.
func (c *Catalog) renewMerged(old *index.Segment, usable map[string]bool, builds map[string]string) (*index.Segment,
	error) {
	dir := c.searchIndex.dir
	sweepMerged(dir)
	f, err := os.CreateTemp(dir, mergedTemp) // first, because merging is not worth its time if the result cannot be stored
	if err != nil {
		return nil, err
	}
	defer os.Remove(f.Name()) // fails if it has been renamed
	defer f.Close()
	var segments []*index.Segment
	if old != nil {
		segments = append(segments, old)
	}
	for _, p := range c.providers {
		name := p.Info().Name
		if builds[name] == "" || usable[name] {
			continue
		}
		segment, err := openSegment(p)
		if err != nil {
			continue // segmentsOf logs the error
		}
		segment.Keep(func(plugin, _ string) bool { return plugin == name })
		segments = append(segments, segment)
	}
	data := index.Merge(segments, func(plugin string) string { return builds[plugin] })
	if _, err := f.Write(data); err != nil {
		return nil, err
	}
	if err := f.Close(); err != nil {
		return nil, err
	}
	if err := os.Rename(f.Name(), filepath.Join(dir, mergedName)); err != nil {
		return nil, err
	}
	return index.Open(data)
}

// sweepMerged removes temporary files of processes that were killed.
func sweepMerged(dir string) {
	stale, _ := filepath.Glob(filepath.Join(dir, mergedTemp))
	for _, path := range stale {
		if info, err := os.Lstat(path); err == nil && time.Since(info.ModTime()) > staleTemp {
			_ = os.Remove(path)
		}
	}
}
