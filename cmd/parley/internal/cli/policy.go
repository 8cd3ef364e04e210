package cli

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/policy"
	"github.com/parley-tools/parley/manifest"
)

func newPolicy(app *App) *cobra.Command {
	check := &cobra.Command{
		Use:     "check",
		Short:   "Check the policy's files",
		Example: "parley policy check",
		Args:    noWords,
		RunE:    func(*cobra.Command, []string) error { return app.checkPolicyFiles() },
	}
	explain := &cobra.Command{
		Use:               "explain PLUGIN[.TOOL]",
		Short:             "Show what is asked, granted and refused, and by which line",
		Example:           "parley policy explain text",
		ValidArgsFunction: app.completePlugins,
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return missingWord("policy explain", "one PLUGIN or PLUGIN.TOOL", "parley policy explain text")
			}
			return app.explainPolicy(args[0])
		},
	}
	yes := false
	grant := &cobra.Command{
		Use:               "grant PLUGIN RIGHT...",
		Short:             "Give rights to this build of a plugin",
		Example:           "parley policy grant github 'fs:ro:./data=/data' 'tool:text.*'",
		ValidArgsFunction: app.completePlugins,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) < 2 {
				return missingWord("policy grant", "a PLUGIN and rights", "parley policy grant github 'fs:ro:./data=/data'")
			}
			return app.changeGrants(cmd.Context(), args[0], args[1:], true, yes)
		},
	}
	revoke := &cobra.Command{
		Use:               "revoke PLUGIN [RIGHT...]",
		Short:             "Take rights from a plugin, all if none is named",
		Example:           "parley policy revoke github",
		ValidArgsFunction: app.completePlugins,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return missingWord("policy revoke", "a PLUGIN", "parley policy revoke github")
			}
			return app.changeGrants(cmd.Context(), args[0], args[1:], false, yes)
		},
	}
	for _, c := range []*cobra.Command{grant, revoke} {
		c.Flags().BoolVar(&yes, "yes", false, "do not ask; only where the policy says allow_yes")
	}
	return parent("policy", "Grant rights", check, explain, grant, revoke)
}

func (a *App) checkPolicyFiles() error {
	rules, err := a.deps.Policy()
	if err != nil {
		return err
	}
	if err := rules.CheckReach(); err != nil {
		return err
	}
	files := rules.Explain(host.Info{}, nil, "").Files
	data := struct {
		Files []string `json:"files"`
	}{append([]string{}, files...)}
	return a.answer(data, []string{"parley policy explain text"}, func(w io.Writer) {
		if len(files) == 0 {
			fmt.Fprintln(w, "No policy file: plugins have no rights, this command line may call everything.")
		}
		for _, f := range files {
			fmt.Fprintln(w, "ok "+f)
		}
	})
}

func (a *App) explainPolicy(name string) error {
	rules, err := a.deps.Policy()
	if err != nil {
		return err
	}
	catalog, err := a.deps.Catalog()
	if err != nil {
		return err
	}
	at, err := catalog.Find(name)
	if err != nil {
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
	for i, r := range x.Rights {
		if r.Grantable != "" {
			x.Rights[i].Next = a.deps.Command(host.OperatorStep(host.OpPolicyGrant, x.Plugin, r.Grantable))
		}
	}
	next := []string{}
	for _, r := range x.Rights {
		if r.Next != "" {
			next = append(next, r.Next)
		}
	}
	return a.answer(x, next, func(w io.Writer) { fmt.Fprintln(w, strings.TrimRight(x.String(), "\n")) })
}

// changeGrants writes grants.toml after a person at the terminal has seen the change and said yes.
func (a *App) changeGrants(ctx context.Context, name string, rights []string, give, yes bool) error {
	rules, err := a.deps.Policy()
	if err != nil {
		return err
	}
	grants := make([]policy.Grant, 0, len(rights))
	for _, r := range rights {
		g, err := policy.ParseGrant(r)
		if err != nil {
			return host.Errorf(host.InvalidArgs, "%s", manifest.CleanLine(err.Error())).WithNext("parley policy explain " + shellQuote(manifest.CleanLine(name)))
		}
		grants = append(grants, g)
	}
	edit := policy.Edit{}
	var to host.Provider
	if give {
		catalog, err := a.deps.Catalog()
		if err != nil {
			return err
		}
		at, err := catalog.FindIn(name, "")
		if err != nil {
			return err
		}
		to = at.Provider
		info := to.Info()
		if info.Digest == "" {
			return host.Errorf(host.InvalidArgs, "%s is built in and asks for no rights", info.Name)
		}
		edit, err = rules.Grant(info.Name, info.Digest, grants...)
		if err != nil {
			return err
		}
	} else if edit, err = rules.Revoke(name, grants...); err != nil {
		return err
	}
	if err := a.approve(ctx, rules, edit.Diff(), "Write this?", yes); err != nil {
		return err
	}
	if err := a.deps.Parley().WriteGrants(edit); err != nil {
		return err
	}
	if to != nil {
		a.noteUnused(rules, to, edit.Added)
	}
	data := struct {
		File    string   `json:"file"`
		Plugin  string   `json:"plugin"`
		To      string   `json:"to"`
		Added   []string `json:"added"`
		Removed []string `json:"removed"`
		Notes   []string `json:"notes,omitempty"`
	}{edit.Path, edit.Plugin, edit.To, append([]string{}, edit.Added...), append([]string{}, edit.Removed...), edit.Notes}
	next := []string{"parley policy explain " + edit.Plugin}
	return a.answer(data, next, func(w io.Writer) {
		fmt.Fprintf(w, "Wrote %s: %d added, %d removed\n", edit.Path, len(edit.Added), len(edit.Removed))
	})
}

// noteUnused says which of the grants that a plugin was given are of no use to it.
func (a *App) noteUnused(rules *policy.Policy, to host.Provider, added []string) {
	m, err := to.Manifest()
	if err != nil {
		return // whatever is wrong with it, the next call says
	}
	for _, unused := range rules.Explain(to.Info(), m, "").Unused {
		if slices.Contains(added, unused.Grant) {
			a.notice(unused.Note)
		}
	}
}

// approve shows a change at the controlling terminal and asks. Without a terminal it is refused, unless the operator's
// own policy lets --yes stand for him.
func (a *App) approve(ctx context.Context, rules *policy.Policy, change, question string, yes bool) error {
	if yes {
		allowed, err := rules.AllowYes()
		if err != nil || allowed {
			return err
		}
		return host.Errorf(host.Denied, "--yes is refused: policy.toml does not say allow_yes = true under [operator]")
	}
	tty, err := openTerminal()
	if err != nil {
		return host.Errorf(host.Denied, "rights and trust are given by a person at a terminal, and there is none; nothing was changed").
			WithNext("run it at a terminal, or write the file by hand")
	}
	defer tty.Close()
	fmt.Fprintf(tty, "%s%s [y/N] ", change, question)
	yes, err = confirmed(ctx, tty)
	if err == nil && !yes {
		err = host.Errorf(host.Denied, "not confirmed; nothing was changed")
	}
	return err
}
