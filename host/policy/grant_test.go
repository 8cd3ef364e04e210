package policy

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/caller"
	"github.com/parley-tools/parley/manifest"
)

func TestParseGrant(t *testing.T) {
	tests := []struct{ in, want, wantErr string }{
		{"fs:ro:/srv/data=/data", "fs:ro:/srv/data=/data", ""},
		{"fs:rw:/srv/./data/=/data", "fs:rw:/srv/data=/data", ""},
		{"fs:ro:./data=/data", "fs:ro:data=/data", ""},
		{"fs:ro:../data=/data", "fs:ro:../data=/data", ""},
		{"fs:ro:/srv/a=b=/data", "fs:ro:/srv/a=b=/data", ""},
		{"fs:ro:/srv:x=/", "fs:ro:/srv:x=/", ""},
		{"http:GET:https://api.github.com", "http:GET:https://api.github.com", ""},
		{"http:GET,POST:https://API.github.com:443", "http:GET,POST:https://api.github.com", ""},
		{"tool:cdp.Page.*", "tool:cdp.Page.*", ""},
		{"tool:*", "tool:*", ""},
		{"tool:text.hash", "tool:text.hash", ""},
		{"tool:cdp.Page.get*", "tool:cdp.Page.get*", ""},
		{"tool:cdp.Browser.getVersion", "tool:cdp.Browser.getVersion", ""},
		{"env:LANG", "env:LANG", ""},
		{"secret:TOKEN", "secret:TOKEN", ""},
		{"secret:read:TOKEN", "secret:read:TOKEN", ""},
		{"secret:read", "secret:read", ""},
		{"browser:session", "browser:session", ""},
		{"clock", "clock", ""},
		{"random", "random", ""},

		{"", "", "is not a grant"},
		{"root", "", "is not a grant"},
		{"FS:ro:/a=/b", "", "is not a grant"},
		{"browser", "", "expected browser:session"},
		{"browser:", "", "expected browser:session"},
		{"browser:default", "", "expected browser:session"},
		{"clock:", "", "expected only"},
		{"random:yes", "", "expected only"},
		{"fs", "", "expected fs:ro"},
		{"fs:ro", "", "expected fs:ro"},
		{"fs:ro:/data", "", "expected fs:ro"},
		{"fs:wo:/a=/b", "", "expected fs:ro"},
		{"fs:/a=/b", "", "expected fs:ro"},
		{"fs:ro:=/b", "", "expected fs:ro"},
		{"fs:ro:/a=", "", "not absolute"},
		{"fs:ro:/a=b", "", "write it as /b"},
		{"fs:ro:/a=/b/", "", "write it as /b"},
		{"fs:ro:/a=/b/../c", "", "write it as /c"},
		{"fs:ro:/a=//b", "", "write it as /b"},
		{"fs:ro:/a=/b\\c", "", "backslash"},
		{"fs:ro:/a=/b\u202e", "", "invisible characters"},
		{"fs:ro:/a\x00b=/b", "", "invisible characters"},
		{"http:https://api.github.com", "", "expected http:METHODS:ORIGIN"},
		{"http:get:https://api.github.com", "", "capitals"},
		{"http::https://api.github.com", "", "expected http:METHODS"},
		{"http:GET,:https://api.github.com", "", "expected http:METHODS"},
		{"http:GET,GET:https://api.github.com", "", "each once"},
		{"http:*:https://api.github.com", "", "expected http:METHODS"},
		{"http:GET:api.github.com", "", "does not begin with http"},
		{"http:GET:https://api.github.com/v3", "", "has a path"},
		{"tool:", "", "not a tool name or pattern"},
		{"tool:cdp.*.enable", "", "not a tool name or pattern"},
		{"tool:**", "", "not a tool name or pattern"},
		{"tool:cdp..x", "", "not a tool name or pattern"},
		{"tool:a.b.c.d", "", "not a tool name or pattern"},
		{"env:", "", "expected env:NAME"},
		{"env:A-B", "", "expected env:NAME"},
		{"env:LD_*", "", "expected env:NAME"},
		{"secret:", "", "expected secret:NAME"},
		{"secret:read:", "", "expected secret:NAME"},
		{"secret:write:X", "", "expected secret:NAME"},
		{strings.Repeat("x", 9000), "", "longer than"},
	}
	for _, tt := range tests {
		g, err := ParseGrant(tt.in)
		switch {
		case err != nil && tt.want != "":
			t.Errorf("%q: %v, want %s", tt.in, err, tt.want)
		case err == nil && filepath.ToSlash(g.String()) != tt.want:
			t.Errorf("%q: got %s, want %q", tt.in, g, tt.want)
		case err != nil && !strings.Contains(err.Error(), tt.wantErr):
			t.Errorf("%q: got %v, want ...%s...", tt.in, err, tt.wantErr)
		}
	}
}

