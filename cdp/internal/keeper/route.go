package keeper

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/chromedp/cdproto/fetch"
	"github.com/chromedp/cdproto/network"

	"github.com/parley-tools/parley/cdp/internal/keeper/api"
	"github.com/parley-tools/parley/cdp/internal/keeper/scan"
)

type routeRule struct {
	api.RouteRule
	requests int
}

// route serves a RouteRequest.
func (e *engine) route(ctx context.Context, by api.Caller, q api.RouteRequest) (api.Routed, *api.Error) {
	if by.HasContext() {
		_, release, err := e.tenancy.enterScope(ctx, by)
		if err != nil {
			return api.Routed{}, err
		}
		defer release()
	}
	e.mux.Lock()
	defer e.mux.Unlock()
	e.countCall(by)
	if err := e.changeRules(by.SessionKey(), q); err != nil {
		return api.Routed{}, err
	}
	all := api.Routed{Rules: []api.RoutedRule{}}
	if set := e.owners.setups.bySession[by.SessionKey()]; set != nil {
		for _, r := range set.rules {
			all.Rules = append(all.Rules, api.RoutedRule{URL: r.URL, Method: r.Method, Action: r.Action, Requests: r.requests})
		}
	}
	return all, nil
}

// changeRules changes the rules of a session. The engine is locked.
func (e *engine) changeRules(session string, q api.RouteRequest) *api.Error {
	if q.Rules == nil && len(q.Add)+len(q.Remove) == 0 {
		return nil
	}
	var given []api.RouteRule
	if q.Rules != nil {
		given = *q.Rules
	}
	rules := make([]*routeRule, 0, len(q.Add)+len(given))
	for _, r := range slices.Concat(q.Add, given) {
		if err := r.Check(); err != nil {
			return err
		}
		rules = append(rules, &routeRule{RouteRule: r})
	}
	if set := e.owners.setups.bySession[session]; set != nil && q.Rules == nil {
		for _, present := range set.rules {
			replaced := func(r api.RouteRule) bool { return r.URL == present.URL && strings.EqualFold(r.Method, present.Method) }
			if !slices.Contains(q.Remove, present.URL) && !slices.ContainsFunc(q.Add, replaced) {
				rules = append(rules, present)
			}
		}
	}
	if len(rules) > api.MaxRouteRules {
		return api.Errorf(api.CodeLimitExceeded, "these would be %d rules; the limit is %d", len(rules), api.MaxRouteRules)
	}
	size := 0
	for _, r := range rules {
		size += len(r.Body)
		for name, value := range r.Headers {
			size += len(name) + len(value)
		}
	}
	if size > api.MaxRouteBytes {
		return api.Errorf(api.CodeLimitExceeded, "the bodies and headers of the rules would have %d bytes; the limit is %d",
			size,
			api.MaxRouteBytes)
	}
	for _, t := range e.tracker.order {
		if len(rules) > 0 && t.owner == session && t.domains["Fetch"] != nil && t.domains["Fetch"].byCaller {
			return api.Errorf(api.CodeBusy,
				"Fetch is enabled in target %s, and pauses its requests: call Fetch.disable there first", t.ID)
		}
	}
	e.owners.setups.of(session).rules = rules
	e.owners.applyToAll(session)
	return nil
}

// checkUnrouted rejects a caller's Fetch.enable in a target whose requests the keeper answers by rules.
func (e *engine) checkUnrouted(t *target) *api.Error {
	e.mux.Lock()
	defer e.mux.Unlock()
	if !t.routed {
		return nil
	}
	return api.Errorf(api.CodeBusy,
		"rules of cdp.route answer the requests of target %s: remove them first, by cdp.route with "+
			"empty rules", t.ID)
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
	id := fetch.RequestID(scan.Text(params, "requestId"))
	var rule *routeRule
	if set := ss.bySession[t.owner]; set != nil {
		for _, r := range set.rules {
			if rule == nil && r.matches(scan.Text(params, "request", "method"), scan.Text(params, "request", "url")) {
				rule = r
			}
		}
	}
	if rule == nil {
		postCommand(ss.mux, t, fetch.ContinueRequest, fetch.ContinueRequestParams{RequestID: id}, nil)
		return
	}
	rule.requests++
	if rule.DelayMS == 0 {
		ss.answerPaused(t, id, rule)
		return
	}
	time.AfterFunc(time.Duration(rule.DelayMS)*time.Millisecond, func() {
		ss.mux.Lock()
		defer ss.mux.Unlock()
		if !t.closed {
			ss.answerPaused(t, id, rule)
		}
	})
}

// answerPaused does what a rule says with a paused request.
func (ss *setups) answerPaused(t *target, id fetch.RequestID, r *routeRule) {
	switch r.Action {
	case api.RouteBlock:
		postCommand(ss.mux, t, fetch.FailRequest, fetch.FailRequestParams{RequestID: id,
			ErrorReason: network.ErrorReasonBlockedByClient}, nil)
	case api.RouteMock:
		p := fetch.FulfillRequestParams{RequestID: id, ResponseCode: 200, Body: r.Body}
		if r.Status != 0 {
			p.ResponseCode = int64(r.Status)
		}
		for name, value := range r.Headers {
			p.ResponseHeaders = append(p.ResponseHeaders, &fetch.HeaderEntry{Name: name, Value: value})
		}
		slices.SortFunc(p.ResponseHeaders, func(a, b *fetch.HeaderEntry) int { return strings.Compare(a.Name, b.Name) })
		postCommand(ss.mux, t, fetch.FulfillRequest, p, nil)
	default:
		postCommand(ss.mux, t, fetch.ContinueRequest, fetch.ContinueRequestParams{RequestID: id}, nil)
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
