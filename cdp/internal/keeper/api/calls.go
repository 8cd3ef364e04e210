package api

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/parley-tools/parley/manifest"
)

// Operation is an operation of the keeper with a request Q and a response R, by its name in requests.
type Operation[Q, R any] string

// The operations.
const (
	// OpOpen opens a page, waits for its load event and makes it the current one.
	OpOpen Operation[OpenRequest, Page] = "open"
	// OpSaveState returns what the caller's session stores for origins, in their canonical spelling.
	OpSaveState Operation[StateRequest, State] = "save_state"
	// OpLoadState puts the part of a state that belongs to origins into the caller's session.
	OpLoadState Operation[StateRequest, StateLoaded] = "load_state"
	// OpType types a secret into the focused element of a target.
	OpType Operation[TypeRequest, Typed] = "type"
	// OpUploads returns the folder for files that pages of the caller's session may get; see [ScriptRequest.Files].
	OpUploads Operation[struct{}, UploadFolder] = "uploads"
	// OpTargets returns all targets, the oldest first.
	OpTargets Operation[VerbRequest[struct{}], TargetList] = "targets"
	// OpCloseTarget closes one page; an empty target means the current one. If the page asks whether it may be left, it
	// is closed only if OnDialog is DialogAccept.
	OpCloseTarget Operation[TargetRequest, Page] = "close_target"
	// OpStatus returns the state of the keeper and its browser, with the targets of the caller's session, or of all
	// sessions for a person who sets All.
	OpStatus Operation[StatusRequest, Status] = "status"
	// OpEvents returns stored events.
	OpEvents Operation[EventsRequest, Events] = "events"
	// OpSessions returns the sessions that have anything in the browser.
	OpSessions Operation[struct{}, []SessionInfo] = "sessions"
	// OpEndConnection tells the keeper that the caller's connection has ended.
	OpEndConnection Operation[struct{}, struct{}] = "end_connection"

	// Methods of the keeper's client use these.

	OpScript Operation[ScriptRequest, ScriptResult] = "script"
	OpClose  Operation[CloseRequest, Closed]        = "close"
	OpStop   Operation[struct{}, struct{}]          = "stop"
)

// Closed is what a close has closed. Browser is the browser's name if it ended, because nothing was left in it.
type Closed struct {
	Targets  []string `json:"targets"`
	Contexts []string `json:"contexts"`
	Browser  string   `json:"browser,omitempty"`
}

// SessionInfo describes what a session has in a browser.
type SessionInfo struct {
	Session string `json:"session"` // the key
	Pages   int    `json:"pages"`
	Current string `json:"current,omitempty"` // URL of the current page
	// Used is the time of the session's last call that could use pages, in ms since the Unix epoch.
	Used int64 `json:"used,omitempty"`
}

// BrowserTarget addresses the browser itself instead of a page.
const BrowserTarget = "browser"

// Values of OnDialog: what a call does with a JavaScript dialog that blocks it.
const (
	dialogFail    = "fail"   // the default: the call fails with CodeBusy
	DialogAccept  = "accept" // or "accept=TEXT", which fills a prompt
	DialogDismiss = "dismiss"
)

// DefaultTimeout bounds a call whose timeout is zero.
const DefaultTimeout = 30 * time.Second

// CallRequest is one DevTools command.
type CallRequest struct {
	// Target is a target id, a prefix of one, a part of a URL, or an index into Targets. Empty means the current
	// target, or the browser for Browser, Target and SystemInfo commands. BrowserTarget sends any command to the
	// browser.
	Target string          `json:"target,omitempty"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params,omitempty"`
	// MaxBytes limits the result; a larger one fails with CodeLimitExceeded. Zero means Config.MaxMessage.
	MaxBytes int64 `json:"max_bytes,omitempty"`
	// Pieces is set by [Client.CallTo]: a large result is sent in pieces, whatever its size.
	Pieces   bool   `json:"pieces,omitempty"`
	OnDialog string `json:"on_dialog,omitempty"`
	// Wait is what the call waits for if it navigates its page; see WaitNone.
	Wait string `json:"wait,omitempty"`
	// Enable are domains that the keeper enables for the call, in this order. They must be in the reviewed table. The
	// host has checked that the caller may enable each: the keeper does not ask. Nil enables nothing.
	Enable []string `json:"enable,omitempty"`
}

