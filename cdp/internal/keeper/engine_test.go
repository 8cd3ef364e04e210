package keeper

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/chromedp/cdproto/cdp"

	"github.com/parley-tools/parley/cdp/internal/keeper/api"
	"github.com/parley-tools/parley/cdp/internal/keeper/event"
	"github.com/parley-tools/parley/cdp/internal/keeper/mux/muxtest"
	"github.com/parley-tools/parley/cdp/internal/keeper/tenant"
	"github.com/parley-tools/parley/cdp/internal/keeper/verb"
)

// withPage runs a test against an engine with one page, in a synctest bubble. There, synctest.Wait returns once the
// engine has handled every message.
func withPage(t *testing.T, test func(t *testing.T, e *verb.Verbs, f *muxtest.Browser)) {
	synctest.Test(t, func(t *testing.T) {
		cfg := Config{}
		cfg.setDefaults()
		f := muxtest.New()
		e := verb.New(f, cfg.rooms(false))
		go e.Mux.Read()
		f.Event("attached")
		synctest.Wait()
		test(t, e, f)
		f.Close()
		<-e.Mux.Done
	})
}

// addScope gives a caller's session a context with an id, as if it had made its first call.
func addScope(e *verb.Verbs, by api.Caller, context string) *tenant.Scope {
	s := &tenant.Scope{
		Session: by.SessionKey(), Within: by.Within, Context: cdp.BrowserContextID(context),
		FirstPageLock: make(chan struct{}, 1),
	}
	if by.Temporary {
		s.Connection = by.Connection
	}
	e.Mux.Lock()
	defer e.Mux.Unlock()
	e.Tenancy.Scopes[s.Session], e.Owners.ContextOwners[context] = s, s.Session
	return s
}

// startCommand starts a call. It returns the command that the browser received and a channel for the call's error.
func startCommand(t *testing.T, e *verb.Verbs, f *muxtest.Browser, method string) (muxtest.Command, <-chan *api.Error) {
	t.Helper()
	ended := make(chan *api.Error, 1)
	go func() {
		ended <- e.Call(context.Background(), api.CommandLine, api.CallRequest{Method: method}).Err
	}()
	synctest.Wait()
	select {
	case q := <-f.Sent:
		if q.Method != method {
			t.Fatalf("%s was sent instead of %s", q.Method, method)
		}
		return q, ended
	default:
		return muxtest.Command{}, ended
	}
}

func wantResult(t *testing.T, what string, ended <-chan *api.Error, code string) {
	t.Helper()
	synctest.Wait()
	select {
	case err := <-ended:
		switch {
		case err == nil && code != "":
			t.Errorf("%s succeeds, want %s", what, code)
		case err != nil && err.Code != code:
			t.Errorf("%s fails with %s (%s), want %q", what, err.Code, err.Message, code)
		}
	default:
		t.Errorf("%s still waits, want %q", what, code)
	}
}

// Chrome reports each crash by two events. The command that revives the page may be sent after the first and must
// survive the second.
func TestRevivalSurvivesSecondCrashEvent(t *testing.T) {
	const first, second = "Inspector.targetCrashed", "Target.targetCrashed"
	for _, order := range [][2]string{{first, second}, {second, first}} {
		for _, method := range []string{"Page.navigate", "Page.reload", "Page.close"} {
			t.Run(order[0]+" "+method, func(t *testing.T) {
				withPage(t, func(t *testing.T, e *verb.Verbs, f *muxtest.Browser) {
					_, waiting := startCommand(t, e, f, "Runtime.evaluate")
					f.Event(order[0])
					wantResult(t, "a call under way", waiting, api.CodeTargetCrashed)
					reviving, revived := startCommand(t, e, f, method)
					f.Event(order[1])
					_, refused := startCommand(t, e, f, "Runtime.evaluate")
					wantResult(t, "a call before the revival", refused, api.CodeTargetCrashed)
					f.Event("Inspector.targetReloadedAfterCrash")
					f.Answer(reviving, `{}`)
					wantResult(t, method, revived, "")
					again, ended := startCommand(t, e, f, "Runtime.evaluate")
					f.Answer(again, `{}`)
					wantResult(t, "a call after the revival", ended, "")
				})
			})
		}
	}
}

