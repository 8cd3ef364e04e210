package plugins

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/parley-tools/parley/cmd/parley/internal/command"
	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/manifest"
)

type pluginCheckOptions struct {
	app  *command.App
	name string
}

func newPluginCheck(app *command.App) *cobra.Command {
	opts := &pluginCheckOptions{app: app}
	return &cobra.Command{
		Use:   "check FILE|DIR|NAME",
		Short: "Print what an installation says of a plugin",
		Long: "For a file or a folder (hello.wasm, ./hello): rights, broken rules, and which examples are verified.\n" +
			"Nothing is installed. For an installed plugin it also searches for each task phrase, which must find its own\n" +
			"tool.",
		Example:           "parley plugin check ./hello/plugin.wasm\nparley plugin check text",
		ValidArgsFunction: app.Complete().Plugins,
		RunE:              command.RunWith(runPluginCheck, opts, &opts.name),
	}
}

func runPluginCheck(ctx context.Context, opts *pluginCheckOptions) error {
	if IsPluginFile(opts.name) {
		return reportPlugin(ctx, opts)
	}
	data, err := checkPlugin(ctx, opts.app, opts.name)
	if _, missing := os.Stat(opts.name); errors.Is(err, host.NotFound) && missing == nil {
		return reportPlugin(ctx, opts)
	}
	if err != nil {
		return err
	}
	return opts.app.Print(data, []string{"parley search --eval FILE"}, func(w io.Writer) {
		if data.Phrases == 0 {
			fmt.Fprintf(w, "%s has no task phrases\n", data.Plugin)
		} else {
			fmt.Fprintf(w, "%s: %s of %s, each finds its own tool among the first five\n",
				data.Plugin, manifest.Plural(data.Phrases, "task phrase"), manifest.Plural(data.Tools, "tool"))
		}
		if data.Admission != nil {
			command.WriteAsks(w, data.Admission.Rights, nil, nil)
			command.WriteAdmission(w, data.Admission)
		}
	})
}
