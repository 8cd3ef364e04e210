package keeper

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/page"

	"github.com/parley-tools/parley/manifest"
)

// ScriptRequest calls a function of a script that a plugin ships, in an isolated world of a frame: it sees the
// document, and nothing that the page's scripts have replaced. Each script has a world of its own in each document.
type ScriptRequest struct {
	Target string     `json:"target,omitempty"` // as in CallRequest, or the id of a frame
	Script pageScript `json:"script"`
	// Function is the name of an export of the script; "" calls none.
	Function string            `json:"function,omitempty"`
	Args     []json.RawMessage `json:"args,omitempty"`
	// DocumentStart runs the script at the start of each document of the session from now on, until the session ends.
	DocumentStart bool `json:"document_start,omitempty"`
	// Files are given to the file input that the function returns: files in the folder of [Client.UploadFolder], and
	// downloads of the session.
	Files []string `json:"files,omitempty"`
	// ClosedRoots says that the function returns elements. The script's function adopt is called with each of them that
	// has a closed shadow root, and with that root, which no script can get itself. The value is how many those are.
	ClosedRoots bool   `json:"closed_roots,omitempty"`
	OnDialog    string `json:"on_dialog,omitempty"`
	TimeoutMS   int64  `json:"timeout_ms,omitempty"`
}

// NewScriptRequest returns a request for a script of a plugin. SHA256 is the digest of its text. The text may be "" if
// the keeper has it: otherwise the error of the request is [ErrNoScript].
func NewScriptRequest(plugin, name, sha256, text string) ScriptRequest {
	return ScriptRequest{Script: pageScript{Plugin: plugin, Name: name, SHA256: sha256, Text: text}}
}

// ErrNoScript means that the keeper does not have the text of a script.
var ErrNoScript = errors.New("the keeper does not have the text of the script")

// ScriptResult is the result of a ScriptRequest.
type ScriptResult struct {
	Target string `json:"target"` // the page, or the frame if that is a target of its own
	Frame  string `json:"frame"`  // the id of the frame
	// LastSeq is the number of the session's newest event before the call.
	LastSeq int64           `json:"last_seq,omitempty"`
	Value   json.RawMessage `json:"value,omitempty"` // what the function returned; nil if that is undefined
	// Exception is what it threw, as Chrome reports it; nil if nothing.
	Exception json.RawMessage `json:"exception,omitempty"`
}

// pageScript is a script that a plugin ships.
type pageScript struct {
	Plugin string `json:"plugin"`
	Name   string `json:"name"`
	SHA256 string `json:"sha256"`
	Text   string `json:"text,omitempty"`
}

// world returns the name of the isolated worlds in which the script runs. No two scripts share one.
func (s pageScript) world() string { return "parley/" + s.Plugin + "/" + s.Name + "/" + s.SHA256[:16] }

// exportsKey is the property of the world's global object that has the exports, and the document that they are for: the
// blank document of a popup gives its global object to the next one. A page can name an element like it, but elements
// are not own properties of the global object.
const exportsKey = "parleyExports"

// program returns the text of the script as a program that keeps the exports. It runs once in a document.
func (s pageScript) program() string {
	return fmt.Sprintf(`if (!Object.hasOwn(globalThis, %[1]q) || globalThis[%[1]q].document !== document) {
	const exports = Object.create(null);
	(function (exports) { "use strict";
%[2]s
	})(exports);
	Object.defineProperty(globalThis, %[1]q, {value: {document, exports, number: 0}, configurable: true});
}`, exportsKey, s.Text)
}

