package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	sdk "github.com/parley-tools/parley/sdk/go"
)

// SnapshotParams say which part of the page to show.
type SnapshotParams struct {
	// Limit of the size of the answer, in tokens.
	MaxTokens int `json:"max_tokens,omitempty" minimum:"100" maximum:"100000" default:"1500"`
	// interactive: only controls, without text, title and address.
	Roles string `json:"roles,omitempty" enum:"interactive"`
	// Show only this part: a ref, or css=SELECTOR.
	Focus string `json:"focus,omitempty" aliases:"ref,uid,element,selector,sel,target"`
	// Show a group that was shortened, such as g1, or from an item on: g1[20].
	Group string `json:"group,omitempty" pattern:"^g[0-9]{1,4}(\\[[0-9]{1,6}\\])?$"`
	// Show only what changed since the last snapshot.
	Since bool `json:"since,omitempty" aliases:"diff,changes"`
	// List controls that have no name.
	Audit bool `json:"audit,omitempty"`
}

// SnapshotResult is what a page shows.
type SnapshotResult struct {
	// Title of the page.
	Title string `json:"title,omitempty"`
	// Address of the page.
	URL string `json:"url,omitempty"`
	// An element or a quoted text a line: role "name" ref [states], below what holds it.
	Text string `json:"text" untrusted:"true"`
	// What was left out, and how to see it.
	LeftOut string `json:"left_out,omitempty"`
}

type snapshot struct {
	SnapshotResult
	Failure *failure
	Frames  []element
	missing []element // frames that are not in the text
	// Hosts says that there is no text yet: custom elements may have closed shadow roots, which were not looked into.
	Hosts bool
	Left  struct{ Prose, Grouped, Closed, Cut int } `json:"left_out"`
}

// Snapshot shows the page as a tree of what a person could see, with refs.
func Snapshot(c *sdk.Call, p SnapshotParams) (SnapshotResult, error) {
	b := &browser{Call: c}
	group, from, _ := strings.Cut(strings.TrimSuffix(p.Group, "]"), "[")
	first, _ := strconv.Atoi(from)
	args := map[string]any{"max_tokens": p.MaxTokens, "roles": p.Roles, "group": group, "from": first, "since": p.Since,
		"audit": p.Audit}
	in, ref, err := b.focusInside(p.Focus)
	if err != nil {
		return SnapshotResult{}, err
	}
	if ref != "" {
		args["focus"] = ref
	}
	s, err := b.snapshot(in, args)
	if err != nil {
		return s.SnapshotResult, err
	}
	if s.Failure != nil {
		return s.SnapshotResult, s.Failure.error(p.Focus + p.Group)
	}
	if len(s.Frames) > 0 {
		all, err := b.frames()
		if err == nil {
			err = b.addFrames(&s, in, args, all)
		}
		if err != nil {
			return s.SnapshotResult, err
		}
	}
	if p.Roles != "" {
		s.Title, s.URL, s.Left.Prose = "", "", 0
	}
	parts := append(s.leftOut(), b.framesLeftOut(s.missing, "focus on their refs"))
	s.SnapshotResult.LeftOut = strings.Trim(strings.Join(parts, ", "), ", ")
	return s.SnapshotResult, nil
}

// snapshot returns the snapshot of a frame, also of what is in closed shadow roots.
func (b *browser) snapshot(in frame, args map[string]any) (s snapshot, err error) {
	args = maps.Clone(args)
	for depth := 1; ; depth++ {
		s = snapshot{}
		if _, err = b.script(in, &s, "snapshot", args); err != nil || !s.Hosts {
			return s, err
		}
		args["final"] = !b.openClosedRoots(in, false) || depth == maxClosedDepth
	}
}

// focus finds the element of a locator that a call is about, and the frame that it is in. No locator means all.
func (b *browser) focus(word string) (in frame, e element, err error) {
	if word == "" {
		return "", element{}, nil
	}
	in, found, err := b.find(word, 1)
	if err != nil {
		return "", element{}, err
	}
	if found.Total > 1 {
		return "", element{}, (&failure{Code: "many", Total: found.Total, Near: found.Matches}).error(word)
	}
	return in, found.Matches[0], nil
}

// focusInside is focus for what an element shows: that of a frame is its document, all of it.
func (b *browser) focusInside(word string) (in frame, ref string, err error) {
	in, e, err := b.focus(word)
	if err != nil {
		return "", "", err
	}
	inner, isFrame, err := b.inside(in, e)
	if isFrame {
		e.Ref = ""
	}
	return inner, e.Ref, err
}

