package cli

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/parley-tools/parley/cmd/parley/internal/command"
	"github.com/parley-tools/parley/manifest"
)

type pluginLockOptions struct {
	app   *App
	names []string
}

func newPluginLock(app *App) *cobra.Command {
	opts := &pluginLockOptions{app: app}
	return &cobra.Command{
		Use:   "lock [NAME...]",
		Short: "Pin installed plugins, all or some, in the project's parley.toml",
		Long: "Writes the source and the digest of each build to the nearest parley.toml, or to a new one in the current\n" +
			"folder. A project's file gives no rights. parley plugin sync installs what it pins on another machine.",
		Example:           "parley plugin lock hello",
		ValidArgsFunction: app.completePlugins,
		RunE: func(cmd *cobra.Command, args []string) error {
			opts.names = args
			return runPluginLock(cmd.Context(), opts)
		},
	}
}

func runPluginLock(_ context.Context, opts *pluginLockOptions) error {
	data, err := command.LockPlugins(opts.app.deps, opts.names)
	if err != nil {
		return err
	}
	return opts.app.print(data, []string{"parley plugin verify", "parley plugin sync"}, func(w io.Writer) {
		if len(data.Changed) == 0 {
			fmt.Fprintf(w, "Nothing to change in %s\n", data.File)
			return
		}
		fmt.Fprintf(w, "Pinned %s in %s\n", strings.Join(data.Changed, ", "), data.File)
	})
}

type pluginSyncOptions struct {
	app *App
	command.SyncOptions
}

func newPluginSync(app *App) *cobra.Command {
	opts := &pluginSyncOptions{app: app}
	cmd := &cobra.Command{
		Use:   "sync",
		Short: "Install what the project's parley.toml pins",
		Long: "Installs the pinned builds that are missing or differ, as plugin install does: they gain no rights, and\n" +
			"each must have the digest of its pin. Without anything to install it needs no network.",
		Example: "parley plugin sync",
		RunE:    runWith(runPluginSync, opts),
	}
	cmd.Flags().BoolVar(&opts.Downgrade, "downgrade", false, "let an older version replace a newer one")
	addYes(cmd, &opts.Yes)
	return cmd
}

func runPluginSync(ctx context.Context, opts *pluginSyncOptions) error {
	opts.Progress = opts.app.transfer()
	data, err := command.SyncPins(ctx, opts.app.deps, opts.SyncOptions)
	if err != nil {
		return err
	}
	return opts.app.printPins(data)
}

// printPins prints pins and what is installed of them.
func (a *App) printPins(data *command.PinsData) error {
	return a.print(data, []string{"parley --list"}, func(w io.Writer) {
		for _, p := range data.Pins {
			fmt.Fprintf(w, "%-12s %-8s %s\n", p.Name, p.Status, manifest.CleanLine(p.Digest))
		}
		if len(data.Changed) > 0 {
			fmt.Fprintln(w, "Installed "+strings.Join(data.Changed, ", "))
		}
	})
}
