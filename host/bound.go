package host

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/parley-tools/parley/host/grant"
	"github.com/parley-tools/parley/host/step"
	"github.com/parley-tools/parley/manifest"
	"github.com/parley-tools/parley/manifest/jsontext"
	"github.com/parley-tools/parley/manifest/schema"
)

// Bounds of an error in bytes of JSON, without documentation. The error object leaves space for what a front end adds:
// next steps and the id of the call.
const (
	maxErrorSize = 1300
	maxOneFault  = 560
	maxOneStep   = 620 // one violation with a step that has parameters, including these
	maxStepSize  = 240 // the parameters of a step
	maxOffered   = 400 // the corrected parameters
	maxErrorStep = 3   // steps
	longValue    = 100 // a value from this size on is named

	// maxAlone replaces maxErrorSize for an error without steps that have parameters.
	maxAlone = 1480
	// As many violations are listed as fit: at least mostDetails while anything else can be shortened, and at least
	// fewDetails while there are corrected parameters.
	mostDetails, fewDetails = 10, 6
	maxDetails              = 40
)

// moreDetails is the keyword of the last detail where violations are left out. It counts them.
const moreDetails = "more"

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
		b.Template = b.nameLong(b.Template)
	}
	b.Steps = BoundedSteps(b.Steps)
	if b.Retry != nil && len(BoundedSteps([]step.Step{*b.Retry})) == 0 {
		b.Retry = nil
	}
	b.fit()
	return &b
}

// clip shortens each text to 1/part of its limit.
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
			d.Suggestion = &step.Suggestion{Pointer: short(s.Pointer, 80), Op: s.Op, Value: short(s.Value, 160)}
		}
		d.Parameter, d.Provided, d.Expected = short(d.Parameter, 80), short(d.Provided, 80), short(d.Expected, 160)
		e.Details[i] = d
	}
	for i, d := range e.Denied {
		e.Denied[i] = grant.Denial{Right: short(d.Right, 120), Why: short(d.Why, 160)}
	}
	for i, c := range e.Changes {
		e.Changes[i].From, e.Changes[i].To = short(c.From, 80), short(c.To, 80)
	}
	for _, texts := range [][]string{e.Earlier, e.Effects} {
		for i, s := range texts {
			texts[i] = short(s, 160)
		}
	}
	if e.Tool != nil && e.Tool.Inner != nil {
		tool, inner := *e.Tool, *e.Tool.Inner
		if inner.Message = short(inner.Message, 200); len(inner.Details) > longValue {
			inner.Details = named("details", inner.Details)
		}
		tool.Inner = &inner
		e.Tool = &tool
	}
	if p := e.Protocol; p != nil {
		e.Protocol = &ProtocolError{p.Code, short(p.Message, 200), short(p.Data, 200)}
	}
}

// fit removes what counts least until the error has its size.
func (e *Error) fit() {
	e.cutDetails(maxDetails)
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
		func() { e.Changes = e.Changes[:min(len(e.Changes), 6)] },
		func() {
			if e.Corrected == nil { // details say what is wrong
				e.Changes = slices.DeleteFunc(e.Changes, func(c schema.Change) bool { return c.How == schema.Dropped })
			}
		},
		func() { e.fitDetails(mostDetails) },
		func() { e.Earlier = nil },
		func() { e.Changes = e.Changes[:min(len(e.Changes), 3)] },
		func() { e.fitDetails(fewDetails) },
		func() {
			if e.Tool != nil && len(e.Tool.Details) > longValue {
				e.Tool = &ToolError{e.Tool.Exit, e.Tool.Name, named("details", e.Tool.Details), e.Tool.Inner}
			}
		},
		func() {
			if e.Corrected == nil {
				e.Changes = nil
			}
		},
		func() { e.Template, e.Changes = nil, nil },
		func() {
			if e.Corrected != nil { // the call repeats it
				e.Retry, e.Steps = nil, slices.DeleteFunc(e.Steps, func(s step.Step) bool { return len(s.Params) > 0 })
			}
		},
		func() { e.Corrected, e.Retry = nil, nil },
		func() { e.fitDetails(3) },
		func() { e.DidYouMean, e.Effects = nil, e.Effects[:min(len(e.Effects), 1)] },
		func() { e.Denied = e.Denied[:min(len(e.Denied), 1)] },
		func() { e.clip(2) },
		func() { e.clip(4) },
	} {
		if e.size() <= e.limit() {
			return
		}
		less()
	}
}

