package cli

import (
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
	list := &cobra.Command{
		Use:     "list",
		Short:   "Show each setting, its value and where it comes from",
		Example: "parley config list --json",
		Args:    noWords,
		RunE:    func(*cobra.Command, []string) error { return app.listConfig() },
	}
	return parent("config", "Show settings", list)
}

func (a *App) listConfig() error {
	s, err := a.deps.Settings()
	if err != nil {
		return err
	}
	data := struct {
		Settings []command.SettingValue `json:"settings"`
		Paths    []command.NamedPath    `json:"paths"`
	}{s.Values, a.deps.Folders()}
	return a.answer(data, []string{"edit " + filepath.Join(a.deps.Dirs().Config, "config.toml")}, func(w io.Writer) {
		for _, v := range s.Values {
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

// noWords refuses words after a command that takes none.
func noWords(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return host.Errorf(host.InvalidArgs, "%s takes no words, and got %q", cmd.CommandPath(), manifest.CleanLine(args[0])).
		WithNext("parley help " + strings.TrimPrefix(cmd.CommandPath(), "parley "))
}

// parent makes a command that only holds others.
func parent(name, short string, children ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{
		Use:     name,
		Short:   short,
		Example: children[0].Example,
		Args:    cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			var names []string
			for _, c := range cmd.Commands() {
				names = append(names, c.Name())
			}
			if len(args) == 0 {
				return host.Errorf(host.InvalidArgs, "parley %s needs one of %s", name, strings.Join(names, ", ")).WithNext(strings.Split(children[0].Example, "\n")...)
			}
			e := command.UnknownValue(strings.ToUpper(name)+" COMMAND", args[0], names)
			e.Code, e.Details = host.NotFound, nil
			e.Message = fmt.Sprintf("parley %s has no command %s", name, manifest.CleanLine(args[0]))
			return e.WithNext("parley help " + name)
		},
	}
	cmd.AddCommand(children...)
	return cmd
}
