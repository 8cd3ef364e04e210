package host

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/parley-tools/parley/host/caller"
	"github.com/parley-tools/parley/host/grant"
	"github.com/parley-tools/parley/host/step"
	"github.com/parley-tools/parley/manifest"
)

// Outside reports whether the tool reaches outside a page. A built-in tool that does not say how far it reaches may
// reach anything.
func (a Address) Outside() bool {
	return a.Tool.Outside() || a.Tool.Reach == "" && a.Provider.Info().Kind == manifest.KindBuiltin
}

// Outside reports whether every tool that a name stands for reaches outside a page. The name may be a pattern with "*"
// at its end. It returns false for a name that no tool has.
func (c *Catalog) Outside(pattern string) bool {
	prefix, wild := strings.CutSuffix(pattern, "*")
	if !wild {
		a, err := c.FindAnyway(pattern)
		return err == nil && a.Tool != nil && a.Outside()
	}
	plugin, local, dotted := strings.Cut(prefix, ".")
	p, ok := c.Provider(plugin)
	if !ok || !dotted {
		return false
	}
	names, err := p.Names()
	if err != nil {
		return false
	}
	found := false
	for _, name := range names {
		if len(name) < len(local) || !strings.EqualFold(name[:len(local)], local) {
			continue
		}
		if a, err := c.FindIn(plugin, name); err != nil || a.Tool == nil || !a.Outside() {
			return false
		}
		found = true
	}
	return found
}

// Policy decides which caller may call which tool, and with which rights. It belongs to the operator: tools and agents
// cannot change it.
type Policy interface {
	// Decide is called for every call, after its parameters have been validated and before anything runs. For a call by a
	// plugin it is also called once for each caller on whose behalf the plugin calls. An error means that the policy
	// cannot be read, and ends the call.
	Decide(ctx context.Context, ask Ask) (Decision, error)
}

// Ask is the call that a policy decides on.
type Ask struct {
	Principal caller.Principal
	Plugin    string
	Tool      string // local name
	Effect    string
	// Trusted means that the principal is a shipped plugin, which acts by its own rights. OnBehalf means that such a
	// plugin calls on behalf of the principal: only rules that deny the tool by its name count.
	Trusted, OnBehalf bool
	Owner             string // the identity of the plugin, as [Info.Identity]
	ReplacedOwner     string // as in [Info]
	Outside           bool   // the tool reaches outside a page, so that no wildcard includes it
	Digest            string // "" if it is built in
	Capabilities      manifest.Capabilities
	// Allowed are rights that a person allowed for this call only, in the grammar of grants. They count as granted to
	// this build, as far as Capabilities request them.
	Allowed []string
}

// Verdict is whether a policy allows a call.
type Verdict int

// The verdicts. The zero value denies.
const (
	Deny Verdict = iota
	Allow
	Confirm
)

// Decision is a verdict with its reason and, if the call is allowed, its rights and limits.
type Decision struct {
	Verdict Verdict
	Reason  string // why the call is denied or requires confirmation, for people
	Grant   grant.Grant
	Missing []grant.Denial // required rights that are not granted; without them nothing runs
	// Allowable means that Missing can be granted, so that a person may be asked to allow it for this call.
	Allowable bool
	Limits    grant.Limits
	Settings  json.RawMessage
	// SettingsIn is where the settings are defined: "[plugin.NAME.settings] of /path/policy.toml".
	SettingsIn string
	Files      []string     // folders of this machine whose files an MCP client may name in parameters
	Isolate    string       // as in job.Job
	Pool       string       // as in job.Job
	Audit      string       // how the call depends on the audit log; "" leaves that to the log
	Quota      *grant.Quota // what the caller may use; nil if nothing limits it
	Steps      []step.Step  // what the operator can do to allow the call
}

// Quotas count what callers use.
type Quotas interface {
	// Take counts a call. The error is [Busy] if the call would exceed the quota. Otherwise done must be called when the
	// call has ended, with how many bytes it and the calls within it have returned.
	Take(q *grant.Quota) (done func(bytes int64), err error)
}

// DenyAll is the policy of a host that only lists, describes and searches: it denies every call.
type DenyAll struct{}

// Decide denies the call.
func (DenyAll) Decide(context.Context, Ask) (Decision, error) {
	return Decision{Verdict: Deny, Reason: "this host runs nothing"}, nil
}
