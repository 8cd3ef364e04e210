package cli

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/parley-tools/parley"
	"github.com/parley-tools/parley/cdp"
	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/wasm"
	"github.com/parley-tools/parley/manifest"
)

func newPlugin(app *App) *cobra.Command {
	list := &cobra.Command{
		Use:     "list",
		Short:   "List installed and shipped plugins",
		Example: "parley plugin list --json",
		Args:    noWords,
		RunE:    func(*cobra.Command, []string) error { return app.listInstalled() },
	}
	remove := &cobra.Command{
		Use:     "remove NAME",
		Short:   "Remove an installed plugin",
		Example: "parley plugin remove hello",
		ValidArgsFunction: func(_ *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
			entries, err := app.deps.Store().List()
			var found []string
			for _, e := range entries {
				if err == nil && len(args) == 0 && strings.HasPrefix(e.Name, typed) {
					found = append(found, e.Name+"\t"+manifest.CleanLine(e.Brief))
				}
			}
			return found, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return missingWord("plugin remove", "one NAME", "parley plugin list")
			}
			return app.remove(args[0])
		},
	}
	show := &cobra.Command{
		Use:               "show NAME",
		Short:             "Show a plugin: version, digest, rights it asks for",
		Example:           "parley plugin show text",
		ValidArgsFunction: app.completePlugins,
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return missingWord("plugin show", "one NAME", "parley plugin list")
			}
			return app.showPlugin(args[0])
		},
	}
	return parent("plugin", "Manage plugins", newPluginInstall(app), list, show, remove, newPluginBuild(app), newPluginCheck(app),
		newPluginSign(app), newPluginVerify(app), newPluginTrust(app))
}

// installed is what install, list, show and remove say of a plugin.
type installed struct {
	Name     string `json:"name"`
	Version  string `json:"version"`
	Kind     string `json:"kind"`
	Brief    string `json:"brief"`
	Groups   int    `json:"groups"`
	Tools    int    `json:"tools"`
	Digest   string `json:"digest,omitempty"`
	From     string `json:"from"` // a path, "shipped" or "builtin"
	Replaced string `json:"replaced,omitempty"`
	// Rebuilt says that what it replaced was another build of the same version.
	Rebuilt bool `json:"rebuilt,omitempty"`
	// Unchanged says that the very same build was installed already.
	Unchanged      bool `json:"unchanged,omitempty"`
	*parley.Signer      // nil for what is shipped or built in
	// Asks are the rights that the plugin asks for, with its own words why. Asking grants nothing.
	Asks []host.Denial `json:"asks"`
	// NewRights are those of Asks that the replaced build did not ask for, DroppedRights those that only it asked for.
	NewRights     []string `json:"new_rights,omitempty"`
	DroppedRights []string `json:"dropped_rights,omitempty"`
	// ManifestDiff is how the manifest differs from that of the replaced build, in at most 20 lines ("-" before, "+" now).
	ManifestDiff []string `json:"manifest_diff,omitempty"`
	// Granted is what --grant gave to this build; Revoked is what had been granted to a build that is gone now.
	Granted []string `json:"granted,omitempty"`
	Revoked []string `json:"revoked,omitempty"`
}

func installedOf(info host.Info, from string, m *manifest.Manifest) installed {
	i := installed{
		Name: info.Name, Version: info.Version, Kind: info.Kind, Brief: manifest.CleanLine(info.Brief),
		Groups: info.Groups, Tools: info.Tools, Digest: info.Digest, From: from, Asks: []host.Denial{},
	}
	if m != nil {
		i.Asks = append(i.Asks, host.Asked(m.Capabilities)...)
	}
	return i
}

