// Package approval has what a person decides before a call runs or something changes, and the answers.
package approval

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"

	"github.com/parley-tools/parley/host/grant"
	"github.com/parley-tools/parley/manifest"
)

// Approval is what a person has to decide before something runs or changes. It outlives the call that asked for it.
type Approval struct {
	ID        string          `json:"id"`
	Kind      Kind            `json:"kind"`
	Principal string          `json:"principal"`         // who asks, such as "mcp:claude"
	Session   string          `json:"session,omitempty"` // as caller.Session.String
	Tool      string          `json:"tool"`              // qualified name, or for a change the command
	Effect    string          `json:"effect,omitempty"`
	Params    json.RawMessage `json:"params,omitempty"` // without secrets; long values are cut
	// Rights has the smallest rights that suffice for kind ForRight, in the grammar of grants. PATH stands for a folder
	// that the person chooses.
	Rights []grant.Denial `json:"rights,omitempty"`
	// Reason is why a person is asked: the rule that requires it, or what a change would do. It may have several lines.
	Reason  string    `json:"reason,omitempty"`
	Digest  string    `json:"digest,omitempty"` // digest of the plugin
	Asked   time.Time `json:"asked"`
	Expires time.Time `json:"expires"`
	State   State     `json:"state"`

	// Answered is the answer; absent while the approval is open.
	Answered *Reply `json:"answered,omitempty"`

	// Key is the key of the session, which is unique across owners. Exact has the parameters that the tool gets, byte for
	// byte, or the text of the change. Which calls an answer is valid for depends on both.
	Key   string          `json:"-"`
	Exact json.RawMessage `json:"-"`
	// Within is the id of the call in which a plugin makes this one; "" if no plugin does.
	Within string `json:"-"`
	// Prompt is what a person at a terminal is asked about a change, such as "Write this?".
	Prompt string `json:"-"`
}

// ShortParams returns the parameters for a person to read, as JSON of about limit bytes at most. Each long value is cut
// on its own, so that no value hides the others.
func (a *Approval) ShortParams(limit int) json.RawMessage {
	short := manifest.EscapeJSON(a.Params)
	for each := limit; len(short) > limit && each >= minShort; each /= 2 {
		short = manifest.EscapeJSON(manifest.MapJSON(short, func(s string) string { return manifest.Clip(s, each) }))
	}
	if len(short) > limit {
		short, _ = manifest.Marshal(fmt.Sprintf("%s (%d bytes in all)", manifest.Clip(string(short), limit), len(a.Params)))
	}
	return short
}

// minShort is the size in bytes below which no value is cut.
const minShort = 16

// Kind is what an [Approval] is about.
type Kind string

// The kinds of approvals.
const (
	ForCall   Kind = "call"   // the policy requires that a person confirms the call
	ForRight  Kind = "right"  // the call requires rights that are not granted
	ForChange Kind = "change" // a change of the operator's files, or of what is installed
)

// Kinds say who can answer the approvals of a kind, and for how long.
var Kinds = map[Kind]struct {
	ByClient bool // the MCP client that calls may answer, too
	Lasts    bool // an answer may be Session or Always
}{ForCall: {true, true}, ForRight: {false, true}, ForChange: {false, false}}

// State is what has become of an [Approval].
type State string

// The states of approvals.
const (
	Open    State = "open"
	Allowed State = "allowed"
	Denied  State = "denied"
	Expired State = "expired" // nobody answered, or the session has ended
)

// Answer is how a person answers an [Approval].
type Answer string

// The answers.
const (
	Deny    Answer = "deny"
	Once    Answer = "once"    // this call, one time
	Session Answer = "session" // calls of the tool by the same caller, until its session ends
	Always  Answer = "always"  // the answer was written to grants.toml
)

// Reply is the answer to an [Approval]. Without Answer nobody has answered yet.
type Reply struct {
	Answer Answer    `json:"answer"`
	By     string    `json:"by"`             // ByTerminal, ByMCP or ByPolicy
	Word   string    `json:"word,omitempty"` // a remark for the caller, with a denial
	Time   time.Time `json:"time"`
	// Rights replaces the rights of the approval, with the folders that the person chose. Nil means the rights as asked,
	// which is not possible if they contain PATH.
	Rights []string `json:"rights,omitempty"`
	// Nobody is why no person could be asked right away, as the end of a sentence. It is set only without an answer.
	Nobody string `json:"-"`
}

// Allows reports whether the reply lets the call run.
func (r Reply) Allows() bool { return r.Answer != "" && r.Answer != Deny }

// NewID returns a random id for an approval.
func NewID() string {
	var b [6]byte
	_, _ = rand.Read(b[:])
	return "a" + hex.EncodeToString(b[:])
}

// Approver asks a person about a call that the policy does not decide alone. call.Host.Call waits for it before
// anything runs.
type Approver interface {
	// Approve puts an approval to a person and returns the reply. The error is [NoApproverError] if there is nobody to
	// ask. Any other error ends the call as it is. An approver that stores approvals sets the times of a and, if it has
	// stored the same one before, its ID. A reply without an answer ends the call, and the approval stays open.
	Approve(ctx context.Context, a *Approval) (Reply, error)
}

// Keeper is what an [Approver] also implements if it stores approvals of rights that a call can begin without.
type Keeper interface {
	// Open opens an approval that no call waits for.
	Open(a *Approval) error
	// Known returns the answer to an approval of rights for the same call, if there is one, and sets its rights in a.
	Known(a *Approval) (Reply, error)
}

// ApproverFunc is a function that implements [Approver].
type ApproverFunc func(ctx context.Context, a *Approval) (Reply, error)

// Approve calls f.
func (f ApproverFunc) Approve(ctx context.Context, a *Approval) (Reply, error) { return f(ctx, a) }

// Who decided about a call, as in host.Event.By.
const (
	ByTerminal = "terminal" // a person at the controlling terminal
	ByMCP      = "mcp"      // a person at an MCP client
	ByPolicy   = "policy"   // the policy alone
)

// NoApproverError is the error of an [Approver] that has nobody to ask. It is the reason, as the end of a sentence:
// "there is no terminal to ask on".
type NoApproverError string

func (e NoApproverError) Error() string { return string(e) }
