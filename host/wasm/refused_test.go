package wasm

import (
	"testing"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/grant"
)

// TestRefusalsOfOthers checks when an engine knows a refusal that another one has written: the bounds and the version
// are the same, and the compiler itself refused the module.
func TestRefusalsOfOthers(t *testing.T) {
	small, large := grant.ModuleLimits{Functions: 10}, grant.ModuleLimits{Functions: 20}
	const key = "0123"
	for _, c := range []struct {
		name    string
		cause   error
		limits  grant.ModuleLimits
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
