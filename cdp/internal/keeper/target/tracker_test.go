package target

import (
	"context"
	"encoding/json"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/runtime"

	"github.com/parley-tools/parley/cdp/internal/keeper/api"
	"github.com/parley-tools/parley/cdp/internal/keeper/mux"
	"github.com/parley-tools/parley/cdp/internal/keeper/mux/muxtest"
)

// heard is an observer that writes down what it hears of targets.
type heard struct{ all []string }

func (h *heard) add(what string, t *Target) {
	if t != nil {
		what += " " + t.ID
	}
	h.all = append(h.all, what)
}

func (h *heard) OnTarget(t *Target, _ string, _ *Target, fresh bool) {
	if fresh {
		h.add("new", t)
	}
}
func (h *heard) OnURL(t *Target, url string)                       { h.add("shows "+url, t) }
func (h *heard) OnNavigationRequested(*Target, json.RawMessage)    {}
func (h *heard) OnSession(t *Target)                               { h.add("session", t) }
func (h *heard) OnSessionEnd(t *Target)                            { h.add("session end", t) }
func (h *heard) OnForgotten(t *Target)                             { h.add("forgotten", t) }
func (h *heard) WantsSession(*Target) bool                         { return false }
func (h *heard) OnPaused(*Target, json.RawMessage) bool            { return false }
func (h *heard) OnContexts(*Target)                                {}
func (h *heard) OnLoss(method string)                              { h.add("lost "+method, nil) }
func (h *heard) OnEnd()                                            {}
func (h *heard) OnEvent(t, _ *Target, m string, _ json.RawMessage) { h.add(m, t) }

// withTracker runs a test against a tracker that has the page T, in a browser that is the test.
func withTracker(t *testing.T, test func(tr *Tracker, page *Target, f *muxtest.Browser, h *heard)) {
	synctest.Test(t, func(t *testing.T) {
		f, h := muxtest.New(), &heard{}
		m := mux.New(f, 1<<20)
		tr := NewTracker(m, "test", false)
		tr.Observe(h)
		f.OnSend = func() {
			if m.TryLock() {
				panic("a command was sent while the mux was not locked")
			}
		}
		go m.Read()
		f.Event("attached")
		synctest.Wait()
		page := tr.ByID["T"]
		if page == nil || page.Session != "S" || tr.SessionOf("S") != page || !page.ready {
			t.Fatalf("the page is %+v", page)
		}
		test(tr, page, f, h)
		m.Close()
	})
}

// call sends a command to a target, and returns the error once the command has ended.
func call(tr *Tracker, to *Target, onDialog string) <-chan *api.Error {
	ended := make(chan *api.Error, 1)
	go func() {
		_, err := Execute(context.Background(), tr.Sender, to, runtime.Evaluate, runtime.EvaluateParams{Expression: "1"},
			CallOptions{OnDialog: onDialog})
		ended <- err
	}()
	synctest.Wait()
	return ended
}

func wantCode(t *testing.T, ended <-chan *api.Error, code string) {
	t.Helper()
	synctest.Wait()
	if len(ended) == 0 {
		t.Errorf("it has not ended, want %q", code)
	} else if err := <-ended; code == "" && err != nil || code != "" &&
		(err == nil || err.Code != code || err.Target != "T") {
		t.Errorf("%+v, want %q", err, code)
	}
}

func TestTargetsComeAndGo(t *testing.T) {
	withTracker(t, func(tr *Tracker, page *Target, f *muxtest.Browser, h *heard) {
		f.Attach("S", muxtest.Info{ID: "FRAME", Type: "iframe", URL: "http://b/", Parent: "T"})
		synctest.Wait()
		frame := tr.ByID["FRAME"]
		if frame == nil || frame.Root() != page || !frame.Within(page) || page.Within(frame) || len(tr.All) != 2 {
			t.Fatalf("the frame is %+v", frame)
		}
		waiting := call(tr, page, "")
		<-f.Sent
		f.Report("", "Target.targetDestroyed", map[string]any{"targetId": "T"})
		wantCode(t, waiting, api.CodeNotFound)
		wantCode(t, call(tr, page, ""), api.CodeNotFound)
		if tr.ByID["T"] != nil || tr.SessionOf("S") != nil || !page.Closed || len(tr.All) != 1 {
			t.Errorf("the page is still known: %+v", page)
		}
		for _, want := range []string{"new T", "session T", "new FRAME", "session FRAME", "forgotten T"} {
			if !slices.Contains(h.all, want) {
				t.Errorf("the observer has not heard %q, but %q", want, h.all)
			}
		}
	})
}

