package verb

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-tools/parley/cdp/internal/keeper/api"
	"github.com/parley-tools/parley/cdp/internal/keeper/mux/muxtest"
)

// callTest is a test in which calls need domains of a page.
type callTest struct {
	*testing.T
	e *Verbs
	f *muxtest.Browser
}

func withEnabling(t *testing.T, test func(callTest)) {
	withPage(t, func(t *testing.T, e *Verbs, f *muxtest.Browser) { test(callTest{t, e, f}) })
}

func (x callTest) start(ctx context.Context, method string, enable ...string) <-chan *api.Error {
	ended := make(chan *api.Error, 1)
	go func() {
		ended <- x.e.Call(ctx, api.CommandLine, nil, api.CallRequest{Method: method, Enable: enable}).Err
	}()
	synctest.Wait()
	return ended
}

// sent expects that the browser receives commands, and nothing else, and returns them. Those of several calls come in
// any order.
func (x callTest) sent(methods ...string) []muxtest.Command {
	x.Helper()
	synctest.Wait()
	var all []muxtest.Command
	var got []string
	for len(x.f.Sent) > 0 {
		q := <-x.f.Sent
		all, got = append(all, q), append(got, q.Method)
	}
	if !slices.Equal(slices.Sorted(slices.Values(got)), slices.Sorted(slices.Values(methods))) {
		x.Fatalf("the browser received %q, want %q", got, methods)
	}
	slices.SortStableFunc(all, func(a, b muxtest.Command) int {
		return slices.Index(methods, a.Method) - slices.Index(methods, b.Method)
	})
	return all
}

func (x callTest) answer(all []muxtest.Command) {
	for _, q := range all {
		x.f.Answer(q, "{}")
	}
	synctest.Wait()
}

// stored returns the stored events that a request without patterns returns.
func (x callTest) stored() (n int) {
	found, _ := x.e.Owners.StoredEvents(api.CommandLine, api.EventsRequest{})
	for _, raw := range found.Events {
		if strings.Contains(string(raw), "DOM.") {
			n++
		}
	}
	return n
}

func TestCallsShareAnEnabledDomain(t *testing.T) {
	withEnabling(t, func(x callTest) {
		one := x.start(x.Context(), "Accessibility.getRootAXNode", "DOM")
		starting := x.sent("DOM.enable")
		two := x.start(x.Context(), "Audits.checkFormsIssues", "DOM")
		x.sent() // it waits until DOM is enabled
		x.f.Event("DOM.documentUpdated")
		x.answer(starting)
		commands := x.sent("Accessibility.getRootAXNode", "Audits.checkFormsIssues")
		x.answer(commands[:1])
		wantResult(x.T, "the first call", one, "")
		x.sent() // the second call still needs it
		// A caller that enables the domain itself waits until the engine has disabled it.
		own := x.start(x.Context(), "DOM.enable")
		x.sent()
		x.answer(commands[1:])
		wantResult(x.T, "the second call", two, "")
		ending := x.sent("DOM.disable", "DOM.enable")
		if ending[0].ID > ending[1].ID {
			x.Error("the caller's own command was sent first")
		}
		x.f.Event("DOM.documentUpdated")
		synctest.Wait()
		if n := x.stored(); n != 0 {
			x.Errorf("%d events of DOM are stored", n)
		}
		x.answer(ending)
		wantResult(x.T, "the caller's own", own, "")
		x.f.Event("DOM.documentUpdated")
		synctest.Wait()
		if n := x.stored(); n != 1 {
			x.Errorf("%d events of DOM are stored, want that of the domain that a caller has enabled", n)
		}
		// What a caller has enabled stays on, even if Chrome says that it is not.
		again := x.start(x.Context(), "Accessibility.getRootAXNode", "DOM")
		x.answer(x.sent("DOM.enable"))
		x.answer(x.sent("Accessibility.getRootAXNode"))
		wantResult(x.T, "a third call", again, "")
		x.sent()
	})
}

