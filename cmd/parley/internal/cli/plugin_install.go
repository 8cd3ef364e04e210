package cli

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/parley-tools/parley"
	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/policy"
	"github.com/parley-tools/parley/host/wasm"
	"github.com/parley-tools/parley/manifest"
)

type installFlags struct {
	grants         []string
	signature      string
	downgrade, yes bool
}

func newPluginInstall(app *App) *cobra.Command {
	f := &installFlags{}
	cmd := &cobra.Command{
		Use:   "install FILE|DIR",
		Short: "Install a plugin; it is granted nothing",
		Long: "Shows what the plugin asks for and why, in its own words. Rights are given by --grant fs:ro:./data=/data and the like, which\n" +
			"asks at the terminal, or later by parley policy grant. A signature beside the file (FILE.minisig) must fit.",
		Example: "parley plugin install ./hello/plugin.wasm",
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return missingWord("plugin install", "one FILE or DIR", "parley plugin install ./hello/plugin.wasm")
			}
			return app.install(cmd.Context(), args[0], f)
		},
	}
	cmd.Flags().StringArrayVar(&f.grants, "grant", nil, "give this right to this build, as policy grant does; repeatable")
	cmd.Flags().StringVar(&f.signature, "signature", "", "signature file, if it is not beside FILE")
	cmd.Flags().BoolVar(&f.downgrade, "downgrade", false, "let an older version take the place of a newer one")
	cmd.Flags().BoolVar(&f.yes, "yes", false, "do not ask about --grant; only where the policy says allow_yes")
	return cmd
}

// shortDiff bounds the difference of manifests that install shows.
const shortDiff = 20

func (a *App) install(ctx context.Context, path string, f *installFlags) error {
	prepared, err := a.deps.Parley().PrepareInstall(ctx, path, parley.InstallOptions{Signature: f.signature, Downgrade: f.downgrade})
	if err != nil {
		return err
	}
	c := prepared.Candidate
	data := installedOf(c.Source().Info, c.Path, c.Manifest)
	data.Signer = &prepared.Signer
	a.compareWith(&data, prepared.Replaces, c)
	rules, err := a.deps.Policy()
	if err != nil {
		return err
	}
	edit, err := a.askToGrant(ctx, rules, c, data, f)
	if err != nil {
		return err
	}
	done, err := prepared.Commit(edit)
	if err != nil {
		return err
	}
	data.From, data.Granted, data.Revoked = done.Source, done.Granted, done.Revoked
	trust := trustCommands(prepared.Signer)
	for _, note := range rules.Explain(c.Source().Info, c.Manifest, "").Notes {
		a.notice(note)
	}
	next := append([]string{"parley " + data.Name + " --list"}, trust...)
	if len(data.Asks) > 0 {
		next = append(next, "parley policy explain "+data.Name)
	}
	return a.answer(data, next, func(w io.Writer) {
		verb := "Installed"
		if data.Unchanged {
			verb = "Already installed:"
		}
		data.write(w, verb)
		if len(data.Granted) > 0 {
			fmt.Fprintln(w, "  granted: "+strings.Join(data.Granted, ", "))
		}
		if len(data.Revoked) > 0 {
			fmt.Fprintln(w, "  what was granted to the build before went with it: "+strings.Join(data.Revoked, ", "))
		}
		fmt.Fprintln(w, "Next: "+next[0])
		for _, n := range trust {
			fmt.Fprintln(w, "      "+n)
		}
	})
}

