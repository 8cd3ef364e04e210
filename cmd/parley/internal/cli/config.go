package cli

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/parley-tools/parley/cmd/parley/internal/command"
	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/manifest"
)

func newConfig(app *App) *cobra.Command {
	return parent("config", "Settings", newConfigList(app))
}

type configListOptions struct{ app *App }

func newConfigList(app *App) *cobra.Command {
	opts := &configListOptions{app: app}
	return &cobra.Command{
		Use:     "list",
		Short:   "Show each setting, its value and where it comes from",
		Example: "parley config list --json",
		RunE:    runWith(runConfigList, opts),
	}
}

func runConfigList(_ context.Context, opts *configListOptions) error {
	deps := opts.app.deps
	data, err := command.Config(deps)
	if err != nil {
		return err
	}
	next := []string{"edit " + filepath.Join(deps.Dirs().Config, "config.toml")}
	return opts.app.print(data, next, func(w io.Writer) {
		for _, v := range data.Settings {
			fmt.Fprintf(w, "%-24s %-12s %s\n%24s %s\n", v.Name, shownValue(v.Value), v.Source, "", v.Description)
		}
		for _, p := range data.Paths {
			fmt.Fprintf(w, "%-24s %s\n", p.Name, p.Path)
		}
	})
}

func shownValue(v string) string {
	if v == "" {
		return `""`
	}
	return manifest.CleanLine(v)
}

// parent returns a command that does nothing but hold others.
func parent(name, short string, children ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{
		Use:     name,
		Short:   short,
		Example: children[0].Example,
		Args:    cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				names := strings.Join(childNames(cmd), ", ")
				return host.Errorf(host.InvalidArgs, "%s requires one of %s", cmd.CommandPath(), names).
					WithNext(strings.Split(children[0].Example, "\n")...)
			}
			return unknownCommand(cmd, args[0])
		},
	}
	cmd.AddCommand(children...)
	return cmd
}

func childNames(cmd *cobra.Command) (names []string) {
	for _, c := range cmd.Commands() {
		names = append(names, c.Name())
	}
	return names
}

// unknownCommand returns the error of a word after a command that holds others and has none of this name.
func unknownCommand(cmd *cobra.Command, word string) error {
	e := command.UnknownValue("COMMAND", word, childNames(cmd))
	e.Code, e.Details = host.NotFound, nil
	e.Message = fmt.Sprintf("parley %s has no command %s", cmd.Name(), manifest.CleanLine(word))
	for i := range e.DidYouMean {
		e.DidYouMean[i].Name = cmd.Name() + " " + e.DidYouMean[i].Name
	}
	return e.WithNext("parley help " + cmd.Name())
}
