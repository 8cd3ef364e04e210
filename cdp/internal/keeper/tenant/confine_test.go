package tenant

import (
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/parley-tools/parley/cdp/internal/keeper/api"
	"github.com/parley-tools/parley/cdp/internal/keeper/mux/muxtest"
)

func TestDenyReason(t *testing.T) {
	one, some := api.Caller{Name: "plugin:one"}, api.Caller{Name: "mcp:some"}
	for _, c := range []struct {
		method         string
		plugin, client bool // whether each can get a grant for it
	}{
		{"Page.navigate", true, true},
		{"SystemInfo.getInfo", true, true},
		{"Browser.getVersion", true, true},
		{"Browser.setDownloadBehavior", true, true},
		{"Browser.close", false, true},
		{"Browser.setWindowBounds", false, true},
		{"Browser.somethingNew", false, true},
		{"Target.createTarget", true, true},
		{"Target.createBrowserContext", false, true},
		{"Target.attachToBrowserTarget", false, true},
		{"Target.setAutoAttach", false, true},
		{"Target.somethingNew", false, true},
		{"Target.sendMessageToTarget", false, false},
		{"Target.exposeDevToolsProtocol", false, false},
		{"Tracing.start", false, true},
		{"Emulation.updateScreen", false, true},
		{"Emulation.setTimezoneOverride", true, true},
		{"Tethering.bind", false, true},
		{"Extensions.loadUnpacked", false, true},
		{"PWA.install", false, true},
	} {
		if got := denyReason(one, c.method) == ""; got != c.plugin {
			t.Errorf("a plugin can be granted %s: %v", c.method, got)
		}
		if got := denyReason(some, c.method) == ""; got != c.client {
			t.Errorf("an MCP client can be granted %s: %v", c.method, got)
		}
		if why := denyReason(api.CommandLine, c.method); why != "" {
			t.Errorf("the person is denied %s: %s", c.method, why)
		}
	}
}

// A plugin's command to the browser contains the plugin's context, and no other.
func TestPluginCommandsCarryTheirContext(t *testing.T) {
	one := api.Caller{Name: "plugin:one"}
	for _, c := range []struct{ method, target, params, want, code string }{
		{"Target.createTarget", "", `{"url":"http://a/"}`, `{"browserContextId":"C","url":"http://a/"}`, ""},
		{"Target.createTarget", "MINE", `{"url":"http://a/"}`, `{"browserContextId":"C","url":"http://a/"}`, ""},
		{"Target.createTarget", "", `{"url":"http://a/","browserContextId":"C"}`,
			`{"browserContextId":"C","url":"http://a/"}`, ""},
		{"Target.createTarget", "", `{"url":"http://a/","browserContextId":"D"}`, "", api.CodeNotFound},
		{"Target.createTarget", "", `{"url":"http://a/","browserContextId":null}`, "", api.CodeNotFound},
		{"Target.createTarget", "", `{"url":"http://a/","browserContextId":["C"]}`, "", api.CodeNotFound},
		{"Browser.grantPermissions", "", `{"permissions":[]}`, `{"browserContextId":"C","permissions":[]}`, ""},
		{"Storage.getCookies", "", `{}`, `{"browserContextId":"C"}`, ""},
		{"Storage.getCookies", "MINE", `{}`, `{"browserContextId":"C"}`, ""},
		{"Storage.getCookies", "browser", `{}`, "", api.CodeDenied},
		{"Page.reload", "browser", `{}`, "", api.CodeDenied},
		{"Target.closeTarget", "", `{"targetId":"MINE"}`, `{"targetId":"MINE"}`, ""},
		{"Target.closeTarget", "", `{"targetId":"T"}`, "", api.CodeNotFound},
		{"Target.closeTarget", "", `{"targetId":"NONE"}`, "", api.CodeNotFound},
		{"Target.closeTarget", "", `{"targetId":7}`, "", api.CodeInvalidArgs},
		{"Target.closeTarget", "", `{"\u0074argetId":"T"}`, "", api.CodeNotFound},
		{"Target.detachFromTarget", "", `{"sessionId":"S"}`, "", api.CodeNotFound},
		{"Target.detachFromTarget", "", `{"sessionId":"M"}`, `{"sessionId":"M"}`, ""},
		{"Target.getTargetInfo", "", `{}`, `{"targetId":"MINE"}`, ""},
		{"Browser.getWindowForTarget", "MINE", `{}`, `{"targetId":"MINE"}`, ""},
		{"Browser.getWindowForTarget", "T", `{}`, "", api.CodeNotFound},
	} {
		t.Run(c.method+" "+c.params, func(t *testing.T) {
			withPage(t, func(t *testing.T, e *rooms, f *muxtest.Browser) {
				addScope(e, one, "C")
				f.Messages <- `{"method":"Target.attachedToTarget","params":{"sessionId":"M","targetInfo":{"targetId":"MINE","type":"page","url":"http://b/","browserContextId":"C"}}}`
				synctest.Wait()
				q := api.CallRequest{Target: c.target, Method: c.method, Params: json.RawMessage(c.params)}
				err := e.Tenancy.Confine(one, e.Tenancy.scopes[one.Name], &q)
				switch {
				case err != nil && err.Code != c.code, err == nil && c.code != "":
					t.Errorf("error %v, want %q", err, c.code)
				case err == nil && (string(q.Params) != c.want || q.Target != api.BrowserTarget):
					t.Errorf("%s is sent to %q, want %s", q.Params, q.Target, c.want)
				}
			})
		})
	}
}

