package lint

import (
	"testing"

	"github.com/parley-tools/parley/manifest"
)

// TestTierBudget grants tiers 2 and 3 more for each parameter beyond two, and tier 1 nothing.
func TestTierBudget(t *testing.T) {
	for _, c := range []struct{ tier, params, want int }{
		{manifest.Tier1, 4, 50}, {manifest.Tier1, 9, 50},
		{manifest.Tier2, 0, 120}, {manifest.Tier2, 2, 120}, {manifest.Tier2, 3, 135}, {manifest.Tier2, 10, 240},
		{manifest.Tier3, 2, 300}, {manifest.Tier3, 10, 420},
	} {
		if got := tierBudget(c.tier, c.params); got != c.want {
			t.Errorf("tier %d with %d parameters has %d tokens, want %d", c.tier, c.params, got, c.want)
		}
	}
}
