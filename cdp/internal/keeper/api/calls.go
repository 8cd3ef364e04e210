package api

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/parley-tools/parley/manifest"
)

// Closed is what a close has closed. Browser is the browser's name if it ended, because nothing was left in it.
type Closed struct {
	Targets  []string `json:"targets"`
	Contexts []string `json:"contexts"`
	Browser  string   `json:"browser,omitempty"`
}

// SessionInfo describes what a session has in a browser.
type SessionInfo struct {
	Session string `json:"session"` // its key
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
	// Enable are domains that the keeper enables for the call, in this order, those of the reviewed table alone. The
	// caller may enable each: the keeper does not ask. Nil enables nothing.
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
	// Sessions are those that have anything in the browser: all for the person, without the current pages of others
	// unless all is asked for; its own for a named session of the command line; none for other callers.
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

// Values of Wait: what a call that navigates a page waits for. Empty means WaitNone; of [OpenRequest], WaitLoad.
const (
	WaitNone = "none" // nothing: the answer is Chrome's own
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

// Enabled says which domains the keeper enabled for a call, those that need others first.
type Enabled struct {
	Off  []string `json:"off,omitempty"`  // disabled again
	Kept []string `json:"kept,omitempty"` // still enabled: ids or settings of the call end with them
}

// None reports whether nothing was enabled.
func (e Enabled) None() bool { return len(e.Off)+len(e.Kept) == 0 }
