package browser

import (
	"os"
	"path/filepath"
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
