package verb

import (
	"slices"
	"strings"

	"github.com/parley-tools/parley/cdp/internal/keeper/api"
	"github.com/parley-tools/parley/cdp/internal/keeper/target"
	"github.com/parley-tools/parley/cdp/internal/keeper/tenant"
)

// Routes changes the rules for requests of the caller's session, and returns them.
func (e *Verbs) Routes(by api.Caller, q api.RouteRequest) (api.Routed, *api.Error) {
	e.Mux.Lock()
	defer e.Mux.Unlock()
	if err := e.changeRules(by.SessionKey(), q); err != nil {
		return api.Routed{}, err
	}
	all := api.Routed{Rules: []api.RoutedRule{}}
	if set := e.Owners.Setups.BySession[by.SessionKey()]; set != nil {
		for _, r := range set.Rules {
			all.Rules = append(all.Rules, api.RoutedRule{URL: r.URL, Method: r.Method, Action: r.Action, Requests: r.Requests})
		}
	}
	return all, nil
}

// changeRules changes the rules of a session. The mux is locked.
func (e *Verbs) changeRules(session string, q api.RouteRequest) *api.Error {
	if q.Rules == nil && len(q.Add)+len(q.Remove) == 0 {
		return nil
	}
	var given []api.RouteRule
	if q.Rules != nil {
		given = *q.Rules
	}
	rules := make([]*tenant.RouteRule, 0, len(q.Add)+len(given))
	for _, r := range slices.Concat(q.Add, given) {
		if err := r.Check(); err != nil {
			return err
		}
		rules = append(rules, &tenant.RouteRule{RouteRule: r})
	}
	if set := e.Owners.Setups.BySession[session]; set != nil && q.Rules == nil {
		for _, present := range set.Rules {
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
		size += len(r.Body) + len(r.Binary)
		for name, value := range r.Headers {
			size += len(name) + len(value)
		}
	}
	if size > api.MaxRouteBytes {
		return api.Errorf(api.CodeLimitExceeded, "the bodies and headers of the rules would have %d bytes; the limit is %d",
			size,
			api.MaxRouteBytes)
	}
	for _, t := range e.Tracker.All {
		if len(rules) > 0 && t.Owner == session && t.Domains["Fetch"] != nil && t.Domains["Fetch"].ByCaller {
			return api.Errorf(api.CodeBusy,
				"Fetch is enabled in target %s, and pauses its requests: call Fetch.disable there first", t.ID)
		}
	}
	e.Owners.Setups.Of(session).Rules = rules
	e.Owners.ApplyToAll(session)
	return nil
}

// checkUnrouted rejects a caller's Fetch.enable in a target whose requests the keeper answers by rules.
func (e *Verbs) checkUnrouted(t *target.Target) *api.Error {
	e.Mux.Lock()
	defer e.Mux.Unlock()
	if !e.Owners.Setups.Routes(t) {
		return nil
	}
	return api.Errorf(api.CodeBusy,
		"rules of cdp.route answer the requests of target %s: remove them first, by cdp.route with "+
			"empty rules", t.ID)
}
