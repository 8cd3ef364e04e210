package tenant

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-tools/parley/cdp/internal/keeper/api"
	"github.com/parley-tools/parley/cdp/internal/keeper/mux"
	"github.com/parley-tools/parley/cdp/internal/keeper/mux/muxtest"
	"github.com/parley-tools/parley/cdp/internal/keeper/target"
)

// withScopes runs a test against rooms whose browser does what it is sent, see obey.
func withScopes(t *testing.T, test func(e *rooms, f *muxtest.Browser, received func() []string)) {
	f := muxtest.New()
	e := newRooms(f)
	e.Tenancy.Egress = testGuard{}
	received, wait := obey(f, e.Mux.Done)
	defer func() {
		e.Tenancy.CloseProxies()
		f.Close()
		wait()
	}()
	test(e, f, received)
}

// enter enters a plugin's scope for a call that ends at once.
func enter(t *testing.T, e *rooms, by api.Caller) *Scope {
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
	withScopes(t, func(e *rooms, _ *muxtest.Browser, received func() []string) {
		by := plugin("one", server.URL)
		by.Folders = []string{"/a"}
		s := enter(t, e, by)
		received()
		if enter(t, e, by) != s || len(received()) > 0 {
			t.Error("a call with the same rights changes the scope")
		}
		conn, err := s.Proxy.dial(t.Context(), "GET", server.URL, address)
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
		if conn, err := s.Proxy.dial(t.Context(), "GET", server.URL, address); err == nil {
			conn.Close()
			t.Error("the grant of an earlier call holds")
		}
	})
}

