//go:build linux

package keeper

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-tools/parley/cdp/internal/keeper/api"
	"github.com/parley-tools/parley/cdp/internal/keeper/event"
	"github.com/parley-tools/parley/cdp/internal/keeper/mux/muxtest"
	"github.com/parley-tools/parley/cdp/internal/keeper/scan"
	"github.com/parley-tools/parley/cdp/internal/keeper/tenant"
	"github.com/parley-tools/parley/cdp/internal/keeper/verb"
)

// These tests check what each caller may use and see, against a fake browser: a test of the engine alone takes a
// millisecond.

// withPages is withPage with one more page of each of three sessions: ONE is plugin one's, SOME and OTHER are those of
// MCP clients. Each is in the context of its session, C-ONE to C-OTHER. The page T has no owner.
func withPages(t *testing.T, test func(t *testing.T, e *verb.Verbs, f *muxtest.Browser)) {
	withPage(t, func(t *testing.T, e *verb.Verbs, f *muxtest.Browser) {
		for _, of := range []struct {
			id string
			by api.Caller
		}{{"ONE", plugin("one")}, {"SOME", someClient}, {"OTHER", otherClient}} {
			addScope(e, of.by, "C-"+of.id)
			f.Attach("", muxtest.Info{ID: of.id, Type: "page", URL: "http://" + of.id + "/", Context: "C-" + of.id})
			synctest.Wait()
		}
		test(t, e, f)
	})
}

// found returns the id of the target that a selector of a caller names, or the error.
func found(e *verb.Verbs, by api.Caller, selector string) string {
	target, err := e.Owners.Resolve(by, selector)
	if err != nil {
		return err.Code + ": " + err.Message
	}
	return target.ID
}

// listed returns the ids of the targets that a caller may use.
func listed(e *verb.Verbs, by api.Caller) (ids []string) {
	for _, one := range e.Owners.ListTargets(by, false) {
		ids = append(ids, one.ID)
	}
	return ids
}

// ownerIn returns the owner of a target.
func ownerIn(e *verb.Verbs, id string) string {
	synctest.Wait()
	e.Mux.Lock()
	defer e.Mux.Unlock()
	if e.Tracker.ByID[id] == nil {
		return "no such target"
	}
	return e.Tracker.ByID[id].Owner
}

// refused checks that a request fails with a code and a message with these words.
func refused(t *testing.T, what string, err *api.Error, code string, words ...string) {
	t.Helper()
	if err == nil {
		t.Errorf("%s succeeds, want %s", what, code)
		return
	}
	wantCode(t, err, code, words...)
}

// Plugins work only in a browser that Parley started, and behind a guard.
func TestBrowsersForPlugins(t *testing.T) {
	one := plugin("one")
	withPage(t, func(t *testing.T, e *verb.Verbs, _ *muxtest.Browser) {
		refused(t, "a plugin without a guard", e.Tenancy.CheckCaller(one), api.CodeDenied, "guard")
		e.Tenancy.Egress = testGuard{}
		if err := e.Tenancy.CheckCaller(one); err != nil {
			t.Error(err)
		}
		e.Tracker.External = true
		refused(t, "a plugin in an attached browser", e.Tenancy.CheckCaller(one), api.CodeDenied, "attached")
		if err := e.Tenancy.CheckCaller(someClient); err != nil {
			t.Error(err)
		}
		refused(t, "another kind of caller", e.Tenancy.CheckCaller(api.Caller{Name: "root:x"}), api.CodeInvalidArgs)
	})
}

// The status that callers other than the command line get names the browser, and neither the machine nor others.
func TestPublicStatus(t *testing.T) {
	all := api.Status{
		Browser: "default", Mode: "launched", Product: "Chrome/1", Executable: "/opt/secret", FoundBy: "secret",
		Why: "secret", Endpoint: "ws://secret", Profile: "/home/secret", KeeperPID: 1, ChromePID: 2, UptimeMS: 3, Calls: 4,
		Clients: 5, Events: api.RingInfo{Kept: 6}, Log: "/run/secret", Notes: []string{"secret"},
	}
	got := all.Public()
	if raw := string(scan.Marshal(got)); strings.Contains(raw, "secret") || got.KeeperPID+got.ChromePID+got.Clients != 0 ||
		got.UptimeMS+got.Calls != 0 || got.Events != (api.RingInfo{}) || got.Product != all.Product {
		t.Errorf("the public status is %s", raw)
	}
}

// A selector finds only targets that the caller may use, as if there were no others. A person can name any by its id.
func TestSelectorsFindOwnTargets(t *testing.T) {
	one, guest := plugin("one"), api.Caller{Name: "cli", Session: someClient.SessionKey()}
	withPages(t, func(t *testing.T, e *verb.Verbs, f *muxtest.Browser) {
		// The PDF viewer, in a frame of SOME's page, and settings that nobody has opened through Parley.
		f.Attach("session of SOME", muxtest.Info{ID: "VIEWER", Type: "iframe", URL: "chrome-extension://pdf/"})
		f.Attach("", muxtest.Info{ID: "SECOND", Type: "page", URL: "http://SECOND/", Context: "C-SOME"})
		f.Attach("", muxtest.Info{ID: "SETTINGS", Type: "page", URL: "chrome://settings/"})
		synctest.Wait()
		all := []string{"T", "ONE", "SOME", "OTHER", "VIEWER", "SECOND", "SETTINGS"}
		for by, want := range map[*api.Caller][]string{
			&api.CommandLine: {"T", "SETTINGS"}, &guest: {"SOME", "VIEWER", "SECOND"},
			&someClient: {"SOME", "SECOND"}, &otherClient: {"OTHER"}, &one: {"ONE"},
		} {
			if got := listed(e, *by); !slices.Equal(got, want) {
				t.Errorf("%s sees %q, want %q", by.Name, got, want)
			}
			for _, id := range all {
				if got := found(e, *by, id); (got == id) != (slices.Contains(want, id) || by.IsCommandLine()) {
					t.Errorf("%s finds %s by its id: %s", by.Name, id, got)
				}
			}
			for i := range len(all) + 1 {
				got := found(e, *by, fmt.Sprint(i))
				if i < len(want) && got != want[i] || i >= len(want) && !strings.HasPrefix(got, api.CodeNotFound) {
					t.Errorf("%s finds by index %d: %s", by.Name, i, got)
				}
			}
		}
		for _, c := range []struct {
			by             api.Caller
			selector, want string
		}{
			{someClient, "//SOME", "SOME"}, {someClient, "http://", "matches 2 targets"},
			{someClient, "//ONE", "no target matches"}, {someClient, "pdf", "no target matches"},
			{someClient, "settings", "no target matches"}, {someClient, "-1", "there is no target -1"},
			{api.CommandLine, "//SOME", "no target matches"}, {api.CommandLine, "OTHE", "no target matches"},
		} {
			if got := found(e, c.by, c.selector); !strings.Contains(got, c.want) {
				t.Errorf("%q of %s finds %s, want %s", c.selector, c.by.Name, got, c.want)
			}
		}
		everything := e.Owners.ListTargets(api.CommandLine, true)
		for i, one := range everything {
			if one.ID != all[i] || one.Owner != ownerIn(e, one.ID) {
				t.Errorf("in the list of all, %s of %q is number %d", one.ID, one.Owner, i)
			}
		}
	})
}

