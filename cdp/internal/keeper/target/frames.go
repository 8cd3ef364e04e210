package target

import (
	"encoding/json"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/page"

	"github.com/parley-tools/parley/cdp/internal/keeper/mux"
	"github.com/parley-tools/parley/cdp/internal/keeper/scan"
)

// A frame that Chrome runs in another process than its page is a target of its own. Every other frame is part of the
// target of its page, or of the frame around it. This file tracks those, so that a caller can name any frame by its
// id.

// pageFrame is a frame inside a page.
type pageFrame struct {
	id, Parent string
	URL        string  // "" until a document is there
	In         *Target // the target that its commands go to; nil while the frame is a target of its own
}

// maxFrames limits the known frames of a browser. Further ones cannot be named.
const maxFrames = 10_000

// Frames are the frames inside of targets, by id. The mux is locked for its methods.
type Frames map[string]*pageFrame

// follow updates the frames inside a target by an event.
func (fs Frames) follow(t *Target, method string, params json.RawMessage) {
	switch method {
	case page.FrameAttached.Method:
		fs.Set(t, scan.Text(params, "frameId"), scan.Text(params, "parentFrameId"), "")
	case page.FrameNavigated.Method:
		id := scan.Text(params, "frame", "id")
		if parent := scan.Text(params, "frame", "parentId"); parent != "" {
			fs.Set(t, id, parent, scan.Text(params, "frame", "url"))
		}
		// Within a process, a navigation detaches the frames of the previous document without an event.
		for _, f := range fs {
			if f.Parent == id && f.In == t {
				fs.forget(f)
			}
		}
	case page.FrameDetached.Method:
		f := fs[scan.Text(params, "frameId")]
		switch {
		case f == nil || f.In != t:
		case scan.Text(params, "reason") == string(page.FrameDetachedReasonSwap):
			f.In = nil // it is now a target of its own
		default:
			fs.forget(f)
		}
	}
}

// Set records where a frame is, and what it shows.
func (fs Frames) Set(t *Target, id, parent, url string) {
	f := fs[id]
	if f == nil {
		if len(fs) >= maxFrames || id == "" {
			return
		}
		f = &pageFrame{id: id}
		fs[id] = f
	}
	f.Parent, f.URL, f.In = parent, url, t
}

// forget forgets a frame and the frames inside it.
func (fs Frames) forget(f *pageFrame) {
	delete(fs, f.id)
	for _, child := range fs {
		if child.Parent == f.id {
			fs.forget(child)
		}
	}
}

// forgetIn forgets the frames of a target that has no page any more.
func (fs Frames) forgetIn(t *Target) {
	for _, f := range fs {
		if f.In == t || f.In == nil && f.id == t.ID {
			fs.forget(f)
		}
	}
}

// readFrames reads the frames that a page or a frame has already, because it existed before Parley attached to it, or
// comes from the back/forward cache. The mux is locked.
func (tr *Tracker) readFrames(t *Target) {
	Post(tr.Mux, t, page.GetFrameTree, cdp.Empty{}, func(r mux.Reply) {
		var read func(tree json.RawMessage)
		read = func(tree json.RawMessage) {
			scan.EachElement(scan.Field(tree, "childFrames"), func(child []byte) {
				tr.Frames.Set(t, scan.Text(child, "frame", "id"), scan.Text(child, "frame", "parentId"),
					scan.Text(child, "frame", "url"))
				read(child)
			})
		}
		if r.Err == nil {
			read(scan.Field(r.Result, "frameTree"))
		}
	})
}
