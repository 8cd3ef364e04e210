package admin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/parley-tools/parley/cmd/parley/internal/command"
	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/session"
	"github.com/parley-tools/parley/manifest"
	"github.com/parley-tools/parley/manifest/schema"
)

func newSession(app *command.App) *cobra.Command {
	return command.Parent("session", "Sessions", newSessionList(app), newSessionShow(app),
		newSessionEnd(app))
}

type sessionListOptions struct {
	app *command.App
	command.SessionOptions
}

func newSessionList(app *command.App) *cobra.Command {
	opts := &sessionListOptions{app: app}
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List the sessions of the last 24 hours",
		Example: "parley session list",
		RunE:    command.RunWith(runSessionList, opts),
	}
	cmd.Flags().BoolVar(&opts.All, "all", false, "those of connections, tokens and plugins too")
	return cmd
}

func runSessionList(ctx context.Context, opts *sessionListOptions) error {
	data := command.Sessions(ctx, opts.app, opts.SessionOptions)
	next := []string{"parley session show NAME", "parley session end NAME"}
	return opts.app.Print(data, next, func(w io.Writer) {
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
			fmt.Fprintf(w, "%-24s %-14s %8s  %s\n", name, usedAgo(s.Used), manifest.Plural(pages, "page"),
				manifest.Plural(s.Results, "result"))
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
	app  *command.App
	name string
}

func newSessionShow(app *command.App) *cobra.Command {
	return namedSession(app, "show", "Show what a session was shown, its results and its pages", runSessionShow)
}

func newSessionEnd(app *command.App) *cobra.Command {
	return namedSession(app, "end", "Close the pages of a session and forget it", runSessionEnd)
}

// namedSession returns a subcommand that takes the name of a session.
func namedSession(app *command.App, name, short string, run command.RunFunc[sessionNameOptions]) *cobra.Command {
	opts := &sessionNameOptions{app: app}
	return &cobra.Command{
		Use:               name + " NAME",
		Short:             short,
		Example:           "parley session " + name + " research",
		ValidArgsFunction: app.Complete().Sessions,
		RunE:              command.RunWith(run, opts, &opts.name),
	}
}

func runSessionShow(ctx context.Context, opts *sessionNameOptions) error {
	data, err := showSession(ctx, opts.app, opts.name)
	if err != nil {
		return err
	}
	next := []string{"parley session end " + command.ShellQuote(data.Name)}
	return opts.app.Print(data, next, func(w io.Writer) {
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
	data, err := endSession(ctx, opts.app, opts.name)
	if err != nil {
		return err
	}
	return opts.app.Print(data, []string{"parley session list"}, func(w io.Writer) {
		fmt.Fprintf(w, "Ended %s: closed %s, deleted %s\n", data.Name, manifest.Plural(data.Pages, "page"),
			manifest.Plural(data.Results, "result"))
	})
}

// shownSession is a session with everything that is known of it.
type shownSession struct {
	Name    string                     `json:"name"`
	Used    *time.Time                 `json:"used,omitempty"`
	Shown   []session.ShownTool        `json:"shown"`
	Results []session.StoredResult     `json:"results"`
	Pages   []command.SessionPagesData `json:"pages"`
}

// showSession returns what a session was shown, the results that are stored for it, and its pages. The error is
// not_found for a name that no session has.
func showSession(ctx context.Context, app *command.App, name string) (*shownSession, error) {
	s, err := findSession(ctx, app, name)
	if err != nil {
		return nil, err
	}
	return &shownSession{
		Name: s.Name, Used: s.Used, Shown: append([]session.ShownTool{}, s.Stored.Shown...),
		Results: append([]session.StoredResult{}, s.Stored.Results...),
		Pages:   append([]command.SessionPagesData{}, s.Pages...),
	}, nil
}

// endedSession is a session that has been ended.
type endedSession struct {
	Name    string `json:"name"`
	Pages   int    `json:"pages"`   // that it had open
	Results int    `json:"results"` // that were stored for it
}

// endSession closes the pages of a session and deletes what is stored of it. The error is not_found for a name that no
// session has.
func endSession(ctx context.Context, app *command.App, name string) (*endedSession, error) {
	s, err := findSession(ctx, app, name)
	if err != nil {
		return nil, err
	}
	h, err := app.Host(ctx)
	if err != nil {
		return nil, err
	}
	if err := h.EndSession(ctx, s.Stored.Session); err != nil {
		var e *host.Error
		if errors.As(err, &e) {
			return nil, e
		}
		return nil, err
	}
	ended := &endedSession{Name: s.Name, Results: s.Results}
	for _, p := range s.Pages {
		ended.Pages += p.Pages
	}
	return ended, nil
}

// findSession returns the session of a name.
func findSession(ctx context.Context, app *command.App, name string) (*command.SessionData, error) {
	var names []string
	for _, s := range command.AllSessions(ctx, app) {
		if s.Name == name && name != "" {
			return s, nil
		}
		if s.Name != "" {
			names = append(names, s.Name)
		}
	}
	e := host.Errorf(host.NotFound, "no session is named %q", manifest.CleanLine(manifest.Clip(name, 80))).
		WithNext("parley session list", "parley session list --all")
	for _, n := range schema.Nearest(name, names, 3) {
		e.DidYouMean = append(e.DidYouMean, host.NearName(n))
	}
	return nil, e
}