// What a page opens belongs to the owner of the page, and everything in a plugin's context to the plugin.
func TestNewTargetsFindTheirOwner(t *testing.T) {
	withPages(t, func(t *testing.T, e *verb.Verbs, f *muxtest.Browser) {
		e.Tracker.Started = true // so that a page without a known origin counts as the command line's at first
		f.Attach("", muxtest.Info{ID: "POPUP", Type: "page", URL: api.BlankURL, Opener: "SOME"})
		f.Attach("session of SOME", muxtest.Info{ID: "FRAME", Type: "iframe", URL: "http://a/"})
		f.Attach("session of ONE", muxtest.Info{ID: "WORKER", Type: "worker", URL: "http://a/w.js"})
		late := muxtest.Info{ID: "LATE", Type: "page", URL: api.BlankURL}
		f.Report("", "Target.targetCreated", map[string]any{"targetInfo": late})
		if got := ownerIn(e, "LATE"); got != api.DefaultSession {
			t.Errorf("a page of unknown origin belongs to %q", got)
		}
		late.Context = "C-ONE"
		f.Attach("", late)
		one := plugin("one").Name
		for id, want := range map[string]string{
			"POPUP": someClient.Name, "FRAME": someClient.Name, "WORKER": one, "LATE": one,
		} {
			if got := ownerIn(e, id); got != want {
				t.Errorf("%s belongs to %q, want %q", id, got, want)
			}
		}
	})
}

// What two callers of a session create at the same time was opened by the one whose command created it, whichever was
// first.
func TestCreatedTargetBelongsToItsCreator(t *testing.T) {
	agent := api.Caller{Name: "mcp:some", Session: "user/work", Connection: "1"}
	person := api.Caller{Name: "cli", Session: "user/work"}
	for context, callers := range map[string][2]api.Caller{
		"C": {agent, person},
		"":  {{Name: "plugin:one", Session: api.DefaultSession, Connection: "1"}, api.CommandLine},
	} {
		withPage(t, func(t *testing.T, e *verb.Verbs, f *muxtest.Browser) {
			e.Tracker.Started = true
			addScope(e, agent, "C")
			var made []muxtest.Command
			for _, by := range callers {
				go e.Call(t.Context(), by, api.CallRequest{Method: "Target.createTarget", Params: json.RawMessage(`{}`)})
				made = append(made, <-f.Sent)
			}
			for i, id := range []string{"B", "A"} { // the second caller's page comes first
				f.Attach("", muxtest.Info{ID: id, Type: "page", URL: api.BlankURL, Context: context})
				synctest.Wait()
				f.Answer(made[1-i], `{"targetId":"`+id+`"}`)
				synctest.Wait()
			}
			for i, id := range []string{"A", "B"} {
				if owner := ownerIn(e, id); owner != callers[i].SessionKey() ||
					e.Tracker.ByID[id].Origin != tenant.OriginOf(callers[i]) {
					t.Errorf("%s belongs to %q, opened by %+v", id, owner, e.Tracker.ByID[id].Origin)
				}
			}
		})
	}
}

// The person's first call takes over a page that has no owner, with its events and nothing else.
func TestTakingOverPages(t *testing.T) {
	events := func(e *verb.Verbs, by api.Caller) (all []string) {
		stored, err := e.Owners.StoredEvents(by, api.EventsRequest{Patterns: []string{"Page.*"}})
		if err != nil {
			return []string{err.Error()}
		}
		for _, raw := range stored.Events {
			var line streamLine
			json.Unmarshal(raw, &line)
			all = append(all, line.Target)
		}
		return all
	}
	call := func(t *testing.T, e *verb.Verbs, by api.Caller, target string) {
		go e.Call(t.Context(), by, api.CallRequest{Method: "Runtime.evaluate", Target: target})
		synctest.Wait()
	}
	guest := api.Caller{Name: "cli", Session: someClient.SessionKey()}
	withPages(t, func(t *testing.T, e *verb.Verbs, f *muxtest.Browser) {
		for _, id := range []string{"NEXT", "GIVEN"} {
			f.Attach("", muxtest.Info{ID: id, Type: "page", URL: "http://a/"})
		}
		f.Attach("", muxtest.Info{ID: "WORKER", Type: "service_worker", URL: "http://a/w.js"})
		for _, session := range []string{"S", "session of NEXT", "session of GIVEN", "session of OTHER"} {
			f.Report(session, "Page.frameStoppedLoading", map[string]any{})
		}
		synctest.Wait()
		for _, id := range []string{"T", "WORKER", "OTHER"} {
			call(t, e, api.CommandLine, id)
		}
		call(t, e, someClient, "NEXT")
		call(t, e, guest, "GIVEN")
		for id, want := range map[string]string{
			"T": api.DefaultSession, "GIVEN": someClient.Name, "SOME": someClient.Name, "OTHER": otherClient.Name, "NEXT": "",
			"WORKER": "",
		} {
			if got := ownerIn(e, id); got != want {
				t.Errorf("%s belongs to %q, want %q", id, got, want)
			}
		}
		if got := events(e, api.CommandLine); !slices.Equal(got, []string{"T", "NEXT"}) {
			t.Errorf("the person who took over T has events of %q", got)
		}
		if got := events(e, someClient); !slices.Equal(got, []string{"GIVEN"}) {
			t.Errorf("the session that was given a page has events of %q", got)
		}
		if got := events(e, otherClient); !slices.Equal(got, []string{"OTHER"}) {
			t.Errorf("another session has events of %q", got)
		}
	})
	withPage(t, func(t *testing.T, e *verb.Verbs, _ *muxtest.Browser) {
		e.Tracker.External = true
		call(t, e, api.CommandLine, "T")
		if got := ownerIn(e, "T"); got != "" {
			t.Errorf("a page of the person's own browser belongs to %q", got)
		}
	})
}

