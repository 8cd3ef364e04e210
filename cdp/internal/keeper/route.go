package keeper

import (
	"context"
	"slices"
	"strings"

	"github.com/parley-tools/parley/cdp/internal/keeper/api"
)

// route serves a RouteRequest.
func (e *engine) route(ctx context.Context, by api.Caller, q api.RouteRequest) (api.Routed, *api.Error) {
	_, release, err := e.tenancy.enter(ctx, by)
	if err != nil {
		return api.Routed{}, err
	}
	defer release()
	e.mux.Lock()
	defer e.mux.Unlock()
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
	if !e.owners.setups.routes(t) {
		return nil
	}
	return api.Errorf(api.CodeBusy,
		"rules of cdp.route answer the requests of target %s: remove them first, by cdp.route with "+
			"empty rules", t.ID)
}
