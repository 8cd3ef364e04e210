package look

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/parley-tools/parley/cdp/internal/keeper/api"
	"github.com/parley-tools/parley/cdp/internal/keeper/page"
)

type snapshotParams struct {
	MaxTokens int    `json:"max_tokens"`
	Roles     string `json:"roles"`
	Focus     string `json:"focus"`
	Group     string `json:"group"`
	Since     bool   `json:"since"`
	Audit     bool   `json:"audit"`
	Options   bool   `json:"options"`
}

// shot is what a page shows, and what was left out.
type shot struct {
	Title   string `json:"title,omitempty"`
	URL     string `json:"url,omitempty"`
	Text    string `json:"text"`
	LeftOut string `json:"left_out,omitempty"`
}

// snapshotText is the result of the function snapshot of page.js for a frame.
type snapshotText struct {
	shot
	Failure *page.Failure  `json:"failure"`
	Frames  []page.Element `json:"frames"`
	missing []page.Element // frames that are not in the text
	// Hosts says that there is no text yet, because custom elements may have closed shadow roots that were not searched.
	Hosts   bool           `json:"hosts"`
	Partial bool           `json:"partial"`  // there was no time for the whole document
	Type    string         `json:"type"`     // the media type of the document
	Since   []string       `json:"since"`    // the lines of the last snapshot, if they were asked for
	Left    map[string]int `json:"left_out"` // how much of each kind was left out
}

// snapshot shows the page as a tree of what a person could see, with refs.
func snapshot(v *page.Visit, p snapshotParams) (shot, *api.Error) {
	group, from, _ := strings.Cut(strings.TrimSuffix(p.Group, "]"), "[")
	first, _ := strconv.Atoi(from)
	args := page.Object{"max_tokens": p.MaxTokens, "roles": p.Roles, "group": group, "from": first, "since": p.Since,
		"audit": p.Audit, "options": p.Options, "time": v.TimeLeft()}
	in, ref, err := focusInside(v, p.Focus)
	if err != nil {
		return shot{}, err
	}
	if ref != "" {
		args["focus"] = ref
	}
	s, err := snapshotWithFrames(v, in, args)
	if s.Failure != nil {
		err = s.Failure.Exit(p.Focus + p.Group)
	}
	if err != nil {
		return s.shot, err
	}
	if p.Roles != "" {
		s.Title, s.URL, s.Left["prose"] = "", "", 0
	}
	parts := append(s.leftOut(), s.LeftOut, v.FramesLeftOut(s.missing, "focus on their refs"))
	parts = slices.DeleteFunc(parts, func(part string) bool { return part == "" })
	s.LeftOut = strings.Join(parts, ", ")
	return s.shot, nil
}

// readWhole reads a frame with a function of page.js, including the content of closed shadow roots. hosts reports
// whether a result asks to open more of them.
func readWhole[R any](v *page.Visit, in page.Frame, function string, args page.Object, hosts func(R) bool) (r R,
	err *api.Error) {
	args = maps.Clone(args)
	args["final"] = false
	for depth := 1; ; depth++ {
		r = *new(R)
		if err = v.Script(in, &r, function, args); err != nil || !hosts(r) {
			return r, err
		}
		args["final"] = !v.OpenClosedRoots(in, true) || depth == page.MaxClosedDepth
	}
}

// focusInside is [page.Visit.Focus] for the content of an element. For an element that shows a frame it is the
// frame's whole document.
func focusInside(v *page.Visit, word string) (in page.Frame, ref string, err *api.Error) {
	in, e, err := v.Focus(word)
	if err != nil {
		return "", "", err
	}
	inner, isFrame, err := v.Inside(in, e)
	if isFrame {
		e.Ref = ""
	}
	return inner, e.Ref, err
}

// bytesPerToken is the same number as in page.js.
const bytesPerToken = 4

// eachFrame calls read for the document of each of some frames. It returns the elements of the frames that the answer
// lacks, or has only in part: read returned false, or the frame is loading or being replaced.
func eachFrame(v *page.Visit, in page.Frame, frames []page.Element, read func(of page.Element, f page.Frame) bool) (
	missing []page.Element, err *api.Error,
) {
	if len(frames) == 0 {
		return nil, nil
	}
	shown, err := v.ShownIn(in)
	for _, of := range frames {
		at := slices.IndexFunc(shown, func(f page.ShownFrame) bool { return f.Ref == of.Ref })
		if at < 0 || !read(of, shown[at].ID) || shown[at].Loading {
			missing = append(missing, of)
		}
	}
	return missing, err
}

// snapshotWithFrames returns the snapshot of a frame, including the frames inside it, as far as the budget allows.
func snapshotWithFrames(v *page.Visit, in page.Frame, args page.Object) (snapshotText, *api.Error) {
	s, err := readWhole(v, in, "snapshot", args, func(s snapshotText) bool { return s.Hosts })
	if err != nil || s.Failure != nil {
		return s, err
	}
	if s.Since != nil {
		s.keep(changes(s.Since, strings.Split(s.Text, "\n")), args["max_tokens"].(int)*bytesPerToken)
		s.Left["options"] = 0 // the last snapshot has listed them
	} else if s.Type == pdfType {
		s.showPDF(pdfText(v, in), args["max_tokens"].(int)*bytesPerToken)
	}
	var missing []page.Element // in inner frames
	s.missing, err = eachFrame(v, in, s.Frames, func(of page.Element, f page.Frame) bool {
		left := args["max_tokens"].(int) - len(s.Text)/bytesPerToken
		if left < 60 {
			return false
		}
		inner, err := snapshotWithFrames(v, f, page.Object{"max_tokens": left, "roles": args["roles"],
			"since": args["since"], "audit": args["audit"], "options": args["options"], "time": v.TimeLeft()})
		if err != nil || !s.insert(of.Ref, inner.Text, args["since"] == true || args["audit"] == true) {
			return false // the frame is being replaced, or its line was left out
		}
		missing = append(missing, inner.missing...)
		s.Partial = s.Partial || inner.Partial
		s.LeftOut = cmp.Or(s.LeftOut, inner.LeftOut)
		for kind, n := range inner.Left {
			s.Left[kind] += n
		}
		return true
	})
	s.missing = append(s.missing, missing...)
	return s, err
}

