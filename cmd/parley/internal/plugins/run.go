package plugins

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/parley-tools/parley/cmd/parley/internal/command"
	"github.com/parley-tools/parley/cmd/parley/internal/tools"
)

type pluginRunOptions struct {
	app *command.App
	tools.CallOptions
	path string
}

func newPluginRun(app *command.App) *cobra.Command {
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
	tools.AddCallFlags(cmd.Flags(), &opts.CallOptions)
	cmd.Flags().SortFlags = false
	return cmd
}

func runPluginRun(ctx context.Context, opts *pluginRunOptions) error {
	name, err := pluginFile(opts.app, opts.path)
	if err != nil {
		return err
	}
	call := opts.CallOptions
	call.Tool, call.Trace = name+"."+opts.Tool, true
	return tools.RunCall(ctx, opts.app, &call)
}
