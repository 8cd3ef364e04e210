package cli

import (
	"context"
	"io"

	"github.com/parley-tools/parley/host"
)

// describe prints a tool's documentation: a page on a terminal, else and with --json the document itself.
func (a *App) describe(ctx context.Context, h *host.Host, name string, tier int) error {
	docs, err := h.Describe(ctx, "cli", a.Env("PARLEY_SESSION"), name, tier)
	if err != nil {
		return err
	}
	doc := a.deps.Described(docs)
	if a.OutTTY && !a.json {
		return a.write(func(w io.Writer) { a.page(w).docs(doc.ToolDocs, doc.Next) })
	}
	return a.document(doc)
}
