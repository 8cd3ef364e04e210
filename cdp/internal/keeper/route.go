package keeper

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/chromedp/cdproto/fetch"
	"github.com/chromedp/cdproto/network"

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
	Body    []byte            `json:"body,omitempty"`
	DelayMS int64             `json:"delay_ms,omitempty"` // before what the action does
}

// Actions of a [RouteRule].
const (
	RouteMock  = "mock"  // answer with Status, Headers and Body; nothing is sent
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

type routeRule struct {
	RouteRule
	requests int
}

// route serves a RouteRequest.
func (e *engine) route(ctx context.Context, by Caller, q RouteRequest) (Routed, *Error) {
	if by.hasContext() {
		_, release, err := e.enterScope(ctx, by)
		if err != nil {
			return Routed{}, err
		}
		defer release()
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.countCall(by)
	if err := e.changeRules(by.session(), q); err != nil {
		return Routed{}, err
	}
	all := Routed{Rules: []RoutedRule{}}
	if set := e.setups.bySession[by.session()]; set != nil {
		for _, r := range set.rules {
			all.Rules = append(all.Rules, RoutedRule{r.URL, r.Method, r.Action, r.requests})
		}
	}
	return all, nil
}

// changeRules changes the rules of a session. The engine is locked.
func (e *engine) changeRules(session string, q RouteRequest) *Error {
	if q.Rules == nil && len(q.Add)+len(q.Remove) == 0 {
		return nil
	}
	var given []RouteRule
	if q.Rules != nil {
		given = *q.Rules
	}
	rules := make([]*routeRule, 0, len(q.Add)+len(given))
	for _, r := range slices.Concat(q.Add, given) {
		if err := r.check(); err != nil {
			return err
		}
		rules = append(rules, &routeRule{RouteRule: r})
	}
	if set := e.setups.bySession[session]; set != nil && q.Rules == nil {
		for _, present := range set.rules {
			replaced := func(r RouteRule) bool { return r.URL == present.URL && strings.EqualFold(r.Method, present.Method) }
			if !slices.Contains(q.Remove, present.URL) && !slices.ContainsFunc(q.Add, replaced) {
				rules = append(rules, present)
			}
		}
	}
	if len(rules) > MaxRouteRules {
		return errf(CodeLimitExceeded, "these would be %d rules; the limit is %d", len(rules), MaxRouteRules)
	}
	size := 0
	for _, r := range rules {
		size += len(r.Body)
		for name, value := range r.Headers {
			size += len(name) + len(value)
		}
	}
	if size > MaxRouteBytes {
		return errf(CodeLimitExceeded, "the bodies and headers of the rules would have %d bytes; the limit is %d", size,
			MaxRouteBytes)
	}
	for _, t := range e.order {
		if len(rules) > 0 && t.owner == session && t.domains["Fetch"] != nil && t.domains["Fetch"].byCaller {
			return errf(CodeBusy, "Fetch is enabled in target %s, and pauses its requests: call Fetch.disable there first", t.id)
		}
	}
	e.setups.of(session).rules = rules
	e.applyToAll(session)
	return nil
}

// checkUnrouted rejects a caller's Fetch.enable in a target whose requests the keeper answers by rules.
func (e *engine) checkUnrouted(t *target) *Error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !t.routed {
		return nil
	}
	return errf(CodeBusy, "rules of cdp.route answer the requests of target %s: remove them first, by cdp.route with "+
		"empty rules", t.id)
}

func (r *RouteRule) check() *Error {
	switch {
	case r.URL == "":
		return errf(CodeInvalidArgs, "a rule has no url")
	case !slices.Contains([]string{RouteMock, RouteBlock, RouteDelay}, r.Action):
		return errf(CodeInvalidArgs, "%q is not an action; expected mock, block or delay", manifest.Clip(r.Action, 40))
	case r.Status != 0 && (r.Status < 200 || r.Status > 599):
		return errf(CodeInvalidArgs, "the status %d is not between 200 and 599", r.Status)
	case r.DelayMS < 0 || r.DelayMS > maxRouteDelay.Milliseconds():
		return errf(CodeInvalidArgs, "the delay %d ms is not between 0 and %d", r.DelayMS, maxRouteDelay.Milliseconds())
	}
	return nil
}

// patternsOf returns what Chrome pauses for rules.
func patternsOf(rules []*routeRule) (all []*fetch.RequestPattern) {
	for _, r := range rules {
		all = append(all, &fetch.RequestPattern{URLPattern: r.URL})
	}
	return all
}

// onPaused answers a request that was paused for the rules of its session: the first that matches decides.
func (ss *setups) onPaused(t *target, params json.RawMessage) {
	id := fetch.RequestID(text(params, "requestId"))
	var rule *routeRule
	if set := ss.bySession[t.owner]; set != nil {
		for _, r := range set.rules {
			if rule == nil && r.matches(text(params, "request", "method"), text(params, "request", "url")) {
				rule = r
			}
		}
	}
	if rule == nil {
		postCommand(ss.sender.mux, t, fetch.ContinueRequest, fetch.ContinueRequestParams{RequestID: id}, nil)
		return
	}
	rule.requests++
	if rule.DelayMS == 0 {
		ss.answerPaused(t, id, rule)
		return
	}
	time.AfterFunc(time.Duration(rule.DelayMS)*time.Millisecond, func() {
		ss.sender.mu.Lock()
		defer ss.sender.mu.Unlock()
		if !t.closed {
			ss.answerPaused(t, id, rule)
		}
	})
}

// answerPaused does what a rule says with a paused request.
func (ss *setups) answerPaused(t *target, id fetch.RequestID, r *routeRule) {
	switch r.Action {
	case RouteBlock:
		postCommand(ss.sender.mux, t, fetch.FailRequest, fetch.FailRequestParams{RequestID: id,
			ErrorReason: network.ErrorReasonBlockedByClient}, nil)
	case RouteMock:
		p := fetch.FulfillRequestParams{RequestID: id, ResponseCode: 200, Body: r.Body}
		if r.Status != 0 {
			p.ResponseCode = int64(r.Status)
		}
		for name, value := range r.Headers {
			p.ResponseHeaders = append(p.ResponseHeaders, &fetch.HeaderEntry{Name: name, Value: value})
		}
		slices.SortFunc(p.ResponseHeaders, func(a, b *fetch.HeaderEntry) int { return strings.Compare(a.Name, b.Name) })
		postCommand(ss.sender.mux, t, fetch.FulfillRequest, p, nil)
	default:
		postCommand(ss.sender.mux, t, fetch.ContinueRequest, fetch.ContinueRequestParams{RequestID: id}, nil)
	}
}

func (r *routeRule) matches(method, url string) bool {
	return (r.Method == "" || strings.EqualFold(r.Method, method)) && matchesURL(r.URL, url)
}

// matchesURL reports whether a URL matches a pattern, as Chrome decides. It takes at most the product of their lengths.
func matchesURL(pattern, url string) bool {
	star, retry := -1, 0
	at, in := 0, 0
	for in < len(url) {
		switch {
		case at < len(pattern) && pattern[at] == '*':
			star, retry = at, in
			at++
			continue
		case at < len(pattern) && pattern[at] == '?':
			at, in = at+1, in+1
			continue
		case at+1 < len(pattern) && pattern[at] == '\\' && pattern[at+1] == url[in]:
			at, in = at+2, in+1
			continue
		case at < len(pattern) && pattern[at] == url[in] && pattern[at] != '\\':
			at, in = at+1, in+1
			continue
		}
		if star < 0 {
			return false
		}
		retry++
		at, in = star+1, retry
	}
	return strings.Trim(pattern[at:], "*") == ""
}
