package page

import (
	"cmp"
	"strings"

	"github.com/parley-tools/parley/cdp/internal/keeper/api"
)

// Focus finds the element of a locator that a call is about, and the frame that it is in. No locator means all.
func (v *Visit) Focus(word string) (in Frame, e Element, err *api.Error) {
	if word == "" {
		return "", Element{}, nil
	}
	in, all, failure, err := Anywhere(v, func(in Frame) (f found, _ *Failure, err *api.Error) {
		err = v.Script(in, &f, "find", v.Locate(word), Object{"limit": 3, "acting": v.writes, "time": v.TimeLeft()})
		return f, f.Failure, err
	})
	if failure == nil && all.Total > 1 {
		failure = &Failure{Code: "many", Total: all.Total, Near: all.Matches}
	}
	switch {
	case err != nil:
		return "", Element{}, err
	case failure != nil:
		return "", Element{}, failure.Exit(word)
	}
	e = all.Matches[0]
	v.About(e, in)
	return in, e, nil
}

// Elements are elements that were found.
type Elements struct {
	Total   int       `json:"total"`
	Matches []Element `json:"matches"`
	Note    string    `json:"note,omitempty"` // how the ref was found again, if its element was replaced
	LeftOut string    `json:"left_out,omitempty"`
}

// found is what the function find of page.js returns.
type found struct {
	Elements
	Resolved string
	Failure  *Failure
	Frames   int // how many frames the document has
	Partial  bool
}

// FindAll finds elements, in the page and all its frames.
func FindAll(v *Visit, word string, limit int) (all Elements, err *api.Error) {
	where, unread, partial := v.Locate(word), 0, false
	all.Matches = []Element{}
	search := func(in Frame) (found, *api.Error) {
		f, _, err := withClosedRoots(v, in, func(in Frame) (f found, _ *Failure, err *api.Error) {
			err = v.Script(in, &f, "find", where, Object{"limit": limit, "time": v.TimeLeft()})
			return f, f.Failure, err
		})
		all.Total += f.Total
		all.Matches = append(all.Matches, f.Matches[:min(len(f.Matches), limit-len(all.Matches))]...)
		all.Note = cmp.Or(all.Note, f.Resolved)
		partial = partial || f.Partial
		return f, err
	}
	mine, err := search("")
	if err != nil {
		return all, err
	}
	if mine.Frames > 0 && (where["ref"] == nil || mine.Failure != nil) {
		for _, f := range v.Frames() {
			inner, err := search(f.ID)
			switch {
			case err != nil:
				unread++ // it is being replaced
			case inner.Failure != nil && !inner.Failure.Elsewhere():
				mine.Failure = inner.Failure
			}
		}
	}
	if v.Unseen += unread; v.Unseen > 0 {
		all.LeftOut = v.FramesLeftOut(nil, "page.snapshot shows refs of frames")
	}
	if partial {
		all.LeftOut = strings.Trim(all.LeftOut+", "+NotAll, ", ")
	}
	if all.Total == 0 {
		return all, mine.Failure.Exit(word)
	}
	return all, nil
}

// NotAll says that an answer has only a part of the page.
const NotAll = "what is deeper, or would have taken longer (a larger timeout, or a part of the page)"

// Anywhere calls a function for the page and, where that fails because no element is there that can be used, for its
// frames. It returns the frame for which the function did not fail, or the failure that says most, and of which frame.
func Anywhere[R any](v *Visit, try func(Frame) (R, *Failure, *api.Error)) (Frame, R, *Failure, *api.Error) {
	found, failure, err := withClosedRoots(v, "", try)
	if err != nil || failure == nil || !failure.Elsewhere() {
		return "", found, failure, err
	}
	of := Frame("")
	for _, f := range v.Frames() {
		found, other, err := withClosedRoots(v, f.ID, try)
		switch {
		case err != nil: // it is being replaced
		case other == nil:
			return f.ID, found, nil, nil
		case !other.Elsewhere() || other.Code == "in_list" && failure.Code == "no_match":
			if failure, of = other, f.ID; other.Code != "not_ready" { // another frame may have one that is
				return of, found, failure, nil
			}
		}
	}
	return of, found, failure, nil
}

// withClosedRoots calls a function for a frame again and again, while it fails and there are closed shadow roots to
// look into.
func withClosedRoots[R any](v *Visit, in Frame, try func(Frame) (R, *Failure, *api.Error)) (r R, f *Failure,
	err *api.Error) {
	for range MaxClosedDepth {
		if r, f, err = try(in); err != nil || f == nil || !f.Hosts || !v.OpenClosedRoots(in, true) {
			break
		}
	}
	return r, f, err
}