// VerbRequest runs a verb that needs nothing of the host, with the parameters that its manifest describes.
type VerbRequest[Params any] struct {
	VerbOptions
	Params Params `json:"params"`
}

// VerbOptions are the options of a call, as in [CallRequest]. A verb ignores those that do not concern it.
type VerbOptions struct {
	Target   string `json:"target,omitempty"`
	OnDialog string `json:"on_dialog,omitempty"`
	Wait     string `json:"wait,omitempty"`
}

// OpenRequest opens a page and waits for its load event.
type OpenRequest struct {
	URL      string `json:"url,omitempty"` // empty: about:blank
	OnDialog string `json:"on_dialog,omitempty"`
	Wait     string `json:"wait,omitempty"`
}

// Page is the result of open, activate and close_target. Only open sets Status, the HTTP status of the page's document;
// it is zero for URLs of other schemes.
type Page struct {
	Browser string `json:"browser"`
	Target  string `json:"target"`
	URL     string `json:"url"`
	Title   string `json:"title"`
	Status  int    `json:"status,omitempty"`
}

// Target is a page, frame, worker or popup.
type Target struct {
	Index    int    `json:"index"`
	ID       string `json:"id"`
	Type     string `json:"type"`
	URL      string `json:"url"`
	Title    string `json:"title"`
	Current  bool   `json:"current,omitempty"`
	Attached bool   `json:"attached"`
	Crashed  bool   `json:"crashed,omitempty"`
	// Owner is the session that the target belongs to, the user's without "user/". It is empty for the caller's own
	// targets.
	Owner string `json:"owner,omitempty"`
	// Parent is the page of a frame or worker. Opener is the page that opened this one.
	Parent string `json:"parent,omitempty"`
	Opener string `json:"opener,omitempty"`
	// Since is the number of its session's newest event when it appeared.
	Since  int64   `json:"since,omitempty"`
	Dialog *Dialog `json:"dialog,omitempty"`
}

// TargetList is the result of targets, the oldest first.
type TargetList struct {
	Targets []Target `json:"targets"`
}

// Status describes a keeper and its browser.
type Status struct {
	Browser    string   `json:"browser"`
	Mode       string   `json:"mode"` // launched or attached
	Product    string   `json:"product"`
	Revision   string   `json:"revision"`
	Protocol   string   `json:"protocol"`
	Executable string   `json:"executable,omitempty"`
	FoundBy    string   `json:"found_by,omitempty"`
	Why        string   `json:"why,omitempty"` // why this executable was chosen
	Endpoint   string   `json:"endpoint,omitempty"`
	Headed     bool     `json:"headed"`
	Profile    string   `json:"profile,omitempty"`
	Temporary  bool     `json:"temporary_profile"`
	KeeperPID  int      `json:"keeper_pid,omitempty"`
	ChromePID  int      `json:"chrome_pid,omitempty"`
	Version    string   `json:"version"`
	Wire       int      `json:"wire"`
	UptimeMS   int64    `json:"uptime_ms,omitempty"`
	IdleLimit  int64    `json:"idle_limit_ms"` // 0 means no limit
	Calls      int64    `json:"calls,omitempty"`
	Clients    int      `json:"clients,omitempty"`
	Targets    []Target `json:"targets"`
	// Sessions are sessions that have anything in the browser. A person gets all of them, but the current pages of other
	// sessions only with All; a named session of the command line gets itself; other callers get none.
	Sessions []SessionInfo `json:"sessions,omitempty"`
	Events   RingInfo      `json:"events,omitzero"`
	Log      string        `json:"log,omitempty"`
	Notes    []string      `json:"notes,omitempty"`
}

// StatusRequest asks for a [Status].
type StatusRequest struct {
	All bool `json:"all,omitempty"` // the targets of all sessions, for a person
}

// CloseRequest closes what a session has opened.
type CloseRequest struct {
	// Session is the session to close, for a person. "" means the caller's.
	Session string `json:"session,omitempty"`
}

// TargetRequest activates or closes a target.
type TargetRequest struct {
	Target   string `json:"target"`
	OnDialog string `json:"on_dialog,omitempty"` // for close_target only
}

