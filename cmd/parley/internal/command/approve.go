package command

import (
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/policy"
)

func AddYes(cmd *cobra.Command, yes *bool) {
	cmd.Flags().BoolVar(yes, "yes", false, "do not ask; only if the policy sets allow_yes")
}

// TakesText says that a plugin takes a name from another owner.
func TakesText(name, owner string) string {
	whose := "the signer " + owner
	if owner == host.OwnerShipped {
		whose = "Parley, which ships a plugin of that name"
	}
	return "It takes the name " + name + " from " + whose + ". Grants of its tools to other plugins no longer hold.\n"
}

func AllowsYes(rules *policy.Policy) bool {
	allowed, err := rules.AllowYes()
	return err == nil && allowed
}

// replaceLoaded is parley.Config.Replace: the operator approves the names in d.Replace.
func (a *App) replaceLoaded(name, owner string) error {
	if !slices.ContainsFunc(a.Replace, func(r string) bool { return strings.EqualFold(r, name) }) {
		whose := "belongs to the signer " + owner
		if owner == host.OwnerShipped {
			whose = "is that of a plugin that Parley ships"
		}
		return host.Errorf(host.AlreadyExists, "the name %s %s; --replace %s lets the loaded file take it; nothing was run",
			name, whose, name)
	}
	rules, err := a.Parley().Policy()
	if err != nil {
		return err
	}
	return a.Approve(context.Background(), rules, Change{Diff: TakesText(name, owner)}, AllowsYes(rules))
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

// Approve returns an error unless the operator approves a change. With yes there is no question: either the policy
// allows that, or the change is denied.
func (a *App) Approve(ctx context.Context, rules *policy.Policy, c Change, yes bool) error {
	if yes {
		allowed, err := rules.AllowYes()
		if err != nil || allowed {
			return err
		}
		return host.Errorf(host.Denied, "--yes is refused: policy.toml does not set allow_yes = true under [operator]")
	}
	if a.ApproveChange == nil {
		return host.Errorf(host.Denied, "an operator must approve this, and none can be asked here; %s", c.Undone())
	}
	approved, err := a.ApproveChange(ctx, c)
	if err == nil && !approved {
		err = host.Errorf(host.Denied, "not confirmed; %s", c.Undone())
	}
	return err
}
