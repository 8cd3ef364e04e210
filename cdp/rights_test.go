package cdp

import (
	"encoding/json"
	"path"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/parley-tools/parley/cdp/internal/keeper/api"
	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/caller"
	"github.com/parley-tools/parley/host/grant"
	"github.com/parley-tools/parley/host/job"
	"github.com/parley-tools/parley/manifest"
)

func TestConfine(t *testing.T) {
	const person, client, plugin = "cli", "mcp:some", "plugin:one"
	everybody := []string{person, client, plugin}
	downloads := func(behavior, path string) string {
		return `{"behavior":"` + behavior + `","downloadPath":"` + path + `"}`
	}
	for _, c := range []struct {
		tool, params string
		may          []string
	}{
		{"open", `{"headed":true}`, everybody},
		{"open", `{"chrome":"/bin/sh"}`, []string{person}},
		{"open", `{"user_data_dir":"/home"}`, []string{person}}, {"open", `{"attach":"/home"}`, []string{person}},
		{"open", `{"attach":"./home"}`, []string{person}}, {"open", `{"attach":"home/Default"}`, []string{person}},
		{"open", `{"attach":"9222"}`, []string{person, client}},

		{"Security.setIgnoreCertificateErrors", `{"ignore":true}`, []string{person}},
		{"Security.setOverrideCertificateErrors", `{"override":true}`, []string{person}},
		{"Security.handleCertificateError", `{"eventId":1,"action":"continue"}`, []string{person}},

		{"Browser.setDownloadBehavior", downloads("allow", "/out"), everybody},
		{"Browser.setDownloadBehavior", downloads("default", "/out"), []string{person, client}},
		{"Browser.setDownloadBehavior", `{"behavior":"allow"}`, []string{person, client}},
		{"Browser.setDownloadBehavior", `{"behavior":"allow","downloadPath":""}`, []string{person, client}},
		{"Browser.setDownloadBehavior", `{"behavior":"allow","downloadPath":["/etc"]}`, []string{person, client}},
		{"Browser.setDownloadBehavior", `{"behavior":"deny"}`, everybody},
		{"Page.setDownloadBehavior", `{"behavior":"allowAndName"}`, []string{person, client}},

		{"Input.dispatchKeyEvent", `{"type":"keyDown","key":"v","windowsVirtualKeyCode":86}`, everybody},
		{"Input.dispatchKeyEvent", `{"type":"keyDown","commands":["selectAll"]}`, everybody},
		{"Input.dispatchKeyEvent", `{"type":"keyDown","commands":["paste"]}`, []string{person, client}},
		{"Input.dispatchKeyEvent", `{"type":"keyDown","commands":["copy","PasteAndMatchStyle"]}`, []string{person, client}},
		{"Input.dispatchKeyEvent", `{"type":"rawKeyDown","modifiers":2,"windowsVirtualKeyCode":86}`,
			[]string{person, client}},
		{"Input.dispatchKeyEvent", `{"type":"rawKeyDown","modifiers":10.0,"windowsVirtualKeyCode":8.6e1}`,
			[]string{person, client}},
		{"Input.dispatchKeyEvent", `{"type":"rawKeyDown","modifiers":8,"windowsVirtualKeyCode":45}`,
			[]string{person, client}},
		{"input", `{"events":[{"type":"keyDown","key":"v","windowsVirtualKeyCode":86}]}`, everybody},
		{"input", `{"events":[{"type":"keyUp"},{"type":"keyDown","modifiers":2,"windowsVirtualKeyCode":86}]}`,
			[]string{person, client}},
		{"input", `{"events":[{"type":"keyDown","commands":["paste"]}]}`, []string{person, client}},
	} {
		for _, by := range everybody {
			r := &host.Request{Job: job.Job{Tool: c.tool, Params: json.RawMessage(c.params), Caller: by}}
			if by == plugin {
				r.CallerGrant = grant.Grant{Tools: []string{"cdp.*"}}
			}
			err := confine(r)
			may := slices.Contains(c.may, by)
			switch {
			case !may && err == nil:
				t.Errorf("%s may call %s %s", by, c.tool, c.params)
			case !may && host.AsError(err).Code != host.Denied:
				t.Errorf("%s: %s %s: %v", by, c.tool, c.params, err)
			case may && err != nil:
				t.Errorf("%s may not call %s %s: %v", by, c.tool, c.params, err)
			}
		}
	}
}

