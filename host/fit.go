package host

import (
	"context"

	"github.com/parley-tools/parley/manifest"
)

// describeWithin returns the documentation of a tool at a tier, or the best part of it that stays within the limit of
// the context.
func (a Address) describeWithin(ctx context.Context, t *manifest.Tool, tier int) (*Docs, error) {
	d, err := a.describe(t, tier)
	limit := maxTokens(ctx)
	if err != nil || limit == 0 {
		return d, err
	}
	fits := func() bool {
		d.Next = nextAfterDescribe(d)
		return docsTokens(ctx, d, false) <= limit
	}
	if fits() {
		return d, nil
	}
	left := []string{}
	if tier == manifest.Tier3 {
		left = append(left, "tier 3")
		if d, err = a.describe(t, manifest.Tier2); err != nil {
			return nil, err
		}
		if d.LeftOut = left; fits() {
			return d, nil
		}
	}
	for _, part := range d.Reductions() {
		if !part.Remove() {
			continue
		}
		left = append(left, part.Name)
		if d.LeftOut = left; fits() {
			return d, nil
		}
	}
	if d, err = a.describe(t, manifest.Tier1); err != nil {
		return nil, err
	}
	if tier > manifest.Tier1 {
		d.LeftOut = []string{"all but tier 1"}
	}
	return d, nil
}
