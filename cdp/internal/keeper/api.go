package keeper

import (
	"encoding/json"
	"time"
)

// BrowserTarget addresses the browser itself instead of a page.
const BrowserTarget = "browser"

// Values of OnDialog: what a call does with a JavaScript dialog that blocks it.
const (
	DialogFail    = "fail"   // the default: the call fails with CodeBusy
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
	// TimeoutMS bounds the call. Zero means the deadline of the context, else DefaultTimeout.
	TimeoutMS int64 `json:"timeout_ms,omitempty"`
	// MaxBytes limits the result; a larger one fails with CodeLimitExceeded. Zero means Config.MaxMessage.
	MaxBytes int64 `json:"max_bytes,omitempty"`
	// Pieces is set by [Client.CallInto]: a large result is sent in pieces, whatever its size.
	Pieces   bool   `json:"pieces,omitempty"`
	OnDialog string `json:"on_dialog,omitempty"`
	// Wait is what the call waits for if it navigates its page; see WaitNone.
	Wait string `json:"wait,omitempty"`
	// Enable are domains that the keeper enables for the call, in this order, those of the reviewed table alone. The
	// caller may enable each: the keeper does not ask. Nil enables nothing.
	Enable []string `json:"enable,omitempty"`
}

// OpenRequest opens a page and waits for its load event.
type OpenRequest struct {
	URL       string `json:"url,omitempty"` // empty: about:blank
	TimeoutMS int64  `json:"timeout_ms,omitempty"`
	OnDialog  string `json:"on_dialog,omitempty"`
	Wait      string `json:"wait,omitempty"`
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

// RingInfo describes the stored events.
type RingInfo struct {
	Kept    int   `json:"kept"`
	Bytes   int   `json:"bytes"`
	Dropped int64 `json:"dropped"`
	LastSeq int64 `json:"last_seq"`
}

// EventsRequest reads stored events.
type EventsRequest struct {
	// Since is the last sequence number already read; zero reads all.
	Since int64 `json:"since,omitempty"`
	// Patterns are event names in which * matches any characters. Empty matches all events.
	Patterns []string `json:"patterns,omitempty"`
	Target   string   `json:"target,omitempty"`
	// URL is a part of the URL of the request, or of the page for other events. Empty matches all.
	URL string `json:"url,omitempty"`
	// Status selects responses by their HTTP status, such as 404, or class, such as 4xx. "failed" selects what ended
	// without a response, and the classes 4xx and 5xx. Empty matches all events.
	Status string `json:"status,omitempty"`
	// Newest returns the newest events, the newest first. Otherwise the oldest come first.
	Newest bool `json:"newest,omitempty"`
	// Limit is the maximum number of events. Zero means 1000.
	Limit int `json:"limit,omitempty"`
}

// Events is the response to an EventsRequest. Dropped counts the lost events after Since. To read on, pass LastSeq
// as the next Since. A record of a request whose own parameters lack the URL has it as "url".
type Events struct {
	Events  []json.RawMessage `json:"events"`
	Dropped int64             `json:"dropped"`
	LastSeq int64             `json:"last_seq"`
}

// ListenRequest streams events as they arrive. While it lasts, the domains of its patterns are enabled: on every
// target, or on Target and its frames and workers.
type ListenRequest struct {
	Patterns []string `json:"patterns"`
	// URL and Status are those of EventsRequest. They do not apply to Until.
	URL    string `json:"url,omitempty"`
	Status string `json:"status,omitempty"`
	Target string `json:"target,omitempty"`
	// Until is a pattern. The first event that matches it is the last one sent.
	Until string `json:"until,omitempty"`
	// Max ends the stream after that many events. Zero means no limit.
	Max int `json:"max,omitempty"`
	// TimeoutMS ends the stream. Zero means no limit.
	TimeoutMS int64 `json:"timeout_ms,omitempty"`
}

// ListenEnd is the reason why a stream ended: until, timeout, max or closed.
type ListenEnd struct {
	End string `json:"end"`
}

type statusRequest struct {
	All bool `json:"all,omitempty"` // the targets of all sessions, for a person
}

type closeRequest struct {
	// Session is the session to close, for a person. "" means the caller's.
	Session   string `json:"session,omitempty"`
	TimeoutMS int64  `json:"timeout_ms,omitempty"`
}

type targetRequest struct {
	Target    string `json:"target"`
	TimeoutMS int64  `json:"timeout_ms,omitempty"`
	OnDialog  string `json:"on_dialog,omitempty"` // for close_target only
}
