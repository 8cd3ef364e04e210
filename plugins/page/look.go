package main

import (
	"encoding/json"
	"fmt"
	"maps"
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
	Focus string `json:"focus,omitempty" aliases:"ref,element,selector"`
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
	// One element or more a line: role, name, =value, [state] and ref.
	Text string `json:"text" untrusted:"true"`
	// What was left out, and how to see it.
	LeftOut string `json:"left_out,omitempty"`
}

type snapshot struct {
	SnapshotResult
	Failure *failure
	Frames  []struct {
		Ref   string
		Index int
	}
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
	in, ref, err := b.focus(p.Focus)
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
		if err := b.addFrames(&s, in, args); err != nil {
			return s.SnapshotResult, err
		}
	}
	if p.Roles != "" {
		s.Title, s.URL, s.Left.Prose = "", "", 0
	}
	s.SnapshotResult.LeftOut = s.leftOut()
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

// focus finds the element of a locator that a call is about: the frame that it is in, and its ref. No locator means
// all.
func (b *browser) focus(word string) (in frame, ref string, err error) {
	if word == "" {
		return "", "", nil
	}
	in, found, err := b.find(word, 1)
	if err != nil {
		return "", "", err
	}
	if found.Total > 1 {
		return "", "", (&failure{Code: "many", Total: found.Total, Near: found.Matches}).error(word)
	}
	return in, found.Matches[0].Ref, nil
}

// bytesPerToken is that of page.js.
const bytesPerToken = 4

// addFrames adds the frames of a snapshot to its text, as far as the budget allows.
func (b *browser) addFrames(s *snapshot, in frame, args map[string]any) error {
	all, err := b.frames()
	if err != nil {
		return err
	}
	left := args["max_tokens"].(int) - len(s.Text)/bytesPerToken
	for _, shown := range s.Frames {
		for i := range all {
			f := &all[i]
			if f.parent != in || left < 60 || b.place(f) != shown.Index {
				continue
			}
			more := map[string]any{"max_tokens": left, "roles": args["roles"], "since": args["since"], "audit": args["audit"]}
			inner, err := b.snapshot(f.id, more)
			if err != nil || inner.Text == "" {
				continue // it is being replaced
			}
			if len(inner.Frames) > 0 {
				if err := b.addFrames(&inner, f.id, more); err != nil {
					return err
				}
			}
			s.insert(shown.Ref, inner.Text, args["since"] == true || args["audit"] == true)
			left = args["max_tokens"].(int) - len(s.Text)/bytesPerToken
			s.Left.Prose += inner.Left.Prose
			s.Left.Cut += inner.Left.Cut
			s.Left.Grouped += inner.Left.Grouped
			s.Left.Closed += inner.Left.Closed
		}
	}
	return nil
}

// insert adds the text of a frame below its line; or at the end, in a text that has only some lines.
func (s *snapshot) insert(ref, text string, partial bool) {
	if partial {
		s.Text = strings.TrimPrefix(s.Text+"\nIframe "+ref+":\n "+strings.ReplaceAll(text, "\n", "\n "), "\n")
		return
	}
	lines := strings.Split(s.Text, "\n")
	for k, line := range lines {
		if strings.HasSuffix(line, " "+ref) || strings.Contains(line, " "+ref+" ") {
			indent := "\n" + strings.Repeat(" ", len(line)-len(strings.TrimLeft(line, " "))+1)
			lines[k] += ":" + indent + strings.ReplaceAll(text, "\n", indent)
			break
		}
	}
	s.Text = strings.Join(lines, "\n")
}

// leftOut says what the text lacks, and the calls that show it.
func (s *snapshot) leftOut() string {
	var parts []string
	add := func(n int, what, way string) {
		if n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s (%s)", n, what, way))
		}
	}
	add(s.Left.Prose, "texts", "page.text")
	add(s.Left.Grouped, "items in groups", "group g1, or page.find")
	add(s.Left.Closed, "parts outside the view", "focus on their refs")
	add(s.Left.Cut, "lines", "a larger max_tokens")
	return strings.Join(parts, ", ")
}

