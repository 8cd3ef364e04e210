package browser

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A browser is found by its user data folder, and by a profile in that.
func TestActivePort(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	profile := filepath.Join(dir, "Default")
	if err := os.Mkdir(profile, 0o700); err != nil {
		t.Fatal(err)
	}
	for content, want := range map[string]string{
		"": "", "0\n/x": "", "70000\n/x": "", "host:1\n/x": "",
		"9222\n/devtools/browser/id\n": "ws://127.0.0.1:9222/devtools/browser/id",
	} {
		if err := os.WriteFile(filepath.Join(dir, activePortFile), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, given := range []string{dir, profile, profile + "/"} {
			u, err := parseEndpoint(given)
			if got := ""; err == nil {
				if got = u.String(); got != want {
					t.Errorf("%q in %s: %s", content, given, got)
				}
			} else if want != "" {
				t.Errorf("%q in %s: %v", content, given, err)
			}
		}
	}
}

// TestEndpoint checks that the spelling decides what is an address and what a path, whatever exists, and that the error
// for a name that could be either has both readings.
func TestEndpoint(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(dir)
	for _, name := range []string{"ch2", "9222", "localhost:9222"} {
		if err := os.Mkdir(name, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	const either = `; if it names a host, add the port: ch2:9222; if it names a folder, write ./ch2`
	for given, want := range map[string]string{
		"9222": "http://127.0.0.1:9222", "localhost:9222": "http://localhost:9222", "[::1]:9222": "http://[::1]:9222",
		"ch2:9222": "http://ch2:9222", "ch2:9222/": "http://ch2:9222/", "http://ch2": "http://ch2",
		"ws://ch2:9222/devtools/browser/x": "ws://ch2:9222/devtools/browser/x",
		"./ch2":                            dir + "/ch2", "../x": filepath.Dir(dir) + "/x", ".": dir,
		dir + "/ch2/": dir + "/ch2",
		"ch2/":        dir + "/ch2", "ch2/Default": dir + "/ch2/Default", "./9222": dir + "/9222",
		"ch2": either, "localhost": "write ./localhost", "": "not a DevTools address", "0": "not a DevTools address",
		"99999": "not a DevTools address", "ftp://ch2": "not a DevTools address", "ch2:port": "not a DevTools address",
		":9222": "not a DevTools address",
	} {
		got, isFolder, err := Endpoint(given)
		if err != nil {
			got = err.Error()
		}
		if got != want && (err == nil || !strings.Contains(got, want)) || isFolder != filepath.IsAbs(want) {
			t.Errorf("%q is %s (a folder: %v), want %s", given, got, isFolder, want)
		}
		if again, _, _ := Endpoint(got); err == nil && again != got {
			t.Errorf("%s is %s", got, again)
		}
	}
}
