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

type pluginDevOptions struct {
	app *App
	command.DevOptions
}

func newPluginDev(app *App) *cobra.Command {
	opts := &pluginDevOptions{app: app}
	opts.Dir = "."
	cmd := &cobra.Command{
		Use:   "dev [DIR]",
		Short: "Build and install a plugin whenever its source changes",
		Long: "Looks at the files of DIR every 300 ms. After a change it builds the plugin, signs it with a key of this\n" +
			"machine and installs it; running servers use the new build at once. Rights that are granted to the key stay:\n" +
			"trust the key once, then grant them with policy grant NAME RIGHT --signer. With --json it prints one line of\n" +
			"JSON a build. End it with Ctrl-C; the plugin stays installed.",
		Example: "parley plugin dev ./hello",
		RunE:    runWith(runPluginDev, opts, &opts.Dir),
	}
	cmd.Flags().BoolVar(&opts.Once, "once", false, "end after the first build")
	return cmd
}

func runPluginDev(ctx context.Context, opts *pluginDevOptions) error {
	app := opts.app
	var failed error // to print
	builds := 0
	opts.Each = func(data *command.DevPluginData, err error) {
		defer app.forget()
		switch {
		case err != nil:
			app.fail(err)
			return
		case data.Unchanged && builds > 0:
			return
		}
		builds++
		next := app.devSteps(data)
		if printed := app.print(data, next, func(w io.Writer) { writeDev(w, data, next) }); printed != nil {
			failed = printed
		}
	}
	if err := command.DevPlugin(ctx, app.deps, opts.DevOptions); err != nil {
		return err
	}
	return failed
}

// devSteps are what a developer may do with a build: call it, and have its rights stay.
func (a *App) devSteps(data *command.DevPluginData) []string {
	next := []string{"parley " + data.Name + " --list"}
	if len(data.Asks) > len(data.Applies) {
		if !data.Trusted {
			next = append(next, "parley plugin trust "+data.Key+" --name dev")
		}
		next = append(next, "parley policy grant "+data.Name+" "+shellQuote(data.Asks[0])+" --signer")
	}
	return next
}

func writeDev(w io.Writer, data *command.DevPluginData, next []string) {
	fmt.Fprintf(w, "%s %s is installed, %s, %d ms\n", data.Name, manifest.CleanLine(data.Version), data.Digest, data.MS)
	if len(data.Applies) > 0 {
		fmt.Fprintln(w, "  these grants apply to it: "+strings.Join(data.Applies, ", "))
	}
	for i, line := range data.Lint {
		if i == command.MaxListed {
			fmt.Fprintf(w, "  and %d more; parley plugin check %s lists them\n", len(data.Lint)-command.MaxListed, data.Name)
			break
		}
		fmt.Fprintln(w, "  "+line)
	}
	for i, n := range next {
		fmt.Fprintln(w, []string{"Next: ", "      "}[min(i, 1)]+n)
	}
}
