package cli

import (
	"context"
	"io"

	"github.com/parley-tools/parley/cmd/parley/internal/command"
)

// runDescribe prints documentation: a page on a terminal, otherwise the document itself.
func runDescribe(ctx context.Context, app *App, opts command.DescribeOptions) error {
	doc, err := command.Describe(ctx, app.deps, opts)
	if err != nil {
		return err
	}
	if app.OutTTY && !app.json {
		return app.write(func(w io.Writer) { app.page(w).docs(doc.ToolDocs, doc.Next) })
	}
	return app.document(doc)
}
