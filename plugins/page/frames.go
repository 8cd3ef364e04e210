package main

import "slices"

// pageFrame is a frame of the page: its id, and where it is among the frames of the document around it.
type pageFrame struct {
	id, parent frame // parent is "" for the page itself
	index      int   // -1: unknown
}

// maxFrames bounds the frames that a call looks into.
const maxFrames = 20

// frames lists the frames of the page, outer ones first: those in its process and those in others.
func (b *browser) frames() ([]pageFrame, error) {
	type tree struct {
		Frame struct{ ID, ParentID string }
		Child []tree `json:"childFrames"`
	}
	var all []pageFrame
	var add func(t tree)
	add = func(t tree) {
		if t.Frame.ID != b.target && len(all) < maxFrames {
			parent := frame(t.Frame.ParentID)
			if t.Frame.ParentID == b.target {
				parent = ""
			}
			all = append(all, pageFrame{frame(t.Frame.ID), parent, -1})
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

// place looks up where a frame is in the document around it.
func (b *browser) place(f *pageFrame) int {
	if f.index < 0 {
		var at struct{ Index int }
		if _, err := b.script(f.id, &at, "place"); err != nil {
			return -1
		}
		f.index = at.Index
	}
	return f.index
}
