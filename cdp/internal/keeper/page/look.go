package page

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/parley-tools/parley/cdp/internal/keeper/api"
)

func init() {
	look("snapshot", (*visit).snapshot)
	look("text", (*visit).text)
	look("find", (*visit).findElements)
	look("get", (*visit).get)
}

type snapshotParams struct {
	MaxTokens int    `json:"max_tokens"`
	Roles     string `json:"roles"`
	Focus     string `json:"focus"`
	Group     string `json:"group"`
	Since     bool   `json:"since"`
	Audit     bool   `json:"audit"`
}

// shot is what a page shows, and what was left out.
type shot struct {
	Title   string `json:"title,omitempty"`
	URL     string `json:"url,omitempty"`
	Text    string `json:"text"`
	LeftOut string `json:"left_out,omitempty"`
}

// snapshotText is what the function snapshot of page.js returns for a frame.
type snapshotText struct {
	shot
	Failure *failure
	Frames  []element
	missing []element // frames that are not in the text
	// Hosts says that there is no text yet: custom elements may have closed shadow roots, which were not looked into.
	Hosts   bool
	Partial bool                                      // there was no time for the rest
	Left    struct{ Prose, Grouped, Closed, Cut int } `json:"left_out"`
}

// snapshot shows the page as a tree of what a person could see, with refs.
func (v *visit) snapshot(p snapshotParams) (shot, *api.Error) {
	group, from, _ := strings.Cut(strings.TrimSuffix(p.Group, "]"), "[")
	first, _ := strconv.Atoi(from)
	args := object{"max_tokens": p.MaxTokens, "roles": p.Roles, "group": group, "from": first, "since": p.Since,
		"audit": p.Audit, "time": v.time()}
	in, ref, err := v.focusInside(p.Focus)
	if err != nil {
		return shot{}, err
	}
	if ref != "" {
		args["focus"] = ref
	}
	s, err := v.snapshotOf(in, args)
	if err != nil {
		return s.shot, err
	}
	if s.Failure != nil {
		return s.shot, s.Failure.error(p.Focus + p.Group)
	}
	if len(s.Frames) > 0 {
		if err := v.addFrames(&s, in, args, v.frames()); err != nil {
			return s.shot, err
		}
	}
	if p.Roles != "" {
		s.Title, s.URL, s.Left.Prose = "", "", 0
	}
	parts := append(s.leftOut(), v.framesLeftOut(s.missing, "focus on their refs"))
	s.LeftOut = strings.Trim(strings.Join(parts, ", "), ", ")
	return s.shot, nil
}

// snapshotOf returns the snapshot of a frame, also of what is in closed shadow roots.
func (v *visit) snapshotOf(in frame, args object) (s snapshotText, err *api.Error) {
	args = maps.Clone(args)
	for depth := 1; ; depth++ {
		s = snapshotText{}
		if err = v.script(in, &s, "snapshot", args); err != nil || !s.Hosts {
			return s, err
		}
		args["final"] = !v.openClosedRoots(in, false) || depth == maxClosedDepth
	}
}

// focus finds the element of a locator that a call is about, and the frame that it is in. No locator means all.
func (v *visit) focus(word string) (in frame, e element, err *api.Error) {
	if word == "" {
		return "", element{}, nil
	}
	in, found, err := v.find(word, 1)
	if err != nil {
		return "", element{}, err
	}
	if found.Total > 1 {
		return "", element{}, (&failure{Code: "many", Total: found.Total, Near: found.Matches}).error(word)
	}
	return in, found.Matches[0], nil
}

// focusInside is focus for what an element shows: that of a frame is its document, all of it.
func (v *visit) focusInside(word string) (in frame, ref string, err *api.Error) {
	in, e, err := v.focus(word)
	if err != nil {
		return "", "", err
	}
	inner, isFrame, err := v.inside(in, e)
	if isFrame {
		e.Ref = ""
	}
	return inner, e.Ref, err
}

// bytesPerToken is that of page.js.
const bytesPerToken = 4

// addFrames adds the frames of a snapshot to its text, as far as the budget allows.
func (v *visit) addFrames(s *snapshotText, in frame, args object, all []pageFrame) *api.Error {
	shown, err := v.shownIn(in, all)
	if err != nil {
		return err
	}
	for _, of := range s.Frames {
		left := args["max_tokens"].(int) - len(s.Text)/bytesPerToken
		at := slices.IndexFunc(shown, func(f shownFrame) bool { return f.ref == of.Ref })
		if at < 0 || left < 60 {
			s.missing = append(s.missing, of)
			continue
		}
		more := object{"max_tokens": left, "roles": args["roles"], "since": args["since"], "audit": args["audit"],
			"time": v.time()}
		inner, err := v.snapshotOf(shown[at].id, more)
		if err == nil && len(inner.Frames) > 0 {
			err = v.addFrames(&inner, shown[at].id, more, all)
		}
		if err != nil || !s.insert(of.Ref, inner.Text, args["since"] == true || args["audit"] == true) {
			s.missing = append(s.missing, of) // it is being replaced, or its line was left out
			continue
		}
		s.missing = append(s.missing, inner.missing...)
		s.Partial = s.Partial || inner.Partial
		s.Left.Prose += inner.Left.Prose
		s.Left.Cut += inner.Left.Cut
		s.Left.Grouped += inner.Left.Grouped
		s.Left.Closed += inner.Left.Closed
	}
	return nil
}