// Dialog is an open JavaScript dialog.
type Dialog struct {
	Type    string `json:"type"` // alert, confirm, prompt or beforeunload
	Message string `json:"message"`
	URL     string `json:"url,omitempty"`
	Default string `json:"defaultPrompt,omitempty"` // the preset text of a prompt
}

// Public returns the part of a status that concerns the caller's pages. Only the command line is shown the machine and
// what other callers do.
func (s Status) Public() Status {
	return Status{Browser: s.Browser, Mode: s.Mode, Product: s.Product, Revision: s.Revision, Protocol: s.Protocol,
		Headed:  s.Headed,
		Version: s.Version, Wire: s.Wire, IdleLimit: s.IdleLimit, Targets: s.Targets}
}

// Values of Wait: what a call that navigates a page waits for. Empty means WaitNone, or WaitLoad in an [OpenRequest].
const (
	WaitNone = "none" // nothing: the call returns Chrome's own reply
	WaitLoad = "load" // the load event
	WaitIdle = "idle" // the load event, and half a second without a request under way
)

// CheckWait rejects an unknown value of Wait.
func CheckWait(s string) *Error {
	switch s {
	case "", WaitNone, WaitLoad, WaitIdle:
		return nil
	}
	return Errorf(CodeInvalidArgs, "wait is %q; expected load, idle or none", manifest.Clip(s, 40))
}

// CheckOnDialog rejects an unknown value of OnDialog.
func CheckOnDialog(s string) *Error {
	if s == "" || s == dialogFail || AnswersDialogs(s) {
		return nil
	}
	return Errorf(CodeInvalidArgs, "on_dialog is %q; expected accept, accept=TEXT, dismiss or fail", manifest.Clip(s, 40))
}

// AnswersDialogs reports whether a value of OnDialog closes dialogs, by accepting or by dismissing them.
func AnswersDialogs(onDialog string) bool {
	return onDialog == DialogDismiss || AcceptsDialogs(onDialog)
}

// AcceptsDialogs reports whether a value of OnDialog accepts dialogs.
func AcceptsDialogs(onDialog string) bool {
	return onDialog == DialogAccept || strings.HasPrefix(onDialog, DialogAccept+"=")
}

// BeforeUnload is the type of the dialog in which a page asks whether it may be left.
const BeforeUnload = "beforeunload"

// Enabled says which domains the keeper enabled for a call. A domain that needs others comes before them.
type Enabled struct {
	Off  []string `json:"off,omitempty"`  // disabled again
	Kept []string `json:"kept,omitempty"` // still enabled, because ids or settings of the call would end with them
}

// None reports whether nothing was enabled.
func (e Enabled) None() bool { return len(e.Off)+len(e.Kept) == 0 }

// TypeRequest types a secret into the focused element of a target.
type TypeRequest struct {
	Target string `json:"target,omitempty"` // as in CallRequest
	Text   string `json:"text"`
	// Origins are the origins into whose documents the text may be typed, in canonical spelling.
	Origins []string `json:"origins"`
	Submit  bool     `json:"submit,omitempty"` // press Enter afterwards
}

// Typed is the result of a TypeRequest.
type Typed struct {
	Target string `json:"target"` // the page, or the frame if that is a target of its own
	Origin string `json:"origin"` // the origin of the document that has the text now
}

// InputRequest sends input events to a page, one directly after the other.
type InputRequest struct {
	// Events have the parameters of the command that their type belongs to; see inputCommand. A [Drag] stands alone.
	Events []json.RawMessage `json:"events"`
	// Aim, if set, returns where a [Drag] ends once it has begun, since lists move items to make room for it.
	Aim func(Drag) Drag `json:"-"`
}

// InputSent is the result of an InputRequest.
type InputSent struct {
	Target string `json:"target"`
	Events int    `json:"events"`
	// Dragged says that the page left a [Drag] to the browser, which dropped the data.
	Dragged bool `json:"dragged,omitempty"`
}

// Drag is an event that presses the mouse at a point, moves it to another point and releases it there. If the page
// leaves the drag to the browser, as for a draggable element, the browser drops the data with trusted events.
type Drag struct {
	Type string  `json:"type"` // "drag"
	X    float64 `json:"x"`
	Y    float64 `json:"y"`
	ToX  float64 `json:"toX"`
	ToY  float64 `json:"toY"`
	// Hold is how long the mouse rests before it moves, and before it is released, in ms.
	Hold float64 `json:"hold,omitempty"`
}

