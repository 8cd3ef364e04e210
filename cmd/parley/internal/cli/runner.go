package cli

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/parley-tools/parley/cmd/parley/internal/command"
	"github.com/parley-tools/parley/manifest"
)

func newRunner(app *App) *cobra.Command {
	return parent("runner", "Runners", newRunnerList(app), newRunnerStop(app))
}

type runnerListOptions struct{ app *App }

func newRunnerList(app *App) *cobra.Command {
	opts := &runnerListOptions{app: app}
	return &cobra.Command{
		Use:     "list",
		Short:   "List the runners",
		Example: "parley runner list",
		RunE:    runWith(runRunnerList, opts),
	}
}

func runRunnerList(_ context.Context, opts *runnerListOptions) error {
	data := command.Runners(opts.app.deps)
	return opts.app.print(data, []string{"parley runner stop"}, func(w io.Writer) {
		if data.Total == 0 {
			fmt.Fprintln(w, "No runner is running.")
			return
		}
		for _, r := range data.Runners {
			state := usedAgo(&r.Used)
			if r.Busy {
				state = "in a call"
			}
			fmt.Fprintf(w, "%8d  %-16s %-16s %-12s %s\n", r.PID, r.Plugin, r.Caller, state, r.Session)
		}
		fmt.Fprintln(w, "Next: parley runner stop")
	})
}

type runnerStopOptions struct {
	app *App
	command.StopRunnersOptions
}

func newRunnerStop(app *App) *cobra.Command {
	opts := &runnerStopOptions{app: app}
	return &cobra.Command{
		Use:   "stop [PLUGIN]",
		Short: "End the runners of a plugin, or all of them",
		Long: "End the runners of a plugin, or all of them, also in the middle of a call. A runner ends by itself when " +
			"nobody uses it, when its plugin or a policy changes, and after a crash or a timeout.",
		Example: "parley runner stop text",
		RunE:    runWith(runRunnerStop, opts, &opts.Plugin),
	}
}

func runRunnerStop(_ context.Context, opts *runnerStopOptions) error {
	data, err := command.StopRunners(opts.app.deps, opts.StopRunnersOptions)
	if err != nil {
		return err
	}
	return opts.app.print(data, []string{"parley runner list"}, func(w io.Writer) {
		fmt.Fprintf(w, "Stopped %s\n", manifest.Plural(data.Total, "runner"))
	})
}