// A navigation during which the renderer crashed may never get a reply, and neither may one whose new
// renderer crashes.
func TestPendingNavigationFailsOnCrash(t *testing.T) {
	withPage(t, func(t *testing.T, e *verb.Verbs, f *muxtest.Browser) {
		_, navigating := startCommand(t, e, f, "Page.navigate")
		f.Event("Inspector.targetCrashed")
		f.Event("Target.targetCrashed")
		wantResult(t, "a navigation under way", navigating, api.CodeTargetCrashed)
		_, reviving := startCommand(t, e, f, "Page.navigate")
		f.Event("Inspector.targetReloadedAfterCrash")
		f.Event("Inspector.targetCrashed")
		f.Event("Target.targetCrashed")
		wantResult(t, "a revival that crashes", reviving, api.CodeTargetCrashed)
	})
}

// The reply to a navigation that crashes the page arrives before the crash, but its caller may run after it.
func TestLateReplyDoesNotRevive(t *testing.T) {
	withPage(t, func(t *testing.T, e *verb.Verbs, f *muxtest.Browser) {
		crashing, ended := startCommand(t, e, f, "Page.navigate")
		f.Answer(crashing, `{"frameId":"T","errorText":"net::ERR_ABORTED"}`)
		f.Event("Inspector.targetCrashed")
		f.Event("Target.targetCrashed")
		wantResult(t, "the crashing navigation", ended, "")
		q, refused := startCommand(t, e, f, "Runtime.evaluate")
		wantResult(t, "a call to the crashed page", refused, api.CodeTargetCrashed)
		if q.Method != "" {
			t.Error("a call was sent to a crashed page")
		}
	})
}

// Unknown fields of later browsers and invalid text of pages must not break the engine's own calls.
func TestPageInfoToleratesUnknownFields(t *testing.T) {
	withPage(t, func(t *testing.T, e *verb.Verbs, f *muxtest.Browser) {
		opened := make(chan api.Page, 1)
		go func() {
			p, err := e.Tracker.PageInfo(context.Background(), e.Tracker.ByID["T"])
			if err != nil {
				t.Error(err)
			}
			opened <- p
		}()
		f.Answer(<-f.Sent,
			`{"targetInfo":{"targetId":"T","type":"hologram","title":"\ud800 x","title2":{},"url":"u","attached":true,"embedderData":[1],"subtype":"new"}}`)
		if p := <-opened; p.URL != "u" || p.Title != "\ufffd x" {
			t.Errorf("page %+v", p)
		}
	})
}

// TestAbandonedPageIsClosed cancels the creation of a page. The page is closed once it exists, because no caller
// knows it.
func TestAbandonedPageIsClosed(t *testing.T) {
	withPage(t, func(t *testing.T, e *verb.Verbs, f *muxtest.Browser) {
		ctx, giveUp := context.WithCancel(t.Context())
		ended := make(chan *api.Error, 1)
		go func() {
			_, err := e.Owners.NewPage(ctx, api.Caller{Name: "mcp:one"}, "")
			ended <- err
		}()
		making := <-f.Sent
		giveUp()
		wantResult(t, "an abandoned page", ended, api.CodeTimeout)
		f.Answer(making, `{"targetId":"N"}`)
		synctest.Wait()
		select {
		case q := <-f.Sent:
			if q.Method != "Target.closeTarget" || string(q.Params) != `{"targetId":"N"}` {
				t.Errorf("the browser receives %s %s", q.Method, q.Params)
			}
		default:
			t.Error("the page was not closed")
		}
	})
}

// TestFirstPageIsCreatedOnce starts two first calls of a plugin at once. They share one page.
func TestFirstPageIsCreatedOnce(t *testing.T) {
	withPage(t, func(t *testing.T, e *verb.Verbs, f *muxtest.Browser) {
		by, s := api.Caller{Name: api.PluginPrefix + "one"}, &tenant.Scope{Context: "C",
			FirstPageLock: make(chan struct{}, 1)}
		e.Owners.ContextOwners["C"] = by.Name
		ended := make(chan *api.Error, 2)
		for range cap(ended) {
			go func() { ended <- e.Tenancy.FirstPage(t.Context(), by, s) }()
		}
		synctest.Wait()
		f.Messages <- `{"method":"Target.attachedToTarget","params":{"sessionId":"N","targetInfo":{"targetId":"N","type":"page","url":"about:blank","title":"about:blank","browserContextId":"C"}}}`
		f.Answer(<-f.Sent, `{"targetId":"N"}`)
		for range cap(ended) {
			if err := <-ended; err != nil {
				t.Error(err)
			}
		}
		if len(f.Sent) > 0 {
			t.Errorf("the browser also receives %s", (<-f.Sent).Method)
		}
	})
}

