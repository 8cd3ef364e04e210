// Package merged keeps the search segments of many plugins in one file, so that a process does not have to open the
// segment of each.
package merged

import (
	"errors"
	"os"
	"path/filepath"
	"time"

	"github.com/parley-tools/parley/host/internal/index"
	"github.com/parley-tools/parley/host/protect"
)

const (
	// maxSeparate is the maximum number of plugins that are searched in segments of their own. For more, opening the
	// segments would take most of the time of a search, so they are merged into one file.
	maxSeparate = 24
	// fileName is the file of the merged segment. It is replaced atomically, by a rename.
	fileName  = "merged"
	tempName  = "merged-*.tmp"
	maxSize   = 1 << 30
	staleTemp = time.Hour // age of a temporary file that was abandoned
)

// Plugin is a plugin whose segment can be merged.
type Plugin struct {
	Name, Build string // another build has another segment
	Segment     func() ([]byte, error)
}

// Open returns the merged segment in a folder, nil if it is not needed or cannot be stored, and the names of the
// plugins that it finds. The file is not rebuilt for every change: removed plugins are filtered out, and a few new ones
// are left to be searched separately. A rebuild takes plugins that have not changed from the old file.
func Open(dir string, plugins []Plugin, debug func(string, ...any)) (segment *index.Segment, found map[string]bool) {
	if len(plugins) <= maxSeparate {
		return nil, nil
	}
	if err := protect.Dir(dir); err != nil {
		debug("search: no merged index: %v", err)
		return nil, nil
	}
	builds := make(map[string]string, len(plugins))
	for _, p := range plugins {
		builds[p.Name] = p.Build
	}
	segment, err := read(dir)
	if err != nil {
		debug("search: rebuilding the merged index: %v", err)
	}
	found, gone := usable(segment, builds)
	if len(builds)-len(found)+gone > maxSeparate {
		if renewed, err := renew(dir, segment, found, plugins, builds); err == nil {
			segment = renewed
			found, _ = usable(segment, builds)
		} else {
			debug("search: no new merged index: %v", err)
		}
	}
	return segment, found
}

// usable removes plugins of other builds from a merged segment. It returns the remaining ones, and the number of
// removed ones.
func usable(segment *index.Segment, builds map[string]string) (found map[string]bool, gone int) {
	found = make(map[string]bool, len(builds))
	if segment == nil {
		return found, 0
	}
	segment.Keep(func(plugin, build string) bool {
		if builds[plugin] != build {
			gone++
			return false
		}
		found[plugin] = true
		return true
	})
	return found, gone
}

// read reads the merged segment of a private folder. It returns nil without an error if the file does not exist.
func read(dir string) (*index.Segment, error) {
	f, info, err := protect.Open(filepath.Join(dir, fileName), maxSize)
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
	data, err := protect.ReadAll(f, info, maxSize)
	if err != nil {
		return nil, err
	}
	return index.Open(data)
}

// renew merges the segments of all plugins and stores the result. It takes those of found from the old merged segment.
func renew(dir string, old *index.Segment, found map[string]bool, plugins []Plugin, builds map[string]string) (
	*index.Segment, error) {
	sweep(dir)
	f, err := os.CreateTemp(dir, tempName) // first, because merging is not worth its time if the result cannot be stored
	if err != nil {
		return nil, err
	}
	defer os.Remove(f.Name()) // fails if it has been renamed
	defer f.Close()
	var segments []*index.Segment
	if old != nil {
		segments = append(segments, old)
	}
	for _, p := range plugins {
		if found[p.Name] {
			continue
		}
		segment, err := index.OpenFrom(p.Segment)
		if err != nil {
			continue // the plugin stays separate, where the error is logged
		}
		segment.Keep(func(plugin, _ string) bool { return plugin == p.Name })
		segments = append(segments, segment)
	}
	data := index.Merge(segments, func(plugin string) string { return builds[plugin] })
	if _, err := f.Write(data); err != nil {
		return nil, err
	}
	if err := f.Close(); err != nil {
		return nil, err
	}
	if err := os.Rename(f.Name(), filepath.Join(dir, fileName)); err != nil {
		return nil, err
	}
	return index.Open(data)
}

// sweep removes temporary files of processes that were killed.
func sweep(dir string) {
	stale, _ := filepath.Glob(filepath.Join(dir, tempName))
	for _, path := range stale {
		if info, err := os.Lstat(path); err == nil && time.Since(info.ModTime()) > staleTemp {
			_ = os.Remove(path)
		}
	}
}