// A domain stays enabled with those that it needs after a command whose ids end with it.
func TestDomainIsKeptForIDs(t *testing.T) {
	withEnabling(t, func(x callTest) {
		call := x.start(x.Context(), "CSS.getMatchedStylesForNode", "DOM", "CSS")
		x.answer(x.sent("DOM.enable"))
		x.answer(x.sent("CSS.enable"))
		x.answer(x.sent("CSS.getMatchedStylesForNode"))
		wantResult(x.T, "the call", call, "")
		x.sent()
		x.f.Event("DOM.documentUpdated")
		synctest.Wait()
		if n := x.stored(); n != 0 {
			x.Errorf("%d events of DOM are stored, which nobody has asked for", n)
		}
	})
}

// No page pauses for a debugger that the engine has enabled, until a caller enables it.
func TestDebuggerWithoutPauses(t *testing.T) {
	withEnabling(t, func(x callTest) {
		params := func(all []muxtest.Command) (text string) {
			for _, q := range all {
				text += string(q.Params)
			}
			return text
		}
		call := x.start(x.Context(), "Debugger.getScriptSource", "Debugger")
		enabling := x.sent("Debugger.setSkipAllPauses", "Debugger.enable")
		if enabling[0].ID > enabling[1].ID || !strings.Contains(params(enabling[:1]), `"skip":true`) {
			x.Errorf("the debugger is enabled by %+v", enabling)
		}
		x.answer(enabling)
		running := x.sent("Debugger.setBreakpointsActive", "Debugger.getScriptSource")
		if got := params(running[:1]); !strings.Contains(got, `"active":false`) {
			x.Errorf("breakpoints are set %s", got)
		}
		// The page pauses once after it moved to another process.
		l, err := x.e.Events.Listen(api.CommandLine, api.ListenRequest{Patterns: []string{"*"}}, nil)
		if err != nil {
			x.Fatal(err)
		}
		x.f.Event("Debugger.paused")
		x.answer(x.sent("Debugger.setSkipAllPauses", "Debugger.resume"))
		x.f.Event("Debugger.resumed")
		synctest.Wait()
		l.Finish("closed")
		if lines, _ := l.Next("b"); lines != nil {
			x.Errorf("a listener got %s", lines)
		}
		x.answer(running)
		wantResult(x.T, "the call", call, "")
		x.answer(x.sent("Debugger.disable"))

		l, err = x.e.Events.Listen(api.CommandLine, api.ListenRequest{Patterns: []string{"Debugger.*"}}, nil)
		if err != nil {
			x.Fatal(err)
		}
		x.answer(x.sent("Debugger.setSkipAllPauses", "Debugger.enable"))
		x.answer(x.sent("Debugger.setBreakpointsActive"))
		own := x.start(x.Context(), "Debugger.enable")
		x.answer(x.sent("Debugger.enable"))
		pausing := x.sent("Debugger.setBreakpointsActive", "Debugger.setSkipAllPauses")
		if got := params(pausing); !strings.Contains(got, `"active":true`) || !strings.Contains(got, `"skip":false`) {
			x.Errorf("for a caller the debugger is set %s", got)
		}
		x.answer(pausing)
		wantResult(x.T, "the caller's own", own, "")
		x.f.Event("Debugger.paused")
		synctest.Wait()
		l.Finish("closed")
		if lines, _ := l.Next("b"); !strings.Contains(fmt.Sprintf("%s", lines), "Debugger.paused") {
			x.Errorf("the listener got %s", lines)
		}
	})
}

