package tools

import (
	"context"
	"io"

	"github.com/parley-tools/parley/cmd/parley/internal/command"
	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/manifest"
)

// runDescribe prints documentation: a page on a terminal, otherwise the document itself.
func runDescribe(ctx context.Context, app *command.App, opts describeOptions) error {
	count := func(w io.Writer, docs *host.Docs) { writeDescribed(app, w, Described(app, docs)) }
	ctx = host.WithMaxTokens(command.CountDocs(ctx, count), app.MaxTokens)
	doc, err := describe(ctx, app, opts)
	if err != nil {
		return err
	}
	return printHelp(app, func(w io.Writer) { writeDescribed(app, w, doc) })
}

func writeDescribed(a *command.App, w io.Writer, doc *describedTool) {
	if a.OutTTY && !a.JSON {
		a.Page(w).Docs(doc.ToolDocs, doc.Next)
		return
	}
	_ = command.WriteJSON(w, doc, a.OutTTY)
}

// describeOptions are the options of a description.
type describeOptions struct {
	Tool string // qualified; an event or a type can be described, too
	Tier int    // how much, 1 to 3
}

// describedTool is the documentation of a tool, with the next commands.
type describedTool struct {
	*manifest.ToolDocs
	Next []string `json:"next,omitempty"`
}

// describe returns documentation. The error is not_found for an unknown name, or invalid_args for a tier that does not
// exist.
func describe(ctx context.Context, app *command.App, o describeOptions) (*describedTool, error) {
	h, err := app.Host(ctx)
	if err != nil {
		return nil, err
	}
	session, err := app.Session()
	if err != nil {
		return nil, err
	}
	docs, err := h.Describe(ctx, command.Caller, session, o.Tool, o.Tier)
	if err != nil {
		return nil, err
	}
	return Described(app, docs), nil
}

// Described returns documentation with the commands that it leads to.
func Described(app *command.App, docs *host.Docs) *describedTool {
	return &describedTool{ToolDocs: app.WithCommands(docs.ToolDocs), Next: app.Next(docs.Next, nil)}
}
