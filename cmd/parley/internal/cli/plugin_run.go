package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/parley-tools/parley/cmd/parley/internal/command"
)

type pluginRunOptions struct {
	app *App
	command.CallOptions
	path string
}

func newPluginRun(app *App) *cobra.Command {
	opts := &pluginRunOptions{app: app}
	cmd := &cobra.Command{
		Use:   "run FILE|DIR TOOL ...",
		Short: "Run a tool of a plugin that is not installed",
		Long: "TOOL is named without the plugin. Where the plugin crashes, its functions are named and the last lines of\n" +
			"its stderr and log are shown.",
		Example: "parley plugin run ./hello greet Ada",
		RunE: func(cmd *cobra.Command, args []string) error {
			opts.path, opts.Tool, opts.Words = args[0], args[1], args[2:]
			opts.Unlimited = opts.MaxBytes == 0 && cmd.Flags().Changed("max-bytes")
			return runPluginRun(cmd.Context(), opts)
		},
	}
	addCallFlags(cmd.Flags(), &opts.CallOptions)
	cmd.Flags().SortFlags = false
	return cmd
}

func runPluginRun(ctx context.Context, opts *pluginRunOptions) error {
	name, err := opts.app.deps.PluginFile(opts.path)
	if err != nil {
		return err
	}
	call := &callOptions{app: opts.app, CallOptions: opts.CallOptions}
	call.Tool, call.Trace = name+"."+opts.Tool, true
	return runCall(ctx, call)
}