// UploadFolder is the result of [OpUploads].
type UploadFolder struct {
	Path string `json:"path"`
}

// PageRequest runs a verb of the plugin page, with the parameters that its manifest describes.
type PageRequest struct {
	VerbRequest[json.RawMessage]
	// Secrets are what the verb, or the steps of do, may type into fields, by the names in their parameters.
	Secrets map[string]PageSecret `json:"secrets,omitempty"`
}

// PageSecret is a secret and the origins of the documents into which it may be typed.
type PageSecret struct {
	Text    string   `json:"text"`
	Origins []string `json:"origins"`
}

// PageStep is a step of the verb do.
type PageStep struct {
	Tool   string          `json:"tool"`
	Params json.RawMessage `json:"params"`
}

// StepsDone is the result of do.
type StepsDone struct {
	Done    int          `json:"done"`
	URL     string       `json:"url,omitempty"` // if it differs from the URL that was opened
	Results []StepResult `json:"results,omitempty"`
	Diff    string       `json:"diff,omitempty"`
}

// FailedStep returns the error of a step, numbered from 1, with what was done before the step.
func (r StepsDone) FailedStep(step int, tool string, err *Error) *Error {
	e, details := *err, map[string]any{"step": step, "done": r.Done}
	e.Message = fmt.Sprintf("step %d, %s: %s", step, tool, err.Message)
	if err.Invalid != nil {
		wrong := *err.Invalid
		wrong.Pointer = fmt.Sprintf("/steps/%d/params%s", step-1, wrong.Pointer)
		e.Invalid = &wrong
	}
	if len(r.Results) > 0 {
		details["results"] = r.Results
	}
	if err.Details != nil {
		details["details"] = err.Details
	}
	e.Details = details
	return &e
}

// StepResult is the result of a step.
type StepResult struct {
	Step   int             `json:"step"` // from 1
	Result json.RawMessage `json:"result"`
}

// PageResult is the result of a verb of the plugin page.
type PageResult struct {
	Data   json.RawMessage `json:"data"`
	Before json.RawMessage `json:"before,omitempty"` // what happened on the document after the last answer
	// Subject is what the verb acted on, for records: the role and name of an element, and the address of its document.
	Subject  string   `json:"subject,omitempty"`
	Warnings []string `json:"warnings,omitempty"`
}

// RouteRule says what happens to the requests of a session's pages that it matches.
type RouteRule struct {
	// URL is a pattern: "*" matches any number of characters, "?" one, and a backslash escapes.
	URL    string `json:"url"`
	Method string `json:"method,omitempty"` // "": any
	Type   string `json:"type,omitempty"`   // the resource type, as in Network.ResourceType; "": any
	// Action is mock, block or delay.
	Action  string            `json:"action"`
	Status  int               `json:"status,omitempty"` // mock; 0: 200
	Headers map[string]string `json:"headers,omitempty"`
	Body    string            `json:"body,omitempty"`
	Binary  []byte            `json:"body_base64,omitempty"` // follows Body
	DelayMS int64             `json:"delay_ms,omitempty"`    // for every action
}

// Actions of a [RouteRule].
const (
	RouteMock  = "mock"  // answer with Status, Headers and content; nothing is sent
	RouteBlock = "block" // fail
	RouteDelay = "delay" // send, after the delay
)

// FetchBusy returns the error for a target whose requests a caller already pauses itself.
func FetchBusy(target string) *Error {
	return Errorf(CodeBusy, "Fetch is enabled in target %s, and pauses its requests: call Fetch.disable there first",
		target)
}

// RouteRequest changes the rules of the caller's session. The zero value leaves them as they are.
type RouteRequest struct {
	Rules *[]RouteRule `json:"rules,omitempty"` // replace the present rules; nil keeps them
	// Add are rules that come before the present ones. A rule replaces one with the same URL and method.
	Add []RouteRule `json:"add,omitempty"`
	// Remove are the URL patterns of rules to remove.
	Remove []string `json:"remove,omitempty"`
}

// Routed are the rules of a session.
type Routed struct {
	Rules []RoutedRule `json:"rules"`
}

