package call

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/advice"
	"github.com/parley-tools/parley/host/approval"
	"github.com/parley-tools/parley/host/caller"
	"github.com/parley-tools/parley/host/grant"
	"github.com/parley-tools/parley/host/job"
	"github.com/parley-tools/parley/host/rights"
	"github.com/parley-tools/parley/host/step"
	"github.com/parley-tools/parley/internal/lists"
	"github.com/parley-tools/parley/manifest"
	"github.com/parley-tools/parley/manifest/jsontext"
)

// authorization decides whether one call may be made: by what the policy says for each caller on whose behalf it is
// made, and by what a person answers.
type authorization struct {
	host   *Host
	call   *host.Call
	behalf *behalf
	params *advice.Params
	steps  []*authorization // for the calls of other tools of the plugin that the parameters list

	asked    host.Ask       // what the policy decided on last
	question host.Ask       // what a person is asked: asked, for the caller that requires it
	approval string         // id of the approval of a person; "" if none was needed
	answered approval.Reply // the answer to an approval of rights that an earlier call was denied while it ran
	allowed  []grant.Denial // the rights that answered allows
	given    []string       // rights that people have allowed for this call
	decision host.Decision
	by       string          // as in Event
	confined json.RawMessage // the parameters for the tool, if confine has replaced paths
	granted  []string        // what was granted when the call began, in the grammar of grants
	rights   []string        // the granted rights that the tool has, by its effect
}

// of returns the authorization of another call that the tool makes for its caller.
func (a *authorization) of(p *advice.Params) *authorization {
	return &authorization{host: a.host, call: a.call, behalf: a.behalf, params: p}
}

// decide asks the policy about the call.
func (a *authorization) decide(ctx context.Context) (err error) {
	a.by = approval.ByPolicy
	if err := a.checkEffect(); err != nil {
		return err
	}
	a.by = ""
	if a.question, a.decision, err = a.consult(ctx, nil); err != nil {
		return err
	}
	a.by = approval.ByPolicy
	return nil
}

// permit asks a person if the policy requires that, and completes the decision.
func (a *authorization) permit(ctx context.Context) (err error) {
	d := &a.decision
	if why := a.needsConfirmation(); why != "" && d.Verdict == host.Allow {
		d.Verdict, d.Reason = host.Confirm, why
	}
	dryRun := a.call.Options.DryRun
	if len(d.Missing) > 0 && (!d.Allowable || dryRun) {
		return a.missingError(*d)
	}
	if err := a.resolveSettings(d); err != nil {
		return err
	}
	if len(d.Missing) > 0 || d.Verdict == host.Confirm && !dryRun {
		a.by = ""
		if a.decision, err = a.approve(ctx, a.question, *d); err != nil {
			return err
		}
	}
	if dryRun {
		return nil
	}
	return a.useAnswer(ctx)
}

// needsConfirmation returns why the provider wants the call to be confirmed, "" if it does not.
func (a *authorization) needsConfirmation() string {
	for i, step := range a.steps {
		if why := step.needsConfirmation(); why != "" {
			return fmt.Sprintf("step %d, %s: %s", i+1, step.params.Tool, why)
		}
	}
	needs := a.params.At.Provider.Features().NeedsConfirmation
	if needs == nil || a.call.Principal.Name == caller.CLI {
		return ""
	}
	job := a.job()
	job.Session = a.call.Principal.Session
	return needs(job)
}