func (a *App) listInstalled() error {
	catalog, err := a.deps.Catalog()
	if err != nil {
		return err
	}
	entries, err := a.deps.Store().List()
	if err != nil {
		return err
	}
	list := []installed{}
	for _, p := range catalog.Providers() {
		list = append(list, a.listed(p.Info(), entries, nil))
	}
	data := struct {
		Plugins []installed `json:"plugins"`
		Total   int         `json:"total"`
	}{list, len(list)}
	next := []string{"parley plugin install FILE", "parley plugin show text"}
	return a.answer(data, next, func(w io.Writer) {
		for _, i := range list {
			from := i.From
			if i.Signer != nil && i.KeyID != "" {
				from += "; " + signatureText(*i.Signer)
			}
			fmt.Fprintf(w, "%-12s %-14s %-9s %s\n", i.Name, i.Version, i.Kind, from)
		}
		fmt.Fprintln(w, "Next: "+next[0])
	})
}

// listed says of a plugin what the lock file says; whether a key is trusted is the list's of this moment.
func (a *App) listed(info host.Info, entries []wasm.Entry, m *manifest.Manifest) installed {
	at := slices.IndexFunc(entries, func(e wasm.Entry) bool { return e.Digest == info.Digest })
	switch {
	case info.Kind == manifest.KindBuiltin:
		return installedOf(info, "builtin", m)
	case at < 0:
		return installedOf(info, "shipped", m)
	}
	i := installedOf(info, entries[at].Source, m)
	i.Signer = a.installedSigner(entries[at])
	return i
}

func (a *App) showPlugin(name string) error {
	catalog, err := a.deps.Catalog()
	if err != nil {
		return err
	}
	at, err := catalog.FindIn(name, "")
	if err != nil {
		return err
	}
	m, err := at.Provider.Manifest()
	if err != nil {
		return err
	}
	entries, err := a.deps.Store().List()
	if err != nil {
		return err
	}
	info := at.Provider.Info()
	data := struct {
		installed
		Description string              `json:"description"`
		License     string              `json:"license,omitempty"`
		Homepage    string              `json:"homepage,omitempty"`
		ExitCodes   []manifest.ExitCode `json:"exit_codes"`
	}{
		a.listed(info, entries, m), manifest.Clean(m.Docs.Standard), manifest.CleanLine(m.License),
		manifest.CleanLine(m.Homepage), append([]manifest.ExitCode{}, m.ExitCodes...),
	}
	next := []string{"parley " + info.Name + " --list"}
	return a.answer(data, next, func(w io.Writer) {
		fmt.Fprintf(w, "%s %s (%s, %s), %s\n  %s\n", info.Name, info.Version, info.Kind, plural(info.Tools, "tool"), data.From, data.Brief)
		if data.Description != "" {
			fmt.Fprintln(w, wrapped("  "+data.Description, a.columns(), "  "))
		}
		if data.Digest != "" {
			fmt.Fprintln(w, "  "+data.Digest)
		}
		if data.Signer != nil {
			fmt.Fprintln(w, "  "+signatureText(*data.Signer))
		}
		writeAsks(w, data.Asks, nil)
		for _, c := range data.ExitCodes {
			fmt.Fprintf(w, "  exit %d %s: %s\n", c.Code, manifest.CleanLine(c.Name), manifest.CleanLine(c.Meaning))
		}
		fmt.Fprintln(w, "Next: "+next[0])
	})
}

func (a *App) remove(name string) error {
	if strings.EqualFold(name, cdp.Name) {
		return host.Errorf(host.InvalidArgs, "%s is built in and cannot be removed", cdp.Name)
	}
	removed, err := a.deps.Parley().Remove(name)
	if err != nil {
		return err
	}
	if len(removed.Revoked) > 0 {
		a.notice("its grants were revoked: " + strings.Join(removed.Revoked, ", "))
	}
	data := installedOf(removed.Info(), removed.Source, nil)
	data.Revoked = removed.Revoked
	return a.answer(data, []string{"parley plugin list"}, func(w io.Writer) {
		fmt.Fprintf(w, "Removed %s %s\n", removed.Name, removed.Version)
	})
}