// Another version of a plugin gets another scope. It does not see the pages of the old one, which are closing.
func TestScopeOfOtherVersion(t *testing.T) {
	withScopes(t, func(e *rooms, f *muxtest.Browser, received func() []string) {
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
	withScopes(t, func(e *rooms, _ *muxtest.Browser, received func() []string) {
		busy, release, err := e.Tenancy.Enter(testContext(t), plugin("busy"))
		if err != nil {
			t.Fatal(err)
		}
		idle := enter(t, e, plugin("idle"))
		for n := len(e.Tenancy.scopes); n < maxScopes; n++ {
			enter(t, e, plugin(fmt.Sprint(n)))
		}
		received()
		_, _, err = e.Tenancy.Enter(testContext(t), plugin("another"))
		refused(t, "a context over the limit", err, api.CodeLimitExceeded, fmt.Sprint(maxScopes))
		if got := received(); len(got) > 0 {
			t.Errorf("the browser receives %q", got)
		}
		remaining := func(limit time.Duration) int {
			e.Tenancy.DisposeIdle(limit)
			e.Mux.Lock()
			defer e.Mux.Unlock()
			return len(e.Tenancy.scopes)
		}
		if left := remaining(-1); left != maxScopes {
			t.Errorf("without a limit %d contexts are left", left)
		}
		left := remaining(time.Nanosecond)
		if left != 1 || busy.Proxy.ctx.Err() != nil {
			t.Errorf("%d contexts are left", left)
		}
		<-idle.Proxy.ctx.Done()
		release()
	})
}

// A new scope reaches the network only through its proxy, and downloads in it are denied.
func TestNewScopeIsClosed(t *testing.T) {
	f := muxtest.New()
	e := newRooms(f)
	e.Tenancy.Egress = testGuard{}
	defer func() {
		f.Close()
		<-e.Mux.Done
	}()
	created := make(chan *Scope)
	go func() {
		s, err := e.Tenancy.newScope(t.Context(), api.Caller{Name: api.PluginPrefix + "one"})
		if err != nil {
			t.Error(err)
		}
		created <- s
	}()
	var params struct{ ProxyServer, ProxyBypassList, Behavior, BrowserContextID string }
	q := <-f.Sent
	json.Unmarshal(q.Params, &params)
	if q.Method != "Target.createBrowserContext" || params.ProxyServer == "" || params.ProxyBypassList != "<-loopback>" {
		t.Errorf("the browser receives %s %s", q.Method, q.Params)
	}
	server := params.ProxyServer
	f.Answer(q, `{"browserContextId":"C"}`)
	select {
	case q = <-f.Sent:
	case <-created:
		t.Fatal("the scope is created before its downloads are denied")
	}
	json.Unmarshal(q.Params, &params)
	if q.Method != "Browser.setDownloadBehavior" || params.Behavior != "deny" || params.BrowserContextID != "C" {
		t.Errorf("the browser receives %s %s", q.Method, q.Params)
	}
	f.Answer(q, `{}`)
	s := <-created
	defer s.Proxy.close()
	if server != "http://"+s.Proxy.address() {
		t.Errorf("the context's proxy is %s, not %s", server, s.Proxy.address())
	}
}

// bubble is withScopes in a synctest bubble, for sessions that are not a plugin's: those have a proxy.
func bubble(t *testing.T, test func(t *testing.T, e *rooms, f *muxtest.Browser, received func() []string)) {
	synctest.Test(t, func(t *testing.T) {
		withScopes(t, func(e *rooms, f *muxtest.Browser, received func() []string) {
			e.Tracker.Started = true
			test(t, e, f, received)
		})
	})
}

// created returns the id that a caller's command returns for what it has created.
func created(t *testing.T, e *rooms, by api.Caller, method, params string) string {
	t.Helper()
	r := e.Call(t.Context(), by, api.CallRequest{Method: method, Params: json.RawMessage(params)})
	if r.Err != nil {
		t.Fatalf("%s of %s: %v", method, by.SessionKey(), r.Err)
	}
	var made struct{ TargetID, BrowserContextID string }
	json.Unmarshal(r.Result, &made)
	return made.TargetID + made.BrowserContextID
}

// sessionsOf returns the sessions that have anything in the browser.
func sessionsOf(e *rooms) (names []string) {
	synctest.Wait()
	e.Mux.Lock()
	defer e.Mux.Unlock()
	for _, one := range e.Tenancy.OpenSessions() {
		names = append(names, one.Session)
	}
	return names
}

// Each session has one context, which its callers share.
func TestScopeOfEachSession(t *testing.T) {
	bubble(t, func(t *testing.T, e *rooms, f *muxtest.Browser, received func() []string) {
		shared := enter(t, e, api.Caller{Name: "cli", Session: "user/work"})
		if enter(t, e, api.Caller{Name: "mcp:some", Session: "user/work"}) != shared {
			t.Error("two callers of a session have a context each")
		}
		for _, session := range []string{"", "user/other", "token:1/work"} {
			if other := enter(t, e, api.Caller{Name: "mcp:some", Session: session}); other.Context == shared.Context {
				t.Errorf("session %q has the context of another", session)
			}
		}
		for _, one := range received() {
			if strings.Contains(one, "proxyServer") {
				t.Errorf("the browser receives %s", one)
			}
		}
		if err := e.Call(t.Context(), api.CommandLine, api.CallRequest{Method: "Target.createTarget"}).Err; err != nil {
			t.Fatal(err)
		}
		if got := received(); len(got) == 0 || got[0] != "Target.createTarget " {
			t.Errorf("for the person without a session the browser receives %q", got)
		}
	})
}

// The context of a client without a session ends when that was not used for a while, but no other one does.
func TestAnonymousScopeEnds(t *testing.T) {
	bubble(t, func(t *testing.T, e *rooms, f *muxtest.Browser, received func() []string) {
		anonymous := api.Caller{Name: "mcp:some", Session: "token:1/", Anonymous: true}
		enter(t, e, api.Caller{Name: "mcp:some", Session: "user/work"})
		enter(t, e, anonymous)
		time.Sleep(anonymousTTL - time.Second)
		enter(t, e, anonymous)
		_, release, err := e.Tenancy.Enter(t.Context(),
			api.Caller{Name: "mcp:some", Session: "token:2/", Anonymous: true})
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range [][]string{{"token:1/", "token:2/", "user/work"}, {"token:2/", "user/work"}} {
			time.Sleep(anonymousTTL - time.Second)
			e.Tenancy.DisposeIdle(time.Minute)
			if got := sessionsOf(e); !slices.Equal(got, want) {
				t.Errorf("these sessions are open: %q, want %q", got, want)
			}
		}
		release()
		time.Sleep(anonymousTTL)
		e.Tenancy.DisposeIdle(-1)
		if got := sessionsOf(e); !slices.Equal(got, []string{"user/work"}) {
			t.Errorf("these sessions are open: %q", got)
		}
	})
}

// A session ends with each of those on whose behalf a plugin has it, also if one of them has nothing in the browser.
func TestSessionsWithinOthers(t *testing.T) {
	withPage(t, func(t *testing.T, e *rooms, _ *muxtest.Browser) {
		e.Tracker.SparePage = e.Tracker.ByID["T"]
		for session, within := range map[string][]string{
			"user/work": nil, "plugin:one/a": {"user/work"}, "plugin:two/b": {"plugin:one/a", "user/work"},
			"plugin:one": {api.DefaultSession}, "plugin:x": {"plugin:idle", "user/work"},
		} {
			addScope(e, api.Caller{Name: "mcp:some", Session: session, Within: within}, "C-"+session)
		}
		for _, c := range []struct {
			session, other string
			want           bool
		}{
			{"user/work", "user/work", true}, {"plugin:one/a", "user/work", true}, {"plugin:two/b", "user/work", true},
			{"plugin:two/b", "plugin:one/a", true}, {"plugin:one", api.DefaultSession, true},
			{"user/work", "plugin:one/a", false}, {"plugin:one", "user/work", false}, {"plugin:one/a", api.DefaultSession,
				false},
			{"user/gone", "user/gone", true}, {"user/gone", "user/work", false}, {api.DefaultSession, api.DefaultSession, true},
			{"plugin:x", "plugin:idle", true}, {"plugin:x", "user/work", true}, {"plugin:x", "", false},
		} {
			if got := e.Tenancy.endsWith(c.session, c.other); got != c.want {
				t.Errorf("%q ends with %q: %v", c.session, c.other, got)
			}
		}
		if e.Tenancy.isAlone("user/work") || e.Tenancy.isAlone(api.DefaultSession) {
			t.Error("a session is alone beside another one")
		}
		delete(e.Tenancy.scopes, "plugin:one")
		if !e.Tenancy.isAlone("user/work") || e.Tenancy.isAlone("plugin:one/a") {
			t.Error("a session is not alone beside its plugins, or a plugin is beside the session that it works for")
		}
		e.Owners.TakeOver(api.CommandLine, e.Tracker.ByID["T"])
		if e.Tenancy.isAlone("user/work") {
			t.Error("a session is alone beside the person's page")
		}
	})
}

func TestOpenSessions(t *testing.T) {
	withPages(t, func(t *testing.T, e *rooms, f *muxtest.Browser) {
		addScope(e, api.Caller{Name: "cli", Session: "user/empty"}, "C-EMPTY")
		e.Owners.createdContexts["C-CREATED"] = api.DefaultSession
		e.Tenancy.defaultUsed, e.Tenancy.scopes["user/empty"].lastUsed = time.UnixMilli(9), time.UnixMilli(7)
		f.Attach("", muxtest.Info{ID: "SECOND", Type: "page", URL: "http://a/", Context: "C-SOME"})
		f.Attach("session of SOME", muxtest.Info{ID: "FRAME", Type: "iframe", URL: "http://a/"})
		f.Attach("", muxtest.Info{ID: "EVICTED", Type: "page", URL: "file:///x", Context: "C-OTHER"})
		f.Attach("", muxtest.Info{ID: "REPLACED", Type: "page", URL: "http://a/", Context: "C-OLD"})
		synctest.Wait()
		e.Owners.SetCurrent(someClient, e.Tracker.ByID["SOME"])
		e.Mux.Lock()
		defer e.Mux.Unlock()
		e.Tracker.ByID["REPLACED"].Owner = api.PluginPrefix
		want := []api.SessionInfo{
			{Session: api.DefaultSession, Used: 9}, {Session: "mcp:other", Pages: 1},
			{Session: "mcp:some", Pages: 2, Current: "http://SOME/"}, {Session: "plugin:one", Pages: 1},
			{Session: "user/empty", Used: 7},
		}
		if got := e.Tenancy.OpenSessions(); !reflect.DeepEqual(got, want) {
			t.Errorf("these sessions are open: %+v", got)
		}
	})
}

// Closing a session closes what it has opened, with what plugins have opened on its behalf and what it has in contexts
// that it has created, and nothing else.
func TestCloseSession(t *testing.T) {
	work := api.Caller{Name: "mcp:some", Session: "user/work"}
	helper := api.Caller{Name: "mcp:helper", Session: "h", Within: []string{"user/work"}}
	closed := func(targets, contexts string) api.Closed {
		return api.Closed{Targets: strings.Fields(targets), Contexts: strings.Fields(contexts)}
	}
	create := func(t *testing.T, e *rooms) {
		for _, by := range []api.Caller{work, helper, otherClient,
			api.CommandLine} { // P1 in C1, P2 in C2, P3 in C3, P4 in no other
			created(t, e, by, "Target.createTarget", `{"url":"http://a/"}`)
		}
		own := created(t, e, work, "Target.createBrowserContext", `{}`) // C4
		created(t, e, work, "Target.createTarget", `{"url":"http://a/","browserContextId":"`+own+`"}`)
		created(t, e, api.CommandLine, "Target.createBrowserContext", `{}`)                                  // C5
		created(t, e, api.CommandLine, "Target.createTarget", `{"url":"file:///a","browserContextId":"C5"}`) // P6
		e.Mux.Lock()
		e.Tracker.SparePage = &target.Target{Address: mux.Address{ID: "SPARE"}, Kind: "page"}
		e.Tracker.All = append(e.Tracker.All, e.Tracker.SparePage)
		e.Mux.Unlock()
	}
	for session, c := range map[string]struct {
		closed api.Closed
		left   []string
	}{
		"user/work":        {closed("P1 P2 P5", "C1 C2 C4"), []string{api.DefaultSession, "mcp:other"}},
		"h":                {closed("P2", "C2"), []string{api.DefaultSession, "mcp:other", "user/work"}},
		api.DefaultSession: {closed("P4 P6", "C5"), []string{"h", "mcp:other", "user/work"}},
		"user/none":        {closed("", ""), []string{api.DefaultSession, "h", "mcp:other", "user/work"}},
	} {
		bubble(t, func(t *testing.T, e *rooms, f *muxtest.Browser, received func() []string) {
			create(t, e)
			got, err := e.Tenancy.CloseSession(t.Context(), session)
			if err != nil || !reflect.DeepEqual(got, c.closed) {
				t.Errorf("closing %s closes %+v, %v; want %+v", session, got, err, c.closed)
			}
			if left := sessionsOf(e); !slices.Equal(left, c.left) {
				t.Errorf("after %s was closed these are open: %q, want %q", session, left, c.left)
			}
			e.Mux.Lock()
			for _, id := range c.closed.Targets {
				if e.Tracker.ByID[id] != nil {
					t.Errorf("after %s was closed %s is open", session, id)
				}
			}
			e.Mux.Unlock()
			if again, err := e.Tenancy.CloseSession(t.Context(), session); err != nil ||
				len(again.Targets)+len(again.Contexts) > 0 {
				t.Errorf("closing %s again closes %+v, %v", session, again, err)
			}
			next, err := e.Tenancy.CloseSession(t.Context(), "mcp:other")
			if err != nil || !reflect.DeepEqual(next, closed("P3", "C3")) {
				t.Errorf("closing another session then closes %+v, %v", next, err)
			}
		})
	}
}

// Closing waits for the pages, and does not ask the user whether one may be left.
func TestCloseSessionWithBeforeUnloadDialog(t *testing.T) {
	withPage(t, func(t *testing.T, e *rooms, f *muxtest.Browser) {
		e.Owners.TakeOver(api.CommandLine, e.Tracker.ByID["T"])
		ended := make(chan *api.Error, 1)
		go func() {
			_, err := e.Tenancy.CloseSession(t.Context(), api.DefaultSession)
			ended <- err
		}()
		if q := <-f.Sent; q.Method != "Target.closeTarget" {
			t.Errorf("the browser receives %s", q.Method)
		}
		f.Report("S", "Page.javascriptDialogOpening", map[string]any{"type": "beforeunload"})
		if q := <-f.Sent; q.Method != "Page.handleJavaScriptDialog" || !strings.Contains(string(q.Params), `"accept":true`) {
			t.Errorf("the browser receives %s %s", q.Method, q.Params)
		}
		synctest.Wait()
		if len(ended) > 0 {
			t.Fatal("closing ends before the page is gone")
		}
		f.Report("", "Target.targetDestroyed", map[string]any{"targetId": "T"})
		wantResult(t, "closing", ended, "")
	})
}

// When a connection ends, temporary sessions end with it. Others lose the pages that were opened over it, and keep
// their contexts with what was opened otherwise.
func TestCloseConnection(t *testing.T) {
	bubble(t, func(t *testing.T, e *rooms, f *muxtest.Browser, received func() []string) {
		temporary := api.Caller{Name: "mcp:some", Session: "user/temporary", Connection: "1", Temporary: true}
		helper := temporary
		helper.Session, helper.Within = "helper", []string{temporary.Session}
		work := api.Caller{Name: "mcp:some", Session: "user/work", Connection: "1"}
		later := work
		later.Connection = "2"
		others := api.Caller{Name: "mcp:other", Session: "user/others", Connection: "2", Temporary: true}
		person := api.Caller{Name: "cli", Session: "user/work"}
		for _, by := range []api.Caller{temporary, helper, work, later, others, person, api.CommandLine} { // P1 to P7
			created(t, e, by, "Target.createTarget", `{"url":"http://a/"}`)
		}
		f.Attach("", muxtest.Info{ID: "POPUP", Type: "page", URL: "http://a/", Context: "C3", Opener: "P3"})
		created(t, e, temporary, "Target.createBrowserContext", `{}`) // C5
		synctest.Wait()
		ended := make(chan api.Closed, 1)
		go func() {
			got, err := e.Tenancy.CloseConnection(t.Context(), "1")
			if err != nil {
				t.Error(err)
			}
			ended <- got
		}()
		synctest.Wait()
		f.Report("", "Target.targetDestroyed", map[string]any{"targetId": "POPUP"})
		want := api.Closed{Targets: []string{"P1", "P2", "P3", "POPUP"}, Contexts: []string{"C1", "C2", "C5"}}
		if got := <-ended; !reflect.DeepEqual(got, want) {
			t.Errorf("what is closed is %+v, want %+v", got, want)
		}
		if got := sessionsOf(e); !slices.Equal(got, []string{api.DefaultSession, "user/others", "user/work"}) {
			t.Errorf("these sessions are open: %q", got)
		}
		if got := listed(e, work); !slices.Equal(got, []string{"P4", "P6"}) {
			t.Errorf("the session that stays has %q", got)
		}
	})
}

// A context that a session creates by a command is its own, until it disposes of it.
func TestCreatedContextBelongsToItsSession(t *testing.T) {
	bubble(t, func(t *testing.T, e *rooms, f *muxtest.Browser, received func() []string) {
		own := created(t, e, someClient, "Target.createBrowserContext", `{}`)
		in := `{"url":"http://a/","browserContextId":"` + own + `"}`
		page := created(t, e, someClient, "Target.createTarget", in)
		if owner := ownerIn(e, page); owner != someClient.SessionKey() {
			t.Errorf("a page there belongs to %q", owner)
		}
		for _, by := range []api.Caller{otherClient, api.CommandLine} {
			for _, method := range []string{"Target.createTarget", "Storage.getCookies", "Target.disposeBrowserContext"} {
				err := e.Call(t.Context(), by, api.CallRequest{Method: method, Params: json.RawMessage(in)}).Err
				refused(t, method+" of "+by.Name, err, api.CodeNotFound)
			}
		}
		created(t, e, someClient, "Target.disposeBrowserContext", `{"browserContextId":"`+own+`"}`)
		if got := ownerIn(e, page); got != "no such target" {
			t.Errorf("after its context was disposed of, the page belongs to %q", got)
		}
		if scope := e.Tenancy.scopes[someClient.SessionKey()]; scope == nil || string(scope.Context) == own {
			t.Errorf("the session's scope is %+v", scope)
		}
		received()
		if got, err := e.Tenancy.CloseSession(t.Context(), someClient.SessionKey()); err != nil ||
			slices.Contains(got.Contexts, own) {
			t.Errorf("closing the session closes %+v, %v", got, err)
		}
	})
}

// A session that disposes of its own context gets a new one with its next call.
func TestSessionDisposesOfItsContext(t *testing.T) {
	bubble(t, func(t *testing.T, e *rooms, f *muxtest.Browser, received func() []string) {
		created(t, e, someClient, "Target.createTarget", `{"url":"http://a/"}`)
		created(t, e, someClient, "Target.disposeBrowserContext", `{"browserContextId":"C1"}`)
		if got := sessionsOf(e); len(got) > 0 {
			t.Errorf("these sessions are open: %q", got)
		}
		page := created(t, e, someClient, "Target.createTarget", `{"url":"http://a/"}`)
		if s := e.Tenancy.scopes[someClient.SessionKey()]; s == nil || s.Context != "C2" || ownerIn(e, page) != s.session {
			t.Errorf("the session then has %+v", s)
		}
	})
}

// obey lets a browser do what it is sent until done is closed: it creates contexts C1, C2 and so on, with pages P1, P2
// and so on, and closes them. received returns the commands that it has received since the previous call, each with its
// parameters. wait waits until it has stopped.
func obey(f *muxtest.Browser, done <-chan struct{}) (received func() []string, wait func()) {
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
			case <-done:
				return
			}
		}
	}()
	return func() []string {
		mu.Lock()
		defer mu.Unlock()
		since := log
		log = nil
		return since
	}, func() { <-over }
}