// RoutedRule is a rule without its content, and how many requests it has matched.
type RoutedRule struct {
	URL      string `json:"url"`
	Method   string `json:"method,omitempty"`
	Type     string `json:"type,omitempty"`
	Action   string `json:"action"`
	Requests int    `json:"requests"`
}

// Bounds of the rules of a session.
const (
	MaxRouteRules = 64
	MaxRouteBytes = 2 << 20 // of all bodies and headers
	maxRouteDelay = time.Minute
)

// Check rejects a rule that cannot be followed.
func (r *RouteRule) Check() *Error {
	switch {
	case r.URL == "":
		return Errorf(CodeInvalidArgs, "a rule has no url")
	case !slices.Contains([]string{RouteMock, RouteBlock, RouteDelay}, r.Action):
		return Errorf(CodeInvalidArgs, "%q is not an action; expected mock, block or delay", manifest.Clip(r.Action, 40))
	case r.Status != 0 && (r.Status < 200 || r.Status > 599):
		return Errorf(CodeInvalidArgs, "the status %d is not between 200 and 599", r.Status)
	case r.DelayMS < 0 || r.DelayMS > maxRouteDelay.Milliseconds():
		return Errorf(CodeInvalidArgs, "the delay %d ms is not between 0 and %d", r.DelayMS, maxRouteDelay.Milliseconds())
	}
	return nil
}

// ScriptRequest calls a function of a script that a plugin ships, in an isolated world of a frame: it sees the
// document, and nothing that the page's scripts have replaced. Each script has a world of its own in each document.
type ScriptRequest struct {
	Target string     `json:"target,omitempty"` // as in CallRequest, or the id of a frame
	Script PageScript `json:"script"`
	// Function is the name of an export of the script; "" calls none.
	Function string            `json:"function,omitempty"`
	Args     []json.RawMessage `json:"args,omitempty"`
	// DocumentStart runs the script at the start of each document of the session from now on, until the session ends.
	DocumentStart bool `json:"document_start,omitempty"`
	// Files are given to the file input that the function returns: files in the folder of [OpUploads], and
	// downloads of the session.
	Files []string `json:"files,omitempty"`
	// ClosedRoots says that the function returns elements. For each of them that has a closed shadow root, the script's
	// function adopt is called with the element and that root, which no script can get itself. The value is the number
	// of such elements.
	ClosedRoots bool   `json:"closed_roots,omitempty"`
	OnDialog    string `json:"on_dialog,omitempty"`
}

// ErrNoScript means that the keeper does not have the text of a script.
var ErrNoScript = errors.New("the keeper does not have the text of the script")

// ScriptResult is the result of a ScriptRequest.
type ScriptResult struct {
	Target string `json:"target"` // the page, or the frame if that is a target of its own
	Frame  string `json:"frame"`  // the id of the frame
	// LastSeq is the number of the session's newest event before the call.
	LastSeq int64           `json:"last_seq,omitempty"`
	Value   json.RawMessage `json:"value,omitempty"` // what the function returned; nil for undefined
	// Exception is what the function threw, as Chrome reports it; nil if it threw nothing.
	Exception json.RawMessage `json:"exception,omitempty"`
}

// PageScript is a script that a plugin ships.
type PageScript struct {
	Plugin string `json:"plugin"`
	Name   string `json:"name"`
	SHA256 string `json:"sha256"`
	Text   string `json:"text,omitempty"`
}

// World returns the name of the isolated worlds in which the script runs. No two scripts share one.
func (s PageScript) World() string { return "parley/" + s.Plugin + "/" + s.Name + "/" + s.SHA256[:16] }

// ExportsKey is the property of the world's global object that holds the exports and the document that they are for.
// The document matters because the blank document of a popup passes its global object on to the next document. A page
// can give an element this name, but elements are not own properties of the global object.
const ExportsKey = "parleyExports"

// Program returns the text of the script as a program that keeps the exports. It runs once in a document.
func (s PageScript) Program() string {
	return fmt.Sprintf(`if (!Object.hasOwn(globalThis, %[1]q) || globalThis[%[1]q].document !== document) {
	const exports = Object.create(null);
	(function (exports) { "use strict";
%[2]s
	})(exports);
	Object.defineProperty(globalThis, %[1]q, {value: {document, exports, number: 0}, configurable: true});
}`, ExportsKey, s.Text)
}
