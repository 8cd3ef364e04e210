package private

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
	if os.Geteuid() != 0 {
		return
	}
	must(os.Mkdir(at("foreign"), 0o700))
	must(os.Chown(at("foreign"), 65534, 65534))
	if Dir(at("foreign")) == nil {
		t.Error("a folder of another user was taken")
	}
}