// TestPageLimitHoldsForConcurrentRequests creates more pages at once than a caller may have. Each request was
// within the limit when it was sent.
func TestPageLimitHoldsForConcurrentRequests(t *testing.T) {
	withPage(t, func(t *testing.T, e *verb.Verbs, f *muxtest.Browser) {
		const tooMany = 3
		ended := make(chan *api.Error, tenant.MaxPages+tooMany)
		for range tenant.MaxPages + tooMany {
			go func() {
				_, err := e.Owners.NewPage(t.Context(), api.Caller{Name: "mcp:one"}, "")
				ended <- err
			}()
		}
		synctest.Wait()
		for n := range tenant.MaxPages + tooMany {
			f.Messages <- fmt.Sprintf(
				`{"method":"Target.targetCreated","params":{"targetInfo":{"targetId":"P%d","type":"page"}}}`, n)
			f.Answer(<-f.Sent, fmt.Sprintf(`{"targetId":"P%d"}`, n))
			synctest.Wait()
		}
		for range tenant.MaxPages + tooMany {
			if err := <-ended; err != nil {
				t.Error(err)
			}
		}
		closed := 0
		for len(f.Sent) > 0 {
			if q := <-f.Sent; q.Method == "Target.closeTarget" {
				closed++
			}
		}
		if closed != tooMany {
			t.Errorf("%d of %d pages were closed, expected %d", closed, tenant.MaxPages+tooMany, tooMany)
		}
	})
}

// TestPageLimit gives a plugin as many pages as it may have. Further requests fail, and a page that opens by itself
// is closed.
func TestPageLimit(t *testing.T) {
	withPage(t, func(t *testing.T, e *verb.Verbs, f *muxtest.Browser) {
		by := api.Caller{Name: api.PluginPrefix + "one"}
		created := func(n int) {
			f.Messages <- fmt.Sprintf(
				`{"method":"Target.targetCreated","params":{"targetInfo":{"targetId":"P%d","type":"page","browserContextId":"C"}}}`, n)
			synctest.Wait()
		}
		e.Owners.ContextOwners["C"] = by.Name
		for n := range tenant.MaxPages {
			if err := e.Owners.CheckPageLimit(by); err != nil {
				t.Fatalf("with %d pages: %v", n, err)
			}
			created(n)
		}
		_, opened := e.Owners.NewPage(t.Context(), by, "C")
		made := e.Tenancy.Confine(by, &tenant.Scope{Context: "C"}, &api.CallRequest{Method: "Target.createTarget"})
		for _, err := range []*api.Error{opened, made} {
			if err == nil || err.Code != api.CodeLimitExceeded || !strings.Contains(err.Message, "close one") {
				t.Errorf("a page over the limit: %v", err)
			}
		}
		created(tenant.MaxPages)
		select {
		case q := <-f.Sent:
			if q.Method != "Target.closeTarget" || string(q.Params) != fmt.Sprintf(`{"targetId":"P%d"}`, tenant.MaxPages) {
				t.Errorf("the browser receives %s %s", q.Method, q.Params)
			}
		default:
			t.Error("a page over the limit was not closed")
		}
		if err := e.Owners.CheckPageLimit(api.CommandLine); err != nil {
			t.Errorf("the command line: %v", err)
		}
	})
}

