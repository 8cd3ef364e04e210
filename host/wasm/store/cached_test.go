package store

import (
	"errors"
	"os"
	"testing"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/segment"
)

// A cache has the parts of a plugin without installing it, and is checked as an installed one.
func TestCached(t *testing.T) {
	s, c := Open(t.TempDir(), nil), candidate(t, "text", "1.0.0")
	e, err := s.KeepHead(NewEntry(c), c.Manifest, c.ManifestJSON)
	if err != nil {
		t.Fatal(err)
	}
	src := s.Source(e)
	d, err := src.Discover(nil)
	if err != nil || d.Head.Name != "text" || len(d.Names()) != len(c.Manifest.Tools) {
		t.Errorf("%+v %v", d, err)
	}
	if seg, err := src.Segment(); err != nil || segment.Check(seg) != nil {
		t.Error(err)
	}
	if _, err := src.Wasm(); !errors.Is(err, host.Unavailable) {
		t.Errorf("without a module: %v", err)
	}
	if err := s.KeepModule(e, c.Wasm); err != nil {
		t.Error(err)
	}
	if data, err := src.Wasm(); err != nil || string(data) != string(c.Wasm) {
		t.Error(err)
	}
	if err := s.KeepModule(e, append([]byte(nil), c.Wasm[:8]...)); err != nil {
		t.Error(err)
	}
	if _, err := src.Wasm(); !errors.Is(err, host.Integrity) {
		t.Errorf("another module: %v", err)
	}
	if entries, err := s.List(); err != nil || len(entries) > 0 {
		t.Errorf("%+v %v", entries, err)
	}
	s.Sweep([]Entry{e})
	if _, err := os.Stat(src.File); err != nil {
		t.Error(err)
	}
	s.Sweep(nil)
	if left, _ := os.ReadDir(s.Dir); len(left) > 0 {
		t.Error(left)
	}
}
