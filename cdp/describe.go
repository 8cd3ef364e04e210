package cdp

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/parley-tools/parley/manifest"
)

const (
	// maxBytes is a little less than 500 tokens, the limit of a command's second tier as JSON.
	maxBytes = 2220
	// resultsShown is how many results the second tier has if it is too long.
	resultsShown = 8
)

// Describe fits Chrome's texts, which cannot be edited, into the tiers: the second tier keeps the first sentence of
// each description and shortens further until it fits.
func (p *catalog) Describe(t *manifest.Tool, tier int) *manifest.ToolDocs {
	m, _ := p.Manifest()
	d := manifest.Describe(m, t, tier)
	if f := p.Flow(t.Name); f != nil && tier > manifest.Tier1 {
		d.SetFlow(f)
	}
	if tier != manifest.Tier2 {
		return d
	}
	shortenExamples(d)
	d.Description = firstSentence(d.Description)
	for _, list := range [][]manifest.Param{d.Parameters, d.Returns} {
		for i := range list {
			list[i].Description = firstSentence(list[i].Description)
		}
	}
	isLong := func() bool { return size(d) > maxBytes }
	for i := 0; i < len(d.Get) && isLong(); i++ {
		d.Get[i].From = d.Get[i].From[:1]
	}
	for _, bytes := range [][2]int{{200, 80}, {120, 40}, {80, 20}} {
		if isLong() {
			d.NarrowTypes(t, bytes[0], bytes[1])
		}
	}
	widths := func(widths ...int) {
		for _, width := range widths {
			if isLong() {
				shorten(d, width)
			}
		}
	}
	widths(120, 80)
	for i := 0; i < len(d.Examples) && isLong(); i++ {
		d.Examples[i].Before = nil // a plan has them, too
	}
	if isLong() {
		d.NarrowTypes(t, 40, 10)
		d.CutReturns(resultsShown)
	}
	// Callers need the last ones least.
	dropTexts := func(list []manifest.Param, from int) {
		for i := len(list) - 1; i >= from && isLong(); i-- {
			if q := &list[i]; q.Description != "" {
				q.Description, q.More = "", q.More+1
			}
		}
	}
	dropTexts(d.Returns, 0)
	required := slices.IndexFunc(d.Parameters, func(q manifest.Param) bool { return !q.Required })
	if required < 0 {
		required = len(d.Parameters)
	}
	widths(50, 36)
	for isLong() && len(d.Returns) > 1 {
		d.CutReturns(len(d.Returns) - 1)
	}
	dropTexts(d.Parameters, required)
	for isLong() && len(d.Parameters) > 0 && !d.Parameters[len(d.Parameters)-1].Required {
		last := len(d.Parameters) - 1
		d.MoreParameters = append([]string{d.Parameters[last].Name}, d.MoreParameters...)
		d.Parameters = d.Parameters[:last]
	}
	dropTexts(d.Parameters, 0)
	return d
}

// beforeBytes limits the calls before an example in the second tier, in bytes. Longer ones are left out, because a
// plan has them, too.
const beforeBytes = 400

// shortenExamples leaves the results of examples, and the details of their runs, to the third tier.
func shortenExamples(d *manifest.ToolDocs) {
	for i := range d.Examples {
		e := &d.Examples[i]
		e.Result = nil
		e.Verified, _, _ = strings.Cut(e.Verified, ".")
		e.NotRun = clip(e.NotRun, 100)
		if raw, err := json.Marshal(e.Before); err != nil || len(raw) > beforeBytes {
			e.Before = nil
		}
	}
}

// size returns the size of the documentation as delivered: as JSON, plus an estimate of what front ends add, which is
// how to call each example, and the next steps.
func size(d *manifest.ToolDocs) int {
	raw, _ := json.Marshal(d)
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
		q.Description = clip(q.Description, width)
		if width <= 50 {
			q.CutValues(4)
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
}

func clip(s string, width int) string {
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
