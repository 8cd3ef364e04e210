package keeper

import (
	"context"
	"encoding/json"
	"testing"
	"testing/synctest"
)

func TestDenyReason(t *testing.T) {
	one, some := Caller{Name: "plugin:one"}, Caller{Name: "mcp:some"}
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
	}
}

// A plugin's command to the browser contains the plugin's context, and no other.
func TestPluginCommandsCarryTheirContext(t *testing.T) {
	one := Caller{Name: "plugin:one"}
	for _, c := range []struct{ method, target, params, want, code string }{
		{"Target.createTarget", "", `{"url":"http://a/"}`, `{"browserContextId":"C","url":"http://a/"}`, ""},
		{"Target.createTarget", "MINE", `{"url":"http://a/"}`, `{"browserContextId":"C","url":"http://a/"}`, ""},
		{"Target.createTarget", "", `{"url":"http://a/","browserContextId":"C"}`,
			`{"browserContextId":"C","url":"http://a/"}`, ""},
		{"Target.createTarget", "", `{"url":"http://a/","browserContextId":"D"}`, "", CodeNotFound},
		{"Target.createTarget", "", `{"url":"http://a/","browserContextId":null}`, "", CodeNotFound},
		{"Target.createTarget", "", `{"url":"http://a/","browserContextId":["C"]}`, "", CodeNotFound},
		{"Browser.grantPermissions", "", `{"permissions":[]}`, `{"browserContextId":"C","permissions":[]}`, ""},
		{"Storage.getCookies", "", `{}`, `{"browserContextId":"C"}`, ""},
		{"Storage.getCookies", "MINE", `{}`, `{"browserContextId":"C"}`, ""},
		{"Storage.getCookies", "browser", `{}`, "", CodeDenied},
		{"Page.reload", "browser", `{}`, "", CodeDenied},
		{"Target.closeTarget", "", `{"targetId":"MINE"}`, `{"targetId":"MINE"}`, ""},
		{"Target.closeTarget", "", `{"targetId":"T"}`, "", CodeNotFound},
		{"Target.closeTarget", "", `{"targetId":"NONE"}`, "", CodeNotFound},
		{"Target.closeTarget", "", `{"targetId":7}`, "", CodeInvalidArgs},
		{"Target.closeTarget", "", `{"\u0074argetId":"T"}`, "", CodeNotFound},
		{"Target.detachFromTarget", "", `{"sessionId":"S"}`, "", CodeNotFound},
		{"Target.detachFromTarget", "", `{"sessionId":"M"}`, `{"sessionId":"M"}`, ""},
		{"Target.getTargetInfo", "", `{}`, `{"targetId":"MINE"}`, ""},
		{"Browser.getWindowForTarget", "MINE", `{}`, `{"targetId":"MINE"}`, ""},
		{"Browser.getWindowForTarget", "T", `{}`, "", CodeNotFound},
	} {
		t.Run(c.method+" "+c.params, func(t *testing.T) {
			withPage(t, func(t *testing.T, e *engine, f *fakeBrowser) {
				e.mu.Lock()
				e.contextOwners["C"], e.scopes[one.Name] = one.Name, &scope{caller: one.Name, context: "C"}
				e.mu.Unlock()
				f.messages <- `{"method":"Target.attachedToTarget","params":{"sessionId":"M","targetInfo":{"targetId":"MINE","type":"page","url":"http://b/","browserContextId":"C"}}}`
				synctest.Wait()
				q := CallRequest{Target: c.target, Method: c.method, Params: json.RawMessage(c.params)}
				err := e.confine(one, e.scopes[one.Name], &q)
				switch {
				case err != nil && err.Code != c.code, err == nil && c.code != "":
					t.Errorf("error %v, want %q", err, c.code)
				case err == nil && (string(q.Params) != c.want || q.Target != BrowserTarget):
					t.Errorf("%s is sent to %q, want %s", q.Params, q.Target, c.want)
				}
			})
		})
	}
}

// An MCP client has no access to a plugin's context or to other clients' targets.
func TestClientCommandsStayOutOfPluginContexts(t *testing.T) {
	some := Caller{Name: "mcp:some"}
	for _, c := range []struct{ method, params, code string }{
		{"Target.createTarget", `{"url":"http://a/"}`, ""},
		{"Target.createTarget", `{"url":"http://a/","browserContextId":"D"}`, ""},
		{"Target.createTarget", `{"url":"http://a/","browserContextId":"C"}`, CodeNotFound},
		{"Storage.getCookies", `{"browserContextId":"C"}`, CodeNotFound},
		{"Target.closeTarget", `{"targetId":"T"}`, ""},
		{"Target.closeTarget", `{"targetId":"PLUGINS"}`, CodeNotFound},
		{"Target.sendMessageToTarget", `{"message":"{}","targetId":"T"}`, CodeDenied},
		{"Fetch.enable", `{}`, CodeDenied},
	} {
		withPage(t, func(t *testing.T, e *engine, f *fakeBrowser) {
			e.mu.Lock()
			e.contextOwners["C"] = "plugin:one"
			e.mu.Unlock()
			f.messages <- `{"method":"Target.attachedToTarget","params":{"sessionId":"P","targetInfo":{"targetId":"PLUGINS","type":"page","url":"http://b/","browserContextId":"C"}}}`
			synctest.Wait()
			q := CallRequest{Target: BrowserTarget, Method: c.method, Params: json.RawMessage(c.params)}
			if err := e.confine(some, nil, &q); err != nil && err.Code != c.code || err == nil && c.code != "" {
				t.Errorf("%s %s: %v, want %q", c.method, c.params, err, c.code)
			}
		})
	}
}

