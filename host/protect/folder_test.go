package protect_test

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/parley-tools/parley/host/protect"
)

// TestOpenFolder opens folders through links, of this user and of another one.
func TestOpenFolder(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("links need a privilege")
	}
	base := t.TempDir()
	at := func(name string) string { return filepath.Join(base, name) }
	for _, err := range []error{os.MkdirAll(at("data/deep"), 0o700), os.WriteFile(at("data/deep/marker"), nil, 0o600),
		os.WriteFile(at("file"), nil, 0o600), os.Symlink("data", at("relative")), os.Symlink(at("relative/deep"), at("own")),
		os.Symlink("loop", at("loop")), os.Symlink("../data", at("data/up")), os.Symlink("gone", at("dangling")),
		os.Symlink(at("data"), at("foreign"))} {
		if err != nil {
			t.Fatal(err)
		}
	}
	refused := map[string]string{"file": "not a directory", "loop": "too many", "dangling": "no such", "none": "no such"}
	if os.Lchown(at("foreign"), 4242, 4242) == nil { // only the administrator can do that
		for _, name := range []string{"foreign", "foreign/deep", "data/up/../foreign"} {
			refused[name] = "another user"
		}
	}
	for name, reason := range refused {
		if root, err := protect.OpenFolder(base + "/" + name); err == nil || !strings.Contains(err.Error(), reason) {
			t.Errorf("%s: %v, %v; expected %q", name, root, err, reason)
		}
	}
	for _, name := range []string{"data/deep", "relative/deep", "own", "data/up/deep", "own/../../data/deep/", "own/."} {
		root, err := protect.OpenFolder(base + "/" + name)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if _, err := root.Stat("marker"); err != nil {
			t.Errorf("%s is another folder: %v", name, err)
		}
		_ = root.Close()
	}
}
