package verb

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/dom"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/parley-tools/parley/cdp/internal/keeper/api"
	"github.com/parley-tools/parley/cdp/internal/keeper/scan"
	"github.com/parley-tools/parley/cdp/internal/keeper/target"
	"github.com/parley-tools/parley/cdp/internal/keeper/tenant"
	"github.com/parley-tools/parley/manifest"
)

// callExport returns the JavaScript function that calls an export. The export's this is the object that is kept for
// the script in this document. It has the document, and a number that no other document of this browser has.
func callExport() string {
	return fmt.Sprintf(`async function (number, name, ...args) {
	const kept = Object.hasOwn(globalThis, %[1]q) ? globalThis[%[1]q] : null;
	if (!kept || kept.document !== document) return {state: "missing"};
	if (typeof kept.exports[name] !== "function") return {state: "unknown"};
	kept.number ||= number;
	return {state: "called", value: await kept.exports[name].apply(kept, args)};
}`, api.ExportsKey)
}

// callByReference is callExport for a function that returns an element, or an array of elements. It returns null if
// the document does not have the script.
func callByReference(class string) string {
	return fmt.Sprintf(`async function (number, name, ...args) {
	const {state, value} = await (%s).call(this, number, name, ...args);
	if (state === "missing") return null;
	if (!(value instanceof %s)) throw new TypeError(name + " did not return an %[2]s");
	return value;
}`, callExport(), class)
}

// maxScripts limits the scripts whose texts the keeper stores, and the scripts that run at the start of a session's
// documents.
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

// ScriptCall is a call of a script's function. The function returns JSON, or an object of a class.
type ScriptCall struct {
	Function string
	Args     []json.RawMessage
	OnDialog string
	Class    string // "Element" or "Array"; "" for JSON
	// Use receives the object by its id. Its result becomes the value of the call.
	Use func(object string) (json.RawMessage, *api.Error)
}

// knownScript returns a script with its text, which it stores for later requests. The mux is locked.
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
		var world map[string]any // the parameter that names the world
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
		maps.Copy(call, world)
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
	return nil, nil, api.RestlessPage()
}

// documentNumbers gives each document another number, from 1 on. A number modulo documentCycle cannot be predicted
// from others, and repeats only after documentCycle numbers.
type documentNumbers struct {
	given        *atomic.Int64
	step, offset int64
}

// documentCycle is the number of words of three letters, which plugins make of the numbers.
const documentCycle = 26 * 26 * 26

// newDocumentNumbers starts a sequence at random.
func newDocumentNumbers() documentNumbers {
	n := documentNumbers{given: new(atomic.Int64), offset: rand.Int64N(documentCycle)}
	for n.step%2 == 0 || n.step%13 == 0 { // with a divisor of the cycle, numbers would repeat earlier
		n.step = rand.Int64N(documentCycle)
	}
	return n
}

// next returns the next number.
func (n *documentNumbers) next() int64 {
	i := n.given.Add(1) - 1
	return i/documentCycle*documentCycle + (i%documentCycle*n.step+n.offset)%documentCycle + 1
}

