package page

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/parley-tools/parley/cdp/internal/keeper/api"
	"github.com/parley-tools/parley/cdp/internal/keeper/scan"
	"github.com/parley-tools/parley/cdp/internal/keeper/target"
	"github.com/parley-tools/parley/cdp/internal/keeper/verb"
)

// PageFrame is a frame of the page: its id, and the frame around it.
type PageFrame struct {
	ID, parent Frame // parent is "" for the page itself
}

// maxFrames bounds the frames that a call looks into.
const maxFrames = 60

// Frames lists the frames of the page, outer ones first: those in its process and those in others.
func (v *Visit) Frames() []PageFrame {
	type link struct{ id, parent string }
	var links []link
	tr := v.Keeper.Tracker
	v.Keeper.Mux.Lock()
	for id, f := range tr.Frames {
		if f.In != nil && tr.ByID[id] == nil {
			links = append(links, link{id, f.Parent})
		}
	}
	for _, t := range tr.All {
		if t.Kind == "iframe" && v.Keeper.Owners.CanUse(v.By, t) {
			if f := tr.Frames[t.ID]; f != nil {
				links = append(links, link{t.ID, f.Parent})
			} else if t.Parent != nil {
				links = append(links, link{t.ID, t.Parent.ID})
			}
		}
	}
	v.Keeper.Mux.Unlock()
	slices.SortFunc(links, func(a, b link) int { return strings.Compare(a.id, b.id) })
	v.Unseen = 0
	var all []PageFrame
	var add func(parent string, of Frame)
	add = func(parent string, of Frame) {
		for _, l := range links {
			if l.parent != parent {
				continue
			}
			if len(all) == maxFrames {
				v.Unseen++
				continue
			}
			all = append(all, PageFrame{Frame(l.id), of})
			add(l.id, Frame(l.id))
		}
	}
	add(v.Page.ID, "")
	return all
}

// Place is where a frame is in the document around it, and the size of its view.
type Place struct {
	Index   int     `json:"index"`
	URL     string  `json:"url"`
	Width   float64 `json:"width"`
	Height  float64 `json:"height"`
	Loading bool    `json:"loading"` // the document may get more content
}

func place(v *Visit, f Frame) (at Place, err *api.Error) {
	return at, v.Briefly(f, &at, "place")
}

// Briefly calls a function of page.js in a frame, as Script does, but does not wait long for a running script of the
// frame to end.
func (v *Visit) Briefly(in Frame, result any, function string, args ...any) *api.Error {
	own := *v
	ctx, cancel := context.WithTimeout(v.Ctx, v.Within(frameTime))
	defer cancel()
	own.Ctx, own.owed = ctx, nil
	return own.Script(in, result, function, args...)
}

// projection maps points of a frame's view to the view of the target that contains the frame's element. It is a 3 x 3
// matrix, since the page may have moved, scaled, turned and tilted the frame.
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

// project returns the projection of a frame, and the frame's place in the document around it. The projection is nil
// if the frame is not shown.
func (v *Visit) project(f PageFrame) (*projection, Place, *api.Error) {
	of, err := place(v, f.ID)
	if err != nil {
		return nil, of, err
	}
	t, _, err := v.At(f.parent)
	if err != nil {
		return nil, of, err
	}
	value, err := v.Call(f.parent, verb.ScriptCall{Function: "frameAt", Class: "Element",
		Use: func(element string) (json.RawMessage, *api.Error) {
			return v.Keeper.Tracker.Sender.Do(v.Ctx, t, "DOM.getBoxModel", scan.Marshal(Object{"objectId": element}))
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

// Outward calls step for each document around a frame, from the inner to the outer ones. A step gets the document,
// the place in it of the frame that it comes from, and a function that maps points of that frame to the view of the
// document. what is the subject of the error for a frame that is gone.
func (v *Visit) Outward(from Frame, what string,
	step func(in Frame, of Place, toView func(x, y float64) (float64, float64)) *api.Error,
) *api.Error {
	all := v.Frames()
	find := func(id Frame) *PageFrame {
		if i := slices.IndexFunc(all, func(f PageFrame) bool { return f.ID == id }); i >= 0 {
			return &all[i]
		}
		return nil
	}
	for in := from; in != ""; {
		f := find(in)
		if f == nil {
			return Exit("not_ready", what+" is being replaced; try again", nil)
		}
		p, of, err := v.project(*f)
		if err != nil {
			return err
		}
		if p == nil {
			return (&Failure{Code: "not_ready", Why: "its frame is not visible"}).Exit(what)
		}
		toView := p.point
		if around := find(f.parent); around != nil && !isTarget(v, around.ID) { // its view differs from the target's
			outer, _, err := v.project(*around)
			if err != nil {
				return err
			}
			if outer == nil {
				return (&Failure{Code: "not_ready", Why: "its frame is not visible"}).Exit(what)
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

// isTarget reports whether a frame runs in a process of its own.
func isTarget(v *Visit, f Frame) bool {
	return Locked(v, func() bool { return v.Keeper.Tracker.ByID[string(f)] != nil })
}

// ViewerIn returns the target in which Chrome itself shows the content of a document, by the beginning of its
// address; nil if there is none.
func ViewerIn(v *Visit, in Frame, address string) *target.Target {
	v.Keeper.Mux.Lock()
	defer v.Keeper.Mux.Unlock()
	for id, f := range v.Keeper.Tracker.Frames {
		t := v.Keeper.Tracker.ByID[id]
		if t != nil && f.Parent == cmp.Or(string(in), v.Page.ID) && strings.HasPrefix(t.URL, address) {
			return t
		}
	}
	return nil
}

// ShownFrame is a frame that a document shows: its id, the ref of its element ("" if the element is hidden), and
// whether its document may get more content.
type ShownFrame struct {
	ID      Frame
	Ref     string
	Loading bool
}

// ShownIn returns the frames that a document shows.
func (v *Visit) ShownIn(in Frame) (shown []ShownFrame, err *api.Error) {
	var places []Place
	for _, f := range v.Frames() {
		if f.parent != in {
			continue
		}
		if at, err := place(v, f.ID); err == nil { // otherwise it is being replaced
			places, shown = append(places, at), append(shown, ShownFrame{ID: f.ID, Loading: at.Loading})
		}
	}
	if len(places) == 0 {
		return nil, nil
	}
	var found struct{ Refs []string }
	if err := v.Script(in, &found, "frames", places); err != nil {
		return nil, err
	}
	for i := range min(len(shown), len(found.Refs)) {
		shown[i].Ref = found.Refs[i]
	}
	return shown, nil
}

// Inside returns the frame that an element shows, if the element is a frame.
func (v *Visit) Inside(in Frame, e Element) (Frame, bool, *api.Error) {
	if e.Role != "Iframe" {
		return in, false, nil
	}
	shown, err := v.ShownIn(in)
	for _, f := range shown {
		if f.Ref == e.Ref {
			return f.ID, true, err
		}
	}
	return in, false, err
}

// FramesLeftOut says which frames an answer lacks, and how to get them; "" if it lacks none.
func (v *Visit) FramesLeftOut(missing []Element, way string) string {
	n := max(len(missing), v.Unseen) // a frame can be in both counts
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
