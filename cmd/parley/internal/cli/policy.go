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

func newPolicy(app *App) *cobra.Command {
	return parent("policy", "Rights",
		newPolicyCheck(app), newPolicyExplain(app), newPolicyGrant(app), newPolicyRevoke(app))
}

type policyCheckOptions struct{ app *App }

func newPolicyCheck(app *App) *cobra.Command {
	opts := &policyCheckOptions{app: app}
	return &cobra.Command{
		Use:     "check",
		Short:   "Check the policy's files",
		Example: "parley policy check",
		RunE:    runWith(runPolicyCheck, opts),
	}
}

func runPolicyCheck(_ context.Context, opts *policyCheckOptions) error {
	data, err := command.CheckPolicy(opts.app.deps)
	if err != nil {
		return err
	}
	raw, err := manifest.Marshal(data)
	if err != nil {
		return err
	}
	env := &command.Envelope{OK: true, Data: raw, Warnings: data.Warnings, Next: []string{"parley policy explain text"}}
	return opts.app.printEnvelope(env, func(w io.Writer) {
		if len(data.Files) == 0 {
			fmt.Fprintln(w, "No policy file: plugins have no rights, and this command line may call every tool.")
		}
		for _, f := range data.Files {
			fmt.Fprintln(w, "ok "+f)
		}
		for _, m := range data.Rules {
			names := strings.Join(m.First, ", ")
			if m.Matches > len(m.First) {
				names += ", .."
			}
			fmt.Fprintf(w, "  %s: %s: %d %s\n", m.Where, m.Rule, m.Matches, names)
		}
	})
}

type policyExplainOptions struct {
	app  *App
	name string // PLUGIN or PLUGIN.TOOL
}

func newPolicyExplain(app *App) *cobra.Command {
	opts := &policyExplainOptions{app: app}
	return &cobra.Command{
		Use:               "explain PLUGIN[.TOOL]",
		Short:             "Show what is requested, granted and refused, and by which line",
		Example:           "parley policy explain text",
		ValidArgsFunction: app.completePlugins,
		RunE:              runWith(runPolicyExplain, opts, &opts.name),
	}
}

func runPolicyExplain(_ context.Context, opts *policyExplainOptions) error {
	x, err := command.ExplainPolicy(opts.app.deps, opts.name)
	if err != nil {
		return err
	}
	next := []string{}
	for _, r := range x.Rights {
		if r.Next != "" {
			next = append(next, r.Next)
		}
	}
	return opts.app.print(x, next, func(w io.Writer) { fmt.Fprintln(w, strings.TrimRight(x.String(), "\n")) })
}

type policyGrantOptions struct {
	app *App
	command.GrantOptions
}

func newPolicyGrant(app *App) *cobra.Command {
	opts := &policyGrantOptions{app: app}
	cmd := &cobra.Command{
		Use:               "grant PLUGIN RIGHT...",
		Short:             "Grant rights to the installed build of a plugin",
		Example:           "parley policy grant github 'fs:ro:./data=/data' 'tool:text.*'",
		ValidArgsFunction: app.completePlugins,
		RunE: func(cmd *cobra.Command, args []string) error {
			opts.Plugin, opts.Rights = args[0], args[1:]
			return runPolicyGrant(cmd.Context(), opts)
		},
	}
	cmd.Flags().BoolVar(&opts.Signer, "signer", false, "grant to the trusted key that signed the build")
	addYes(cmd, &opts.Yes)
	return cmd
}

func runPolicyGrant(ctx context.Context, opts *policyGrantOptions) error {
	data, err := command.Grant(ctx, opts.app.deps, opts.GrantOptions)
	if err != nil {
		return err
	}
	return opts.app.printGrants(data)
}

type policyRevokeOptions struct {
	app *App
	command.GrantOptions
}

func newPolicyRevoke(app *App) *cobra.Command {
	opts := &policyRevokeOptions{app: app}
	cmd := &cobra.Command{
		Use:               "revoke PLUGIN [RIGHT...]",
		Short:             "Revoke rights of a plugin, all if none is named",
		Example:           "parley policy revoke github",
		ValidArgsFunction: app.completePlugins,
		RunE: func(cmd *cobra.Command, args []string) error {
			opts.Plugin, opts.Rights = args[0], args[1:]
			return runPolicyRevoke(cmd.Context(), opts)
		},
	}
	addYes(cmd, &opts.Yes)
	return cmd
}

func runPolicyRevoke(ctx context.Context, opts *policyRevokeOptions) error {
	data, err := command.Revoke(ctx, opts.app.deps, opts.GrantOptions)
	if err != nil {
		return err
	}
	return opts.app.printGrants(data)
}

func addYes(cmd *cobra.Command, yes *bool) {
	cmd.Flags().BoolVar(yes, "yes", false, "do not ask; only if the policy sets allow_yes")
}

func (a *App) printGrants(data *command.GrantData) error {
	return a.print(data, []string{"parley policy explain " + data.Plugin}, func(w io.Writer) {
		fmt.Fprintf(w, "Wrote %s: %d added, %d removed\n", data.File, len(data.Added), len(data.Removed))
	})
}
