package verb

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/page"
	"github.com/parley-tools/parley/cdp/internal/keeper/api"
	"github.com/parley-tools/parley/cdp/internal/keeper/mux"
	"github.com/parley-tools/parley/cdp/internal/keeper/scan"
	"github.com/parley-tools/parley/cdp/internal/keeper/target"
	"github.com/parley-tools/parley/cdp/internal/keeper/tenant"
	"github.com/parley-tools/parley/manifest"
)

// Type types a text into the focused element of a frame, if the origin of its document is one of the given ones. The
// document itself compares its origin, in the same turn in which it gets the text. Key events would instead go to
// whichever frame has the focus when they arrive. So no document of another origin gets the text, whatever the page
// does meanwhile.
func (e *Verbs) Type(ctx context.Context, by api.Caller, _ *tenant.Scope, q api.TypeRequest) (
	api.Typed, *api.Error,
) {
	t, err := e.Owners.Resolve(by, q.Target)
	if err != nil {
		return api.Typed{}, err
	}
	if err := e.Claim(by, t, "has no field to type into"); err != nil {
		return api.Typed{}, err
	}
	leaving := mux.Locked(e.Mux, func() string { return t.Root().PendingURL })
	if leaving != "" {
		return api.Typed{}, api.Errorf(api.CodeBusy,
			"the page is being left for %s, so nothing was typed: wait until that is loaded, "+
				"and focus a field there", manifest.Clip(leaving, 200))
	}
	t, frame, err := e.focusedFrame(ctx, by, t)
	if err != nil {
		return api.Typed{}, err
	}
	outcome, err := callInFrame[string](ctx, e.sender, t, frame, typeInto(), q.Origins, q.Text)
	if err != nil {
		return api.Typed{}, err
	}
	kind, origin, _ := strings.Cut(outcome, " ")
	switch kind {
	case "typed":
	case "origin":
		return api.Typed{}, api.Errorf(api.CodeDenied, "the focused frame is of origin %s, but this secret is bound to %s; "+
			"nothing was typed", manifest.Clip(origin, 200), strings.Join(q.Origins, ", "))
	case "nothing":
		return api.Typed{}, api.Errorf(api.CodeProtocolError,
			"no element has the focus, so nothing was typed: focus a field first, such as by a click")
	default:
		return api.Typed{}, api.Errorf(api.CodeProtocolError, "the focused element takes no text, so nothing was typed: "+
			"focus a field that can be edited")
	}
	if q.Submit {
		enter := map[string]any{"key": "Enter", "code": "Enter", "windowsVirtualKeyCode": 13, "type": "keyUp"}
		up := scan.Marshal(enter)
		enter["type"], enter["text"] = "keyDown", "\r"
		keys := api.InputRequest{Events: []json.RawMessage{scan.Marshal(enter), up}}
		_, err = e.SendInput(ctx, by, api.VerbOptions{Target: t.ID}, keys)
	}
	return api.Typed{Target: t.ID, Origin: origin}, err
}

// typeInto returns the JavaScript function that types. It compares the origin before it uses the text. A page cannot
// replace location.origin; self.origin differs from it in a sandboxed frame.
func typeInto() string {
	return `function(origins, text) {
	const origin = location.origin;
	if (!origins.includes(origin)) return "origin " + origin;
	if (self.origin !== origin) return "origin " + self.origin;
	let at = document.activeElement;
	while (at && at.shadowRoot && at.shadowRoot.activeElement) at = at.shadowRoot.activeElement;
	if (!at || at === document.documentElement || at === document.body && !at.isContentEditable) return "nothing";
	if (!at.matches(":read-write")) return "field " + origin; // the selection may be in another one
	return (document.execCommand("insertText", false, text) ? "typed " : "field ") + origin;
}`
}

