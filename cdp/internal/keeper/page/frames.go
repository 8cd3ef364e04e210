package page

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/chromedp/cdproto/dom"
	"github.com/chromedp/cdproto/runtime"

	"github.com/parley-tools/parley/cdp/internal/keeper/api"
	"github.com/parley-tools/parley/cdp/internal/keeper/scan"
	"github.com/parley-tools/parley/cdp/internal/keeper/verb"
)

// pageFrame is a frame of the page: its id, and the frame around it.
type pageFrame struct {
	id, parent frame // parent is "" for the page itself
}

// maxFrames bounds the frames that a call looks into.
const maxFrames = 60

// frames lists the frames of the page, outer ones first: those in its process and those in others.
func (v *visit) frames() []pageFrame {
	type link struct{ id, parent string }
	var links []link
	tr := v.verbs.Tracker
	v.verbs.Mux.Lock()
	for id, f := range tr.Frames {
		if f.In != nil && tr.ByID[id] == nil {
			links = append(links, link{id, f.Parent})
		}
	}
	for _, t := range tr.All {
		if t.Kind == "iframe" && v.verbs.Owners.CanUse(v.by, t) {
			if f := tr.Frames[t.ID]; f != nil {
				links = append(links, link{t.ID, f.Parent})
			} else if t.Parent != nil {
				links = append(links, link{t.ID, t.Parent.ID})
			}
		}
	}
	v.verbs.Mux.Unlock()
	slices.SortFunc(links, func(a, b link) int { return strings.Compare(a.id, b.id) })
	v.unseen = 0
	var all []pageFrame
	var add func(parent string, of frame)
	add = func(parent string, of frame) {
		for _, l := range links {
			if l.parent != parent {
				continue
			}
			if len(all) == maxFrames {
				v.unseen++
				continue
			}
			all = append(all, pageFrame{frame(l.id), of})
			add(l.id, frame(l.id))
		}
	}
	add(v.page.ID, "")
	return all
}

// place is where a frame is in the document around it, and the size of its view.
type place struct {
	Index  int     `json:"index"`
	URL    string  `json:"url"`
	Width  float64 `json:"width"`
	Height float64 `json:"height"`
}

func (v *visit) place(f frame) (at place, err *api.Error) {
	return at, v.script(f, &at, "place")
}

// projection maps the view of a frame to the view of the target that has its element: by a matrix of 3 x 3, since the
// page may have moved, scaled, turned and tilted the frame.
type projection struct {
	matrix        [9]float64
	width, height float64
}

// projectionOf returns the projection of the unit square to a quadrilateral: its corners from the upper left one on,
// clockwise (Heckbert, Fundamentals of Texture Mapping, 1989, section 2.2.3).
func projectionOf(quad []float64, width, height float64) *projection {
	x0, y0, x1, y1, x2, y2, x3, y3 := quad[0], quad[1], quad[2], quad[3], quad[4], quad[5], quad[6], quad[7]
	dx1, dx2, sx := x1-x2, x3-x2, x0-x1+x2-x3
	dy1, dy2, sy := y1-y2, y3-y2, y0-y1+y2-y3
	area := dx1*dy2 - dx2*dy1
	if area == 0 || width <= 0 || height <= 0 {
		return nil
	}
	g, h := (sx*dy2-dx2*sy)/area, (dx1*sy-sx*dy1)/area
	return &projection{[9]float64{x1 - x0 + g*x1, x3 - x0 + h*x3, x0, y1 - y0 + g*y1, y3 - y0 + h*y3, y0, g, h, 1},
		width, height}
}

// point maps a point of the frame's view.
func (p *projection) point(x, y float64) (float64, float64) {
	m, x, y := p.matrix, x/p.width, y/p.height
	w := m[6]*x + m[7]*y + m[8]
	return (m[0]*x + m[1]*y + m[2]) / w, (m[3]*x + m[4]*y + m[5]) / w
}

// inverse maps a point to the frame's view.
func (p *projection) inverse(x, y float64) (float64, float64) {
	m := p.matrix
	a, b, c := m[0]-x*m[6], m[1]-x*m[7], x*m[8]-m[2]
	d, e, f := m[3]-y*m[6], m[4]-y*m[7], y*m[8]-m[5]
	det := a*e - b*d
	return (c*e - b*f) / det * p.width, (a*f - c*d) / det * p.height
}

