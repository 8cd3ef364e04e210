package learning

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/parley-tools/parley/cmd/parley/internal/command"
	"github.com/parley-tools/parley/cmd/parley/internal/history"
	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/learn/tutorial"
	"github.com/parley-tools/parley/host/record"
	"github.com/parley-tools/parley/host/record/trace"
	"github.com/parley-tools/parley/host/step"
	"github.com/parley-tools/parley/manifest"
)

var learnCommand = &command.Command[string]{
	Use: "learn [PLUGIN]", Run: runLearn, Words: command.CompleteNames,
	Short: "Try a plugin's tools step by step",
	Long: "Shows what to run, finds in the traces of the last 24 hours that you ran it, and continues with the " +
		"next.\nRun this command again after each step. Each session (--session NAME) has its own progress; a new name " +
		"starts\nfrom scratch. Without PLUGIN, lists the tutorials.",
	Example: "parley learn text\nparley learn cdp --session first --json",
}

// runLearn prints which steps of a plugin's tutorial are done, and which is next. The error is not_found for a
// plugin that is unknown or has no tutorial.
func runLearn(ctx context.Context, app *command.App, plugin string) error {
	h, err := app.Host(ctx)
	if err != nil {
		return err
	}
	if plugin == "" {
		return listTutorials(app, h.Catalog())
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
	records, err := ownRecords(app)
	if err != nil {
		return err
	}
	data := tutorial.Walk(h.Catalog(), at.Plugin, m.Tutorial, records)
	next := []string{}
	for _, s := range data.Due() {
		if strings.HasPrefix(s.Run, "parley ") {
			next = append(next, s.Run)
		}
	}
	if data.Finished {
		next = append(next, app.Command(step.List(data.Plugin)), "parley learn")
	} else {
		next = append(next, "parley learn "+data.Plugin)
	}
	return app.Print(data, next, func(w io.Writer) { learnText(w, data, next) })
}

// listTutorials lists the tutorials with the progress of the session.
func listTutorials(app *command.App, catalog *host.Catalog) error {
	records, err := ownRecords(app)
	if err != nil {
		return err
	}
	data, next := struct {
		Tutorials []tutorialRow `json:"tutorials"`
		Total     int           `json:"total"`
	}{Tutorials: []tutorialRow{}}, []string{}
	for _, p := range catalog.Providers() {
		m, err := p.Manifest()
		if err != nil {
			return err
		}
		if len(m.Tutorial) == 0 {
			continue
		}
		progress := tutorial.Walk(catalog, p.Info().Name, m.Tutorial, records)
		data.Total++
		data.Tutorials = append(data.Tutorials, tutorialRow{
			p.Info().Name, manifest.CleanLine(p.Info().Brief), len(m.Tutorial), progress.Done, progress.Finished,
		})
		if !progress.Finished {
			next = append(next, "parley learn "+p.Info().Name)
		}
	}
	if len(next) == 0 {
		next = append(next, "parley --list")
	}
	return app.Print(data, next, func(w io.Writer) {
		for _, t := range data.Tutorials {
			fmt.Fprintf(w, "%s  %s (%d of %s done)\n",
				t.Plugin, command.Fit(t.Brief, app.Columns()-len(t.Plugin)-24), t.Done, manifest.Plural(t.Steps, "step"))
		}
		fmt.Fprintln(w, "Next: "+strings.Join(next, "  |  "))
	})
}

func learnText(w io.Writer, p *tutorial.Progress, next []string) {
	fmt.Fprintf(w, "%s: %d of %s done\n", p.Plugin, p.Done, manifest.Plural(len(p.Steps), "step"))
	for _, s := range p.Steps {
		if s.State == tutorial.Pending {
			break
		}
		fmt.Fprintf(w, "  %-4s  %d. %s\n", s.State, s.Step, s.Say)
		command.PrintIf(w, s.State == tutorial.Now && s.Run != "", "        $ %s\n", s.Run)
		command.PrintIf(w, s.State == tutorial.Now && s.ExitCode != 0, "        It is meant to exit with %d.\n", s.ExitCode)
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

// learnSince is the age up to which calls count as progress. Sessions are stored for the same time.
const learnSince = "24h"

// tutorialRow is a tutorial in the list of all tutorials.
type tutorialRow struct {
	Plugin   string `json:"plugin"`
	Brief    string `json:"brief"`
	Steps    int    `json:"steps"`
	Done     int    `json:"done"`
	Finished bool   `json:"finished"`
}

// ownRecords returns what this session did. Without a session, it returns what was done in no session.
func ownRecords(app *command.App) (records []host.Record, err error) {
	if s, _ := app.Settings(); s.TracesOff { // the host depends on the settings, so they are valid
		return nil, host.Errorf(host.ConfigError,
			"traces are off, and learn finds in them which steps are done; set traces.off to false").
			WithNext("parley config list")
	}
	principal, err := app.Principal()
	if err != nil {
		return nil, err
	}
	recent := history.Filter{Since: learnSince, Filter: record.Filter{Session: principal.Session.String()}}
	err = history.ExportTraces(app, recent, func(r trace.Record) error {
		if r.Session == recent.Session {
			records = append(records, r)
		}
		return nil
	})
	return records, err
}
