package admin

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/parley-tools/parley/cmd/parley/internal/command"
	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/wasm"
	"github.com/parley-tools/parley/manifest"
)

func newRunner(app *command.App) *cobra.Command {
	return command.Parent("runner", "Runners", newRunnerList(app), newRunnerStop(app))
}

func newRunnerList(app *command.App) *cobra.Command {
	return &cobra.Command{
		Use:     "list",
		Short:   "List the runners",
		Example: "parley runner list",
		RunE:    command.RunWith(runRunnerList, app),
	}
}

func runRunnerList(_ context.Context, app *command.App) error {
	data := runnersNow(app)
	return app.Print(data, []string{"parley runner stop"}, func(w io.Writer) {
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

func newRunnerStop(app *command.App) *cobra.Command {
	opts := &runnerStopOptions{app: app}
	return &cobra.Command{
		Use:   "stop [PLUGIN]",
		Short: "End the runners of a plugin, or all of them",
		Long: "End the runners of a plugin, or all of them, also in the middle of a call. A runner ends by itself when " +
			"nobody uses it, when its plugin or a policy changes, and after a crash or a timeout.",
		Example: "parley runner stop text",
		RunE:    command.RunWith(runRunnerStop, opts, &opts.Plugin),
	}
}

func runRunnerStop(_ context.Context, opts *runnerStopOptions) error {
	data, err := stopRunners(opts.app, *opts)
	if err != nil {
		return err
	}
	return opts.app.Print(data, []string{"parley runner list"}, func(w io.Writer) {
		fmt.Fprintf(w, "Stopped %s\n", manifest.Plural(data.Total, "runner"))
	})
}

// runnerList are runners: processes in which the guests of isolated calls run.
type runnerList struct {
	Runners []wasm.RunnerInfo `json:"runners"`
	Total   int               `json:"total"`
}

// runnersNow lists the runners that run, the one that was used last first.
func runnersNow(app *command.App) *runnerList {
	running, _ := runners(app)
	return runnersData(running)
}

func runnersData(all []wasm.RunnerInfo) *runnerList {
	data := &runnerList{Runners: []wasm.RunnerInfo{}, Total: len(all)}
	for i := range all {
		r := all[len(all)-1-i]
		for _, text := range []*string{&r.Plugin, &r.Caller, &r.Session} {
			*text = manifest.CleanLine(manifest.Clip(*text, 200)) // a file says so, which a plugin may not have written
		}
		r.Started, r.Used = r.Started.UTC(), r.Used.UTC()
		data.Runners = append(data.Runners, r)
	}
	return data
}

// runners returns the runners that run, and the names of those that have ended but left files.
func runners(app *command.App) (running []wasm.RunnerInfo, stale []string) {
	for _, r := range wasm.Runners(app.Dirs().Run) {
		if r.PID == 0 {
			if !r.Busy { // else it is being started
				stale = append(stale, r.Name)
			}
			continue
		}
		running = append(running, r)
	}
	return running, stale
}

// runnerStopOptions say which runners to stop.
type runnerStopOptions struct {
	app    *command.App
	Plugin string // "" means those of all plugins
}

// stopRunners ends runners, also in the middle of a call, and returns them. The error is not_found if the plugin has
// none.
func stopRunners(app *command.App, o runnerStopOptions) (*runnerList, error) {
	stopped := wasm.StopRunners(app.Dirs().Run, func(r wasm.RunnerInfo) bool {
		return o.Plugin == "" || strings.EqualFold(r.Plugin, o.Plugin)
	})
	if len(stopped) == 0 && o.Plugin != "" {
		return nil, host.Errorf(host.NotFound, "no runner of the plugin %q runs",
			manifest.CleanLine(manifest.Clip(o.Plugin, 80))).WithNext("parley runner list")
	}
	return runnersData(stopped), nil
}
