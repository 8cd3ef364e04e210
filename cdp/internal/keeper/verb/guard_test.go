package verb

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/parley-tools/parley/cdp/internal/keeper/api"
	"github.com/parley-tools/parley/cdp/internal/keeper/mux/muxtest"
)

var (
	someClient  = api.Caller{Name: "mcp:some"}
	otherClient = api.Caller{Name: "mcp:other"}
)

// withPages is withPage with a page of each of two sessions, SOME and OTHER, in the contexts C-SOME and C-OTHER.
// The page T has no owner.
func withPages(t *testing.T, test func(t *testing.T, e *Verbs, f *muxtest.Browser)) {
	withPage(t, func(t *testing.T, e *Verbs, f *muxtest.Browser) {
		for _, by := range []api.Caller{someClient, otherClient} {
			id := strings.ToUpper(strings.TrimPrefix(by.Name, "mcp:"))
			go func() {
				f.Answer(<-f.Sent, `{"browserContextId":"C-`+id+`"}`)
				f.Answer(<-f.Sent, `{}`) // downloads are denied
			}()
			_, release, err := e.Tenancy.Enter(t.Context(), by)
			if err != nil {
				t.Fatal(err)
			}
			release()
			f.Attach("", muxtest.Info{ID: id, Type: "page", URL: "http://" + id + "/", Context: "C-" + id})
			synctest.Wait()
		}
		test(t, e, f)
	})
}

