package event

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/parley-tools/parley/cdp/internal/keeper/api"
	"github.com/parley-tools/parley/cdp/internal/keeper/mux"
	"github.com/parley-tools/parley/cdp/internal/keeper/mux/muxtest"
	"github.com/parley-tools/parley/cdp/internal/keeper/target"
)

// passedOn gives the events of each target to a session of the target's name.
type passedOn struct{ ev *Events }

func (p passedOn) OnTarget(t *target.Target, _ string, _ *target.Target, _ bool) {
	t.Owner = "of " + t.ID
}
func (p passedOn) OnURL(*target.Target, string)                          {}
func (p passedOn) OnNavigationRequested(*target.Target, json.RawMessage) {}
func (p passedOn) OnSession(t *target.Target)                            { p.ev.OnSession(t) }
func (p passedOn) OnSessionEnd(t *target.Target)                         { p.ev.OnSessionEnd(t) }
func (p passedOn) OnForgotten(t *target.Target)                          { p.ev.OnForgotten(t) }
func (p passedOn) WantsSession(t *target.Target) bool                    { return p.ev.WantsSession(t) }
func (p passedOn) OnPaused(*target.Target, json.RawMessage) bool         { return false }
func (p passedOn) OnContexts(t *target.Target)                           { p.ev.RepeatContexts(t) }
func (p passedOn) OnLoss(method string)                                  { p.ev.OnLoss(method) }
func (p passedOn) OnEnd()                                                { p.ev.OnEnd() }
func (p passedOn) OnEvent(t, _ *target.Target, method string, params json.RawMessage) {
	r := &Record{Target: api.BrowserTarget, Method: method, Params: params, Owner: api.DefaultSession}
	if t != nil {
		r.Target, r.Owner = t.ID, t.Owner
	}
	p.ev.OnEvent(r, t)
}

// withEvents runs a test against the events of a browser with the pages T and U, each of a session of its own.
func withEvents(t *testing.T, test func(ev *Events, f *muxtest.Browser)) {
	synctest.Test(t, func(*testing.T) {
		f := muxtest.New()
		m := mux.New(f, 1<<20)
		tr := target.NewTracker(m, "test", false)
		ev := New(tr, 3000, 1<<20)
		tr.Observe(passedOn{ev})
		go m.Read()
		f.Event("attached")
		f.AttachTwice("", "SU", muxtest.Info{ID: "U", Type: "page", URL: "http://u/"})
		synctest.Wait()
		test(ev, f)
		m.Close()
	})
}

