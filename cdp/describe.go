package cdp

import (
	"encoding/json"
	"strings"

	"github.com/parley-tools/parley/manifest"
)

const (
	// flowBytes is how much longer the second tier may be for what comes before a command.
	flowBytes = 370
	// tier2Bytes is a little less than 400 tokens, the limit of a command's second tier as JSON without what comes before
	// it and without the texts of when to use it, which are hand-written and never shortened.
	tier2Bytes = 1785
	// maxBytes is a little less than 500 tokens, the limit of all of it.
	maxBytes = 2220
	// optionalShown is how many optional parameters the second tier describes; it lists the others by name.
	optionalShown = 8
	// enumCut marks an enum that is not complete. It is short enough to stay.
	enumCut = "and others: tier 3"
)

// Describe fits Chrome's texts, which cannot be edited, into the tiers: the second tier keeps the first sentence of
// each description and shortens further until it fits.
func (p *Provider) Describe(t *manifest.Tool, tier int) *manifest.ToolDocs {
	m, _ := p.Manifest()
	d := manifest.Describe(m, t, tier)
	if f := p.Flow(t.Name); f != nil && tier > manifest.Tier1 {
		d.SetFlow(f)
	}
	if tier != manifest.Tier2 {
		return d
	}
	shortenExamples(d)
	limit := min(maxBytes, tier2Bytes+min(flowBytes, flowSize(d))+len(d.When)+len(d.WhenNot))
	d.Description = firstSentence(d.Description)
	kept := make([]manifest.Param, 0, len(d.Parameters))
	for _, q := range d.Parameters {
		if q.Required || len(kept) < optionalShown {
			q.Description = firstSentence(q.Description)
			kept = append(kept, q)
		} else {
			d.MoreParameters = append(d.MoreParameters, q.Name)
		}
	}
	d.Parameters = kept
	for i := range d.Returns {
		d.Returns[i].Description = firstSentence(d.Returns[i].Description)
	}
	for i := range d.Get {
		if size(d) > limit {
			d.Get[i].From = d.Get[i].From[:1]
		}
	}
	for i := range d.Examples {
		if size(d) > limit+flowBytes {
			d.Examples[i].Before = nil
		}
	}
	for _, keep := range []func(manifest.Param) bool{
		func(q manifest.Param) bool { return q.Required },
		func(manifest.Param) bool { return false },
	} {
		if size(d) <= limit {
			return d
		}
		dropFields(d.Returns, func(manifest.Param) bool { return false })
		dropFields(d.Parameters, keep)
	}
	for _, width := range []int{120, 80, 50, 36, 24, 0} {
		if size(d) <= limit {
			return d
		}
		shorten(d, width)
	}
	for size(d) > limit && len(d.Returns) > 1 {
		d.Returns = d.Returns[:len(d.Returns)-1]
	}
	for size(d) > limit && len(d.Parameters) > 0 && !d.Parameters[len(d.Parameters)-1].Required {
		last := len(d.Parameters) - 1
		d.MoreParameters = append([]string{d.Parameters[last].Name}, d.MoreParameters...)
		d.Parameters = d.Parameters[:last]
	}
	for _, width := range []int{24, 0} {
		for i := range d.Parameters {
			if size(d) > limit && d.Parameters[i].Description != enumCut {
				d.Parameters[i].Description = clip(d.Parameters[i].Description, width)
			}
		}
	}
	return d
}

// beforeBytes is how long the calls before an example may be for the second tier to have them. A plan has them, too.
const beforeBytes = 400

// shortenExamples leaves the results of examples, and the details of their runs, to the third tier.
func shortenExamples(d *manifest.ToolDocs) {
	for i := range d.Examples {
		e := &d.Examples[i]
		e.Result = nil
		e.Verified, _, _ = strings.Cut(e.Verified, ".")
		e.NotRun = clip(e.NotRun, 60)
		if raw, err := json.Marshal(e.Before); err != nil || len(raw) > beforeBytes {
			e.Before = nil
		}
	}
}

// flowSize returns the size of what the documentation says about calls before the command.
func flowSize(d *manifest.ToolDocs) int {
	type flow struct {
		Get    []manifest.ValueDoc
		Needs  []string
		Before []manifest.BatchLine
	}
	f := flow{Get: d.Get, Needs: d.Needs}
	for _, e := range d.Examples {
		f.Before = append(f.Before, e.Before...)
	}
	if len(f.Get)+len(f.Needs)+len(f.Before) == 0 {
		return 0
	}
	raw, err := json.Marshal(f)
	if err != nil {
		return 0
	}
	return len(raw)
}

// dropFields drops the fields of objects, which the third tier and the type's own documentation describe.
func dropFields(params []manifest.Param, keep func(manifest.Param) bool) {
	for i := range params {
		if !keep(params[i]) {
			params[i].Fields = ""
		}
	}
}

// size returns the size of the documentation as delivered: as JSON, plus an estimate of what front ends add, which is
// how to call each example, and the next steps.
func size(d *manifest.ToolDocs) int {
	raw, err := json.Marshal(d)
	if err != nil {
		return 0
	}
	const perStep = 40 // the words around a name and its parameters
	n := len(raw) + perStep + len(d.Name)
	for _, e := range d.Examples {
		n += 2 * (perStep + len(d.Name) + len(e.Params))
	}
	return n
}

// shorten cuts texts to a width, and long enums. Tier 3 has them in full.
func shorten(d *manifest.ToolDocs, width int) {
	cut := func(q *manifest.Param) {
		if q.Description == enumCut {
			return
		}
		q.Description = clip(q.Description, width)
		if width <= 50 && len(q.Enum) > 4 {
			q.Enum = q.Enum[:4]
			q.Description = enumCut
		}
	}
	for i := range d.Parameters {
		if d.Parameters[i].Required {
			d.Parameters[i].Description = clip(d.Parameters[i].Description, max(width, 40))
		} else {
			cut(&d.Parameters[i])
		}
	}
	for i := range d.Returns {
		cut(&d.Returns[i])
	}
	d.Description = clip(d.Description, max(width, 60))
	d.DeprecationMessage = clip(d.DeprecationMessage, max(width, 80))
	if width == 0 && len(d.Returns) > optionalShown {
		d.Returns = d.Returns[:optionalShown]
	}
}

func clip(s string, width int) string {
	if width == 0 {
		return ""
	}
	runes := []rune(s)
	if len(runes) <= width {
		return s
	}
	cut := string(runes[:width-1])
	if at := strings.LastIndexByte(cut, ' '); at > width/2 {
		cut = cut[:at]
	}
	return cut + "…"
}

// firstSentence returns the text up to the first full stop that ends a sentence, or up to the first newline.
func firstSentence(s string) string {
	for i := 0; i+1 < len(s); i++ {
		if s[i] == '\n' {
			return strings.TrimSpace(s[:i])
		}
		if s[i] == '.' && (s[i+1] == ' ' || s[i+1] == '\n') && !strings.HasSuffix(s[:i], "e.g") &&
			!strings.HasSuffix(s[:i], "i.e") {
			return s[:i+1]
		}
	}
	return s
}