// The browser's first page counts as the person's once it was used, and is not given to the next open.
func TestUsedFirstPageIsNotSpare(t *testing.T) {
	withPage(t, func(t *testing.T, e *verb.Verbs, f *muxtest.Browser) {
		e.Tracker.SparePage, e.Tracker.Started = e.Tracker.ByID["T"], true
		if all := e.Tenancy.OpenSessions(); len(all) > 0 {
			t.Errorf("with the unused page these sessions are open: %+v", all)
		}
		used, ended := startCommand(t, e, f, "Runtime.evaluate")
		f.Answer(used, `{}`)
		wantResult(t, "a call in the first page", ended, "")
		e.Mux.Lock()
		all := e.Tenancy.OpenSessions()
		e.Mux.Unlock()
		if len(all) != 1 || all[0].Session != api.DefaultSession || all[0].Pages != 1 {
			t.Errorf("with the used page these sessions are open: %+v", all)
		}
		go e.Open(t.Context(), api.CommandLine, api.OpenRequest{})
		if q := <-f.Sent; q.Method != "Target.createTarget" {
			t.Errorf("for the next open the browser receives %s", q.Method)
		}
	})
}

// The default target is the caller's newest page, but one that is closed or that it may not have.
func TestDefaultTargets(t *testing.T) {
	gone := func(f *muxtest.Browser, id string) {
		f.Report("", "Target.targetDestroyed", map[string]any{"targetId": id})
		synctest.Wait()
	}
	t.Run("the person's", func(t *testing.T) {
		withPage(t, func(t *testing.T, e *verb.Verbs, f *muxtest.Browser) {
			e.Owners.ContextOwners["C"] = plugin("one").Name
			opened := func(id string) {
				f.Attach("", muxtest.Info{ID: id, Type: "page", URL: "http://b/", Context: "C"})
				synctest.Wait()
			}
			opened("BEFORE")
			gone(f, "T")
			opened("AFTER")
			if got := found(e, api.CommandLine, ""); !strings.Contains(got, "no page") {
				t.Errorf("where only a plugin has pages, the person's default is %s", got)
			}
		})
	})
	t.Run("a client's", func(t *testing.T) {
		withPages(t, func(t *testing.T, e *verb.Verbs, f *muxtest.Browser) {
			gone(f, "T")
			file := muxtest.Info{ID: "FILE", Type: "page", URL: "http://a/", Context: "C-SOME"}
			f.Attach("", file)
			synctest.Wait()
			file.URL = "file:///etc/passwd"
			f.Report("", "Target.targetInfoChanged", map[string]any{"targetInfo": file})
			synctest.Wait()
			if got := found(e, someClient, ""); got != "SOME" {
				t.Errorf("beside a page that may not be shown, the default is %s", got)
			}
			f.Attach("", muxtest.Info{ID: "NEW", Type: "page", URL: "http://a/", Context: "C-SOME"})
			synctest.Wait()
			e.Owners.SetCurrent(someClient, e.Tracker.ByID["SOME"])
			if got := found(e, someClient, ""); got != "SOME" {
				t.Errorf("the chosen page is SOME, the default %s", got)
			}
			anonymous := someClient
			anonymous.Anonymous = true
			if got := found(e, anonymous, ""); !strings.Contains(got, "name one as target") {
				t.Errorf("a client without a session has the default target %s", got)
			}
			if got := found(e, anonymous, "SOME"); got != "SOME" {
				t.Errorf("a client without a session finds %s by its id", got)
			}
			gone(f, "SOME")
			if got := found(e, someClient, ""); got != "NEW" {
				t.Errorf("after the chosen page was closed, the default is %s", got)
			}
		})
	})
}

// A command that names a target, a session or a window of another caller is refused before it is sent.
func TestCommandsNameOwnTargets(t *testing.T) {
	one := plugin("one")
	withPages(t, func(t *testing.T, e *verb.Verbs, f *muxtest.Browser) {
		f.AttachTwice("", "second of ONE", muxtest.Info{ID: "ONE", Type: "page", URL: "http://ONE/", Context: "C-ONE"})
		synctest.Wait()
		for _, c := range []struct{ by, method, params, code string }{
			{"mcp", "Target.createTarget", `{"url":"http://a/","forTab":true}`, api.CodeDenied},
			{"mcp", "Target.createTarget", `{"url":"http://a/","hidden":1}`, api.CodeDenied},
			{"mcp", "Target.createTarget", `{"url":"http://a/","forTab":false}`, ""},
			{"plugin", "Target.createTarget", `{"url":"http://a/","forTab":true}`, api.CodeDenied},
			{"mcp", "Browser.getWindowForTarget", `{"targetId":"SOME"}`, ""},
			{"mcp", "Browser.getWindowForTarget", `{"targetId":"ONE"}`, api.CodeNotFound},
			{"mcp", "Target.closeTarget", `{"targetId":"OTHER"}`, api.CodeNotFound},
			{"mcp", "Target.closeTarget", `{"targetId":"a tab, which the keeper does not track"}`, api.CodeNotFound},
			{"person", "Target.closeTarget", `{"targetId":"a tab, which the keeper does not track"}`, ""},
			{"person", "Target.createTarget", `{"url":"http://a/","forTab":true}`, ""},
			{"plugin", "Target.closeTarget", `{"targetId":"a tab, which the keeper does not track"}`, api.CodeNotFound},
			{"mcp", "Target.detachFromTarget", `{"sessionId":"session of SOME"}`, ""},
			{"mcp", "Target.detachFromTarget", `{"sessionId":"session of ONE"}`, api.CodeNotFound},
			{"mcp", "Target.detachFromTarget", `{"sessionId":"second of ONE"}`, api.CodeNotFound},
			{"plugin", "Target.detachFromTarget", `{"sessionId":"second of ONE"}`, ""},
		} {
			by := map[string]api.Caller{"mcp": someClient, "plugin": one, "person": api.CommandLine}[c.by]
			err := e.Tenancy.Confine(by, e.Tenancy.Scopes[by.SessionKey()],
				&api.CallRequest{Method: c.method, Params: json.RawMessage(c.params)})
			switch {
			case c.code != "":
				refused(t, c.by+" "+c.method+" "+c.params, err, c.code)
			case err != nil:
				t.Errorf("%s %s %s: %v", c.by, c.method, c.params, err)
			}
		}
	})
}

// wasEvicted reports whether the engine closes a target, by its command to the browser and for calls in it.
func wasEvicted(t *testing.T, e *verb.Verbs, f *muxtest.Browser, id string) bool {
	t.Helper()
	synctest.Wait()
	e.Mux.Lock()
	why := e.Tracker.ByID[id].EvictErr
	e.Mux.Unlock()
	closed := false
	for len(f.Sent) > 0 {
		q := <-f.Sent
		closed = closed || q.Method == "Target.closeTarget" && string(q.Params) == `{"targetId":"`+id+`"}`
	}
	if closed != (why != nil) {
		t.Errorf("%s was closed: %v, because of %v", id, closed, why)
	}
	return closed
}

