package cli

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

func newSecret(app *App) *cobra.Command {
	return parent("secret", "Secrets", newSecretSet(app), newSecretList(app), newSecretRemove(app))
}

type secretSetOptions struct {
	app  *App
	name string
}

func newSecretSet(app *App) *cobra.Command {
	opts := &secretSetOptions{app: app}
	return &cobra.Command{
		Use:     "set NAME",
		Short:   "Store a value, read from stdin",
		Example: "parley secret set GITHUB_TOKEN < token.txt",
		RunE:    runWith(runSecretSet, opts, &opts.name),
	}
}

func runSecretSet(ctx context.Context, opts *secretSetOptions) error {
	app := opts.app
	value, err := app.readSecret(ctx, opts.name)
	if err != nil {
		return err
	}
	data, err := command.SetSecret(app.deps, opts.name, value)
	if err != nil {
		return err
	}
	if data.Bytes < host.MinHeldSecret {
		app.notice(fmt.Sprintf("%s has %d bytes; values under %d bytes are not redacted from records of calls that do not "+
			"use the secret", data.Name, data.Bytes, host.MinHeldSecret))
	}
	next := []string{"parley secret list", "parley policy grant PLUGIN secret:" + data.Name}
	return app.print(data, next, func(w io.Writer) { fmt.Fprintf(w, "Stored %s (%d bytes)\n", data.Name, data.Bytes) })
}

// readSecret reads a value from stdin, without a newline at its end. On a terminal it asks for the value and does not
// show what is typed.
func (a *App) readSecret(ctx context.Context, name string) (string, error) {
	if f, ok := a.In.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		fmt.Fprintf(a.Err, "Value of %s (not shown): ", name)
		shown, err := term.GetState(int(f.Fd()))
		if err != nil {
			return "", host.Errorf(host.Unavailable, "the terminal cannot hide what is typed: %v; nothing was changed", err)
		}
		value, err := awaitOrAbandon(ctx, func() ([]byte, error) { return term.ReadPassword(int(f.Fd())) })
		fmt.Fprintln(a.Err)
		if err != nil {
			_ = term.Restore(int(f.Fd()), shown) // an abandoned read does not do that
		}
		if err != nil && ctx.Err() == nil {
			err = host.Errorf(host.Interrupted, "no value was read; nothing was changed")
		}
		return string(value), err
	}
	data, err := io.ReadAll(io.LimitReader(a.input(ctx), policy.MaxSecret+3))
	if ctx.Err() != nil {
		return "", context.Cause(ctx)
	}
	if err != nil {
		return "", host.Errorf(host.InvalidArgs, "cannot read stdin: %v; nothing was changed", err)
	}
	return strings.TrimSuffix(strings.TrimSuffix(string(data), "\n"), "\r"), nil
}

type secretListOptions struct{ app *App }

func newSecretList(app *App) *cobra.Command {
	opts := &secretListOptions{app: app}
	return &cobra.Command{
		Use:     "list",
		Short:   "List names and the sources of their values",
		Example: "parley secret list",
		RunE:    runWith(runSecretList, opts),
	}
}

func runSecretList(_ context.Context, opts *secretListOptions) error {
	data, err := command.Secrets(opts.app.deps)
	if err != nil {
		return err
	}
	next := []string{"parley secret set NAME < FILE"}
	return opts.app.print(data, next, func(w io.Writer) {
		if data.Total == 0 {
			fmt.Fprintln(w, "No secret is stored.")
		}
		for _, s := range data.Secrets {
			fmt.Fprintln(w, strings.TrimRight(fmt.Sprintf("%-24s %-24s %s", s.Name, s.From, s.At), " "))
		}
		fmt.Fprintln(w, "Next: "+next[0])
	})
}

type secretRemoveOptions struct {
	app  *App
	name string
}

func newSecretRemove(app *App) *cobra.Command {
	opts := &secretRemoveOptions{app: app}
	return &cobra.Command{
		Use:     "remove NAME",
		Short:   "Remove a value",
		Example: "parley secret remove GITHUB_TOKEN",
		ValidArgsFunction: func(_ *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
			names, err := app.deps.Secrets().Names()
			if err != nil || len(args) > 0 {
				names = nil
			}
			return startingWith(typed, names), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: runWith(runSecretRemove, opts, &opts.name),
	}
}

func runSecretRemove(_ context.Context, opts *secretRemoveOptions) error {
	data, err := command.RemoveSecret(opts.app.deps, opts.name)
	if err != nil {
		return err
	}
	return opts.app.print(data, []string{"parley secret list"}, func(w io.Writer) {
		fmt.Fprintln(w, "Removed "+data.Name)
	})
}
