package durable_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/parley-tools/parley/internal/durable"
	"github.com/parley-tools/parley/internal/durable/durabletest"
)

func TestDisk(t *testing.T) {
	dir := t.TempDir()
	f, err := os.Create(filepath.Join(dir, "file"))
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(durable.Sync(f), durable.SyncDir(dir), f.Close()); err != nil {
		t.Error(err)
	}
	if durable.Sync(f) == nil || durable.SyncDir(filepath.Join(dir, "none")) == nil {
		t.Error("flushing succeeded although it cannot")
	}
	t.Run("watched", func(t *testing.T) {
		disk := durabletest.Watch(t)
		disk.Err = errors.New("full")
		if err := durable.Sync(f); err != disk.Err {
			t.Error(err)
		}
		if err := durable.SyncDir(dir); err != disk.Err {
			t.Error(err)
		}
		if got := disk.Took(dir); !slices.Equal(got, []string{"file", "."}) {
			t.Error(got)
		}
	})
	if durable.Sync(f) == nil {
		t.Error("the disk was not restored")
	}
}

// Rename replaces a file with one that is on the disk, or leaves the old one and nothing else.
func TestRename(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "file")
	disk := durabletest.Watch(t)
	write := func(data string) error {
		f, err := os.Create(path + ".new")
		if err != nil {
			t.Fatal(err)
		}
		return durable.Rename(f, path, []byte(data))
	}
	if err := write("old"); err != nil {
		t.Error(err)
	}
	if got := disk.Took(dir); !slices.Equal(got, []string{"file.new", "."}) {
		t.Errorf("flushed %q", got)
	}
	disk.Err = errors.New("full")
	if err := write("new"); !errors.Is(err, disk.Err) {
		t.Error(err)
	}
	if data, err := os.ReadFile(path); err != nil || string(data) != "old" {
		t.Errorf("%q, %v", data, err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("%v, %v", entries, err)
	}
}