// show reports that a target shows another URL.
func show(f *muxtest.Browser, info muxtest.Info, url string) {
	f.Show(info, url)
	synctest.Wait()
}

// The person and an agent, each over a connection, in a session that they share.
var (
	sharing = api.Caller{Name: "cli", Session: "user/work"}
	agent   = api.Caller{Name: "mcp:some", Session: "user/work", Connection: "1"}
)

// opened lets a caller open a blank page in the context C.
func opened(t *testing.T, e *verb.Verbs, f *muxtest.Browser, by api.Caller, id string) muxtest.Info {
	t.Helper()
	info := muxtest.Info{ID: id, Type: "page", URL: api.BlankURL, Context: "C"}
	ended := make(chan *api.Error, 1)
	go func() { ended <- e.Call(t.Context(), by, api.CallRequest{Method: "Target.createTarget"}).Err }()
	synctest.Wait()
	f.Attach("", info)
	f.Answer(<-f.Sent, `{"targetId":"`+id+`"}`)
	wantResult(t, "opening "+id, ended, "")
	return info
}

// The person's pages in a shared session may show what only a person may open. The others in the session use such a
// page only while it shows what a page of theirs could.
func TestPagesOfPersonInSharedSession(t *testing.T) {
	withPage(t, func(t *testing.T, e *verb.Verbs, f *muxtest.Browser) {
		e.Tracker.Started = true
		addScope(e, sharing, "C")
		persons, agents := opened(t, e, f, sharing, "PERSONS"), opened(t, e, f, agent, "AGENTS")
		both := []string{"PERSONS", "AGENTS"}
		for url, want := range map[string][]string{
			"http://a/": both, api.BlankURL: both, "file:///etc/passwd": {"AGENTS"}, "chrome://settings/": {"AGENTS"},
			"data:text/html,x": {"AGENTS"},
		} {
			show(f, persons, url)
			f.Report("session of PERSONS", "Page.windowOpen", map[string]any{"url": url})
			synctest.Wait()
			for by, hears := range map[*api.Caller]bool{&sharing: true, &agent: slices.Contains(want, "PERSONS")} {
				stored := value(e.Owners.StoredEvents(*by, api.EventsRequest{URL: ""}))
				heard := 0
				for _, raw := range stored.Events {
					if bytes.Contains(raw, []byte(`"url":"`+url+`"`)) {
						heard++ // the page's own event, and that of its target
					}
				}
				if (heard > 0) != hears {
					t.Errorf("%s hears %d events of the person's page that shows %s", by.Name, heard, url)
				}
			}
			if got := listed(e, agent); !slices.Equal(got, want) {
				t.Errorf("while the person's page shows %s, the agent sees %q", url, got)
			}
			if got := found(e, agent, "PERSONS"); (got == "PERSONS") != slices.Contains(want, "PERSONS") {
				t.Errorf("the person's page that shows %s is found by the agent: %s", url, got)
			}
			if got := listed(e, sharing); !slices.Equal(got, both) {
				t.Errorf("while the person's page shows %s, the person sees %q", url, got)
			}
			e.Owners.SetCurrent(sharing, e.Tracker.ByID["PERSONS"])
			if got := found(e, agent, ""); !slices.Contains(want, got) {
				t.Errorf("while the person's page shows %s, the agent's default is %s", url, got)
			}
			if wasEvicted(t, e, f, "PERSONS") {
				t.Errorf("the person's page is closed because it shows %s", url)
			}
		}
		show(f, agents, "file:///etc/passwd")
		if !wasEvicted(t, e, f, "AGENTS") {
			t.Error("the agent's page that shows a file stays")
		}
	})
}

// A page that another one opens was opened by the same caller, also where it has no opener, and so were its own.
func TestPopupsInheritTheirOrigin(t *testing.T) {
	withPage(t, func(t *testing.T, e *verb.Verbs, f *muxtest.Browser) {
		e.Tracker.Started = true
		addScope(e, sharing, "C")
		for by, id := range map[*api.Caller]string{&sharing: "PERSONS", &agent: "AGENTS"} {
			opened(t, e, f, *by, id)
			clicked := muxtest.Info{ID: "CLICKED-" + id, Type: "page", URL: "http://" + id + "/clicked", Context: "C"}
			f.Report("session of "+id, "Page.frameRequestedNavigation", map[string]any{
				"frameId": id, "reason": "anchorClick", "url": clicked.URL, "disposition": "newTab",
			})
			f.Attach("", clicked)
			f.Attach("", muxtest.Info{ID: "POPUP-" + id, Type: "page", URL: api.BlankURL, Context: "C", Opener: id})
			f.Attach("", muxtest.Info{ID: "NEXT-" + id, Type: "page", URL: api.BlankURL, Context: "C", Opener: "POPUP-" + id})
			for _, kind := range []string{"CLICKED-", "POPUP-", "NEXT-"} {
				if owner := ownerIn(e, kind+id); owner != "user/work" || e.Tracker.ByID[kind+id].Origin != tenant.OriginOf(*by) {
					t.Errorf("%s%s belongs to %q, opened by %+v", kind, id, owner, e.Tracker.ByID[kind+id].Origin)
				}
			}
		}
	})
}

// A page keeps its origin when it changes while another caller of the session opens one.
func TestOriginStays(t *testing.T) {
	stateless := api.Caller{Name: "mcp:some", Session: "user/work"}
	withPage(t, func(t *testing.T, e *verb.Verbs, f *muxtest.Browser) {
		e.Tracker.Started = true
		addScope(e, sharing, "C")
		mine := opened(t, e, f, stateless, "MINE")
		go e.Call(t.Context(), sharing, api.CallRequest{Method: "Target.createTarget"})
		synctest.Wait()
		show(f, mine, "http://a/")
		f.Attach("", muxtest.Info{ID: "POPUP", Type: "page", URL: api.BlankURL, Context: "C", Opener: "MINE"})
		addScope(e, otherClient, "D")
		f.Attach("", muxtest.Info{ID: "ELSEWHERE", Type: "page", URL: api.BlankURL, Context: "D"})
		for _, id := range []string{"MINE", "POPUP", "ELSEWHERE"} {
			if ownerIn(e, id); e.Tracker.ByID[id].Origin != tenant.OriginOf(stateless) {
				t.Errorf("%s was opened by %+v", id, e.Tracker.ByID[id].Origin)
			}
		}
	})
}

