package cli

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/parley-tools/parley/cmd/parley/internal/command"
)

type pluginNewOptions struct {
	app *App
	command.NewOptions
}

func newPluginNew(app *App) *cobra.Command {
	opts := &pluginNewOptions{app: app}
	cmd := &cobra.Command{
		Use:   "new NAME",
		Short: "Begin a plugin: a folder with source, manifest and SDK",
		Long: "Makes the folder NAME with a small plugin and the SDK of the language. It builds, checks and installs as\n" +
			"it is, without a network.",
		Example: "parley plugin new hello --lang c\nparley plugin build hello",
		RunE:    runWith(runPluginNew, opts, &opts.Name),
	}
	cmd.Flags().StringVar(&opts.Lang, "lang", "", strings.Join(command.Languages(), ", "))
	completeWords(cmd, "lang", command.Languages()...)
	return cmd
}

func runPluginNew(_ context.Context, opts *pluginNewOptions) error {
	data, err := command.NewPlugin(opts.app.deps, opts.NewOptions)
	if err != nil {
		return err
	}
	next := []string{"parley plugin build " + data.Dir}
	return opts.app.print(data, next, func(w io.Writer) {
		fmt.Fprintf(w, "Made %s: %s\nNext: %s\n", data.Dir, strings.Join(data.Files, ", "), next[0])
	})
}
