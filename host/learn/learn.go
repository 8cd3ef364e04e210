// Package learn walks through a plugin's tutorial: which steps were done, as far as what was recorded tells, and which is due.
package learn

import (
	"strings"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/manifest"
)

// Event is something that ended: a call, a search or a describe.
type Event struct {
	Op       string // "call", "search" or "describe"
	Tool     string // qualified; "" for a search
	Code     string
	ExitCode int
}

// States of a step.
const (
	Done  = "done"
	Now   = "now" // it is due: what is to be run next, and what is said with it
	Later = "later"
)

// Step is a step of a tutorial, and how it stands.
type Step struct {
	Step     int    `json:"step"` // from 1
	Say      string `json:"say"`
	Run      string `json:"run,omitempty"` // "": there is nothing to do but read
	ExitCode int    `json:"exit_code"`     // that what is run ends in
	State    string `json:"state"`
}

// Progress is how far somebody is in a tutorial.
type Progress struct {
	Plugin   string `json:"plugin"`
	Steps    []Step `json:"steps"`
	Done     int    `json:"done"`
	Finished bool   `json:"finished"`
	// LastTry is how the step that is due has ended, where it ended otherwise than it should.
	LastTry *Outcome `json:"tried,omitempty"`
}

// Outcome is how something ended.
type Outcome struct {
	Code     string `json:"code"`
	ExitCode int    `json:"exit_code"`
}

// Due are the steps to take now.
func (p *Progress) Due() (due []Step) {
	for _, s := range p.Steps {
		if s.State == Now {
			due = append(due, s)
		}
	}
	return due
}

// Walk holds the steps of a plugin's tutorial, in their order, against what was seen, in the order in which it ended. A step is done
// when its tool, whatever its parameters, was used as the step says and ended as it expects. A step that leaves no record, such as a
// list, is due with the one after it, and done with it.
func Walk(catalog *host.Catalog, plugin string, steps []manifest.Step, events []Event) *Progress {
	p := &Progress{Plugin: plugin, Steps: make([]Step, 0, len(steps))}
	expected := make([]Event, len(steps)) // that each step leaves; without an Op it leaves none
	for i, s := range steps {
		step := Step{Step: i + 1, Say: manifest.CleanLine(s.Say), Run: manifest.CleanLine(s.Run), State: Later}
		if s.Expect != nil {
			step.ExitCode = s.Expect.ExitCode
		}
		p.Steps = append(p.Steps, step)
		expected[i] = expectedEvent(catalog, step)
	}
	due := func() int { // the next step from p.Done on that leaves a record
		at := p.Done
		for at < len(expected) && expected[at].Op == "" {
			at++
		}
		return at
	}
	for _, s := range events {
		at := due()
		if at == len(steps) {
			break
		}
		want := expected[at]
		switch {
		case s.Op != want.Op || !strings.EqualFold(s.Tool, want.Tool):
		case s.ExitCode != want.ExitCode:
			p.LastTry = &Outcome{s.Code, s.ExitCode}
		default:
			p.Done, p.LastTry = at+1, nil
		}
	}
	at := due()
	p.Finished = at == len(steps)
	for i := range p.Steps {
		switch {
		case i < p.Done:
			p.Steps[i].State = Done
		case i <= at:
			p.Steps[i].State = Now // what is said after the last call is due until the end
		}
	}
	return p
}

// expectedEvent is what a step leaves where it ends as it should.
func expectedEvent(catalog *host.Catalog, s Step) Event {
	c, ok := catalog.Command(s.Run)
	switch {
	case !ok || c.Op == "list":
		return Event{}
	case c.Op == "search":
		return Event{Op: c.Op, ExitCode: s.ExitCode}
	}
	return Event{Op: c.Op, Tool: c.At.Name(), ExitCode: s.ExitCode}
}
