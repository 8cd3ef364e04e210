package host

import (
	"context"
	"fmt"
	"strings"

	"github.com/parley-tools/parley/manifest"
)

func (r *run) decide(ctx context.Context) (Decision, error) {
	info := r.address.Provider.Info()
	ask := Ask{Caller: r.call.Caller, Remote: r.call.Remote, Held: r.call.held, Plugin: info.Name, Tool: r.address.Tool.Name, Effect: r.address.Tool.Effect, Digest: info.Digest}
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
	for _, c := range r.call.outer {
		as, err := r.host.cfg.Policy.Decide(ctx, Ask{Caller: c.name, Remote: c.remote, Plugin: ask.Plugin, Tool: ask.Tool, Effect: ask.Effect})
		if err != nil {
			return d, err
		}
		if as.Verdict == Deny || as.Verdict == Confirm && d.Verdict == Allow {
			d.Verdict, d.Reason, d.Next, ask.Caller = as.Verdict, as.Reason, as.Next, c.name
		}
		if d.Verdict == Deny {
			break
		}
	}
	if d.Verdict == Deny {
		return d, &Error{Code: Denied, Message: fmt.Sprintf("%s may not call %s: %s; nothing was run", ask.Caller, r.answer.Tool, d.Reason), Next: d.Next}
	}
	if len(d.Missing) > 0 {
		rights := make([]string, len(d.Missing))
		for i, m := range d.Missing {
			rights[i] = m.Right
		}
		return d, &Error{Code: Denied, Denied: d.Missing, Next: d.Next,
			Message: fmt.Sprintf("%s needs rights that are not granted: %s; nothing was run", info.Name, strings.Join(rights, ", "))}
	}
	if d.Isolate == "process" {
		// A promise that cannot be kept is refused, never weakened in silence.
		return d, Errorf(Unavailable, "the policy wants %s isolated in a process of its own, which this version cannot do; nothing was run", info.Name).
			WithNext(`set isolate = "none" for it in policy.toml if that is enough`)
	}
	if d.Verdict == Confirm && !r.call.Options.DryRun {
		return d, r.confirm(ctx, ask, d)
	}
	return d, nil
}

func (r *run) confirm(ctx context.Context, ask Ask, d Decision) error {
	if r.host.cfg.Confirm == nil {
		return &Error{Code: Denied, Next: d.Next, Message: fmt.Sprintf("%s must be confirmed (%s) and nobody can be asked; nothing was run", r.answer.Tool, d.Reason)}
	}
	yes, err := r.host.cfg.Confirm(ctx, ask, d.Reason)
	if err == nil && !yes {
		err = Errorf(Denied, "%s was not confirmed; nothing was run", r.answer.Tool)
	}
	return err
}
