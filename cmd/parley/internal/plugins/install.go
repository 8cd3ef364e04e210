package plugins

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/parley-tools/parley/cmd/parley/internal/command"
	"github.com/parley-tools/parley/manifest"
)

func newPluginInstall(app *command.App) *cobra.Command {
	opts := &pluginInstallOptions{}
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
		RunE:    command.RunWith(app, runPluginInstall, opts, &opts.Path),
	}
	cmd.Flags().BoolVar(&opts.Downgrade, "downgrade", false, "let an older version replace a newer one")
	cmd.Flags().Var((*command.Texts)(&opts.Grants), "grant",
		"grant this right to this build, as policy grant does; repeatable")
	cmd.Flags().StringVar(&opts.Signature, "signature", "", "signature file, if it is not beside FILE")
	cmd.Flags().BoolVar(&opts.Yes, "yes", false,
		"do not ask about grants and breaking changes; only if the policy sets allow_yes")
	return cmd
}

func runPluginInstall(ctx context.Context, app *command.App, opts *pluginInstallOptions) error {
	data, err := installPlugin(ctx, app, *opts)
	if err != nil {
		return err
	}
	return printInstalled(app, data)
}

// printInstalled prints what was installed.
func printInstalled(a *command.App, data *Plugin) error {
	trust := trustCommands(*data.Signer)
	next := append([]string{"parley " + data.Name + " --list"}, trust...)
	if len(data.Asks) > 0 {
		next = append(next, "parley policy explain "+data.Name)
	}
	return a.Print(data, next, func(w io.Writer) {
		verb := "Installed"
		if data.Unchanged {
			verb = "Already installed:"
		}
		writeInstalled(w, data, verb)
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

// writeInstalled describes a plugin that is or will be installed.
func writeInstalled(w io.Writer, p *Plugin, verb string) {
	fmt.Fprintf(w, "%s %s %s (%s, %s)\n  %s\n  %s\n", verb, p.Name, manifest.CleanLine(p.Version), p.Kind,
		manifest.Plural(p.Tools, "tool"), p.Digest, command.SignatureText(*p.Signer))
	carried := "no grants carry over"
	if len(p.Applies) > 0 {
		carried = "these grants apply to it: " + strings.Join(p.Applies, ", ")
	}
	switch {
	case p.Rebuilt:
		fmt.Fprintf(w, "  replaces another build of the same version %s; %s\n", manifest.CleanLine(p.Replaced), carried)
	case p.Replaced != "":
		fmt.Fprintf(w, "  replaces %s; %s\n", manifest.CleanLine(p.Replaced), carried)
	case len(p.Applies) > 0:
		fmt.Fprintln(w, "  "+carried)
	}
	command.WriteAsks(w, p.Asks, p.NewRights, p.Applies)
	if len(p.DroppedRights) > 0 {
		fmt.Fprintln(w, "  no longer asks for "+strings.Join(p.DroppedRights, ", "))
	}
	if p.Moved != "" {
		fmt.Fprintln(w, "  "+p.Moved)
	}
	if len(p.Breaks) > 0 {
		fmt.Fprintln(w, "  "+breaksText(p))
	}
	if p.Admission != nil {
		command.WriteAdmission(w, p.Admission)
	}
	if len(p.ManifestDiff) > 0 {
		fmt.Fprintln(w, "  how its manifest differs (- before, + now):")
		for _, line := range p.ManifestDiff {
			fmt.Fprintln(w, "    "+line)
		}
	}
}