// insert adds the text of a frame below its line; or at the end, in a text that has only some lines. It reports whether
// there was a line.
func (s *snapshotText) insert(ref, text string, partial bool) bool {
	if text == "" {
		return true
	}
	lines := strings.Split(s.Text, "\n")
	at := slices.IndexFunc(lines, func(line string) bool {
		return strings.HasPrefix(strings.TrimLeft(line, " "), "Iframe ") &&
			(strings.HasSuffix(line, " "+ref) || strings.Contains(line, " "+ref+" ["))
	})
	if at < 0 && !partial {
		return false
	}
	if at < 0 || partial {
		lines, at = append(lines, "Iframe "+ref), len(lines)
	}
	indent := "\n" + strings.Repeat(" ", len(lines[at])-len(strings.TrimLeft(lines[at], " "))+2)
	lines[at] += indent + strings.ReplaceAll(text, "\n", indent)
	s.Text = strings.TrimPrefix(strings.Join(lines, "\n"), "\n")
	return true
}

// notAll says that an answer has only a part of the page.
const notAll = "what is deeper, or would have taken longer (a larger timeout, or a part of the page)"

// leftOut says what the text lacks, and the calls that show it.
func (s *snapshotText) leftOut() (parts []string) {
	add := func(n int, what, way string) {
		if n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s (%s)", n, what, way))
		}
	}
	if s.Partial {
		parts = append(parts, notAll)
	}
	add(s.Left.Prose, "texts", "page.text")
	add(s.Left.Grouped, "items in groups", "group g1, or page.find")
	add(s.Left.Closed, "parts outside the view", "focus on their refs")
	add(s.Left.Cut, "lines", "a larger max_tokens")
	return parts
}

type textParams struct {
	Element   string `json:"element"`
	MaxTokens int    `json:"max_tokens"`
}

// text is the text of the page as Markdown.
type pageText struct {
	Text    string `json:"text"`
	Cut     int    `json:"cut,omitempty"` // characters that are left out
	LeftOut string `json:"left_out,omitempty"`
}

// text reads the page as Markdown, each frame below a line of its own.
func (v *visit) text(p textParams) (pageText, *api.Error) {
	in, ref, err := v.focusInside(p.Element)
	if err != nil {
		return pageText{}, err
	}
	var all []pageFrame
	missing := []element{}
	r, err := v.textOf(in, object{"max_tokens": p.MaxTokens, "focus": ref, "time": v.time()}, &all, &missing, p.Element)
	if err == nil {
		r.LeftOut = strings.Trim(r.LeftOut+", "+v.framesLeftOut(missing, "page.text with their refs"), ", ")
	}
	return r, err
}

// textOf reads a document and its frames, as far as the budget allows. all are the frames of the page, once read.
func (v *visit) textOf(in frame, args object, all *[]pageFrame, missing *[]element, wanted string) (pageText, *api.Error) {
	var r struct {
		pageText
		Failure *failure
		Frames  []element
		Partial bool
	}
	if err := v.script(in, &r, "text", args); err != nil {
		return r.pageText, err
	}
	if r.Partial {
		r.LeftOut = notAll
	}
	if r.Failure != nil {
		return r.pageText, r.Failure.error(wanted)
	}
	if len(r.Frames) == 0 {
		return r.pageText, nil
	}
	if *all == nil {
		*all = v.frames()
	}
	shown, err := v.shownIn(in, *all)
	if err != nil {
		return r.pageText, err
	}
	for _, of := range r.Frames {
		left := args["max_tokens"].(int) - len(r.Text)/bytesPerToken
		at := slices.IndexFunc(shown, func(f shownFrame) bool { return f.ref == of.Ref })
		if at < 0 || left < 20 || r.Cut > 0 {
			*missing = append(*missing, of)
			continue
		}
		inner, err := v.textOf(shown[at].id, object{"max_tokens": left, "time": v.time()}, all, missing, wanted)
		if err != nil {
			*missing = append(*missing, of)
			continue
		}
		if inner.Text != "" {
			r.Text = strings.TrimSpace(r.Text + "\n\n[" + of.String() + "]\n\n" + inner.Text)
		}
		r.Cut += inner.Cut
	}
	return r.pageText, nil
}

type findParams struct {
	Element string `json:"element"`
	Limit   int    `json:"limit"`
}

