package stats

import (
	"cmp"
	"encoding/json"
	"math"
	"slices"

	"github.com/parley-tools/parley/host"
)

// Contrast is something that separates failed calls of a tool from successful ones: the intervals of the shares of
// failures with it and without it do not touch.
type Contrast struct {
	What    string `json:"what"` // "parameter", "value" or "after"
	Name    string `json:"name"` // the parameter, or a tool that had succeeded before in the session
	Value   string `json:"value,omitempty"`
	With    Share  `json:"with"` // failed calls among all calls with it
	Without Share  `json:"without"`
}

const (
	maxContrasts = 5
	minContrast  = 5  // calls with it, and without
	maxFeatures  = 50 // features of a tool; free texts could have any number of values
	maxValue     = 40 // bytes of a value
)

// feature is something that a call has or does not have. value is "" for the parameter itself.
type feature struct{ what, name, value string }

// features counts the calls of a tool by what they have.
type features struct {
	rate // calls that failed
	with map[feature]*rate
}

// add counts a call in a session, which is nil for none.
func (f *features) add(r *host.Record, session *walk) {
	failed := r.ExitCode != 0
	f.rate.add(failed)
	count := func(of feature) {
		if f.with[of] == nil && len(f.with) >= maxFeatures {
			return
		}
		at(&f.with, of).add(failed)
	}
	isShape := AreShapes(r.Params)
	eachParameter(r, func(name string, value json.RawMessage) {
		count(feature{"parameter", name, ""})
		if len(value) <= maxValue && !isShape {
			count(feature{"value", name, string(value)})
		}
	})
	if session != nil {
		for _, tool := range session.done {
			if tool != r.Tool {
				count(feature{"after", tool, ""})
			}
		}
	}
}

// contrasts returns what separates failures from successes, the clearest first. The intervals are wider than those of
// the report, because many features are compared.
func (f *features) contrasts() (found []Contrast) {
	const strict = 3.3
	for of, with := range f.with {
		without := rate{f.n - with.n, f.of - with.of}
		if with.of < minContrast || without.of < minContrast {
			continue
		}
		low, high := wilson(with.n, with.of, strict)
		if otherLow, otherHigh := wilson(without.n, without.of, strict); low > otherHigh || high < otherLow {
			found = append(found, Contrast{of.what, of.name, of.value, *with.share(), *without.share()})
		}
	}
	difference := func(c Contrast) float64 { return math.Abs(c.With.Share - c.Without.Share) }
	slices.SortFunc(found, func(a, b Contrast) int {
		return cmp.Or(cmp.Compare(difference(b), difference(a)), cmp.Compare(a.What, b.What), cmp.Compare(a.Name, b.Name),
			cmp.Compare(a.Value, b.Value))
	})
	return found[:min(len(found), maxContrasts)]
}
