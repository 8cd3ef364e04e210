package call

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/advice"
	"github.com/parley-tools/parley/manifest"
	"github.com/parley-tools/parley/manifest/jsontext"
)

// decide asks the policy about the call.
func (r *run) decide(ctx context.Context) (err error) {
	r.by = host.ByPolicy
	if err := r.checkEffect(); err != nil {
		return err
	}
	r.by = ""
	if r.question, r.decision, err = r.consult(ctx, nil); err != nil {
		return err
	}
	r.by = host.ByPolicy
	return nil
}

// permit asks a person where the policy leaves the call to one, and completes the decision.
func (r *run) permit(ctx context.Context) (err error) {
	d := &r.decision
	if why := r.needsConfirmation(); why != "" && d.Verdict == host.Allow {
		d.Verdict, d.Reason = host.Confirm, why
	}
	dryRun := r.call.Options.DryRun
	if len(d.Missing) > 0 && (!d.Allowable || dryRun || !r.forOperator()) {
		return r.missingError(*d)
	}
	if err := r.resolveSettings(d); err != nil {
		return err
	}
	if len(d.Missing) == 0 && (d.Verdict == host.Allow || dryRun) {
		return nil
	}
	r.by = ""
	r.decision, err = r.approve(ctx, r.question, *d)
	return err
}

// needsConfirmation returns why the provider wants the call to be confirmed, "" if it does not.
func (r *run) needsConfirmation() string {
	needs := r.address.Provider.Features().NeedsConfirmation
	if needs == nil || r.call.Principal.Name == host.CallerCLI || r.actsForCLI() {
		return ""
	}
	return needs(&host.Job{Tool: r.address.Tool.Name, Params: r.params.Value, Caller: r.call.Principal.Name,
		Session: r.call.Principal.Session})
}

// consult returns the decision of the policy: the strictest one for the caller and for each caller on whose behalf it
// calls. Allowed are rights that a person allowed for this call. A denied call is an error.
func (r *run) consult(ctx context.Context, allowed []string) (host.Ask, host.Decision, error) {
	info := r.address.Provider.Info()
	if err := r.checkProgram(); err != nil {
		return host.Ask{}, host.Decision{}, err
	}
	ask := host.Ask{Principal: r.call.Principal, Trusted: r.behalf.trusted, Plugin: info.Name,
		Tool: r.address.Tool.Name, Effect: r.effect(), Outside: r.address.Outside(), Digest: info.Digest,
		Owner: info.Identity(), ReplacedOwner: info.ReplacedOwner,
		Allowed: allowed}
	if info.Kind != manifest.KindBuiltin {
		m, err := r.address.Provider.Manifest()
		if err != nil {
			return ask, host.Decision{}, err
		}
		ask.Capabilities = m.Capabilities
	}
	r.asked = ask
	d, err := r.host.cfg.Policy.Decide(ctx, ask)
	if err != nil {
		return ask, d, err
	}
	others := r.behalf.callers
	if r.behalf.program != "" { // it gives no right, and may still be denied one
		others = append(slices.Clone(others), host.Principal{Name: host.CallerPlugin + r.behalf.program})
	}
	for i, p := range others {
		other := ask
		other.Principal, other.Trusted, other.OnBehalf = p, false, r.behalf.trusted || i == len(r.behalf.callers)
		other.Digest, other.Capabilities, other.Allowed = "", manifest.Capabilities{}, nil
		as, err := r.host.cfg.Policy.Decide(ctx, other)
		if err != nil {
			return ask, d, err
		}
		if as.Verdict == host.Deny || as.Verdict == host.Confirm && d.Verdict == host.Allow {
			d.Verdict, d.Reason, d.Steps, ask.Principal.Name = as.Verdict, as.Reason, as.Steps, p.Name
		}
		if d.Verdict == host.Deny {
			break
		}
	}
	if d.Verdict == host.Deny {
		r.by = host.ByPolicy
		return ask, d, &host.Error{
			Code: host.Denied, Steps: d.Steps,
			Message: fmt.Sprintf("%s may not call %s: %s; nothing was run", ask.Principal.Name, r.answer.Tool, d.Reason),
		}
	}
	err = r.decideSteps(ctx, &d)
	return ask, d, err
}

// checkProgram refuses a program within a program: its calls would be made as the caller of both.
func (r *run) checkProgram() error {
	if r.behalf.program == "" || r.address.Provider.Info().Identity() != host.OwnerShipped {
		return nil
	}
	m, err := r.address.Provider.Manifest()
	if err != nil || m.Capabilities.Caller == nil {
		return err
	}
	return r.deny("", "a program cannot run another program; put what it does into this one")
}

// mayCall serves [host.AskMayCall].
func (r *run) mayCall(ctx context.Context, tool string) bool {
	a, err := r.host.Catalog().FindIn(r.address.Plugin, tool)
	if err != nil || a.Tool == nil {
		return false
	}
	other := r.stepOf(&advice.Params{At: a, Tool: a.Name()})
	if other.checkEffect() != nil {
		return false
	}
	_, d, err := other.consult(ctx, nil)
	return err == nil && d.Verdict == host.Allow && len(d.Missing) == 0
}

// resolveSettings completes a decision: how the call is isolated, and the settings of the plugin.
func (r *run) resolveSettings(d *host.Decision) error {
	if asked := r.call.Options.Isolate; asked == "process" || asked == "call" {
		info := r.address.Provider.Info()
		if info.Kind == manifest.KindBuiltin && len(r.behalf.callers) == 0 {
			again := host.CallStep(r.answer.Tool, r.call.Params)
			again.Options = r.call.Given
			again.Options.Isolate = ""
			return host.Errorf(host.InvalidArgs, "%s is built in: there is no guest to isolate", info.Name).WithSteps(again)
		}
		if d.Isolate != "call" { // that is more than process
			d.Isolate = asked
		}
	}
	return r.settings(d)
}

// settings validates the operator's settings for the plugin and fills in defaults. If a required setting is missing,
// the call is denied.
func (r *run) settings(d *host.Decision) error {
	m, err := r.address.Provider.Manifest()
	if err != nil || len(m.Settings) == 0 {
		return err
	}
	settingsSchema, err := r.address.SchemaOf(m.Settings, "settings")
	if settingsSchema == nil || err != nil {
		return err
	}
	given := d.Settings
	if len(given) == 0 {
		given = json.RawMessage("{}")
	}
	value, err := jsontext.Decode(given, jsontext.Limits{})
	if err != nil {
		return host.Errorf(host.ConfigError, "the settings of %s cannot be read: %v", r.address.Plugin, err)
	}
	value, _ = settingsSchema.Coerce(value)
	violations, err := settingsSchema.Validate(value)
	if err != nil {
		return &host.Error{Code: host.LimitExceeded,
			Message: "validating the settings of " + r.address.Plugin + " would exceed the cost limit", Cause: err}
	}
	if len(violations) == 0 {
		d.Settings = jsontext.Marshal(value)
		return nil
	}
	e := host.Errorf(host.Denied, "%s is missing required settings: %s under %s; nothing was run",
		r.address.Plugin, manifest.Plural(len(violations), "violation"), d.SettingsIn)
	for _, v := range violations {
		e.Details = append(e.Details, advice.DetailOf(v))
	}
	return e.WithSteps(host.OperatorStep(host.OpPolicyExplain, r.address.Plugin))
}