// bytesPerToken is that of page.js.
const bytesPerToken = 4

// addFrames adds the frames of a snapshot to its text, as far as the budget allows.
func (b *browser) addFrames(s *snapshot, in frame, args map[string]any, all []pageFrame) error {
	shown, err := b.shownIn(in, all)
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
		more := map[string]any{"max_tokens": left, "roles": args["roles"], "since": args["since"], "audit": args["audit"]}
		inner, err := b.snapshot(shown[at].id, more)
		if err == nil && len(inner.Frames) > 0 {
			err = b.addFrames(&inner, shown[at].id, more, all)
		}
		if err != nil || !s.insert(of.Ref, inner.Text, args["since"] == true || args["audit"] == true) {
			s.missing = append(s.missing, of) // it is being replaced, or its line was left out
			continue
		}
		s.missing = append(s.missing, inner.missing...)
		s.Left.Prose += inner.Left.Prose
		s.Left.Cut += inner.Left.Cut
		s.Left.Grouped += inner.Left.Grouped
		s.Left.Closed += inner.Left.Closed
	}
	return nil
}

// insert adds the text of a frame below its line; or at the end, in a text that has only some lines. It reports whether
// there was a line.
func (s *snapshot) insert(ref, text string, partial bool) bool {
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

// framesLeftOut says which frames an answer lacks, and the way to them; "" if it lacks none.
func (b *browser) framesLeftOut(missing []element, way string) string {
	n := max(len(missing), b.unseen) // one can be both
	if n == 0 {
		return ""
	}
	var names []string
	for _, e := range missing[:min(len(missing), 3)] {
		names = append(names, e.String())
	}
	if n > len(names) {
		names = append(names, "…")
	}
	return fmt.Sprintf("frames, %d: %s (%s)", n, strings.Join(names, ", "), way)
}

// leftOut says what the text lacks, and the calls that show it.
func (s *snapshot) leftOut() (parts []string) {
	add := func(n int, what, way string) {
		if n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s (%s)", n, what, way))
		}
	}
	add(s.Left.Prose, "texts", "page.text")
	add(s.Left.Grouped, "items in groups", "group g1, or page.find")
	add(s.Left.Closed, "parts outside the view", "focus on their refs")
	add(s.Left.Cut, "lines", "a larger max_tokens")
	return parts
}

// TextParams say which text to read.
type TextParams struct {
	// Ref or locator of the part to read; without it, the whole page.
	Element string `json:"element,omitempty" aliases:"ref,uid,selector,sel,focus,target,locator"`
	// Limit of the size of the text, in tokens.
	MaxTokens int `json:"max_tokens,omitempty" minimum:"20" maximum:"100000" default:"2000"`
}

// TextResult is a text.
type TextResult struct {
	// The text, as Markdown.
	Text string `json:"text" untrusted:"true"`
	// Characters that are left out; a larger max_tokens shows them.
	Cut int `json:"cut,omitempty"`
	// Frames whose text is left out, and how to read it.
	LeftOut string `json:"left_out,omitempty"`
}

// Text reads the page as Markdown.
func Text(c *sdk.Call, p TextParams) (TextResult, error) {
	b := &browser{Call: c}
	var r struct {
		TextResult
		Failure *failure
		Frames  []element
	}
	in, ref, err := b.focusInside(p.Element)
	if err != nil {
		return r.TextResult, err
	}
	if _, err := b.script(in, &r, "text", map[string]any{"max_tokens": p.MaxTokens, "focus": ref}); err != nil {
		return r.TextResult, err
	}
	if r.Failure != nil {
		return r.TextResult, r.Failure.error(p.Element)
	}
	r.LeftOut = b.framesLeftOut(r.Frames, "page.text with their refs")
	return r.TextResult, nil
}

// FindParams say what to find.
type FindParams struct {
	// Name, label, text or ref, or css=, text=, role=, label=, placeholder=, testid=.
	Element string `json:"element" minLength:"1" aliases:"query,ref,selector,target,locator,name,text"`
	// How many matches to list at most.
	Limit int `json:"limit,omitempty" minimum:"1" maximum:"50" default:"5"`
}

// FindResult are elements.
type FindResult struct {
	// How many elements match.
	Total int `json:"total"`
	// The first matches; css finds an element again later.
	Matches []element `json:"matches"`
	// How the ref was found again, if its element was replaced.
	Note string `json:"note,omitempty"`
	// Frames that were not searched.
	LeftOut string `json:"left_out,omitempty"`
}

// Find finds elements, in the page and all its frames.
func Find(c *sdk.Call, p FindParams) (FindResult, error) {
	b := &browser{Call: c}
	all, err := b.findAll(p.Element, max(p.Limit, 1))
	return all.FindResult, err
}

