package page

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/parley-tools/parley/cdp/internal/keeper/api"
)

// Focus finds the element that a call is about, and its frame. Without a locator it is the element that the parameter
// in names, or the whole page.
func (v *Visit) Focus(word string) (in Frame, e Element, err *api.Error) {
	if word == "" && v.In == "" {
		return "", Element{}, nil
	}
	where := v.Locate(word)
	in, all, failure, err := Anywhere(v, where, func(in Frame) (f found, _ *Failure, err *api.Error) {
		err = v.Script(in, &f, "find", where, Object{"limit": 3, "acting": v.writes, "time": v.TimeLeft()})
		return f, f.Failure, err
	})
	if failure == nil && all.Total > 1 {
		failure = &Failure{Code: "many", Total: all.Total, Near: all.Matches}
	}
	switch {
	case err != nil:
		return "", Element{}, err
	case failure != nil:
		return "", Element{}, NotFound(v, failure, cmp.Or(word, v.In))
	}
	e = all.Matches[0]
	v.About(e, in)
	return in, e, nil
}

// Elements are elements that were found.
type Elements struct {
	Total   int       `json:"total"`
	Matches []Element `json:"matches"`
	Note    string    `json:"note,omitempty"` // how the element was found, if the one with the ref was replaced
	LeftOut string    `json:"left_out,omitempty"`
}

// found is what the function find of page.js returns.
type found struct {
	Elements
	Resolved string
	Failure  *Failure
	Rank     int  // how well the elements fit the locator; less is better
	Frames   int  // number of frames that should exist in the document
	Blank    bool // the searched document is blank; needed because Chrome reports the new address before its scripts run
	Partial  bool
	in       Frame
	err      *api.Error
}

// frameTime is how long a search waits for a frame that does not exist yet or does not respond.
const frameTime = 1500 * time.Millisecond

// search looks for a locator in all documents of the page at once; the first result is of the page's own document. If
// none has it, search waits for frames that do not exist yet, but not for acts, whose callers wait themselves. It
// adds the frames that were not searched to Unseen.
func search(v *Visit, where Locator, limit int) (all []found) {
	ask := func(v *Visit, frame Frame) found {
		f, _, err := withClosedRoots(v, frame, func(in Frame) (f found, _ *Failure, err *api.Error) {
			err = v.Script(in, &f, "find", where, Object{"limit": limit, "time": v.TimeLeft()})
			return f, f.Failure, err
		})
		f.in, f.err = frame, err
		return f
	}
	for until := time.Now().Add(v.Within(frameTime)); ; {
		frames := v.Frames()
		all = make([]found, 1+len(frames))
		var asked sync.WaitGroup
		for i, frame := range frames {
			own := *v
			own.owed = nil // the page's own call handles it
			asked.Go(func() {
				ctx, cancel := context.WithTimeout(v.Ctx, v.Within(frameTime))
				defer cancel()
				own.Ctx = ctx
				all[1+i] = ask(&own, frame.ID)
			})
		}
		all[0] = ask(v, "")
		asked.Wait()
		total, due := 0, 0
		for i, f := range all {
			total += f.Total
			due += f.Frames
			if i > 0 && f.err != nil {
				v.Unseen++
			} else if url := v.URL(f.in); i > 0 && !f.Blank && url != "" && url != api.BlankURL {
				due--
			}
		}
		due -= v.Unseen
		if v.Unseen += max(due, 0); total > 0 || v.Unseen == 0 || due <= 0 || v.writes || time.Now().After(until) ||
			!v.Pause(pauseTime) {
			return all
		}
	}
}