// A page that another session has requested is not taken for a new one elsewhere with the same URL.
func TestRequestedPageIsInTheSameContext(t *testing.T) {
	withPages(t, func(t *testing.T, e *verb.Verbs, f *muxtest.Browser) {
		e.Tracker.Started = true
		f.Report("session of SOME", "Page.frameRequestedNavigation", map[string]any{
			"frameId": "SOME", "reason": "anchorClick", "url": "http://bank/", "disposition": "newTab",
		})
		f.Attach("", muxtest.Info{ID: "BANK", Type: "page", URL: "http://bank/", Context: "default"})
		if got := ownerIn(e, "BANK"); got != api.DefaultSession {
			t.Errorf("a page in the default context belongs to %q", got)
		}
	})
}

// The number of a session's pages is limited, but a person has no limit, and the person's pages in the session do not
// count.
func TestPageLimitOfSharedSession(t *testing.T) {
	withPage(t, func(t *testing.T, e *verb.Verbs, f *muxtest.Browser) {
		e.Tracker.Started = true
		addScope(e, sharing, "C")
		for n := range tenant.MaxPages + 1 {
			opened(t, e, f, sharing, fmt.Sprint("PERSONS", n))
		}
		for n := range tenant.MaxPages {
			opened(t, e, f, agent, fmt.Sprint("AGENTS", n))
		}
		opened(t, e, f, sharing, "LAST")
		for by, id := range map[*api.Caller]string{&sharing: "LAST", &agent: "AGENTS0"} {
			popup := muxtest.Info{ID: "POPUP-" + id, Type: "page", URL: api.BlankURL, Context: "C", Opener: id}
			f.Attach("", popup)
			if got := wasEvicted(t, e, f, popup.ID); got != !by.IsCommandLine() {
				t.Errorf("a popup of %s over the limit is closed: %v", id, got)
			}
		}
		refused(t, "a page over the limit", e.Call(t.Context(), agent, api.CallRequest{Method: "Target.createTarget"}).Err,
			api.CodeLimitExceeded)
	})
}

// No session uses a page of a forbidden origin: none finds it, attaches to it or opens it, and one that goes there is
// closed.
func TestForbiddenOrigins(t *testing.T) {
	const secret = "http://127.0.0.1:9000"
	everybody := []api.Caller{api.CommandLine, {Name: "cli", Session: someClient.SessionKey()}, someClient, plugin("one")}
	withForbidden := func(t *testing.T, test func(t *testing.T, e *verb.Verbs, f *muxtest.Browser)) {
		withPages(t, func(t *testing.T, e *verb.Verbs, f *muxtest.Browser) {
			e.Tracker.Started, e.Owners.Forbidden = true, []string{"http://other", secret}
			test(t, e, f)
		})
	}
	t.Run("found", func(t *testing.T) {
		withForbidden(t, func(t *testing.T, e *verb.Verbs, f *muxtest.Browser) {
			e.Tracker.Started = false // so that nobody's page stays
			f.Attach("", muxtest.Info{ID: "SECRET", Type: "page", URL: secret + "/x"})
			f.Attach("session of SOME", muxtest.Info{ID: "FRAME", Type: "iframe", URL: secret + "/y"})
			synctest.Wait()
			infos := json.RawMessage(`{"targetInfos":[{"targetId":"SECRET"},{"targetId":"FRAME"},
				{"targetId":"its tab","type":"tab","url":"` + secret + `/x"}]}`)
			for _, by := range everybody {
				for _, one := range e.Owners.ListTargets(by, true) {
					if strings.HasPrefix(one.URL, secret) {
						t.Errorf("%s is shown %s", by.Name, one.URL)
					}
				}
				for _, id := range []string{"SECRET", "FRAME", secret} {
					if got := found(e, by, id); !strings.HasPrefix(got, api.CodeNotFound) {
						t.Errorf("%s finds %s by %s", by.Name, got, id)
					}
				}
				for _, method := range []string{"Target.attachToTarget", "Target.activateTarget", "Target.getTargetInfo"} {
					for _, params := range []string{`{"targetId":"SECRET"}`, `{"targetId":"FRAME"}`} {
						q := api.CallRequest{Method: method, Params: json.RawMessage(params)}
						refused(t, by.Name+" "+method+params, e.Call(t.Context(), by, q).Err, api.CodeNotFound)
					}
				}
				if got := string(e.Tenancy.FilterResult(by, nil, "Target.getTargets", infos)); got != `{"targetInfos":[]}` {
					t.Errorf("%s gets %s", by.Name, got)
				}
			}
			if wasEvicted(t, e, f, "SECRET") {
				t.Error("a page that belongs to no session is closed")
			}
		})
	})
	t.Run("opened", func(t *testing.T) {
		withForbidden(t, func(t *testing.T, e *verb.Verbs, f *muxtest.Browser) {
			url := json.RawMessage(`{"url":"` + secret + `/x"}`)
			for _, by := range everybody {
				for _, method := range []string{"Page.navigate", "Target.createTarget", "Network.loadNetworkResource"} {
					target := map[bool]string{true: "SOME"}[by.IsCommandLine() && method != "Target.createTarget"]
					err := e.Call(t.Context(), by, api.CallRequest{Method: method, Target: target, Params: url}).Err
					refused(t, by.Name+" "+method, err, api.CodeDenied, "no session may use")
				}
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				_, err := e.Open(ctx, by, api.OpenRequest{URL: secret + "/x"})
				refused(t, by.Name+" open", err, api.CodeDenied, "no session may use")
				cancel()
			}
			if len(f.Sent) > 0 {
				t.Errorf("the browser receives %s", (<-f.Sent).Method)
			}
		})
	})
	t.Run("shown", func(t *testing.T) {
		withForbidden(t, func(t *testing.T, e *verb.Verbs, f *muxtest.Browser) {
			ended := make(chan *api.Error, 1)
			go func() { ended <- e.Call(t.Context(), someClient, api.CallRequest{Method: "Runtime.evaluate"}).Err }()
			synctest.Wait()
			show(f, muxtest.Info{ID: "SOME", Type: "page", Context: "C-SOME"}, secret+"/x")
			wantResult(t, "a call in a page that goes to a forbidden origin", ended, api.CodeDenied)
			if !wasEvicted(t, e, f, "SOME") {
				t.Error("the page stays")
			}
			f.Attach("", muxtest.Info{ID: "PERSONS", Type: "page", URL: secret + "/x"})
			if !wasEvicted(t, e, f, "PERSONS") {
				t.Error("the person's page stays")
			}
		})
	})
}