// TestCallersCannotDisableTargetTracking sends commands that would disable the engine's tracking of targets. The
// engine restores its own settings.
func TestCallersCannotDisableTargetTracking(t *testing.T) {
	withPage(t, func(t *testing.T, e *verb.Verbs, f *muxtest.Browser) {
		done := func(method string) {
			t.Helper()
			q, ended := startCommand(t, e, f, method)
			if q.Method != "" { // otherwise the fake browser has replied
				f.Answer(q, `{}`)
			}
			wantResult(t, method, ended, "")
		}
		next := func() muxtest.Command {
			select {
			case q := <-f.Sent:
				return q
			default:
				return muxtest.Command{}
			}
		}
		done("Target.setDiscoverTargets")
		if q := next(); q.Method != "Target.setDiscoverTargets" || !strings.Contains(string(q.Params), `"discover":true`) {
			t.Errorf("the browser receives %s %s", q.Method, q.Params)
		}
		done("Target.setAutoAttach")
		if q := f.Automatic[len(f.Automatic)-1]; q.Method != "Target.setAutoAttach" ||
			!strings.Contains(string(q.Params), `"autoAttach":true`) {
			t.Errorf("the browser receives %s %s", q.Method, q.Params)
		}
		f.Messages <- `{"method":"Target.detachedFromTarget","params":{"sessionId":"S","targetId":"T"}}`
		synctest.Wait()
		done("Target.detachFromTarget")
		if q := next(); q.Method != "Target.attachToTarget" || !strings.Contains(string(q.Params), `"targetId":"T"`) {
			t.Errorf("the browser receives %s %s", q.Method, q.Params)
		}
	})
}

// TestFrameDialogIsHandledInItsPage sends Page.handleJavaScriptDialog to a frame, as the error of a blocked call
// suggests.
func TestFrameDialogIsHandledInItsPage(t *testing.T) {
	withPage(t, func(t *testing.T, e *verb.Verbs, f *muxtest.Browser) {
		f.Messages <- `{"method":"Target.attachedToTarget","sessionId":"S","params":{"sessionId":"F","targetInfo":{"targetId":"frame","type":"iframe","url":"http://b/"}}}`
		synctest.Wait()
		go e.Call(t.Context(), api.CommandLine, api.CallRequest{Method: "Page.handleJavaScriptDialog", Target: "frame"})
		if q := <-f.Sent; q.Session != "S" {
			t.Errorf("%s goes to session %q", q.Method, q.Session)
		}
	})
}

// TestCancelledOpenLeavesNoPage cancels the opening of a page while it loads.
func TestCancelledOpenLeavesNoPage(t *testing.T) {
	withPage(t, func(t *testing.T, e *verb.Verbs, f *muxtest.Browser) {
		ctx, giveUp := context.WithCancel(t.Context())
		ended := make(chan *api.Error, 1)
		go func() {
			_, err := e.Open(ctx, api.CommandLine, api.OpenRequest{URL: "http://slow/"})
			ended <- err
		}()
		making := <-f.Sent
		f.Messages <- `{"method":"Target.attachedToTarget","params":{"sessionId":"N","targetInfo":{"targetId":"N","type":"page","url":"about:blank","title":"about:blank"}}}`
		f.Answer(making, `{"targetId":"N"}`)
		if q := <-f.Sent; q.Method != "Page.navigate" {
			t.Fatalf("the browser receives %s", q.Method)
		}
		giveUp()
		synctest.Wait()
		for {
			select {
			case q := <-f.Sent:
				if q.Method == "Target.closeTarget" && string(q.Params) == `{"targetId":"N"}` {
					f.Answer(q, `{"success":true}`)
					wantResult(t, "an abandoned page", ended, api.CodeTimeout)
					return
				}
				f.Answer(q, `{}`) // for example the probe of unstick
			default:
				t.Fatal("the page was not closed")
			}
		}
	})
}

// TestCloseTargetWithBeforeUnloadDialog closes a page that asks whether it may be left, with each value of
// on_dialog.
func TestCloseTargetWithBeforeUnloadDialog(t *testing.T) {
	for onDialog, code := range map[string]string{"": api.CodeBusy, api.DialogDismiss: api.CodeBusy,
		api.DialogAccept: ""} {
		withPage(t, func(t *testing.T, e *verb.Verbs, f *muxtest.Browser) {
			ended := make(chan *api.Error, 1)
			go func() {
				_, err := e.CloseTarget(t.Context(), api.CommandLine, "", onDialog)
				ended <- err
			}()
			f.Answer(<-f.Sent, `{"success":true}`)
			f.Messages <- `{"method":"Page.javascriptDialogOpening","sessionId":"S","params":{"type":"beforeunload"}}`
			synctest.Wait()
			select {
			case q := <-f.Sent:
				if q.Method != "Page.handleJavaScriptDialog" || code != "" {
					t.Errorf("%q: the browser receives %s", onDialog, q.Method)
				}
				f.Messages <- `{"method":"Target.targetDestroyed","params":{"targetId":"T"}}`
			default:
			}
			wantResult(t, "on_dialog "+onDialog, ended, code)
		})
	}
}

