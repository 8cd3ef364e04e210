package verb

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-tools/parley/cdp/internal/keeper/api"
	"github.com/parley-tools/parley/cdp/internal/keeper/mux/muxtest"
	"github.com/parley-tools/parley/cdp/internal/keeper/tenant"
)

// withPage runs a test against an engine with one page, in a synctest bubble. There, synctest.Wait returns once the
// engine has handled every message.
func withPage(t *testing.T, test func(t *testing.T, e *Verbs, f *muxtest.Browser)) {
	synctest.Test(t, func(t *testing.T) {
		f := muxtest.New()
		e := New(f, Options{Name: "test", MaxMessage: 1 << 20, RingEvents: 300, RingBytes: 1 << 20})
		f.OnSend = func() {
			if e.Mux.TryLock() {
				e.Mux.Unlock()
				t.Error("a command was sent while the mux was not locked")
			}
		}
		go e.Mux.Read()
		f.Event("attached")
		synctest.Wait()
		test(t, e, f)
		f.Close()
		<-e.Mux.Done
	})
}

// entered returns the scope that a caller's session has; it needs none in the default context.
func entered(e *Verbs, by api.Caller) *tenant.Scope {
	if !by.HasContext() {
		return nil
	}
	s, release, err := e.Tenancy.Enter(context.Background(), by)
	if err != nil {
		panic(err)
	}
	release()
	return s
}

// startCommand starts a call. It returns the command that the browser received and a channel for the call's error.
func startCommand(t *testing.T, e *Verbs, f *muxtest.Browser, method string) (muxtest.Command, <-chan *api.Error) {
	t.Helper()
	ended := make(chan *api.Error, 1)
	go func() {
		ended <- e.Call(context.Background(), api.CommandLine, nil, api.CallRequest{Method: method}).Err
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
				withPage(t, func(t *testing.T, e *Verbs, f *muxtest.Browser) {
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
	withPage(t, func(t *testing.T, e *Verbs, f *muxtest.Browser) {
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
	withPage(t, func(t *testing.T, e *Verbs, f *muxtest.Browser) {
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

// TestCallersCannotDisableTargetTracking sends commands that would disable the engine's tracking of targets. The
// engine restores its own settings.
func TestCallersCannotDisableTargetTracking(t *testing.T) {
	withPage(t, func(t *testing.T, e *Verbs, f *muxtest.Browser) {
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
	withPage(t, func(t *testing.T, e *Verbs, f *muxtest.Browser) {
		f.Messages <- `{"method":"Target.attachedToTarget","sessionId":"S","params":{"sessionId":"F","targetInfo":{"targetId":"frame","type":"iframe","url":"http://b/"}}}`
		synctest.Wait()
		go e.Call(t.Context(), api.CommandLine, nil, api.CallRequest{Method: "Page.handleJavaScriptDialog", Target: "frame"})
		if q := <-f.Sent; q.Session != "S" {
			t.Errorf("%s goes to session %q", q.Method, q.Session)
		}
	})
}

// TestCancelledOpenLeavesNoPage cancels the opening of a page while it loads.
func TestCancelledOpenLeavesNoPage(t *testing.T) {
	withPage(t, func(t *testing.T, e *Verbs, f *muxtest.Browser) {
		ctx, giveUp := context.WithCancel(t.Context())
		ended := make(chan *api.Error, 1)
		go func() {
			_, err := e.Open(ctx, api.CommandLine, nil, api.OpenRequest{URL: "http://slow/"})
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
					f.Report("", "Target.targetDestroyed", map[string]any{"targetId": "N"})
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
		withPage(t, func(t *testing.T, e *Verbs, f *muxtest.Browser) {
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

// TestLostCloseIsSentAgain closes a page of which the browser loses the command: it is sent until the page is gone, but
// not while the page asks whether it may be left, nor after somebody has answered that it stays.
func TestLostCloseIsSentAgain(t *testing.T) {
	for _, end := range []string{"gone", "dismissed", "accepted"} {
		withPage(t, func(t *testing.T, e *Verbs, f *muxtest.Browser) {
			ended := make(chan *api.Error, 1)
			go func() {
				_, err := e.CloseTarget(t.Context(), api.CommandLine, "", "")
				ended <- err
			}()
			for range 3 {
				if q := <-f.Sent; q.Method != "Target.closeTarget" || string(q.Params) != `{"targetId":"T"}` {
					t.Errorf("the browser receives %s %s", q.Method, q.Params)
				} else {
					f.Answer(q, `{"success":true}`)
				}
			}
			wait := func(what string, again bool) {
				time.Sleep(time.Minute)
				if synctest.Wait(); (len(f.Sent) > 0) != again {
					t.Errorf("%s: the browser receives %d commands", what, len(f.Sent))
				}
			}
			if end == "gone" {
				f.Report("", "Target.targetDestroyed", map[string]any{"targetId": "T"})
				wantResult(t, "the close", ended, "")
				wait(end, false)
				return
			}
			f.Report("S", "Page.javascriptDialogOpening", map[string]any{"type": "beforeunload"})
			wantResult(t, "the close", ended, api.CodeBusy)
			time.Sleep(2 * time.Second)
			if synctest.Wait(); len(f.Sent) > 0 {
				t.Errorf("while the page asks, the browser receives %s", (<-f.Sent).Method)
			}
			f.Report("S", "Page.javascriptDialogClosed", map[string]any{"result": end == "accepted"})
			wait(end, end == "accepted")
		})
	}
}
