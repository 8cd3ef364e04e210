package host

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// Approver asks a person about a call that the policy does not decide alone. [Host.Call] waits for it before anything
// runs.
type Approver interface {
	// Approve puts a question to a person and returns the answer. The error is [CannotAsk] if there is nobody to ask:
	// the call is then denied as if there were no Approver. Any other error ends the call as it is.
	Approve(ctx context.Context, q *Question) (Approval, error)
}

// ApproverFunc is a function that implements [Approver].
type ApproverFunc func(ctx context.Context, q *Question) (Approval, error)

// Approve calls f.
func (f ApproverFunc) Approve(ctx context.Context, q *Question) (Approval, error) { return f(ctx, q) }

// QuestionKind is what a [Question] is about.
type QuestionKind string

// The kinds of questions.
const (
	AskConfirm QuestionKind = "confirm" // the policy requires that a person confirms the call
	AskRight   QuestionKind = "right"   // the call requires rights that are not granted
)

// Question asks whether one call may run. Yes allows this call only: nothing is written to the policy.
type Question struct {
	// ID names the question after the call has ended: in traces and the audit log, and where the answer comes with a
	// later call.
	ID   string
	Kind QuestionKind
	Ask  Ask
	// Params are the parameters with which the tool runs, byte for byte.
	Params json.RawMessage
	// Within is the id of the call in which a plugin makes this one; "" if no plugin does.
	Within string
	// Reason is why the policy requires a confirmation; "" if it does not. A call that requires both rights and a
	// confirmation leads to one question, of the kind AskRight.
	Reason string
	// Rights are the missing rights of a question of the kind AskRight, in the grammar of grants. PATH stands for a
	// folder that the person chooses.
	Rights []Denial
}

// Approval is the answer to a [Question]. The zero value is no.
type Approval struct {
	Yes bool
	// By is where the person answered: ByTerminal or ByMCP.
	By string
	// Question is the id of the question that was answered, if the call that asked it has ended since; "" is the id of
	// the question that was put.
	Question string
	// Rights replaces the rights of the question, with the folders that the person chose. Nil means the rights as asked,
	// which is not possible with PATH in them.
	Rights []string
}

// Who decided about a call, as in Event.By.
const (
	ByTerminal = "terminal" // a person at the controlling terminal
	ByMCP      = "mcp"      // a person at an MCP client
	ByPolicy   = "policy"   // the policy alone
)

// CannotAsk is the error of an [Approver] that has nobody to ask. It is the reason, as the end of a sentence: "there is
// no terminal to ask on".
type CannotAsk string

func (e CannotAsk) Error() string { return string(e) }

func newQuestionID() string {
	var b [8]byte
	_, _ = rand.Read(b[:])
	return "q" + hex.EncodeToString(b[:])
}

// approve asks a person about a call, and returns the decision of the policy after the answer.
func (r *run) approve(ctx context.Context, ask Ask, d Decision) (Decision, error) {
	q := &Question{
		ID: newQuestionID(), Kind: AskConfirm, Ask: ask, Params: bytes.Clone(r.params), Within: r.behalf.parentID,
	}
	if d.Verdict == Confirm {
		q.Reason = d.Reason
	}
	if len(d.Missing) > 0 {
		q.Kind, q.Rights = AskRight, d.Missing
	}
	r.answer.Question = q.ID
	approval, err := r.askApprover(ctx, q)
	var nobody CannotAsk
	switch {
	case errors.As(err, &nobody) && q.Kind == AskRight:
		r.by = ByPolicy
		return d, r.missingError(d)
	case errors.As(err, &nobody):
		r.by = ByPolicy
		e := Errorf(Denied, "%s requires confirmation (%s), and %s; nothing was run", r.answer.Tool, d.Reason, nobody)
		e.Cause = err
		if e.Steps = d.Steps; len(e.Steps) == 0 {
			e.Steps = []Step{OperatorStep(OpPolicyExplain, r.answer.Tool)}
		}
		return d, e
	case err != nil:
		return d, err
	}
	r.by = approval.By
	if approval.Question != "" {
		r.answer.Question = approval.Question
	}
	switch {
	case !approval.Yes && q.Kind == AskRight:
		e := r.missingError(d)
		e.Message = fmt.Sprintf("%s needs rights that are not granted and were not allowed for this call: %s; "+
			"nothing was run", ask.Plugin, rightNames(d.Missing))
		return d, e
	case !approval.Yes:
		return d, Errorf(Denied, "%s was not confirmed; nothing was run", r.answer.Tool)
	}
	return r.decideAgain(ctx, q, approval)
}

func (r *run) askApprover(ctx context.Context, q *Question) (Approval, error) {
	if r.host.cfg.Approver == nil {
		return Approval{}, CannotAsk("nobody can be asked")
	}
	return r.host.cfg.Approver.Approve(ctx, q)
}

// decideAgain evaluates the policy again after a person approved: with the rights that the person allowed, and because
// the policy may have changed in the meantime.
func (r *run) decideAgain(ctx context.Context, q *Question, approval Approval) (Decision, error) {
	var allowed []string
	if q.Kind == AskRight {
		if allowed = approval.Rights; allowed == nil {
			for _, right := range q.Rights {
				allowed = append(allowed, right.Right)
			}
		}
	}
	_, d, err := r.consult(ctx, allowed)
	switch {
	case err != nil:
		return d, err
	case len(d.Missing) > 0:
		r.by = ByPolicy
		return d, r.missingError(d)
	case d.Verdict == Confirm && q.Reason == "":
		return d, Errorf(Denied, "the policy has changed and requires confirmation of %s; nothing was run, call again",
			r.answer.Tool)
	}
	return d, r.resolveSettings(&d)
}

// callerCLI is the caller of the command line: the person who runs the program.
const callerCLI = "cli"

// forOperator reports whether the person who runs the program makes the call: not a client of it, also not by way of
// plugins.
func (r *run) forOperator() bool {
	outer := caller{name: r.call.Caller}
	if len(r.behalf.callers) > 0 {
		outer = r.behalf.callers[0]
	}
	return outer.name == callerCLI
}

// missingError is the error of a call that requires rights which are not granted.
func (r *run) missingError(d Decision) *Error {
	plugin, ask := r.address.Provider.Info().Name, ""
	if !r.forOperator() {
		ask = "; ask the operator to grant them to " + plugin
	}
	return &Error{Code: Denied, Denied: d.Missing, Steps: d.Steps,
		Message: fmt.Sprintf("%s needs rights that are not granted: %s%s; nothing was run", plugin, rightNames(d.Missing),
			ask)}
}

func rightNames(rights []Denial) string {
	names := make([]string, len(rights))
	for i, d := range rights {
		names[i] = d.Right
	}
	return strings.Join(names, ", ")
}
