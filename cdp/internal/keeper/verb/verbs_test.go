package verb

import (
	"context"
	"encoding/json"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/parley-tools/parley/cdp/internal/keeper/api"
	"github.com/parley-tools/parley/cdp/internal/keeper/mux/muxtest"
)

// withVerbs runs a test against the verbs of a browser with the page T, which is the person's current one.
func withVerbs(t *testing.T, test func(e *Verbs, f *muxtest.Browser)) {
	synctest.Test(t, func(*testing.T) {
		f := muxtest.New()
		e := New(f, Options{Name: "test", MaxMessage: 1 << 20, RingEvents: 300, RingBytes: 1 << 20})
		go e.Mux.Read()
		f.Event("attached")
		synctest.Wait()
		test(e, f)
		e.Mux.Close()
	})
}

// answerAll answers commands in the order in which the browser must receive them: methods and results by turns.
func answerAll(t *testing.T, f *muxtest.Browser, script ...string) (all []muxtest.Command) {
	t.Helper()
	for i := 0; i < len(script); i += 2 {
		synctest.Wait()
		if len(f.Sent) == 0 {
			t.Errorf("%s is not sent", script[i])
			return all
		}
		q := <-f.Sent
		if q.Method != script[i] {
			t.Errorf("%s %s is sent instead of %s", q.Method, q.Params, script[i])
		}
		f.Answer(q, script[i+1])
		all = append(all, q)
	}
	return all
}

func TestCallReachesItsPage(t *testing.T) {
	withVerbs(t, func(e *Verbs, f *muxtest.Browser) {
		done := make(chan string, 1)
		go func() {
			r := e.Call(context.Background(), api.CommandLine, nil,
				api.CallRequest{Method: "A.b", Params: json.RawMessage(`{"x":1}`)})
			done <- string(r.Result)
		}()
		if all := answerAll(t, f, "A.b", `{"y":2}`); len(all) == 1 &&
			(all[0].Session != "S" || string(all[0].Params) != `{"x":1}`) {
			t.Errorf("%+v is sent", all)
		}
		if got := <-done; got != `{"y":2}` {
			t.Errorf("the result is %s", got)
		}
		for _, q := range []api.CallRequest{
			{Method: "noname"}, {Method: "A.b", Params: json.RawMessage(`[]`)}, {Method: "A.b", OnDialog: "shrug"},
			{Method: "A.b", Wait: "long"},
		} {
			if r := e.Call(context.Background(), api.CommandLine, nil, q); r.Err == nil || r.Err.Code != api.CodeInvalidArgs {
				t.Errorf("%+v: %v", q, r.Err)
			}
		}
		if len(f.Sent) > 0 {
			t.Errorf("%s is sent", (<-f.Sent).Method)
		}
	})
}

// Opening the first page uses the browser's blank one, and ends with the load event of the new document.
func TestOpenWaitsForLoad(t *testing.T) {
	withVerbs(t, func(e *Verbs, f *muxtest.Browser) {
		e.Tracker.SparePage, e.Tracker.Started = e.Tracker.ByID["T"], true
		type opened struct {
			p   api.Page
			err *api.Error
		}
		done := make(chan opened, 1)
		go func() {
			p, err := e.Open(context.Background(), api.CommandLine, nil, api.OpenRequest{URL: "http://b/"})
			done <- opened{p, err}
		}()
		answerAll(t, f, "Page.navigate", `{"frameId":"T","loaderId":"L"}`)
		f.Report("S", "Page.frameNavigated", map[string]any{"frame": map[string]any{"id": "T", "loaderId": "L",
			"url": "http://b/"}})
		synctest.Wait()
		if len(done) > 0 || len(f.Sent) > 0 {
			t.Fatal("it did not wait for the load event")
		}
		f.Report("S", "Page.loadEventFired", map[string]any{"timestamp": 1})
		answerAll(t, f, "Target.getTargetInfo", `{"targetInfo":{"targetId":"T","type":"page","title":"B","url":"http://b/"}}`)
		if got := <-done; got.err != nil || got.p.Target != "T" || got.p.Title != "B" {
			t.Errorf("%+v", got)
		}
		if page := e.Tracker.ByID["T"]; page.Owner != api.DefaultSession || e.Tracker.SparePage != nil {
			t.Errorf("the page belongs to %q", page.Owner)
		}
	})
}

// Nothing gets between the events of one input: all are sent before the first is answered.
func TestInputIsSentAtOnce(t *testing.T) {
	withVerbs(t, func(e *Verbs, f *muxtest.Browser) {
		done := make(chan *api.Error, 1)
		go func() {
			_, err := e.SendInput(context.Background(), api.CommandLine, api.VerbOptions{}, api.InputRequest{
				Events: []json.RawMessage{
					json.RawMessage(`{"type":"keyDown","key":"a"}`), json.RawMessage(`{"type":"insertText","text":"b"}`)}})
			done <- err
		}()
		synctest.Wait()
		var got []string
		for len(f.Sent) > 0 {
			q := <-f.Sent
			got = append(got, q.Method+string(q.Params))
			defer f.Answer(q, "{}")
		}
		want := []string{`Input.dispatchKeyEvent{"key":"a","type":"keyDown"}`, `Input.insertText{"text":"b"}`}
		if !slices.Equal(got, want) || len(done) > 0 {
			t.Errorf("%q is sent, want %q", got, want)
		}
		_, err := e.SendInput(context.Background(), api.CommandLine, api.VerbOptions{}, api.InputRequest{
			Events: []json.RawMessage{
				json.RawMessage(`{"type":"keyDown"}`), json.RawMessage(`{"type":"wink"}`)}})
		if err == nil || len(f.Sent) > 0 {
			t.Errorf("an unknown event: %v, and %d are sent", err, len(f.Sent))
		}
	})
}

// A function of a script runs in a world of its own; where that lacks the script, the script comes first.
func TestScriptRunsInItsWorld(t *testing.T) {
	withVerbs(t, func(e *Verbs, f *muxtest.Browser) {
		q := api.ScriptRequest{Script: api.PageScript{Plugin: "page", Name: "main", Text: "x",
			SHA256: "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"}}
		q.Function = "go"
		done := make(chan string, 1)
		go func() {
			r, err := e.Script(context.Background(), api.CommandLine, nil, q)
			if err != nil {
				t.Error(err)
			}
			done <- string(r.Value)
		}()
		all := answerAll(t, f,
			"Page.createIsolatedWorld", `{"executionContextId":7}`,
			"Runtime.callFunctionOn", `{"result":{"type":"object","value":{"state":"missing"}}}`,
			"Runtime.evaluate", `{"result":{"type":"undefined"}}`,
			"Page.createIsolatedWorld", `{"executionContextId":7}`,
			"Runtime.callFunctionOn", `{"result":{"type":"object","value":{"state":"called","value":42}}}`)
		if got := <-done; got != "42" {
			t.Errorf("the value is %s", got)
		}
		var world struct{ WorldName, FrameID string }
		if json.Unmarshal(all[0].Params, &world); world.WorldName != q.Script.World() || world.FrameID != "T" {
			t.Errorf("the world is %+v", world)
		}
	})
}
