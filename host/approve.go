package host

import (
	"context"
	"encoding/json"
)

// Approver asks a person about a call that the policy does not decide alone. call.Host.Call waits for it before
// anything runs.
type Approver interface {
	// Approve puts a question to a person and returns the answer. The error is [NoApproverError] if there is nobody to
	// ask: the call is then denied as if there were no Approver. Any other error ends the call as it is.
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
	// Params are the parameters that the tool gets, byte for byte.
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

// NoApproverError is the error of an [Approver] that has nobody to ask. It is the reason, as the end of a sentence:
// "there is no terminal to ask on".
type NoApproverError string

func (e NoApproverError) Error() string { return string(e) }
