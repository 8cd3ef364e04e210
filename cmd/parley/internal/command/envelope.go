package command

import (
	"encoding/json"
	"math"
	"slices"

	"github.com/parley-tools/parley"
	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/manifest"
)

// Envelope is the document that every command prints with --json.
type Envelope struct {
	OK       bool              `json:"ok"`
	Data     json.RawMessage   `json:"data,omitempty"`
	Content  []host.Content    `json:"content,omitempty"`
	Error    *host.ErrorObject `json:"error,omitempty"`
	Warnings []string          `json:"warnings"`
	Next     []string          `json:"next"` // what to type next
	Meta     *Meta             `json:"meta,omitempty"`
	// Admission are the reports on plugins that were loaded for the first time, or refused.
	Admission []*parley.Admission `json:"admission,omitempty"`
	Debug     []string            `json:"debug,omitempty"`
}

// Meta says which call an envelope is about.
type Meta struct {
	Tool   string  `json:"tool,omitempty"`
	CallID string  `json:"call_id,omitempty"`
	MS     float64 `json:"ms"` // milliseconds
}

// Envelope returns the envelope of a call. Warnings and Next are not nil.
func (d *Deps) Envelope(answer *host.Answer) *Envelope {
	env := &Envelope{
		OK: answer.Err == nil, Data: answer.Data, Content: answer.Content, Warnings: append([]string{}, answer.Warnings...),
		Meta: &Meta{
			Tool: answer.Tool, CallID: answer.CallID, MS: math.Round(float64(answer.Duration.Microseconds())/10) / 100,
		},
	}
	var hints []string
	if answer.Err != nil {
		hints = answer.Err.Next
		env.Error = d.ErrorObject(answer.Err)
	}
	env.Next = d.Next(answer.Steps, hints)
	return env
}

// ErrorObject returns an error in the form of --json, with the commands that its steps stand for.
func (d *Deps) ErrorObject(e *host.Error) *host.ErrorObject {
	e = e.Bounded()
	o := e.Object()
	if e.Retry != nil {
		if c := d.Command(*e.Retry); d.offers(c) {
			o.Command = c
		}
	}
	if o.Docs != nil {
		o.Docs = d.WithCommands(o.Docs)
	}
	return o
}

// WithCommands returns a copy of documentation whose examples say which command runs them.
func (d *Deps) WithCommands(docs *manifest.ToolDocs) *manifest.ToolDocs {
	with := *docs
	with.Examples = slices.Clone(docs.Examples)
	for i, e := range with.Examples {
		with.Examples[i].Command = d.Command(host.ExampleStep(docs.Name, &e))
	}
	return &with
}

// Next renders what to do next: first the steps, each once, then the hints, of those that may be offered. It is never
// nil.
func (d *Deps) Next(steps []host.Step, hints []string) []string {
	commands := []string{}
	add := func(c string) {
		if !slices.Contains(commands, c) && d.offers(c) {
			commands = append(commands, c)
		}
	}
	for _, s := range steps {
		add(d.Command(s))
	}
	for _, hint := range hints {
		add(hint)
	}
	return commands
}

func (d *Deps) offers(line string) bool { return d.Offers == nil || d.Offers(line) }
