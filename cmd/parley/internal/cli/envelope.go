package cli

import (
	"encoding/json"
	"math"
	"slices"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/manifest"
)

// envelope is the one shape of what commands print with --json.
type envelope struct {
	OK       bool              `json:"ok"`
	Data     json.RawMessage   `json:"data,omitempty"`
	Content  []host.Content    `json:"content,omitempty"`
	Error    *host.ErrorObject `json:"error,omitempty"`
	Warnings []string          `json:"warnings"`
	Next     []string          `json:"next"`
	Meta     *meta             `json:"meta,omitempty"`
	Debug    []string          `json:"debug,omitempty"`
}

// meta says which call an envelope is about.
type meta struct {
	Tool   string  `json:"tool,omitempty"`
	CallID string  `json:"call_id,omitempty"`
	MS     float64 `json:"ms"`
}

// describedTool is the documentation of a tool, with the commands that lead on from it.
type describedTool struct {
	*manifest.ToolDocs
	Next []string `json:"next,omitempty"`
}

// envelopeOf is the answer of a call as it is printed.
func (a *App) envelopeOf(answer *host.Answer) *envelope {
	var hints []string
	if answer.Err != nil {
		hints = answer.Err.Next
	}
	env := &envelope{
		OK: answer.Err == nil, Data: answer.Data, Content: answer.Content, Warnings: append([]string{}, answer.Warnings...),
		Next: a.next(answer.Steps, hints),
		Meta: &meta{
			Tool: answer.Tool, CallID: answer.CallID, MS: math.Round(float64(answer.Duration.Microseconds())/10) / 100,
		},
	}
	if answer.Err != nil {
		env.Error = a.errorObject(answer.Err)
	}
	return env
}

// errorObject is an error as it is printed.
func (a *App) errorObject(e *host.Error) *host.ErrorObject {
	o := e.Object()
	if e.Retry != nil {
		o.Command = a.command(*e.Retry)
	}
	if o.Docs != nil {
		o.Docs = a.withCommands(o.Docs)
	}
	return o
}

// withCommands returns documentation whose examples say which command runs them.
func (a *App) withCommands(d *manifest.ToolDocs) *manifest.ToolDocs {
	docs := *d
	docs.Examples = slices.Clone(d.Examples)
	for i, e := range docs.Examples {
		docs.Examples[i].Command = a.command(host.CallStep(d.Name, e.Params))
	}
	return &docs
}