// FindAll finds elements, in the page and all its frames.
func FindAll(v *Visit, word string, limit int) (all Elements, err *api.Error) {
	where, partial := v.Locate(word), false
	docs := search(v, where, limit)
	failure := docs[0].Failure
	if docs[0].err != nil {
		return all, docs[0].err
	}
	all.Matches = []Element{}
	for _, f := range docs {
		all.Total += f.Total
		all.Matches = append(all.Matches, f.Matches[:min(len(f.Matches), limit-len(all.Matches))]...)
		all.Note = cmp.Or(all.Note, f.Resolved)
		partial = partial || f.Partial
		if f.Failure != nil && !f.Failure.Elsewhere() {
			failure = f.Failure
		}
	}
	if v.Unseen > 0 {
		all.LeftOut = v.FramesLeftOut(nil, "page.snapshot shows refs of frames")
	}
	if partial {
		all.LeftOut = strings.Trim(all.LeftOut+", "+NotAll, ", ")
	}
	if all.Total == 0 {
		return all, NotFound(v, failure, word)
	}
	return all, nil
}

// NotFound returns the error for a locator that no document matches. It says which frames were not searched.
func NotFound(v *Visit, f *Failure, word string) *api.Error {
	if f.Code == "no_match" && v.Unseen > 0 {
		own := *f
		own.Unsearched = v.Unseen
		f = &own
	}
	return f.Exit(word)
}

// NotAll says that an answer has only a part of the page.
const NotAll = "what is deeper, or would have taken longer (a larger timeout, or a part of the page)"

// Anywhere calls a function for the document with the element that a locator means: the page's or a frame's. It
// returns the frame for which the function succeeded, or the most informative failure and its frame. A locator that
// matches in several documents is ambiguous, as it is within one.
func Anywhere[R any](v *Visit, where Locator, try func(Frame) (R, *Failure, *api.Error)) (
	Frame, R, *Failure, *api.Error,
) {
	if frames := v.Frames(); len(frames) == 0 || where == nil {
		found, failure, err := withClosedRoots(v, "", try)
		return "", found, failure, err
	}
	var docs []found
	if where["ref"] == nil {
		docs = search(v, where, 3)
		docs = slices.DeleteFunc(docs, func(f found) bool { return f.Total == 0 })
	}
	if len(docs) > 0 {
		best := slices.MinFunc(docs, func(a, b found) int { return a.Rank - b.Rank })
		docs = slices.DeleteFunc(docs, func(f found) bool { return f.Rank != best.Rank })
		if len(docs) == 1 {
			found, failure, err := withClosedRoots(v, best.in, try)
			return best.in, found, failure, err
		}
		var none R
		return "", none, manyDocuments(v, docs), nil
	}
	found, failure, err := withClosedRoots(v, "", try)
	if err != nil || failure == nil || !failure.Elsewhere() {
		return "", found, failure, err
	}
	of, unseen := Frame(""), v.Unseen
	frames := v.Frames()
	v.Unseen = max(v.Unseen, unseen)
	for _, f := range frames {
		found, other, err := withClosedRoots(v, f.ID, try)
		switch {
		case err != nil: // it is being replaced
		case other == nil:
			return f.ID, found, nil, nil
		case !other.Elsewhere() || other.Code == "in_list" && failure.Code == "no_match":
			if failure, of = other, f.ID; other.Code != "not_ready" { // another frame may have an element that is ready
				return of, found, failure, nil
			}
		}
	}
	return of, found, failure, nil
}

// manyDocuments returns the failure of a locator that matches elements in several documents.
func manyDocuments(v *Visit, docs []found) *Failure {
	many := &Failure{Code: "many"}
	for _, f := range docs {
		many.Total += f.Total
		e := f.Matches[0]
		e.State, e.Value, e.CSS = "", "", ""
		if e.In = "the page"; f.in != "" {
			e.In = "the frame at " + Clip(v.URL(f.in), 80)
		}
		many.Near = append(many.Near, e)
	}
	many.Near = many.Near[:min(len(many.Near), 3)]
	return many
}

// withClosedRoots calls a function for a frame repeatedly, while it fails and there are more closed shadow roots to
// search.
func withClosedRoots[R any](v *Visit, in Frame, try func(Frame) (R, *Failure, *api.Error)) (r R, f *Failure,
	err *api.Error) {
	for range MaxClosedDepth {
		if r, f, err = try(in); err != nil || f == nil || !f.Hosts || !v.OpenClosedRoots(in, true) {
			break
		}
	}
	return r, f, err
}
