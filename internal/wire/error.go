package wire

import (
	"encoding/json"
	"slices"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/manifest"
)

// Error is a whole [host.Error] but its Cause, and but Next, which only front ends set.
type Error struct {
	Code       host.Code           `json:"code"`
	Exit       int                 `json:"exit,omitempty"`
	Message    string              `json:"message"`
	Details    []detail            `json:"details,omitempty"`
	Denied     []host.Denial       `json:"denied,omitempty"`
	Tool       *host.ToolError     `json:"tool,omitempty"`
	Protocol   *host.ProtocolError `json:"cdp,omitempty"`
	Corrected  json.RawMessage     `json:"corrected,omitempty"`
	Retry      *host.Step          `json:"retry,omitempty"`
	Template   json.RawMessage     `json:"template,omitempty"`
	Changes    []host.Change       `json:"changes,omitempty"`
	DidYouMean []host.NearName     `json:"did_you_mean,omitempty"`
	Earlier    []string            `json:"earlier,omitempty"`
	Effects    []string            `json:"effects,omitempty"`
	Docs       *manifest.ToolDocs  `json:"docs,omitempty"`
	DocsNext   []host.Step         `json:"docs_next,omitempty"`
	Steps      []host.Step         `json:"steps,omitempty"`
	Trace      *host.Trace         `json:"trace,omitempty"`
}

// detail is a [host.Detail] whose suggestion is data.
type detail struct {
	Parameter  string      `json:"parameter"`
	Keyword    string      `json:"keyword"`
	Provided   string      `json:"provided"`
	Expected   string      `json:"expected"`
	Suggestion *suggestion `json:"suggestion,omitempty"`
}

type suggestion struct {
	Pointer string            `json:"pointer,omitempty"`
	Op      host.SuggestionOp `json:"op"`
	Value   string            `json:"value,omitempty"`
}

// ErrorOf returns an error in the form of the wire.
func ErrorOf(e *host.Error) *Error {
	w := &Error{
		Code: e.Code, Exit: e.Exit, Message: e.Message, Denied: e.Denied, Tool: e.Tool, Protocol: e.Protocol,
		Corrected: e.Corrected, Retry: e.Retry, Template: e.Template, Changes: e.Changes, DidYouMean: e.DidYouMean,
		Earlier: e.Earlier, Effects: e.Effects, Steps: e.Steps, Trace: e.Trace,
	}
	for _, d := range e.Details {
		w.Details = append(w.Details, detail{d.Parameter, d.Keyword, d.Provided, d.Expected, (*suggestion)(d.Suggestion)})
	}
	if e.Docs != nil {
		w.Docs, w.DocsNext = e.Docs.ToolDocs, e.Docs.Next
	}
	return w
}

// HostError returns the error that was sent.
func (w *Error) HostError() *host.Error {
	e := &host.Error{
		Code: w.Code, Exit: w.Exit, Message: w.Message, Denied: w.Denied, Tool: w.Tool, Protocol: w.Protocol,
		Corrected: w.Corrected, Retry: w.Retry, Template: w.Template, Changes: w.Changes, DidYouMean: w.DidYouMean,
		Earlier: w.Earlier, Effects: w.Effects, Steps: w.Steps, Trace: w.Trace,
	}
	for _, d := range w.Details {
		e.Details = append(e.Details, host.Detail{Parameter: d.Parameter, Keyword: d.Keyword, Provided: d.Provided,
			Expected: d.Expected, Suggestion: (*host.Suggestion)(d.Suggestion)})
	}
	if w.Docs != nil {
		e.Docs = &host.Docs{ToolDocs: w.Docs, Next: w.DocsNext}
	}
	return e
}

// Bounds of an error of an untrusted sender.
const (
	maxMessage = 4 << 10
	maxValue   = 6 * 64 << 10 // a byte of text may take six bytes in JSON
	maxItems   = 100
)

// Untrusted returns the error of a sender that may be compromised, such as a process that runs a guest: its texts are
// cleaned and bounded. Documentation is left out, because the host has its own. Of the steps only those stay that
// change nothing: to describe, list or search.
func (w *Error) Untrusted() *host.Error {
	from := w.HostError()
	e := &host.Error{
		Code: from.Code, Exit: from.Exit, Message: manifest.Clip(manifest.Clean(from.Message), maxMessage),
		Corrected: cleanValue(from.Corrected), Template: cleanValue(from.Template),
	}
	line := func(s string) string { return manifest.Clip(manifest.CleanLine(s), maxMessage) }
	for _, d := range first(from.Details) {
		d.Parameter, d.Keyword = line(d.Parameter), line(d.Keyword)
		d.Provided, d.Expected = line(d.Provided), line(d.Expected)
		d.Suggestion = host.TextSuggestion(line(d.Suggestion.String()))
		e.Details = append(e.Details, d)
	}
	for _, d := range first(from.Denied) {
		e.Denied = append(e.Denied, host.Denial{Right: line(d.Right), Why: line(d.Why)})
	}
	for _, n := range first(from.DidYouMean) {
		e.DidYouMean = append(e.DidYouMean, host.NearName{Name: line(n.Name), Distance: n.Distance})
	}
	if t := from.Tool; t != nil {
		e.Tool = &host.ToolError{Exit: t.Exit, Name: line(t.Name), Details: cleanValue(t.Details)}
	}
	if p := from.Protocol; p != nil {
		e.Protocol = &host.ProtocolError{Code: p.Code, Message: line(p.Message), Data: line(p.Data)}
	}
	if t := from.Trace; t != nil {
		e.Trace = &host.Trace{Unnamed: t.Unnamed, Frames: first(t.Frames)}
		for i := range e.Trace.Frames {
			e.Trace.Frames[i].Name = line(e.Trace.Frames[i].Name)
		}
		for _, s := range first(t.Stderr) {
			e.Trace.Stderr = append(e.Trace.Stderr, line(s))
		}
		for _, s := range first(t.Log) {
			e.Trace.Log = append(e.Trace.Log, line(s))
		}
	}
	for _, s := range first(from.Steps) {
		if slices.Contains([]host.Op{host.OpDescribe, host.OpList, host.OpSearch}, s.Op) {
			e.Steps = append(e.Steps, host.Step{Op: s.Op, Tool: line(s.Tool), Query: line(s.Query),
				Options: host.StepOptions{Tier: s.Options.Tier}})
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