// insert adds the text of a frame below the frame's line, or at the end of a text that has only some lines. It
// reports whether it added the text.
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

// leftOut says what the text lacks, and which calls show it.
func (s *snapshotText) leftOut() (parts []string) {
	add := func(n int, what, way string) {
		if n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s (%s)", n, what, way))
		}
	}
	if s.Partial {
		parts = append(parts, page.NotAll)
	}
	add(s.Left["prose"], "texts", "page.text")
	add(s.Left["grouped"], "items in groups", "group g1, or page.find")
	add(s.Left["closed"], "parts outside the view", "focus on their refs")
	add(s.Left["options"], "options of lists", "options true")
	add(s.Left["cut"], "lines", "a larger max_tokens")
	return parts
}

type textParams struct {
	Element   string `json:"element"`
	MaxTokens int    `json:"max_tokens"`
	Main      bool   `json:"main"`
}

// pageText is the text of the page as Markdown.
type pageText struct {
	Text    string `json:"text"`
	Cut     int    `json:"cut,omitempty"` // number of characters left out
	LeftOut string `json:"left_out,omitempty"`
}

// text reads the page as Markdown. The text of each frame follows a line of its own.
func text(v *page.Visit, p textParams) (pageText, *api.Error) {
	in, ref, err := focusInside(v, p.Element)
	if err != nil {
		return pageText{}, err
	}
	r, missing, err := textOf(v, in, page.Object{"max_tokens": p.MaxTokens, "focus": ref, "main": p.Main && ref == "",
		"time": v.TimeLeft()}, p.Element)
	r.LeftOut = strings.Trim(r.LeftOut+", "+v.FramesLeftOut(missing, "page.text with their refs"), ", ")
	return r, err
}

// documentText is the result of the function text of page.js.
type documentText struct {
	pageText
	Failure *page.Failure
	Frames  []page.Element
	Type    string // the media type of the document
	Left    []string
	Partial bool
	Hosts   bool // as in snapshotText
}

// textOf reads a document and its frames, as far as the budget allows. missing are the frames that it lacks.
func textOf(v *page.Visit, in page.Frame, args page.Object, wanted string) (_ pageText, missing []page.Element,
	err *api.Error) {
	r, err := readWhole(v, in, "text", args, func(r documentText) bool { return r.Hosts })
	if err == nil && r.Failure != nil {
		err = r.Failure.Exit(wanted)
	}
	if err != nil {
		return r.pageText, nil, err
	}
	if r.LeftOut = strings.Join(r.Left, ", "); r.Partial {
		r.LeftOut = page.NotAll
	}
	if r.Type == pdfType {
		pdf := pdfText(v, in)
		if r.Text = page.Clip(pdf, args["max_tokens"].(int)*bytesPerToken); pdf == "" {
			r.LeftOut = noPDFText
		}
		r.Cut = max(len(pdf)-len(r.Text), 0)
	}
	var inFrames []page.Element
	missing, err = eachFrame(v, in, r.Frames, func(of page.Element, f page.Frame) bool {
		left := args["max_tokens"].(int) - len(r.Text)/bytesPerToken
		if left < 20 || r.Cut > 0 {
			return false
		}
		inner, missing, err := textOf(v, f, page.Object{"max_tokens": left, "time": v.TimeLeft()}, wanted)
		if err != nil {
			return false
		}
		if inFrames = append(inFrames, missing...); inner.Text != "" {
			r.Text = strings.TrimSpace(r.Text + "\n\n[" + of.String() + "]\n\n" + inner.Text)
		}
		r.Cut += inner.Cut
		if !strings.Contains(r.LeftOut, inner.LeftOut) {
			r.LeftOut = strings.TrimPrefix(r.LeftOut+", "+inner.LeftOut, ", ")
		}
		return true
	})
	return r.pageText, append(missing, inFrames...), err
}

type findParams struct {
	Element string `json:"element"`
	Limit   int    `json:"limit"`
}

// findElements finds elements, in the page and all its frames.
func findElements(v *page.Visit, p findParams) (page.Elements, *api.Error) {
	return page.FindAll(v, p.Element, max(p.Limit, 1))
}

type getParams struct {
	Element string `json:"element"`
	What    string `json:"what"`
	Of      string `json:"of"`
}

// get returns one property of an element, or the number of elements that match.
func get(v *page.Visit, p getParams) (page.Answer, *api.Error) {
	if p.What == "count" {
		all, err := page.FindAll(v, p.Element, 1)
		if err != nil && (err.Exit == "no_match" || err.Exit == "stale") {
			err = nil
		}
		return page.Answer{Value: json.RawMessage(strconv.Itoa(all.Total))}, err
	}
	where := v.Locate(p.Element)
	_, found, failure, err := page.Anywhere(v, where, func(in page.Frame) (page.Answer, *page.Failure, *api.Error) {
		var r struct {
			page.Answer
			Failure *page.Failure
		}
		err := v.Script(in, &r, "get", where, p.What, p.Of, page.Object{"time": v.TimeLeft()})
		return r.Answer, r.Failure, err
	})
	if failure != nil {
		err = page.NotFound(v, failure, p.Element)
	}
	if len(found.Value) == 0 {
		found.Value = json.RawMessage("null")
	}
	return found, err
}
