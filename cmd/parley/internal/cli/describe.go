package cli

import (
	"context"

	"github.com/parley-tools/parley/host"
)

// describe prints a tool's documentation as the JSON document itself, with and without --json.
func (a *App) describe(ctx context.Context, h *host.Host, name string, tier int) error {
	docs, err := h.Describe(ctx, "cli", a.Env("PARLEY_SESSION"), name, tier)
	if err != nil {
		return err
	}
	return a.document(describedTool{a.withCommands(docs.ToolDocs), a.next(docs.Next, nil)})
}