// callExport returns the function of JavaScript that calls an export. Its object is what is kept of the script in this
// document: the document, and a number that no other document of this browser has.
func callExport() string {
	return fmt.Sprintf(`async function (number, name, ...args) {
	const kept = Object.hasOwn(globalThis, %[1]q) ? globalThis[%[1]q] : null;
	if (!kept || kept.document !== document) return {state: "missing"};
	if (typeof kept.exports[name] !== "function") return {state: "unknown"};
	kept.number ||= number;
	return {state: "called", value: await kept.exports[name].apply(kept, args)};
}`, exportsKey)
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

// runScript serves a ScriptRequest.
func (e *engine) runScript(ctx context.Context, by Caller, q ScriptRequest) (ScriptResult, *Error) {
	if err := checkOnDialog(q.OnDialog); err != nil {
		return ScriptResult{}, err
	}
	if by.hasContext() {
		_, release, err := e.enterScope(ctx, by)
		if err != nil {
			return ScriptResult{}, err
		}
		defer release()
	}
	e.mu.Lock()
	e.countCall(by)
	script, err := e.knownScript(q.Script)
	if err == nil && q.DocumentStart {
		err = e.registerScript(by, script)
	}
	e.mu.Unlock()
	if err != nil {
		return ScriptResult{}, err
	}
	if q.Function == "" {
		return ScriptResult{}, nil
	}
	t, frame, err := e.locate(by, q.Target)
	if err != nil {
		return ScriptResult{}, err
	}
	e.mu.Lock()
	e.claim(by, t)
	last := e.events.lastSeqOf(t.owner)
	e.mu.Unlock()
	if !hasPage(t.kind) {
		return ScriptResult{}, errf(CodeInvalidArgs, "target %s is a %s, which has no document", t.id, t.kind)
	}
	if q.Files, err = e.filesFor(by, t, q.Files); err != nil {
		return ScriptResult{}, err
	}
	if err := e.attach(ctx, t, ""); err != nil {
		return ScriptResult{}, err
	}
	done := ScriptResult{Target: t.id, Frame: frame, LastSeq: last}
	done.Value, done.Exception, err = e.callScript(ctx, t, frame, script, q)
	return done, err
}

// knownScript returns a script with its text, which it keeps for later requests. The engine is locked.
func (e *engine) knownScript(s pageScript) (pageScript, *Error) {
	if len(s.SHA256) != 64 {
		return s, errf(CodeInvalidArgs, "%q is not a SHA-256", manifest.Clip(s.SHA256, 80))
	}
	key := s.world() + s.SHA256
	if s.Text == "" {
		s.Text = e.scripts[key]
	}
	if s.Text == "" {
		return s, errf(CodeInvalidArgs, "%s", ErrNoScript.Error())
	}
	if len(e.scripts) >= maxScripts {
		clear(e.scripts)
	}
	e.scripts[key] = s.Text
	return s, nil
}

// registerScript makes the script run at the start of each document of the caller's session. The engine is locked.
func (e *engine) registerScript(by Caller, s pageScript) *Error {
	set := e.setups.of(by.session())
	for _, other := range set.scripts {
		if other.world() == s.world() {
			return nil
		}
	}
	if len(set.scripts) >= maxScripts {
		return errf(CodeLimitExceeded, "%d scripts run at the start of the session's documents, which is the limit",
			maxScripts)
	}
	set.scripts = append(set.scripts, s)
	e.applyToAll(by.session())
	return nil
}

// callScript calls a function of a script in a frame. The document may change meanwhile; a call that has not begun is
// repeated in the new one.
func (e *engine) callScript(ctx context.Context, t *target, frame string, s pageScript, q ScriptRequest) (
	value, exception json.RawMessage, err *Error,
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
		switch {
		case len(q.Files) > 0:
			call["functionDeclaration"], call["returnByValue"] = callByReference("Element"), false
		case q.ClosedRoots:
			call["functionDeclaration"], call["returnByValue"] = callByReference("Array"), false
		}
		for name, id := range world {
			call[name] = id
		}
		var raw json.RawMessage
		raw, err = e.do(ctx, t, "Runtime.callFunctionOn", mustJSON(call), callOptions{onDialog: q.OnDialog})
		if err != nil {
			if isContextGone(err) {
				continue
			}
			return nil, nil, err
		}
		if exception := field(raw, "exceptionDetails"); exception != nil {
			return nil, exception, nil
		}
		if object := text(raw, "result", "objectId"); object != "" {
			if q.ClosedRoots {
				adopted, err := e.adoptRoots(ctx, t, frame, s, object)
				return mustJSON(adopted), nil, err
			}
			return nil, nil, e.setFiles(ctx, t, object, q.Files)
		}
		switch text(raw, "result", "value", "state") {
		case "called":
			return field(raw, "result", "value", "value"), nil, nil
		case "unknown":
			return nil, nil, errf(CodeInvalidArgs, "script %s has no function %q", s.Name, manifest.Clip(q.Function, 80))
		}
		world["expression"], world["silent"] = s.program(), true
		if id, numbered := world["executionContextId"]; numbered { // the same parameter has another name here
			delete(world, "executionContextId")
			world["contextId"] = id
		}
		if raw, err = e.do(ctx, t, "Runtime.evaluate", mustJSON(world), callOptions{}); err != nil {
			if isContextGone(err) {
				continue
			}
			return nil, nil, err
		}
		if exception := field(raw, "exceptionDetails"); exception != nil {
			return nil, exception, nil
		}
	}
	if err == nil {
		err = errf(CodeBusy, "the page changes documents all the time, so nothing was called; try again")
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

func newDocumentNumbers() documentNumbers {
	n := documentNumbers{given: new(atomic.Int64), offset: rand.Int64N(documentCycle)}
	for n.step%2 == 0 || n.step%13 == 0 { // with a divisor of the cycle, numbers would repeat themselves
		n.step = rand.Int64N(documentCycle)
	}
	return n
}

func (n *documentNumbers) next() int64 {
	i := n.given.Add(1) - 1
	return i/documentCycle*documentCycle + (i%documentCycle*n.step+n.offset)%documentCycle + 1
}

// maxScriptAttempts bounds how often a call is sent: to a context that is gone, to one without the script, and again.
const maxScriptAttempts = 6

// isContextGone reports whether Chrome did not run a call because its document had been replaced.
func isContextGone(err *Error) bool {
	if err.Chrome == nil {
		return false
	}
	m := err.Chrome.Message
	return strings.Contains(m, "Cannot find context") || strings.Contains(m, "uniqueContextId not found")
}

// scriptWorld returns the parameter that names the isolated world of a script in a frame, which it creates if
// necessary.
func (e *engine) scriptWorld(ctx context.Context, t *target, frame string, s pageScript) (map[string]any, *Error) {
	find := func() string { return text(e.scriptContext(t, frame, s), "uniqueId") }
	if unique := find(); unique != "" {
		return map[string]any{"uniqueContextId": unique}, nil
	}
	made, err := execute(ctx, e.sender, t, page.CreateIsolatedWorld,
		page.CreateIsolatedWorldParams{FrameID: cdp.FrameID(frame), WorldName: s.world()}, callOptions{})
	if err != nil {
		return nil, err
	}
	if unique := find(); unique != "" { // its event came first
		return map[string]any{"uniqueContextId": unique}, nil
	}
	return map[string]any{"executionContextId": made.ExecutionContextID}, nil
}

// scriptContext returns the execution context of a script in a frame, as Chrome has reported it; nil if it has not.
func (e *engine) scriptContext(t *target, frame string, s pageScript) json.RawMessage {
	e.mu.Lock()
	defer e.mu.Unlock()
	return t.contextWhere(func(c json.RawMessage) bool {
		return text(c, "name") == s.world() && text(c, "auxData", "frameId") == frame
	})
}