// found is what the function find of page.js returns.
type found struct {
	FindResult
	Resolved string
	Failure  *failure
	Frames   int // how many frames the document has
}

func (b *browser) findAll(word string, limit int) (all found, err error) {
	where, unread := parseLocator(word), 0
	all.Matches = []element{}
	look := func(in frame) (found, error) {
		var f found
		_, err := b.opened(in, func() (*failure, error) {
			f = found{}
			_, err := b.script(in, &f, "find", where, map[string]any{"limit": limit})
			return f.Failure, err
		})
		all.Total += f.Total
		all.Matches = append(all.Matches, f.Matches[:min(len(f.Matches), limit-len(all.Matches))]...)
		all.Note = cmp.Or(all.Note, f.Resolved)
		return f, err
	}
	mine, err := look("")
	if err != nil {
		return all, err
	}
	if mine.Frames > 0 && (where["ref"] == nil || mine.Failure != nil) {
		frames, err := b.frames()
		if err != nil {
			return all, err
		}
		for _, f := range frames {
			inner, err := look(f.id)
			switch {
			case err != nil:
				unread++ // it is being replaced
			case inner.Failure != nil && !inner.Failure.elsewhere():
				mine.Failure = inner.Failure
			}
		}
	}
	if b.unseen += unread; b.unseen > 0 {
		all.LeftOut = b.framesLeftOut(nil, "page.snapshot shows refs of frames")
	}
	if all.Total == 0 {
		return all, mine.Failure.error(word)
	}
	return all, nil
}

// find finds what a locator means, in the page or else in its frames.
func (b *browser) find(word string, limit int) (frame, *FindResult, error) {
	var mine found
	in, err := b.anywhere(word, func(in frame) (*failure, error) {
		mine = found{}
		_, err := b.script(in, &mine, "find", parseLocator(word), map[string]any{"limit": max(limit, 3), "acting": b.writes})
		return mine.Failure, err
	})
	return in, &mine.FindResult, err
}

// anywhere calls a function for the page and, where that fails because the element that a word names is not there, for
// its frames. It returns the frame for which the function did not fail.
func (b *browser) anywhere(word string, try func(frame) (*failure, error)) (frame, error) {
	look := func(in frame) (*failure, error) {
		return b.opened(in, func() (*failure, error) { return try(in) })
	}
	mine, err := look("")
	if err != nil || mine == nil {
		return "", err
	}
	if mine.elsewhere() {
		children, err := b.frames()
		if err != nil {
			return "", err
		}
		for _, f := range children {
			switch other, err := look(f.id); {
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
func (b *browser) opened(in frame, try func() (*failure, error)) (f *failure, err error) {
	for range maxClosedDepth {
		if f, err = try(); err != nil || f == nil || !f.Hosts || !b.openClosedRoots(in, true) {
			break
		}
	}
	return f, err
}

// GetParams say what to read.
type GetParams struct {
	// Ref or name of the element, or css=, text=, label=, testid=.
	Element string `json:"element" minLength:"1" aliases:"ref,uid,selector,sel,target,locator,on,name"`
	// What to read; attribute and style need its name in of.
	What string `json:"what,omitempty" enum:"text,value,attribute,html,name,role,state,box,style,visible,count" default:"text" aliases:"property,get"`
	// Name of the attribute or of the style property.
	Of string `json:"of,omitempty" maxLength:"100" aliases:"attribute,property_name"`
}

// GetResult is a value.
type GetResult struct {
	// Any JSON: what was asked for, or null.
	Value json.RawMessage `json:"value" untrusted:"long"`
}

// Get reads one property of an element, or counts all that match.
func Get(c *sdk.Call, p GetParams) (GetResult, error) {
	b := &browser{Call: c}
	var r struct {
		GetResult
		Failure *failure
	}
	if p.What == "count" {
		all, err := b.findAll(p.Element, 1)
		if e, ok := err.(*sdk.ExitError); ok && (e.Name == "no_match" || e.Name == "stale") {
			err = nil
		}
		return GetResult{json.RawMessage(strconv.Itoa(all.Total))}, err
	}
	_, err := b.anywhere(p.Element, func(in frame) (*failure, error) {
		r.Failure, r.Value = nil, nil
		_, err := b.script(in, &r, "get", parseLocator(p.Element), p.What, p.Of)
		return r.Failure, err
	})
	if len(r.Value) == 0 {
		r.Value = json.RawMessage("null")
	}
	return r.GetResult, err
}
