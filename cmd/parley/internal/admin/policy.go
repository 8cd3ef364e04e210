package admin

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/parley-tools/parley/cmd/parley/internal/command"
	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/policy"
	"github.com/parley-tools/parley/host/step"
	"github.com/parley-tools/parley/manifest"
)

var policyCommand = &command.Group{Use: "policy", Short: "Grant rights; say who may call what", Of: []command.Maker{
	command.Plain("check", "Check the policy's files", "parley policy check", runPolicyCheck),
	command.Plain("explain PLUGIN[.TOOL]", "Show what is requested, granted and refused, and by which line",
		"parley policy explain text", runPolicyExplain, command.CompletePlugins),
	policyGrantCommand, policyRevokeCommand,
}}

// runPolicyCheck reads the files of the policy. The error is config_error for the first invalid one.
func runPolicyCheck(_ context.Context, app *command.App, _ string) error {
	rules, err := app.Parley().Policy()
	if err != nil {
		return host.AsError(err).WithNext("correct the file, then check it again")
	}
	warnings, err := rules.CheckReach()
	if err != nil {
		return err
	}
	catalog, err := app.Catalog()
	if err != nil {
		return err
	}
	matches, err := rules.Matches(catalog)
	if err != nil {
		return err
	}
	if s, err := app.Settings(); err == nil {
		name, isSecret := strings.CutPrefix(s.Model.Key, "secret:")
		for i := range matches {
			if m := &matches[i]; isSecret && m.Rule == "[secrets."+name+"]" {
				m.Matches, m.First = m.Matches+1, append(m.First, "model.key")
			}
		}
	}
	data := struct {
		Files []string       `json:"files"`
		Rules []policy.Match `json:"rules"`
	}{append([]string{}, rules.Explain(host.Info{}, nil, "").Files...), matches}
	for _, m := range matches {
		switch {
		case m.NoEffect != "":
			warnings = append(warnings, fmt.Sprintf("%s: %s has no effect: %s", m.Where, m.Rule, m.NoEffect))
		case m.Matches == 0:
			text := fmt.Sprintf("%s: %s matches nothing today", m.Where, m.Rule)
			if len(m.DidYouMean) > 0 {
				text += "; did you mean " + m.DidYouMean[0].Name + "?"
			}
			warnings = append(warnings, text)
		}
	}
	return app.PrintWarned(data, warnings, []string{"parley policy explain text"}, func(w io.Writer) {
		command.PrintIf(w, len(data.Files) == 0,
			"No policy file: plugins have no rights, and this command line may call every tool.\n")
		command.WriteLines(w, "ok ", data.Files)
		for _, m := range data.Rules {
			names := strings.Join(m.First, ", ")
			names += command.When(m.Matches > len(m.First), ", ..") + command.When(m.NoEffect != "", "no effect")
			fmt.Fprintf(w, "  %s: %s: %d %s\n", m.Where, m.Rule, m.Matches, names)
		}
	})
}

// runPolicyExplain explains the policy for a plugin or, as PLUGIN.TOOL, for one of its tools.
func runPolicyExplain(_ context.Context, app *command.App, name string) error {
	rules, err := app.Parley().Policy()
	at, failed := app.Find(name)
	if err = cmp.Or(err, failed); err != nil {
		return err
	}
	m, err := at.Provider.Manifest()
	if err != nil {
		return err
	}
	tool := ""
	if at.Tool != nil {
		tool = at.Tool.Name
		with := *m
		with.Tools = []manifest.Tool{*at.Tool}
		m = &with
	}
	x := rules.Explain(at.Provider.Info(), m, tool)
	var next []string
	for i := range x.Rights {
		r := &x.Rights[i]
		if r.Grantable != "" {
			r.Next = app.Command(step.Operator(step.OpPolicyGrant, x.Plugin, r.Grantable))
		} else if r.NeedsLogin {
			r.Next = app.Command(step.Operator(step.OpLogin, x.Plugin))
		}
		if r.Next != "" {
			next = append(next, r.Next)
		}
	}
	return app.Print(&x, next, func(w io.Writer) { fmt.Fprintln(w, strings.TrimRight(x.String(), "\n")) })
}

var policyGrantCommand = &command.Command[*grantOptions]{
	Use: "grant PLUGIN RIGHT...", Run: runPolicyGrant, Words: command.CompletePlugins,
	Short:   "Grant rights to the installed build of a plugin",
	Example: "parley policy grant github 'fs:ro:./data=/data' 'tool:text.*'",
}

