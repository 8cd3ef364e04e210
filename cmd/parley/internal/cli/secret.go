package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/policy"
)

func newSecret(app *App) *cobra.Command {
	set := &cobra.Command{
		Use:     "set NAME",
		Short:   "Keep a value, read from stdin",
		Example: "parley secret set GITHUB_TOKEN < token.txt",
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return missingWord("secret set", "one NAME; the value comes from stdin", "parley secret set GITHUB_TOKEN < token.txt")
			}
			return app.setSecret(cmd.Context(), args[0])
		},
	}
	list := &cobra.Command{
		Use:     "list",
		Short:   "List names and where their values come from",
		Example: "parley secret list",
		Args:    noWords,
		RunE:    func(*cobra.Command, []string) error { return app.listSecrets() },
	}
	remove := &cobra.Command{
		Use:     "remove NAME",
		Short:   "Forget a value",
		Example: "parley secret remove GITHUB_TOKEN",
		ValidArgsFunction: func(_ *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
			var found []string
			names, err := app.deps.Secrets().Names()
			for _, name := range names {
				if err == nil && len(args) == 0 && strings.HasPrefix(name, typed) {
					found = append(found, name)
				}
			}
			return found, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return missingWord("secret remove", "one NAME", "parley secret list")
			}
			return app.removeSecret(args[0])
		},
	}
	return parent("secret", "Keep secrets", set, list, remove)
}

// setSecret keeps what stdin holds, but for a newline at its end. The value is never shown, not even in an error.
func (a *App) setSecret(ctx context.Context, name string) error {
	value, err := a.readSecret(ctx, name)
	if err != nil {
		return err
	}
	if err := a.deps.Secrets().Set(name, value); err != nil {
		return err
	}
	a.note("secret", name, "set")
	data := struct {
		Name  string `json:"name"`
		Bytes int    `json:"bytes"`
	}{name, len(value)}
	next := []string{"parley secret list", "parley policy grant PLUGIN secret:" + name}
	return a.answer(data, next, func(w io.Writer) { fmt.Fprintf(w, "Keeps %s (%d bytes)\n", name, len(value)) })
}

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
			_ = term.Restore(int(f.Fd()), shown) // a read that was left would have done so at its end
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
		return "", host.Errorf(host.InvalidArgs, "stdin cannot be read: %v; nothing was changed", err)
	}
	return strings.TrimSuffix(strings.TrimSuffix(string(data), "\n"), "\r"), nil
}

func (a *App) listSecrets() error {
	rules, err := a.deps.Policy()
	if err != nil {
		return err
	}
	sources, err := rules.Secrets()
	if err != nil {
		return err
	}
	data := struct {
		Secrets []policy.SecretSource `json:"secrets"`
		Total   int                   `json:"total"`
	}{sources, len(sources)}
	return a.answer(data, []string{"parley secret set NAME < FILE"}, func(w io.Writer) {
		if len(sources) == 0 {
			fmt.Fprintln(w, "No secret is kept.")
		}
		for _, s := range sources {
			fmt.Fprintln(w, strings.TrimRight(fmt.Sprintf("%-24s %-24s %s", s.Name, s.From, s.At), " "))
		}
		fmt.Fprintln(w, "Next: parley secret set NAME < FILE")
	})
}

func (a *App) removeSecret(name string) error {
	if err := a.deps.Secrets().Remove(name); err != nil {
		return err
	}
	a.note("secret", name, "removed")
	data := struct {
		Name string `json:"name"`
	}{name}
	return a.answer(data, []string{"parley secret list"}, func(w io.Writer) { fmt.Fprintln(w, "Forgot "+name) })
}
