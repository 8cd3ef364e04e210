package verb

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"

	"github.com/parley-tools/parley/cdp/internal/keeper/api"
	"github.com/parley-tools/parley/cdp/internal/keeper/scan"
	"github.com/parley-tools/parley/cdp/internal/keeper/target"
	"github.com/parley-tools/parley/cdp/internal/keeper/tenant"
	"github.com/parley-tools/parley/manifest"
)

// callExport returns the function of JavaScript that calls an export. Its object is what is kept of the script in this
// document: the document, and a number that no other document of this browser has.
func callExport() string {
	return fmt.Sprintf(`async function (number, name, ...args) {
	const kept = Object.hasOwn(globalThis, %[1]q) ? globalThis[%[1]q] : null;
	if (!kept || kept.document !== document) return {state: "missing"};
	if (typeof kept.exports[name] !== "function") return {state: "unknown"};
	kept.number ||= number;
	return {state: "called", value: await kept.exports[name].apply(kept, args)};
}`, api.ExportsKey)
}

// callByReference is callExport for a function that returns an element, or an array of elements. It returns null where
// the script is missing.
func callByReference(class string) string {
	return fmt.Sprintf(`async function (number, name, ...args) {
	const {state, value} = await (%s).call(this, number, name, ...args);
	if (state === "missing") return null;
	if (!(value instanceof %s)) throw new TypeError(name + " did not return an %[2]s");
	return value;
}`, callExport(), class)
}

// maxScripts limits the scripts whose texts the keeper has, and those that a session has at the start of documents.
const maxScripts = 32

// Script serves a ScriptRequest.
func (e *Verbs) Script(ctx context.Context, by api.Caller, _ *tenant.Scope, q api.ScriptRequest) (
	api.ScriptResult, *api.Error,
) {
	if err := api.CheckOnDialog(q.OnDialog); err != nil {
		return api.ScriptResult{}, err
	}
	e.Mux.Lock()
	script, err := e.knownScript(q.Script)
	e.Mux.Unlock()
	if err == nil && q.DocumentStart {
		err = e.RegisterScript(by, script)
	}
	if err != nil {
		return api.ScriptResult{}, err
	}
	if q.Function == "" {
		return api.ScriptResult{}, nil
	}
	t, frame, err := e.Owners.Locate(by, q.Target)
	if err != nil {
		return api.ScriptResult{}, err
	}
	if err := e.Claim(by, t, "has no document"); err != nil {
		return api.ScriptResult{}, err
	}
	e.Mux.Lock()
	done := api.ScriptResult{Target: t.ID, Frame: frame, LastSeq: e.Events.Journals.LastSeqOf(t.Owner)}
	e.Mux.Unlock()
	if err := e.Tracker.Attach(ctx, t, ""); err != nil {
		return api.ScriptResult{}, err
	}
	call := ScriptCall{Function: q.Function, Args: q.Args, OnDialog: q.OnDialog}
	switch {
	case len(q.Files) > 0:
		call.Class, call.Use = "Element", e.GiveFiles(ctx, by, t, q.Files)
	case q.ClosedRoots:
		call.Class, call.Use = "Array", e.AdoptRoots(ctx, t, frame, script)
	}
	done.Value, done.Exception, err = e.CallScript(ctx, t, frame, script, call)
	return done, err
}

// ScriptCall is a call of a function of a script. The function returns JSON, or an object of a class.
type ScriptCall struct {
	Function string
	Args     []json.RawMessage
	OnDialog string
	Class    string // "Element" or "Array"; "" for JSON
	// Use takes the object, by its id, and returns the value of the call instead.
	Use func(object string) (json.RawMessage, *api.Error)
}

// knownScript returns a script with its text, which it keeps for later requests. The mux is locked.
func (e *Verbs) knownScript(s api.PageScript) (api.PageScript, *api.Error) {
	if len(s.SHA256) != 64 {
		return s, api.Errorf(api.CodeInvalidArgs, "%q is not a SHA-256", manifest.Clip(s.SHA256, 80))
	}
	key := s.World() + s.SHA256
	if s.Text == "" {
		s.Text = e.scripts[key]
	}
	if s.Text == "" {
		return s, api.Errorf(api.CodeInvalidArgs, "%s", api.ErrNoScript.Error())
	}
	if len(e.scripts) >= maxScripts {
		clear(e.scripts)
	}
	e.scripts[key] = s.Text
	return s, nil
}

// RegisterScript makes the script run at the start of each document of the caller's session.
func (e *Verbs) RegisterScript(by api.Caller, s api.PageScript) *api.Error {
	e.Mux.Lock()
	defer e.Mux.Unlock()
	set := e.Owners.Setups.Of(by.SessionKey())
	for _, other := range set.Scripts {
		if other.World() == s.World() {
			return nil
		}
	}
	if len(set.Scripts) >= maxScripts {
		return api.Errorf(api.CodeLimitExceeded, "%d scripts run at the start of the session's documents, which is the limit",
			maxScripts)
	}
	set.Scripts = append(set.Scripts, s)
	e.Owners.ApplyToAll(by.SessionKey())
	return nil
}