// consult returns the decision of the policy: the strictest one for the caller and for each caller on whose behalf it
// calls. Allowed are rights that a person allowed for this call. A denied call is an error.
func (a *authorization) consult(ctx context.Context, allowed []string) (host.Ask, host.Decision, error) {
	info := a.params.At.Provider.Info()
	if err := a.checkProgram(); err != nil {
		return host.Ask{}, host.Decision{}, err
	}
	ask := host.Ask{Principal: a.call.Principal, Trusted: a.behalf.trusted, Plugin: info.Name,
		Tool: a.params.At.Tool.Name, Effect: a.effect(), Outside: a.params.At.Outside(), Digest: info.Digest,
		Owner: info.Identity(), ReplacedOwner: info.ReplacedOwner, Allowed: allowed}
	if info.Kind != manifest.KindBuiltin {
		m, err := a.params.At.Provider.Manifest()
		if err != nil {
			return ask, host.Decision{}, err
		}
		ask.Capabilities = rights.Of(m, a.params.At.Tool)
	}
	a.asked = ask
	d, err := a.host.cfg.Policy.Decide(ctx, ask)
	if err != nil {
		return ask, d, err
	}
	others := a.behalf.callers
	if a.behalf.program != "" { // a program gives no right, and may still be denied one
		others = append(slices.Clone(others), caller.Principal{Name: caller.PluginPrefix + a.behalf.program})
	}
	for i, p := range others {
		other := ask
		other.Principal, other.Trusted, other.OnBehalf = p, false, a.behalf.trusted || i == len(a.behalf.callers)
		other.Digest, other.Capabilities, other.Allowed = "", manifest.Capabilities{}, nil
		as, err := a.host.cfg.Policy.Decide(ctx, other)
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
		a.by = approval.ByPolicy
		return ask, d, &host.Error{
			Code: host.Denied, Steps: d.Steps,
			Message: fmt.Sprintf("%s may not call %s: %s; nothing was run", ask.Principal.Name, a.params.Tool, d.Reason),
		}
	}
	if err = a.checkIncluded(ctx, slices.Concat(others, []caller.Principal{a.call.Principal})); err != nil {
		return ask, d, err
	}
	err = a.decideSteps(ctx, &d)
	return ask, d, err
}

// checkIncluded refuses a call that includes the work of another tool if a rule denies that tool by its name to one of
// the callers for whom the call is made.
func (a *authorization) checkIncluded(ctx context.Context, callers []caller.Principal) error {
	includes := a.params.At.Provider.Features().Includes
	if includes == nil {
		return nil
	}
	for _, name := range includes(a.job()) {
		plugin, tool, _ := strings.Cut(name, ".")
		for _, p := range callers {
			d, err := a.host.cfg.Policy.Decide(ctx, host.Ask{Principal: p, OnBehalf: true, Plugin: plugin, Tool: tool,
				Effect: a.effect()})
			if err != nil {
				return err
			}
			if d.Verdict == host.Deny {
				a.by = approval.ByPolicy
				return &host.Error{Code: host.Denied, Steps: d.Steps,
					Message: fmt.Sprintf("%s may not call %s, which includes %s: %s; nothing was run", p.Name,
						a.params.Tool, name, d.Reason)}
			}
		}
	}
	return nil
}

// checkProgram refuses a program within a program: its calls would be made as the caller of both.
func (a *authorization) checkProgram() error {
	if a.behalf.program == "" || a.params.At.Provider.Info().Identity() != host.OwnerShipped {
		return nil
	}
	m, err := a.params.At.Provider.Manifest()
	if err != nil || m.Capabilities.Caller == nil {
		return err
	}
	return denied(a.params.Tool, "", "a program cannot run another program; put what it does into this one")
}

// resolveSettings completes a decision: how the call is isolated, and the settings of the plugin.
func (a *authorization) resolveSettings(d *host.Decision) error {
	if asked := a.call.Options.Isolate; asked == "process" || asked == "call" {
		info := a.params.At.Provider.Info()
		if info.Kind == manifest.KindBuiltin && len(a.behalf.callers) == 0 {
			again := step.Call(a.params.Tool, a.call.Params)
			again.Options = a.call.Given
			again.Options.Isolate = ""
			return host.Errorf(host.InvalidArgs, "%s is built in: there is no guest to isolate", info.Name).WithSteps(again)
		}
		if d.Isolate != "call" { // "call" isolates more than "process"
			d.Isolate = asked
		}
	}
	return a.settings(d)
}

