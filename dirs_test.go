package parley

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"testing"

	"github.com/parley-tools/parley/host"
)

// TestFoldersAreAbsolute finds folders with every combination of missing, empty, relative and absolute variables.
func TestFoldersAreAbsolute(t *testing.T) {
	names := []string{"HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME", "XDG_RUNTIME_DIR",
		"PARLEY_HOME"}
	values := []string{"", "relative", "../up", t.TempDir()}
	for n := range 1 << (2 * len(names)) {
		env := map[string]string{}
		for i, name := range names {
			env[name] = values[n>>(2*i)&3]
		}
		dirs := reflect.ValueOf(FindDirs("", func(name string) string { return env[name] }))
		for i := range dirs.NumField() {
			if path := dirs.Field(i).String(); !filepath.IsAbs(path) {
				t.Fatalf("%v: %s is %q", env, dirs.Type().Field(i).Name, path)
			}
		}
	}
	for _, unknown := range []Dirs{nowhere, relative} {
		if err := unknown.Check(); !errors.Is(err, host.ConfigError) || unknown.Known() {
			t.Errorf("unknown folders: %v", err)
		}
	}
}

// TestFoldersOfOthers refuses each folder that everybody can write to, or that belongs to another user.
func TestFoldersOfOthers(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("modes of Unix")
	}
	dirs := FindDirs(t.TempDir(), os.Getenv)
	for _, own := range dirs.own() {
		path := own.Path
		refused := func(how string, err error) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
			if err := dirs.Check(); !errors.Is(err, host.ConfigError) {
				t.Errorf("%s, %s: %v", path, how, err)
			}
			if _, err := New(Config{Home: filepath.Dir(dirs.Config)}).Policy(); !errors.Is(err, host.ConfigError) {
				t.Errorf("%s, %s: the policy is read: %v", path, how, err)
			}
		}
		if err := os.Mkdir(path, 0o700); err != nil || dirs.Check() != nil {
			t.Fatal(err, dirs.Check())
		}
		refused("for everybody", os.Chmod(path, 0o777))
		if err := os.Chmod(path, 0o700); err != nil {
			t.Fatal(err)
		}
		if os.Geteuid() == 0 {
			refused("of another user", os.Chown(path, 65534, 65534))
			if err := os.Chown(path, 0, 0); err != nil {
				t.Fatal(err)
			}
		}
	}
}
