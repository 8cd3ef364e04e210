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
	Caller       string   // "cli", "mcp:CLIENT" or "plugin:NAME"
	Remote       bool     // the caller came over the network
	Held         []string // of a plugin that calls: the tools that it was granted in the call that it is in
	Plugin       string
	Tool         string // local name
	Effect       string
	Digest       string // "" for what is compiled in
	Capabilities manifest.Capabilities

	// Params are what the tool would be called with, and Within is the id of the call in which a plugin makes this one. Both are
	// for whoever is asked to confirm; a policy does not see them.
	Params json.RawMessage
	Within string
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
	// SettingsIn is where they are written: "[plugin.NAME.settings] of /path/policy.toml".
	SettingsIn string
	Isolate    string // "process": run it in a process of its own; "" or "none": in this one
	Audit      string // how the call depends on the audit log, in the log's words; "" leaves it to the log
	Steps      []Step // what the operator would do to allow it
}

// Asked lists the rights that a manifest asks for, in the grammar of grants as far as the plugin can know
// it: where the operator has to fill in a folder, PATH stands. Why is the plugin's own word, cleaned.
func Asked(c manifest.Capabilities) []Denial {
	var rights []Denial
	add := func(why, right string) {
		rights = append(rights, Denial{Right: manifest.CleanLine(right), Why: manifest.CleanLine(why)})
	}
	for _, f := range c.FS {
		add(f.Why, "fs:"+f.Mode+":PATH="+f.Path)
	}
	for _, h := range c.HTTP {
		add(h.Why, "http:"+joinMethods(h.Methods)+":"+h.URL)
	}
	for _, s := range c.Secrets {
		if s.Read {
			add(s.Why, "secret:read:"+s.Name)
		} else {
			add(s.Why, "secret:"+s.Name)
		}
	}
	for _, e := range c.Env {
		add(e.Why, "env:"+e.Name)
	}
	for _, t := range c.Tools {
		add(t.Why, "tool:"+t.Name)
	}
	if c.Clock != nil {
		add(c.Clock.Why, "clock")
	}
	if c.Random != nil {
		add(c.Random.Why, "random")
	}
	return rights
}

// DenyAll is the policy of a host that only lists, describes and searches: it denies every call.
type DenyAll struct{}

// Decide denies the call.
func (DenyAll) Decide(context.Context, Ask) (Decision, error) {
	return Decision{Verdict: Deny, Reason: "this host runs nothing"}, nil
}