// focusedFrame returns the frame in a target that has the focus: the target that its commands go to, and its id.
func (e *Verbs) focusedFrame(ctx context.Context, by api.Caller, t *target.Target) (in *target.Target, frame string,
	err *api.Error) {
	frame = t.ID
	for range maxFrameDepth {
		if err := e.Tracker.Attach(ctx, t, ""); err != nil {
			return nil, "", err
		}
		child, err := e.focusedChild(ctx, t, frame)
		if err != nil || child == "" {
			return t, frame, err
		}
		frame = child
		e.Mux.Lock()
		if remote := e.Tracker.ByID[child]; remote != nil && e.Owners.CanUse(by, remote) {
			t = remote
		}
		e.Mux.Unlock()
	}
	return nil, "", api.Errorf(api.CodeLimitExceeded, "the focused frame is more than %d frames deep", maxFrameDepth)
}

const maxFrameDepth = 16

// focusedChild returns the id of the frame whose element has the focus within another frame, "" if another element
// has the focus.
func (e *Verbs) focusedChild(ctx context.Context, t *target.Target, frame string) (string, *api.Error) {
	raw, err := callInWorld(ctx, e.sender, t, frame, focusedElement, false)
	if err != nil {
		return "", err
	}
	element := scan.Text(raw, "result", "objectId")
	if element == "" {
		return "", nil
	}
	raw, err = e.sender.Do(ctx, t, "DOM.describeNode", scan.Marshal(map[string]any{"objectId": element}))
	if err != nil || !slices.Contains(frameElements, strings.ToUpper(scan.Text(raw, "node", "nodeName"))) {
		return "", err
	}
	return scan.Text(raw, "node", "frameId"), nil
}

const focusedElement = `function() {
	let at = document.activeElement;
	while (at && at.shadowRoot && at.shadowRoot.activeElement) at = at.shadowRoot.activeElement;
	return at;
}`

// frameElements are the names of the elements that hold a frame.
var frameElements = []string{"IFRAME", "FRAME", "OBJECT", "EMBED", "FENCEDFRAME"}

// worldName is the name of the isolated worlds in which the keeper's own functions run: they see the document of a
// frame, but nothing that its scripts have replaced.
const worldName = "parley"

// callInFrame calls a function in an isolated world of a frame, and returns its result by value. A world ends with
// its document, and another document's world may then get its number. So a function that depends on an origin checks
// location.origin itself, which no page can replace, before it uses its other arguments.
func callInFrame[R any](ctx context.Context, s *target.Sender, t *target.Target, frame, function string, args ...any) (
	result R, err *api.Error,
) {
	raw, err := callInWorld(ctx, s, t, frame, function, true, args...)
	if err != nil {
		return result, err
	}
	failed := json.Unmarshal(scan.Field(raw, "result", "value"), &result)
	if thrown := scan.Field(raw, "exceptionDetails"); thrown != nil { // the message may repeat an argument
		failed = fmt.Errorf("it threw %s", scan.Text(thrown, "exception", "className"))
	}
	if failed != nil {
		return result, api.Errorf(api.CodeProtocolError, "a function of the keeper failed in the page: %v", failed)
	}
	return result, nil
}

// callInWorld calls a function in an isolated world of a frame, and returns what Runtime.callFunctionOn does: the
// result by value, or a reference to an object in that world.
func callInWorld(ctx context.Context, s *target.Sender, t *target.Target, frame, function string, byValue bool,
	args ...any) (
	json.RawMessage, *api.Error,
) {
	made, err := target.Execute(ctx, s, t, page.CreateIsolatedWorld,
		page.CreateIsolatedWorldParams{FrameID: cdp.FrameID(frame), WorldName: worldName})
	if err != nil {
		return nil, err
	}
	given := make([]map[string]any, len(args))
	for i, arg := range args {
		given[i] = map[string]any{"value": arg}
	}
	return s.Do(ctx, t, "Runtime.callFunctionOn", scan.Marshal(map[string]any{
		"functionDeclaration": function, "executionContextId": made.ExecutionContextID, "arguments": given,
		"returnByValue": byValue, "silent": true,
	}))
}
