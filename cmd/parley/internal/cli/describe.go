package cli

import (
	"context"
	"io"

	"github.com/parley-tools/parley/cmd/parley/internal/command"
	"github.com/parley-tools/parley/host"
)

// runDescribe prints documentation: a page on a terminal, otherwise the document itself.
func runDescribe(ctx context.Context, app *App, opts command.DescribeOptions) error {
	count := func(w io.Writer, docs *host.Docs) { app.writeDescribed(w, app.deps.Described(docs)) }
	ctx = host.WithMaxTokens(countDocs(ctx, count), app.maxTokens)
	doc, err := command.Describe(ctx, app.deps, opts)
	if err != nil {
		return err
	}
	return app.write(func(w io.Writer) { app.writeDescribed(w, doc) })
}

func (a *App) writeDescribed(w io.Writer, doc *command.DescribedTool) {
	if a.OutTTY && !a.json {
		a.page(w).docs(doc.ToolDocs, doc.Next)
		return
	}
	_ = writeJSON(w, doc, a.OutTTY)
}
