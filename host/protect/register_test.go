//go:build unix

package protect

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestRegister checks that what was opened stays out of reach: by its folder, a hard link, a new name, and after
// another file was put in its place; and that what an option has named is out of reach of other processes.
func TestRegister(t *testing.T) {
	own := &Files{Folders: []Folder{{Name: "state", Path: filepath.Join(t.TempDir(), "state")}}}
	own.Named = filepath.Join(own.Folders[0].Path, "named")
	put := func(path string) {
		t.Helper()
		if err := os.WriteFile(path, []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, use := range map[string]func(path string) error{
		"read":     func(path string) error { _, err := Read(path, 100); return err },
		"append":   func(path string) error { f, _, err := Append(path); _ = f.Close(); return err },
		"remember": own.Remember,
	} {
		dir := t.TempDir()
		path := filepath.Join(dir, "token")
		put(path)
		if err := own.Check(dir, true); err != nil {
			t.Fatalf("%s: before: %v", name, err)
		}
		if err := use(path); err != nil {
			t.Fatal(err)
		}
		if own.Check(dir, true) == nil {
			t.Errorf("%s: its folder can be granted", name)
		}
		denies := func(how, path string) {
			t.Helper()
			if info, err := os.Stat(path); err != nil || !own.Guard().Denies(info) {
				t.Errorf("%s: it can be opened %s (%v)", name, how, err)
			}
		}
		denies("by its name", path)
		linked := filepath.Join(t.TempDir(), "linked")
		if err := os.Link(path, linked); err != nil {
			t.Skip(err)
		}
		denies("by a hard link", linked)
		put(path + ".new")
		if err := os.Rename(path+".new", path); err != nil {
			t.Fatal(err)
		}
		denies("after it was replaced", path)
		if name != "remember" {
			denies("as it was opened", linked)
		}
		// The system gives the inode of a file that is gone to another one, which was changed at another time.
		if err := os.Chtimes(linked, time.Now(), time.Now().Add(time.Hour)); err != nil {
			t.Fatal(err)
		}
		if info, err := os.Stat(linked); err != nil || own.Guard().Denies(info) {
			t.Errorf("%s: a later file with the same inode cannot be opened (%v)", name, err)
		}
	}
}

// TestRemember checks that a file is remembered once, also before it exists, and counts while it does; and that only
// files are.
func TestRemember(t *testing.T) {
	dir := t.TempDir()
	own := &Files{Named: filepath.Join(dir, "state", "named")}
	path, device := filepath.Join(dir, "tokens"), filepath.Join(dir, "device")
	if err := os.Symlink("/dev/null", device); err != nil {
		t.Fatal(err)
	}
	remembered := func() int {
		t.Helper()
		if err := errors.Join(own.Remember(path), own.Remember(device), own.Remember(dir)); err != nil {
			t.Fatal(err)
		}
		data, err := os.ReadFile(own.Named)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(data), "device") || strings.Contains(string(data), dir+`"`) {
			t.Errorf("something other than a file is remembered: %s", data)
		}
		return len(data)
	}
	remembered()
	if named := own.named(); len(named) > 0 {
		t.Errorf("%q are protected and do not exist", named)
	}
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	size := remembered()
	if named := own.named(); !slices.Equal(named, []string{path}) || remembered() != size {
		t.Errorf("%q are protected, and the file has %d bytes, then %d", named, size, remembered())
	}
}

// TestRecordsAreRegular checks that nothing is appended to a device, a pipe, a socket or a folder, also through a link,
// and that trying does not wait.
func TestRecordsAreRegular(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	if err := errors.Join(os.Symlink("/dev/null", at("device")), syscall.Mkfifo(at("pipe"), 0o600),
		os.Symlink("pipe", at("link")), os.Mkdir(at("folder"), 0o700)); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"device", "pipe", "link", "folder"} {
		var refused *FileError
		if f, _, err := Append(at(name)); !errors.As(err, &refused) {
			t.Errorf("%s: %v, %v", name, f, err)
		}
		if !errors.As(CheckRecord(at(name)), &refused) {
			t.Errorf("%s: it is taken for a file of records", name)
		}
	}
	locks := func(name string) (bool, error) {
		l := NewLock(at(name))
		defer l.Close()
		return l.TryLock() // it does not wait for the other end of a pipe
	}
	for _, name := range []string{"pipe", "link", "lock"} {
		if locked, err := locks(name); !locked {
			t.Errorf("%s is not locked: %v", name, err)
		}
	}
	if locked, err := locks("folder"); locked || err == nil {
		t.Error("a folder is locked")
	}
	if f, _, err := Append(at("new")); err != nil || f.Close() != nil || CheckRecord(at("new")) != nil {
		t.Errorf("a new file: %v", err)
	}
}
