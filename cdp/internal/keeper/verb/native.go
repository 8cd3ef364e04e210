package verb

import (
	"context"
	"slices"
	"strings"

	"github.com/parley-tools/parley/cdp/internal/keeper/api"
	"github.com/parley-tools/parley/cdp/internal/keeper/target"
	"github.com/parley-tools/parley/cdp/internal/keeper/tenant"
	"github.com/parley-tools/parley/manifest"
)

// natives are the verbs of cdp that need nothing of the host. Each takes the parameters and returns the result that
// its manifest in cdp/verbs describes. The first argument of native is true for a verb that acts on a page, so that
// the scope of the caller's session exists before it runs.
var natives = map[string]operation{
	"activate": native(false, func(e *Verbs, ctx context.Context, by api.Caller, _ api.VerbOptions, q api.TargetRequest) (
		api.Page, *api.Error,
	) {
		return e.Activate(ctx, by, q.Target)
	}),
	"input": native(true, (*Verbs).SendInput),
	"route": native(true, func(e *Verbs, _ context.Context, by api.Caller, _ api.VerbOptions, q api.RouteRequest) (
		api.Routed, *api.Error,
	) {
		return e.Routes(by, q)
	}),
	"targets": native(false, func(e *Verbs, ctx context.Context, by api.Caller, _ api.VerbOptions, _ struct{}) (
		api.TargetList, *api.Error,
	) {
		e.Tracker.RefreshTargets(ctx)
		return api.TargetList{Targets: e.Owners.ListTargets(by, false)}, nil
	}),
}

// operations are the other operations that a client may request, with a body of package api.
var operations = map[string]operation{
	"load_state": decoded((*Verbs).LoadState),
	"open":       decoded((*Verbs).Open),
	"save_state": decoded((*Verbs).SaveState),
	"script":     decoded((*Verbs).Script),
	"type":       decoded((*Verbs).Type),
	"uploads":    decoded((*Verbs).UploadFolder),
}

// operation serves a request. Its result is the response.
type operation struct {
	scoped bool // the scope of the caller's session is entered first, and created if necessary
	run    func(e *Verbs, c context.Context, by api.Caller, s *tenant.Scope, body []byte) ([]byte, *api.Error)
}

// HasNative reports whether a verb is in natives.
func HasNative(name string) bool { return natives[name].run != nil }

// Run runs an operation by its name.
func (e *Verbs) Run(ctx context.Context, by api.Caller, name string, body []byte) ([]byte, *api.Error) {
	o, ok := natives[name]
	if !ok {
		o, ok = operations[name]
	}
	var s *tenant.Scope
	switch {
	case !ok:
		return nil, api.Errorf(api.CodeInvalidArgs, "the keeper has no operation %q", manifest.Clip(name, 40))
	case o.scoped:
		entered, release, err := e.Tenancy.Enter(ctx, by)
		if err != nil {
			return nil, err
		}
		defer release()
		s = entered
	}
	return o.run(e, ctx, by, s, body)
}

// native returns the operation of a verb that takes the options of the call and the parameters.
func native[Q, R any](
	scoped bool, run func(*Verbs, context.Context, api.Caller, api.VerbOptions, Q) (R, *api.Error),
) operation {
	o := decoded(func(e *Verbs, c context.Context, by api.Caller, _ *tenant.Scope, q api.VerbRequest[Q]) (R, *api.Error) {
		return run(e, c, by, q.VerbOptions, q.Params)
	})
	o.scoped = scoped
	return o
}

// decoded returns an operation in the scope of the session, whose run takes the decoded body.
func decoded[Q, R any](run func(*Verbs, context.Context, api.Caller, *tenant.Scope, Q) (R, *api.Error)) operation {
	return operation{true, func(e *Verbs, c context.Context, by api.Caller, s *tenant.Scope, body []byte) (
		[]byte, *api.Error,
	) {
		return api.Serve(body, func(q Q) (R, *api.Error) { return run(e, c, by, s, q) })
	}}
}

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
			all.Rules = append(all.Rules, api.RoutedRule{URL: r.URL, Method: r.Method, Type: r.Type, Action: r.Action,
				Requests: r.Requests})
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
			replaced := func(r api.RouteRule) bool {
				return r.URL == present.URL && strings.EqualFold(r.Method, present.Method) && r.Type == present.Type
			}
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
	if t := e.Owners.FetchedBy(session); t != nil && len(rules) > 0 {
		return api.FetchBusy(t.ID)
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
			"empty rules, and headers by page.emulate with reset", t.ID)
}
