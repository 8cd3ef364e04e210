package cli

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/parley-tools/parley/cmd/parley/internal/command"
	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/manifest"
)

type doctorOptions struct {
	app *App
	command.DoctorOptions
}

func newDoctor(app *App) *cobra.Command {
	opts := &doctorOptions{app: app}
	cmd := &cobra.Command{
		Use:     "doctor",
		Short:   "Set-up",
		Example: "parley doctor --json",
		RunE:    runWith(runDoctor, opts),
	}
	cmd.Flags().BoolVar(&opts.Authors, "authors", false, "check the compilers for plugins, too")
	cmd.Flags().BoolVar(&opts.Clean, "clean", false, "remove the files of runners that have ended")
	return cmd
}

// runDoctor prints all checks, and ends with config_error if one failed.
func runDoctor(ctx context.Context, opts *doctorOptions) error {
	app := opts.app
	data := command.Doctor(ctx, app.deps, opts.DoctorOptions)
	raw, err := manifest.Marshal(data)
	if err != nil {
		return err
	}
	env := &command.Envelope{OK: data.Failed == 0, Data: raw, Warnings: []string{}, Next: data.Fixes()}
	failed := host.Errorf(host.ConfigError, "%s failed", manifest.Plural(data.Failed, "check"))
	if !env.OK {
		env.Error = app.deps.ErrorObject(failed)
	}
	err = app.printEnvelope(env, func(w io.Writer) {
		for _, c := range data.Checks {
			fmt.Fprintf(w, "%-5s %-10s %s\n", c.Status, c.Name, c.Detail)
			if c.Fix != "" && c.Status != "ok" {
				fmt.Fprintf(w, "%-16s fix: %s\n", "", c.Fix)
			}
		}
	})
	if err == nil && !env.OK {
		err = &exitStatus{failed.ExitCode()}
	}
	return err
}