func TestMatchTool(t *testing.T) {
	tests := []struct {
		granted, name string
		outside, want bool
	}{
		{"cdp.*", "cdp.Page.navigate", false, true},
		{"cdp.*", "cdp.status", false, true},
		{"cdp.Page.*", "cdp.Page.navigate", false, true},
		{"cdp.Page.*", "cdp.PageX.navigate", false, false},
		{"cdp.Page", "cdp.Page.navigate", false, false},
		{"text.*", "text.hash", false, true},
		{"text.*", "text", false, false},
		{"*", "text.hash", false, true},
		{"*", "any.tool", true, false},
		{"cdp.*", "cdp.BROWSER.close", true, false},
		{"page.*", "page.upload", true, false},
		{"cdp.o*", "cdp.open", true, false},
		{"cdp.open", "cdp.open", true, true},
		{"cdp.Browser.close", "cdp.browser.Close", true, true},
		{"not a pattern", "not a pattern", false, false},
	}
	for _, tt := range tests {
		if got := MatchTool([]string{tt.granted}, tt.name, tt.outside); got != tt.want {
			t.Errorf("%s matches %s: %v", tt.granted, tt.name, got)
		}
	}
	if MatchTool(nil, "text.hash", false) {
		t.Error("an empty list matches a tool")
	}
}

// A rule that allows more to a client over the network applies only with a token that is bound to the client's name.
func TestRulesForABoundName(t *testing.T) {
	p := load(t, `[callers."mcp-http:claude"]
allow = ["*"]
[callers."mcp-http:strict"]
allow = []
`, "")
	for _, tt := range []struct {
		caller, effect string
		bound          bool
		want           host.Verdict
	}{
		{"mcp:claude", "write", true, host.Allow}, {"mcp:claude", "write", false, host.Deny},
		{"mcp:claude", "read", false, host.Allow}, {"mcp:strict", "read", false, host.Deny},
		{"mcp:strict", "read", true, host.Deny}, {"mcp:other", "read", true, host.Allow},
	} {
		ask := call(tt.caller, "text.hash", tt.effect, true)
		ask.Principal.Bound = tt.bound
		if d := decide(t, p, ask); d.Verdict != tt.want {
			t.Errorf("%s (bound %v) %s: %v %s", tt.caller, tt.bound, tt.effect, d.Verdict, d.Reason)
		}
	}
}

