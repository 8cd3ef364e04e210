package command

import (
	"context"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/manifest"
)

// DescribeOptions are the options of a description.
type DescribeOptions struct {
	Tool string // qualified; an event or a type can be described, too
	Tier int    // how much, 1 to 3
}

// DescribedTool is the documentation of a tool, with the next commands.
type DescribedTool struct {
	*manifest.ToolDocs
	Next []string `json:"next,omitempty"`
}

// Describe returns documentation. The error is not_found for an unknown name, or invalid_args for a tier that does not
// exist.
func Describe(ctx context.Context, d *Deps, o DescribeOptions) (*DescribedTool, error) {
	h, err := d.Host(ctx)
	if err != nil {
		return nil, err
	}
	session, err := d.Session()
	if err != nil {
		return nil, err
	}
	docs, err := h.Describe(ctx, Caller, session, o.Tool, o.Tier)
	if err != nil {
		return nil, err
	}
	return d.Described(docs), nil
}

// Described returns documentation with the commands that it leads to.
func (d *Deps) Described(docs *host.Docs) *DescribedTool {
	return &DescribedTool{ToolDocs: d.WithCommands(docs.ToolDocs), Next: d.Next(docs.Next, nil)}
}
