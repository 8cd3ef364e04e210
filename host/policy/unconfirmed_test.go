package policy

import (
	"errors"
	"strings"
	"testing"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/caller"
)

// TestUnconfirmed checks whose list frees which calls from a confirmation: that of policy.toml always, that of
// grants.toml only where policy.toml does not require the confirmation, and neither for a name that anybody can give.
func TestUnconfirmed(t *testing.T) {
	const list = `unconfirmed = ["cdp.state", "shop.*", "effect:write"]`
	for _, tc := range []struct {
		name, hand, made string
		ask              host.Ask
		verdict          host.Verdict
	}{
		{"by hand", "[callers.\"mcp:a\"]\nconfirm = [\"*\"]\n" + list, "", host.Ask{Tool: "state"}, host.Allow},
		{"by another entry", "[callers.\"mcp:*\"]\nconfirm = [\"*\"]\n[callers.\"mcp:a\"]\n" + list, "",
			host.Ask{Tool: "state"}, host.Allow},
		{"of another caller", "[callers.\"mcp:*\"]\nconfirm = [\"*\"]\n[callers.\"mcp:b\"]\n" + list, "",
			host.Ask{Tool: "state"}, host.Confirm},
		{"another tool", "[callers.\"mcp:a\"]\n" + list, "", host.Ask{Tool: "close"}, host.Confirm},
		{"an effect", "[callers.\"mcp:a\"]\nconfirm = [\"*\"]\n" + list, "",
			host.Ask{Tool: "x", Effect: "write"}, host.Allow},
		{"a worse effect", "[callers.\"mcp:a\"]\nconfirm = [\"*\"]\n" + list, "", host.Ask{Tool: "x"}, host.Confirm},
		{"answered, by default", "", "[callers.\"mcp:a\"]\n" + list, host.Ask{Tool: "state"}, host.Allow},
		{"answered, against the policy", "[callers.\"mcp:*\"]\nconfirm = [\"effect:destructive\"]",
			"[callers.\"mcp:a\"]\n" + list, host.Ask{Tool: "state"}, host.Confirm},
		{"answered, denied", "[callers.\"mcp:*\"]\ndeny = [\"cdp.state\"]", "[callers.\"mcp:a\"]\n" + list,
			host.Ask{Tool: "state"}, host.Deny},
		{"a bound name", "[callers.\"mcp-http:a\"]\nallow = [\"*\"]\nconfirm = [\"*\"]\n" + list, "",
			host.Ask{Tool: "state", Principal: caller.Principal{Name: "mcp-http:a", Bound: true}}, host.Allow},
		{"a name that anybody can give",
			"[callers.\"mcp-http:*\"]\nallow = [\"*\"]\nconfirm = [\"*\"]\n[callers.\"mcp-http:a\"]\n" + list, "",
			host.Ask{Tool: "state", Principal: caller.Principal{Name: "mcp-http:a"}}, host.Confirm},
	} {
		t.Run(tc.name, func(t *testing.T) {
			tc.ask.Plugin = "cdp"
			if tc.ask.Effect == "" {
				tc.ask.Effect = "destructive"
			}
			if tc.ask.Principal.Name == "" {
				tc.ask.Principal.Name = "mcp:a"
			}
			if d := decide(t, load(t, tc.hand, tc.made), tc.ask); d.Verdict != tc.verdict {
				t.Errorf("got %d (%s), expected %d", d.Verdict, d.Reason, tc.verdict)
			}
		})
	}
}

// TestUnconfirm checks that what it writes has an effect, and that it does not overrule policy.toml.
func TestUnconfirm(t *testing.T) {
	ask := host.Ask{Principal: caller.Principal{Name: "mcp:a"}, Plugin: "cdp", Tool: "state", Effect: "destructive"}
	p := load(t, "", "")
	for range 2 { // the second time it changes nothing
		e, err := p.Unconfirm("mcp:a", "cdp.state", "destructive")
		must(t, err)
		if !strings.HasSuffix(e.Diff(), "grants.toml: what needs no confirmation of mcp:a\n+ unconfirmed cdp.state\n") {
			t.Errorf("it shows %q", e.Diff())
		}
		must(t, p.WriteGrants(e))
	}
	if text := read(t, p.dir+"/grants.toml"); strings.Count(text, "cdp.state") != 1 {
		t.Errorf("it wrote %s", text)
	}
	if d := decide(t, p, ask); d.Verdict != host.Allow || !strings.Contains(d.Reason, "grants.toml:") {
		t.Errorf("%d, %s", d.Verdict, d.Reason)
	}
	forbidden := load(t, "[callers.\"mcp:*\"]\nconfirm = [\"cdp\"]", "")
	_, err := forbidden.Unconfirm("mcp:a", "cdp.state", "destructive")
	if !errors.Is(err, host.ConfigError) || !strings.Contains(err.Error(), "policy.toml:2 requires confirmation of cdp") {
		t.Error(err)
	}
	if _, err := p.Unconfirm("mcp:\x1b", "cdp.state", "destructive"); !errors.Is(err, host.InvalidArgs) {
		t.Error(err)
	}
}