// compareWith says what installing a build changes.
func (a *App) compareWith(data *installed, before *wasm.Entry, c *wasm.Candidate) {
	switch {
	case before == nil:
		return
	case before.Digest == c.Digest:
		data.Unchanged = true
		return
	}
	data.Replaced, data.Rebuilt = before.Version, before.Version == c.Manifest.Version
	old, ok := a.deps.Store().Approved(before.Digest)
	if !ok {
		return
	}
	data.ManifestDiff = strings.Split(wasm.ManifestDiff(old, c.ManifestJSON, shortDiff), "\n")
	m, err := manifest.Load(old)
	if err != nil {
		return
	}
	was, is := rightsOf(host.Asked(m.Capabilities)), rightsOf(data.Asks)
	data.NewRights = slices.DeleteFunc(slices.Clone(is), func(r string) bool { return slices.Contains(was, r) })
	data.DroppedRights = slices.DeleteFunc(was, func(r string) bool { return slices.Contains(is, r) })
}

func rightsOf(asks []host.Denial) []string {
	rights := make([]string, len(asks))
	for i, a := range asks {
		rights[i] = a.Right
	}
	return rights
}

// askToGrant prepares the grants that go with an install and asks a person about them. Nothing has been installed then. What the
// manifest does not ask for is refused.
func (a *App) askToGrant(ctx context.Context, rules *policy.Policy, c *wasm.Candidate, data installed, f *installFlags) (policy.Edit, error) {
	if len(f.grants) == 0 {
		return policy.Edit{}, nil
	}
	grants := make([]policy.Grant, len(f.grants))
	for i, text := range f.grants {
		g, err := policy.ParseGrant(text)
		if err != nil {
			return policy.Edit{}, host.Errorf(host.InvalidArgs, "%s; nothing was installed", manifest.CleanLine(err.Error())).WithNext("parley help plugin install")
		}
		if !g.RequestedBy(c.Manifest.Capabilities) {
			asks := "no rights"
			if len(data.Asks) > 0 {
				asks = strings.Join(rightsOf(data.Asks), ", ")
			}
			return policy.Edit{}, host.Errorf(host.InvalidArgs, "%s does not ask for %s: it asks for %s; nothing was installed", data.Name, g, asks).
				WithNext("parley plugin install " + shellQuote(data.From))
		}
		grants[i] = g
	}
	edit, err := rules.Grant(data.Name, data.Digest, grants...)
	if err != nil {
		return edit, err
	}
	var text strings.Builder
	data.write(&text, "To be installed:")
	text.WriteString(edit.Diff())
	return edit, a.approve(ctx, rules, text.String(), "Install it and write this?", f.yes)
}

// write says what a plugin is that is installed or is to be.
func (i installed) write(w io.Writer, verb string) {
	fmt.Fprintf(w, "%s %s %s (%s, %s)\n  %s\n  %s\n", verb, i.Name, manifest.CleanLine(i.Version), i.Kind, plural(i.Tools, "tool"), i.Digest, signatureText(*i.Signer))
	switch {
	case i.Rebuilt:
		fmt.Fprintf(w, "  in place of another build of the same version %s: it was built again, and no grants carry over\n", manifest.CleanLine(i.Replaced))
	case i.Replaced != "":
		fmt.Fprintf(w, "  in place of %s; no grants carry over\n", manifest.CleanLine(i.Replaced))
	}
	writeAsks(w, i.Asks, i.NewRights)
	if len(i.DroppedRights) > 0 {
		fmt.Fprintln(w, "  asks no longer for "+strings.Join(i.DroppedRights, ", "))
	}
	if len(i.ManifestDiff) > 0 {
		fmt.Fprintln(w, "  how its manifest differs (- before, + now):")
		for _, line := range i.ManifestDiff {
			fmt.Fprintln(w, "    "+line)
		}
	}
}

// writeAsks lists the rights that a plugin asks for, marking those that are new.
func writeAsks(w io.Writer, asks []host.Denial, added []string) {
	if len(asks) == 0 {
		fmt.Fprintln(w, "  asks for no rights")
		return
	}
	fmt.Fprintln(w, "  asks for these rights, none of which is granted by installing it:")
	for _, r := range asks {
		mark := ""
		if slices.Contains(added, r.Right) {
			mark = " (new)"
		}
		fmt.Fprintf(w, "    %s  %q%s\n", r.Right, r.Why, mark)
	}
}