// Every tool declares effect and reach. One that does not, such as a command of a new protocol, may reach anything.
func TestEveryToolHasEffectAndReach(t *testing.T) {
	p := New(Config{})
	names, err := p.Names()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		tool, err := p.Tool(name)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Contains([]string{"read", "write", "destructive"}, tool.Effect) {
			t.Errorf("%s has effect %q", name, tool.Effect)
		}
		if !slices.Contains([]string{"page", "context", "browser", "machine"}, tool.Reach) {
			t.Errorf("%s has reach %q", name, tool.Reach)
		}
		for _, pointer := range slices.Concat(tool.URL, tool.Files) {
			if !strings.Contains(string(tool.Params), `"`+path.Base(pointer)+`"`) {
				t.Errorf("%s has no parameter %s", name, pointer)
			}
		}
	}
	if tool := passTool("Novel.reach"); tool.Reach != manifest.ReachMachine {
		t.Errorf("a command that the protocol does not know has reach %q", tool.Reach)
	}
}

// TestCallersOfTheKeeper checks what the keeper gets to know about callers and their sessions.
func TestCallersOfTheKeeper(t *testing.T) {
	grant := grant.Grant{
		FS:   []grant.FS{{Path: "/a", Source: "/srv/a", Mode: "ro"}, {Path: "/b", Source: "/srv/b", Mode: "rw"}},
		HTTP: []grant.HTTP{{URL: "https://a.test"}},
	}
	own := caller.Session{
		Owner: "plugin:one", Name: "7", Within: []string{"plugin:two/8", "user/"},
		Plugin: &caller.SessionPlugin{Digest: "sha256:1", Grant: grant},
	}
	within := []string{"plugin:two/8", "cli"}
	for _, c := range []struct {
		caller  string
		session caller.Session
		want    api.Caller
	}{
		{"cli", caller.Session{}, api.Caller{Name: "cli", Session: "cli"}},
		{"cli", caller.Session{Name: "work"}, api.Caller{Name: "cli", Session: "user/work"}},
		{"mcp:some", caller.Session{}, api.Caller{Name: "mcp:some"}},
		{"mcp:some", caller.Session{Name: "m1", Connection: "m1", Temporary: true},
			api.Caller{Name: "mcp:some", Session: "user/m1", Connection: "m1", Temporary: true}},
		{"mcp:some", caller.Session{Owner: "token:t", Connection: "m1", Temporary: true},
			api.Caller{Name: "mcp:some", Session: "token:t/", Connection: "m1", Temporary: true, Anonymous: true}},
		{"mcp-http:some", caller.Session{Owner: "token:none", Temporary: true},
			api.Caller{Name: "mcp-http:some", Session: "token:none/", Temporary: true, Anonymous: true}},
		{"plugin:one", caller.Session{}, api.Caller{Name: "plugin:one", Session: "cli"}},
		{"plugin:one", own, api.Caller{Name: "plugin:one", Session: "plugin:one/7", Within: within, Digest: "sha256:1",
			Folders: []string{"/srv/b"}, HTTP: grant.HTTP}},
		{"plugin:two", own, api.Caller{Name: "plugin:two", Session: "plugin:one/7", Within: within, Digest: "sha256:1",
			Folders: []string{"/srv/b"}, HTTP: grant.HTTP}},
	} {
		got := callerOf(&host.Request{Job: job.Job{Caller: c.caller, Session: c.session}})
		if !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s in %q: got %+v, want %+v", c.caller, c.session, got, c.want)
		}
		if isPerson := c.caller == "cli" && c.session.Name == ""; got.CanSee("") != isPerson {
			t.Errorf("%s in %q sees tabs of an attached browser that nobody gave it: %v", c.caller, c.session, !isPerson)
		}
	}
}