// Every call of a client is confined, and no command has parameters that are not an object.
func TestCallsAreCheckedFirst(t *testing.T) {
	for _, c := range []struct {
		by             api.Caller
		method, params string
		code           string
	}{
		{someClient, "Target.exposeDevToolsProtocol", `{"targetId":"SOME"}`, api.CodeDenied},
		{api.CommandLine, "Page.reload", `[]`, api.CodeInvalidArgs},
		{api.CommandLine, "Page.reload", `null`, api.CodeInvalidArgs},
		{someClient, "Page.reload", `"{}"`, api.CodeInvalidArgs},
		{someClient, "Page", ``, api.CodeInvalidArgs},
	} {
		withPages(t, func(t *testing.T, e *verb.Verbs, f *muxtest.Browser) {
			ended := make(chan *api.Error, 1)
			go func() {
				ended <- e.Call(t.Context(), c.by, api.CallRequest{Method: c.method, Params: json.RawMessage(c.params)}).Err
			}()
			wantResult(t, c.by.Name+" "+c.method+" "+c.params, ended, c.code)
			if len(f.Sent) > 0 {
				t.Errorf("the browser receives %s", (<-f.Sent).Method)
			}
		})
	}
}

// A caller's list of targets and contexts has only what is the caller's.
func TestResultsHaveOwnTargets(t *testing.T) {
	const result = `{"targetInfos":[{"targetId":"T"},{"targetId":"ONE"},{"targetId":"SOME"},{"targetId":"OTHER"},
		{"targetId":"untracked","browserContextId":"C-ONE"},{"targetId":"tab"},7]}`
	one := plugin("one")
	withPages(t, func(t *testing.T, e *verb.Verbs, _ *muxtest.Browser) {
		for _, c := range []struct {
			by   api.Caller
			want []string
		}{
			{api.CommandLine, []string{"T", "tab"}}, {someClient, []string{"SOME"}}, {one, []string{"ONE", "untracked"}},
			{plugin("two"), nil},
		} {
			var got struct{ TargetInfos []json.RawMessage }
			raw := e.Tenancy.FilterResult(c.by, nil, "Target.getTargets", json.RawMessage(result))
			if err := json.Unmarshal(raw, &got); err != nil {
				t.Error(err)
			}
			var ids []string
			for _, raw := range got.TargetInfos {
				var info muxtest.Info
				if err := json.Unmarshal(raw, &info); err != nil {
					t.Errorf("%s gets %s", c.by.Name, raw)
				}
				ids = append(ids, info.ID)
			}
			if !slices.Equal(ids, c.want) {
				t.Errorf("%s gets %q, want %q", c.by.Name, ids, c.want)
			}
		}
		unreadable := json.RawMessage(`{"targetInfos":7}`)
		if got := string(e.Tenancy.FilterResult(someClient, nil, "Target.getTargets",
			unreadable)); got != `{"targetInfos":[]}` {
			t.Errorf("a list that cannot be read becomes %s", got)
		}
		contexts := json.RawMessage(`{"browserContextIds":["C-ONE","C-SOME","D"]}`)
		for by, want := range map[*api.Caller]string{
			&one: `"C-ONE"`, &someClient: `"C-SOME"`, &api.CommandLine: `"D"`, &otherClient: "",
		} {
			got := string(e.Tenancy.FilterResult(*by, nil, "Target.getBrowserContexts", contexts))
			if got != `{"browserContextIds":[`+want+`]}` {
				t.Errorf("the list of contexts of %s is %s", by.Name, got)
			}
		}
	})
}

// What the browser reports about a target, also about one that the keeper does not track, and about a download goes to
// its owner.
func TestBrowserEventsGoToTheirOwner(t *testing.T) {
	one := plugin("one")
	withPages(t, func(t *testing.T, e *verb.Verbs, f *muxtest.Browser) {
		e.Events.Journals = event.NewJournals(300, 100_000)
		cached := muxtest.Info{ID: "CACHED", Type: "iframe", URL: "http://a/", Context: "C-ONE"}
		f.Report("", "Target.targetInfoChanged", map[string]any{"targetInfo": cached})
		f.Report("", "Target.targetDestroyed", map[string]any{"targetId": "ONE"})
		f.Report("", "Browser.downloadWillBegin", map[string]any{"frameId": "SOME", "guid": "G"})
		synctest.Wait()
		if e.Events.Downloads.Owners["G"] != someClient.Name {
			t.Errorf("the download belongs to %q", e.Events.Downloads.Owners["G"])
		}
		f.Report("", "Browser.downloadProgress", map[string]any{"guid": "G", "state": "inProgress"})
		f.Report("", "Browser.downloadProgress", map[string]any{"guid": "G", "state": "completed"})
		f.Report("", "Browser.downloadProgress", map[string]any{"guid": "unknown", "state": "completed"})
		synctest.Wait()
		for by, want := range map[*api.Caller]int{&one: 2, &someClient: 2, &otherClient: 0, &api.CommandLine: 1} {
			stored, err := e.Owners.StoredEvents(*by, api.EventsRequest{})
			if err != nil || len(stored.Events) != want {
				t.Errorf("%s receives %s, %v; want %d events", by.Name, stored.Events, err, want)
			}
		}
		if len(e.Events.Downloads.Owners) > 0 {
			t.Errorf("the ended downloads are known as %v", e.Events.Downloads.Owners)
		}
	})
}

// What a domain of the browser itself reports goes to the session that used the domain last.
func TestEventsOfBrowserDomains(t *testing.T) {
	withPage(t, func(t *testing.T, e *verb.Verbs, f *muxtest.Browser) {
		e.Tracker.SparePage = e.Tracker.ByID["T"]
		addScope(e, someClient, "C")
		ended := make(chan *api.Error, 1)
		go func() { ended <- e.Call(t.Context(), someClient, api.CallRequest{Method: "Tethering.bind"}).Err }()
		f.Answer(<-f.Sent, `{}`)
		wantResult(t, "Tethering.bind", ended, "")
		f.Report("", "Tethering.accepted", map[string]any{"port": 1})
		f.Report("", "SystemInfo.unknown", map[string]any{})
		synctest.Wait()
		for by, want := range map[*api.Caller]int{&someClient: 1, &otherClient: 0} {
			stored, err := e.Owners.StoredEvents(*by, api.EventsRequest{Patterns: []string{"Tethering.*", "SystemInfo.*"}})
			if err != nil || len(stored.Events) != want {
				t.Errorf("%s receives %s, %v", by.Name, stored.Events, err)
			}
		}
	})
}

