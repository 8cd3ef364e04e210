package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/parley-tools/parley/cmd/parley/internal/command"
	"github.com/parley-tools/parley/host"
)

type pluginCheckOptions struct {
	app  *App
	name string
}

func newPluginCheck(app *App, run runFunc[pluginCheckOptions]) *cobra.Command {
	opts, run := &pluginCheckOptions{app: app}, run.or(runPluginCheck)
	return &cobra.Command{
		Use:   "check NAME|FILE",
		Short: "Check that search finds each tool by its task phrases",
		Long: "Searches for each task phrase of an installed plugin. For a file or a folder (hello.wasm, ./hello) it\n" +
			"prints the report that an installation prints, and installs nothing.",
		Example:           "parley plugin check text",
		ValidArgsFunction: app.completePlugins,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return missingWord("plugin check", "one NAME or FILE", "parley plugin list")
			}
			opts.name = args[0]
			return run(cmd.Context(), opts)
		},
	}
}

func runPluginCheck(ctx context.Context, opts *pluginCheckOptions) error {
	if command.IsPluginFile(opts.name) {
		return reportPlugin(ctx, opts)
	}
	data, err := command.CheckPlugin(ctx, opts.app.deps, opts.name)
	if _, missing := os.Stat(opts.name); errors.Is(err, host.NotFound) && missing == nil {
		return reportPlugin(ctx, opts)
	}
	if err != nil {
		return err
	}
	return opts.app.print(data, []string{"parley search --eval FILE"}, func(w io.Writer) {
		if data.Phrases == 0 {
			fmt.Fprintf(w, "%s has no task phrases\n", data.Plugin)
			return
		}
		fmt.Fprintf(w, "%s: %s of %s, each finds its own tool among the first five\n",
			data.Plugin, plural(data.Phrases, "task phrase"), plural(data.Tools, "tool"))
	})
}
