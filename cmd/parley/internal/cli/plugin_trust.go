package cli

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/parley-tools/parley/cmd/parley/internal/command"
)

type pluginTrustOptions struct {
	app    *App
	list   bool
	remove bool
	command.TrustOptions
}

func newPluginTrust(app *App) *cobra.Command {
	opts := &pluginTrustOptions{app: app}
	remove := ""
	cmd := &cobra.Command{
		Use:   "trust [KEY|FILE.pub]",
		Short: "Trust a key whose signatures count, or list and remove trusted keys",
		Long: "A person at the terminal has to approve the change. Trusting a key grants no rights: it says who a plugin\n" +
			"is from. policy.toml can require a trusted signature for one plugin (signer) or for all (require_signer).",
		Example: "parley plugin trust my.key.pub --name me\nparley plugin trust --list\nparley plugin trust --remove me",
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case opts.list && len(args) == 0 && remove == "":
			case remove != "" && len(args) == 0 && !opts.list && opts.Name == "":
				opts.remove, opts.Key = true, remove
			case opts.list || remove != "" || len(args) != 1:
				return missingWord("plugin trust", "one KEY or FILE.pub, or --list, or --remove KEY",
					"parley plugin trust my.key.pub --name me")
			default:
				opts.Key = args[0]
			}
			return runPluginTrust(cmd.Context(), opts)
		},
	}
	cmd.Flags().StringVar(&opts.Name, "name", "", "your name for the key")
	cmd.Flags().BoolVar(&opts.list, "list", false, "list the trusted keys")
	cmd.Flags().StringVar(&remove, "remove", "", "no longer trust this key, or the key of this name")
	addYes(cmd, &opts.Yes)
	return cmd
}

func runPluginTrust(ctx context.Context, opts *pluginTrustOptions) error {
	if opts.list {
		return opts.app.listTrusted()
	}
	change := command.Trust
	if opts.remove {
		change = command.Untrust
	}
	data, err := change(ctx, opts.app.deps, opts.TrustOptions)
	if err != nil {
		return err
	}
	return opts.app.print(data, []string{"parley plugin trust --list"}, func(w io.Writer) {
		verb := "Trusted"
		if data.Removed {
			verb = "No longer trusted"
		}
		fmt.Fprintf(w, "%s: %s\n", verb, data.TrustedKey)
		if len(data.Plugins) > 0 {
			fmt.Fprintln(w, "  installed plugins that are signed with it: "+strings.Join(data.Plugins, ", "))
		}
	})
}

func (a *App) listTrusted() error {
	data, err := command.TrustedKeys(a.deps)
	if err != nil {
		return err
	}
	return a.print(data, []string{"parley plugin trust --help"}, func(w io.Writer) {
		if data.Total == 0 {
			fmt.Fprintln(w, "No key is trusted.")
		}
		for _, k := range data.Keys {
			fmt.Fprintln(w, k)
		}
	})
}
