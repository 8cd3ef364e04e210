package admin

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/parley-tools/parley/cmd/parley/internal/command"
	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/session"
	"github.com/parley-tools/parley/host/wasm"
	"github.com/parley-tools/parley/manifest"
)

var sessionCommand = &command.Group{Use: "session", Short: "List and end sessions", Of: []command.Maker{
	sessionListCommand,
	command.Plain("show NAME", "Show a session's pages, results and the documentation it was shown",
		"parley session show research", runSessionShow, command.CompleteSessions),
	command.Plain("end NAME", "Close the pages of a session and forget it", "parley session end research",
		runSessionEnd, command.CompleteSessions),
}}

var sessionListCommand = &command.Command[*sessionListOptions]{
	Use: "list", Run: runSessionList,
	Short:   "List the sessions of the last 24 hours",
	Example: "parley session list",
}

type sessionListOptions struct {
	All bool `flag:"all" usage:"also list those of connections, tokens and plugins"`
}

func runSessionList(ctx context.Context, app *command.App, opts *sessionListOptions) error {
	sessions := command.AllSessions(ctx, app)
	if !opts.All {
		sessions = slices.DeleteFunc(sessions, func(s *command.SessionData) bool { return !s.Named() })
	}
	data := struct {
		Sessions []*command.SessionData `json:"sessions"`
		Total    int                    `json:"total"`
	}{sessions, len(sessions)}
	next := []string{"parley session show NAME", "parley session end NAME"}
	return app.Print(data, next, func(w io.Writer) {
		if data.Total == 0 {
			fmt.Fprintln(w, "No session of the last 24 hours has pages, results or shown documentation.")
			return
		}
		for _, s := range data.Sessions {
			fmt.Fprintf(w, "%-24s %-14s %8s  %s\n", cmp.Or(s.Name, "(no session)"), usedAgo(s.Used),
				manifest.Plural(s.PageCount(), "page"), manifest.Plural(s.Results, "result"))
		}
		fmt.Fprintln(w, "Next: "+next[0])
	})
}

// usedAgo says how long ago a session was used.
func usedAgo(used time.Time) string {
	ago := max(time.Since(used), 0)
	switch {
	case used.IsZero():
		return ""
	case ago < time.Minute:
		return "just now"
	case ago < time.Hour:
		return fmt.Sprintf("%d min ago", int(ago.Minutes()))
	}
	return fmt.Sprintf("%d h ago", int(ago.Hours()))
}

// runSessionShow prints what a session was shown, the results that are stored for it, and its pages. The error is
// not_found for a name that no session has.
func runSessionShow(ctx context.Context, app *command.App, name string) error {
	s, err := findSession(ctx, app, name)
	if err != nil {
		return err
	}
	data := struct {
		Name    string                     `json:"name"`
		Used    time.Time                  `json:"used,omitzero"`
		Shown   []session.ShownTool        `json:"shown"`
		Results []session.StoredResult     `json:"results"`
		Pages   []command.SessionPagesData `json:"pages"`
	}{
		Name: s.Name, Used: s.Used, Shown: append([]session.ShownTool{}, s.Stored.Shown...),
		Results: append([]session.StoredResult{}, s.Stored.Results...),
		Pages:   append([]command.SessionPagesData{}, s.Pages...),
	}
	return app.PrintNext(data, []string{"parley session end " + command.ShellQuote(data.Name)}, func(w io.Writer) {
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
	})
}

// runSessionEnd closes the pages of a session and deletes what is stored of it. The error is not_found for a name that
// no session has.
func runSessionEnd(ctx context.Context, app *command.App, name string) error {
	s, err := findSession(ctx, app, name)
	if err != nil {
		return err
	}
	h, err := app.Host(ctx)
	if err != nil {
		return err
	}
	if err := h.EndSession(ctx, s.Stored.Session); err != nil {
		return err
	}
	data := struct {
		Name    string `json:"name"`
		Pages   int    `json:"pages"`   // number of pages that it had open
		Results int    `json:"results"` // number of results that were stored for it
	}{s.Name, s.PageCount(), s.Results}
	return app.Print(data, []string{"parley session list"}, command.Text("Ended %s: closed %s, deleted %s\n", data.Name,
		manifest.Plural(data.Pages, "page"), manifest.Plural(data.Results, "result")))
}

