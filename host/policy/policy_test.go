package policy

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/caller"
	"github.com/parley-tools/parley/host/grant"
	"github.com/parley-tools/parley/host/policy/operator"
	"github.com/parley-tools/parley/host/step"
	"github.com/parley-tools/parley/manifest"
)

const (
	digestA = "sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
	digestB = "sha256:bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
)

// folderOf writes policy files; "" leaves one out.
func folderOf(t testing.TB, hand, made string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{PolicyFile: hand, GrantsFile: made} {
		if text != "" {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	return dir
}

var testEnv = Env{Outside: isOutside, LookupEnv: func(name string) (string, bool) {
	v, ok := map[string]string{"LANG": "C.UTF-8", "EMPTY": ""}[name]
	return v, ok
}}

// isOutside replaces a catalog: these tools reach outside a page.
func isOutside(pattern string) bool {
	for _, name := range []string{"cdp.browser.", "cdp.target.", "cdp.dom.setfileinputfiles",
		"cdp.input.dispatchdragevent"} {
		if strings.HasPrefix(strings.ToLower(pattern), name) {
			return true
		}
	}
	return false
}

func load(t testing.TB, hand, made string) *Policy {
	t.Helper()
	p, err := Load(folderOf(t, hand, made), testEnv)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func decide(t testing.TB, p *Policy, ask host.Ask) host.Decision {
	t.Helper()
	d, err := p.Decide(context.Background(), ask)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// call returns the request of a caller to call a tool, given by its qualified name.
func call(who, tool, effect string, remote bool) host.Ask {
	plugin, local, _ := strings.Cut(tool, ".")
	if remote {
		who = strings.Replace(who, "mcp:", "mcp-http:", 1)
	}
	ask := host.Ask{Principal: caller.Principal{Name: who}, Plugin: plugin, Tool: local, Effect: effect,
		Outside: isOutside(tool)}
	if strings.HasPrefix(who, "plugin:") {
		ask.Principal.Tools = []string{"text.*", "cdp.*", "cdp.Target.createTarget"}
	}
	return ask
}

func TestDefaults(t *testing.T) {
	tests := []struct {
		name string
		ask  host.Ask
		want host.Verdict
	}{
		{"the command line reads", call("cli", "cdp.Page.captureScreenshot", "read", false), host.Allow},
		{"the command line calls destructive tools", call("cli", "cdp.Browser.close", "destructive", false), host.Allow},
		{"the command line runs plugins", call("cli", "text.hash", "read", false), host.Allow},
		{"stdio reads", call("mcp:claude", "text.hash", "read", false), host.Allow},
		{"stdio writes", call("mcp:claude", "cdp.Page.navigate", "write", false), host.Allow},
		{"stdio confirms destructive tools", call("mcp:claude", "cdp.Browser.close", "destructive", false), host.Confirm},
		{"stdio confirms tools without an effect", call("mcp:claude", "x.y", "", false), host.Confirm},
		{"the network reads", call("mcp:claude", "text.hash", "read", true), host.Allow},
		{"the network may not write", call("mcp:claude", "cdp.Page.navigate", "write", true), host.Deny},
		{"the network may not call destructive tools",
			call("mcp:claude", "cdp.Browser.close", "destructive", true), host.Deny},
		{"the network may not call tools with an unknown effect", call("mcp:claude", "x.y", "sudo", true), host.Deny},
		{"the network by its own prefix", call("mcp-http:claude", "cdp.Page.navigate", "write", false), host.Deny},
		{"a plugin may call nothing", call("plugin:github", "text.hash", "read", false), host.Deny},
		{"nobody", call("", "text.hash", "read", false), host.Deny},
		{"a stranger", call("root", "text.hash", "read", false), host.Deny},
		{"a client without a name", call("mcp:", "text.hash", "read", false), host.Deny},
		{"a name that begins like the command line", call("cli:x", "text.hash", "read", false), host.Deny},
	}
	empty, err := Load(filepath.Join(t.TempDir(), "not", "there"), Env{})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range []*Policy{Default(), empty} {
		for _, tt := range tests {
			d := decide(t, p, tt.ask)
			if d.Verdict != tt.want {
				t.Errorf("%s: got %v (%s), want %v", tt.name, d.Verdict, d.Reason, tt.want)
			}
			if d.Verdict != host.Allow && d.Reason == "" {
				t.Errorf("%s: no reason", tt.name)
			}
		}
	}
}

func TestPluginsHaveNoRightsByDefault(t *testing.T) {
	ask := host.Ask{Principal: caller.Principal{Name: "cli"}, Plugin: "github", Tool: "list", Effect: "read",
		Digest:       digestA,
		Capabilities: everything(false)}
	d := decide(t, Default(), ask)
	if !reflect.DeepEqual(d.Grant, grant.Grant{}) {
		t.Errorf("granted %v", d.Grant.Names())
	}
	if len(d.Missing) != 8 || len(d.Steps) < 7 {
		t.Errorf("missing %v, next %v", d.Missing, d.Steps)
	}
	for _, s := range d.Steps { // each can be run as it is
		if s.Op != step.OpPolicyGrant {
			continue
		}
		if _, err := ParseGrant(s.Args[1]); err != nil {
			t.Errorf("next is %v: %v", s, err)
		}
	}
	ask.Capabilities = everything(true)
	if d := decide(t, Default(), ask); len(d.Missing) != 0 || !reflect.DeepEqual(d.Grant, grant.Grant{}) {
		t.Errorf("optional rights: missing %v, granted %v", d.Missing, d.Grant.Names())
	}
}

func everything(optional bool) manifest.Capabilities {
	return manifest.Capabilities{
		FS:   []manifest.FSCapability{{Path: "/data", Mode: "ro", Why: "reads your\x1b[31m data", Optional: optional}},
		HTTP: []manifest.HTTPCapability{{URL: "https://api.github.com", Optional: optional}},
		Secrets: []manifest.SecretCapability{
			{Name: "GITHUB_TOKEN", URL: "https://api.github.com", Header: "Authorization: Bearer {secret}", Optional: optional},
			{Name: "KEY", Read: true, Optional: optional},
		},
		Env:    []manifest.NamedCapability{{Name: "LANG", Optional: optional}},
		Tools:  []manifest.NamedCapability{{Name: "cdp.Page.*", Optional: optional}},
		Clock:  &manifest.PlainCapability{Optional: optional},
		Random: &manifest.PlainCapability{Optional: optional},
	}
}

func TestDecideGrantsAll(t *testing.T) {
	p := load(t, `
[defaults]
timeout = "30s"
[plugin.github]
digest = "`+digestA+`"
grants = ["fs:rw:/srv/data=/data", "http:GET,POST:https://api.github.com", "tool:cdp.*", "env:LANG",
  "secret:GITHUB_TOKEN", "secret:read:KEY", "clock", "random", "env:HOME", "fs:ro:/etc=/etc"]
[plugin.github.limits]
memory_mib = 32
output_bytes = 1000
[plugin.github.settings]
org = "parley"
list = [1, 2.5, true, {when = 2026-01-02}]
`, "")
	d := decide(t, p, host.Ask{Principal: caller.Principal{Name: "cli"}, Plugin: "github", Tool: "list", Digest: digestA,
		Capabilities: everything(false)})
	want := grant.Grant{
		FS:   []grant.FS{{Path: "/data", Source: "/srv/data", Mode: "ro"}},
		HTTP: []grant.HTTP{{URL: "https://api.github.com", Methods: []string{"GET"}}},
		Secrets: []grant.Secret{{Name: "GITHUB_TOKEN", URL: "https://api.github.com",
			Header: "Authorization: Bearer {secret}"}, {Name: "KEY", Read: true}},
		Env:   map[string]string{"LANG": "C.UTF-8"},
		Tools: []string{"cdp.Page.*"},
		Clock: true, Random: true,
	}
	if !reflect.DeepEqual(d.Grant, want) {
		t.Errorf("got  %+v\nwant %+v", d.Grant, want)
	}
	if len(d.Missing) > 0 || d.Verdict != host.Allow {
		t.Errorf("missing %v, verdict %v", d.Missing, d.Verdict)
	}
	if d.Limits != (grant.Limits{MemoryMiB: 32, Timeout: 30 * time.Second, OutputBytes: 1000}) {
		t.Errorf("limits %+v", d.Limits)
	}
	if !json.Valid(d.Settings) || string(d.Settings) != `{"list":[1,2.5,true,{"when":"2026-01-02"}],"org":"parley"}` {
		t.Errorf("settings %s", d.Settings)
	}
	// A build with another digest than the one in policy.toml does not run at all.
	_, err := p.Decide(t.Context(), host.Ask{Principal: caller.Principal{Name: "cli"}, Plugin: "github", Tool: "list",
		Digest:       digestB,
		Capabilities: everything(false)})
	var refused *host.Error
	if !errors.As(err, &refused) || refused.Code != host.Integrity || !strings.Contains(refused.Message,
		"policy.toml:5 approves github as "+digestA) {
		t.Errorf("another digest: %v", err)
	}
	// Built-in plugins have no grants.
	d = decide(t, p, host.Ask{Principal: caller.Principal{Name: "cli"}, Plugin: "github", Tool: "list",
		Capabilities: everything(false)})
	if !reflect.DeepEqual(d.Grant, grant.Grant{}) {
		t.Errorf("without a digest: %v", d.Grant.Names())
	}
}

func TestRights(t *testing.T) {
	fs := func(path, mode string) manifest.Capabilities {
		return manifest.Capabilities{FS: []manifest.FSCapability{{Path: path, Mode: mode}}}
	}
	http := func(url string, methods ...string) manifest.Capabilities {
		return manifest.Capabilities{HTTP: []manifest.HTTPCapability{{URL: url, Methods: methods}}}
	}
	tool := func(names ...string) (c manifest.Capabilities) {
		for _, n := range names {
			c.Tools = append(c.Tools, manifest.NamedCapability{Name: n})
		}
		return c
	}
	secret := func(read bool, header string) manifest.Capabilities {
		return manifest.Capabilities{Secrets: []manifest.SecretCapability{{Name: "S", Read: read, Header: header}}}
	}
	env := func(name string) manifest.Capabilities {
		return manifest.Capabilities{Env: []manifest.NamedCapability{{Name: name}}}
	}
	list := func(s ...string) []string { return s }
	session := manifest.Capabilities{Browser: &manifest.BrowserCapability{Context: "session"}}
	tests := []struct {
		name    string
		grants  []string
		caps    manifest.Capabilities
		want    []string
		missing []string
	}{
		{"nothing requested", list("fs:rw:/a=/data", "clock"), manifest.Capabilities{}, nil, nil},
		{"ro of rw", list("fs:rw:/a=/data"), fs("/data", "ro"), list("fs:ro:/a=/data"), nil},
		{"rw of rw", list("fs:rw:/a=/data"), fs("/data", "rw"), list("fs:rw:/a=/data"), nil},
		{"rw of ro", list("fs:ro:/a=/data"), fs("/data", "rw"), list("fs:ro:/a=/data"), list("fs:rw:PATH=/data")},
		{"by component", list("fs:ro:/a=/database"), fs("/data", "ro"), nil, list("fs:ro:PATH=/data")},
		{"below the requested folder", list("fs:ro:/a=/data/in"), fs("/data", "ro"), list("fs:ro:/a=/data/in"),
			list("fs:ro:PATH=/data")},
		{"above the requested folder", list("fs:ro:/a=/"), fs("/data", "ro"), nil, list("fs:ro:PATH=/data")},
		{"the root requested", list("fs:ro:/a=/", "fs:rw:/b=/out"), fs("/", "rw"), list("fs:ro:/a=/", "fs:rw:/b=/out"),
			list("fs:rw:PATH=/")},
		{"requested twice", list("fs:rw:/a=/d"), manifest.Capabilities{FS: []manifest.FSCapability{{Path: "/d", Mode: "ro"},
			{Path: "/d", Mode: "rw"}}}, list("fs:rw:/a=/d"), nil},
		{"a folder in a requested folder", list("fs:rw:/a=/d"), manifest.Capabilities{FS: []manifest.FSCapability{{Path: "/d",
			Mode: "rw"}, {Path: "/d/e", Mode: "rw"}}}, list("fs:rw:/a=/d"), nil},
		{"more rights in a requested folder",
			list("fs:rw:/a=/d"), manifest.Capabilities{FS: []manifest.FSCapability{{Path: "/d",
				Mode: "ro"}, {Path: "/d/e", Mode: "rw"}}}, list("fs:ro:/a=/d"), list("fs:rw:PATH=/d/e")},
		{"odd guest path", list("fs:ro:/a=/data"), fs("/data/", "ro"), nil, list("fs:ro:PATH=/data/")},
		{"guest path that climbs", list("fs:ro:/a=/data"), fs("/data/../data", "ro"), nil, list("fs:ro:PATH=/data/../data")},
		{"no path", list("fs:ro:/a=/data"), fs("", "ro"), nil, list("fs:ro:PATH=")},

		{"intersection of methods", list("http:GET,POST:https://a.test"), http("https://a.test", "POST", "PUT"),
			list("http:POST:https://a.test"), list("http:PUT:https://a.test")},
		{"GET without methods", list("http:GET:https://a.test"), http("https://a.test"), list("http:GET:https://a.test"),
			nil},
		{"another scheme", list("http:GET:http://a.test"), http("https://a.test"), nil, list("http:GET:https://a.test")},
		{"another port", list("http:GET:https://a.test:8443"), http("https://a.test"), nil, list("http:GET:https://a.test")},
		{"wildcard granted", list("http:GET:https://*.a.test"), http("https://x.a.test"), list("http:GET:https://x.a.test"),
			nil},
		{"wildcard requested", list("http:GET:https://x.a.test"), http("https://*.a.test"), list("http:GET:https://x.a.test"),
			list("http:GET:https://*.a.test")},
		{"a wildcard does not cover its domain", list("http:GET:https://*.a.test"), http("https://a.test"), nil,
			list("http:GET:https://a.test")},
		{"two grants combined", list("http:GET:https://*.a.test", "http:POST:https://x.a.test"), http("https://x.a.test",
			"GET", "POST"), list("http:GET,POST:https://x.a.test"), nil},
		{"requested by URL",
			list("http:GET:https://a.test"), http("https://a.test/v1"), nil, list("http:GET:https://a.test/v1")},

		{"secret in a header", list("secret:S"), secret(false, "A: {secret}"), list("secret:S"), nil},
		{"secret that may also be read", list("secret:read:S"), secret(false, "A: {secret}"), list("secret:S"), nil},
		{"secret read", list("secret:read:S"), secret(true, ""), list("secret:read:S"), nil},
		{"secret read without the right", list("secret:S"), secret(true, ""), nil, list("secret:read:S")},
		{"secret both ways with half the right", list("secret:S"), secret(true, "A: {secret}"), list("secret:S"),
			list("secret:read:S")},
		{"another secret", list("secret:T"), secret(false, ""), nil, list("secret:S")},
		{"a secret with the same prefix", list("secret:read:SX"), secret(false, ""), nil, list("secret:S")},

		{"variable", list("env:LANG"), env("LANG"), list("env:LANG"), nil},
		{"empty variable", list("env:EMPTY"), env("EMPTY"), list("env:EMPTY"), nil},
		{"variable that is not set", list("env:NONE"), env("NONE"), nil, nil},
		{"variable in another case", list("env:lang"), env("LANG"), nil, list("env:LANG")},

		{"tool", list("tool:text.hash"), tool("text.hash"), list("tool:text.hash"), nil},
		{"tool of a plugin", list("tool:text.*"), tool("text.hash"), list("tool:text.hash"), nil},
		{"tools of all plugins", list("tool:*"), tool("text.*"), list("tool:text.*"), nil},
		{"group of a plugin", list("tool:cdp.*"), tool("cdp.Page.*"), list("tool:cdp.Page.*"), nil},
		{"more requested than granted", list("tool:cdp.Page.*", "tool:cdp.DOM.focus"), tool("cdp.*"), list("tool:cdp.Page.*",
			"tool:cdp.DOM.focus"), list("tool:cdp.*")},
		{"prefix within a name", list("tool:cdp.Page.get*"), tool("cdp.Page.getFrameTree"),
			list("tool:cdp.Page.getFrameTree"), nil},
		{"another plugin with the same prefix", list("tool:text.*"), tool("textual.hash"), nil, list("tool:textual.hash")},
		{"case is ignored", list("tool:CDP.page.*"), tool("cdp.Page.navigate"), list("tool:cdp.Page.navigate"), nil},
		{"outside a page by wildcard", list("tool:cdp.*"), tool("cdp.Browser.getVersion"), nil,
			list("tool:cdp.Browser.getVersion")},
		{"outside a page by the widest wildcard", list("tool:*"), tool("cdp.DOM.setFileInputFiles"), nil,
			list("tool:cdp.DOM.setFileInputFiles")},
		{"files dropped on a page by wildcard", list("tool:cdp.*"), tool("cdp.Input.dispatchDragEvent"), nil,
			list("tool:cdp.Input.dispatchDragEvent")},
		{"outside a page by name", list("tool:cdp.*", "tool:cdp.Browser.getVersion"), tool("cdp.Browser.getVersion"),
			list("tool:cdp.Browser.getVersion"), nil},
		{"outside a page requested by wildcard", list("tool:cdp.Browser.getVersion"), tool("cdp.Browser.*"),
			list("tool:cdp.Browser.getVersion"), list("tool:cdp.Browser.*")},
		{"no tool", list("tool:*"), tool("a b"), nil, list("tool:a b")},

		{"clock only", list("clock"), manifest.Capabilities{Clock: &manifest.PlainCapability{},
			Random: &manifest.PlainCapability{}}, list("clock"), list("random")},
		{"the caller's session", list("browser:session"), session, list("browser:session"), nil},
		{"browser:session only", list("browser:session"), manifest.Capabilities{Browser: session.Browser,
			Clock: &manifest.PlainCapability{}, Random: &manifest.PlainCapability{}},
			list("browser:session"), list("clock", "random")},
		{"the caller's session, not granted", list("clock"), session, nil, list("browser:session")},
		{"the caller's session, not requested", list("browser:session"), manifest.Capabilities{}, nil, nil},
		{"the caller's session, optional", list("clock"), manifest.Capabilities{Browser: &manifest.BrowserCapability{
			Context: "session", Optional: true}}, nil, list()},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			text := "[plugin.p]\ndigest = \"" + digestA + "\"\ngrants = " + tomlList(tt.grants) + "\n"
			p := load(t, text, "")
			d := decide(t, p, host.Ask{Principal: caller.Principal{Name: "cli"}, Plugin: "P", Tool: "t", Effect: "read",
				Digest:       digestA,
				Capabilities: tt.caps})
			if got := d.Grant.Names(); strings.Join(got, " ") != strings.Join(tt.want, " ") {
				t.Errorf("granted %v, want %v", got, tt.want)
			}
			var missing []string
			for _, m := range d.Missing {
				missing = append(missing, m.Right)
			}
			if strings.Join(missing, " ") != strings.Join(tt.missing, " ") {
				t.Errorf("missing %v, want %v", missing, tt.missing)
			}
			if len(d.Missing) > 0 && len(d.Steps) == 0 {
				t.Error("missing rights without steps")
			}
			for _, r := range d.Missing {
				if strings.ContainsAny(r.Right+r.Why, "\x1b\n") {
					t.Errorf("not clean: %q", r)
				}
			}
		})
	}
}

func tomlList(items []string) string {
	data, _ := json.Marshal(items)
	return string(data)
}

func TestCallers(t *testing.T) {
	tests := []struct {
		name, policy string
		ask          host.Ask
		want         host.Verdict
		reason       string
	}{
		{"deny beats allow", "[callers.cli]\nallow = [\"*\"]\ndeny = [\"cdp.Browser.*\"]", call("cli", "cdp.Browser.close",
			"destructive", false), host.Deny, "policy.toml:3 denies cdp.Browser.*"},
		{"deny beats confirm", "[callers.cli]\nconfirm = [\"*\"]\ndeny = [\"cdp.*\"]", call("cli", "cdp.Browser.close",
			"destructive", false), host.Deny, ""},
		{"confirm beats allow", "[callers.cli]\nallow = [\"*\"]\nconfirm = [\"cdp.Browser.close\"]", call("cli",
			"cdp.Browser.close", "destructive", false), host.Confirm,
			"policy.toml:3 requires confirmation of cdp.Browser.close"},
		{"confirm does not allow", "[callers.cli]\nallow = [\"text.*\"]\nconfirm = [\"cdp.*\"]", call("cli",
			"cdp.Browser.close", "destructive", false), host.Deny, "policy.toml:2 allows only text.*"},
		{"case is ignored", "[callers.cli]\ndeny = [\"CDP.browser.CLOSE\"]", call("cli", "cdp.Browser.close",
			"destructive", false), host.Deny, ""},
		{"a group matches all its tools",
			"[callers.cli]\ndeny = [\"cdp.Browser\"]", call("cli", "cdp.Browser.close", "destructive",
				false), host.Deny, ""},
		{"a group does not match others with its prefix",
			"[callers.cli]\ndeny = [\"cdp.Browser\"]", call("cli", "cdp.Browsers.close",
				"destructive", false), host.Allow, ""},
		{"a plugin matches all its tools",
			"[callers.cli]\ndeny = [\"cdp\"]", call("cli", "cdp.open", "write", false), host.Deny, ""},
		{"denied effects include worse ones", "[callers.cli]\ndeny = [\"effect:write\"]", call("cli", "a.b", "destructive",
			false), host.Deny, ""},
		{"denied effects exclude milder ones", "[callers.cli]\ndeny = [\"effect:write\"]", call("cli", "a.b", "read", false),
			host.Allow, ""},
		{"allowed effects do not include others",
			"[callers.cli]\nallow = [\"effect:write\"]", call("cli", "a.b", "read", false),
			host.Deny, ""},
		{"nothing allowed", "[callers.cli]\nallow = []", call("cli", "a.b", "read", false), host.Deny,
			"policy.toml:2 allows nothing"},
		{"an omitted list keeps its default", "[callers.\"mcp:*\"]\nallow = [\"*\"]", call("mcp:x", "a.b",
			"destructive", false), host.Confirm, "the default for mcp requires confirmation of effect:destructive"},
		{"an empty list replaces the default",
			"[callers.\"mcp:*\"]\nconfirm = []", call("mcp:x", "a.b", "destructive", false),
			host.Allow, ""},
		{"the exact name wins", "[callers.\"mcp:*\"]\nallow = []\n[callers.\"mcp:claude\"]\nallow = [\"*\"]",
			call("mcp:claude", "a.b", "read", false), host.Allow, ""},
		{"others keep the pattern", "[callers.\"mcp:*\"]\nallow = []\n[callers.\"mcp:claude\"]\nallow = [\"*\"]",
			call("mcp:claudette", "a.b", "read", false), host.Deny, ""},
		{"the longer pattern wins", "[callers.\"mcp:*\"]\nallow = []\n[callers.\"mcp:cl*\"]\nallow = [\"*\"]",
			call("mcp:claude", "a.b", "read", false), host.Allow, ""},
		{"a list is inherited from the wider entry", "[callers.\"mcp:*\"]\nallow = " +
			"[\"text.*\"]\n[callers.\"mcp:claude\"]\nconfirm = []", call("mcp:claude", "a.b", "read", false), host.Deny, ""},
		{"stdio entries do not open the network", "[callers.\"mcp:*\"]\nallow = [\"*\"]\nconfirm = []", call("mcp:x", "a.b",
			"write", true), host.Deny, "the default for mcp-http allows only effect:read"},
		{"stdio entries close the network", "[callers.\"mcp:*\"]\ndeny = [\"a.*\"]", call("mcp:x", "a.b", "read", true),
			host.Deny, "policy.toml:2 denies a.*"},
		{"network entries open the network", "[callers.\"mcp-http:*\"]\nallow = [\"*\"]", call("mcp:x", "a.b", "destructive",
			true), host.Allow, ""},
		{"network entries do not open stdio", "[callers.\"mcp-http:*\"]\nallow = []", call("mcp:x", "a.b", "read", false),
			host.Allow, ""},
		{"of both entries the stricter applies",
			"[callers.\"mcp-http:*\"]\nallow = [\"*\"]\n[callers.\"mcp:*\"]\nconfirm = " +
				"[\"effect:write\"]", call("mcp:x", "a.b", "destructive", true), host.Confirm, ""},
		{"a client that calls itself cli", "[callers.\"mcp:*\"]\nallow = []", call("mcp:cli", "a.b", "read", false),
			host.Deny, ""},
		{"a client whose name is a pattern", "[callers.\"mcp:claude\"]\nallow = []", call("mcp:*", "a.b", "read", false),
			host.Allow, ""},
		{"a plugin with the grant", grantsToP("tool:text.*"), call("plugin:P", "text.hash", "read", false), host.Allow, ""},
		{"a plugin with another grant", grantsToP("tool:text.*"), call("plugin:p", "cdp.DOM.focus", "read", false), host.Deny,
			"plugin p is not granted tool:cdp.DOM.focus"},
		{"another plugin", grantsToP("tool:text.*"), call("plugin:q", "text.hash", "read", false), host.Deny, ""},
		{"a plugin with a grant that a rule denies", grantsToP("tool:text.*") +
			"[callers.\"plugin:p\"]\ndeny = [\"text.hash\"]", call("plugin:p", "text.hash", "read", false), host.Deny, ""},
		{"a plugin without a grant that a rule allows", grantsToP("tool:text.*") +
			"[callers.\"plugin:p\"]\nallow = [\"*\"]", call("plugin:p", "cdp.DOM.focus", "read", false), host.Deny, ""},
		{"a plugin outside a page by wildcard", grantsToP("tool:cdp.*"), call("plugin:p", "cdp.Target.createTarget", "write",
			false), host.Deny, "plugin p is not granted tool:cdp.Target.createTarget by name, and it reaches outside a page"},
		{"a plugin outside a page by name", grantsToP("tool:cdp.Target.createTarget"), call("plugin:p",
			"cdp.Target.createTarget", "write", false), host.Allow, ""},
		{"another build of the plugin", grantsToP("tool:*"), call("plugin:p", "json.query", "read",
			false), host.Deny, "the tool is not among those that \"p\" requested and was granted"},
		{"a plugin inside a page", grantsToP("tool:cdp.*"), call("plugin:p", "cdp.Page.navigate", "write", false), host.Allow,
			""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d := decide(t, load(t, tt.policy, ""), tt.ask)
			if d.Verdict != tt.want {
				t.Errorf("got %v (%s), want %v", d.Verdict, d.Reason, tt.want)
			}
			if tt.reason != "" && d.Reason != tt.reason {
				t.Errorf("reason %q, want %q", d.Reason, tt.reason)
			}
		})
	}
}

func grantsToP(grants ...string) string {
	return "[plugin.p]\ndigest = \"" + digestA + "\"\ngrants = " + tomlList(grants) + "\n"
}

func TestTwoFiles(t *testing.T) {
	caps := manifest.Capabilities{Clock: &manifest.PlainCapability{Optional: true},
		Random: &manifest.PlainCapability{Optional: true}}
	of := func(digest string, grants ...string) string {
		return "[plugin.p]\ndigest = \"" + digest + "\"\ngrants = " + tomlList(grants) + "\n"
	}
	tests := []struct {
		name, hand, made string
		digest           string
		want             string
	}{
		{"only grants.toml", "", of(digestA, "clock"), digestA, "clock"},
		{"policy.toml wins, lists are not merged", of(digestA, "clock"), of(digestA, "random"), digestA, "clock"},
		{"policy.toml grants nothing", "[plugin.p]\ngrants = []", of(digestA, "random"), digestA, ""},
		{"policy.toml without grants", "[plugin.p]\nisolate = \"process\"", of(digestA, "random"), digestA, "random"},
		{"grants keep the digest of their own file", "[plugin.p]\ndigest = \"" + digestB + "\"", of(digestA, "random"),
			digestB, ""},
		{"names in another case are the same plugin", "[plugin.P]\ngrants = []", of(digestA, "random"), digestA, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d := decide(t, load(t, tt.hand, tt.made), host.Ask{Principal: caller.Principal{Name: "cli"}, Plugin: "p", Tool: "t",
				Digest:       tt.digest,
				Capabilities: caps})
			if got := strings.Join(d.Grant.Names(), " "); got != tt.want {
				t.Errorf("granted %q, want %q", got, tt.want)
			}
		})
	}
	p := load(t, "[defaults]\nisolate = \"process\"\n[plugin.q]\nisolate = \"none\"\nrun = \"fleet:main\"",
		"[operator]\nallow_yes = true\n[defaults]\ntimeout = \"5s\"\nisolate = \"none\"\n[plugin.q]\nisolate = \"process\"")
	for name, want := range map[string]string{"p": "process", "Q": "none"} {
		ask := call("cli", name+".t", "read", false)
		ask.Digest = digestA
		if got, none := decide(t, p, ask).Isolate, decide(t, Default(), ask).Isolate; got != want || none != "" {
			t.Errorf("isolate of %s is %q, and without files %q", name, got, none)
		}
	}
	for name, want := range map[string]string{"p": "", "Q": "main"} {
		ask := call("cli", name+".t", "read", false)
		ask.Digest = digestA
		if got := decide(t, p, ask).Pool; got != want {
			t.Errorf("the pool of %s is %q", name, got)
		}
	}
	if yes, err := p.AllowYes(); !yes || err != nil {
		t.Errorf("allow_yes is %v, %v", yes, err)
	}
	if d := decide(t, p, call("cli", "a.b", "read", false)); d.Limits.Timeout != 5*time.Second {
		t.Errorf("timeout %v", d.Limits.Timeout)
	}
}