// CallScript calls a function of a script in a frame. The document may change meanwhile; a call that has not begun is
// repeated in the new one.
func (e *Verbs) CallScript(ctx context.Context, t *target.Target, frame string, s api.PageScript, q ScriptCall) (
	value, exception json.RawMessage, err *api.Error,
) {
	for range maxScriptAttempts {
		var world map[string]any // the parameter that names it
		if world, err = e.scriptWorld(ctx, t, frame, s); err != nil {
			return nil, nil, err
		}
		args := []map[string]any{{"value": e.documents.next()}, {"value": q.Function}}
		for _, arg := range q.Args {
			args = append(args, map[string]any{"value": arg})
		}
		call := map[string]any{"functionDeclaration": callExport(), "arguments": args, "returnByValue": true,
			"awaitPromise": true, "silent": true, "userGesture": true}
		if q.Class != "" {
			call["functionDeclaration"], call["returnByValue"] = callByReference(q.Class), false
		}
		for name, id := range world {
			call[name] = id
		}
		var raw json.RawMessage
		raw, err = e.sender.Do(ctx, t, "Runtime.callFunctionOn", scan.Marshal(call), target.CallOptions{OnDialog: q.OnDialog})
		if err != nil {
			if isContextGone(err) {
				continue
			}
			return nil, nil, err
		}
		if exception := scan.Field(raw, "exceptionDetails"); exception != nil {
			return nil, exception, nil
		}
		if object := scan.Text(raw, "result", "objectId"); object != "" {
			defer post(e.sender, t, runtime.ReleaseObject, runtime.ReleaseObjectParams{
				ObjectID: runtime.RemoteObjectID(object)})
			value, err := q.Use(object)
			return value, nil, err
		}
		switch scan.Text(raw, "result", "value", "state") {
		case "called":
			return scan.Field(raw, "result", "value", "value"), nil, nil
		case "unknown":
			return nil, nil, api.Errorf(api.CodeInvalidArgs, "script %s has no function %q", s.Name,
				manifest.Clip(q.Function, 80))
		}
		world["expression"], world["silent"] = s.Program(), true
		if id, numbered := world["executionContextId"]; numbered { // the same parameter has another name here
			delete(world, "executionContextId")
			world["contextId"] = id
		}
		if raw, err = e.sender.Do(ctx, t, "Runtime.evaluate", scan.Marshal(world)); err != nil {
			if isContextGone(err) {
				continue
			}
			return nil, nil, err
		}
		if exception := scan.Field(raw, "exceptionDetails"); exception != nil {
			return nil, exception, nil
		}
	}
	if err == nil {
		err = api.Errorf(api.CodeBusy, "the page changes documents all the time, so nothing was called; try again")
	}
	return nil, nil, err
}

// documentNumbers numbers documents from 1 on, each differently. A number modulo documentCycle cannot be foreseen from
// others, and repeats itself only after that many.
type documentNumbers struct {
	given        *atomic.Int64
	step, offset int64
}

// documentCycle is how many words of three letters there are, which plugins make of the numbers.
const documentCycle = 26 * 26 * 26

// newDocumentNumbers begins a sequence at random.
func newDocumentNumbers() documentNumbers {
	n := documentNumbers{given: new(atomic.Int64), offset: rand.Int64N(documentCycle)}
	for n.step%2 == 0 || n.step%13 == 0 { // with a divisor of the cycle, numbers would repeat themselves
		n.step = rand.Int64N(documentCycle)
	}
	return n
}

// next returns the next number.
func (n *documentNumbers) next() int64 {
	i := n.given.Add(1) - 1
	return i/documentCycle*documentCycle + (i%documentCycle*n.step+n.offset)%documentCycle + 1
}

// maxScriptAttempts bounds how often a call is sent: to a context that is gone, to one without the script, and again.
const maxScriptAttempts = 6

// isContextGone reports whether Chrome did not run a call because its document had been replaced.
func isContextGone(err *api.Error) bool {
	if err.Chrome == nil {
		return false
	}
	m := err.Chrome.Message
	return strings.Contains(m, "Cannot find context") || strings.Contains(m, "uniqueContextId not found")
}

// scriptWorld returns the parameter that names the isolated world of a script in a frame, which it creates if
// necessary.
func (e *Verbs) scriptWorld(ctx context.Context, t *target.Target, frame string, s api.PageScript) (
	map[string]any, *api.Error,
) {
	find := func() string { return scan.Text(e.scriptContext(t, frame, s), "uniqueId") }
	if unique := find(); unique != "" {
		return map[string]any{"uniqueContextId": unique}, nil
	}
	made, err := target.Execute(ctx, e.sender, t, page.CreateIsolatedWorld,
		page.CreateIsolatedWorldParams{FrameID: cdp.FrameID(frame), WorldName: s.World()})
	if err != nil {
		return nil, err
	}
	if unique := find(); unique != "" { // its event came first
		return map[string]any{"uniqueContextId": unique}, nil
	}
	return map[string]any{"executionContextId": made.ExecutionContextID}, nil
}

// scriptContext returns the execution context of a script in a frame, as Chrome has reported it; nil if it has not.
func (e *Verbs) scriptContext(t *target.Target, frame string, s api.PageScript) json.RawMessage {
	e.Mux.Lock()
	defer e.Mux.Unlock()
	return t.ContextWhere(func(c json.RawMessage) bool {
		return scan.Text(c, "name") == s.World() && scan.Text(c, "auxData", "frameId") == frame
	})
}