// A page that a session opens is in its context.
func TestOpenInContextOfSession(t *testing.T) {
	withPages(t, func(t *testing.T, e *verb.Verbs, f *muxtest.Browser) {
		e.Tracker.SparePage = e.Tracker.ByID["T"]
		for by, want := range map[*api.Caller]string{
			&someClient: "C-SOME", {Name: "cli", Session: otherClient.SessionKey()}: "C-OTHER",
		} {
			go e.Open(t.Context(), *by, api.OpenRequest{URL: "http://a/"})
			if q := <-f.Sent; q.Method != "Target.createTarget" || !strings.Contains(string(q.Params), `"`+want+`"`) {
				t.Errorf("for a page of %s the browser receives %s %s", by.SessionKey(), q.Method, q.Params)
			}
		}
	})
}

// A person gives a page of the user's own browser to a session by activating it there. The page of another session does
// not become the current one.
func TestActivate(t *testing.T) {
	guest := api.Caller{Name: "cli", Session: someClient.SessionKey()}
	for _, c := range []struct {
		by             api.Caller
		external       bool
		target         string
		owner, current string // of the caller's session
	}{
		{guest, true, "T", guest.Session, "T"},
		{api.CommandLine, true, "T", api.DefaultSession, "T"},
		{api.CommandLine, false, "T", "", "T"},
		{api.CommandLine, false, "SOME", someClient.SessionKey(), "T"},
		{guest, false, "OTHER", otherClient.SessionKey(), "SOME"},
		{guest, false, "SOME", someClient.SessionKey(), "SOME"},
	} {
		withPages(t, func(t *testing.T, e *verb.Verbs, f *muxtest.Browser) {
			e.Tracker.External = c.external
			f.Attach("", muxtest.Info{ID: "NEWEST", Type: "page", URL: "http://a/", Context: "C-SOME"})
			synctest.Wait()
			e.Owners.SetCurrent(guest, e.Tracker.ByID["SOME"])
			ended := make(chan *api.Error, 1)
			go func() {
				_, err := e.Activate(t.Context(), c.by, c.target)
				ended <- err
			}()
			f.Answer(<-f.Sent, `{}`)
			f.Answer(<-f.Sent, `{"targetInfo":{"targetId":"x","type":"page"}}`)
			wantResult(t, "activating "+c.target, ended, "")
			if got := ownerIn(e, c.target); got != c.owner {
				t.Errorf("after %s of %q activated %s, it belongs to %q", c.by.Name, c.by.SessionKey(), c.target, got)
			}
			if got := found(e, c.by, ""); got != c.current {
				t.Errorf("after %s of %q activated %s, the current target is %s", c.by.Name, c.by.SessionKey(), c.target, got)
			}
		})
	}
}

// A call that waits ends with its page, and a dialog that it opens is dismissed if it says so.
func TestCallsEndWithTheirPage(t *testing.T) {
	withPage(t, func(t *testing.T, e *verb.Verbs, f *muxtest.Browser) {
		_, ended := startCommand(t, e, f, "Runtime.evaluate")
		f.Report("", "Target.targetDestroyed", map[string]any{"targetId": "T"})
		wantResult(t, "a call in a page that is closed", ended, api.CodeNotFound)
	})
	for how, accept := range map[string]string{api.DialogDismiss: `"accept":false`, api.DialogAccept: `"accept":true`} {
		withPage(t, func(t *testing.T, e *verb.Verbs, f *muxtest.Browser) {
			go e.Call(t.Context(), api.CommandLine, api.CallRequest{Method: "Runtime.evaluate", OnDialog: how})
			<-f.Sent
			f.Report("S", "Page.javascriptDialogOpening", map[string]any{"type": "confirm"})
			if q := <-f.Sent; q.Method != "Page.handleJavaScriptDialog" || !strings.Contains(string(q.Params), accept) {
				t.Errorf("%s: the browser receives %s %s", how, q.Method, q.Params)
			}
		})
	}
}

// withScopes runs a test against an engine whose browser does what it is sent: it creates contexts C1, C2 and so on,
// with pages P1, P2 and so on, and closes them. received returns the commands that it has received since the
// previous call, each with its parameters.
func withScopes(t *testing.T, test func(e *verb.Verbs, f *muxtest.Browser, received func() []string)) {
	cfg := Config{}
	cfg.setDefaults()
	f := muxtest.New()
	e := verb.New(f, cfg.rooms(false))
	e.Tenancy.Egress = testGuard{}
	go e.Mux.Read()
	var mu sync.Mutex
	var log []string
	over := make(chan struct{})
	go func() {
		defer close(over)
		contexts, pages, contextOf := 0, 0, map[string]string{}
		for {
			select {
			case q := <-f.Sent:
				mu.Lock()
				log = append(log, q.Method+" "+string(q.Params))
				mu.Unlock()
				var p muxtest.Info
				json.Unmarshal(q.Params, &p)
				result := `{}`
				switch q.Method {
				case "Target.createBrowserContext":
					contexts++
					result = fmt.Sprintf(`{"browserContextId":"C%d"}`, contexts)
				case "Target.createTarget":
					pages++
					p.ID, p.Type = fmt.Sprintf("P%d", pages), "page"
					contextOf[p.ID] = p.Context
					f.Attach("", p)
					result = `{"targetId":"` + p.ID + `"}`
				case "Target.closeTarget", "Target.disposeBrowserContext":
					for id, context := range contextOf {
						if id == p.ID || p.ID == "" && context == p.Context {
							delete(contextOf, id)
							f.Report("", "Target.targetDestroyed", map[string]any{"targetId": id})
						}
					}
				}
				f.Answer(q, result)
			case <-e.Mux.Done:
				return
			}
		}
	}()
	defer func() {
		e.Tenancy.CloseProxies()
		f.Close()
		<-over
	}()
	test(e, f, func() []string {
		mu.Lock()
		defer mu.Unlock()
		since := log
		log = nil
		return since
	})
}

// enter enters a plugin's scope for a call that ends at once.
func enter(t *testing.T, e *verb.Verbs, by api.Caller) *tenant.Scope {
	t.Helper()
	s, release, err := e.Tenancy.Enter(testContext(t), by)
	if err != nil {
		t.Fatal(err)
	}
	release()
	return s
}

