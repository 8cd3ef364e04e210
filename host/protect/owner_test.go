package protect

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"
)

func TestDir(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("modes of Unix")
	}
	base := t.TempDir()
	at := func(name string) string { return filepath.Join(base, name) }
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(os.Mkdir(at("open"), 0o755))
	must(os.Chmod(at("open"), 0o755)) // whatever the umask is
	must(os.WriteFile(at("file"), nil, 0o600))
	must(os.Symlink(at("open"), at("link")))
	for _, tt := range []struct {
		name string
		ok   bool
	}{{"new/below", true}, {"open", true}, {"file", false}, {"link", false}} {
		err := Dir(at(tt.name))
		if (err == nil) != tt.ok {
			t.Errorf("%s: %v", tt.name, err)
		}
		if info, _ := os.Lstat(at(tt.name)); tt.ok && info.Mode().Perm() != 0o700 {
			t.Errorf("%s has mode %v", tt.name, info.Mode())
		}
	}
	if info, err := os.Lstat(at("new")); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the folder above a new one: %v, %v", info, err)
	}
	if os.Geteuid() != 0 {
		return
	}
	must(os.Mkdir(at("foreign"), 0o700))
	must(os.Chown(at("foreign"), 65534, 65534))
	if Dir(at("foreign")) == nil {
		t.Error("a folder of another user was taken")
	}
}

// TestModesAndOwners checks each bit of a mode on its own, and each owner.
func TestModesAndOwners(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("modes of Unix")
	}
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	stat := func() os.FileInfo {
		info, err := os.Lstat(path)
		if err != nil {
			t.Fatal(err)
		}
		return info
	}
	for bit := range 9 {
		mode := os.FileMode(1) << bit
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		if got, want := OwnerOnly(stat()), mode&0o700 != 0; got != want {
			t.Errorf("mode %o: for its owner only: %v", mode, got)
		}
		if got, want := TrustedFile(stat()), mode&0o022 == 0; got != want {
			t.Errorf("mode %o: trusted: %v", mode, got)
		}
	}
	if err := os.Chmod(path, 0o600); err != nil {
		t.Fatal(err)
	}
	if !OwnedByUser(stat()) || OwnedByOther(stat()) {
		t.Error("a file of this user counts as one of another user")
	}
	if os.Geteuid() != 0 {
		return
	}
	if err := os.Chown(path, 65534, 65534); err != nil {
		t.Fatal(err)
	}
	if OwnedByUser(stat()) || TrustedFile(stat()) || !OwnedByOther(stat()) {
		t.Error("a file of another user counts as one of this user, or as trusted")
	}
}

// A file is unchanged until its path is replaced or linked, or its mode gives access to others.
func TestUnchanged(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "file")
	put := func(path string, mode os.FileMode) os.FileInfo {
		if err := os.WriteFile(path, nil, mode); err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		return info
	}
	opened := put(path, 0o600)
	if _, same := Unchanged(path, opened); !same {
		t.Error("an unchanged file counts as changed")
	}
	if _, same := Unchanged(path, put(filepath.Join(dir, "other"), 0o600)); same {
		t.Error("another file counts as unchanged")
	}
	if runtime.GOOS == "windows" {
		return
	}
	if err := os.Chmod(path, 0o640); err != nil {
		t.Fatal(err)
	}
	if _, same := Unchanged(path, opened); same {
		t.Error("a file that the group may read counts as unchanged")
	}
	if err := os.Chmod(path, 0o600); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(dir, "link")
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	if _, same := Unchanged(link, opened); same {
		t.Error("a link counts as the file that it leads to")
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if _, same := Unchanged(path, opened); same {
		t.Error("a removed file counts as unchanged")
	}
}
