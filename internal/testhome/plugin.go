package testhome

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// CopyPlugin copies a plugin and the manifest next to it, with another version, so that the copy replaces the
// installed plugin.
func CopyPlugin(t testing.TB, path, version string) string {
	t.Helper()
	wasm, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(strings.TrimSuffix(path, ".wasm") + ".manifest.json")
	if err != nil {
		t.Fatal(err)
	}
	var m map[string]any
	if err := json.Unmarshal(text, &m); err != nil {
		t.Fatal(err)
	}
	m["version"] = version
	if text, err = json.Marshal(m); err != nil {
		t.Fatal(err)
	}
	to := filepath.Join(t.TempDir(), strings.TrimSuffix(filepath.Base(path), ".wasm"))
	for suffix, data := range map[string][]byte{".wasm": wasm, ".manifest.json": text} {
		if err := os.WriteFile(to+suffix, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return to + ".wasm"
}