func TestOperator(t *testing.T) {
	hand := `[operator]
networks = ["10.1.0.0/16", "fd00::/8"]
proxy = "environment"
audit = "required"
attach = ["Build-Host", "10.0.0.5"]
[plugin.p.limits]
log_bytes = 1
host_calls = 2
open_files = 3
files_created = 4
bytes_written = 5
concurrent_calls = 6`
	p := load(t, hand, "[operator]\naudit = \"off\"\n[plugin.p.limits]\nlog_bytes = 9\nmemory_mib = 8")
	rules, err := p.Egress()
	if err != nil || fmt.Sprint(rules) != "{[10.1.0.0/16 fd00::/8] true}" {
		t.Errorf("%v, %v", rules, err)
	}
	if audit, err := p.Audit(); audit != AuditRequired || err != nil {
		t.Errorf("%s, %v", audit, err)
	}
	if hosts, err := p.AttachHosts(); fmt.Sprint(hosts) != "[build-host 10.0.0.5]" || err != nil {
		t.Errorf("%v, %v", hosts, err)
	}
	ask := call("cli", "p.t", "read", false)
	ask.Digest = digestA
	d := decide(t, p, ask)
	want := grant.Limits{MemoryMiB: 8, LogBytes: 1, HostCalls: 2, OpenFiles: 3, FilesCreated: 4, BytesWritten: 5,
		ConcurrentCalls: 6}
	if d.Limits != want {
		t.Errorf("%+v", d.Limits)
	}
	if said := operatorSays(t, load(t, "", "")); said != "{[] false}, on, [], false" {
		t.Error(said)
	}
}

