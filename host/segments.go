package host

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/parley-tools/parley/host/internal/index"
	"github.com/parley-tools/parley/host/internal/private"
)

const (
	// maxSeparate is how many plugins with a digest may be searched each in its own segment. Beyond that opening them costs more than
	// all the rest, and they are searched in one that is merged of theirs and kept.
	maxSeparate = 24
	// mergedName is the file of the merged segment. It is only ever replaced whole, by a rename.
	mergedName = "merged"
	mergedTemp = "merged-*.tmp"
	maxMerged  = 1 << 30
	staleTemp  = time.Hour // a file that is being written for so long was left behind
)

// searched are the segments of a catalog as a search over all of them takes them.
type searchIndex struct {
	dir      string // where the merged one is kept; "" keeps none
	once     sync.Once
	merged   *index.Segment // nil: none is needed, or none can be kept
	separate []Provider     // those that are not in it

	opened sync.Map // plugin -> *index.Segment
}

// KeepSearchIn names the folder in which the search index of many plugins is kept, so that a process need not open that of each. It
// is to be called before the first search.
func (c *Catalog) KeepSearchIn(dir string) { c.searchIndex.dir = dir }

// segmentsOf opens the segments of plugins; one that cannot be used is left out, and debug, if given, told.
func (c *Catalog) segmentsOf(providers []Provider, debug func(string, ...any)) (list []*index.Segment) {
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

// segment opens a plugin's search segment once: what it learns of its words it keeps for the next query.
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

// mergedSegment returns the merged segment of a catalog, and the plugins that are not in it. The file is not made anew for every
// change: plugins that are gone are left out of it, and a few new ones are searched beside it. When it is made anew, plugins that
// have not changed are taken from the old one.
func (c *Catalog) mergedSegment(debug func(string, ...any)) (*index.Segment, []Provider) {
	builds := make(map[string]string, len(c.providers))
	for _, p := range c.providers {
		if info := p.Info(); info.Digest != "" {
			builds[info.Name] = info.Digest
		}
	}
	dir := c.searchIndex.dir
	if dir == "" || len(builds) <= maxSeparate {
		return nil, c.providers
	}
	if err := private.Dir(dir); err != nil {
		debug("search: no merged index: %v", err)
		return nil, c.providers
	}
	merged, err := readMerged(dir)
	if err != nil {
		debug("search: the merged index is made anew: %v", err)
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

// usableParts leaves the plugins out of a merged segment that are not of these builds. It returns those that remain, and how many do not.
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

// readMerged reads the merged segment of a folder that is private. Nothing is said of one that is not there yet.
func readMerged(dir string) (*index.Segment, error) {
	f, err := os.Open(filepath.Join(dir, mergedName))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular(), !private.TrustedFile(info):
		return nil, errors.New("others may write to it")
	case info.Size() > maxMerged:
		return nil, fmt.Errorf("it has %d bytes", info.Size())
	}
	data := make([]byte, info.Size())
	if _, err := io.ReadFull(f, data); err != nil {
		return nil, err
	}
	return index.Open(data)
}

// renewMerged merges the segments of all plugins with a digest, those that are usable from the old merged one, and keeps the result.
func (c *Catalog) renewMerged(old *index.Segment, usable map[string]bool, builds map[string]string) (*index.Segment, error) {
	dir := c.searchIndex.dir
	sweepMerged(dir)
	f, err := os.CreateTemp(dir, mergedTemp) // before the work: where nothing can be kept, merging once a process costs more than it saves
	if err != nil {
		return nil, err
	}
	defer os.Remove(f.Name()) // fails when it was renamed
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
			continue // searching without it says why
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

// sweepMerged removes what killed processes left.
func sweepMerged(dir string) {
	stale, _ := filepath.Glob(filepath.Join(dir, mergedTemp))
	for _, path := range stale {
		if info, err := os.Lstat(path); err == nil && time.Since(info.ModTime()) > staleTemp {
			_ = os.Remove(path)
		}
	}
}
