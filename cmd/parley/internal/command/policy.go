package command

import (
	"context"
	"fmt"
	"slices"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/policy"
	"github.com/parley-tools/parley/manifest"
)

// CheckPolicyData are the files of the policy, all of which are valid, and what each of their rules applies to today.
type CheckPolicyData struct {
	Files []string       `json:"files"`
	Rules []policy.Match `json:"rules"`

	Warnings []string `json:"-"` // of rules that match nothing
}

// CheckPolicy reads the files of the policy. The error is config_error for the first one that is invalid.
func CheckPolicy(d *Deps) (*CheckPolicyData, error) {
	rules, err := d.Policy()
	if err != nil {
		return nil, err
	}
	if err := rules.CheckReach(); err != nil {
		return nil, err
	}
	catalog, err := d.Catalog()
	if err != nil {
		return nil, err
	}
	matches, err := rules.Matches(catalog)
	if err != nil {
		return nil, err
	}
	data := &CheckPolicyData{Files: append([]string{}, rules.Explain(host.Info{}, nil, "").Files...), Rules: matches,
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

// ExplainPolicyData is what a plugin or a tool asks for, what is granted and what is refused.
type ExplainPolicyData = policy.Explanation

// ExplainPolicy explains the policy for a plugin or, as PLUGIN.TOOL, for one of its tools.
func ExplainPolicy(d *Deps, name string) (*ExplainPolicyData, error) {
	rules, err := d.Policy()
	if err != nil {
		return nil, err
	}
	catalog, err := d.Catalog()
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
			x.Rights[i].Next = d.Command(host.OperatorStep(host.OpPolicyGrant, x.Plugin, r.Grantable))
		}
	}
	return &x, nil
}

// GrantOptions say which rights of a plugin to change.
type GrantOptions struct {
	Plugin string
	// Rights are in the grammar of grants. [Revoke] without rights takes all.
	Rights []string
	// Signer binds the grants to the key that signed the installed build, so that later builds with it have them.
	Signer bool
	// Yes approves the change without asking, if the policy allows it.
	Yes bool
}

// GrantData is what a change of grants has changed.
type GrantData struct {
	File    string   `json:"file"`
	Plugin  string   `json:"plugin"`
	To      string   `json:"to"` // the digest that the grants are bound to
	Added   []string `json:"added"`
	Removed []string `json:"removed"`
	Notes   []string `json:"notes,omitempty"`
}

// Grant grants rights to the installed build of a plugin, once the operator has approved. The error is denied if the
// operator has not, and then nothing has changed.
func Grant(ctx context.Context, d *Deps, o GrantOptions) (*GrantData, error) {
	rules, grants, err := d.parseGrants(o)
	if err != nil {
		return nil, err
	}
	catalog, err := d.Catalog()
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
		if to, err = d.grantee(info.Name); err != nil {
			return nil, err
		}
	}
	edit, err := rules.Grant(info.Name, to, grants...)
	if err != nil {
		return nil, err
	}
	data, err := d.writeGrants(ctx, rules, edit, o.Yes)
	if err == nil {
		d.noteUnused(rules, at.Provider, edit.Added)
	}
	return data, err
}

// grantee returns the key that signed an installed plugin. The error is denied if it is not signed with a trusted one.
func (d *Deps) grantee(name string) (string, error) {
	entry, err := d.Store().Find(name)
	if err != nil {
		return "", err
	}
	signer, err := d.Parley().InstalledSigner(entry)
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

// Revoke takes rights from a plugin, once the operator has approved. The errors are those of [Grant].
func Revoke(ctx context.Context, d *Deps, o GrantOptions) (*GrantData, error) {
	rules, grants, err := d.parseGrants(o)
	if err != nil {
		return nil, err
	}
	edit, err := rules.Revoke(o.Plugin, grants...)
	if err != nil {
		return nil, err
	}
	return d.writeGrants(ctx, rules, edit, o.Yes)
}

func (d *Deps) parseGrants(o GrantOptions) (*policy.Policy, []policy.Grant, error) {
	rules, err := d.Policy()
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

func (d *Deps) writeGrants(ctx context.Context, rules *policy.Policy, e policy.Edit, yes bool) (*GrantData, error) {
	if err := d.approve(ctx, rules, Change{Diff: e.Diff()}, yes); err != nil {
		return nil, err
	}
	if err := d.Parley().WriteGrants(e); err != nil {
		return nil, err
	}
	return &GrantData{
		e.Path, e.Plugin, e.To, append([]string{}, e.Added...), append([]string{}, e.Removed...), e.Notes,
	}, nil
}

// noteUnused reports which of the added grants have no effect.
func (d *Deps) noteUnused(rules *policy.Policy, to host.Provider, added []string) {
	m, err := to.Manifest()
	if err != nil {
		return // the next call reports it
	}
	for _, unused := range rules.Explain(to.Info(), m, "").Unused {
		if slices.Contains(added, unused.Grant) {
			d.Notice(unused.Note)
		}
	}
}

// Change is what the operator has to approve: a change of the operator's files, or sending data to a model.
type Change struct {
	// Installs describes the plugin that is installed together with the change; "" means none.
	Installs string
	// Diff has a line that names the file, lines that begin with "-" and "+", and notes. With Sends it says what is sent
	// where, and what that can cost.
	Diff string
	// Sends says that nothing is written and something is sent.
	Sends bool
	// What is what a person approves; "" means rights and trust.
	What string
}

// Undone says what has not happened to a change that is not approved.
func (c *Change) Undone() string {
	if c.Sends {
		return "nothing was sent"
	}
	return "nothing was changed"
}

// approve returns an error unless the operator approves a change. With yes there is no question: either the policy
// allows that, or the change is denied.
func (d *Deps) approve(ctx context.Context, rules *policy.Policy, c Change, yes bool) error {
	if yes {
		allowed, err := rules.AllowYes()
		if err != nil || allowed {
			return err
		}
		return host.Errorf(host.Denied, "--yes is refused: policy.toml does not set allow_yes = true under [operator]")
	}
	if d.ApproveChange == nil {
		return host.Errorf(host.Denied, "an operator must approve this, and none can be asked here; %s", c.Undone())
	}
	approved, err := d.ApproveChange(ctx, c)
	if err == nil && !approved {
		err = host.Errorf(host.Denied, "not confirmed; %s", c.Undone())
	}
	return err
}
