package command

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"math"
	"slices"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/admit"
	"github.com/parley-tools/parley/host/advice"
	"github.com/parley-tools/parley/host/job"
	"github.com/parley-tools/parley/host/step"
	"github.com/parley-tools/parley/manifest"
)

// Envelope is the document that every command prints with --json.
type Envelope struct {
	OK       bool              `json:"ok"`
	Data     json.RawMessage   `json:"data,omitempty"`
	Content  []job.Content     `json:"content,omitempty"`
	Error    *host.ErrorObject `json:"error,omitempty"`
	Warnings []string          `json:"warnings"`
	Next     []string          `json:"next"` // commands to type next
	Meta     *Meta             `json:"meta,omitempty"`
	// Admission are the reports on plugins that were loaded for the first time, or refused.
	Admission []*admit.Report `json:"admission,omitempty"`
	Debug     []string        `json:"debug,omitempty"`
}

// newEnvelope returns the envelope of data.
func newEnvelope(data any, warnings, next []string) (*Envelope, error) {
	raw, err := manifest.Marshal(data)
	env := &Envelope{OK: true, Data: raw, Warnings: append([]string{}, warnings...), Next: append([]string{}, next...)}
	return env, err
}

// Meta identifies the call of an envelope.
type Meta struct {
	Tool   string  `json:"tool,omitempty"`
	CallID string  `json:"call_id,omitempty"`
	MS     float64 `json:"ms"` // milliseconds
}

// Envelope returns the envelope of a call. Warnings and Next are not nil.
func (a *App) Envelope(answer *host.Answer) *Envelope {
	env := &Envelope{
		OK: answer.Err == nil, Data: answer.Data, Content: answer.Content, Warnings: append([]string{}, answer.Warnings...),
		Meta: &Meta{
			Tool: answer.Tool, CallID: answer.CallID, MS: math.Round(float64(answer.Duration.Microseconds())/10) / 100,
		},
	}
	var hints []string
	if answer.Err != nil {
		hints = answer.Err.Next
		env.Error = a.ErrorObject(answer.Err)
	}
	env.Next = a.Next(answer.Steps, hints)
	return env
}

// ErrorObject returns an error in the form of --json, with its steps as commands.
func (a *App) ErrorObject(e *host.Error) *host.ErrorObject {
	e = e.Bounded()
	o := e.Object()
	if e.Retry != nil {
		if c := a.Command(*e.Retry); a.offers(c) {
			o.Command = c
		}
	}
	if o.Docs != nil {
		o.Docs = a.WithCommands(o.Docs)
	}
	return o
}

// WithCommands returns a copy of documentation for the command line: each example has the command that runs it.
func (a *App) WithCommands(docs *manifest.ToolDocs) *manifest.ToolDocs {
	with := *docs
	with.Deeper = "--tier 3"
	with.Examples = slices.Clone(docs.Examples)
	for i := range with.Examples {
		with.Examples[i].Command = a.Command(advice.ExampleStep(docs, i))
	}
	return &with
}

// Next renders what to do next: first the steps, each once, then the hints. It leaves out what may not be offered. It
// is never nil.
func (a *App) Next(steps []step.Step, hints []string) []string {
	commands := []string{}
	add := func(c string) {
		if !slices.Contains(commands, c) && a.offers(c) {
			commands = append(commands, c)
		}
	}
	for _, s := range steps {
		add(a.Command(s))
	}
	for _, hint := range hints {
		add(hint)
	}
	return commands
}

func (a *App) offers(line string) bool { return a.Offers == nil || a.Offers(line) }

// CountDocs returns a context in which records count documentation by the size of what write writes.
func CountDocs(ctx context.Context, write func(w io.Writer, d *host.Docs)) context.Context {
	return host.WithDocsSize(ctx, func(d *host.Docs, _ bool) int {
		var b bytes.Buffer
		write(&b, d)
		return b.Len()
	})
}

// WriteErrorDocs writes the documentation of an error, as fail does.
func (a *App) WriteErrorDocs(w io.Writer, d *host.Docs) {
	docs := a.WithCommands(d.ToolDocs)
	if a.JSON {
		_ = WriteJSON(w, docs, a.ErrTTY)
		return
	}
	a.DocsText(w, docs)
}