// findSession returns the session with a name.
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
	e := host.Errorf(host.NotFound, "no session is named %q", manifest.CleanValue(manifest.Clip(name, 80))).
		WithNext("parley session list", "parley session list --all")
	e.DidYouMean = command.Nearest(name, names)
	return nil, e
}

var runnerCommand = &command.Group{Use: "runner", Short: "List and stop plugin processes", Of: []command.Maker{
	command.Plain("list", "List the runners", "parley runner list", runRunnerList),
	runnerStopCommand,
}}

func runRunnerList(_ context.Context, app *command.App, _ string) error {
	running, _ := runners(app)
	data := listed(running)
	return app.Print(data, []string{"parley runner stop"}, func(w io.Writer) {
		if data.Total == 0 {
			fmt.Fprintln(w, "No runner is running.")
			return
		}
		for _, r := range data.Runners {
			state := command.Either(r.Busy, "in a call", usedAgo(r.Used))
			fmt.Fprintf(w, "%8d  %-16s %-16s %-12s %s\n", r.PID, r.Plugin, r.Caller, state, r.Session)
		}
		fmt.Fprintln(w, "Next: parley runner stop")
	})
}

var runnerStopCommand = &command.Command[string]{
	Use: "stop [PLUGIN]", Run: runRunnerStop,
	Short: "End the runners of a plugin, or all of them",
	Long: "End the runners of a plugin, or all of them, also in the middle of a call. A runner ends by itself when " +
		"nobody uses it, when its plugin or a policy changes, and after a crash or a timeout.",
	Example: "parley runner stop text",
}

// runRunnerStop ends the runners of a plugin, or all runners, even in the middle of a call. The error is not_found if
// the plugin has none.
func runRunnerStop(_ context.Context, app *command.App, plugin string) error {
	stopped := wasm.StopRunners(app.Dirs().Run, func(r wasm.RunnerInfo) bool {
		return plugin == "" || strings.EqualFold(r.Plugin, plugin)
	})
	if len(stopped) == 0 && plugin != "" {
		return host.Errorf(host.NotFound, "no runner of the plugin %q runs",
			manifest.CleanValue(manifest.Clip(plugin, 80))).WithNext("parley runner list")
	}
	data := listed(stopped)
	return app.Print(data, []string{"parley runner list"},
		command.Text("Stopped %s\n", manifest.Plural(data.Total, "runner")))
}

// runnerList is a list of runners, the processes in which the guests of isolated calls run.
type runnerList struct {
	Runners []wasm.RunnerInfo `json:"runners"`
	Total   int               `json:"total"`
}

// listed returns runners in the form in which they are printed, the last used first.
func listed(all []wasm.RunnerInfo) *runnerList {
	data := &runnerList{Runners: []wasm.RunnerInfo{}, Total: len(all)}
	for i := range all {
		r := all[len(all)-1-i]
		for _, text := range []*string{&r.Plugin, &r.Caller, &r.Session} {
			*text = manifest.CleanLine(manifest.Clip(*text, 200)) // from a file, which something else may have written
		}
		r.Started, r.Used = r.Started.UTC(), r.Used.UTC()
		data.Runners = append(data.Runners, r)
	}
	return data
}

// runners returns the running runners, and the names of those that have ended but left files.
func runners(app *command.App) (running []wasm.RunnerInfo, stale []string) {
	for _, r := range wasm.Runners(app.Dirs().Run) {
		if r.PID == 0 {
			if !r.Busy { // otherwise it is being started
				stale = append(stale, r.Name)
			}
			continue
		}
		running = append(running, r)
	}
	return running, stale
}
