package command

import (
	"context"
	"io"

	"github.com/parley-tools/parley/host"
)

// CountDocs returns a context in which records count documentation by what write writes of it.
func CountDocs(ctx context.Context, write func(w io.Writer, d *host.Docs)) context.Context {
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

// WriteErrorDocs writes the documentation of an error, as fail does.
func (a *App) WriteErrorDocs(w io.Writer, d *host.Docs) {
	docs := a.WithCommands(d.ToolDocs)
	if a.JSON {
		_ = WriteJSON(w, docs, a.ErrTTY)
		return
	}
	a.DocsText(w, docs)
}
