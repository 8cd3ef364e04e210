package api

import (
	"slices"
	"time"

	"github.com/parley-tools/parley/manifest"
)

// RouteRule says what becomes of the requests of a session's pages that it matches.
type RouteRule struct {
	// URL is a pattern: "*" matches any number of characters, "?" one, and a backslash escapes.
	URL    string `json:"url"`
	Method string `json:"method,omitempty"` // "": any
	// Action is mock, block or delay.
	Action  string            `json:"action"`
	Status  int               `json:"status,omitempty"` // mock; 0: 200
	Headers map[string]string `json:"headers,omitempty"`
	Body    string            `json:"body,omitempty"`
	Binary  []byte            `json:"body_base64,omitempty"` // after Body
	DelayMS int64             `json:"delay_ms,omitempty"`    // before what the action does
}

// Actions of a [RouteRule].
const (
	RouteMock  = "mock"  // answer with Status, Headers and content; nothing is sent
	RouteBlock = "block" // fail
	RouteDelay = "delay" // send, after the delay
)

// RouteRequest changes the rules of the caller's session. The zero value leaves them as they are.
type RouteRequest struct {
	Rules *[]RouteRule `json:"rules,omitempty"` // instead of the present ones; nil keeps those
	// Add are rules before those that stay. One that has the URL and the method of another replaces it.
	Add []RouteRule `json:"add,omitempty"`
	// Remove are the URL patterns of rules that go.
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