// maxScriptAttempts bounds how often a call is sent: to a context that is gone, to a context without the script, and
// again.
const maxScriptAttempts = 20

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
	if unique := find(); unique != "" { // the event has already arrived
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

// maxHosts limits the elements that one call asks for closed shadow roots.
const maxHosts = 100

// AdoptRoots returns a function that takes an array of elements. It calls the script's function adopt for each
// element that has a closed shadow root, and returns the number of these elements.
func (e *Verbs) AdoptRoots(ctx context.Context, t *target.Target, frame string, s api.PageScript) func(string) (
	json.RawMessage, *api.Error,
) {
	return func(array string) (json.RawMessage, *api.Error) {
		adopted, err := e.adoptRoots(ctx, t, frame, s, array)
		return scan.Marshal(adopted), err
	}
}

func (e *Verbs) adoptRoots(ctx context.Context, t *target.Target, frame string, s api.PageScript, array string) (
	int, *api.Error,
) {
	group := "parley-closed-roots " + array // for this call only, because documents of a target are searched concurrently
	defer post(e.sender, t, runtime.ReleaseObjectGroup, runtime.ReleaseObjectGroupParams{ObjectGroup: group})
	var world struct{ ID runtime.ExecutionContextID }
	if json.Unmarshal(e.scriptContext(t, frame, s), &world) != nil {
		return 0, nil // the document has been replaced
	}
	hosts, err := target.Execute(ctx, e.sender, t, runtime.GetProperties,
		runtime.GetPropertiesParams{ObjectID: runtime.RemoteObjectID(array), OwnProperties: new(true)})
	if err != nil {
		return 0, err
	}
	adopted := 0
	for _, host := range hosts.Result[:min(len(hosts.Result), maxHosts)] {
		if host.Value == nil || host.Value.ObjectID == "" {
			continue // the array's length
		}
		described, err := target.Execute(ctx, e.sender, t, dom.DescribeNode,
			dom.DescribeNodeParams{ObjectID: host.Value.ObjectID})
		if err != nil {
			continue // the element is gone
		}
		for _, root := range described.Node.ShadowRoots {
			if root.ShadowRootType != cdp.ShadowRootTypeClosed {
				continue
			}
			resolved, err := target.Execute(ctx, e.sender, t, dom.ResolveNode, dom.ResolveNodeParams{
				BackendNodeID: root.BackendNodeID, ExecutionContextID: world.ID, ObjectGroup: group})
			if err != nil {
				continue
			}
			call := runtime.CallFunctionOnParams{ObjectID: host.Value.ObjectID, Silent: new(true),
				FunctionDeclaration: fmt.Sprintf("function (root) { globalThis[%q].exports.adopt(this, root); }", api.ExportsKey),
				Arguments:           []*runtime.CallArgument{{ObjectID: resolved.Object.ObjectID}}}
			_, err = target.Execute(ctx, e.sender, t, runtime.CallFunctionOn, call)
			if err == nil {
				adopted++
			}
		}
	}
	return adopted, nil
}

// UploadFolder returns the folder for files that the pages of the caller's session may get. It is removed with the
// session.
func (e *Verbs) UploadFolder(_ context.Context, by api.Caller, _ *tenant.Scope, _ struct{}) (
	api.UploadFolder, *api.Error,
) {
	e.Mux.Lock()
	defer e.Mux.Unlock()
	dir, err := e.Owners.Setups.UploadFolder(by.SessionKey())
	return api.UploadFolder{Path: dir}, err
}

// FilesFor returns the paths of the files that a page gets. These must be in the upload folder of the caller's
// session, or be downloads of the session, named as there.
func (e *Verbs) FilesFor(by api.Caller, t *target.Target, files []string) ([]string, *api.Error) {
	e.Mux.Lock()
	defer e.Mux.Unlock()
	var paths []string
	for _, file := range files {
		info, err := os.Lstat(file)
		downloads := e.Events.Downloads.FolderOf(t)
		switch set := e.Owners.Setups.BySession[by.SessionKey()]; {
		case err != nil || !info.Mode().IsRegular() || filepath.Clean(file) != file:
		case set != nil && set.Uploads != "" && filepath.Dir(filepath.Dir(file)) == set.Uploads:
			paths = append(paths, file)
			continue
		case downloads != nil && t.Owner == by.SessionKey() && filepath.Dir(file) == downloads.Dir:
			path, failed := e.Owners.Setups.Link(by.SessionKey(), file, downloads.Names[filepath.Base(file)])
			if failed != nil {
				return nil, failed
			}
			paths = append(paths, path)
			continue
		}
		return nil, api.Errorf(api.CodeDenied, "%s is neither a file that was handed on nor a download of this session",
			manifest.CleanLine(file))
	}
	return paths, nil
}

// GiveFiles returns a function that takes a file input and gives files to it. It fails for files that the caller may
// not use in the target.
func (e *Verbs) GiveFiles(ctx context.Context, by api.Caller, t *target.Target, files []string) func(string) (
	json.RawMessage, *api.Error,
) {
	return func(object string) (json.RawMessage, *api.Error) {
		paths, err := e.FilesFor(by, t, files)
		if err == nil {
			_, err = target.Execute(ctx, e.sender, t, dom.SetFileInputFiles, dom.SetFileInputFilesParams{Files: paths,
				ObjectID: runtime.RemoteObjectID(object)})
		}
		return nil, err
	}
}

// post is [target.Post] for a caller that has not locked the mux.
func post[P, R any](s *target.Sender, t *target.Target, c cdp.Command[P, R], params P) {
	s.Mux.Lock()
	defer s.Mux.Unlock()
	target.Post(s.Mux, t, c, params, nil)
}
