// Package durabletest lets tests see what a process flushes to disk, and when.
package durabletest

import (
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/parley-tools/parley/internal/durable"
)

// Disk records what is flushed.
type Disk struct {
	Err     error             // the error that each flush returns
	OnFlush func(path string) // if set, called with each path when it is flushed

	mu      sync.Mutex
	flushed []string
}

// Watch makes the process flush to the returned disk until the test ends.
func Watch(t testing.TB) *Disk {
	d := &Disk{}
	t.Cleanup(durable.Replace(d))
	return d
}

// SyncFile implements [durable.Disk].
func (d *Disk) SyncFile(f *os.File) error { return d.flush(f.Name()) }

// SyncDir implements [durable.Disk].
func (d *Disk) SyncDir(path string) error { return d.flush(path) }

func (d *Disk) flush(path string) error {
	if d.OnFlush != nil {
		d.OnFlush(path)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.flushed = append(d.flushed, path)
	return d.Err
}

// Took returns the paths that were flushed since its last call. Paths within dir are relative to it.
func (d *Disk) Took(dir string) []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	paths := slices.Clone(d.flushed)
	d.flushed = nil
	for i, path := range paths {
		if rel, err := filepath.Rel(dir, path); err == nil && filepath.IsLocal(rel) {
			paths[i] = rel
		}
	}
	return paths
}
