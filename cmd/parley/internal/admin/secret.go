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
	"github.com/parley-tools/parley/host/policy/secret"
)

var secretCommand = &command.Group{Use: "secret", Short: "Store values that no tool sees", Of: []command.Maker{
	command.Plain("set NAME", "Store a value, read from stdin", "parley secret set GITHUB_TOKEN < token.txt",
		runSecretSet),
	command.Plain("list", "List names and the sources of their values", "parley secret list", runSecretList),
	command.Plain("remove NAME", "Remove a value", "parley secret remove GITHUB_TOKEN", runSecretRemove,
		command.FirstWord(func(app *command.App, _ *cobra.Command) []string {
			names, _ := app.Parley().Secrets().Names()
			return names
		})),
}}

// runSecretSet stores the value of a secret and records that in the audit log. Errors never contain the value.
func runSecretSet(ctx context.Context, app *command.App, name string) error {
	value, err := readSecret(ctx, app, name)
	if err != nil {
		return err
	}
	if err := app.Parley().Secrets().Set(name, value); err != nil {
		return err
	}
	app.Note("secret", name, "set")
	data := struct {
		Name  string `json:"name"`
		Bytes int    `json:"bytes"` // size of the value
	}{name, len(value)}
	if data.Bytes < host.MinHeldSecret {
		app.Notice(fmt.Sprintf("%s has %d bytes; values under %d bytes are not redacted from records of calls that do not "+
			"use the secret", data.Name, data.Bytes, host.MinHeldSecret))
	}
	next := []string{"parley secret list", "parley policy grant PLUGIN secret:" + data.Name}
	return app.Print(data, next, command.Text("Stored %s (%d bytes)\n", data.Name, data.Bytes))
}

// readSecret reads a value from stdin, without a newline at its end. On a terminal it asks for the value and does not
// show what is typed.
func readSecret(ctx context.Context, a *command.App, name string) (string, error) {
	if f, ok := a.In.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		value, err := command.ReadHidden(ctx, f, a.Err, "Value of "+name+" (not shown): ")
		if err != nil && ctx.Err() == nil {
			err = host.Errorf(host.Interrupted, "no value was read; nothing was changed")
		}
		return value, err
	}
	data, err := io.ReadAll(io.LimitReader(a.Input(ctx), secret.Max+3))
	if ctx.Err() != nil {
		return "", context.Cause(ctx)
	}
	if err != nil {
		return "", host.Errorf(host.InvalidArgs, "cannot read stdin: %v; nothing was changed", err)
	}
	return strings.TrimSuffix(strings.TrimSuffix(string(data), "\n"), "\r"), nil
}

// secretSources returns for all secrets where their values come from, according to the policy.
func secretSources(app *command.App) ([]policy.SecretSource, error) {
	rules, err := app.Parley().Policy()
	if err != nil {
		return nil, err
	}
	return rules.Secrets()
}

// runSecretList lists the names of secrets and the sources of their values.
func runSecretList(_ context.Context, app *command.App, _ string) error {
	sources, err := secretSources(app)
	if err != nil {
		return err
	}
	for i, s := range sources {
		if _, err := app.Parley().Secrets().Login(s.Name); err == nil && s.From == "store" {
			sources[i].From = "login"
		}
	}
	data := struct {
		Secrets []policy.SecretSource `json:"secrets"`
		Total   int                   `json:"total"`
	}{sources, len(sources)}
	return app.PrintNext(data, []string{"parley secret set NAME < FILE"}, func(w io.Writer) {
		command.PrintIf(w, data.Total == 0, "No secret is stored.\n")
		for _, s := range data.Secrets {
			fmt.Fprintln(w, strings.TrimRight(fmt.Sprintf("%-24s %-24s %s", s.Name, s.From, s.At), " "))
		}
	})
}

// runSecretRemove removes the value of a secret and records that in the audit log. The error is not_found for a secret
// that is not stored.
func runSecretRemove(_ context.Context, app *command.App, name string) error {
	if err := app.Parley().Secrets().Remove(name); err != nil {
		return err
	}
	app.Note("secret", name, "removed")
	data := map[string]string{"name": name}
	return app.Print(data, []string{"parley secret list"}, func(w io.Writer) { fmt.Fprintln(w, "Removed "+name) })
}
