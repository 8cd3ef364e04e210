package verb

import (
	"context"

	"github.com/parley-tools/parley/cdp/internal/keeper/api"
	"github.com/parley-tools/parley/cdp/internal/keeper/tenant"
	"github.com/parley-tools/parley/manifest"
)

// natives are the verbs of cdp that need nothing of the host: each takes the parameters of its manifest, in cdp/verbs,
// and returns the result that this describes. The first argument of native is true for a verb that acts on a page, so
// that the scope of the caller's session exists before it runs.
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

// operations are what else a client may ask for, with a body of package api.
var operations = map[string]operation{
	"load_state": decoded((*Verbs).LoadState),
	"open":       decoded((*Verbs).Open),
	"save_state": decoded((*Verbs).SaveState),
	"script":     decoded((*Verbs).Script),
	"type":       decoded((*Verbs).Type),
	"uploads":    decoded((*Verbs).UploadFolder),
}

// operation serves a request whose result is its response.
type operation struct {
	scoped bool // the scope of the caller's session is entered first, and created if necessary
	run    func(e *Verbs, c context.Context, by api.Caller, s *tenant.Scope, body []byte) ([]byte, *api.Error)
}

// HasNative reports whether a verb is one of natives.
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

// native makes an operation of a verb that gets the options of the call and the parameters.
func native[Q, R any](
	scoped bool, run func(*Verbs, context.Context, api.Caller, api.VerbOptions, Q) (R, *api.Error),
) operation {
	o := decoded(func(e *Verbs, c context.Context, by api.Caller, _ *tenant.Scope, q api.VerbRequest[Q]) (R, *api.Error) {
		return run(e, c, by, q.VerbOptions, q.Params)
	})
	o.scoped = scoped
	return o
}

// decoded makes an operation in the scope of the session that gets the decoded body.
func decoded[Q, R any](run func(*Verbs, context.Context, api.Caller, *tenant.Scope, Q) (R, *api.Error)) operation {
	return operation{true, func(e *Verbs, c context.Context, by api.Caller, s *tenant.Scope, body []byte) (
		[]byte, *api.Error,
	) {
		return api.Serve(body, func(q Q) (R, *api.Error) { return run(e, c, by, s, q) })
	}}
}
