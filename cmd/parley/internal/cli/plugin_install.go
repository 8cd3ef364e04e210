package cli

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/parley-tools/parley/cmd/parley/internal/command"
)

type pluginInstallOptions struct {
	app *App
	command.InstallOptions
}

func newPluginInstall(app *App) *cobra.Command {
	opts := &pluginInstallOptions{app: app}
	cmd := &cobra.Command{
		Use:   "install FILE|DIR|URL",
		Short: "Install a plugin; it is granted nothing",
		Long: "Shows which rights the plugin requests and why, in its own words, which rules for manifests it breaks, and\n" +
			"which of its examples are verified. --grant fs:ro:./data=/data and the like grant rights, after a question at\n" +
			"the terminal; parley policy grant does so later. A signature beside the file (FILE.minisig) must be valid. A\n" +
			"plugin whose texts could mislead an agent is refused unless it is signed with a trusted key or --accept RULE\n" +
			"accepts each rule that it breaks. A version that breaks callers and is not a higher major one has to be\n" +
			"confirmed at the terminal. A plugin at a URL, oci://HOST/NAME:TAG or https://HOST/FILE.wasm, is fetched with\n" +
			"its signature; the lock file pins its digest, and a tag that has moved has to be confirmed.",
		Example: "parley plugin install ./hello/plugin.wasm",
		RunE:    runWith(runPluginInstall, opts, &opts.Path),
	}
	cmd.Flags().Var((*texts)(&opts.Grants), "grant",
		"grant this right to this build, as policy grant does; repeatable")
	cmd.Flags().StringVar(&opts.Signature, "signature", "", "signature file, if it is not beside FILE")
	cmd.Flags().BoolVar(&opts.Downgrade, "downgrade", false, "let an older version replace a newer one")
	cmd.Flags().BoolVar(&opts.Yes, "yes", false,
		"do not ask about grants and breaking changes; only if the policy sets allow_yes")
	return cmd
}

func runPluginInstall(ctx context.Context, opts *pluginInstallOptions) error {
	opts.Progress = opts.app.transfer()
	data, err := command.InstallPlugin(ctx, opts.app.deps, opts.InstallOptions)
	if err != nil {
		return err
	}
	return opts.app.printInstalled(data)
}

// printInstalled prints what was installed.
func (a *App) printInstalled(data *command.Plugin) error {
	trust := trustCommands(*data.Signer)
	next := append([]string{"parley " + data.Name + " --list"}, trust...)
	if len(data.Asks) > 0 {
		next = append(next, "parley policy explain "+data.Name)
	}
	return a.print(data, next, func(w io.Writer) {
		verb := "Installed"
		if data.Unchanged {
			verb = "Already installed:"
		}
		command.WriteInstalled(w, data, verb)
		if len(data.Granted) > 0 {
			fmt.Fprintln(w, "  granted: "+strings.Join(data.Granted, ", "))
		}
		if len(data.Revoked) > 0 {
			fmt.Fprintln(w, "  revoked, because it was granted to the previous build: "+strings.Join(data.Revoked, ", "))
		}
		fmt.Fprintln(w, "Next: "+next[0])
		for _, n := range trust {
			fmt.Fprintln(w, "      "+n)
		}
	})
}