// matches are elements that were found.
type matches struct {
	Total   int       `json:"total"`
	Matches []element `json:"matches"`
	Note    string    `json:"note,omitempty"` // how the ref was found again, if its element was replaced
	LeftOut string    `json:"left_out,omitempty"`
}

// found is what the function find of page.js returns.
type found struct {
	matches
	Resolved string
	Failure  *failure
	Frames   int // how many frames the document has
	Partial  bool
}

// findElements finds elements, in the page and all its frames.
func (v *visit) findElements(p findParams) (matches, *api.Error) {
	all, err := v.findAll(p.Element, max(p.Limit, 1))
	return all.matches, err
}

func (v *visit) findAll(word string, limit int) (all found, err *api.Error) {
	where, unread := parseLocator(word), 0
	all.Matches = []element{}
	search := func(in frame) (found, *api.Error) {
		var f found
		_, err := v.opened(in, func() (*failure, *api.Error) {
			f = found{}
			err := v.script(in, &f, "find", where, object{"limit": limit, "time": v.time()})
			return f.Failure, err
		})
		all.Total += f.Total
		all.Matches = append(all.Matches, f.Matches[:min(len(f.Matches), limit-len(all.Matches))]...)
		all.Note = cmp.Or(all.Note, f.Resolved)
		all.Partial = all.Partial || f.Partial
		return f, err
	}
	mine, err := search("")
	if err != nil {
		return all, err
	}
	if mine.Frames > 0 && (where["ref"] == nil || mine.Failure != nil) {
		for _, f := range v.frames() {
			inner, err := search(f.id)
			switch {
			case err != nil:
				unread++ // it is being replaced
			case inner.Failure != nil && !inner.Failure.elsewhere():
				mine.Failure = inner.Failure
			}
		}
	}
	if v.unseen += unread; v.unseen > 0 {
		all.LeftOut = v.framesLeftOut(nil, "page.snapshot shows refs of frames")
	}
	if all.Partial {
		all.LeftOut = strings.Trim(all.LeftOut+", "+notAll, ", ")
	}
	if all.Total == 0 {
		return all, mine.Failure.error(word)
	}
	return all, nil
}

// find finds what a locator means, in the page or else in its frames.
func (v *visit) find(word string, limit int) (frame, *matches, *api.Error) {
	var mine found
	in, err := v.anywhere(word, func(in frame) (*failure, *api.Error) {
		mine = found{}
		err := v.script(in, &mine, "find", parseLocator(word), object{"limit": max(limit, 3), "acting": v.writes, "time": v.time()})
		return mine.Failure, err
	})
	return in, &mine.matches, err
}

// anywhere calls a function for the page and, where that fails because the element that a word names is not there, for
// its frames. It returns the frame for which the function did not fail.
func (v *visit) anywhere(word string, try func(frame) (*failure, *api.Error)) (frame, *api.Error) {
	in := func(in frame) (*failure, *api.Error) {
		return v.opened(in, func() (*failure, *api.Error) { return try(in) })
	}
	mine, err := in("")
	if err != nil || mine == nil {
		return "", err
	}
	if mine.elsewhere() {
		children := v.frames()
		for _, f := range children {
			switch other, err := in(f.id); {
			case err != nil:
			case other == nil:
				return f.id, nil
			case !other.elsewhere():
				return "", other.error(word)
			}
		}
		if len(children) > 0 { // the last try has replaced what the page said
			if mine, err = try(""); err != nil || mine == nil {
				return "", err
			}
		}
	}
	return "", mine.error(word)
}

// opened calls a function for a frame again and again, while it fails and there are closed shadow roots to look into.
func (v *visit) opened(in frame, try func() (*failure, *api.Error)) (f *failure, err *api.Error) {
	for range maxClosedDepth {
		if f, err = try(); err != nil || f == nil || !f.Hosts || !v.openClosedRoots(in, true) {
			break
		}
	}
	return f, err
}

type getParams struct {
	Element string `json:"element"`
	What    string `json:"what"`
	Of      string `json:"of"`
}

// value is what was asked for, or null.
type value struct {
	Value json.RawMessage `json:"value"`
}

// get reads one property of an element, or counts all that match.
func (v *visit) get(p getParams) (value, *api.Error) {
	var r struct {
		value
		Failure *failure
	}
	if p.What == "count" {
		all, err := v.findAll(p.Element, 1)
		if err != nil && (err.Exit == "no_match" || err.Exit == "stale") {
			err = nil
		}
		return value{json.RawMessage(strconv.Itoa(all.Total))}, err
	}
	_, err := v.anywhere(p.Element, func(in frame) (*failure, *api.Error) {
		r.Failure, r.Value = nil, nil
		err := v.script(in, &r, "get", parseLocator(p.Element), p.What, p.Of)
		return r.Failure, err
	})
	if len(r.Value) == 0 {
		r.Value = json.RawMessage("null")
	}
	return r.value, err
}
