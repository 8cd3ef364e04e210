package cli

import (
	"context"
	"slices"

	"github.com/parley-tools/parley/host"
)

// describe prints a tool's documentation as the JSON document itself, with and without --json.
func (a *App) describe(ctx context.Context, h *host.Host, name string, tier int) error {
	docs, err := h.Describe(ctx, "cli", a.Env("PARLEY_SESSION"), name, tier)
	if err != nil {
		return err
	}
	docs.Next, docs.Examples = a.stayLive(docs.Next), slices.Clone(docs.Examples)
	for i, e := range docs.Examples {
		docs.Examples[i].Command = a.liveCommand(e.Command)
	}
	return a.document(docs)
}