// An MCP client's command to the browser contains the context of its session, and reaches no other.
func TestClientCommandsStayInTheirContext(t *testing.T) {
	some := api.Caller{Name: "mcp:some", Session: "user/work"}
	for _, c := range []struct{ method, target, params, want, code string }{
		{"Target.createTarget", "browser", `{"url":"http://a/"}`, `{"browserContextId":"D","url":"http://a/"}`, ""},
		{"Target.createTarget", "", `{"url":"http://a/"}`, `{"browserContextId":"D","url":"http://a/"}`, ""},
		{"Target.createTarget", "", `{"url":"http://a/","browserContextId":"D"}`,
			`{"browserContextId":"D","url":"http://a/"}`, ""},
		{"Target.createTarget", "", `{"url":"http://a/","browserContextId":"C"}`, "", api.CodeNotFound},
		{"Target.createTarget", "", `{"url":"http://a/","browserContextId":"unknown"}`, "", api.CodeNotFound},
		{"Storage.getCookies", "browser", `{}`, `{"browserContextId":"D"}`, ""},
		{"Storage.getCookies", "MINE", `{}`, `{"browserContextId":"D"}`, ""},
		{"Storage.getCookies", "browser", `{"browserContextId":"C"}`, "", api.CodeNotFound},
		{"Target.closeTarget", "browser", `{"targetId":"MINE"}`, `{"targetId":"MINE"}`, ""},
		{"Target.closeTarget", "browser", `{"targetId":"T"}`, "", api.CodeNotFound},
		{"Target.closeTarget", "browser", `{"targetId":"PLUGINS"}`, "", api.CodeNotFound},
		{"Target.getTargetInfo", "", `{}`, `{"targetId":"MINE"}`, ""},
		{"Target.sendMessageToTarget", "browser", `{"message":"{}","targetId":"MINE"}`, "", api.CodeDenied},
		{"Fetch.enable", "browser", `{}`, "", api.CodeDenied},
		{"Page.reload", "browser", `{}`, "", api.CodeDenied},
		{"Tracing.start", "browser", `{}`, "", api.CodeDenied},
	} {
		t.Run(c.method+" "+c.params, func(t *testing.T) {
			withPage(t, func(t *testing.T, e *rooms, f *muxtest.Browser) {
				addScope(e, api.Caller{Name: "plugin:one"}, "C")
				addScope(e, some, "D")
				for id, context := range map[string]string{"PLUGINS": "C", "MINE": "D"} {
					f.Messages <- `{"method":"Target.attachedToTarget","params":{"sessionId":"S-` + id +
						`","targetInfo":{"targetId":"` + id + `","type":"page","url":"http://b/","browserContextId":"` + context + `"}}}`
				}
				synctest.Wait()
				q := api.CallRequest{Target: c.target, Method: c.method, Params: json.RawMessage(c.params)}
				err := e.Tenancy.Confine(some, e.Tenancy.scopes[some.SessionKey()], &q)
				switch {
				case err != nil && err.Code != c.code, err == nil && c.code != "":
					t.Errorf("error %v, want %q", err, c.code)
				case err == nil && (string(q.Params) != c.want || q.Target != api.BrowserTarget):
					t.Errorf("%s is sent to %q, want %s", q.Params, q.Target, c.want)
				}
			})
		})
	}
}