// operatorSays returns all that the files say under [operator].
func operatorSays(t *testing.T, p *Policy) string {
	t.Helper()
	rules, err := p.Egress()
	audit, err2 := p.Audit()
	hosts, err3 := p.AttachHosts()
	yes, err4 := p.AllowYes()
	if err := errors.Join(err, err2, err3, err4); err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%v, %v, %v, %v", rules, audit, hosts, yes)
}

// TestOperatorByHand sets each key in both files, with each other's values: what was written by hand decides, also
// where it allows nothing.
func TestOperatorByHand(t *testing.T) {
	for key, values := range map[string][2]string{
		"networks": {`[]`, `["10.1.0.0/16"]`}, "attach": {`[]`, `["build-host"]`}, "proxy": {`"none"`, `"environment"`},
		"audit": {`"required"`, `"off"`}, "allow_yes": {`false`, `true`},
	} {
		section := func(value string) string { return "[operator]\n" + key + " = " + value }
		for i, value := range values {
			hand := operatorSays(t, load(t, section(value), ""))
			if both := operatorSays(t, load(t, section(value), section(values[1-i]))); both != hand {
				t.Errorf("%s = %s by hand, %s in %s: %s, want %s", key, value, values[1-i], GrantsFile, both, hand)
			}
		}
		if operatorSays(t, load(t, "", section(values[0]))) == operatorSays(t, load(t, "", section(values[1]))) {
			t.Errorf("%s in %s has no effect", key, GrantsFile)
		}
	}
}

