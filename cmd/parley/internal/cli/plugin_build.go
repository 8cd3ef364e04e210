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

type pluginBuildOptions struct {
	app *App
	command.BuildOptions
}

func newPluginBuild(app *App) *cobra.Command {
	opts := &pluginBuildOptions{app: app}
	cmd := &cobra.Command{
		Use:   "build [DIR]",
		Short: "Build a plugin from source: wasm and manifest in one file",
		Long: "Compiles the Go, Rust, C or C++ source of DIR with the flags that make the result reproducible, puts the\n" +
			"manifest into it, and prints the report that an installation prints. The manifest of Go comes from the code,\n" +
			"that of other languages from manifest.json. A folder with Go and no go.mod gets one, with the SDK from this\n" +
			"binary: no network is needed.",
		Example: "parley plugin build ./hello",
		RunE:    runWith(runPluginBuild, opts, &opts.Dir),
	}
	cmd.Flags().StringVar(&opts.Out, "out", "", "default DIR/plugin.wasm; .gz compresses")
	cmd.Flags().BoolVar(&opts.Names, "names", false, "keep the names of functions, which show where a plugin crashes")
	cmd.Flags().StringVar(&opts.Manifest, "manifest", "", "also write the manifest alone to this file")
	return cmd
}

func runPluginBuild(ctx context.Context, opts *pluginBuildOptions) error {
	data, err := command.BuildPlugin(ctx, opts.app.deps, opts.BuildOptions)
	if err != nil {
		return err
	}
	again := "parley plugin build" + strings.TrimSuffix(" "+shellQuote(opts.Dir), " ''")
	if opts.Names {
		again += " --names"
	}
	return opts.app.printBuilt(data, "Built", again)
}

// printBuilt prints what was built or packed. again is the command that does it again.
func (a *App) printBuilt(data *command.BuildPluginData, did, again string) error {
	out := shellQuote(data.Out)
	next := []string{"parley plugin install " + out, "parley " + data.Name + " --list --load " + out}
	refused := len(data.Admission.Errors()) > 0
	if refused {
		next = []string{again}
	}
	return a.print(data, next, func(w io.Writer) {
		fmt.Fprintf(w, "%s %s: %s, %s, %d bytes\n", did, data.Out, data.Name, manifest.Plural(data.Tools, "tool"), data.Bytes)
		command.WriteAsks(w, data.Admission.Rights, nil, nil)
		command.WriteAdmission(w, data.Admission)
		if refused {
			fmt.Fprintln(w, "  An installation refuses it because of these errors. Change the texts, then repeat this.")
		}
		fmt.Fprintln(w, "Next: "+next[0])
	})
}
