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
	var mine Found
	in, err := v.Anywhere(word, func(in Frame) (*Failure, *api.Error) {
		mine = Found{}
		err := v.Script(in, &mine, "find", ParseLocator(word), Object{"limit": max(limit, 3), "acting": v.writes,
			"time": v.TimeLeft()})
		return mine.Failure, err
	})
	return in, &mine.Elements, err
}

// Anywhere calls a function for the page and, where that fails because the element that a word names is not there, for
// its frames. It returns the frame for which the function did not fail.
func (v *Visit) Anywhere(word string, try func(Frame) (*Failure, *api.Error)) (Frame, *api.Error) {
	in := func(in Frame) (*Failure, *api.Error) {
		return v.WithClosedRoots(in, func() (*Failure, *api.Error) { return try(in) })
	}
	mine, err := in("")
	if err != nil || mine == nil {
		return "", err
	}
	if mine.Elsewhere() {
		children := v.Frames()
		for _, f := range children {
			switch other, err := in(f.ID); {
			case err != nil:
			case other == nil:
				return f.ID, nil
			case !other.Elsewhere():
				return "", other.Exit(word)
			}
		}
		if len(children) > 0 { // the last try has replaced what the page said
			if mine, err = try(""); err != nil || mine == nil {
				return "", err
			}
		}
	}
	return "", mine.Exit(word)
}

// WithClosedRoots calls a function for a frame again and again, while it fails and there are closed shadow roots to
// look into.
func (v *Visit) WithClosedRoots(in Frame, try func() (*Failure, *api.Error)) (f *Failure, err *api.Error) {
	for range MaxClosedDepth {
		if f, err = try(); err != nil || f == nil || !f.Hosts || !v.OpenClosedRoots(in, true) {
			break
		}
	}
	return f, err
}