// The grants and folders of a plugin's newest call replace those of the earlier ones.
func TestScopeHasRightsOfNewestCall(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	address := strings.TrimPrefix(server.URL, "http://")
	withScopes(t, func(e *verb.Verbs, _ *muxtest.Browser, received func() []string) {
		by := plugin("one", server.URL)
		by.Folders = []string{"/a"}
		s := enter(t, e, by)
		received()
		if enter(t, e, by) != s || len(received()) > 0 {
			t.Error("a call with the same rights changes the scope")
		}
		conn, err := s.Proxy.Dial(t.Context(), "GET", server.URL, address)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		by.Folders = nil
		if enter(t, e, by) != s {
			t.Error("a call with other folders gets another scope")
		}
		if got := received(); len(got) != 1 || !strings.Contains(got[0], `"behavior":"deny"`) {
			t.Errorf("without the folder of the earlier call the browser receives %q", got)
		}
		by.HTTP = nil
		if enter(t, e, by) != s {
			t.Error("a call with other grants gets another scope")
		}
		if err := conn.SetDeadline(time.Now()); !errors.Is(err, net.ErrClosed) {
			t.Errorf("a connection outlives the grant that allowed it: %v", err)
		}
		if conn, err := s.Proxy.Dial(t.Context(), "GET", server.URL, address); err == nil {
			conn.Close()
			t.Error("the grant of an earlier call holds")
		}
	})
}

// Another version of a plugin gets another scope. It does not see the pages of the old one, which are closing.
func TestScopeOfOtherVersion(t *testing.T) {
	withScopes(t, func(e *verb.Verbs, f *muxtest.Browser, received func() []string) {
		by := plugin("one")
		by.Digest = "sha256:old"
		old := enter(t, e, by)
		f.Attach("", muxtest.Info{ID: "OLD", Type: "page", URL: "http://a/", Context: string(old.Context)})
		waitFor(t, "the page", func() bool { return slices.Contains(listed(e, by), "OLD") })
		by.Digest = "sha256:new"
		received()
		s := enter(t, e, by)
		if s == old || s.Context == old.Context {
			t.Error("another version works in the old version's context")
		}
		if got := received(); len(got) == 0 || got[0] != `Target.disposeBrowserContext {"browserContextId":"C1"}` {
			t.Errorf("the browser receives %q", got)
		}
		if got := listed(e, by); len(got) > 0 {
			t.Errorf("another version sees %q", got)
		}
	})
}

// The number of contexts is limited. One that is idle is closed, but none with a call under way.
func TestScopesAreLimited(t *testing.T) {
	withScopes(t, func(e *verb.Verbs, _ *muxtest.Browser, received func() []string) {
		busy, release, err := e.Tenancy.Enter(testContext(t), plugin("busy"))
		if err != nil {
			t.Fatal(err)
		}
		idle := enter(t, e, plugin("idle"))
		for n := len(e.Tenancy.Scopes); n < tenant.MaxScopes; n++ {
			enter(t, e, plugin(fmt.Sprint(n)))
		}
		received()
		_, _, err = e.Tenancy.Enter(testContext(t), plugin("another"))
		refused(t, "a context over the limit", err, api.CodeLimitExceeded, fmt.Sprint(tenant.MaxScopes))
		if got := received(); len(got) > 0 {
			t.Errorf("the browser receives %q", got)
		}
		remaining := func(limit time.Duration) int {
			e.Tenancy.DisposeIdle(limit)
			e.Mux.Lock()
			defer e.Mux.Unlock()
			return len(e.Tenancy.Scopes)
		}
		if left := remaining(-1); left != tenant.MaxScopes {
			t.Errorf("without a limit %d contexts are left", left)
		}
		left := remaining(time.Nanosecond)
		if left != 1 || busy.Proxy.Ctx.Err() != nil {
			t.Errorf("%d contexts are left", left)
		}
		<-idle.Proxy.Ctx.Done()
		release()
	})
}

// The proxy dials for each request, so that each is checked against the grants of its time and recorded as a use.
func TestProxyDialsForEachRequest(t *testing.T) {
	var kept atomic.Bool
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if !r.Close {
			kept.Store(true)
		}
	}))
	defer server.Close()
	p := testProxy(t, server.URL)
	for _, method := range []string{"GET", "POST"} {
		request := method + " " + server.URL + "/ HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
		for range 2 {
			if answer := responseTo(t, p, request); !strings.HasPrefix(answer, "HTTP/1.1 200") {
				t.Errorf("the response is %q", answer)
			}
			if got := p.TakeUsedRights(); !slices.Equal(got, []string{"http:" + method + ":" + server.URL}) {
				t.Errorf("%s is recorded as %q", method, got)
			}
		}
	}
	if kept.Load() {
		t.Error("the proxy asks the server to keep its connection")
	}
}

// shortListener accepts a number of connections and then ends.
type shortListener struct {
	net.Listener
	left int
}

func (l *shortListener) Accept() (net.Conn, error) {
	if l.left == 0 {
		return nil, net.ErrClosed
	}
	l.left--
	return l.Listener.Accept()
}

// A connection over the limit is closed, and one that ends makes way for the next.
func TestListenerHasSlots(t *testing.T) {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	var dialled []net.Conn
	for range 3 {
		conn, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		dialled = append(dialled, conn)
	}
	short := &shortListener{l, 2}
	g := &tenant.BrowserListener{Listener: short, ChromePID: syscall.Getpgrp(), Slots: make(chan struct{}, 1)}
	first, err := g.Accept()
	if err != nil {
		t.Fatal(err)
	}
	if second, err := g.Accept(); err == nil {
		t.Fatalf("a connection over the limit is accepted: %v", second)
	}
	dialled[1].SetReadDeadline(time.Now().Add(time.Second))
	if _, err := dialled[1].Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("a connection over the limit is not closed: %v", err)
	}
	first.Close()
	first.Close() // the second time it has no slot
	short.left = 1
	third, err := g.Accept()
	if err != nil {
		t.Fatalf("the slot of a closed connection is not free: %v", err)
	}
	third.Close()
	if len(g.Slots) > 0 {
		t.Errorf("%d slots are in use", len(g.Slots))
	}
}

// A frame is found by those who can use its page.
func TestFrameOwners(t *testing.T) {
	withPages(t, func(t *testing.T, e *verb.Verbs, _ *muxtest.Browser) {
		e.Mux.Lock()
		e.Tracker.Frames.Set(e.Tracker.ByID["SOME"], "FRAME", "SOME", "http://SOME/frame")
		e.Mux.Unlock()
		for _, by := range []api.Caller{otherClient, plugin("one"), {Name: "mcp:third", Session: "user/third"}} {
			if page, _, err := e.Owners.Locate(by, "FRAME"); err == nil {
				t.Errorf("%+v finds the frame in %s", by, page.ID)
			}
		}
		if page, frame, err := e.Owners.Locate(someClient, "FRAME"); err != nil || page.ID != "SOME" || frame != "FRAME" {
			t.Errorf("its owner: %v, %s, %v", page, frame, err)
		}
	})
}