// Commands of the command line are sent unchanged.
func TestCommandLineIsNotConfined(t *testing.T) {
	withPage(t, func(t *testing.T, e *engine, f *fakeBrowser) {
		ended := make(chan *Error, 1)
		go func() {
			ended <- e.call(context.Background(), commandLine,
				CallRequest{Method: "Target.createBrowserContext", Params: json.RawMessage(`{"proxyServer":"direct://"}`)}).err
		}()
		synctest.Wait()
		q := <-f.sent
		if q.Method != "Target.createBrowserContext" || string(q.Params) != `{"proxyServer":"direct://"}` {
			t.Errorf("sent %+v", q)
		}
		f.answer(q, `{"browserContextId":"D"}`)
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

func TestMayOpenAndMayShow(t *testing.T) {
	for _, c := range []struct {
		url         string
		open, shown bool
	}{
		{"", true, true}, {"about:blank", true, true}, {"http://a/", true, true}, {"HTTPS://a/", true, true},
		{"https://a/?file:///etc", true, true},
		{"about:blank#blocked", false, true}, {"about:blank?x", false, true}, {"chrome-error://chromewebdata/", false, true},
		{"file:///etc/passwd", false, false}, {"FILE:/etc", false, false}, {" http://a/", false, false},
		{"view-source:http://a/", false, false}, {"data:text/html,x", false, false},
		{"javascript:1", false, false}, {"chrome://version/", false, false}, {"chrome-error://other/", false, false},
		{"blob:http://a/x", false, false},
		{"filesystem:http://a/t/x", false, false}, {"about:srcdoc", false, false}, {"about:version", false, false},
		{"http:a", false, false}, {"ftp://a/", false, false},
		{"devtools://devtools/x", false, false}, {"ht\ntp://a/", false, false},
	} {
		if MayOpen(c.url) != c.open || mayShow(c.url) != c.shown {
			t.Errorf("%q: may be opened %v, may be shown %v", c.url, MayOpen(c.url), mayShow(c.url))
		}
	}
}

func TestIsFromWeb(t *testing.T) {
	for url, want := range map[string]bool{
		"":                              false,
		"http://a/":                     true,
		"https://a/w.js":                true,
		"about:blank":                   true,
		"about:srcdoc":                  true,
		"data:text/html,x":              true,
		"blob:http://a/1":               true,
		"blob:null/1":                   true,
		"chrome-error://chromewebdata/": true,
		"chrome-extension://mhjfbmdgcfjbbpaeojofohoefgiehjai/index.html": false,
		"blob:chrome-extension://a/1":                                    false,
		"chrome://settings/":                                             false,
		"chrome-untrusted://x/":                                          false,
		"devtools://x/":                                                  false,
		"file:///etc":                                                    false,
	} {
		if isFromWeb(url) != want {
			t.Errorf("%q is from the web: %v", url, isFromWeb(url))
		}
	}
}

// Events of an extra session belong to its target, so no other caller receives them.
func TestEventsOfExtraSessionsBelongToTheirTarget(t *testing.T) {
	one, some, other := Caller{Name: "plugin:one"}, Caller{Name: "mcp:some"}, Caller{Name: "mcp:other"}
	withPage(t, func(t *testing.T, e *engine, f *fakeBrowser) {
		e.mu.Lock()
		e.contextOwners["C"] = one.Name
		e.mu.Unlock()
		for _, session := range []string{"S1", "S2"} {
			f.messages <- `{"method":"Target.attachedToTarget","params":{"sessionId":"` + session +
				`","targetInfo":{"targetId":"MINE","type":"page","url":"http://b/","browserContextId":"C"}}}`
		}
		f.messages <- `{"method":"Network.requestWillBeSent","sessionId":"S2","params":{}}`
		synctest.Wait()
		for by, want := range map[string]int{one.Name: 1, some.Name: 0, other.Name: 0} {
			stored, err := e.storedEvents(Caller{Name: by}, EventsRequest{Patterns: []string{"Network.*"}})
			if err != nil || len(stored.Events) != want {
				t.Errorf("%s receives %s, %v", by, stored.Events, err)
			}
		}
	})
}

// The stored events of the initial page go to the caller that takes it over.
func TestFirstPageEventsMoveToItsOwner(t *testing.T) {
	withPage(t, func(t *testing.T, e *engine, f *fakeBrowser) {
		f.messages <- `{"method":"Page.frameStoppedLoading","sessionId":"S","params":{}}`
		synctest.Wait()
		e.mu.Lock()
		e.claim(Caller{Name: "mcp:some"}, e.sessions["S"])
		e.mu.Unlock()
		for by, want := range map[string]int{"cli": 1, "mcp:some": 1, "mcp:other": 0} {
			stored, err := e.storedEvents(Caller{Name: by}, EventsRequest{Patterns: []string{"Page.*"}})
			if err != nil || len(stored.Events) != want {
				t.Errorf("%s receives %s, %v", by, stored.Events, err)
			}
		}
	})
}