func TestMalformed(t *testing.T) {
	d := `digest = "` + digestA + `"` + "\n"
	tests := []struct {
		name, text string
		at         string // LINE:COLUMN of the first problem
		want       string
	}{
		{"missing bracket of a table", "\n[plugin.github\n", "2:15", "']'"},
		{"missing bracket of a list", "[callers.cli]\nallow = [\"*\"\n", "2:13", "array is incomplete"},
		{"missing quote", "[defaults]\ntimeout = \"30s\n", "2:15", ""},
		{"no value", "[defaults]\ntimeout =\n", "2:10", ""},
		{"not TOML", "{}", "1:1", "the file is TOML"},
		{"YAML", "callers:\n  cli:\n", "1:8", "the file is TOML"},
		{"a name without quotes", "[callers.mcp:*]\nallow = []", "1:13", `quotes around a name such as "mcp:*"`},
		{"key twice", "[defaults]\ntimeout = \"1s\"\ntimeout = \"2s\"", "3:1", ""},
		{"table twice", "[defaults]\n[defaults]\n", "2:2", ""},
		{"bad UTF-8", "[defaults]\ntimeout = \"\xff\"", "2:12", ""},
		{"unknown table", "[operater]\nallow_yes = true", "1:2", `unknown key "operater"; did you mean operator?`},
		{"unknown key at top", "timeout = 3", "1:1", "unknown key"},
		{"unknown key", "[operator]\nallow_no = true", "2:1", "did you mean allow_yes?"},
		{"key in another case", "[plugin.p]\nGrants = []", "2:1", "unknown key"},
		{"a network with host bits", "[operator]\nnetworks = [\"10.0.0.1/8\"]", "2:13",
			"whose remaining bits are 0"},
		{"an address instead of a network", "[operator]\nnetworks = [\"10.0.0.1\"]", "2:13", "networks takes prefixes"},
		{"attach with a port", "[operator]\nattach = [\"build-host:9222\"]", "2:11", "without a port"},
		{"attach to all", "[operator]\nattach = [\"*.example.com\"]", "2:11", "names or addresses of hosts"},
		{"proxy of another kind", "[operator]\nproxy = \"http://proxy:3128\"", "2:9", "none"},
		{"audit of another kind", "[operator]\naudit = true", "2:9", ""},
		{"a limit of zero", "[plugin.p.limits]\nopen_files = 0", "2:14", "between 1 and"},
		{"a limit that is too large", "[plugin.p.limits]\nhost_calls = 1000001", "2:14", "between 1 and"},
		{"unknown key of a plugin", "[plugin.p]\ngrant = []", "2:1", "did you mean grants?"},
		{"unknown limit", "[plugin.p.limits]\ncpu = 3", "2:1", "unknown key \"cpu\" in [plugin.p.limits]"},
		{"unknown list of a caller", "[callers.cli]\nalow = []", "2:1", "did you mean allow?"},
		{"unknown key of a secret", "[secrets.X]\nfrom = \"store\"\nvalue = \"s\"", "3:1", "unknown key"},
		{"an origin with a path", "[origins.\"https://a.test/x\"]\ntls = \"any\"", "1:10", "origins takes origins"},
		{"all origins", "[origins.\"https://*.a.test\"]\ntls = \"any\"", "1:10", "name each origin"},
		{"an unknown key of an origin", "[origins.\"https://a.test\"]\npin = \"x\"", "2:1", "unknown key"},
		{"any certificate without a word", "[origins.\"https://a.test\"]\ntls = true", "2:7", "must be a string"},
		{"a short pin", "[origins.\"https://a.test\"]\ntls = \"pin:sha256/AAAA\"", "2:7", "pin:sha256/HASH"},
		{"a pin of another kind", "[origins.\"https://a.test\"]\ntls = \"pin:sha1/AAAA\"", "2:7", "pin:sha256/HASH"},
		{"a certificate of http", "[origins.\"http://a.test\"]\ntls = \"any\"", "2:7", "https origins"},
		{"a password", "[origins.\"https://a.test\"]\nlogin = \"ada:pw\"", "2:9", "secret:NAME"},
		{"a login without a name", "[origins.\"https://a.test\"]\nlogin = \"secret:\"", "2:9", "secret:NAME"},
		{"boolean as text", "[operator]\nallow_yes = \"yes\"", "2:13", "must be true or false"},
		{"table as value", "plugin = 3", "1:10", "must be a table, not a whole number"},
		{"list of tables as a table", "[[plugin]]\nname = \"p\"", "1:3", "must be a table, not a list"},
		{"plugin as value", "[plugin]\np = \"x\"", "2:5", "must be a table"},
		{"number as time", "[defaults]\ntimeout = 30", "2:11",
			`must be a time between 1ms and 24h such as "30s", not a whole number`},
		{"time without a unit", "[defaults]\ntimeout = \"30\"", "2:11", "must be a time"},
		{"negative time", "[defaults]\ntimeout = \"-1s\"", "2:11", "must be a time"},
		{"endless time", "[defaults]\ntimeout = \"9000h\"", "2:11", "must be a time"},
		{"isolation", "[defaults]\nisolate = \"vm\"", "2:11", "isolate must be"},
		{"pool", "[plugin.p]\nrun = \"here\"", "2:7", "run must be \"fleet:POOL\""},
		{"no pool", "[plugin.p]\nrun = \"fleet:a.b\"", "2:7", "run must be \"fleet:POOL\""},
		{"memory as text", "[plugin.p.limits]\nmemory_mib = \"64\"", "2:14", "must be a whole number"},
		{"memory as fraction", "[plugin.p.limits]\nmemory_mib = 64.0", "2:14", "not a fraction"},
		{"no memory", "[plugin.p.limits]\nmemory_mib = 0", "2:14", "between 1 and 4096"},
		{"too many functions", "[plugin.p.limits]\nfunctions = 4000001", "2:13", "between 1 and 4000000"},
		{"too much memory", "[plugin.p]\nlimits = {memory_mib = 5000}", "2:24", "between 1 and 4096"},
		{"list as text", "[callers.cli]\nallow = \"*\"", "2:9", "must be a list"},
		{"list of numbers", "[callers.cli]\nallow = [\"*\", 3]", "2:15", "must contain strings"},
		{"list of lists", "[callers.cli]\nallow = [[\"*\"]]", "2:1", "must contain strings"},
		{"wrong effect", "[callers.cli]\ndeny = [\n  \"a.b\",\n  \"effect:evil\",\n]", "4:3",
			"an effect is read, write or destructive"},
		{"glob in the middle", "[callers.cli]\ndeny = [\"cdp.*.enable\"]", "2:9", "not a tool name or pattern"},
		{"rule with a space", "[callers.cli]\ndeny = [\"cdp.Page \"]", "2:9", "not a tool name or pattern"},
		{"empty rule", "[callers.cli]\ndeny = [\"\"]", "2:9", "not a tool name or pattern"},
		{"unknown caller", "[callers.agent]\nallow = []", "1:10", "is not a caller"},
		{"caller without a client", "[callers.\"mcp:\"]\nallow = []", "1:10", "is not a caller"},
		{"caller with * in the middle", "[callers.\"mcp:a*b\"]\nallow = []", "1:10", "is not a caller"},
		{"caller twice", "[callers.\"mcp:A\"]\n[callers.\"mcp:a\"]\n", "2:10", "is already in line 1"},
		{"plugin twice", "[plugin.a]\n[plugin.A]\n", "2:9", "is already in line 1"},
		{"plugin name", "[plugin.\"a/b\"]\n", "1:9", "not a valid name for a plugin"},
		{"digest", "[plugin.p]\ndigest = \"sha256:abc\"", "2:10", "64 digits"},
		{"digest in capitals", "[plugin.p]\ndigest = \"" + strings.ToUpper(digestA) + "\"", "2:10", "64 digits"},
		{"signer", "[plugin.p]\nsigner = \"\"", "2:10", "public key"},
		{"grants without a digest", "[plugin.p]\ngrants = [\"clock\"]", "2:1", "neither digest nor signer"},
		{"no such grant", "[plugin.p]\n" + d + "grants = [\"clock\", \"root\"]", "3:20", "is not a grant"},
		{"relative folder", "[plugin.p]\n" + d + "grants = [\"fs:ro:data=/data\"]", "3:11", "must be absolute"},
		{"same guest path", "[plugin.p]\n" + d + "grants = [\n\"fs:ro:/a=/data\",\n\"fs:rw:/b=/data\"]", "5:1",
			"same subject as the grant in line 4"},
		{"files of a plugin", "[callers.\"plugin:p\"]\nfiles = [\"/srv\"]", "2:1", "files is for callers mcp:"},
		{"rate without a time", "[callers.cli]\nrate = \"10\"", "2:8", "a number of calls and a time"},
		{"rate of another time", "[callers.cli]\nrate = \"10/d\"", "2:8", "\"100/m\""},
		{"no rate", "[callers.cli]\nrate = \"0/s\"", "2:8", "a number of calls"},
		{"rate with a sign", "[callers.cli]\nrate = \"+1/s\"", "2:8", "a number of calls"},
		{"no calls a day", "[callers.cli]\ndaily_calls = 0", "2:15", "between 1 and"},
		{"too many at once", "[callers.cli]\nconcurrent = 1001", "2:14", "between 1 and 1000"},
		{"bytes as a text", "[callers.cli]\ndaily_bytes = \"1G\"", "2:15", "a whole number"},
		{"quota of a plugin", "[callers.\"plugin:p\"]\nconcurrent = 1", "1:10", "counts for its caller"},
		{"files in a relative folder", "[callers.\"mcp:*\"]\nfiles = [\"srv\"]", "2:10", "absolute folders"},
		{"number that JSON does not have",
			"[plugin.p.settings]\nx = [1.0, {y = nan}]", "2:16", "a number that JSON does not have"},
		{"nested too deep", "[plugin.p.settings]\nx = " + strings.Repeat("[", 100) + strings.Repeat("]", 100), "2:1",
			"nested more than"},
		{"keys nested too deep", "[plugin.p.settings]\n" + strings.Repeat("a.", 100000) + "a = 1", "2:123",
			"nested more than"},
		{"table nested too deep", "[a" + strings.Repeat(".a", 100) + "]\n", "1:130", "nested more than"},
		{"inline tables nested too deep", "[plugin.p.settings]\nx = " + strings.Repeat("{a=", 100) + "1" + strings.Repeat("}",
			100), "2:186", "nested more than"},
		{"secret without a source", "[secrets.X]\n", "1:10", "requires from"},
		{"secret from nowhere", "[secrets.X]\nfrom = \"vault:x\"", "2:8", "from must be"},
		{"secret from a relative file", "[secrets.X]\nfrom = \"file:x\"", "2:8", "must be absolute"},
		{"secret from no command", "[secrets.X]\nfrom = \"cmd: \"", "2:8", "requires a program"},
		{"secret from a program of any folder", "[secrets.X]\nfrom = \"cmd:./x.sh a\"", "2:8", "a name or an absolute path"},
		{"secret from an unclosed quote", "[secrets.X]\nfrom = \"cmd:echo 'x\"", "2:8", "unclosed quote"},
		{"secret name", "[secrets.\"a b\"]\nfrom = \"store\"", "1:10", "not a valid name for a secret"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for _, name := range []string{PolicyFile, GrantsFile} {
				dir := t.TempDir()
				path := filepath.Join(dir, name)
				if err := os.WriteFile(path, []byte(tt.text), 0o600); err != nil {
					t.Fatal(err)
				}
				_, err := Load(dir, Env{})
				wantConfigError(t, err)
				if err != nil && (!strings.HasPrefix(err.Error(), path+":"+tt.at+": ") || !strings.Contains(err.Error(), tt.want)) {
					t.Errorf("got %v\nwant %s:%s: ...%s", err, path, tt.at, tt.want)
				}
			}
		})
	}
}

