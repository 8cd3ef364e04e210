package cli

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/parley-tools/parley/cmd/parley/internal/command"
	"github.com/parley-tools/parley/host"
)

type pluginBuildOptions struct {
	app *App
	command.BuildOptions
}

func newPluginBuild(app *App, run runFunc[pluginBuildOptions]) *cobra.Command {
	opts, run := &pluginBuildOptions{app: app}, run.or(runPluginBuild)
	cmd := &cobra.Command{
		Use:   "build [DIR]",
		Short: "Build a plugin from Go source: wasm and manifest in one file",
		Long: "Generates the manifest from the code, compiles with the flags that make the result reproducible, and\n" +
			"checks it. A folder without a go.mod gets one that finds the SDK in this binary: no network is needed.",
		Example: "parley plugin build ./hello",
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case len(args) == 1 && args[0] != "":
				opts.Dir = args[0]
			case len(args) > 0:
				return host.Errorf(host.InvalidArgs, "parley plugin build takes one DIR, or none for the current folder")
			}
			return run(cmd.Context(), opts)
		},
	}
	cmd.Flags().StringVar(&opts.Out, "out", "", "default DIR/plugin.wasm; .gz compresses")
	cmd.Flags().StringVar(&opts.Manifest, "manifest", "", "also write the manifest alone to this file")
	return cmd
}

func runPluginBuild(ctx context.Context, opts *pluginBuildOptions) error {
	data, err := command.BuildPlugin(ctx, opts.app.deps, opts.BuildOptions)
	if err != nil {
		return err
	}
	out := shellQuote(data.Out)
	next := []string{"parley plugin install " + out, "parley " + data.Name + " --list --load " + out}
	refused := len(data.Admission.Errors()) > 0
	if refused {
		next = []string{"parley plugin build" + strings.TrimSuffix(" "+shellQuote(opts.Dir), " ''")}
	}
	return opts.app.print(data, next, func(w io.Writer) {
		fmt.Fprintf(w, "Built %s: %s, %s, %d bytes\n", data.Out, data.Name, plural(data.Tools, "tool"), data.Bytes)
		writeAsks(w, data.Admission.Rights, nil, nil)
		writeAdmission(w, data.Admission)
		if refused {
			fmt.Fprintln(w, "  An installation refuses it because of these errors. Change the texts and build again.")
		}
		fmt.Fprintln(w, "Next: "+next[0])
	})
}
