package tenant

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/chromedp/cdproto/fetch"
	"github.com/chromedp/cdproto/network"

	"github.com/parley-tools/parley/cdp/internal/keeper/api"
	"github.com/parley-tools/parley/cdp/internal/keeper/scan"
	"github.com/parley-tools/parley/cdp/internal/keeper/target"
)

// RouteRule is a rule of a session, with the count of the requests that it has matched.
type RouteRule struct {
	api.RouteRule
	Requests int
}

// patternsOf returns what Chrome pauses for rules.
func patternsOf(rules []*RouteRule) (all []*fetch.RequestPattern) {
	for _, r := range rules {
		all = append(all, &fetch.RequestPattern{URLPattern: r.URL})
	}
	return all
}

// onPaused answers a request that was paused for the rules of its session: the first that matches decides.
func (ss *setups) onPaused(t *target.Target, params json.RawMessage) {
	id := fetch.RequestID(scan.Text(params, "requestId"))
	var rule *RouteRule
	if set := ss.BySession[t.Owner]; set != nil {
		for _, r := range set.Rules {
			if rule == nil && r.matches(scan.Text(params, "request", "method"), scan.Text(params, "request", "url")) {
				rule = r
			}
		}
	}
	if rule == nil {
		target.Post(ss.mux, t, fetch.ContinueRequest, fetch.ContinueRequestParams{RequestID: id}, nil)
		return
	}
	rule.Requests++
	if rule.DelayMS == 0 {
		ss.answerPaused(t, id, rule)
		return
	}
	time.AfterFunc(time.Duration(rule.DelayMS)*time.Millisecond, func() {
		ss.mux.Lock()
		defer ss.mux.Unlock()
		if !t.Closed {
			ss.answerPaused(t, id, rule)
		}
	})
}

// answerPaused does what a rule says with a paused request.
func (ss *setups) answerPaused(t *target.Target, id fetch.RequestID, r *RouteRule) {
	switch r.Action {
	case api.RouteBlock:
		target.Post(ss.mux, t, fetch.FailRequest, fetch.FailRequestParams{RequestID: id,
			ErrorReason: network.ErrorReasonBlockedByClient}, nil)
	case api.RouteMock:
		p := fetch.FulfillRequestParams{RequestID: id, ResponseCode: 200, Body: append([]byte(r.Body), r.Binary...)}
		if r.Status != 0 {
			p.ResponseCode = int64(r.Status)
		}
		for name, value := range r.Headers {
			p.ResponseHeaders = append(p.ResponseHeaders, &fetch.HeaderEntry{Name: name, Value: value})
		}
		slices.SortFunc(p.ResponseHeaders, func(a, b *fetch.HeaderEntry) int { return strings.Compare(a.Name, b.Name) })
		target.Post(ss.mux, t, fetch.FulfillRequest, p, nil)
	default:
		target.Post(ss.mux, t, fetch.ContinueRequest, fetch.ContinueRequestParams{RequestID: id}, nil)
	}
}

func (r *RouteRule) matches(method, url string) bool {
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