func TestListenerComesDuringCall(t *testing.T) {
	withEnabling(t, func(x callTest) {
		call := x.start(x.Context(), "Accessibility.getRootAXNode", "Audits")
		x.answer(x.sent("Audits.enable"))
		command := x.sent("Accessibility.getRootAXNode")
		l, err := x.e.Events.Listen(api.CommandLine, api.ListenRequest{Patterns: []string{"Audits.*"}}, nil)
		if err != nil {
			x.Fatal(err)
		}
		x.sent()
		x.answer(command)
		wantResult(x.T, "the call", call, "")
		// Chrome replays issues to who enables it, which was the engine: so it is enabled again.
		restart := x.sent("Audits.disable", "Audits.enable")
		if restart[0].ID > restart[1].ID || !x.e.Tracker.All[0].Domain("Audits").Enabling {
			x.Error("the listener does not wait for its history")
		}
		x.answer(restart)
		x.f.Event("Audits.issueAdded")
		synctest.Wait()
		if lines, _ := l.Next("b"); !strings.Contains(fmt.Sprintf("%s", lines), "Audits.issueAdded") {
			x.Errorf("the listener got %s", lines)
		}
		// A call beside the listener changes nothing for it; the listener may end first.
		call = x.start(x.Context(), "Accessibility.getRootAXNode", "Audits")
		x.answer(x.sent("Audits.enable"))
		command = x.sent("Accessibility.getRootAXNode")
		x.e.Events.Unlisten(l)
		x.sent()
		x.answer(command)
		wantResult(x.T, "the call", call, "")
		x.answer(x.sent("Audits.disable"))
	})
}

func TestEnableForCallThatEndsEarly(t *testing.T) {
	for name, end := range map[string]struct {
		how  func(x callTest)
		code string
		sent []string
	}{
		"deadline": {func(callTest) { time.Sleep(2 * time.Second) }, api.CodeTimeout, []string{"DOM.disable"}},
		"crash":    {func(x callTest) { x.f.Event("Inspector.targetCrashed") }, api.CodeTargetCrashed, nil},
		"detached": {func(x callTest) {
			x.f.Messages <- `{"method":"Target.detachedFromTarget","params":{"sessionId":"S","targetId":"T"}}`
		}, api.CodeNotFound, nil},
		"dialog": {func(x callTest) {
			x.f.Messages <- `{"method":"Page.javascriptDialogOpening","sessionId":"S","params":{"type":"alert","message":"m"}}`
		}, api.CodeBusy, []string{"DOM.disable"}},
		"connection": {func(x callTest) { x.e.Mux.FailAll(api.Errorf(api.CodeChromeConnection, "gone")) },
			api.CodeChromeConnection, nil},
	} {
		t.Run(name, func(t *testing.T) {
			withEnabling(t, func(x callTest) {
				ctx, cancel := context.WithTimeout(x.Context(), time.Second)
				defer cancel()
				call := x.start(ctx, "Accessibility.getRootAXNode", "DOM")
				starting := x.sent("DOM.enable")
				end.how(x)
				wantResult(x.T, "the call", call, end.code)
				x.sent(end.sent...)
				x.answer(starting) // late
			})
		})
	}
}

func TestCrashDuringCall(t *testing.T) {
	withEnabling(t, func(x callTest) {
		call := x.start(x.Context(), "Accessibility.getRootAXNode", "DOM")
		x.answer(x.sent("DOM.enable"))
		x.sent("Accessibility.getRootAXNode")
		x.f.Event("Inspector.targetCrashed")
		wantResult(x.T, "the call", call, api.CodeTargetCrashed)
		x.sent()
		// Chrome restores the domains of a session in the next renderer.
		reload := x.start(x.Context(), "Page.reload")
		x.answer(x.sent("Page.reload"))
		wantResult(x.T, "the reload", reload, "")
		x.f.Event("Inspector.targetReloadedAfterCrash")
		x.f.Event("DOM.documentUpdated")
		x.f.Messages <- `{"method":"Page.frameNavigated","sessionId":"S","params":{"frame":{"id":"T","loaderId":"L","url":"http://a/"}}}`
		x.answer(x.sent("DOM.disable"))
		if n := x.stored(); n != 0 {
			x.Errorf("%d events of DOM are stored", n)
		}
		x.f.Event("DOM.documentUpdated")
		synctest.Wait()
		if n := x.stored(); n != 1 {
			x.Error("the events of a domain stay hidden after it has ended")
		}
	})
}
