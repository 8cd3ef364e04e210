package command

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/parley-tools/parley/host/protect"
)

// TestReadOwn checks which files the host reads as its own, and that no other file blocks it.
func TestReadOwn(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	write := func(name string, data []byte) {
		if err := os.WriteFile(at(name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("file", []byte("content"))
	write("exact", make([]byte, 100))
	write("large", nil)
	if err := os.Truncate(at("large"), 300<<20); err != nil {
		t.Fatal(err)
	}
	for name, target := range map[string]string{"link": "file", "zero": "/dev/zero", "dangling": "none"} {
		if err := os.Symlink(target, at(name)); err != nil {
			t.Skipf("symbolic links are not supported: %v", err)
		}
	}
	wants := map[string]string{"file": "", "link": "", "exact": "", "large": "larger than 100 bytes", "zero": "device",
		".": "found a folder", "dangling": "no such file"}
	if os.Geteuid() == 0 {
		write("foreign", nil)
		if err := os.Chown(at("foreign"), 65534, 65534); err != nil {
			t.Fatal(err)
		}
		wants["foreign"] = "belongs to another user"
	}
	for name, want := range wants {
		if _, err := os.Stat("/dev/zero"); err != nil && name == "zero" {
			continue
		}
		_, err := protect.Read(at(name), 100)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
	}
	if _, err := protect.Read(at("none"), 100); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("missing: %v", err)
	}

	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if data, err := ReadValue(ctx, at("file"), 100); string(data) != "content" || err != nil {
		t.Errorf("value: %q, %v", data, err)
	}
	for _, name := range []string{"large", "zero", ".", "dangling"} {
		if _, err := ReadValue(ctx, at(name), 100); err == nil || ctx.Err() != nil {
			t.Errorf("value %s was read", name)
		}
	}
}