// A shipped plugin is a trusted intermediary: it has the rights that its manifest names. Of the rules for callers on
// whose behalf it calls, only those that deny a tool by name apply.
func TestShippedPluginsAreIntermediaries(t *testing.T) {
	caps := manifest.Capabilities{Clock: &manifest.PlainCapability{},
		FS:    []manifest.FSCapability{{Path: "/d", Mode: "ro"}},
		Tools: []manifest.NamedCapability{{Name: "cdp.Page.*"}}}
	ask := host.Ask{Principal: caller.Principal{Name: "cli"}, Plugin: "page", Tool: "t", Effect: "read", Digest: digestA,
		Capabilities: caps}
	granted := func(p *Policy, owner string) string {
		ask.Owner = owner
		return strings.Join(decide(t, p, ask).Grant.Names(), " ")
	}
	if got := granted(Default(), host.OwnerShipped); got != "tool:cdp.Page.* clock" {
		t.Errorf("a shipped plugin was granted %q", got)
	}
	if got := granted(Default(), digestA); got != "" {
		t.Errorf("another plugin was granted %q", got)
	}
	if got := granted(load(t, "[plugin.page]\ngrants = []", ""), host.OwnerShipped); got != "" {
		t.Errorf("a shipped plugin with grants in the policy was granted %q", got)
	}
	p := load(t, `[callers."mcp:*"]
allow = ["effect:read"]
deny = ["cdp.Page.close", "effect:destructive"]
confirm = ["*"]
`, "")
	for tool, want := range map[string]host.Verdict{"cdp.Page.navigate": host.Allow, "cdp.Page.close": host.Deny} {
		behind := call("mcp:claude", tool, "destructive", true)
		behind.OnBehalf = true
		if d := decide(t, p, behind); d.Verdict != want {
			t.Errorf("%s: %v %s", tool, d.Verdict, d.Reason)
		}
	}
}

// A wildcard that can have no effect is not written.
func TestWildcardOutsideAPageIsNotWritten(t *testing.T) {
	p := load(t, "", "")
	p.dir = t.TempDir()
	for _, text := range []string{"tool:cdp.Browser.*", "tool:cdp.target.a*"} {
		g, err := ParseGrant(text)
		must(t, err)
		if _, err := p.Grant("p", digestA, g); err == nil || !strings.Contains(err.Error(), "never granted by a wildcard") {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// An MCP client may name files only in the folders that the policy lists for it.
func TestFilesOfCallers(t *testing.T) {
	p := load(t, `[callers."mcp:*"]
files = ["/srv/up"]
[callers."mcp:claude"]
files = ["/srv/claude", "/srv/more"]
[callers."mcp-http:far"]
files = []
`, "")
	for _, tt := range []struct {
		caller string
		remote bool
		bound  bool
		want   string
	}{
		{"mcp:some", false, false, "/srv/up"}, {"mcp:some", true, false, "/srv/up"},
		{"mcp:claude", false, false, "/srv/claude /srv/more"}, {"mcp:claude", true, true, "/srv/claude /srv/more"},
		{"mcp:claude", true, false, ""}, // the name of a client is not authenticated
		{"mcp:far", true, true, ""}, {"mcp:far", true, false, ""}, {"mcp:far", false, false, "/srv/up"},
		{"cli", false, false, ""}, {"plugin:p", false, false, ""},
	} {
		ask := call(tt.caller, "text.hash", "read", tt.remote)
		ask.Principal.Bound = tt.bound
		d := decide(t, p, ask)
		if got := strings.Join(d.Files, " "); got != tt.want {
			t.Errorf("%s (remote %v) may name files in %q, want %q", tt.caller, tt.remote, got, tt.want)
		}
	}
	if d := decide(t, Default(), call("mcp:some", "text.hash", "read", false)); d.Files != nil {
		t.Errorf("without a policy an MCP client may name files in %q", d.Files)
	}
}

func FuzzParseGrant(f *testing.F) {
	for _, s := range []string{"fs:ro:/srv/data=/data", "fs:rw:a=b=/c", "http:GET,POST:https://*.a.test",
		"tool:cdp.Page.*", "env:LANG", "secret:read:X", "browser:session", "clock", "random"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		g, err := ParseGrant(s)
		if err != nil {
			return
		}
		again, err := ParseGrant(g.String())
		if err != nil || again.String() != g.String() || again.subject() != g.subject() {
			t.Fatalf("%q became %q, which is read as %q, %v", s, g, again, err)
		}
	})
}
