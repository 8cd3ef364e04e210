package admin

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/parley-tools/parley/cmd/parley/internal/command"
	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/policy"
)

func newSecret(app *command.App) *cobra.Command {
	return command.Parent("secret", "Secrets", newSecretSet(app), newSecretList(app), newSecretRemove(app))
}

type secretSetOptions struct {
	App  *command.App
	Name string
}

func newSecretSet(app *command.App) *cobra.Command {
	opts := &secretSetOptions{App: app}
	return &cobra.Command{
		Use:     "set NAME",
		Short:   "Store a value, read from stdin",
		Example: "parley secret set GITHUB_TOKEN < token.txt",
		RunE:    command.RunWith(runSecretSet, opts, &opts.Name),
	}
}

func runSecretSet(ctx context.Context, opts *secretSetOptions) error {
	app := opts.App
	value, err := readSecret(ctx, app, opts.Name)
	if err != nil {
		return err
	}
	data, err := setSecret(app, opts.Name, value)
	if err != nil {
		return err
	}
	if data.Bytes < host.MinHeldSecret {
		app.Notice(fmt.Sprintf("%s has %d bytes; values under %d bytes are not redacted from records of calls that do not "+
			"use the secret", data.Name, data.Bytes, host.MinHeldSecret))
	}
	next := []string{"parley secret list", "parley policy grant PLUGIN secret:" + data.Name}
	return app.Print(data, next, func(w io.Writer) { fmt.Fprintf(w, "Stored %s (%d bytes)\n", data.Name, data.Bytes) })
}

// readSecret reads a value from stdin, without a newline at its end. On a terminal it asks for the value and does not
// show what is typed.
func readSecret(ctx context.Context, a *command.App, name string) (string, error) {
	if f, ok := a.In.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		fmt.Fprintf(a.Err, "Value of %s (not shown): ", name)
		shown, err := term.GetState(int(f.Fd()))
		if err != nil {
			return "", host.Errorf(host.Unavailable, "the terminal cannot hide what is typed: %v; nothing was changed", err)
		}
		value, err := command.AwaitOrAbandon(ctx, func() ([]byte, error) { return term.ReadPassword(int(f.Fd())) })
		fmt.Fprintln(a.Err)
		if err != nil {
			_ = term.Restore(int(f.Fd()), shown) // an abandoned read does not do that
		}
		if err != nil && ctx.Err() == nil {
			err = host.Errorf(host.Interrupted, "no value was read; nothing was changed")
		}
		return string(value), err
	}
	data, err := io.ReadAll(io.LimitReader(a.Input(ctx), policy.MaxSecret+3))
	if ctx.Err() != nil {
		return "", context.Cause(ctx)
	}
	if err != nil {
		return "", host.Errorf(host.InvalidArgs, "cannot read stdin: %v; nothing was changed", err)
	}
	return strings.TrimSuffix(strings.TrimSuffix(string(data), "\n"), "\r"), nil
}

func newSecretList(app *command.App) *cobra.Command {
	return &cobra.Command{
		Use:     "list",
		Short:   "List names and the sources of their values",
		Example: "parley secret list",
		RunE:    command.RunWith(runSecretList, app),
	}
}

func runSecretList(_ context.Context, app *command.App) error {
	data, err := secrets(app)
	if err != nil {
		return err
	}
	next := []string{"parley secret set NAME < FILE"}
	return app.Print(data, next, func(w io.Writer) {
		if data.Total == 0 {
			fmt.Fprintln(w, "No secret is stored.")
		}
		for _, s := range data.Secrets {
			fmt.Fprintln(w, strings.TrimRight(fmt.Sprintf("%-24s %-24s %s", s.Name, s.From, s.At), " "))
		}
		fmt.Fprintln(w, "Next: "+next[0])
	})
}

func newSecretRemove(app *command.App) *cobra.Command {
	return &cobra.Command{
		Use:     "remove NAME",
		Short:   "Remove a value",
		Example: "parley secret remove GITHUB_TOKEN",
		ValidArgsFunction: func(_ *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
			names, err := app.Parley().Secrets().Names()
			if err != nil || len(args) > 0 {
				names = nil
			}
			return command.StartingWith(typed, names), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: command.RunWord(app, runSecretRemove),
	}
}

func runSecretRemove(_ context.Context, app *command.App, name string) error {
	data, err := removeSecret(app, name)
	if err != nil {
		return err
	}
	return app.Print(data, []string{"parley secret list"}, func(w io.Writer) {
		fmt.Fprintln(w, "Removed "+data.Name)
	})
}

// secretsData are the secrets of the operator, without their values.
type secretsData struct {
	Secrets []policy.SecretSource `json:"secrets"`
	Total   int                   `json:"total"`
}

// secrets lists the names of secrets and the sources of their values.
func secrets(app *command.App) (*secretsData, error) {
	rules, err := app.Parley().Policy()
	if err != nil {
		return nil, err
	}
	sources, err := rules.Secrets()
	if err != nil {
		return nil, err
	}
	return &secretsData{sources, len(sources)}, nil
}

// secretData is a secret that was stored.
type secretData struct {
	Name  string `json:"name"`
	Bytes int    `json:"bytes"` // size of the value
}

// setSecret stores the value of a secret and records that in the audit log. The value is in no error.
func setSecret(app *command.App, name, value string) (*secretData, error) {
	if err := app.Parley().Secrets().Set(name, value); err != nil {
		return nil, err
	}
	app.Note("secret", name, "set")
	return &secretData{name, len(value)}, nil
}

// removedSecret is a secret that was removed.
type removedSecret struct {
	Name string `json:"name"`
}

// removeSecret removes the value of a secret and records that in the audit log. The error is not_found for a secret
// that is not stored.
func removeSecret(app *command.App, name string) (*removedSecret, error) {
	if err := app.Parley().Secrets().Remove(name); err != nil {
		return nil, err
	}
	app.Note("secret", name, "removed")
	return &removedSecret{name}, nil
}
