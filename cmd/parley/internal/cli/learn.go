package cli

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/learn"
	"github.com/parley-tools/parley/host/trace"
	"github.com/parley-tools/parley/manifest"
)

// learnSince is how far back calls count: as long as sessions are remembered.
const learnSince = 24 * time.Hour

func newLearn(app *App) *cobra.Command {
	return &cobra.Command{
		Use:   "learn [PLUGIN]",
		Short: "Learn by doing",
		Long: "Shows what to run, finds in the traces of the last 24 hours that you ran it, and goes on to the next step:\n" +
			"run this command again after each. Each session (PARLEY_SESSION) has its own progress; a new name starts from\n" +
			"scratch. Without PLUGIN, lists the tutorials.",
		Example: "parley learn text\nPARLEY_SESSION=first parley learn cdp --json",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				return host.Errorf(host.InvalidArgs, "parley learn takes one plugin; unexpected %q after it",
					manifest.CleanLine(args[1])).WithNext("parley learn " + shellQuote(args[0]))
			}
			return nil
		},
		ValidArgsFunction: app.completeNames,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return app.listTutorials(cmd.Context())
			}
			return app.learn(cmd.Context(), args[0])
		},
	}
}

// tutorialLine is a tutorial in the list of all.
type tutorialLine struct {
	Plugin   string `json:"plugin"`
	Brief    string `json:"brief"`
	Steps    int    `json:"steps"`
	Done     int    `json:"done"`
	Finished bool   `json:"finished"`
}

func (a *App) listTutorials(ctx context.Context) error {
	h, err := a.deps.Host(ctx)
	if err != nil {
		return err
	}
	events, err := a.events()
	if err != nil {
		return err
	}
	lines, next := []tutorialLine{}, []string{}
	for _, p := range h.Catalog().Providers() {
		m, err := p.Manifest()
		if err != nil {
			return err
		}
		if len(m.Tutorial) == 0 {
			continue
		}
		progress := learn.Walk(h.Catalog(), p.Info().Name, m.Tutorial, events)
		lines = append(lines, tutorialLine{
			p.Info().Name, manifest.CleanLine(p.Info().Brief), len(m.Tutorial), progress.Done, progress.Finished,
		})
		if !progress.Finished {
			next = append(next, "parley learn "+p.Info().Name)
		}
	}
	if len(next) == 0 {
		next = append(next, "parley --list")
	}
	data := map[string]any{"tutorials": lines, "total": len(lines)}
	return a.answer(data, next, func(w io.Writer) {
		for _, l := range lines {
			fmt.Fprintf(w, "%s  %s (%d of %s done)\n",
				l.Plugin, fit(l.Brief, a.columns()-len(l.Plugin)-24), l.Done, plural(l.Steps, "step"))
		}
		fmt.Fprintln(w, "Next: "+strings.Join(next, "  |  "))
	})
}

// learn shows which steps of a plugin's tutorial are done, and which is next.
func (a *App) learn(ctx context.Context, plugin string) error {
	h, err := a.deps.Host(ctx)
	if err != nil {
		return err
	}
	at, err := h.Catalog().FindIn(plugin, "")
	if err != nil {
		return err
	}
	m, err := at.Provider.Manifest()
	if err != nil {
		return err
	}
	if len(m.Tutorial) == 0 {
		return host.Errorf(host.NotFound, "%s has no tutorial", at.Plugin).WithSteps(at.ListStep()).WithNext("parley learn")
	}
	events, err := a.events()
	if err != nil {
		return err
	}
	progress := learn.Walk(h.Catalog(), at.Plugin, m.Tutorial, events)
	next := []string{}
	for _, s := range progress.Due() {
		if strings.HasPrefix(s.Run, "parley ") {
			next = append(next, s.Run)
		}
	}
	if progress.Finished {
		next = append(next, a.deps.Command(at.ListStep()), "parley learn")
	} else {
		next = append(next, "parley learn "+at.Plugin)
	}
	return a.answer(progress, next, func(w io.Writer) { learnText(w, progress, next) })
}

func learnText(w io.Writer, p *learn.Progress, next []string) {
	fmt.Fprintf(w, "%s: %d of %s done\n", p.Plugin, p.Done, plural(len(p.Steps), "step"))
	for _, s := range p.Steps {
		if s.State == learn.Later {
			break
		}
		fmt.Fprintf(w, "  %-4s  %d. %s\n", s.State, s.Step, s.Say)
		if s.State == learn.Now && s.Run != "" {
			fmt.Fprintf(w, "        $ %s\n", s.Run)
		}
		if s.State == learn.Now && s.ExitCode != 0 {
			fmt.Fprintf(w, "        It is meant to exit with %d.\n", s.ExitCode)
		}
	}
	if p.LastTry != nil {
		fmt.Fprintf(w, "The last try exited with %d (%s): read its message, and run the step as it is shown here.\n",
			p.LastTry.ExitCode, manifest.CleanLine(p.LastTry.Code))
	}
	if p.Finished {
		fmt.Fprintf(w, "The tutorial is complete. Next: %s\n", next[len(next)-2])
		return
	}
	fmt.Fprintf(w, "Then: %s\n", next[len(next)-1])
}

// events returns what this session did; without a session, what was done without one.
func (a *App) events() ([]learn.Event, error) {
	s, err := a.deps.Settings()
	if err != nil {
		return nil, err
	}
	if s.TracesOff {
		return nil, host.Errorf(host.ConfigError,
			"traces are off, and learn finds in them which steps are done; set traces.off to false").
			WithNext("parley config list")
	}
	session := a.Env("PARLEY_SESSION")
	var events []learn.Event
	recent := trace.Filter{Since: time.Now().Add(-learnSince), Session: session}
	for r, err := range trace.Read(filepath.Join(a.deps.Dirs().State, "traces"), recent) {
		if err != nil {
			return nil, host.Errorf(host.Unavailable, "the traces cannot be read: %s", manifest.CleanLine(err.Error())).
				WithNext("parley doctor")
		}
		if r.Session != session {
			continue
		}
		op := r.Op
		if op == "" {
			op = "call"
		}
		events = append(events, learn.Event{Op: op, Tool: r.Tool, Code: r.Code, ExitCode: r.ExitCode})
	}
	return events, nil
}