func wantConfigError(t *testing.T, err error) {
	t.Helper()
	var e *host.Error
	if !errors.As(err, &e) || e.Code != host.ConfigError || e.ExitCode() != 88 || len(e.Steps) == 0 {
		t.Errorf("got %#v, want a config_error with what to do next", err)
	}
}

func TestReportsAllProblems(t *testing.T) {
	_, err := Load(folderOf(t, "[operator]\nx = 1\ny = 2\n", "[defaults]\nz = 3\n"), Env{})
	wantConfigError(t, err)
	if lines := strings.Split(err.Error(), "\n"); len(lines) != 3 {
		t.Errorf("got %q", lines)
	}
	_, err = Load(folderOf(t, "[operator]\n"+strings.Repeat("a", 1)+"=1\nb=1\nc=1\nd=1\ne=1\nf=1\ng=1\nh=1\ni=1\n", ""),
		Env{})
	if !strings.HasSuffix(err.Error(), "\nand 1 more") {
		t.Errorf("got %v", err)
	}
}

func TestFailsClosed(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("modes and links of Unix")
	}
	good := "[operator]\nallow_yes = true\n"
	tests := []struct {
		name string
		make func(t *testing.T, dir, path string)
		want string
	}{
		{"world-writable", func(t *testing.T, dir, path string) { must(t, os.Chmod(path, 0o646)) },
			"everybody can write to it"},
		{"world-writable folder", func(t *testing.T, dir, path string) { must(t, os.Chmod(dir, 0o777)) },
			"everybody can write to its folder"},
		{"taken from a world-writable folder", func(t *testing.T, dir, path string) {
			must(t, os.Remove(path))
			must(t, os.Chmod(dir, 0o777))
		}, "everybody can write to its folder"},
		{"replaced by another user", func(t *testing.T, dir, path string) {
			must(t, os.Remove(path))
			must(t, os.WriteFile(path, []byte(good+"# theirs\n"), 0o644))
			chownToNobody(t, path)
		}, "belongs to another user"},
		{"in the folder of another user", func(t *testing.T, dir, path string) { chownToNobody(t, dir) }, "its folder"},
		{"a folder", func(t *testing.T, dir, path string) { must(t, os.Remove(path)); must(t, os.Mkdir(path, 0o700)) },
			"expected a regular file, found a folder"},
		{"a link to nowhere", func(t *testing.T, dir, path string) {
			must(t, os.Remove(path))
			must(t, os.Symlink(filepath.Join(dir, "gone"), path))
		}, "cannot be read"},
		{"too large", func(t *testing.T, dir, path string) { must(t, os.Truncate(path, operator.MaxFile+1)) }, "larger than"},
	}
	for _, name := range []string{PolicyFile, GrantsFile} {
		for _, tt := range tests {
			t.Run(tt.name+" "+name, func(t *testing.T) {
				dir := t.TempDir()
				path := filepath.Join(dir, name)
				must(t, os.WriteFile(path, []byte(good), 0o600))
				p, err := Load(dir, Env{})
				must(t, err)
				tt.make(t, dir, path)
				defer os.Chmod(dir, 0o700)
				_, err = Load(dir, Env{})
				wantConfigError(t, err)
				if err != nil && !strings.Contains(err.Error(), tt.want) {
					t.Errorf("got %v, want ...%s", err, tt.want)
				}
				if strings.Contains(tt.name, "folder of another") || tt.name == "world-writable folder" {
					return // the folder is checked when a file is read
				}
				if _, err := p.Decide(context.Background(), call("cli", "a.b", "read", false)); err == nil {
					t.Error("a policy that was loaded before still applies")
				}
			})
		}
	}
	if os.Getuid() == 0 {
		return // root reads everything
	}
	dir := folderOf(t, good, "")
	must(t, os.Chmod(filepath.Join(dir, PolicyFile), 0))
	_, err := Load(dir, Env{})
	wantConfigError(t, err)
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// chownToNobody makes another user the owner of a file, which requires root.
func chownToNobody(t *testing.T, path string) {
	if os.Geteuid() != 0 {
		t.Skip("not root")
	}
	must(t, os.Chown(path, 65534, 65534))
}

