package cli

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/parley-tools/parley/cmd/parley/internal/command"
)

type versionOptions struct{ app *App }

func newVersion(app *App) *cobra.Command {
	opts := &versionOptions{app: app}
	return &cobra.Command{
		Use:     "version",
		Short:   "Version",
		Example: "parley version --json",
		RunE:    runWith(runVersion, opts),
	}
}

func runVersion(_ context.Context, opts *versionOptions) error {
	data := command.Version()
	return opts.app.print(data, nil, func(w io.Writer) { fmt.Fprintf(w, "parley %s\n", data.Version) })
}
