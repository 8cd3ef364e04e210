package admin

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/parley-tools/parley/cmd/parley/internal/command"
	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/policy"
	"github.com/parley-tools/parley/manifest"
)

func newPolicy(app *command.App) *cobra.Command {
	return command.Parent("policy", "Rights",
		newPolicyCheck(app), newPolicyExplain(app), newPolicyGrant(app), newPolicyRevoke(app))
}

func newPolicyCheck(app *command.App) *cobra.Command {
	return &cobra.Command{
		Use:     "check",
		Short:   "Check the policy's files",
		Example: "parley policy check",
		RunE:    command.RunWith(runPolicyCheck, app),
	}
}

func runPolicyCheck(_ context.Context, app *command.App) error {
	data, err := checkFiles(app)
	if err != nil {
		return err
	}
	raw, err := manifest.Marshal(data)
	if err != nil {
		return err
	}
	env := &command.Envelope{OK: true, Data: raw, Warnings: data.Warnings, Next: []string{"parley policy explain text"}}
	return app.PrintEnvelope(env, func(w io.Writer) {
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

func newPolicyExplain(app *command.App) *cobra.Command {
	return &cobra.Command{
		Use:               "explain PLUGIN[.TOOL]",
		Short:             "Show what is requested, granted and refused, and by which line",
		Example:           "parley policy explain text",
		ValidArgsFunction: app.Complete().Plugins,
		RunE:              command.RunWord(app, runPolicyExplain),
	}
}

func runPolicyExplain(_ context.Context, app *command.App, name string) error {
	x, err := explainPolicy(app, name)
	if err != nil {
		return err
	}
	next := []string{}
	for _, r := range x.Rights {
		if r.Next != "" {
			next = append(next, r.Next)
		}
	}
	return app.Print(x, next, func(w io.Writer) { fmt.Fprintln(w, strings.TrimRight(x.String(), "\n")) })
}

type policyGrantOptions struct {
	app *command.App
	grantOptions
}

func newPolicyGrant(app *command.App) *cobra.Command {
	opts := &policyGrantOptions{app: app}
	cmd := &cobra.Command{
		Use:               "grant PLUGIN RIGHT...",
		Short:             "Grant rights to the installed build of a plugin",
		Example:           "parley policy grant github 'fs:ro:./data=/data' 'tool:text.*'",
		ValidArgsFunction: app.Complete().Plugins,
		RunE: func(cmd *cobra.Command, args []string) error {
			opts.Plugin, opts.Rights = args[0], args[1:]
			return runPolicyGrant(cmd.Context(), opts)
		},
	}
	cmd.Flags().BoolVar(&opts.Signer, "signer", false, "grant to the trusted key that signed the build")
	command.AddYes(cmd, &opts.Yes)
	return cmd
}

func runPolicyGrant(ctx context.Context, opts *policyGrantOptions) error {
	data, err := grant(ctx, opts.app, opts.grantOptions)
	if err != nil {
		return err
	}
	return printGrants(opts.app, data)
}

type policyRevokeOptions struct {
	app *command.App
	grantOptions
}

func newPolicyRevoke(app *command.App) *cobra.Command {
	opts := &policyRevokeOptions{app: app}
	cmd := &cobra.Command{
		Use:               "revoke PLUGIN [RIGHT...]",
		Short:             "Revoke rights of a plugin, all if none is named",
		Example:           "parley policy revoke github",
		ValidArgsFunction: app.Complete().Plugins,
		RunE: func(cmd *cobra.Command, args []string) error {
			opts.Plugin, opts.Rights = args[0], args[1:]
			return runPolicyRevoke(cmd.Context(), opts)
		},
	}
	command.AddYes(cmd, &opts.Yes)
	return cmd
}

func runPolicyRevoke(ctx context.Context, opts *policyRevokeOptions) error {
	data, err := revoke(ctx, opts.app, opts.grantOptions)
	if err != nil {
		return err
	}
	return printGrants(opts.app, data)
}

func printGrants(a *command.App, data *grantData) error {
	return a.Print(data, []string{"parley policy explain " + data.Plugin}, func(w io.Writer) {
		fmt.Fprintf(w, "Wrote %s: %d added, %d removed\n", data.File, len(data.Added), len(data.Removed))
	})
}

// checkPolicyData are the files of the policy, all of which are valid, and what each of their rules applies to today.
type checkPolicyData struct {
	Files []string       `json:"files"`
	Rules []policy.Match `json:"rules"`

	Warnings []string `json:"-"` // of rules that match nothing
}

// checkFiles reads the files of the policy. The error is config_error for the first one that is invalid.
func checkFiles(app *command.App) (*checkPolicyData, error) {
	rules, err := app.Parley().Policy()
	if err != nil {
		return nil, err
	}
	if err := rules.CheckReach(); err != nil {
		return nil, err
	}
	catalog, err := app.Catalog()
	if err != nil {
		return nil, err
	}
	matches, err := rules.Matches(catalog)
	if err != nil {
		return nil, err
	}
	data := &checkPolicyData{Files: append([]string{}, rules.Explain(host.Info{}, nil, "").Files...), Rules: matches,
		Warnings: []string{}}
	for _, m := range matches {
		if m.Matches == 0 {
			text := fmt.Sprintf("%s: %s matches nothing today", m.Where, m.Rule)
			if len(m.DidYouMean) > 0 {
				text += "; did you mean " + m.DidYouMean[0].Name + "?"
			}
			data.Warnings = append(data.Warnings, text)
		}
	}
	return data, nil
}

// explainPolicyData is what a plugin or a tool asks for, what is granted and what is refused.
type explainPolicyData = policy.Explanation

// explainPolicy explains the policy for a plugin or, as PLUGIN.TOOL, for one of its tools.
func explainPolicy(app *command.App, name string) (*explainPolicyData, error) {
	rules, err := app.Parley().Policy()
	if err != nil {
		return nil, err
	}
	catalog, err := app.Catalog()
	if err != nil {
		return nil, err
	}
	at, err := catalog.Find(name)
	if err != nil {
		return nil, err
	}
	m, err := at.Provider.Manifest()
	if err != nil {
		return nil, err
	}
	tool := ""
	if at.Tool != nil {
		tool = at.Tool.Name
		with := *m
		with.Tools = []manifest.Tool{*at.Tool}
		m = &with
	}
	x := rules.Explain(at.Provider.Info(), m, tool)
	for i, r := range x.Rights {
		if r.Grantable != "" {
			x.Rights[i].Next = app.Command(host.OperatorStep(host.OpPolicyGrant, x.Plugin, r.Grantable))
		}
	}
	return &x, nil
}

// grantOptions say which rights of a plugin to change.
type grantOptions struct {
	Plugin string
	// Rights are in the grammar of grants. [revoke] without rights takes all.
	Rights []string
	// Signer binds the grants to the key that signed the installed build, so that later builds with it have them.
	Signer bool
	// Yes approves the change without asking, if the policy allows it.
	Yes bool
}

// grantData is what a change of grants has changed.
type grantData struct {
	File    string   `json:"file"`
	Plugin  string   `json:"plugin"`
	To      string   `json:"to"` // the digest that the grants are bound to
	Added   []string `json:"added"`
	Removed []string `json:"removed"`
	Notes   []string `json:"notes,omitempty"`
}

// grant grants rights to the installed build of a plugin, once the operator has approved. The error is denied if the
// operator has not, and then nothing has changed.
func grant(ctx context.Context, app *command.App, o grantOptions) (*grantData, error) {
	rules, grants, err := parseGrants(app, o)
	if err != nil {
		return nil, err
	}
	catalog, err := app.Catalog()
	if err != nil {
		return nil, err
	}
	at, err := catalog.FindIn(o.Plugin, "")
	if err != nil {
		return nil, err
	}
	info := at.Provider.Info()
	if info.Digest == "" {
		return nil, host.Errorf(host.InvalidArgs, "%s is built in and asks for no rights", info.Name)
	}
	to := info.Digest
	if o.Signer {
		if to, err = grantee(app, info.Name); err != nil {
			return nil, err
		}
	}
	edit, err := rules.Grant(info.Name, to, grants...)
	if err != nil {
		return nil, err
	}
	data, err := writeGrants(ctx, app, rules, edit, o.Yes)
	if err == nil {
		noteUnused(app, rules, at.Provider, edit.Added)
	}
	return data, err
}

// grantee returns the key that signed an installed plugin. The error is denied if it is not signed with a trusted one.
func grantee(app *command.App, name string) (string, error) {
	entry, err := app.Parley().Store().Find(name)
	if err != nil {
		return "", err
	}
	signer, err := app.Parley().Admission().SignerOf(entry)
	switch {
	case err != nil:
		return "", err
	case signer.Key == "":
		return "", host.Errorf(host.Denied, "%s is not signed, so nothing can be granted to its signer; grant it to the "+
			"build, without --signer", name).WithSteps(host.OperatorStep(host.OpPluginShow, name))
	case !signer.Trusted:
		return "", host.Errorf(host.Denied, "%s is signed with the key %s, which is not trusted; trust it first, so that "+
			"what is granted to it counts", name, signer.Key).WithSteps(host.OperatorStep(host.OpPluginTrust, signer.Key))
	}
	return signer.Key, nil
}

// revoke takes rights from a plugin, once the operator has approved. The errors are those of [grant].
func revoke(ctx context.Context, app *command.App, o grantOptions) (*grantData, error) {
	rules, grants, err := parseGrants(app, o)
	if err != nil {
		return nil, err
	}
	edit, err := rules.Revoke(o.Plugin, grants...)
	if err != nil {
		return nil, err
	}
	return writeGrants(ctx, app, rules, edit, o.Yes)
}

func parseGrants(app *command.App, o grantOptions) (*policy.Policy, []policy.Grant, error) {
	rules, err := app.Parley().Policy()
	if err != nil {
		return nil, nil, err
	}
	grants := make([]policy.Grant, 0, len(o.Rights))
	for _, r := range o.Rights {
		g, err := policy.ParseGrant(r)
		if err != nil {
			return nil, nil, host.Errorf(host.InvalidArgs, "%s", manifest.CleanLine(err.Error())).
				WithSteps(host.OperatorStep(host.OpPolicyExplain, o.Plugin))
		}
		grants = append(grants, g)
	}
	return rules, grants, nil
}

func writeGrants(ctx context.Context, app *command.App, rules *policy.Policy, e policy.Edit, yes bool) (*grantData,
	error) {
	if err := app.Approve(ctx, rules, command.Change{Diff: e.Diff()}, yes); err != nil {
		return nil, err
	}
	if err := app.Parley().Admission().WriteGrants(e); err != nil {
		return nil, err
	}
	return &grantData{
		e.Path, e.Plugin, e.To, append([]string{}, e.Added...), append([]string{}, e.Removed...), e.Notes,
	}, nil
}

// noteUnused reports which of the added grants have no effect.
func noteUnused(app *command.App, rules *policy.Policy, to host.Provider, added []string) {
	m, err := to.Manifest()
	if err != nil {
		return // the next call reports it
	}
	for _, unused := range rules.Explain(to.Info(), m, "").Unused {
		if slices.Contains(added, unused.Grant) {
			app.Notice(unused.Note)
		}
	}
}
