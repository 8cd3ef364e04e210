package cli

import (
	"context"
	"io"

	"github.com/parley-tools/parley/host"
)

// countDocs returns a context in which records count documentation by what write writes of it.
func countDocs(ctx context.Context, write func(w io.Writer, d *host.Docs)) context.Context {
	return host.WithDocsSize(ctx, func(d *host.Docs, _ bool) int {
		var n byteCount
		write(&n, d)
		return int(n)
	})
}

// byteCount is a writer that only counts.
type byteCount int

func (n *byteCount) Write(b []byte) (int, error) {
	*n += byteCount(len(b))
	return len(b), nil
}

// writeErrorDocs writes the documentation of an error, as fail does.
func (a *App) writeErrorDocs(w io.Writer, d *host.Docs) {
	docs := a.deps.WithCommands(d.ToolDocs)
	if a.json {
		_ = writeJSON(w, docs, a.ErrTTY)
		return
	}
	a.docsText(w, docs)
}
