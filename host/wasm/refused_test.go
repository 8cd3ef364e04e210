package wasm

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/wasm/store"
)

// TestRefusalsOfOthers checks when an engine knows a refusal that another one has written: the bounds and the version
// are the same, and the compiler itself refused the module.
func TestRefusalsOfOthers(t *testing.T) {
	small, large := host.ModuleLimits{Functions: 10}, host.ModuleLimits{Functions: 20}
	const key = "0123"
	for _, c := range []struct {
		name    string
		cause   error
		limits  host.ModuleLimits
		version string
		known   bool
	}{
		{"the same bounds", errOverBudget, small, "1.0.0", true},
		{"other bounds", errOverBudget, large, "1.0.0", false},
		{"another version", errOverBudget, small, "1.0.1", false},
		{"a compiler that was killed", nil, small, "1.0.0", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			writer := New(Config{HostVersion: "1.0.0"})
			refusal := host.Errorf(host.InvalidPlugin, "too large")
			refusal.Cause = c.cause
			writer.rememberRefusal(dir, key, small, refusal)
			if writer.knownRefusal(dir, key, small) == nil {
				t.Error("the engine does not remember its own refusal")
			}
			err := New(Config{HostVersion: c.version}).knownRefusal(dir, key, c.limits)
			if (err != nil) != c.known {
				t.Errorf("another engine knows %v", err)
			}
			if c.known && host.AsError(err).Message != "too large" {
				t.Error(err)
			}
		})
	}
}

// TestReadBounded checks a file at its limit and beyond. A larger file is not read at all, whatever it claims to hold.
func TestReadBounded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	for _, c := range []struct {
		size int64
		want string
	}{
		{0, ""},
		{1 << 20, ""},
		{1<<20 + 1, "1048577 bytes; the limit is 1 MiB"},
		{1 << 34, "17179869184 bytes; the limit is 1 MiB"},
	} {
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(path, c.size); err != nil {
			t.Fatal(err)
		}
		data, err := store.ReadBounded(path, 1<<20)
		if c.want == "" && (err != nil || int64(len(data)) != c.size) {
			t.Errorf("%d bytes: %d, %v", c.size, len(data), err)
		}
		if c.want != "" && (err == nil || err.Error() != c.want) {
			t.Errorf("%d bytes: %v, want %s", c.size, err, c.want)
		}
	}
}
