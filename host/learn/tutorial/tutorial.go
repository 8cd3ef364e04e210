// Package tutorial tracks progress in the tutorial of a plugin: which steps the traces show as done, and which is next.
package tutorial

import (
	"strings"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/commandline"
	"github.com/parley-tools/parley/host/step"
	"github.com/parley-tools/parley/internal/lists"
	"github.com/parley-tools/parley/manifest"
)

// States of a step.
const (
	Done    = "done"
	Now     = "now" // to be done next
	Pending = "later"
)

// Step is a step of a tutorial with its state.
type Step struct {
	Step     int    `json:"step"` // from 1
	Say      string `json:"say"`
	Run      string `json:"run,omitempty"` // a command; "" if the step is only to be read
	ExitCode int    `json:"exit_code"`     // exit code in which the command should end
	State    string `json:"state"`
}

// Progress is the state of a tutorial.
type Progress struct {
	Plugin   string `json:"plugin"`
	Steps    []Step `json:"steps"`
	Done     int    `json:"done"`
	Finished bool   `json:"finished"`
	// LastTry is the outcome of the last attempt at the current step; nil if there was none.
	LastTry *Outcome `json:"tried,omitempty"`
}

// Outcome is how an attempt ended.
type Outcome struct {
	Code     string `json:"code"`
	ExitCode int    `json:"exit_code"`
}

// Due returns the steps in state [Now].
func (p *Progress) Due() []Step {
	return lists.Filter(p.Steps, func(s Step) bool { return s.State == Now })
}

// Walk compares the steps of a plugin's tutorial with records in the order in which they were written. A step is done
// when its tool was used, with any parameters, and ended in the expected exit code. A step that leaves no record, such
// as a list, is due together with the step after it, and done when that is.
func Walk(catalog *host.Catalog, plugin string, steps []manifest.Step, records []host.Record) *Progress {
	p := &Progress{Plugin: plugin, Steps: make([]Step, 0, len(steps))}
	expected := make([]*host.Record, len(steps))
	for i, s := range steps {
		step := Step{Step: i + 1, Say: manifest.CleanLine(s.Say), Run: manifest.CleanLine(s.Run), State: Pending}
		if s.Expect != nil {
			step.ExitCode = s.Expect.ExitCode
		}
		p.Steps = append(p.Steps, step)
		expected[i] = expectedRecord(catalog, step)
	}
	due := func() int { // the first step from p.Done on that leaves a record
		at := p.Done
		for at < len(expected) && expected[at] == nil {
			at++
		}
		return at
	}
	for _, r := range records {
		at := due()
		if at == len(steps) {
			break
		}
		want := expected[at]
		switch {
		case r.Op != want.Op || !strings.EqualFold(r.Tool, want.Tool):
		case r.ExitCode != want.ExitCode:
			p.LastTry = &Outcome{r.Code, r.ExitCode}
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
			p.Steps[i].State = Now // after the last call, the closing text remains due
		}
	}
	return p
}

// expectedRecord returns the record that a step leaves when it ends as it should, nil if it leaves none.
func expectedRecord(catalog *host.Catalog, s Step) *host.Record {
	next, _ := commandline.Read(catalog, s.Run)
	r := &host.Record{Op: string(next.Op), Tool: next.Tool, ExitCode: s.ExitCode}
	switch next.Op {
	case "", step.OpList, step.OpListen:
		return nil
	case step.OpCall:
		r.Op = ""
	case step.OpSearch:
		r.Tool = ""
	}
	return r
}
