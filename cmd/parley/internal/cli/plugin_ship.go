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

type pluginPushOptions struct {
	app *App
	command.PushOptions
}

func newPluginPush(app *App) *cobra.Command {
	opts := &pluginPushOptions{app: app}
	return &cobra.Command{
		Use:   "push PLUGIN URL",
		Short: "Publish a plugin in an OCI registry, with its signature",
		Long: "PLUGIN is a FILE.wasm, a folder or an installed plugin. The tag is the version unless one is given.\n" +
			"Credentials are those of Docker's config.json. Plain HTTP is used only for a registry on this machine. The\n" +
			"same plugin always has the same digest.",
		Example: "parley plugin push ./hello oci://registry.example/tools/hello:1.0.0",
		RunE:    runWith(runPluginPush, opts, &opts.Plugin, &opts.To),
	}
}

func runPluginPush(ctx context.Context, opts *pluginPushOptions) error {
	opts.Progress = opts.app.transfer()
	data, err := command.PushPlugin(ctx, opts.app.deps, opts.PushOptions)
	if err != nil {
		return err
	}
	tagged, _, _ := strings.Cut(data.Reference, "@")
	next := []string{"parley plugin install " + tagged}
	return opts.app.print(data, next, func(w io.Writer) {
		signed := "not signed"
		if data.Signed {
			signed = "with its signature"
		}
		fmt.Fprintf(w, "Pushed %s %s, %s\n  %s\nNext: %s\n", data.Name, manifest.CleanLine(data.Version), signed,
			data.Reference, next[0])
	})
}

type pluginPullOptions struct {
	app *App
	command.PullOptions
}

func newPluginPull(app *App) *cobra.Command {
	opts := &pluginPullOptions{app: app}
	cmd := &cobra.Command{
		Use:     "pull URL",
		Short:   "Fetch a plugin into a file, without installing it",
		Example: "parley plugin pull oci://registry.example/tools/hello:1.0.0",
		RunE:    runWith(runPluginPull, opts, &opts.From),
	}
	cmd.Flags().StringVar(&opts.Out, "out", "", "default NAME.wasm")
	return cmd
}

func runPluginPull(ctx context.Context, opts *pluginPullOptions) error {
	opts.Progress = opts.app.transfer()
	data, err := command.PullPlugin(ctx, opts.app.deps, opts.PullOptions)
	if err != nil {
		return err
	}
	next := []string{"parley plugin check " + shellQuote(data.Out), "parley plugin install " + shellQuote(data.Out)}
	return opts.app.print(data, next, func(w io.Writer) {
		fmt.Fprintf(w, "Fetched %s %s into %s\n  %s\nNext: %s\n", data.Name, manifest.CleanLine(data.Version), data.Out,
			data.Reference, next[0])
	})
}

type pluginUpdateOptions struct {
	app     *App
	scripts bool
	command.UpdateOptions
}

func newPluginUpdate(app *App) *cobra.Command {
	opts := &pluginUpdateOptions{app: app}
	cmd := &cobra.Command{
		Use:   "update [NAME]",
		Short: "Install what a plugin's registry or server has now",
		Long: "Looks at the tag or the URL that the plugin was installed from. Shows what a new build changes, and asks\n" +
			"before it is installed. It keeps those rights of the old build that it asks for too, and gains none. A build of\n" +
			"another signer is refused. --scripts is for plugins in JavaScript whose engine was replaced: it checks each on\n" +
			"the engine that is installed now, and binds it to that build.",
		Example:           "parley plugin update hello\nparley plugin update --scripts",
		ValidArgsFunction: app.completePlugins,
		RunE: func(cmd *cobra.Command, args []string) error {
			if opts.Name = oneWord(args); opts.scripts != (opts.Name == "") {
				return missingWord("plugin update", "one NAME, or --scripts", "parley plugin list")
			}
			return runPluginUpdate(cmd.Context(), opts)
		},
	}
	cmd.Flags().BoolVar(&opts.scripts, "scripts", false, "bind all installed scripts to the engines installed now")
	addYes(cmd, &opts.Yes)
	return cmd
}

func runPluginUpdate(ctx context.Context, opts *pluginUpdateOptions) error {
	if opts.scripts {
		return opts.app.updateScripts(ctx)
	}
	opts.Progress = opts.app.transfer()
	data, err := command.UpdatePlugin(ctx, opts.app.deps, opts.UpdateOptions)
	if err != nil {
		return err
	}
	return opts.app.printInstalled(data)
}

func (a *App) updateScripts(ctx context.Context) error {
	data, err := command.UpdateScripts(ctx, a.deps)
	if err != nil {
		return err
	}
	return a.print(data, []string{"parley plugin list"}, func(w io.Writer) {
		if len(data.Updated) == 0 {
			fmt.Fprintln(w, "All installed scripts run on the engines that are installed.")
			return
		}
		fmt.Fprintln(w, "Bound to the engine that is installed now: "+strings.Join(data.Updated, ", "))
	})
}

// transfer returns a function that prints how much of a file has been transferred, nil unless people see it.
func (a *App) transfer() func(done, total int64) {
	if !a.ErrTTY || a.json {
		return nil
	}
	last := int64(-1)
	return func(done, total int64) {
		if total > 0 && done*100/total != last {
			last = done * 100 / total
			end := ""
			if done == total {
				end = "\n"
			}
			const width = 30
			filled := int(last) * width / 100
			fmt.Fprintf(a.Err, "\r[%s%s] %3d%%%s", strings.Repeat("#", filled), strings.Repeat(" ", width-filled), last, end)
		}
	}
}