// The browser's first page counts as the person's once it was used, and is not given to the next open.
func TestUsedFirstPageIsNotSpare(t *testing.T) {
	withPage(t, func(t *testing.T, e *Verbs, f *muxtest.Browser) {
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
		go e.Open(t.Context(), api.CommandLine, nil, api.OpenRequest{})
		if q := <-f.Sent; q.Method != "Target.createTarget" {
			t.Errorf("for the next open the browser receives %s", q.Method)
		}
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
		withPages(t, func(t *testing.T, e *Verbs, f *muxtest.Browser) {
			ended := make(chan *api.Error, 1)
			go func() {
				q := api.CallRequest{Method: c.method, Params: json.RawMessage(c.params)}
				ended <- e.Call(t.Context(), c.by, entered(e, c.by), q).Err
			}()
			wantResult(t, c.by.Name+" "+c.method+" "+c.params, ended, c.code)
			if len(f.Sent) > 0 {
				t.Errorf("the browser receives %s", (<-f.Sent).Method)
			}
		})
	}
}

// A page that a session opens is in its context.
func TestOpenInContextOfSession(t *testing.T) {
	withPages(t, func(t *testing.T, e *Verbs, f *muxtest.Browser) {
		e.Tracker.SparePage = e.Tracker.ByID["T"]
		for by, want := range map[*api.Caller]string{
			&someClient: "C-SOME", {Name: "cli", Session: otherClient.SessionKey()}: "C-OTHER",
		} {
			go e.Open(t.Context(), *by, entered(e, *by), api.OpenRequest{URL: "http://a/"})
			if q := <-f.Sent; q.Method != "Target.createTarget" || !strings.Contains(string(q.Params), `"`+want+`"`) {
				t.Errorf("for a page of %s the browser receives %s %s", by.SessionKey(), q.Method, q.Params)
			}
		}
	})
}

// A page that a session creates by a command belongs to it.
func TestCreatedTargetBelongsToSession(t *testing.T) {
	withPages(t, func(t *testing.T, e *Verbs, f *muxtest.Browser) {
		ended := make(chan *api.Error, 1)
		go func() {
			q := api.CallRequest{Method: "Target.createTarget", Params: json.RawMessage(`{"url":"http://a/"}`)}
			ended <- e.Call(t.Context(), someClient, nil, q).Err
		}()
		q := <-f.Sent
		f.Attach("", muxtest.Info{ID: "NEW", Type: "page", URL: "http://a/"})
		f.Answer(q, `{"targetId":"NEW"}`)
		wantResult(t, q.Method, ended, "")
		if owner := e.Tracker.ByID["NEW"].Owner; owner != someClient.SessionKey() {
			t.Errorf("the page belongs to %q", owner)
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
		withPages(t, func(t *testing.T, e *Verbs, f *muxtest.Browser) {
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
			if got := e.Tracker.ByID[c.target].Owner; got != c.owner {
				t.Errorf("after %s of %q activated %s, it belongs to %q", c.by.Name, c.by.SessionKey(), c.target, got)
			}
			if got := e.Owners.CurrentOf(c.by).ID; got != c.current {
				t.Errorf("after %s of %q activated %s, the current target is %s", c.by.Name, c.by.SessionKey(), c.target, got)
			}
		})
	}
}

// A call that waits ends with its page, and a dialog that it opens is dismissed if it says so.
func TestCallsEndWithTheirPage(t *testing.T) {
	withPage(t, func(t *testing.T, e *Verbs, f *muxtest.Browser) {
		_, ended := startCommand(t, e, f, "Runtime.evaluate")
		f.Report("", "Target.targetDestroyed", map[string]any{"targetId": "T"})
		wantResult(t, "a call in a page that is closed", ended, api.CodeNotFound)
	})
	for how, accept := range map[string]string{api.DialogDismiss: `"accept":false`, api.DialogAccept: `"accept":true`} {
		withPage(t, func(t *testing.T, e *Verbs, f *muxtest.Browser) {
			go e.Call(t.Context(), api.CommandLine, nil, api.CallRequest{Method: "Runtime.evaluate", OnDialog: how})
			<-f.Sent
			f.Report("S", "Page.javascriptDialogOpening", map[string]any{"type": "confirm"})
			if q := <-f.Sent; q.Method != "Page.handleJavaScriptDialog" || !strings.Contains(string(q.Params), accept) {
				t.Errorf("%s: the browser receives %s %s", how, q.Method, q.Params)
			}
		})
	}
}

// Commands of the command line are sent unchanged.
func TestCommandLineIsNotConfined(t *testing.T) {
	withPage(t, func(t *testing.T, e *Verbs, f *muxtest.Browser) {
		ended := make(chan *api.Error, 1)
		go func() {
			ended <- e.Call(context.Background(), api.CommandLine, nil,
				api.CallRequest{Method: "Target.createBrowserContext", Params: json.RawMessage(`{"proxyServer":"direct://"}`)}).Err
		}()
		synctest.Wait()
		q := <-f.Sent
		if q.Method != "Target.createBrowserContext" || string(q.Params) != `{"proxyServer":"direct://"}` {
			t.Errorf("sent %+v", q)
		}
		f.Answer(q, `{"browserContextId":"D"}`)
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// What a call creates belongs to its caller.
func TestCreatedPageBelongsToItsCaller(t *testing.T) {
	withPages(t, func(t *testing.T, e *Verbs, f *muxtest.Browser) {
		by := api.Caller{Name: "plugin:one", Session: api.DefaultSession, Connection: "1"}
		e.Tracker.Started = true
		ended := make(chan *api.Error, 1)
		go func() {
			ended <- e.Call(t.Context(), by, entered(e, by), api.CallRequest{Method: "Target.createTarget"}).Err
		}()
		q := <-f.Sent
		f.Attach("", muxtest.Info{ID: "MADE", Type: "page", URL: api.BlankURL})
		synctest.Wait()
		f.Answer(q, `{"targetId":"MADE"}`)
		wantResult(t, "creating a page", ended, "")
		made := e.Tracker.ByID["MADE"]
		if made.Owner != api.DefaultSession || made.Origin.Person || made.Origin.Connection != "1" {
			t.Errorf("it belongs to %q, opened by %+v", made.Owner, made.Origin)
		}
	})
}