// TextParams say which text to read.
type TextParams struct {
	// Ref or locator of the part to read; without it, the whole page.
	Element string `json:"element,omitempty" aliases:"ref,selector,focus,target,locator"`
	// Limit of the size of the text, in tokens.
	MaxTokens int `json:"max_tokens,omitempty" minimum:"20" maximum:"100000" default:"2000"`
}

// TextResult is a text.
type TextResult struct {
	// The text, as Markdown.
	Text string `json:"text" untrusted:"true"`
	// Characters that are left out; a larger max_tokens shows them.
	Cut int `json:"cut,omitempty"`
}

// Text reads the page as Markdown.
func Text(c *sdk.Call, p TextParams) (TextResult, error) {
	b := &browser{Call: c}
	var r struct {
		TextResult
		Failure *failure
	}
	in, ref, err := b.focus(p.Element)
	if err != nil {
		return r.TextResult, err
	}
	if _, err := b.script(in, &r, "text", map[string]any{"max_tokens": p.MaxTokens, "focus": ref}); err != nil {
		return r.TextResult, err
	}
	if r.Failure != nil {
		return r.TextResult, r.Failure.error(p.Element)
	}
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
}

// Find finds elements.
func Find(c *sdk.Call, p FindParams) (FindResult, error) {
	b := &browser{Call: c}
	_, found, err := b.find(p.Element, p.Limit)
	if err != nil {
		return FindResult{}, err
	}
	return *found, nil
}

// find finds what a locator means, in the page or else in its frames.
func (b *browser) find(word string, limit int) (frame, *FindResult, error) {
	type answer struct {
		FindResult
		Resolved string
		Failure  *failure
	}
	var mine answer
	in, err := b.anywhere(func(in frame) (*failure, error) {
		mine = answer{}
		_, err := b.script(in, &mine, "find", parseLocator(word), map[string]any{"limit": max(limit, 3)})
		return mine.Failure, err
	})
	if f, ok := err.(*notFound); ok {
		err = f.error(word)
	}
	if err != nil {
		return "", nil, err
	}
	mine.Note = mine.Resolved
	mine.Matches = mine.Matches[:min(len(mine.Matches), max(limit, 1))]
	return in, &mine.FindResult, nil
}

// notFound is the error of anywhere where no document has the element.
type notFound struct{ *failure }

func (n *notFound) Error() string { return n.Code }

// anywhere calls a function for the page and, where that fails because the element is not there, for its frames. It
// returns the frame for which the function did not fail.
func (b *browser) anywhere(try func(frame) (*failure, error)) (frame, error) {
	look := func(in frame) (f *failure, err error) {
		for range maxClosedDepth {
			if f, err = try(in); err != nil || f == nil || !f.Hosts || !b.openClosedRoots(in, true) {
				break
			}
		}
		return f, err
	}
	mine, err := look("")
	if err != nil {
		return "", err
	}
	if mine == nil {
		return "", nil
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
				return "", &notFound{other}
			}
		}
		if len(children) > 0 { // the last try has replaced what the page said
			if mine, err = try(""); err != nil || mine == nil {
				return "", err
			}
		}
	}
	return "", &notFound{mine}
}

// GetParams say what to read.
type GetParams struct {
	// Ref or name of the element, or css=, text=, label=, testid=.
	Element string `json:"element" minLength:"1" aliases:"ref,selector,target,locator,on,name"`
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

// Get reads one property of an element.
func Get(c *sdk.Call, p GetParams) (GetResult, error) {
	b := &browser{Call: c}
	var r struct {
		GetResult
		Failure *failure
	}
	_, err := b.anywhere(func(in frame) (*failure, error) {
		r.Failure, r.Value = nil, nil
		_, err := b.script(in, &r, "get", parseLocator(p.Element), p.What, p.Of)
		if p.What == "count" && string(r.Value) == "0" && in == "" {
			return &failure{Code: "no_match"}, err
		}
		return r.Failure, err
	})
	if f, ok := err.(*notFound); ok {
		if p.What == "count" {
			return GetResult{json.RawMessage("0")}, nil
		}
		err = f.error(p.Element)
	}
	if len(r.Value) == 0 {
		r.Value = json.RawMessage("null")
	}
	return r.GetResult, err
}