var policyRevokeCommand = &command.Command[*rightsOptions]{
	Use: "revoke PLUGIN [RIGHT...]", Run: runPolicyRevoke, Words: command.CompletePlugins,
	Short:   "Revoke rights of a plugin, all if none is named",
	Example: "parley policy revoke github",
}

func runPolicyRevoke(ctx context.Context, app *command.App, opts *rightsOptions) error {
	return changeGrants(ctx, app, opts, func(rules *policy.Policy, grants []policy.Grant) (policy.Edit, error) {
		return rules.Revoke(opts.Plugin, grants...)
	})
}

// runPolicyGrant grants rights to the installed build of a plugin, or to its signer.
func runPolicyGrant(ctx context.Context, app *command.App, opts *grantOptions) error {
	return changeGrants(ctx, app, &opts.rightsOptions, func(rules *policy.Policy, grants []policy.Grant) (policy.Edit,
		error) {
		at, err := app.Plugin(opts.Plugin)
		if err != nil {
			return policy.Edit{}, err
		}
		info := at.Provider.Info()
		if info.Digest == "" {
			return policy.Edit{}, host.Errorf(host.InvalidArgs, "%s is built in and asks for no rights", info.Name)
		}
		to := info.Digest
		if opts.Signer {
			if to, err = grantee(app, info.Name); err != nil {
				return policy.Edit{}, err
			}
		}
		return rules.Grant(info.Name, to, grants...)
	})
}

// rightsOptions say which rights of a plugin to change.
type rightsOptions struct {
	Plugin string `word:""`
	// Rights are in the grammar of grants. Without any, revoke takes all rights away.
	Rights []string `word:""`
	command.Approval
}

type grantOptions struct {
	rightsOptions
	// Signer binds the grants to the key that signed the installed build. Later builds signed with that key get them,
	// too.
	Signer bool `flag:"signer" usage:"grant to the trusted key that signed the build"`
}

// grantee returns the key that signed an installed plugin. The error is denied if the plugin is not signed with a
// trusted key.
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
			"build, without --signer", name).WithSteps(step.Operator(step.OpPluginShow, name))
	case !signer.Trusted:
		return "", host.Errorf(host.Denied, "%s is signed with the key %s, which is not trusted; trust it first: a grant "+
			"to an untrusted key has no effect", name, signer.Key).WithSteps(step.Operator(step.OpPluginTrust, signer.Key))
	}
	return signer.Key, nil
}

// changeGrants writes an edit of grants after the operator has approved it. Without approval the error is denied, and
// nothing has changed.
func changeGrants(ctx context.Context, app *command.App, o *rightsOptions,
	edit func(*policy.Policy, []policy.Grant) (policy.Edit, error)) error {
	rules, err := app.Parley().Policy()
	if err != nil {
		return err
	}
	grants := make([]policy.Grant, 0, len(o.Rights))
	for _, r := range o.Rights {
		g, err := policy.ParseGrant(r)
		if err != nil {
			return host.Errorf(host.InvalidArgs, "%s", manifest.CleanLine(err.Error())).
				WithSteps(step.Operator(step.OpPolicyExplain, o.Plugin))
		}
		grants = append(grants, g)
	}
	e, err := edit(rules, grants)
	if err != nil {
		return err
	}
	if err := app.Approve(ctx, command.Change{Diff: e.Diff()}, o.Yes); err != nil {
		return err
	}
	if err := app.Parley().Admission().WriteGrants(e); err != nil {
		return err
	}
	noteUnused(app, rules, e)
	e.Added, e.Removed = append([]string{}, e.Added...), append([]string{}, e.Removed...)
	return app.Print(e, []string{"parley policy explain " + e.Plugin},
		command.Text("Wrote %s: %d added, %d removed\n", e.Path, len(e.Added), len(e.Removed)))
}

// noteUnused reports which of the added grants have no effect.
func noteUnused(app *command.App, rules *policy.Policy, e policy.Edit) {
	at, err := app.Plugin(e.Plugin)
	if err != nil || len(e.Added) == 0 {
		return
	}
	m, err := at.Provider.Manifest()
	if err != nil {
		return // the next call reports it
	}
	for _, unused := range rules.Explain(at.Provider.Info(), m, "").Unused {
		if slices.Contains(e.Added, unused.Grant) {
			app.Notice(unused.Note)
		}
	}
}
