package host

import (
	"context"

	"github.com/parley-tools/parley/manifest"
)

// DescribeWithin returns the documentation of a tool at a tier, or the best part of it that stays within the limit of
// the context.
func (a Address) DescribeWithin(ctx context.Context, t *manifest.Tool, tier int) (*Docs, error) {
	d, err := a.Describe(t, tier)
	limit := maxTokens(ctx)
	if err != nil || limit == 0 {
		return d, err
	}
	fits := func() bool {
		d.Next = NextAfterDescribe(d)
		return DocsTokens(ctx, d, false) <= limit
	}
	if fits() {
		return d, nil
	}
	left := []string{}
	if tier == manifest.Tier3 {
		left = append(left, "tier 3")
		if d, err = a.Describe(t, manifest.Tier2); err != nil {
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
	if d, err = a.Describe(t, manifest.Tier1); err != nil {
		return nil, err
	}
	if tier > manifest.Tier1 {
		d.LeftOut = []string{"all but tier 1"}
	}
	return d, nil
}
