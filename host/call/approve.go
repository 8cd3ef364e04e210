package call

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/approval"
	"github.com/parley-tools/parley/host/grant"
	"github.com/parley-tools/parley/host/rights"
	"github.com/parley-tools/parley/host/step"
	"github.com/parley-tools/parley/internal/deadline"
	"github.com/parley-tools/parley/manifest"
)

// approve has a person approve the call, and returns the decision of the policy after the answer.
func (a *authorization) approve(ctx context.Context, ask host.Ask, d host.Decision) (host.Decision, error) {
	asked := a.newApproval(approval.ForCall, ask)
	if d.Verdict == host.Confirm {
		asked.Reason = d.Reason
	}
	if len(d.Missing) > 0 {
		asked.Kind, asked.Rights = approval.ForRight, d.Missing
	}
	resume := deadline.Suspend(ctx) // also the deadlines of the calls that this one is within
	reply, err := a.host.cfg.Approver.Approve(ctx, asked)
	resume()
	a.approval = asked.ID
	if nobody, is := errors.AsType[approval.NoApproverError](err); is {
		reply, err = approval.Reply{Nobody: nobody.Error()}, nil
	}
	if err != nil {
		return d, err
	}
	if reply.Answer == "" {
		a.by = approval.ByPolicy
		return d, a.unanswered(asked, reply, d)
	}
	a.by = reply.By
	if !reply.Allows() {
		word := wordOf(reply)
		if asked.Kind == approval.ForRight {
			e := a.missingError(d)
			e.Message = fmt.Sprintf("%s needs rights that are not granted and were not allowed%s: %s; nothing was run",
				ask.Plugin, word, rightNames(d.Missing))
			return d, e
		}
		return d, host.Errorf(host.Denied, "%s was not confirmed%s; nothing was run", a.params.Tool, word)
	}
	return a.decideAgain(ctx, asked, reply)
}

func (a *authorization) newApproval(kind approval.Kind, ask host.Ask) *approval.Approval {
	asked := &approval.Approval{
		ID: approval.NewID(), Kind: kind, Principal: ask.Principal.Name,
		Key: ask.Principal.Session.Key(), Tool: ask.Plugin + "." + ask.Tool, Effect: ask.Effect, Digest: ask.Digest,
		Params: manifest.MapJSON(a.params.Value, a.host.held.Held()), Exact: bytes.Clone(a.params.Value),
		Within: a.behalf.parentID,
	}
	if of := ask.Principal.Session; of.Name != "" {
		asked.Session = of.String()
	}
	return asked
}

// useAnswer applies the answer to an approval that an earlier, equal call has opened at its end; see askAfterwards.
func (a *authorization) useAnswer(ctx context.Context) error {
	keeper, is := a.host.cfg.Approver.(approval.Keeper)
	isOptional := func(r manifest.Right) bool { return r.Optional }
	if !is || !slices.ContainsFunc(a.asked.Capabilities.Rights(), isOptional) {
		return nil
	}
	asked := a.newApproval(approval.ForRight, a.question)
	asked.Reason = a.decision.Reason // a person has confirmed it
	reply, err := keeper.Known(asked)
	if err != nil || reply.Answer == "" {
		return err
	}
	a.approval, a.by = asked.ID, reply.By
	if a.answered = reply; reply.Allows() {
		a.allowed = asked.Rights
		a.decision, err = a.decideAgain(ctx, asked, reply)
	}
	return err
}

// askAfterwards opens an approval of the optional rights that a call was denied while it ran. It asks only for rights
// that a person can allow, and adds the approval to the error of the call.
func (a *authorization) askAfterwards(e *host.Error) {
	keeper, is := a.host.cfg.Approver.(approval.Keeper)
	if !is || e.Approval != "" {
		return
	}
	asked := a.newApproval(approval.ForRight, a.question)
	for _, denied := range e.Denied {
		_, d, err := a.consult(context.Background(), append(slices.Clone(a.given), denied.Right))
		if err == nil && !slices.Equal(rights.RestrictTo(d.Grant, a.effect()).Names(), a.rights) {
			asked.Rights = append(asked.Rights, denied)
		}
	}
	switch {
	case len(asked.Rights) == 0:
	case a.answered.Answer == approval.Deny:
		e.Message += "; a person has not allowed " + rightNames(asked.Rights) + wordOf(a.answered)
	default:
		asked.Rights = append(slices.Clone(a.allowed), asked.Rights...)
		asked.Reason = "the call ran without them, was denied them and failed"
		if keeper.Open(asked) == nil {
			a.approval = asked.ID
			a.addOpen(e, asked)
		}
	}
}

