package host

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/parley-tools/parley/manifest"
	"github.com/parley-tools/parley/manifest/jsontext"
)

// Bounds of an error in bytes of JSON, without documentation. The error object leaves space for what a front end adds:
// next steps and the id of the call.
const (
	maxErrorSize = 1300
	maxOneFault  = 560
	maxStepSize  = 240 // the parameters of a step
	maxOffered   = 400 // the corrected parameters
	maxErrorStep = 3   // steps
	longValue    = 100 // a value from this size on is named
)

// Bounded returns a copy of the error as it may leave the host: at most 900 bytes for one violation, and 2 KB in any
// case, with the next steps and without documentation. A long value of the caller is named, not repeated.
func (e *Error) Bounded() *Error {
	b := *e
	b.Details, b.Denied, b.Changes = slices.Clone(b.Details), slices.Clone(b.Denied), slices.Clone(b.Changes)
	b.Earlier, b.Effects = slices.Clone(b.Earlier), slices.Clone(b.Effects)
	b.clip(1)
	if len(b.Corrected) > maxOffered {
		b.Corrected, b.Retry, b.Template = nil, nil, b.Corrected
	}
	if len(b.Template) > maxStepSize {
		b.Template = nameLong(b.Template)
	}
	b.Steps = BoundedSteps(b.Steps)
	if b.Retry != nil && len(BoundedSteps([]Step{*b.Retry})) == 0 {
		b.Retry = nil
	}
	b.fit()
	return &b
}

// clip shortens the texts to a part of what they may have.
func (e *Error) clip(part int) {
	short := func(s string, bytes int) string { return manifest.Clip(s, bytes/part) }
	switch {
	case len(e.Details) > 0:
		e.Message = short(e.Message, 400)
	case strings.Contains(e.Message, "\n"):
		e.Message = short(e.Message, 1100) // a report of several lines
	default:
		e.Message = short(e.Message, 600)
	}
	for i, d := range e.Details {
		if s := d.Suggestion; s != nil {
			d.Suggestion = &Suggestion{short(s.Pointer, 80), s.Op, short(s.Value, 160)}
		}
		d.Parameter, d.Provided, d.Expected = short(d.Parameter, 80), short(d.Provided, 80), short(d.Expected, 160)
		e.Details[i] = d
	}
	for i, d := range e.Denied {
		e.Denied[i] = Denial{short(d.Right, 120), short(d.Why, 160)}
	}
	for i, c := range e.Changes {
		e.Changes[i].From, e.Changes[i].To = short(c.From, 80), short(c.To, 80)
	}
	for _, texts := range [][]string{e.Earlier, e.Effects} {
		for i, s := range texts {
			texts[i] = short(s, 160)
		}
	}
	if p := e.Protocol; p != nil {
		e.Protocol = &ProtocolError{p.Code, short(p.Message, 200), short(p.Data, 200)}
	}
}

// fit removes what counts least until the error has its size.
func (e *Error) fit() {
	limit := maxErrorSize
	if len(e.Details) == 1 {
		limit = maxOneFault
	}
	for _, less := range []func(){
		func() { e.Earlier = e.Earlier[max(0, len(e.Earlier)-1):] },
		func() { e.DidYouMean = e.DidYouMean[:min(len(e.DidYouMean), 3)] },
		func() { e.Denied, e.Effects = e.Denied[:min(len(e.Denied), 3)], e.Effects[:min(len(e.Effects), 3)] },
		func() { // the suggestion says what to do
			for i, d := range e.Details {
				if d.Suggestion != nil {
					e.Details[i].Provided, e.Details[i].Expected = manifest.Clip(d.Provided, 40), manifest.Clip(d.Expected, 60)
				}
			}
		},
		func() { e.Details = e.Details[:min(len(e.Details), 6)] },
		func() { e.Changes = e.Changes[:min(len(e.Changes), 6)] },
		func() { e.Earlier = nil },
		func() {
			if e.Tool != nil && len(e.Tool.Details) > longValue {
				e.Tool = &ToolError{e.Tool.Exit, e.Tool.Name, named("details", e.Tool.Details)}
			}
		},
		func() { e.Template, e.Changes = nil, nil },
		func() { e.Corrected, e.Retry = nil, nil },
		func() { e.Details = e.Details[:min(len(e.Details), 3)] },
		func() { e.DidYouMean, e.Effects = nil, e.Effects[:min(len(e.Effects), 1)] },
		func() { e.Denied = e.Denied[:min(len(e.Denied), 1)] },
		func() { e.clip(2) },
		func() { e.clip(4) },
	} {
		if e.size() <= limit {
			return
		}
		less()
	}
}

func (e *Error) size() int {
	raw, _ := manifest.Marshal(e.object())
	return len(raw)
}

// nameLong returns an object with its long values named. It returns nil for a text that is not an object or stays too
// long.
func nameLong(object json.RawMessage) json.RawMessage {
	var members map[string]json.RawMessage
	if json.Unmarshal(object, &members) != nil {
		return nil
	}
	for name, value := range members {
		if len(value) > longValue {
			members[name] = named(manifest.Clip(name, 40), value)
		}
	}
	if raw := jsontext.Marshal(members); len(raw) <= 2*maxStepSize {
		return raw
	}
	return nil
}

// named returns the text that stands for a long value: "<params: 5.3 MB, as given>".
func named(name string, value json.RawMessage) json.RawMessage {
	return jsontext.Marshal(fmt.Sprintf("<%s: %s, as given>", name, SizeOf(len(value))))
}

// SizeOf returns a number of bytes as people write it: "5.3 MB".
func SizeOf(bytes int) string {
	switch {
	case bytes >= 1e6:
		return fmt.Sprintf("%.1f MB", float64(bytes)/1e6)
	case bytes >= 1e3:
		return fmt.Sprintf("%.1f kB", float64(bytes)/1e3)
	}
	return fmt.Sprintf("%d bytes", bytes)
}

// BoundedSteps returns the steps that an error may offer: few, and none that repeats long parameters.
func BoundedSteps(steps []Step) []Step {
	short := []Step{}
	for _, s := range steps {
		o := s.Options
		size := len(s.Params) + len(s.Query) + len(o.JQ) + len(o.Browser+o.Target+o.Context+o.Session) +
			len(o.Until+o.Trigger+o.File+o.OnDialog+o.Wait+o.Isolate) + len(strings.Join(s.Args, ""))
		if size <= maxStepSize && len(short) < maxErrorStep {
			short = append(short, s)
		}
	}
	return short
}
