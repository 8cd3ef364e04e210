package cli

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/parley-tools/parley/cmd/parley/internal/command"
)

type doctorOptions struct {
	app *App
	command.DoctorOptions
}

func newDoctor(app *App, run runFunc[doctorOptions]) *cobra.Command {
	opts, run := &doctorOptions{app: app}, run.or(runDoctor)
	cmd := &cobra.Command{
		Use:     "doctor",
		Short:   "Set-up",
		Example: "parley doctor --json",
		Args:    noWords,
		RunE:    func(cmd *cobra.Command, _ []string) error { return run(cmd.Context(), opts) },
	}
	cmd.Flags().BoolVar(&opts.Clean, "clean", false, "remove the files of runners that have ended")
	return cmd
}

// runDoctor exits with 0 even if a check failed: the checks are the result.
func runDoctor(ctx context.Context, opts *doctorOptions) error {
	app := opts.app
	data := command.Doctor(ctx, app.deps, opts.DoctorOptions)
	return app.print(data, data.Fixes(), func(w io.Writer) {
		for _, c := range data.Checks {
			fmt.Fprintf(w, "%-5s %-10s %s\n", c.Status, c.Name, c.Detail)
			if c.Fix != "" && c.Status != "ok" {
				fmt.Fprintf(w, "%-16s fix: %s\n", "", c.Fix)
			}
		}
	})
}
