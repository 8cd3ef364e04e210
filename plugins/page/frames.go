package main

import (
	"slices"

	sdk "github.com/parley-tools/parley/sdk/go"
)

// pageFrame is a frame of the page: its id, and the frame around it.
type pageFrame struct {
	id, parent frame // parent is "" for the page itself
}

// maxFrames bounds the frames that a call looks into.
const maxFrames = 60

// frames lists the frames of the page, outer ones first: those in its process and those in others.
func (b *browser) frames() ([]pageFrame, error) {
	type tree struct {
		Frame struct{ ID, ParentID string }
		Child []tree `json:"childFrames"`
	}
	b.unseen = 0
	var all []pageFrame
	var add func(t tree)
	add = func(t tree) {
		parent := frame(t.Frame.ParentID)
		if t.Frame.ParentID == b.target {
			parent = ""
		}
		switch {
		case t.Frame.ID == b.target:
		case len(all) < maxFrames:
			all = append(all, pageFrame{frame(t.Frame.ID), parent})
		default:
			b.unseen++
		}
		for _, child := range t.Child {
			add(child)
		}
	}
	var found struct{ FrameTree tree }
	if err := b.cdp("Page.getFrameTree", nil, &found); err != nil {
		return nil, err
	}
	add(found.FrameTree)
	targets, err := b.targets()
	if err != nil {
		return nil, err
	}
	var others []tree
	for _, t := range targets {
		if t.Type != "iframe" {
			continue
		}
		var other struct{ FrameTree tree }
		page := &browser{Call: b.Call, target: t.ID}
		if page.cdp("Page.getFrameTree", nil, &other) == nil {
			others = append(others, other.FrameTree)
		}
	}
	// Other pages of the session have frames, too, and an inner frame may come before the one around it.
	known := func(id string) bool {
		return id == b.target || slices.ContainsFunc(all, func(f pageFrame) bool { return string(f.id) == id })
	}
	for before := -1; before != len(others); {
		before = len(others)
		others = slices.DeleteFunc(others, func(t tree) bool {
			ours := known(t.Frame.ParentID)
			if ours && !known(t.Frame.ID) {
				add(t)
			}
			return ours
		})
	}
	return all, nil
}

// place is where a frame is in the document around it.
type place struct {
	Index int    `json:"index"`
	URL   string `json:"url"`
}

func (b *browser) place(f pageFrame) (at place, err error) {
	_, err = b.script(f.id, &at, "place")
	return at, err
}

// point is a place in a document, as page.js returns it.
type point struct {
	X, Y    float64
	Failure *failure
}

// outward takes a step into each document around a frame, from the inner to the outer ones. A step is told in which
// document, and where in it the frame is that it comes from. what is the subject of the error where a frame is gone.
func (b *browser) outward(from frame, all []pageFrame, what string, step func(frame, place) (point, error)) error {
	for in := from; in != ""; {
		i := slices.IndexFunc(all, func(f pageFrame) bool { return f.id == in })
		if i < 0 {
			return sdk.Exit("not_ready", what+" is being replaced; try again", nil)
		}
		in = all[i].parent
		of, err := b.place(all[i])
		var at point
		if err == nil {
			at, err = step(in, of)
		}
		if err == nil && at.Failure != nil {
			err = at.Failure.error(what)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// shownFrame is a frame that a document shows: its id, and the ref of its element, "" if that is hidden.
type shownFrame struct {
	id  frame
	ref string
}

// shownIn returns which of the frames of the page a document shows.
func (b *browser) shownIn(in frame, all []pageFrame) (shown []shownFrame, err error) {
	var places []place
	for _, f := range all {
		if f.parent != in {
			continue
		}
		if at, err := b.place(f); err == nil { // otherwise it is being replaced
			places, shown = append(places, at), append(shown, shownFrame{id: f.id})
		}
	}
	if len(places) == 0 {
		return nil, nil
	}
	var found struct{ Refs []string }
	if _, err := b.script(in, &found, "frames", places); err != nil {
		return nil, err
	}
	for i := range min(len(shown), len(found.Refs)) {
		shown[i].ref = found.Refs[i]
	}
	return shown, nil
}

// inside returns the frame that an element shows, if it is one.
func (b *browser) inside(in frame, e element) (frame, bool, error) {
	if e.Role != "Iframe" {
		return in, false, nil
	}
	all, err := b.frames()
	if err != nil {
		return in, false, err
	}
	shown, err := b.shownIn(in, all)
	for _, f := range shown {
		if f.ref == e.Ref {
			return f.id, true, err
		}
	}
	return in, false, err
}