func TestDecideSeesChanges(t *testing.T) {
	dir := folderOf(t, "", grantsToP("tool:text.*"))
	p, err := Load(dir, Env{})
	must(t, err)
	ask := call("plugin:p", "text.hash", "read", false)
	if d := decide(t, p, ask); d.Verdict != host.Allow {
		t.Fatal(d.Reason)
	}
	must(t, os.WriteFile(filepath.Join(dir, GrantsFile), []byte("[plugin.p]\n"), 0o600))
	if d := decide(t, p, ask); d.Verdict != host.Deny {
		t.Error("a revoked grant still applies")
	}
	must(t, os.WriteFile(filepath.Join(dir, GrantsFile), []byte("[plugin.p\n"), 0o600))
	_, err = p.Decide(context.Background(), ask)
	wantConfigError(t, err)
	must(t, os.Remove(filepath.Join(dir, GrantsFile)))
	if d := decide(t, p, call("cli", "a.b", "read", false)); d.Verdict != host.Allow {
		t.Error("without a file there must be the default policy")
	}
}

// TestAllowedForOneCall checks rights that a person allowed for one call: they add to the grants of the files, as far
// as the manifest requests them, and do not apply to the next call.
func TestAllowedForOneCall(t *testing.T) {
	caps := manifest.Capabilities{
		FS:     []manifest.FSCapability{{Path: "/data", Mode: "rw", Why: "to keep notes"}},
		HTTP:   []manifest.HTTPCapability{{URL: "https://api.github.com", Methods: []string{"GET", "POST"}}},
		Clock:  &manifest.PlainCapability{Why: "the time"},
		Random: &manifest.PlainCapability{Optional: true},
	}
	p := load(t, `[plugin.notes]
digest = "`+digestA+`"
grants = ["fs:ro:/srv/old=/data", "http:GET:https://api.github.com"]
`, "")
	ask := host.Ask{Principal: caller.Principal{Name: "cli"}, Plugin: "notes", Tool: "list", Digest: digestA,
		Capabilities: caps}
	denied := func(name string) {
		t.Helper()
		d := decide(t, p, ask)
		want := "[{fs:rw:PATH=/data to keep notes} {http:POST:https://api.github.com } {clock the time}]"
		if got := fmt.Sprint(d.Missing); got != want || !d.Allowable {
			t.Errorf("%s: missing %s, allowable %v, expected %s", name, got, d.Allowable, want)
		}
	}
	denied("before")
	ask.Allowed = []string{"fs:rw:/srv/new=/data", "http:POST:https://api.github.com", "clock", "env:HOME"}
	d := decide(t, p, ask)
	want := []string{"fs:rw:/srv/new=/data", "http:GET,POST:https://api.github.com", "clock"}
	if got := d.Grant.Names(); !slices.Equal(got, want) || len(d.Missing) > 0 {
		t.Errorf("granted %v, missing %v, expected %v", got, d.Missing, want)
	}
	ask.Allowed = []string{"clock"}
	if d := decide(t, p, ask); len(d.Missing) != 2 || !d.Grant.Clock {
		t.Errorf("with the clock alone: %+v", d)
	}
	for _, invalid := range []string{"fs:rw:PATH=/data", "fs:rw:new=/data", "nothing"} {
		ask.Allowed = []string{invalid}
		if _, err := p.Decide(t.Context(), ask); !errors.Is(err, host.Denied) {
			t.Errorf("%s: %v", invalid, err)
		}
	}
	ask.Allowed = nil
	denied("after")

	ask.Capabilities = manifest.Capabilities{Tools: []manifest.NamedCapability{{Name: "cdp.Browser.*"}}}
	if d := decide(t, p, ask); len(d.Missing) != 1 || d.Allowable {
		t.Errorf("a right that cannot be granted may be allowed: %+v", d)
	}
	ask.Plugin = "blocked"
	p = load(t, "[callers.cli]\ndeny = [\"blocked\"]\n", "")
	if d := decide(t, p, ask); d.Verdict != host.Deny || d.Allowable {
		t.Errorf("a call that a rule denies may be allowed: %+v", d)
	}
}

// TestCallerIsForShippedPlugins: no grant gives a plugin of anybody else the right to call in the name of its caller.
func TestCallerIsForShippedPlugins(t *testing.T) {
	caps := manifest.Capabilities{Caller: &manifest.PlainCapability{}}
	p := load(t, `[plugin.js]
digest = "`+digestA+`"
grants = ["caller"]
`, "")
	for _, tc := range []struct {
		owner string
		want  bool
	}{{host.OwnerShipped, true}, {host.OwnerUnsigned, false}, {"RWKEY", false}, {"", false}} {
		d, err := p.Decide(t.Context(), host.Ask{Principal: caller.Principal{Name: "cli"}, Plugin: "js", Tool: "run",
			Effect: "read", Digest: digestA,
			Owner: tc.owner, Capabilities: caps})
		if err != nil {
			t.Fatal(err)
		}
		if d.Grant.Caller != tc.want || (len(d.Missing) == 0) != tc.want || !tc.want && d.Allowable {
			t.Errorf("owner %q: granted %t, missing %v, allowable %t", tc.owner, d.Grant.Caller, d.Missing, d.Allowable)
		}
	}
}
