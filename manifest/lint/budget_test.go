package lint

import (
	"testing"

	"github.com/parley-tools/parley/manifest"
)

// TestTierBudget grants tiers 2 and 3 more for each parameter beyond four, and tier 1 nothing.
func TestTierBudget(t *testing.T) {
	for _, c := range []struct{ tier, params, want int }{
		{manifest.Tier1, 4, 50}, {manifest.Tier1, 9, 50},
		{manifest.Tier2, 0, 120}, {manifest.Tier2, 4, 120}, {manifest.Tier2, 5, 135}, {manifest.Tier2, 10, 210},
		{manifest.Tier3, 4, 300}, {manifest.Tier3, 10, 390},
	} {
		if got := tierBudget(c.tier, c.params); got != c.want {
			t.Errorf("tier %d with %d parameters has %d tokens, want %d", c.tier, c.params, got, c.want)
		}
	}
}
