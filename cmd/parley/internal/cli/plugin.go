package cli

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/parley-tools/parley/cdp"
	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/wasm"
	"github.com/parley-tools/parley/manifest"
)

func newPlugin(app *App) *cobra.Command {
	install := &cobra.Command{
		Use:     "install FILE|DIR",
		Short:   "Install a plugin; it is granted nothing",
		Example: "parley plugin install ./hello/plugin.wasm",
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return missingWord("plugin install", "one FILE or DIR", "parley plugin install ./hello/plugin.wasm")
			}
			return app.install(cmd.Context(), args[0])
		},
	}
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
			entries, err := app.store().List()
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
	return parent("plugin", "Install, list, show, remove, build", install, list, show, remove, newPluginBuild(app))
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
	// Unchanged says that the very same plugin was installed already.
	Unchanged bool `json:"unchanged,omitempty"`
	// Asks are the rights that the plugin asks for, with its own words why. Asking grants nothing.
	Asks []host.Denial `json:"asks"`
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

func (a *App) install(ctx context.Context, path string) error {
	c, err := wasm.ReadCandidate(path, Version)
	if err != nil {
		return err
	}
	// Compiled before it is installed: what cannot be compiled within its bounds is no plugin, and the first call is quick.
	if err := a.engine().Provider(c.Source()).Prepare(ctx); err != nil {
		return err
	}
	entry, before, err := a.store().Install(c)
	if err != nil {
		return err
	}
	data := installedOf(entry.Info(), entry.Source, c.Manifest)
	if before != nil && before.Digest == entry.Digest {
		data.Unchanged = true
	} else if before != nil {
		data.Replaced = before.Version
	}
	next := []string{"parley " + entry.Name + " --list"}
	return a.answer(data, next, func(w io.Writer) {
		verb := "Installed"
		if data.Unchanged {
			verb = "Already installed:"
		}
		fmt.Fprintf(w, "%s %s %s (%s, %s)\n  %s\n", verb, data.Name, data.Version, data.Kind, plural(data.Tools, "tool"), data.Digest)
		if data.Replaced != "" {
			fmt.Fprintf(w, "  in place of %s\n", data.Replaced)
		}
		writeAsks(w, data.Asks)
		fmt.Fprintln(w, "Next: "+next[0])
	})
}

func writeAsks(w io.Writer, asks []host.Denial) {
	if len(asks) == 0 {
		fmt.Fprintln(w, "  asks for no rights")
		return
	}
	fmt.Fprintln(w, "  asks for these rights, none of which is granted by installing it:")
	for _, r := range asks {
		fmt.Fprintf(w, "    %s  %q\n", r.Right, r.Why)
	}
}

func (a *App) listInstalled() error {
	catalog, err := a.catalog()
	if err != nil {
		return err
	}
	entries, err := a.store().List()
	if err != nil {
		return err
	}
	sources := map[string]string{}
	for _, e := range entries {
		sources[e.Digest] = e.Source
	}
	list := []installed{}
	for _, p := range catalog.Providers() {
		list = append(list, installedOf(p.Info(), sourceOf(p.Info(), sources), nil))
	}
	data := struct {
		Plugins []installed `json:"plugins"`
		Total   int         `json:"total"`
	}{list, len(list)}
	next := []string{"parley plugin install FILE", "parley plugin show text"}
	return a.answer(data, next, func(w io.Writer) {
		for _, i := range list {
			fmt.Fprintf(w, "%-12s %-14s %-9s %s\n", i.Name, i.Version, i.Kind, i.From)
		}
		fmt.Fprintln(w, "Next: "+next[0])
	})
}

func sourceOf(info host.Info, sources map[string]string) string {
	switch {
	case info.Kind == manifest.KindBuiltin:
		return "builtin"
	case sources[info.Digest] != "":
		return sources[info.Digest]
	}
	return "shipped"
}

func (a *App) showPlugin(name string) error {
	catalog, err := a.catalog()
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
	sources := map[string]string{}
	if entries, err := a.store().List(); err == nil {
		for _, e := range entries {
			sources[e.Digest] = e.Source
		}
	}
	info := at.Provider.Info()
	data := struct {
		installed
		Description string              `json:"description"`
		License     string              `json:"license,omitempty"`
		Homepage    string              `json:"homepage,omitempty"`
		ExitCodes   []manifest.ExitCode `json:"exit_codes"`
	}{
		installedOf(info, sourceOf(info, sources), m), manifest.Clean(m.Docs.Standard), manifest.CleanLine(m.License),
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
		writeAsks(w, data.Asks)
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
	entry, err := a.store().Remove(name)
	if err != nil {
		if catalog, failed := a.catalog(); failed == nil && host.AsError(err).Code == host.NotFound {
			if _, shipped := catalog.Provider(name); shipped {
				return host.Errorf(host.InvalidArgs, "%s is part of this binary and cannot be removed; an installed plugin of its name takes its place", manifest.CleanLine(name)).
					WithNext("parley plugin list")
			}
		}
		return err
	}
	if rules, err := a.policy(); err == nil {
		if edit, err := rules.Revoke(entry.Name); err == nil && rules.WriteGrants(edit) == nil {
			a.notice("its grants went with it: " + strings.Join(edit.Removed, ", "))
		}
	}
	data := installedOf(entry.Info(), entry.Source, nil)
	return a.answer(data, []string{"parley plugin list"}, func(w io.Writer) {
		fmt.Fprintf(w, "Removed %s %s\n", entry.Name, entry.Version)
	})
}