// limit returns the maximum size of the error in bytes, without its steps.
func (e *Error) limit() int {
	given := 0 // size of the largest step
	for _, s := range e.Steps {
		given = max(given, stepSize(s))
	}
	switch {
	case len(e.Details) == 1:
		return min(maxOneFault, maxOneStep-given)
	case e.Retry == nil && !slices.ContainsFunc(e.Steps, func(s step.Step) bool { return len(s.Params)+len(s.Query) > 0 }):
		return maxAlone
	}
	return maxErrorSize
}

// fitDetails leaves out violations, the last ones first, until the error has its size or only so many are listed.
func (e *Error) fitDetails(least int) {
	for n := len(e.Details) - 1; n >= least && e.size() > e.limit(); n-- {
		e.cutDetails(n)
	}
}

// cutDetails lists n violations and counts the others in a last detail.
func (e *Error) cutDetails(n int) {
	more := 0
	listed := slices.DeleteFunc(slices.Clone(e.Details), func(d Detail) bool {
		if d.Keyword == moreDetails {
			_, _ = fmt.Sscanf(d.Expected, "%d", &more)
		}
		return d.Keyword == moreDetails
	})
	if len(listed) > n {
		more += len(listed) - n
		e.Details = append(listed[:n], Detail{Keyword: moreDetails, Expected: manifest.Plural(more, "more violation")})
	}
}

func (e *Error) size() int {
	raw, _ := manifest.Marshal(e.object())
	return len(manifest.EscapeJSON(raw))
}

// nameLong returns an object with its long values named. It returns nil for a text that is not an object or stays too
// long.
func (e *Error) nameLong(object json.RawMessage) json.RawMessage {
	var members map[string]json.RawMessage
	if json.Unmarshal(object, &members) != nil {
		return nil
	}
	for name, value := range members {
		if len(value) <= longValue {
			continue
		}
		if members[name] = named(manifest.Clip(name, 40), value); e.concerns(name) {
			text := fmt.Sprintf("<%s: %s, with its errors corrected>", manifest.Clip(name, 40), SizeOf(len(value)))
			members[name] = jsontext.Marshal(text)
		}
	}
	if raw := jsontext.Marshal(members); len(raw) <= 2*maxStepSize {
		return raw
	}
	return nil
}

// concerns reports whether a violation or a change is about the parameter with that name, or about a part of it.
func (e *Error) concerns(name string) bool {
	at := jsontext.Pointer([]string{name})
	isOf := func(pointer string) bool { return pointer == at || strings.HasPrefix(pointer, at+"/") }
	return slices.ContainsFunc(e.Details, func(d Detail) bool { return isOf(d.Parameter) }) ||
		slices.ContainsFunc(e.Changes, func(c schema.Change) bool { return isOf(c.From) || isOf(c.To) })
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
func BoundedSteps(steps []step.Step) []step.Step {
	short := []step.Step{}
	for _, s := range steps {
		// Escaping never shortens a text, so parameters that are too long already need not be escaped.
		if len(short) < maxErrorStep && len(s.Params) <= maxStepSize && stepSize(s) <= maxStepSize {
			short = append(short, s)
		}
	}
	return short
}

// stepSize returns the size in bytes of the parts in which steps differ, in the form in which they leave the host.
func stepSize(s step.Step) int {
	o := s.Options
	return len(manifest.EscapeJSON(s.Params)) + len(s.Query) + len(o.JQ) + len(o.Browser+o.Target+o.Context+o.Session) +
		len(o.Until+o.Trigger+o.File+o.OnDialog+o.Wait+o.Isolate) + len(strings.Join(s.Args, ""))
}