// settings validates the operator's settings for the plugin and fills in defaults. If a required setting is missing,
// the call is denied.
func (a *authorization) settings(d *host.Decision) error {
	m, err := a.params.At.Provider.Manifest()
	if err != nil || len(m.Settings) == 0 {
		return err
	}
	settingsSchema, err := a.params.At.SchemaOf(m.Settings, "settings")
	if settingsSchema == nil || err != nil {
		return err
	}
	given := d.Settings
	if len(given) == 0 {
		given = json.RawMessage("{}")
	}
	value, err := jsontext.Decode(given, jsontext.Limits{})
	if err != nil {
		return host.Errorf(host.ConfigError, "the settings of %s cannot be read: %v", a.params.At.Plugin, err)
	}
	value, _, violations, err := settingsSchema.Admit(value)
	if err != nil {
		return &host.Error{Code: host.LimitExceeded,
			Message: "validating the settings of " + a.params.At.Plugin + " would exceed the cost limit", Cause: err}
	}
	if len(violations) == 0 {
		d.Settings = jsontext.Marshal(value)
		return nil
	}
	e := host.Errorf(host.Denied, "%s is missing required settings: %s under %s; nothing was run",
		a.params.At.Plugin, manifest.Plural(len(violations), "violation"), d.SettingsIn)
	e.Details = lists.Map(violations, advice.DetailOf)
	return e.WithSteps(step.Operator(step.OpPolicyExplain, a.params.At.Plugin))
}

// effect returns the effect of the call: its tool's effect, unless the provider knows a lesser one for this call.
func (a *authorization) effect() string {
	own := a.params.At.Tool.Effect
	if of := a.params.At.Provider.Features().Effect; of != nil && a.params.Value != nil {
		less := of(a.job())
		if rights.Severity(less) < rights.Severity(own) {
			return less
		}
	}
	return own
}

// job returns the call in the form in which a provider is asked about it before it runs.
func (a *authorization) job() *job.Job {
	return &job.Job{Tool: a.params.At.Tool.Name, Params: a.params.Value, Caller: a.call.Principal.Name}
}

// checkEffect returns an error if a plugin's tool calls one with a worse effect than its own: a tool that reads calls
// tools that read, and one that writes calls no destructive ones.
func (a *authorization) checkEffect() error {
	own, callee := a.behalf.callerEffect, a.effect()
	if len(a.behalf.callers) == 0 || rights.Severity(callee) <= rights.Severity(own) {
		return nil
	}
	right := "tool:" + a.params.Tool
	why := fmt.Sprintf("the calling tool has the effect %s, but %s has the effect %s; declare the effect %s", own,
		a.params.Tool, callee, callee)
	return &host.Error{Code: host.Denied, Message: "not granted: " + right + ": " + why + "; nothing was run",
		Denied: []grant.Denial{{Right: right, Why: why}}, Steps: []step.Step{step.Describe(a.params.Tool, 0)}}
}

// decideSteps asks the policy about each step as about a call of the step's tool by each caller. A step that is denied
// denies the call; one that requires confirmation makes the whole call require it.
func (a *authorization) decideSteps(ctx context.Context, d *host.Decision) error {
	for i, step := range a.steps {
		err := step.checkEffect()
		own := host.Decision{}
		if err == nil {
			_, own, err = step.consult(ctx, nil)
		}
		if err == nil && rights.Severity(step.effect()) > rights.Severity(a.effect()) {
			err = host.Errorf(host.Denied, "%s has the effect %s, but %s has only %s; nothing was run", step.params.Tool,
				step.effect(), a.params.Tool, a.effect())
		}
		if err == nil {
			err = step.confine(own)
		}
		if err != nil {
			e := *host.AsError(err)
			e.Message = fmt.Sprintf("step %d: %s", i+1, e.Message)
			return &e
		}
		if own.Verdict == host.Confirm && d.Verdict == host.Allow {
			d.Verdict, d.Steps = host.Confirm, own.Steps
			d.Reason = fmt.Sprintf("step %d, %s: %s", i+1, step.params.Tool, own.Reason)
		}
	}
	return nil
}

// confineSteps puts the parameters of the steps, as their tools may use them, into those of the call.
func (a *authorization) confineSteps() {
	if len(a.steps) == 0 {
		return
	}
	params := map[string]json.RawMessage{}
	_ = json.Unmarshal(a.params.Value, &params) // an object, because it was validated
	forms := make([]advice.StepForm, len(a.steps))
	for i, step := range a.steps {
		forms[i] = advice.StepForm{Tool: step.params.At.Tool.Name, Params: step.params.Value}
		if step.confined != nil {
			forms[i].Params = step.confined
		}
	}
	params[a.params.At.Tool.Steps], _ = manifest.Marshal(forms)
	a.confined, _ = manifest.Marshal(params)
}
