package command

import (
	"context"
	"time"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/learn"
	"github.com/parley-tools/parley/host/record"
	"github.com/parley-tools/parley/manifest"
)

// learnSince is the age up to which calls count as progress: as long as sessions are stored.
const learnSince = 24 * time.Hour

// TutorialsData are the tutorials of all plugins.
type TutorialsData struct {
	Tutorials []Tutorial `json:"tutorials"`
	Total     int        `json:"total"`
}

// Tutorial is a tutorial in the list of all.
type Tutorial struct {
	Plugin   string `json:"plugin"`
	Brief    string `json:"brief"`
	Steps    int    `json:"steps"`
	Done     int    `json:"done"`
	Finished bool   `json:"finished"`
}

// Tutorials lists the tutorials with the progress of the session.
func Tutorials(ctx context.Context, d *Deps) (*TutorialsData, error) {
	h, err := d.Host(ctx)
	if err != nil {
		return nil, err
	}
	events, err := d.events()
	if err != nil {
		return nil, err
	}
	data := &TutorialsData{Tutorials: []Tutorial{}}
	for _, p := range h.Catalog().Providers() {
		m, err := p.Manifest()
		if err != nil {
			return nil, err
		}
		if len(m.Tutorial) == 0 {
			continue
		}
		progress := learn.Walk(h.Catalog(), p.Info().Name, m.Tutorial, events)
		data.Total++
		data.Tutorials = append(data.Tutorials, Tutorial{
			p.Info().Name, manifest.CleanLine(p.Info().Brief), len(m.Tutorial), progress.Done, progress.Finished,
		})
	}
	return data, nil
}

// LearnData are the steps of a tutorial with the progress of the session.
type LearnData = learn.Progress

// Learn returns which steps of a plugin's tutorial are done, and which is next. The error is not_found for a plugin
// that is unknown or has no tutorial.
func Learn(ctx context.Context, d *Deps, plugin string) (*LearnData, error) {
	h, err := d.Host(ctx)
	if err != nil {
		return nil, err
	}
	at, err := h.Catalog().FindIn(plugin, "")
	if err != nil {
		return nil, err
	}
	m, err := at.Provider.Manifest()
	if err != nil {
		return nil, err
	}
	if len(m.Tutorial) == 0 {
		return nil, host.Errorf(host.NotFound, "%s has no tutorial", at.Plugin).WithSteps(at.ListStep()).
			WithNext("parley learn")
	}
	events, err := d.events()
	if err != nil {
		return nil, err
	}
	return learn.Walk(h.Catalog(), at.Plugin, m.Tutorial, events), nil
}

// events returns what this session did. Without a session it is what was done without one.
func (d *Deps) events() ([]learn.Event, error) {
	s, err := d.Settings()
	if err != nil {
		return nil, err
	}
	if s.TracesOff {
		return nil, host.Errorf(host.ConfigError,
			"traces are off, and learn finds in them which steps are done; set traces.off to false").
			WithNext("parley config list")
	}
	session, err := d.Session()
	if err != nil {
		return nil, err
	}
	var events []learn.Event
	recent := record.Filter{Since: time.Now().Add(-learnSince), Session: session.String()}
	for r, err := range d.traces(nil).Read(recent) {
		if err != nil {
			return nil, host.Errorf(host.Unavailable, "cannot read the traces: %s", manifest.CleanLine(err.Error())).
				WithSteps(host.OperatorStep(host.OpDoctor))
		}
		if r.Session != session.String() {
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
