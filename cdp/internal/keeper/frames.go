package keeper

import (
	"encoding/json"
	"slices"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"

	"github.com/parley-tools/parley/cdp/internal/keeper/api"
	"github.com/parley-tools/parley/cdp/internal/keeper/mux"
	"github.com/parley-tools/parley/cdp/internal/keeper/scan"
	"github.com/parley-tools/parley/cdp/internal/protocol"
	"github.com/parley-tools/parley/manifest"
)

// A frame that Chrome runs in another process than its page is a target. All others are part of the target of their
// page or of the frame around them. This file follows those, so that a caller can name any frame by its id.

// pageFrame is a frame inside a page.
type pageFrame struct {
	id, parent string
	url        string  // "" until a document is there
	in         *target // to which its commands go; nil while it is a target of its own
}

// maxFrames limits the frames that are known in a browser. Further ones cannot be named.
const maxFrames = 10_000

// frames are the frames inside of targets, by id. The engine is locked for its methods.
type frames map[string]*pageFrame

// follow updates the frames inside a target by an event.
func (fs frames) follow(t *target, method string, params json.RawMessage) {
	switch method {
	case page.FrameAttached.Method:
		fs.set(t, scan.Text(params, "frameId"), scan.Text(params, "parentFrameId"), "")
	case page.FrameNavigated.Method:
		if parent := scan.Text(params, "frame", "parentId"); parent != "" {
			fs.set(t, scan.Text(params, "frame", "id"), parent, scan.Text(params, "frame", "url"))
		}
	case page.FrameDetached.Method:
		f := fs[scan.Text(params, "frameId")]
		switch {
		case f == nil || f.in != t:
		case scan.Text(params, "reason") == string(page.FrameDetachedReasonSwap):
			f.in = nil // it goes on as a target
		default:
			fs.forget(f)
		}
	}
}

func (fs frames) set(t *target, id, parent, url string) {
	f := fs[id]
	if f == nil {
		if len(fs) >= maxFrames || id == "" {
			return
		}
		f = &pageFrame{id: id}
		fs[id] = f
	}
	f.parent, f.url, f.in = parent, url, t
}

// forget forgets a frame and those in it.
func (fs frames) forget(f *pageFrame) {
	delete(fs, f.id)
	for _, child := range fs {
		if child.parent == f.id {
			fs.forget(child)
		}
	}
}

// forgetIn forgets the frames of a target that has no page any more.
func (fs frames) forgetIn(t *target) {
	for _, f := range fs {
		if f.in == t || f.in == nil && f.id == t.ID {
			fs.forget(f)
		}
	}
}

// readFrames learns the frames of a page that was there before Parley attached to its browser. The engine is locked.
func (tr *tracker) readFrames(t *target) {
	postCommand(tr.mux, t, page.GetFrameTree, cdp.Empty{}, func(r mux.Reply) {
		var read func(tree json.RawMessage)
		read = func(tree json.RawMessage) {
			scan.EachElement(scan.Field(tree, "childFrames"), func(child []byte) {
				tr.frames.set(t, scan.Text(child, "frame", "id"), scan.Text(child, "frame", "parentId"),
					scan.Text(child, "frame", "url"))
				read(child)
			})
		}
		if r.Err == nil {
			read(scan.Field(r.Result, "frameTree"))
		}
	})
}

// locate returns the target that a caller's selector names, and the frame in it, which is the target's own id unless
// the selector is the id of a frame inside.
func (e *engine) locate(by api.Caller, selector string) (t *target, frame string, err *api.Error) {
	e.mux.Lock()
	f := e.tracker.frames[selector]
	inside := f != nil && e.tracker.targets[selector] == nil && f.in != nil && !e.owners.isForbidden(f.url) &&
		(e.owners.canUse(by, f.in) || by.IsCommandLine() && !e.owners.isForbidden(f.in.url))
	if inside {
		t = f.in
	}
	e.mux.Unlock()
	if inside {
		return t, selector, nil
	}
	if t, err = e.owners.resolve(by, selector); err != nil {
		return nil, "", err
	}
	return t, t.ID, nil
}

// aimAtFrame fills in the parameter of a command that names the frame, or the context of its scripts. It rejects
// commands that act on a whole page.
func (tr *tracker) aimAtFrame(q *api.CallRequest, t *target, frame string) *api.Error {
	params := map[string]json.RawMessage{}
	if len(q.Params) > 0 {
		if err := json.Unmarshal(q.Params, &params); err != nil {
			return api.Errorf(api.CodeInvalidArgs, "the parameters of %s: %v", q.Method, err)
		}
	}
	given := func(names ...string) bool {
		return slices.ContainsFunc(names, func(name string) bool { return params[name] != nil })
	}
	command, _ := protocol.Embedded().Command(q.Method)
	takesFrame := command != nil && slices.ContainsFunc(command.Params, func(p protocol.Param) bool {
		return p.Name == "frameId"
	})
	switch {
	case q.Method == runtime.CommandEvaluate || q.Method == runtime.CommandCallFunctionOn:
		if given("contextId", "uniqueContextId", "executionContextId", "objectId") {
			return nil
		}
		tr.mux.Lock()
		unique := t.mainContext(frame)
		tr.mux.Unlock()
		if unique == "" {
			return api.Errorf(api.CodeNotFound, "frame %s has no document yet, or a new one; try again",
				manifest.Clip(frame, 80))
		}
		params["uniqueContextId"] = scan.Quote(unique)
	case !takesFrame:
		return api.Errorf(api.CodeInvalidArgs,
			"%s acts on a whole page, and %s is a frame inside one: name the page %s as target",
			manifest.Clip(q.Method, 80), manifest.Clip(frame, 80), t.ID)
	case given("frameId"):
		return nil
	default:
		params["frameId"] = scan.Quote(frame)
	}
	q.Params = scan.Marshal(params)
	return nil
}

// mainContext returns the unique id of the context in which the scripts of a frame run, "" if it is not known. The
// engine is locked.
func (t *target) mainContext(frame string) (unique string) {
	return scan.Text(t.contextWhere(func(c json.RawMessage) bool {
		return scan.Text(c, "auxData", "frameId") == frame && string(scan.Field(c, "auxData", "isDefault")) == "true"
	}), "uniqueId")
}

// contextWhere returns the newest context that has a property, nil if none is known.
func (t *target) contextWhere(has func(context json.RawMessage) bool) (newest json.RawMessage) {
	for _, c := range t.contexts {
		if context := scan.Field(c.created, "context"); has(context) {
			newest = context
		}
	}
	return newest
}
