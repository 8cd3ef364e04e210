package wire

import (
	"encoding/json"
	"slices"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/grant"
	"github.com/parley-tools/parley/host/job"
	"github.com/parley-tools/parley/host/step"
	"github.com/parley-tools/parley/internal/lists"
	"github.com/parley-tools/parley/manifest"
	"github.com/parley-tools/parley/manifest/spelling"
)

// Error is the part of a guest's error that a host takes over. It leaves out what the host adds itself, such as
// documentation.
type Error struct {
	Code       host.Code           `json:"code"`
	Exit       int                 `json:"exit,omitempty"`
	Message    string              `json:"message"`
	Details    []host.Detail       `json:"details,omitempty"` // with their suggestions as texts
	Denied     []grant.Denial      `json:"denied,omitempty"`
	Tool       *host.ToolError     `json:"tool,omitempty"`
	Protocol   *host.ProtocolError `json:"cdp,omitempty"`
	Corrected  json.RawMessage     `json:"corrected,omitempty"`
	Template   json.RawMessage     `json:"template,omitempty"`
	DidYouMean []spelling.Near     `json:"did_you_mean,omitempty"`
	Steps      []step.Step         `json:"steps,omitempty"`
	Trace      *job.Trace          `json:"trace,omitempty"`
}

// ErrorOf returns an error in the form of the wire.
func ErrorOf(e *host.Error) *Error {
	w := &Error{
		Code: e.Code, Exit: e.Exit, Message: e.Message, Denied: e.Denied, Tool: e.Tool, Protocol: e.Protocol,
		Corrected: e.Corrected, Template: e.Template, DidYouMean: e.DidYouMean, Steps: e.Steps, Trace: e.Trace,
	}
	for _, d := range e.Details {
		d.Suggestion = step.TextSuggestion(d.Suggestion.String()) // the form in which it arrives
		w.Details = append(w.Details, d)
	}
	return w
}

// Bounds of an error of an untrusted sender.
const (
	maxMessage = 4 << 10
	maxValue   = 6 * 64 << 10 // a byte of text may take six bytes in JSON
	maxItems   = 100
)

// Untrusted returns the error of a sender that may be compromised, such as a process that runs a guest: its texts are
// cleaned and bounded. Documentation is left out, because the host has its own. Only steps that change nothing stay:
// to describe, list or search.
func (w *Error) Untrusted() *host.Error {
	e := &host.Error{
		Code: w.Code, Exit: w.Exit, Message: manifest.Clip(manifest.Clean(w.Message), maxMessage),
		Corrected: cleanValue(w.Corrected), Template: cleanValue(w.Template),
	}
	line := func(s string) string { return manifest.Clip(manifest.CleanLine(s), maxMessage) }
	for _, d := range first(w.Details) {
		e.Details = append(e.Details, host.Detail{Parameter: line(d.Parameter), Keyword: line(d.Keyword),
			Provided: line(d.Provided), Expected: line(d.Expected),
			Suggestion: step.TextSuggestion(line(d.Suggestion.String()))})
	}
	for _, d := range first(w.Denied) {
		e.Denied = append(e.Denied, grant.Denial{Right: line(d.Right), Why: line(d.Why)})
	}
	for _, n := range first(w.DidYouMean) {
		e.DidYouMean = append(e.DidYouMean, spelling.Near{Name: line(n.Name), Distance: n.Distance})
	}
	if t := w.Tool; t != nil {
		e.Tool = &host.ToolError{Exit: t.Exit, Name: line(t.Name), Details: cleanValue(t.Details)}
	}
	if p := w.Protocol; p != nil {
		e.Protocol = &host.ProtocolError{Code: p.Code, Message: line(p.Message), Data: line(p.Data)}
	}
	if t := w.Trace; t != nil {
		e.Trace = &job.Trace{Unnamed: t.Unnamed, Frames: first(t.Frames), Stderr: lists.Map(first(t.Stderr), line),
			Log: lists.Map(first(t.Log), line)}
		for i := range e.Trace.Frames {
			e.Trace.Frames[i].Name = line(e.Trace.Frames[i].Name)
		}
	}
	for _, s := range first(w.Steps) {
		if slices.Contains([]step.Op{step.OpDescribe, step.OpList, step.OpSearch}, s.Op) {
			e.Steps = append(e.Steps, step.Step{Op: s.Op, Tool: line(s.Tool), Query: line(s.Query),
				Options: step.Options{Tier: s.Options.Tier}})
		}
	}
	return e
}

func first[T any](items []T) []T { return items[:min(len(items), maxItems)] }

// cleanValue returns a JSON value with clean texts, or nil if it is too large.
func cleanValue(value json.RawMessage) json.RawMessage {
	if len(value) == 0 || len(value) > maxValue {
		return nil
	}
	return manifest.CleanJSON(value)
}
