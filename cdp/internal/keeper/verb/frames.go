package verb

import (
	"encoding/json"
	"slices"

	"github.com/chromedp/cdproto/runtime"

	"github.com/parley-tools/parley/cdp/internal/keeper/api"
	"github.com/parley-tools/parley/cdp/internal/keeper/scan"
	"github.com/parley-tools/parley/cdp/internal/keeper/target"
	"github.com/parley-tools/parley/cdp/internal/protocol"
	"github.com/parley-tools/parley/manifest"
)

// aimAtFrame fills in the parameter of a command that names the frame, or the context of its scripts. It rejects
// commands that act on a whole page.
func (e *Verbs) aimAtFrame(q *api.CallRequest, t *target.Target, frame string) *api.Error {
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
		e.Mux.Lock()
		unique := t.MainContext(frame)
		e.Mux.Unlock()
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