// project returns the projection of a frame, and where it is in the document around it. It is nil where the frame is
// not shown.
func (v *visit) project(f pageFrame) (*projection, place, *api.Error) {
	of, err := v.place(f.id)
	if err != nil {
		return nil, of, err
	}
	t, _, err := v.at(f.parent)
	if err != nil {
		return nil, of, err
	}
	value, err := v.call(f.parent, verb.ScriptCall{Function: "frameAt", Class: "Element",
		Use: func(element string) (json.RawMessage, *api.Error) {
			return v.verbs.Tracker.Sender.Do(v.ctx, t, dom.CommandGetBoxModel,
				scan.Marshal(dom.GetBoxModelParams{ObjectID: runtime.RemoteObjectID(element)}))
		}}, of)
	if err != nil {
		return nil, of, nil // it has no box
	}
	var box struct {
		Model struct{ Content []float64 }
	}
	if json.Unmarshal(value, &box) != nil || len(box.Model.Content) != 8 {
		return nil, of, nil
	}
	return projectionOf(box.Model.Content, of.Width, of.Height), of, nil
}

// outward takes a step into each document around a frame, from the inner to the outer ones. A step gets the document,
// where in it the frame is that it comes from, and what maps the points of that frame to the view of the document. what
// is the subject of the error where a frame is gone.
func (v *visit) outward(from frame, what string,
	step func(in frame, of place, toView func(x, y float64) (float64, float64)) *api.Error,
) *api.Error {
	all := v.frames()
	find := func(id frame) *pageFrame {
		if i := slices.IndexFunc(all, func(f pageFrame) bool { return f.id == id }); i >= 0 {
			return &all[i]
		}
		return nil
	}
	for in := from; in != ""; {
		f := find(in)
		if f == nil {
			return exit("not_ready", what+" is being replaced; try again", nil)
		}
		p, of, err := v.project(*f)
		if err != nil {
			return err
		}
		if p == nil {
			return (&failure{Code: "not_ready", Why: "its frame is not visible"}).error(what)
		}
		toView := p.point
		if around := find(f.parent); around != nil && !v.isTarget(around.id) { // its view is not that of the target
			outer, _, err := v.project(*around)
			if err != nil {
				return err
			}
			if outer == nil {
				return (&failure{Code: "not_ready", Why: "its frame is not visible"}).error(what)
			}
			toView = func(x, y float64) (float64, float64) { return outer.inverse(p.point(x, y)) }
		}
		if err := step(f.parent, of, toView); err != nil {
			return err
		}
		in = f.parent
	}
	return nil
}

// isTarget reports whether a frame is in a process of its own.
func (v *visit) isTarget(f frame) bool {
	v.verbs.Mux.Lock()
	defer v.verbs.Mux.Unlock()
	return v.verbs.Tracker.ByID[string(f)] != nil
}

// shownFrame is a frame that a document shows: its id, and the ref of its element, "" if that is hidden.
type shownFrame struct {
	id  frame
	ref string
}

// shownIn returns which of the frames of the page a document shows.
func (v *visit) shownIn(in frame, all []pageFrame) (shown []shownFrame, err *api.Error) {
	var places []place
	for _, f := range all {
		if f.parent != in {
			continue
		}
		if at, err := v.place(f.id); err == nil { // otherwise it is being replaced
			places, shown = append(places, at), append(shown, shownFrame{id: f.id})
		}
	}
	if len(places) == 0 {
		return nil, nil
	}
	var found struct{ Refs []string }
	if err := v.script(in, &found, "frames", places); err != nil {
		return nil, err
	}
	for i := range min(len(shown), len(found.Refs)) {
		shown[i].ref = found.Refs[i]
	}
	return shown, nil
}

// inside returns the frame that an element shows, if it is one.
func (v *visit) inside(in frame, e element) (frame, bool, *api.Error) {
	if e.Role != "Iframe" {
		return in, false, nil
	}
	shown, err := v.shownIn(in, v.frames())
	for _, f := range shown {
		if f.ref == e.Ref {
			return f.id, true, err
		}
	}
	return in, false, err
}

// framesLeftOut says which frames an answer lacks, and the way to them; "" if it lacks none.
func (v *visit) framesLeftOut(missing []element, way string) string {
	n := max(len(missing), v.unseen) // one can be both
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
