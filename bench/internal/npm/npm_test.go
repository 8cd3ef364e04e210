package npm

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestLocks checks that each benchmark with packages has a lock file, which names no registry.
func TestLocks(t *testing.T) {
	packages, err := filepath.Glob("../../*/package.json")
	if err != nil || len(packages) < 3 {
		t.Fatalf("packages: %q, %v", packages, err)
	}
	for _, path := range packages {
		lock, err := os.ReadFile(filepath.Join(filepath.Dir(path), "package-lock.json"))
		if err != nil || strings.Contains(string(lock), `"resolved"`) {
			t.Errorf("%s: the lock file is missing or names a registry: %v", path, err)
		}
	}
}
