package store

import (
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/parley-tools/parley/host"
)

// TestUnwritableDisk fills a small file system and makes it read-only.
func TestUnwritableDisk(t *testing.T) {
	dir := t.TempDir()
	if err := unix.Mount("none", dir, "tmpfs", 0, "size=256k,mode=700"); err != nil {
		t.Skipf("cannot mount a file system: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	s := Open(dir, nil)
	c := candidate(t, "text", "1.0.0")
	entry, _, err := s.Install(c, false)
	if err != nil {
		t.Fatal(err)
	}
	var full error
	for _, name := range []string{"a", "b", "c", "d", "e"} { // 50 kB each
		if _, _, err := s.Install(candidate(t, name, "1.0.0"), false); err != nil {
			full = err
			break
		}
	}
	wantError(t, "full", full, host.Unavailable, "no space left on device; installed plugins are unchanged")
	before := names(t, s)
	if remaining := digestDirs(t, dir); len(remaining) != len(strings.Fields(before)) {
		t.Errorf("folders %v for the plugins %s", remaining, before)
	}
	checkSource(t, s.Source(entry), c)

	// Removing a plugin requires little space for the new lock file, and frees more.
	if _, err := s.Remove("a"); err != nil {
		t.Errorf("remove on a full disk: %v", err)
	}
	before = names(t, s)
	if err := unix.Mount("none", dir, "tmpfs", unix.MS_REMOUNT|unix.MS_RDONLY, "size=256k"); err != nil {
		t.Skipf("cannot remount it read-only: %v", err)
	}
	_, _, err = s.Install(candidate(t, "z", "1.0.0"), false)
	wantError(t, "read-only", err, host.Unavailable, "read-only file system")
	wantError(t, "read-only", second(s.Remove("text")), host.Unavailable, dir)
	if got := names(t, s); got != before {
		t.Errorf("%s became %s", before, got)
	}
	checkSource(t, s.Source(entry), c)
}

func TestPipeAsPlugin(t *testing.T) {
	path := t.TempDir() + "/pipe.wasm"
	if err := unix.Mkfifo(path, 0o600); err != nil {
		t.Skip(err)
	}
	_, err := ReadCandidate(path, "0.1.0") // must not wait for a writer
	wantError(t, "pipe", err, host.InvalidPlugin, "not a regular file")
	if err := os.Symlink("nowhere", path+".wasm"); err != nil {
		t.Skip(err)
	}
	_, err = ReadCandidate(path+".wasm", "0.1.0")
	wantError(t, "dangling link", err, host.InvalidArgs, "does not exist")
}
