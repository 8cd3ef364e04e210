package cdp

import (
	"testing"

	"github.com/parley-tools/parley/internal/schemafacts"
	"github.com/parley-tools/parley/manifest"
)

// TestEveryFactIsShown checks the tiers of all commands against their schemas.
func TestEveryFactIsShown(t *testing.T) {
	p := New(Config{})
	names, err := p.Names()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		tool, err := p.Tool(name)
		if err != nil {
			t.Fatal(err)
		}
		schemafacts.CheckTiers(t, tool, p.Describe(tool, manifest.Tier2), p.Describe(tool, manifest.Tier3), true)
	}
}
