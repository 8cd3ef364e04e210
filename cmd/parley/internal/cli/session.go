package cli

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/parley-tools/parley/cmd/parley/internal/command"
	"github.com/parley-tools/parley/manifest"
)

func newSession(app *App) *cobra.Command {
	return parent("session", "Sessions", newSessionList(app), newSessionShow(app),
		newSessionEnd(app))
}

type sessionListOptions struct {
	app *App
	command.SessionOptions
}

func newSessionList(app *App) *cobra.Command {
	opts := &sessionListOptions{app: app}
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List the sessions of the last 24 hours",
		Example: "parley session list",
		RunE:    runWith(runSessionList, opts),
	}
	cmd.Flags().BoolVar(&opts.All, "all", false, "those of connections, tokens and plugins too")
	return cmd
}

func runSessionList(ctx context.Context, opts *sessionListOptions) error {
	data := command.Sessions(ctx, opts.app.deps, opts.SessionOptions)
	next := []string{"parley session show NAME", "parley session end NAME"}
	return opts.app.print(data, next, func(w io.Writer) {
		if data.Total == 0 {
			fmt.Fprintln(w, "No session was used in the last 24 hours.")
			return
		}
		for _, s := range data.Sessions {
			name := s.Name
			if name == "" {
				name = "(no session)"
			}
			pages := 0
			for _, p := range s.Pages {
				pages += p.Pages
			}
			fmt.Fprintf(w, "%-24s %-14s %8s  %s\n", name, usedAgo(s.Used), manifest.Plural(pages, "page"), manifest.Plural(s.Results, "result"))
		}
		fmt.Fprintln(w, "Next: "+next[0])
	})
}

// usedAgo says how long ago a session was used.
func usedAgo(used *time.Time) string {
	if used == nil {
		return ""
	}
	ago := max(time.Since(*used), 0)
	switch {
	case ago < time.Minute:
		return "just now"
	case ago < time.Hour:
		return fmt.Sprintf("%d min ago", int(ago.Minutes()))
	}
	return fmt.Sprintf("%d h ago", int(ago.Hours()))
}

type sessionNameOptions struct {
	app  *App
	name string
}

func newSessionShow(app *App) *cobra.Command {
	return namedSession(app, "show", "Show what a session was shown, its results and its pages", runSessionShow)
}

func newSessionEnd(app *App) *cobra.Command {
	return namedSession(app, "end", "Close the pages of a session and forget it", runSessionEnd)
}

// namedSession returns a subcommand that takes the name of a session.
func namedSession(app *App, name, short string, run runFunc[sessionNameOptions]) *cobra.Command {
	opts := &sessionNameOptions{app: app}
	return &cobra.Command{
		Use:               name + " NAME",
		Short:             short,
		Example:           "parley session " + name + " research",
		ValidArgsFunction: app.completeSessions,
		RunE:              runWith(run, opts, &opts.name),
	}
}

func runSessionShow(ctx context.Context, opts *sessionNameOptions) error {
	data, err := command.ShowSession(ctx, opts.app.deps, opts.name)
	if err != nil {
		return err
	}
	next := []string{"parley session end " + shellQuote(data.Name)}
	return opts.app.print(data, next, func(w io.Writer) {
		fmt.Fprintln(w, strings.TrimRight(data.Name+"  "+usedAgo(data.Used), " "))
		for _, p := range data.Pages {
			fmt.Fprintln(w, strings.TrimRight(fmt.Sprintf("  %s in browser %s  %s", manifest.Plural(p.Pages, "page"), p.Browser,
				p.Current), " "))
		}
		for _, r := range data.Results {
			fmt.Fprintf(w, "  result %s  %d bytes\n", r.CallID, r.Bytes)
		}
		for _, t := range data.Shown {
			tiers := strings.Trim(strings.Join(strings.Fields(fmt.Sprint(t.Tiers)), ", "), "[]")
			fmt.Fprintf(w, "  was shown %s, tier %s\n", t.Tool, tiers)
		}
		fmt.Fprintln(w, "Next: "+next[0])
	})
}

func runSessionEnd(ctx context.Context, opts *sessionNameOptions) error {
	data, err := command.EndSession(ctx, opts.app.deps, opts.name)
	if err != nil {
		return err
	}
	return opts.app.print(data, []string{"parley session list"}, func(w io.Writer) {
		fmt.Fprintf(w, "Ended %s: closed %s, deleted %s\n", data.Name, manifest.Plural(data.Pages, "page"),
			manifest.Plural(data.Results, "result"))
	})
}

// completeSessions completes the name of one session. It does not wait long for a browser.
func (a *App) completeSessions(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), targetsWait)
	defer cancel()
	data := command.Sessions(ctx, a.deps, command.SessionOptions{})
	var names []string
	for _, s := range data.Sessions {
		names = append(names, s.Name)
	}
	return startingWith(typed, names), cobra.ShellCompDirectiveNoFileComp
}

// completeSessionOption completes the value of --session, after any words.
func (a *App) completeSessionOption(cmd *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
	return a.completeSessions(cmd, nil, typed)
}
