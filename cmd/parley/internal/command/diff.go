package command

import (
	"cmp"
	"context"

	"github.com/parley-tools/parley/cdp"
)

// DiffOptions are the options of a comparison of protocols.
type DiffOptions struct {
	Browser string // "" means the configured one
}

// Diff compares the embedded protocol with that of a running browser.
func Diff(ctx context.Context, d *Deps, o DiffOptions) (*cdp.Difference, error) {
	s, err := d.Settings()
	if err != nil {
		return nil, err
	}
	return d.Parley().Chrome().Diff(ctx, cmp.Or(o.Browser, s.Browser))
}
