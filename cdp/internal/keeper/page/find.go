package page

import "github.com/parley-tools/parley/cdp/internal/keeper/api"

// Focus finds the element of a locator that a call is about, and the frame that it is in. No locator means all.
func (v *Visit) Focus(word string) (in Frame, e Element, err *api.Error) {
	if word == "" {
		return "", Element{}, nil
	}
	in, found, err := v.find(word, 1)
	if err != nil {
		return "", Element{}, err
	}
	if found.Total > 1 {
		return "", Element{}, (&Failure{Code: "many", Total: found.Total, Near: found.Matches}).Exit(word)
	}
	return in, found.Matches[0], nil
}

// Elements are elements that were found.
type Elements struct {
	Total   int       `json:"total"`
	Matches []Element `json:"matches"`
	Note    string    `json:"note,omitempty"` // how the ref was found again, if its element was replaced
	LeftOut string    `json:"left_out,omitempty"`
}

// Found is what the function find of page.js returns.
type Found struct {
	Elements
	Resolved string
	Failure  *Failure
	Frames   int // how many frames the document has
	Partial  bool
}

// find finds what a locator means, in the page or else in its frames.
func (v *Visit) find(word string, limit int) (Frame, *Elements, *api.Error) {
	in, found, err := Anywhere(v, word, func(in Frame) (f Found, _ *Failure, err *api.Error) {
		err = v.Script(in, &f, "find", ParseLocator(word), Object{"limit": max(limit, 3), "acting": v.writes,
			"time": v.TimeLeft()})
		return f, f.Failure, err
	})
	return in, &found.Elements, err
}

// Anywhere calls a function for the page and, where that fails because the element that a word names is not there, for
// its frames. It returns what the function returned where it did not fail, and the frame.
func Anywhere[R any](v *Visit, word string, try func(Frame) (R, *Failure, *api.Error)) (Frame, R, *api.Error) {
	found, mine, err := WithClosedRoots(v, "", try)
	if err != nil || mine == nil {
		return "", found, err
	}
	if mine.Elsewhere() {
		for _, f := range v.Frames() {
			switch found, other, err := WithClosedRoots(v, f.ID, try); {
			case err != nil: // it is being replaced
			case other == nil:
				return f.ID, found, nil
			case !other.Elsewhere():
				return "", found, other.Exit(word)
			}
		}
	}
	return "", found, mine.Exit(word)
}

// WithClosedRoots calls a function for a frame again and again, while it fails and there are closed shadow roots to
// look into.
func WithClosedRoots[R any](v *Visit, in Frame, try func(Frame) (R, *Failure, *api.Error)) (r R, f *Failure,
	err *api.Error) {
	for range MaxClosedDepth {
		if r, f, err = try(in); err != nil || f == nil || !f.Hosts || !v.OpenClosedRoots(in, true) {
			break
		}
	}
	return r, f, err
}
