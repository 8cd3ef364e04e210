package search

import (
	"strings"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/step"
	"github.com/parley-tools/parley/manifest"
)

// Answer is the result of a search at a level of detail.
type Answer struct {
	*Data
	Docs []*host.Docs `json:"docs,omitempty"`
	// LeftOut names what was left out to stay within a limit of tokens.
	LeftOut []string `json:"left_out,omitempty"`
	// Open is the step that is required before the first result can be called; nil if there is none.
	Open *step.Step `json:"-"`
}

// Best returns the result that a next step may name: the first, unless its confidence is low. Nil means that there is
// none.
func (a *Answer) Best() *Result {
	if len(a.Results) == 0 || a.Results[0].Confidence == "low" {
		return nil
	}
	return &a.Results[0]
}

// SetTyped sets Typed of a result with a signature. t is nil if it is not a tool.
func SetTyped(r *Result, t *manifest.Tool) {
	switch {
	case r.Signature == "":
	case t != nil:
		r.Typed = manifest.TypedSignature(r.Name, t)
	default:
		r.Typed = r.Name[:strings.LastIndexByte(r.Name, '.')+1] + r.Signature
	}
}

// KeepSignatures removes the signatures and templates of the results, except for the result at index i. Its template
// stays, and its signature stays if its confidence is high.
func KeepSignatures(d *Data, i int) {
	for k := range d.Results {
		if k != i {
			d.Results[k].Template = nil
		}
		if k != i || d.Results[k].Confidence != "high" {
			d.Results[k].Signature = ""
		}
	}
}

// IsName reports whether a query is the whole name of a tool.
func IsName(query, name string) bool {
	return strings.EqualFold(strings.ReplaceAll(strings.TrimSpace(query), "__", "."), name)
}

// Reduce removes signatures, and then results from the end, until an answer fits.
func (a *Answer) Reduce(fits func(*Answer) bool) {
	for _, keep := range []int{0, -1} {
		if fits(a) {
			return
		}
		KeepSignatures(a.Data, keep)
		a.LeftOut = []string{"signatures"}
	}
	for dropped := 1; len(a.Results) > 1 && !fits(a); dropped++ {
		a.Results = a.Results[:len(a.Results)-1]
		a.LeftOut = []string{"signatures", manifest.Plural(dropped, "result")}
	}
}

// MissingDocs returns a line of [Answer.LeftOut] for n results whose documentation was left out.
func MissingDocs(n int) string { return "the documentation of " + manifest.Plural(n, "result") }