// TestFrameInBackForwardCacheIsForgotten reports changes of a frame whose page is in the back/forward cache. No
// call can reach that frame.
func TestFrameInBackForwardCacheIsForgotten(t *testing.T) {
	withPage(t, func(t *testing.T, e *verb.Verbs, f *muxtest.Browser) {
		const frame = `"targetInfo":{"targetId":"frame","type":"iframe","url":"http://b/"}`
		attached := `{"method":"Target.attachedToTarget","sessionId":"S","params":{"sessionId":"F",` + frame + `}}`
		f.Messages <- attached
		f.Messages <- `{"method":"Target.detachedFromTarget","sessionId":"S","params":{"sessionId":"F","targetId":"frame"}}`
		f.Messages <- `{"method":"Target.targetInfoChanged","params":{` + frame + `}}`
		synctest.Wait()
		if all := e.Owners.ListTargets(api.CommandLine, false); len(all) != 1 {
			t.Errorf("targets %+v", all)
		}
		f.Messages <- attached // the page is restored from the cache
		synctest.Wait()
		if all := e.Owners.ListTargets(api.CommandLine, false); len(all) != 2 || all[1].Parent != "T" {
			t.Errorf("targets with the restored page %+v", all)
		}
	})
}

// A page that navigates before it has enabled a stream's domains would report no events.
func TestListenWaitsUntilDomainsAreEnabled(t *testing.T) {
	for _, c := range []struct {
		name  string
		tells func(f *muxtest.Browser, q muxtest.Command)
		wait  time.Duration
	}{
		{"an answer", func(f *muxtest.Browser, q muxtest.Command) { f.Answer(q, `{}`) }, 0},
		{"a dialog", func(f *muxtest.Browser, _ muxtest.Command) { f.Event("Page.javascriptDialogOpening") }, 0},
		{"a crash", func(f *muxtest.Browser, _ muxtest.Command) { f.Event("Target.targetCrashed") }, 0},
		{"nothing", func(*muxtest.Browser, muxtest.Command) {}, event.EnableTimeout},
	} {
		t.Run(c.name, func(t *testing.T) {
			withPage(t, func(t *testing.T, e *verb.Verbs, f *muxtest.Browser) {
				l, err := e.Events.Listen(api.CommandLine, api.ListenRequest{Patterns: []string{"DOM.*", "DOM.documentUpdated"}},
					nil)
				if err != nil {
					t.Fatal(err)
				}
				q, began, waited := <-f.Sent, time.Now(), make(chan time.Duration, 1)
				go func() {
					e.Events.AwaitEnabled(t.Context(), l)
					waited <- time.Since(began)
				}()
				synctest.Wait()
				if len(waited) > 0 {
					t.Fatal("the stream begins before the page has responded")
				}
				c.tells(f, q)
				if took := <-waited; q.Method != "DOM.enable" || took != c.wait {
					t.Errorf("after %s the stream begins in %s, want %s", q.Method, took, c.wait)
				}
			})
		})
	}
}

// TestDroppedEventsAreCountedOnce reads the stored events in pages. Each page counts the dropped events of its own
// range.
func TestDroppedEventsAreCountedOnce(t *testing.T) {
	withPage(t, func(t *testing.T, e *verb.Verbs, f *muxtest.Browser) {
		e.Events.Journals = event.NewJournals(30, 100_000)
		for _, stored := range []bool{true, false, true, true, false, false, true} {
			if stored {
				e.Events.Journals.Add(&event.Record{Method: "A.b"})
			} else {
				e.Events.Journals.Skip()
			}
		}
		var since, dropped int64
		var read int
		for range 5 {
			page, err := e.Owners.StoredEvents(api.CommandLine, api.EventsRequest{Since: since, Limit: 1})
			if err != nil {
				t.Fatal(err)
			}
			since, dropped, read = page.LastSeq, dropped+page.Dropped, read+len(page.Events)
		}
		if since != 7 || dropped != 3 || read != 4 {
			t.Errorf("%d read and %d dropped up to %d", read, dropped, since)
		}
	})
}