// A command that reaches the pages of all sessions is denied to a session that is not alone in the browser.
func TestCommandsThatReachOtherSessions(t *testing.T) {
	some := api.Caller{Name: "mcp:some", Session: "user/work"}
	helper := api.Caller{Name: "plugin:one", Within: []string{"user/work"}}
	sharing, other := api.Caller{Name: "cli", Session: "user/work"}, api.Caller{Name: "mcp:other"}
	for _, c := range []struct {
		by     api.Caller
		with   string // what else is in the browser
		method string
		code   string
	}{
		{some, "", "Browser.close", ""},
		{some, "", "Target.exposeDevToolsProtocol", api.CodeDenied},
		{api.CommandLine, "", "Target.exposeDevToolsProtocol", ""},
		{some, "its plugin", "Browser.close", ""},
		{some, "an unused page", "Browser.close", ""},
		{some, "another session", "Browser.close", api.CodeDenied},
		{some, "another session", "Browser.setWindowBounds", api.CodeDenied},
		{some, "another session", "Target.attachToBrowserTarget", api.CodeDenied},
		{some, "another session", "Target.setAutoAttach", ""},
		{some, "another session", "Target.setDiscoverTargets", ""},
		{some, "another session", "Target.createBrowserContext", ""},
		{some, "another session", "Target.disposeBrowserContext", ""},
		{some, "another session", "Browser.getVersion", ""},
		{some, "another session", "Target.createTarget", ""},
		{some, "a page of the person", "Browser.close", api.CodeDenied},
		{some, "a user's own browser", "Browser.close", api.CodeDenied},
		{sharing, "another session", "Browser.close", api.CodeDenied},
		{api.CommandLine, "another session", "Browser.close", ""},
		{api.CommandLine, "a user's own browser", "Browser.close", ""},
	} {
		withPage(t, func(t *testing.T, e *rooms, f *muxtest.Browser) {
			addScope(e, some, "C")
			e.Tracker.Started, e.Tracker.SparePage = true, e.Tracker.ByID["T"]
			switch c.with {
			case "its plugin":
				addScope(e, helper, "D")
			case "another session":
				addScope(e, other, "D")
			case "a page of the person":
				e.Owners.TakeOver(api.CommandLine, e.Tracker.ByID["T"])
			case "a user's own browser":
				e.Tracker.Started, e.Tracker.SparePage, e.Tracker.External = false, nil, true
			}
			err := e.Tenancy.Confine(c.by, e.Tenancy.scopes[c.by.SessionKey()], &api.CallRequest{Method: c.method})
			if err != nil && err.Code != c.code || err == nil && c.code != "" {
				t.Errorf("with %s, %s in %q: %v, want %q", c.with, c.method, c.by.SessionKey(), err, c.code)
			}
		})
	}
}

// Events of an extra session belong to its target, so no other caller receives them.
func TestEventsOfExtraSessionsBelongToTheirTarget(t *testing.T) {
	one, some, other := api.Caller{Name: "plugin:one"}, api.Caller{Name: "mcp:some"}, api.Caller{Name: "mcp:other"}
	withPage(t, func(t *testing.T, e *rooms, f *muxtest.Browser) {
		e.Mux.Lock()
		e.Owners.contextOwners["C"] = one.Name
		e.Mux.Unlock()
		for _, session := range []string{"S1", "S2"} {
			f.Messages <- `{"method":"Target.attachedToTarget","params":{"sessionId":"` + session +
				`","targetInfo":{"targetId":"MINE","type":"page","url":"http://b/","browserContextId":"C"}}}`
		}
		f.Messages <- `{"method":"Network.requestWillBeSent","sessionId":"S2","params":{}}`
		synctest.Wait()
		for by, want := range map[string]int{one.Name: 1, some.Name: 0, other.Name: 0} {
			stored, err := e.Owners.StoredEvents(api.Caller{Name: by}, api.EventsRequest{Patterns: []string{"Network.*"}})
			if err != nil || len(stored.Events) != want {
				t.Errorf("%s receives %s, %v", by, stored.Events, err)
			}
		}
	})
}

// The stored events of the initial page go to the session that takes it over.
func TestFirstPageEventsMoveToItsOwner(t *testing.T) {
	withPage(t, func(t *testing.T, e *rooms, f *muxtest.Browser) {
		f.Messages <- `{"method":"Page.frameStoppedLoading","sessionId":"S","params":{}}`
		synctest.Wait()
		e.Mux.Lock()
		e.Owners.Claim(api.Caller{Name: "mcp:some"}, e.Tracker.Sessions["S"])
		e.Mux.Unlock()
		for by, want := range map[string]int{"cli": 0, "mcp:some": 1, "mcp:other": 0} {
			stored, err := e.Owners.StoredEvents(api.Caller{Name: by}, api.EventsRequest{Patterns: []string{"Page.*"}})
			if err != nil || len(stored.Events) != want {
				t.Errorf("%s receives %s, %v", by, stored.Events, err)
			}
		}
	})
}

// A page's session that follows targets hears of all of them. Each session gets the reports of its own.
func TestReportsBelongToTheSessionOfTheirTarget(t *testing.T) {
	other := api.Caller{Name: "mcp:other"}
	withPage(t, func(t *testing.T, e *rooms, f *muxtest.Browser) {
		addScope(e, other, "C")
		e.Mux.Lock()
		e.Owners.TakeOver(api.CommandLine, e.Tracker.ByID["T"])
		e.Mux.Unlock()
		f.Messages <- `{"method":"Target.targetCreated","sessionId":"S","params":{"targetInfo":{"targetId":"THEIRS",` +
			`"type":"page","url":"http://b/","browserContextId":"C"}}}`
		f.Messages <- `{"method":"Target.targetCreated","sessionId":"S","params":{"targetInfo":{"targetId":"UNKNOWN",` +
			`"type":"other","url":"","browserContextId":""}}}`
		synctest.Wait()
		for _, c := range []struct {
			by   api.Caller
			want []string
		}{{api.CommandLine, []string{"UNKNOWN"}}, {other, []string{"THEIRS"}}} {
			stored, err := e.Owners.StoredEvents(c.by, api.EventsRequest{Patterns: []string{"Target.targetCreated"}})
			if err != nil || len(stored.Events) != len(c.want) || !strings.Contains(string(stored.Events[0]), c.want[0]) {
				t.Errorf("%s receives %s, %v", c.by.Name, stored.Events, err)
			}
		}
	})
}