// methods returns the methods of stored events of a session.
func methods(t *testing.T, ev *Events, session string, q api.EventsRequest) (all []string) {
	t.Helper()
	q.Patterns = []string{"*"}
	found, err := ev.Stored(api.Caller{Name: "mcp:x", Session: session}, q, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, raw := range found.Events {
		var e struct{ Method string }
		json.Unmarshal(raw, &e)
		all = append(all, e.Method)
	}
	return all
}

func TestEachSessionHasItsEvents(t *testing.T) {
	withEvents(t, func(ev *Events, f *muxtest.Browser) {
		request := func(id, url, cookie string) map[string]any {
			return map[string]any{"requestId": id, "request": map[string]any{"url": url, "method": "GET",
				"headers": map[string]string{"Cookie": cookie}}}
		}
		f.Report("S", "Network.requestWillBeSent", request("1", "http://a/one", "secret"))
		f.Report("SU", "Network.requestWillBeSent", request("1", "http://u/two", "secret"))
		f.Report("S", "Network.loadingFailed", map[string]any{"requestId": "1", "errorText": "net::ERR"})
		f.Report("S", "Network.dataReceived", map[string]any{"requestId": "1"}) // which only a listener gets
		synctest.Wait()
		if got := methods(t, ev, "of T", api.EventsRequest{}); !slices.Equal(got,
			[]string{"Network.requestWillBeSent", "Network.loadingFailed"}) {
			t.Errorf("T has %q", got)
		}
		if got := methods(t, ev, "of T", api.EventsRequest{URL: "/one", Status: "failed"}); !slices.Equal(got,
			[]string{"Network.loadingFailed"}) {
			t.Errorf("the failed request is %q", got)
		}
		if got := methods(t, ev, "of U", api.EventsRequest{}); len(got) != 1 {
			t.Errorf("U has %q", got)
		}
		found, _ := ev.Stored(api.Caller{Name: "of U"}, api.EventsRequest{}, nil)
		if text := string(found.Events[0]); strings.Contains(text, "secret") || !strings.Contains(text, "http://u/two") {
			t.Errorf("stored: %s", text)
		}
	})
}

// A stream enables the domains that it needs for as long as it lasts, and hears its own session's events.
func TestStreams(t *testing.T) {
	withEvents(t, func(ev *Events, f *muxtest.Browser) {
		l, err := ev.Listen(api.Caller{Name: "of T"}, api.ListenRequest{Patterns: []string{"CSS.*"}, Until: "DOM.last"},
			nil)
		if err != nil {
			t.Fatal(err)
		}
		ended := make(chan bool)
		go func() {
			ev.AwaitEnabled(context.Background(), l)
			close(ended)
		}()
		for range 2 {
			if q := <-f.Sent; q.Session != "S" || !slices.Contains([]string{"CSS.enable", "DOM.enable"}, q.Method) {
				t.Errorf("%s is sent in session %s", q.Method, q.Session)
			} else {
				f.Answer(q, "{}")
			}
		}
		<-ended
		f.Report("SU", "CSS.mediaQueryResultChanged", map[string]any{})
		f.Report("S", "CSS.mediaQueryResultChanged", map[string]any{})
		f.Report("S", "DOM.last", map[string]any{})
		synctest.Wait()
		var heard []string
		lines, end := l.Next("test")
		for _, line := range lines {
			var e struct{ Method, Target string }
			json.Unmarshal(line, &e)
			heard = append(heard, e.Target+" "+e.Method)
		}
		heard = append(heard, end)
		if want := []string{"T CSS.mediaQueryResultChanged", "T DOM.last", "until"}; !slices.Equal(heard, want) {
			t.Errorf("%q, want %q", heard, want)
		}
		ev.Unlisten(l)
		var off []string
		for range 2 {
			off = append(off, (<-f.Sent).Method)
		}
		if slices.Sort(off); !slices.Equal(off, []string{"CSS.disable", "DOM.disable"}) {
			t.Errorf("at the end %q are sent", off)
		}
	})
}

func TestStreamEndsWithItsTarget(t *testing.T) {
	withEvents(t, func(ev *Events, f *muxtest.Browser) {
		page := ev.Tracker.ByID["U"]
		listen := func(scope *target.Target) (*Listener, *api.Error) {
			return ev.Listen(api.Caller{Name: "of U"}, api.ListenRequest{Patterns: []string{"Page.*"}}, scope)
		}
		of, err := listen(page)
		if err != nil {
			t.Fatal(err)
		}
		all, err := listen(nil)
		if err != nil {
			t.Fatal(err)
		}
		f.Report("", "Target.targetDestroyed", map[string]any{"targetId": "U"})
		synctest.Wait()
		if _, end := of.Next("test"); end != "closed" || all.end != "" {
			t.Errorf("the page's stream ends with %q, that of all with %q", end, all.end)
		}
		if _, err := listen(page); err == nil || err.Code != api.CodeNotFound {
			t.Errorf("a stream of a page that was closed: %v", err)
		}
	})
}

// Nothing is kept of a page that is closed, also if a worker of it goes on.
func TestNothingIsKeptOfAClosedPage(t *testing.T) {
	withEvents(t, func(ev *Events, f *muxtest.Browser) {
		page := ev.Tracker.ByID["U"]
		f.Report("SU", "Network.requestWillBeSent", map[string]any{"requestId": "1",
			"request": map[string]any{"url": "http://u/x"}})
		f.Attach("SU", muxtest.Info{ID: "W", Type: "shared_worker", URL: "http://u/w.js"})
		synctest.Wait()
		if ev.activities[page] == nil || ev.Tracker.ByID["W"].Parent != page {
			t.Fatal("the page's request is not known")
		}
		f.Report("", "Target.targetDestroyed", map[string]any{"targetId": "U"})
		f.Report("session of W", "Network.loadingFailed", map[string]any{"requestId": "2", "errorText": "net::ERR"})
		synctest.Wait()
		if ev.activities[page] != nil {
			t.Error("the activity of the page is kept")
		}
	})
}
