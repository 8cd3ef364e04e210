package host

import (
	"context"

	"github.com/parley-tools/parley/manifest"
)

type docsSizeKey struct{}

// WithDocsSize returns a context for a front end that sends documentation in a form of its own: size returns the bytes
// of that form, by which calls and descriptions count documentation in their records. InError says that the
// documentation comes with the error of a call. Without it, records count [manifest.ToolDocs.Text].
func WithDocsSize(ctx context.Context, size func(d *Docs, inError bool) int) context.Context {
	return context.WithValue(ctx, docsSizeKey{}, size)
}

// DocsTokens estimates the tokens of documentation as the front end sends it; 0 for nil.
func DocsTokens(ctx context.Context, d *Docs, inError bool) int {
	if d == nil {
		return 0
	}
	if size, ok := ctx.Value(docsSizeKey{}).(func(*Docs, bool) int); ok {
		return manifest.TokensOf(size(d, inError))
	}
	return d.Tokens()
}
