package store

import (
	"errors"
	"os"
	"path/filepath"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/segment"
	"github.com/parley-tools/parley/host/step"
	"github.com/parley-tools/parley/host/wasm/internal/world"
	"github.com/parley-tools/parley/manifest"
)

// KeepHead writes the parts of a plugin that lists, searches and descriptions read, which is everything but its
// module, into a store that is used as a cache. It returns the entry with the hash of the index, for [Store.Source].
// It does not flush to the disk, and lock.json does not list the plugin.
func (s *Store) KeepHead(e Entry, m *manifest.Manifest, manifestJSON []byte) (Entry, error) {
	tools, err := encodeTools(m, manifestJSON)
	if err != nil {
		return e, host.Errorf(host.InvalidPlugin, "cannot index the tools of %s: %v", e.Name, err)
	}
	e.ToolsSHA256 = hashOf(tools)
	dir := s.pluginDir(e)
	return e, errors.Join(keep(dir, manifestName, manifestJSON),
		keep(dir, segmentName, wrapSegment(e.Digest, segment.Of(m))), keep(dir, toolsName, tools))
}

// KeepModule writes the module of a plugin next to the files from [Store.KeepHead].
func (s *Store) KeepModule(e Entry, wasm []byte) error { return keep(s.pluginDir(e), wasmName, wasm) }

func keep(dir, name string, data []byte) error {
	var f *os.File
	err := os.MkdirAll(dir, 0o700)
	if err == nil {
		f, err = os.CreateTemp(dir, name+"-*"+TempSuffix)
	}
	if err == nil {
		_, err = f.Write(data)
		if err = errors.Join(err, f.Close()); err == nil {
			err = os.Rename(f.Name(), filepath.Join(dir, name))
		}
	}
	if err != nil {
		return world.Failed(host.Unavailable, err, "cannot write the cache of published plugins: %v", err).
			WithSteps(step.Operator(step.OpDoctor))
	}
	return nil
}
