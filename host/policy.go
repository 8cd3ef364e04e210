package host

import (
	"context"
	"encoding/json"

	"github.com/parley-tools/parley/manifest"
)

// Policy says who may do what. The operator owns it; no tool and no agent can change it.
type Policy interface {
	// Decide is asked once for every call, after its parameters were validated and before anything runs.
	// An error means that the policy itself cannot be read, and nothing runs.
	Decide(ctx context.Context, ask Ask) (Decision, error)
}

// Ask is what a policy decides on.
type Ask struct {
	Caller       string
	Plugin       string
	Tool         string // local name
	Effect       string
	Digest       string // "" for what is compiled in
	Capabilities manifest.Capabilities
}

// Verdict is the answer of a policy.
type Verdict int

// Verdicts. The zero value denies.
const (
	Deny Verdict = iota
	Allow
	Confirm
)

// Decision is a verdict with what follows from it.
type Decision struct {
	Verdict  Verdict
	Reason   string // why it was denied or wants confirming, for people
	Grant    Grant
	Missing  []Denial // rights that are asked, not optional and not given: the call ends before anything runs
	Limits   Limits
	Settings json.RawMessage
	Next     []string // what the operator would type to allow it
}
