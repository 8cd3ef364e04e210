package tenant

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/parley-tools/parley/cdp/internal/keeper/api"
	"github.com/parley-tools/parley/cdp/internal/keeper/event"
	"github.com/parley-tools/parley/cdp/internal/keeper/mux/muxtest"
)

// These tests check what each caller may use and see, against a fake browser: a test of the engine alone takes a
// millisecond.

// withPages is withPage with one more page of each of three sessions: ONE is plugin one's, SOME and OTHER are those of
// MCP clients. Each is in the context of its session, C-ONE to C-OTHER. The page T has no owner.
func withPages(t *testing.T, test func(t *testing.T, e *rooms, f *muxtest.Browser)) {
	withPage(t, func(t *testing.T, e *rooms, f *muxtest.Browser) {
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
func found(e *rooms, by api.Caller, selector string) string {
	target, err := e.Owners.Resolve(by, selector)
	if err != nil {
		return err.Code + ": " + err.Message
	}
	return target.ID
}

// listed returns the ids of the targets that a caller may use.
func listed(e *rooms, by api.Caller) (ids []string) {
	for _, one := range e.Owners.ListTargets(by, false) {
		ids = append(ids, one.ID)
	}
	return ids
}

// ownerIn returns the owner of a target.
func ownerIn(e *rooms, id string) string {
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
	for _, w := range words {
		if err.Code != code || !strings.Contains(err.Message, w) {
			t.Errorf("%s fails with %s (%s), want %s with %q", what, err.Code, err.Message, code, w)
		}
	}
	if err.Code != code {
		t.Errorf("%s fails with %s (%s), want %s", what, err.Code, err.Message, code)
	}
}

// Plugins work only in a browser that Parley started, and behind a guard.
func TestBrowsersForPlugins(t *testing.T) {
	one := plugin("one")
	withPage(t, func(t *testing.T, e *rooms, _ *muxtest.Browser) {
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

// A selector finds only targets that the caller may use, as if there were no others. A person can name any by its id.
func TestSelectorsFindOwnTargets(t *testing.T) {
	one, guest := plugin("one"), api.Caller{Name: "cli", Session: someClient.SessionKey()}
	withPages(t, func(t *testing.T, e *rooms, f *muxtest.Browser) {
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
	withPages(t, func(t *testing.T, e *rooms, f *muxtest.Browser) {
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
		withPage(t, func(t *testing.T, e *rooms, f *muxtest.Browser) {
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
					e.Tracker.ByID[id].Origin != originOf(callers[i]) {
					t.Errorf("%s belongs to %q, opened by %+v", id, owner, e.Tracker.ByID[id].Origin)
				}
			}
		})
	}
}

// The person's first call takes over a page that has no owner, with its events and nothing else.
func TestTakingOverPages(t *testing.T) {
	events := func(e *rooms, by api.Caller) (all []string) {
		stored, err := e.Owners.StoredEvents(by, api.EventsRequest{Patterns: []string{"Page.*"}})
		if err != nil {
			return []string{err.Error()}
		}
		for _, raw := range stored.Events {
			var line struct{ Target string }
			json.Unmarshal(raw, &line)
			all = append(all, line.Target)
		}
		return all
	}
	call := func(t *testing.T, e *rooms, by api.Caller, target string) {
		go e.Call(t.Context(), by, api.CallRequest{Method: "Runtime.evaluate", Target: target})
		synctest.Wait()
	}
	guest := api.Caller{Name: "cli", Session: someClient.SessionKey()}
	withPages(t, func(t *testing.T, e *rooms, f *muxtest.Browser) {
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
	withPage(t, func(t *testing.T, e *rooms, _ *muxtest.Browser) {
		e.Tracker.External = true
		call(t, e, api.CommandLine, "T")
		if got := ownerIn(e, "T"); got != "" {
			t.Errorf("a page of the person's own browser belongs to %q", got)
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
		withPage(t, func(t *testing.T, e *rooms, f *muxtest.Browser) {
			e.Owners.contextOwners["C"] = plugin("one").Name
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
		withPages(t, func(t *testing.T, e *rooms, f *muxtest.Browser) {
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
	withPages(t, func(t *testing.T, e *rooms, f *muxtest.Browser) {
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
			err := e.Tenancy.Confine(by, e.Tenancy.scopes[by.SessionKey()],
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
func wasEvicted(t *testing.T, e *rooms, f *muxtest.Browser, id string) bool {
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
func opened(t *testing.T, e *rooms, f *muxtest.Browser, by api.Caller, id string) muxtest.Info {
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
	withPage(t, func(t *testing.T, e *rooms, f *muxtest.Browser) {
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
				stored := must(e.Owners.StoredEvents(*by, api.EventsRequest{URL: ""}))
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
	withPage(t, func(t *testing.T, e *rooms, f *muxtest.Browser) {
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
				if owner := ownerIn(e, kind+id); owner != "user/work" || e.Tracker.ByID[kind+id].Origin != originOf(*by) {
					t.Errorf("%s%s belongs to %q, opened by %+v", kind, id, owner, e.Tracker.ByID[kind+id].Origin)
				}
				if e.Tracker.ByID[kind+id].Opener == "" {
					t.Errorf("%s%s has no opener", kind, id)
				}
			}
		}
	})
}

// A page keeps its origin when it changes while another caller of the session opens one.
func TestOriginStays(t *testing.T) {
	stateless := api.Caller{Name: "mcp:some", Session: "user/work"}
	withPage(t, func(t *testing.T, e *rooms, f *muxtest.Browser) {
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
			if ownerIn(e, id); e.Tracker.ByID[id].Origin != originOf(stateless) {
				t.Errorf("%s was opened by %+v", id, e.Tracker.ByID[id].Origin)
			}
		}
	})
}

// A page that another session has requested is not taken for a new one elsewhere with the same URL.
func TestRequestedPageIsInTheSameContext(t *testing.T) {
	withPages(t, func(t *testing.T, e *rooms, f *muxtest.Browser) {
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
	withPage(t, func(t *testing.T, e *rooms, f *muxtest.Browser) {
		e.Tracker.Started = true
		addScope(e, sharing, "C")
		for n := range maxPages + 1 {
			opened(t, e, f, sharing, fmt.Sprint("PERSONS", n))
		}
		for n := range maxPages {
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

// A caller's list of targets and contexts has only what is the caller's.
func TestResultsHaveOwnTargets(t *testing.T) {
	const result = `{"targetInfos":[{"targetId":"T"},{"targetId":"ONE"},{"targetId":"SOME"},{"targetId":"OTHER"},
		{"targetId":"untracked","browserContextId":"C-ONE"},{"targetId":"tab"},7]}`
	one := plugin("one")
	withPages(t, func(t *testing.T, e *rooms, _ *muxtest.Browser) {
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
	withPages(t, func(t *testing.T, e *rooms, f *muxtest.Browser) {
		e.Events.Journals = event.New(e.Tracker, 300, 100_000).Journals
		cached := muxtest.Info{ID: "CACHED", Type: "iframe", URL: "http://a/", Context: "C-ONE"}
		f.Report("", "Target.targetInfoChanged", map[string]any{"targetInfo": cached})
		f.Report("", "Target.targetDestroyed", map[string]any{"targetId": "ONE"})
		f.Report("", "Browser.downloadWillBegin", map[string]any{"frameId": "SOME", "guid": "G"})
		f.Report("", "Browser.downloadProgress", map[string]any{"guid": "G", "state": "inProgress"})
		for _, id := range []string{"G", "unknown", "G"} { // one that has ended is unknown
			f.Report("", "Browser.downloadProgress", map[string]any{"guid": id, "state": "completed"})
		}
		synctest.Wait()
		for by, want := range map[*api.Caller]int{&one: 2, &someClient: 2, &otherClient: 0, &api.CommandLine: 2} {
			stored, err := e.Owners.StoredEvents(*by, api.EventsRequest{})
			if err != nil || len(stored.Events) != want {
				t.Errorf("%s receives %s, %v; want %d events", by.Name, stored.Events, err, want)
			}
		}
	})
}

// What a domain of the browser itself reports goes to the session that used the domain last.
func TestEventsOfBrowserDomains(t *testing.T) {
	withPage(t, func(t *testing.T, e *rooms, f *muxtest.Browser) {
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

// A frame is found by those who can use its page.
func TestFrameOwners(t *testing.T) {
	withPages(t, func(t *testing.T, e *rooms, _ *muxtest.Browser) {
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
