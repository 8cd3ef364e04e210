package host

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/parley-tools/parley/manifest"
	"github.com/parley-tools/parley/manifest/jsontext"
)

func (r *run) decide(ctx context.Context) (Decision, error) {
	info := r.address.Provider.Info()
	ask := Ask{Caller: r.call.Caller, Remote: r.call.Remote, Held: r.call.callerGrant.Tools, Plugin: info.Name,
		Tool: r.address.Tool.Name, Effect: r.address.Tool.Effect, Digest: info.Digest}
	if info.Kind != manifest.KindBuiltin {
		m, err := r.address.Provider.Manifest()
		if err != nil {
			return Decision{}, err
		}
		ask.Capabilities = m.Capabilities
	}
	d, err := r.host.cfg.Policy.Decide(ctx, ask)
	if err != nil {
		return d, err
	}
	for _, c := range r.call.callers {
		as, err := r.host.cfg.Policy.Decide(ctx,
			Ask{Caller: c.name, Remote: c.remote, Held: c.tools, Plugin: ask.Plugin, Tool: ask.Tool, Effect: ask.Effect})
		if err != nil {
			return d, err
		}
		if as.Verdict == Deny || as.Verdict == Confirm && d.Verdict == Allow {
			d.Verdict, d.Reason, d.Steps, ask.Caller = as.Verdict, as.Reason, as.Steps, c.name
		}
		if d.Verdict == Deny {
			break
		}
	}
	if d.Verdict == Deny {
		return d, &Error{
			Code: Denied, Steps: d.Steps,
			Message: fmt.Sprintf("%s may not call %s: %s; nothing was run", ask.Caller, r.answer.Tool, d.Reason),
		}
	}
	if len(d.Missing) > 0 {
		rights := make([]string, len(d.Missing))
		for i, m := range d.Missing {
			rights[i] = m.Right
		}
		return d, &Error{Code: Denied, Denied: d.Missing, Steps: d.Steps,
			Message: fmt.Sprintf("%s needs rights that are not granted: %s; nothing was run", info.Name,
				strings.Join(rights, ", "))}
	}
	if r.call.Options.Isolate == "process" {
		if info.Kind == manifest.KindBuiltin && len(r.call.callers) == 0 {
			return d, Errorf(InvalidArgs, "%s is built in: there is no guest to isolate", info.Name)
		}
		d.Isolate = "process"
	}
	if err := r.settings(&d); err != nil {
		return d, err
	}
	if d.Verdict == Confirm && !r.call.Options.DryRun {
		return d, r.confirm(ctx, ask, d)
	}
	return d, nil
}

func (r *run) confirm(ctx context.Context, ask Ask, d Decision) error {
	if r.host.cfg.Confirm == nil {
		return &Error{
			Code: Denied, Steps: d.Steps,
			Message: fmt.Sprintf("%s requires confirmation (%s) and nobody can be asked; nothing was run", r.answer.Tool,
				d.Reason),
		}
	}
	ask.Params, ask.Within = r.params, r.call.parentID
	yes, err := r.host.cfg.Confirm(ctx, ask, d.Reason)
	if err == nil && !yes {
		err = Errorf(Denied, "%s was not confirmed; nothing was run", r.answer.Tool)
	}
	return err
}

// settings validates the operator's settings for the plugin and fills in defaults. If a required setting is missing,
// the call is denied.
func (r *run) settings(d *Decision) error {
	m, err := r.address.Provider.Manifest()
	if err != nil || len(m.Settings) == 0 {
		return err
	}
	settingsSchema, err := r.address.schemaOf(m.Settings, "settings")
	if settingsSchema == nil || err != nil {
		return err
	}
	given := d.Settings
	if len(given) == 0 {
		given = json.RawMessage("{}")
	}
	value, err := jsontext.Decode(given, jsontext.Limits{})
	if err != nil {
		return Errorf(ConfigError, "the settings of %s cannot be read: %v", r.address.Plugin, err)
	}
	value, _ = settingsSchema.Coerce(value)
	violations, err := settingsSchema.Validate(value)
	if err != nil {
		return &Error{Code: LimitExceeded,
			Message: "validating the settings of " + r.address.Plugin + " would exceed the cost limit", Cause: err}
	}
	if len(violations) == 0 {
		d.Settings = jsontext.Marshal(value)
		return nil
	}
	e := Errorf(Denied, "%s is missing required settings: %s under %s; nothing was run",
		r.address.Plugin, plural(len(violations), "violation"), d.SettingsIn)
	for _, v := range violations {
		e.Details = append(e.Details, detailOf(v))
	}
	return e.WithSteps(OperatorStep(OpPolicyExplain, r.address.Plugin))
}