func TestCrashFailsWhatWaits(t *testing.T) {
	withTracker(t, func(tr *Tracker, page *Target, f *muxtest.Browser, _ *heard) {
		waiting := call(tr, page, "")
		<-f.Sent
		f.Event("Inspector.targetCrashed")
		wantCode(t, waiting, api.CodeTargetCrashed)
		wantCode(t, call(tr, page, ""), api.CodeTargetCrashed)
		f.Event("Inspector.targetReloadedAfterCrash")
		synctest.Wait()
		again := call(tr, page, "")
		f.Answer(<-f.Sent, `{"result":{"type":"number"}}`)
		wantCode(t, again, "")
	})
}

// A dialog fails the calls of its page, unless the one that opened it answers.
func TestDialogs(t *testing.T) {
	opening := map[string]any{"type": "alert", "message": "hello"}
	for onDialog, code := range map[string]string{"": api.CodeBusy, api.DialogDismiss: ""} {
		withTracker(t, func(tr *Tracker, page *Target, f *muxtest.Browser, _ *heard) {
			first, second := call(tr, page, onDialog), call(tr, page, api.DialogAccept)
			one, two := <-f.Sent, <-f.Sent
			f.Report("S", "Page.javascriptDialogOpening", opening)
			synctest.Wait()
			if code == "" {
				answer := <-f.Sent
				if answer.Method != "Page.handleJavaScriptDialog" || string(answer.Params) != `{"accept":false}` {
					t.Errorf("the dialog is answered by %s %s", answer.Method, answer.Params)
				}
				f.Report("S", "Page.javascriptDialogClosed", map[string]any{"result": false})
				f.Answer(one, `{"result":{"type":"number"}}`)
				f.Answer(two, `{"result":{"type":"number"}}`)
			}
			wantCode(t, first, code)
			wantCode(t, second, code)
			if code != "" {
				wantCode(t, call(tr, page, ""), api.CodeBusy)
			}
		})
	}
}

// A domain is enabled for the first who listens, and disabled after the last, unless a caller has enabled it.
func TestDomainsAreShared(t *testing.T) {
	withTracker(t, func(tr *Tracker, page *Target, f *muxtest.Browser, _ *heard) {
		d := tr.Domains
		sent := func() (all []string) {
			synctest.Wait()
			for len(f.Sent) > 0 {
				all = append(all, (<-f.Sent).Method)
			}
			return all
		}
		locked := func(do func()) []string {
			tr.Mux.Lock()
			do()
			tr.Mux.Unlock()
			return sent()
		}
		for i, step := range []struct {
			do   func()
			want []string
		}{
			{func() { d.Enable(page, "CSS") }, []string{"CSS.enable"}},
			{func() { d.Enable(page, "CSS") }, nil},
			{func() { d.Disable(page, "CSS") }, nil},
			{func() { d.Disable(page, "CSS") }, []string{"CSS.disable"}},
			{func() { d.Enable(page, "Network") }, nil}, // the recorder has it enabled
			{func() { d.Disable(page, "Network") }, nil},
		} {
			if got := locked(step.do); !slices.Equal(got, step.want) {
				t.Errorf("step %d sends %q, want %q", i, got, step.want)
			}
		}
	})
}

func TestFramesInsideAPage(t *testing.T) {
	withTracker(t, func(tr *Tracker, page *Target, f *muxtest.Browser, _ *heard) {
		f.Report("S", "Page.frameAttached", map[string]any{"frameId": "A", "parentFrameId": "T"})
		f.Report("S", "Page.frameNavigated", map[string]any{"frame": map[string]any{
			"id": "B", "parentId": "A", "url": "http://b/", "loaderId": "L"}})
		f.Report("S", "Runtime.executionContextCreated", map[string]any{"context": map[string]any{"id": 7,
			"uniqueId": "u7", "auxData": map[string]any{"frameId": "B", "isDefault": true}}})
		synctest.Wait()
		if b := tr.Frames["B"]; b == nil || b.In != page || b.URL != "http://b/" || page.MainContext("B") != "u7" {
			t.Errorf("the frame is %+v, its context %q", b, page.MainContext("B"))
		}
		f.Report("S", "Page.frameDetached", map[string]any{"frameId": "A", "reason": "remove"})
		f.Report("S", "Runtime.executionContextsCleared", cdp.Empty{})
		synctest.Wait()
		if len(tr.Frames) > 0 || page.MainContext("B") != "" {
			t.Errorf("%d frames are known, and the context %q", len(tr.Frames), page.MainContext("B"))
		}
	})
}
