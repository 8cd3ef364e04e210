package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/parley-tools/parley/cmd/parley/internal/command"
	"github.com/parley-tools/parley/host"
)

type resultOptions struct {
	app *App
	command.ResultOptions
}

func newResult(app *App) *cobra.Command {
	opts := &resultOptions{app: app}
	cmd := &cobra.Command{
		Use:   "result ID",
		Short: "Results",
		Long: "ID is that of the call, as the answer names it in next. The session keeps its last results for a day, and " +
			"so\ndo all calls without a session.",
		Example: "parley result c0123456789abcdef --jq '.nodes | length'\n" +
			"parley result c0123456789abcdef --out page.json",
		ValidArgsFunction: app.completeResults,
		RunE: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("out") {
				if err := checkOut(opts.Out); err != nil {
					return err
				}
			}
			opts.ID = args[0]
			return runResult(cmd.Context(), opts)
		},
	}
	cmd.Flags().StringVar(&opts.JQ, "jq", "", "filter")
	cmd.Flags().StringVar(&opts.Out, "out", "", "decoded, to FILE")
	return cmd
}

func runResult(ctx context.Context, opts *resultOptions) error {
	app := opts.app
	data, err := command.Result(ctx, app.deps, opts.ResultOptions)
	if err != nil {
		return err
	}
	return app.print(data, nil, nil)
}

// checkOut rejects a value of --out that is not the name of a file.
func checkOut(out string) error {
	if out != "" && out != "-" {
		return nil
	}
	return host.Errorf(host.InvalidArgs, "--out requires the name of a file, got %q", out).
		WithNext("--out page.png, or --out /dev/stdout")
}

// completeResults completes the id of a call with a result that is kept.
func (a *App) completeResults(_ *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	session, err := a.deps.Session()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	ids := a.deps.Parley().Sessions().KeptIDs(session)
	return startingWith(typed, ids), cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
}
