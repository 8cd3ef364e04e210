package page

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/parley-tools/parley/cdp"
	"github.com/parley-tools/parley/cdp/internal/keeper/api"
	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/call"
	"github.com/parley-tools/parley/host/caller"
	"github.com/parley-tools/parley/host/grant"
	"github.com/parley-tools/parley/host/job"
	"github.com/parley-tools/parley/manifest"
)

// denying is a policy that allows all but tools that it denies by their names to one caller.
type denying struct {
	caller string
	tools  []string
}

func (p denying) Decide(_ context.Context, a host.Ask) (host.Decision, error) {
	if a.Principal.Name == p.caller && slices.Contains(p.tools, a.Plugin+"."+a.Tool) {
		return host.Decision{Verdict: host.Deny, Reason: "denied by a rule"}, nil
	}
	return host.Decision{Verdict: host.Allow}, nil
}

func newHost(t *testing.T, rules host.Policy, more ...host.Provider) *call.Host {
	t.Helper()
	chrome := cdp.New(cdp.Config{RunDir: t.TempDir()})
	catalog, err := host.NewCatalog(append(more, chrome, New(chrome))...)
	if err != nil {
		t.Fatal(err)
	}
	h, err := call.New(call.Config{Catalog: catalog, Policy: rules})
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// values are valid for the parameters that decide what a call includes, and for those that their tools require.
var values = map[string]string{
	"url": `"https://example.com/"`, "element": `"Go"`, "text": `"a"`, "key": `"a"`, "secret": `"PASSWORD"`, "value": `"a"`,
	"expression": `"1"`, "id": `"r1"`, "action": `"save"`, "name": `"work"`, "device": `"iphone"`, "dark": `true`,
	"locale": `"de"`, "timezone": `"Europe/Oslo"`, "geolocation": `[1,2]`, "headers": `{}`, "permissions": `["camera"]`,
	"network": `"3g"`, "cpu": `2`, "reset": `true`, "bodies": `true`, "to": `"reload"`, "options": `["a"]`,
}

// TestRulesForPartsApply denies, for every verb and every parameter that makes it do what a tool of the plugin cdp
// does, that tool by its name to who calls: the verb is denied, alone and as a step, and is not if the rule is for
// another tool or caller.
func TestRulesForPartsApply(t *testing.T) {
	for _, tool := range tools.Names() {
		for when, of := range tools.Verb(tool).Includes {
			for _, part := range of {
				if at, _ := cdp.New(cdp.Config{}).Tool(part); at == nil || at.Name != part {
					t.Errorf("%s includes %s, which cdp does not have", tool, part)
				}
				name, value, _ := strings.Cut(when, "=")
				params := map[string]json.RawMessage{}
				for _, p := range manifest.Params(tools.Tool(tool).Params) {
					isOneOf := map[string]string{"click": "element", "drag": "to", "fill": "value"}[tool] == p.Name
					if p.Required || p.Name == name || isOneOf {
						params[p.Name] = json.RawMessage(values[p.Name])
					}
				}
				switch {
				case value != "":
					params[name] = json.RawMessage(fmt.Sprintf("%q", value))
				case tool == "dialog" && name == "action":
					params[name] = json.RawMessage(`"accept"`)
				}
				checkPart(t, tool, params, cdp.Name+"."+part)
			}
		}
	}
}

func checkPart(t *testing.T, tool string, params map[string]json.RawMessage, part string) {
	t.Helper()
	if tool == "cookies" || tool == "state" {
		params["name"] = json.RawMessage(`"work"`)
	}
	given, err := json.Marshal(params)
	if err != nil {
		t.Fatal(err)
	}
	steps, _ := json.Marshal(map[string]any{"steps": []api.PageStep{{Tool: tool, Params: given}}})
	for _, denied := range []struct {
		caller, tools string
		denies        bool
	}{{"mcp:agent", part, true}, {"mcp:other", part, false}, {"mcp:agent", "cdp.Page.printToPDF", false}} {
		h := newHost(t, denying{denied.caller, []string{denied.tools}})
		for name, params := range map[string]json.RawMessage{tool: given, "do": steps} {
			a, _ := h.Call(t.Context(), host.Call{Name: Name + "." + name, Params: params,
				Principal: caller.Principal{Name: "mcp:agent"}, Options: job.Options{DryRun: true}})
			if is := a.Err != nil && a.Err.Code == host.Denied && strings.Contains(a.Err.Message, part); is != denied.denies ||
				a.Err != nil && a.Err.Code != host.Denied {
				t.Errorf("page.%s %s with %s denied to %s: %v", name, params, denied.tools, denied.caller, a.Err)
			}
		}
	}
}

// TestEffectsAreReviewed compares the effects of the tools, on which rights depend, with those that were reviewed, and
// checks of which calls a tool that writes only reads.
func TestEffectsAreReviewed(t *testing.T) {
	read := strings.Fields("snapshot text find get wait expect screenshot requests console vitals record compare")
	for _, tool := range tools.All() {
		want := manifest.EffectWrite
		if slices.Contains(read, tool.Name) {
			want = manifest.EffectRead
		}
		if tool.Effect != want {
			t.Errorf("%s has the effect %s, reviewed is %s", tool.Name, tool.Effect, want)
		}
	}
	for _, c := range []struct{ tool, params, want string }{
		{"route", `{}`, "read"}, {"route", `{"action":null}`, "read"}, {"route", `{"action":"remove"}`, "destructive"},
		{"dialog", `{}`, "read"}, {"dialog", `{"action":"accept"}`, "destructive"},
		{"cookies", `{"name":"a"}`, "read"}, {"cookies", `{"name":"a","value":""}`, "destructive"},
		{"storage", `{"key":"a"}`, "read"}, {"storage", `{"key":"a","value":"b"}`, "destructive"},
		{"tabs", `{}`, "read"}, {"tabs", `{"action":"list"}`, "read"}, {"tabs", `{"action":"close"}`, "destructive"},
		{"downloads", `{"wait":1}`, "read"}, {"downloads", `{"save":"/a"}`, "destructive"},
		{"click", `{}`, "destructive"}, {"route", `[]`, "destructive"},
	} {
		if got := effectOf(&job.Job{Tool: c.tool, Params: json.RawMessage(c.params)}); got != c.want {
			t.Errorf("%s %s: %s, want %s", c.tool, c.params, got, c.want)
		}
	}
}

// TestPasteIsNamed presses keys as a plugin that has the grant of a pattern, and of the name.
func TestPasteIsNamed(t *testing.T) {
	p := New(cdp.New(cdp.Config{RunDir: t.TempDir()}))
	for key, pastes := range map[string]bool{"Control+v": true, "cmd+V": true, "Shift+Insert": true,
		"Control+Shift+v": true, "Control,v": true, "v": false, "Insert": false, "Control+c": false, "Shift+v": false} {
		press, _ := json.Marshal(map[string]string{"key": key})
		do, _ := json.Marshal(map[string]any{"steps": []api.PageStep{{Tool: "press", Params: press}}})
		for tool, params := range map[string]json.RawMessage{"press": press, "do": do} {
			for _, granted := range []string{"page.*", "page.press"} {
				r := &host.Request{Job: job.Job{Tool: tool, Params: params, Caller: "plugin:other",
					CallerGrant: grant.Grant{Tools: []string{granted, "page.do"}}}}
				_, err := p.Invoke(t.Context(), r)
				if denied := host.AsError(err).Code == host.Denied; denied != (pastes && granted == "page.*") {
					t.Errorf("%s %s with %s: %v", tool, key, granted, err)
				}
			}
		}
	}
}
