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

func newPlugin(app *App) *cobra.Command {
	return parent("plugin", "Plugins",
		newPluginInstall(app), newPluginList(app), newPluginShow(app), newPluginRemove(app),
		newPluginNew(app), newPluginSchema(app), newPluginBuild(app), newPluginPack(app),
		newPluginRun(app), newPluginDev(app), newPluginWrap(app),
		newPluginPush(app), newPluginPull(app), newPluginUpdate(app),
		newPluginLock(app), newPluginSync(app),
		newPluginCheck(app), newPluginTest(app), newPluginDiff(app),
		newPluginSign(app), newPluginVerify(app), newPluginTrust(app))
}

type pluginListOptions struct{ app *App }

func newPluginList(app *App) *cobra.Command {
	opts := &pluginListOptions{app: app}
	return &cobra.Command{
		Use:     "list",
		Short:   "List installed and shipped plugins",
		Example: "parley plugin list --json",
		RunE:    runWith(runPluginList, opts),
	}
}

func runPluginList(_ context.Context, opts *pluginListOptions) error {
	data, err := command.PluginList(opts.app.deps)
	if err != nil {
		return err
	}
	next := []string{"parley plugin install FILE", "parley plugin show text"}
	return opts.app.print(data, next, func(w io.Writer) {
		for _, p := range data.Plugins {
			from := p.From
			if p.Signer != nil && p.KeyID != "" {
				from += "; " + command.SignatureText(*p.Signer)
			}
			fmt.Fprintf(w, "%-12s %-14s %-9s %s\n", p.Name, p.Version, p.Kind, from)
		}
		fmt.Fprintln(w, "Next: "+next[0])
	})
}

type pluginShowOptions struct {
	app  *App
	name string
}

func newPluginShow(app *App) *cobra.Command {
	opts := &pluginShowOptions{app: app}
	return &cobra.Command{
		Use:               "show NAME",
		Short:             "Show a plugin: version, digest, rights it asks for",
		Example:           "parley plugin show text",
		ValidArgsFunction: app.completePlugins,
		RunE:              runWith(runPluginShow, opts, &opts.name),
	}
}

func runPluginShow(_ context.Context, opts *pluginShowOptions) error {
	app := opts.app
	data, err := command.ShowPlugin(app.deps, opts.name)
	if err != nil {
		return err
	}
	next := []string{"parley " + data.Name + " --list"}
	return app.print(data, next, func(w io.Writer) {
		fmt.Fprintf(w, "%s %s (%s, %s), %s\n  %s\n",
			data.Name, data.Version, data.Kind, manifest.Plural(data.Tools, "tool"), data.From, data.Brief)
		if data.Description != "" {
			fmt.Fprintln(w, wrapped("  "+data.Description, app.columns(), "  "))
		}
		if data.Digest != "" {
			fmt.Fprintln(w, "  "+data.Digest)
		}
		if data.Signer != nil {
			fmt.Fprintln(w, "  "+command.SignatureText(*data.Signer))
		}
		command.WriteAsks(w, data.Asks, nil, nil)
		for _, c := range data.ExitCodes {
			fmt.Fprintf(w, "  exit %d %s: %s\n", c.Code, manifest.CleanLine(c.Name), manifest.CleanLine(c.Meaning))
		}
		fmt.Fprintln(w, "Next: "+next[0])
	})
}

type pluginRemoveOptions struct {
	app  *App
	name string
}

func newPluginRemove(app *App) *cobra.Command {
	opts := &pluginRemoveOptions{app: app}
	return &cobra.Command{
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
		RunE: runWith(runPluginRemove, opts, &opts.name),
	}
}

func runPluginRemove(_ context.Context, opts *pluginRemoveOptions) error {
	data, err := command.RemovePlugin(opts.app.deps, opts.name)
	if err != nil {
		return err
	}
	return opts.app.print(data, []string{"parley plugin list"}, func(w io.Writer) {
		fmt.Fprintf(w, "Removed %s %s\n", data.Name, data.Version)
	})
}
