package keeper

import (
	"encoding/json"
	"time"
)

// BrowserTarget selects the browser itself instead of a page.
const BrowserTarget = "browser"

// What a call does with a JavaScript dialog that blocks it.
const (
	DialogFail    = "fail" // the default: the call ends in CodeBusy
	DialogAccept  = "accept"
	DialogDismiss = "dismiss"
)

// DefaultTimeout bounds a call that names no time.
const DefaultTimeout = 30 * time.Second

// CallRequest is one DevTools command.
type CallRequest struct {
	// Target is an id or its beginning, a part of a URL, or an index of Targets;
	// default the current one. Browser, Target and SystemInfo commands go to the
	// browser unless a target is named; BrowserTarget sends any command there.
	Target string          `json:"target,omitempty"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params,omitempty"`
	// TimeoutMS bounds the call. Default: what is left of the context, else DefaultTimeout.
	TimeoutMS int64 `json:"timeout_ms,omitempty"`
	// MaxBytes is the largest result taken, else CodeLimitExceeded. Default: what the connection reads.
	MaxBytes int64 `json:"max_bytes,omitempty"`
	// Pieces is set by CallInto: a large result comes piece by piece, however large it is.
	Pieces   bool   `json:"pieces,omitempty"`
	OnDialog string `json:"on_dialog,omitempty"`
}

// OpenRequest opens a page and waits for its load event.
type OpenRequest struct {
	URL       string `json:"url,omitempty"` // default about:blank
	TimeoutMS int64  `json:"timeout_ms,omitempty"`
	OnDialog  string `json:"on_dialog,omitempty"`
}

// Page is what open answers.
type Page struct {
	Browser string `json:"browser"`
	Target  string `json:"target"`
	URL     string `json:"url"`
	Title   string `json:"title"`
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
	// Owner is who opened it, where that is not who asks.
	Owner string `json:"owner,omitempty"`
	// Parent is the page of a frame or worker, Opener the page that opened this one.
	Parent string  `json:"parent,omitempty"`
	Opener string  `json:"opener,omitempty"`
	Dialog *Dialog `json:"dialog,omitempty"`
}

// Status is what a keeper knows about itself and its browser.
type Status struct {
	Browser    string   `json:"browser"`
	Mode       string   `json:"mode"` // launched or attached
	Product    string   `json:"product"`
	Revision   string   `json:"revision"`
	Protocol   string   `json:"protocol"`
	Executable string   `json:"executable,omitempty"`
	FoundBy    string   `json:"found_by,omitempty"`
	Why        string   `json:"why,omitempty"` // it is this executable
	Endpoint   string   `json:"endpoint,omitempty"`
	Headed     bool     `json:"headed"`
	Profile    string   `json:"profile,omitempty"`
	Temporary  bool     `json:"temporary_profile"`
	KeeperPID  int      `json:"keeper_pid"`
	ChromePID  int      `json:"chrome_pid,omitempty"`
	Version    string   `json:"version"`
	Wire       int      `json:"wire"`
	UptimeMS   int64    `json:"uptime_ms"`
	IdleLimit  int64    `json:"idle_limit_ms"` // 0: never
	Calls      int64    `json:"calls"`
	Clients    int      `json:"clients"`
	Targets    []Target `json:"targets"`
	Events     RingInfo `json:"events"`
	Log        string   `json:"log"`
	Notes      []string `json:"notes,omitempty"`
}

// RingInfo tells about the kept events.
type RingInfo struct {
	Kept    int   `json:"kept"`
	Bytes   int   `json:"bytes"`
	Dropped int64 `json:"dropped"`
	LastSeq int64 `json:"last_seq"`
}

// EventsRequest reads kept events.
type EventsRequest struct {
	// Since is the last number already seen; 0 for all.
	Since int64 `json:"since,omitempty"`
	// Patterns are event names, in which * stands for any characters. Default all.
	Patterns []string `json:"patterns,omitempty"`
	Target   string   `json:"target,omitempty"`
	// Limit is how many at most. Default 1000.
	Limit int `json:"limit,omitempty"`
}

// Events is what EventsRequest answers. Dropped counts the events after Since that
// are lost; reading on starts at LastSeq.
type Events struct {
	Events  []json.RawMessage `json:"events"`
	Dropped int64             `json:"dropped"`
	LastSeq int64             `json:"last_seq"`
}

// ListenRequest streams events as they come. The domains of the patterns are
// enabled while it lasts, on every target or on Target and what belongs to it.
type ListenRequest struct {
	Patterns []string `json:"patterns"`
	Target   string   `json:"target,omitempty"`
	// Until is a pattern: the first such event is the last one sent.
	Until string `json:"until,omitempty"`
	// Max ends the stream after so many events. Default: no end.
	Max int `json:"max,omitempty"`
	// TimeoutMS ends the stream. Default: no end.
	TimeoutMS int64 `json:"timeout_ms,omitempty"`
}

// ListenEnd says why a stream ended: until, timeout, max or closed.
type ListenEnd struct {
	End string `json:"end"`
}

type targetRequest struct {
	Target    string `json:"target"`
	TimeoutMS int64  `json:"timeout_ms,omitempty"`
	OnDialog  string `json:"on_dialog,omitempty"` // of close_target
}