// wordOf returns a person's remark on a denial in parentheses, after a space; "" without one.
func wordOf(r approval.Reply) string {
	if r.Word == "" {
		return ""
	}
	return " (" + r.Word + ")"
}

// unanswered returns the error of a call that requires an approval that nobody has given or denied.
func (a *authorization) unanswered(asked *approval.Approval, reply approval.Reply, d host.Decision) *host.Error {
	e := a.missingError(d)
	if asked.Kind == approval.ForCall {
		e = host.Errorf(host.Denied, "%s requires confirmation (%s), and %s; nothing was run", a.params.Tool, d.Reason,
			cmp.Or(reply.Nobody, "nobody has answered yet"))
		if e.Steps = d.Steps; len(e.Steps) == 0 {
			e.Steps = []step.Step{step.Operator(step.OpPolicyExplain, a.params.Tool)}
		}
	}
	if asked.Expires.IsZero() { // the approver does not keep it
		return e
	}
	a.addOpen(e, asked)
	return e
}

// addOpen adds an open approval of the call to its error, and says until when it is open.
func (a *authorization) addOpen(e *host.Error, asked *approval.Approval) {
	e.Message += fmt.Sprintf("; approval %s is open until %s: call again once a person has allowed it", asked.ID,
		asked.Expires.Format("2006-01-02 15:04 MST"))
	addApproval(e, asked.ID, a.params.Tool, a.call)
}

// addApproval adds an open approval to the error of a call, with the steps that answer it and make the call again.
func addApproval(e *host.Error, approval, tool string, c *host.Call) {
	again := step.Call(tool, c.Params)
	again.Options, e.Approval = c.Given, approval
	first := 0
	if len(e.Steps) > 0 && e.Steps[0].Op == step.OpPolicyGrant { // a grant that lasts stays first
		first = 1
	}
	e.Steps = slices.Insert(slices.Clone(e.Steps), first, step.Operator(step.OpApprovalsAllow, approval), again)
}

// decideAgain evaluates the policy again after a person approved: with the rights that the person allowed, and because
// the policy may have changed in the meantime.
func (a *authorization) decideAgain(ctx context.Context, asked *approval.Approval, reply approval.Reply) (host.Decision,
	error) {
	allowed := reply.Rights
	if asked.Kind == approval.ForRight && allowed == nil {
		allowed = grant.Named(asked.Rights)
	}
	a.given = append(a.given, allowed...)
	_, d, err := a.consult(ctx, a.given)
	switch {
	case err != nil:
		return d, err
	case len(d.Missing) > 0:
		a.by = approval.ByPolicy
		return d, a.missingError(d)
	case d.Verdict == host.Confirm && asked.Reason == "":
		return d, host.Errorf(host.Denied,
			"the policy has changed and requires confirmation of %s; nothing was run, call again", a.params.Tool)
	}
	return d, a.resolveSettings(&d)
}

// missingError returns the error of a call that requires rights that are not granted.
func (a *authorization) missingError(d host.Decision) *host.Error {
	plugin, ask := a.params.At.Provider.Info().Name, ""
	if !a.behalf.forOperator(a.call.Principal) {
		ask = "; ask the operator to grant them to " + plugin
	}
	return &host.Error{Code: host.Denied, Denied: d.Missing, Steps: d.Steps,
		Message: fmt.Sprintf("%s needs rights that are not granted: %s%s; nothing was run", plugin, rightNames(d.Missing),
			ask)}
}

func rightNames(denied []grant.Denial) string { return strings.Join(grant.Named(denied), ", ") }
