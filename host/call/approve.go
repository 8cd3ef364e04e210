package call

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"github.com/parley-tools/parley/host"
)

// newQuestionID returns a random id for a question.
func newQuestionID() string {
	var b [8]byte
	_, _ = rand.Read(b[:])
	return "q" + hex.EncodeToString(b[:])
}

// approve asks a person about a call, and returns the decision of the policy after the answer.
func (a *authorization) approve(ctx context.Context, ask host.Ask, d host.Decision) (host.Decision, error) {
	q := &host.Question{
		ID: newQuestionID(), Kind: host.AskConfirm, Ask: ask, Params: bytes.Clone(a.params.Value),
		Within: a.behalf.parentID,
	}
	if d.Verdict == host.Confirm {
		q.Reason = d.Reason
	}
	if len(d.Missing) > 0 {
		q.Kind, q.Rights = host.AskRight, d.Missing
	}
	a.questionID = q.ID
	approval, err := a.host.cfg.Approver.Approve(ctx, q)
	nobody, isNobody := errors.AsType[host.NoApproverError](err)
	switch {
	case isNobody && q.Kind == host.AskRight:
		a.by = host.ByPolicy
		return d, a.missingError(d)
	case isNobody:
		a.by = host.ByPolicy
		e := host.Errorf(host.Denied, "%s requires confirmation (%s), and %s; nothing was run", a.params.Tool, d.Reason,
			nobody)
		e.Cause = err
		if e.Steps = d.Steps; len(e.Steps) == 0 {
			e.Steps = []host.Step{host.OperatorStep(host.OpPolicyExplain, a.params.Tool)}
		}
		return d, e
	case err != nil:
		return d, err
	}
	a.by = approval.By
	if approval.Question != "" {
		a.questionID = approval.Question
	}
	switch {
	case !approval.Yes && q.Kind == host.AskRight:
		e := a.missingError(d)
		e.Message = fmt.Sprintf("%s needs rights that are not granted and were not allowed for this call: %s; "+
			"nothing was run", ask.Plugin, rightNames(d.Missing))
		return d, e
	case !approval.Yes:
		return d, host.Errorf(host.Denied, "%s was not confirmed; nothing was run", a.params.Tool)
	}
	return a.decideAgain(ctx, q, approval)
}

// decideAgain evaluates the policy again after a person approved: with the rights that the person allowed, and because
// the policy may have changed in the meantime.
func (a *authorization) decideAgain(ctx context.Context, q *host.Question, approval host.Approval) (host.Decision,
	error) {
	var allowed []string
	if q.Kind == host.AskRight {
		if allowed = approval.Rights; allowed == nil {
			for _, right := range q.Rights {
				allowed = append(allowed, right.Right)
			}
		}
	}
	_, d, err := a.consult(ctx, allowed)
	switch {
	case err != nil:
		return d, err
	case len(d.Missing) > 0:
		a.by = host.ByPolicy
		return d, a.missingError(d)
	case d.Verdict == host.Confirm && q.Reason == "":
		return d, host.Errorf(host.Denied,
			"the policy has changed and requires confirmation of %s; nothing was run, call again", a.params.Tool)
	}
	return d, a.resolveSettings(&d)
}

// missingError is the error of a call that requires rights which are not granted.
func (a *authorization) missingError(d host.Decision) *host.Error {
	plugin, ask := a.params.At.Provider.Info().Name, ""
	if !a.behalf.forOperator(a.call.Principal) {
		ask = "; ask the operator to grant them to " + plugin
	}
	return &host.Error{Code: host.Denied, Denied: d.Missing, Steps: d.Steps,
		Message: fmt.Sprintf("%s needs rights that are not granted: %s%s; nothing was run", plugin, rightNames(d.Missing),
			ask)}
}

func rightNames(rights []host.Denial) string {
	names := make([]string, len(rights))
	for i, d := range rights {
		names[i] = d.Right
	}
	return strings.Join(names, ", ")
}
