//go:build linux

package keeper

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/parley-tools/parley/cdp/internal/keeper/api"
	"github.com/parley-tools/parley/cdp/internal/protocol"
)

// enablePage has something for each domain: a script with a debugger statement that runs all the time, an animation,
// storage, an audio context.
const enablePage = `<!doctype html><title>Enable</title><style>@media (min-width: 1px) { p { color: red } }
@keyframes move { to { left: 9px } } p { animation: move 9s infinite; position: relative }</style><p id=x>Hello</p>
<script>

var seen = [], ticks = 0, audio = new AudioContext();
for (var name of ["blur", "focus", "resize", "scroll", "visibilitychange", "pagehide", "freeze", "error", "offline"])
	for (var where of [window, document]) where.addEventListener(name, e => seen.push(e.type));
new MutationObserver(() => seen.push("mutation")).observe(document, {subtree: true, childList: true, attributes: true});
setInterval(() => { debugger; ticks++ }, 5);
function script() { return 1 }
</script>`

// fingerprint is what a page can see of its surroundings.
const fingerprint = `JSON.stringify([innerWidth, innerHeight, outerWidth, outerHeight, scrollX, scrollY, devicePixelRatio,
	screen.width, screen.height, document.visibilityState, document.hasFocus(), navigator.userAgent, navigator.language,
	navigator.onLine, navigator.webdriver, navigator.hardwareConcurrency, navigator.maxTouchPoints, isSecureContext,
	matchMedia("(prefers-color-scheme: dark)").matches, matchMedia("print").matches, document.documentElement.outerHTML,
	Object.getOwnPropertyNames(window).length, document.getAnimations().map(a => [a.playState, a.playbackRate]),
	getComputedStyle(x).color, document.cookie, audio.state, performance.getEntriesByType("navigation").length, seen])`

// enableCall sends a command with the domains that are to be enabled for it.
func enableCall(t *testing.T, c *Client, method, params string, enable ...string) (string, api.Enabled, error) {
	t.Helper()
	var done api.Enabled
	raw, err := c.OnEnabled(func(e api.Enabled) { done = e }).Call(testContext(t),
		api.CallRequest{Method: method, Params: json.RawMessage(params), Enable: enable})
	return string(raw), done, err
}

// whileListening runs a function while a stream is open, and returns the lines of the stream.
func whileListening(t *testing.T, c *Client, pattern string, run func()) (lines []streamLine) {
	t.Helper()
	ctx, end := context.WithCancel(testContext(t))
	c.Listen(ctx, api.ListenRequest{Patterns: []string{pattern}}, func() { go func() { defer end(); run() }() },
		func(raw json.RawMessage) error {
			lines = append(lines, parseLine(t, raw))
			return nil
		})
	if ctx.Err() == nil {
		t.Errorf("the stream of %s ended early", pattern)
		end()
	}
	return lines
}

// testEnablingIsNotSeen enables each domain of the reviewed table that is enabled for calls. A page sees nothing of it,
// and its scripts go on.
func testEnablingIsNotSeen(t *testing.T, c *Client) {
	openPage(t, c, site(t, map[string]string{"/": enablePage}))
	for _, d := range protocol.Embedded().Domains() {
		if !d.Enabling.Allows(protocol.Read) {
			continue
		}
		before, err := evaluate(t, c, "", fingerprint)
		if err != nil {
			t.Fatal(err)
		}
		// The command does nothing; with it the domain is on for a moment.
		_, done, err := enableCall(t, c, "Runtime.getIsolateId", "{}", append(d.Enabling.Needs, d.Name)...)
		if err != nil {
			t.Errorf("%s: %v", d.Name, err)
		}
		already := slices.Contains([]string{"Network", "Runtime", "Log", "Page"}, d.Name)
		if slices.Contains(done.Off, d.Name) == already {
			t.Errorf("%s was not enabled: %v", d.Name, done)
		}
		// The same for longer: a listener holds the domain. The page's own script goes on.
		ticks, _ := evaluate(t, c, "", "ticks")
		whileListening(t, c, d.Name+".*", func() {
			waitFor(t, "the page to go on", func() bool { now, _ := evaluate(t, c, "", "ticks"); return now != ticks })
		})
		if after, err := evaluate(t, c, "", fingerprint); err != nil || after != before {
			t.Errorf("%s: the page sees\n%s, %v\nbefore it saw\n%s", d.Name, after, err, before)
		}
	}
}

// testEnableForCall makes a call of each domain that Chrome answers with an error of its own wording, and repeats it
// with the domain enabled.
func testEnableForCall(t *testing.T, c *Client) {
	for _, test := range []struct {
		method, params string
		wording        string // of Chrome's error, "" if the result is empty instead
		enable         []string
		kept           bool
	}{
		{"Accessibility.getRootAXNode", `{}`, "Accessibility has not been enabled.", []string{"Accessibility"}, false},
		{"CSS.getLonghandProperties", `{"shorthandName":"margin","value":"1px"}`, "CSS agent was not enabled",
			[]string{"DOM", "CSS"}, false},
		{"CSS.getMediaQueries", `{}`, "", []string{"DOM", "CSS"}, true},
		{"CSS.enable", `{}`, "DOM agent needs to be enabled first.", []string{"DOM"}, true},
		{"DOM.getFlattenedDocument", `{}`, "DOM agent hasn't been enabled", []string{"DOM"}, true},
		{"DOM.performSearch", `{"query":"p"}`, "DOM agent is not enabled", []string{"DOM"}, true},
		{"Overlay.enable", `{}`, "DOM should be enabled first", []string{"DOM"}, true},
		{"Overlay.highlightRect", `{"x":1,"y":1,"width":9,"height":9}`, "Overlay must be enabled before a tool can be shown",
			[]string{"DOM", "Overlay"}, true},
		{"DOM.highlightRect", `{"x":1,"y":1,"width":9,"height":9}`, "Overlay must be enabled before a tool can be shown",
			[]string{"DOM", "Overlay"}, true},
		{"Performance.getMetrics", `{}`, "", []string{"Performance"}, false},
		{"Profiler.startPreciseCoverage", `{}`, "Profiler is not enabled", []string{"Profiler"}, true},
		{"Profiler.stopPreciseCoverage", `{}`, "Profiler is not enabled", []string{"Profiler"}, false},
		{"ServiceWorker.skipWaiting", `{"scopeURL":"http://127.0.0.1/"}`, "ServiceWorker domain not enabled",
			[]string{"ServiceWorker"}, false},
	} {
		t.Run(test.method, func(t *testing.T) {
			openPage(t, c, site(t, map[string]string{"/": enablePage}))
			answer := func(enable ...string) string {
				raw, _, err := enableCall(t, c, test.method, test.params, enable...)
				if err != nil {
					return err.Error()
				}
				return raw
			}
			disabled := func(answer string) bool {
				return test.wording != "" && strings.Contains(answer, test.wording) ||
					test.wording == "" && strings.HasSuffix(answer, `:[]}`)
			}
			if got := answer(); !disabled(got) {
				t.Fatalf("before: %s", got)
			}
			raw, done, err := enableCall(t, c, test.method, test.params, test.enable...)
			if err != nil || disabled(raw) {
				t.Fatalf("with %v: %s, %v", test.enable, raw, err)
			}
			reported, others := done.Off, done.Kept
			if test.kept {
				reported, others = others, reported
			}
			slices.Reverse(reported)
			if !slices.Equal(reported, test.enable) || others != nil {
				t.Errorf("reported %+v, want %v, kept %t", done, test.enable, test.kept)
			}
			if test.method == "Performance.getMetrics" { // which overtakes the command that disables its domain
				waitFor(t, "the domain to be disabled", func() bool { return disabled(answer()) })
			}
			if got := answer(); disabled(got) == test.kept {
				t.Errorf("afterwards: %s, want it kept: %t", got, test.kept)
			}
		})
	}
}

// testIDsSurvive uses ids after the call in which their domain was enabled.
func testIDsSurvive(t *testing.T, c *Client) {
	openPage(t, c, site(t, map[string]string{"/": enablePage}))
	must := func(method, params string, enable ...string) (r map[string]any, done api.Enabled) {
		t.Helper()
		raw, done, err := enableCall(t, c, method, params, enable...)
		if err != nil {
			t.Fatalf("%s: %v", method, err)
		}
		json.Unmarshal([]byte(raw), &r)
		return r, done
	}
	// Chrome enables DOM with getDocument. It stays on after a call that needs CSS, which needs DOM.
	must("DOM.getDocument", `{"depth":-1}`)
	found, _ := must("DOM.querySelector", `{"nodeId":1,"selector":"p"}`)
	node := fmt.Sprintf(`{"nodeId":%v}`, found["nodeId"])
	if _, done := must("CSS.getComputedStyleForNode", node, "DOM", "CSS"); !slices.Equal(done.Off, []string{"CSS"}) {
		t.Errorf("for CSS.getComputedStyleForNode %+v", done)
	}
	must("DOM.getOuterHTML", node)
	// The ids of style sheets keep CSS.
	if _, done := must("CSS.getMatchedStylesForNode", node, "DOM", "CSS"); !slices.Equal(done.Kept, []string{"CSS"}) {
		t.Errorf("for CSS.getMatchedStylesForNode %+v", done)
	}
	media, _ := must("CSS.getMediaQueries", `{}`)
	sheet := media["medias"].([]any)[0].(map[string]any)["styleSheetId"]
	must("CSS.collectClassNames", fmt.Sprintf(`{"styleSheetId":%q}`, sheet))
	must("DOM.getOuterHTML", node)

	// Ids of the accessibility tree and of objects survive their domains, and so does a script's.
	p := openPage(t, c, site(t, map[string]string{"/": enablePage}))
	root, _ := must("Accessibility.getRootAXNode", `{}`, "Accessibility")
	must("Accessibility.getChildAXNodes", fmt.Sprintf(`{"id":%q}`, root["node"].(map[string]any)["nodeId"]),
		"Accessibility")
	document, _ := must("Runtime.evaluate", `{"expression":"document"}`, "Runtime")
	must("Runtime.getProperties", fmt.Sprintf(`{"objectId":%q}`, document["result"].(map[string]any)["objectId"]))
	function, _ := must("Runtime.evaluate", `{"expression":"script"}`)
	raw, _, err := enableCall(t, c, "Runtime.getProperties",
		fmt.Sprintf(`{"objectId":%q,"ownProperties":true}`, function["result"].(map[string]any)["objectId"]))
	_, script, ok := strings.Cut(raw, `"scriptId":"`)
	script, _, _ = strings.Cut(script, `"`)
	if err != nil || !ok {
		t.Fatalf("no script: %s, %v", raw, err)
	}
	for range 2 {
		waitFor(t, "the debugger to be off", func() bool { // Chrome lets this command overtake the one that disables it
			_, _, err := enableCall(t, c, "Debugger.getScriptSource", fmt.Sprintf(`{"scriptId":%q}`, script))
			return err != nil && strings.Contains(err.Error(), "Debugger agent is not enabled")
		})
		source, done := must("Debugger.getScriptSource", fmt.Sprintf(`{"scriptId":%q}`, script), "Debugger")
		if !strings.Contains(fmt.Sprint(source), "function script()") || !slices.Equal(done.Off, []string{"Debugger"}) {
			t.Errorf("script %v: %v, %+v", script, source, done)
		}
	}

	// The ids of audio contexts come with events, and stay valid without the domain.
	contexts := api.ListenRequest{Patterns: []string{"WebAudio.contextCreated"}, Target: p.Target, Max: 1}
	lines, _ := listen(t, c, contexts, nil)
	var created struct {
		Context struct {
			ID string `json:"contextId"`
		}
	}
	json.Unmarshal(lines[0].Params, &created)
	asked := fmt.Sprintf(`{"contextId":%q}`, created.Context.ID)
	_, _, err = enableCall(t, c, "WebAudio.getRealtimeData", asked)
	wantCode(t, err, api.CodeProtocolError, "Enable agent first.")
	must("WebAudio.getRealtimeData", asked, "WebAudio")
}

// testEnabledEventsAreQuiet makes calls that enable domains, beside listeners that did not ask for those.
func testEnabledEventsAreQuiet(t *testing.T, c *Client) {
	openPage(t, c, site(t, map[string]string{"/": enablePage}))
	status := value(c.Status(testContext(t), false))
	domains := []string{"CSS", "DOM", "Debugger", "Profiler"}
	lines := whileListening(t, c, "*", func() {
		for method, params := range map[string]string{
			"CSS.getMediaQueries": `{}`, "CSS.getLonghandProperties": `{"shorthandName":"margin","value":"1px"}`,
			"DOM.getFlattenedDocument": `{}`, "Debugger.setAsyncCallStackDepth": `{"maxDepth":4}`,
			"Profiler.stopPreciseCoverage": `{}`,
		} {
			enable := []string{api.DomainOf(method)}
			if enable[0] == "CSS" {
				enable = []string{"DOM", "CSS"}
			}
			if _, _, err := enableCall(t, c, method, params, enable...); err != nil {
				t.Errorf("%s: %v", method, err)
			}
		}
		for _, expression := range []string{"x.setAttribute('title', 1)", "console.log(1)", "eval('2')", "fetch('/')"} {
			if _, err := evaluate(t, c, "", "void "+expression); err != nil {
				t.Error(err)
			}
		}
		if _, err := c.Call(testContext(t), api.CallRequest{Method: "Page.reload", Wait: api.WaitLoad}); err != nil {
			t.Error(err)
		}
	})
	for _, l := range lines {
		if slices.Contains(domains, api.DomainOf(l.Method)) {
			t.Errorf("a listener of all events got %s", l.Method)
		}
	}
	stored := func(patterns ...string) (methods []string) {
		t.Helper()
		found, err := c.Events(testContext(t), api.EventsRequest{Since: status.Events.LastSeq, Patterns: patterns,
			Limit: 9999})
		if err != nil {
			t.Fatal(err)
		}
		for _, raw := range found.Events {
			methods = append(methods, parseLine(t, raw).Method)
		}
		return methods
	}
	for _, patterns := range [][]string{nil, {"*"}, {"*.attributeModified", "Page.*"}} {
		for _, method := range stored(patterns...) {
			if slices.Contains(domains, api.DomainOf(method)) {
				t.Errorf("with the patterns %q %s is stored", patterns, method)
			}
		}
	}
	// Of a domain that stays on, who asks for it gets its events.
	if got := stored("DOM.*"); !slices.Contains(got, "DOM.attributeModified") {
		t.Errorf("DOM.*: %q", got)
	}
	// Once a caller has enabled it, its events are for everybody.
	if _, _, err := enableCall(t, c, "DOM.enable", `{}`); err != nil {
		t.Fatal(err)
	}
	status = value(c.Status(testContext(t), false))
	if _, _, err := enableCall(t, c, "DOM.getDocument", `{"depth":-1}`); err != nil {
		t.Fatal(err)
	}
	wantValue(t, c, "", "x.setAttribute('title', 2), 1", "1")
	waitFor(t, "the event", func() bool { return slices.Contains(stored(), "DOM.attributeModified") })
}

// testDebuggerSkipsPauses enables the debugger in a page that runs into debugger statements all the time. It pauses
// when a caller enables it, and not before.
func testDebuggerSkipsPauses(t *testing.T, c *Client) {
	url := site(t, map[string]string{"/": enablePage})
	elsewhere := strings.Replace(url, "127.0.0.1", "localhost", 1) // in another process
	openPage(t, c, url)
	goesOn := func() {
		t.Helper()
		before, err := evaluate(t, c, "", "ticks")
		if err != nil {
			t.Fatal(err)
		}
		waitFor(t, "the page to go on", func() bool { now, _ := evaluate(t, c, "", "ticks"); return now != before })
	}
	for range 20 {
		if _, _, err := enableCall(t, c, "Debugger.getStackTrace", `{"stackTraceId":{"id":"7"}}`, "Debugger"); err == nil {
			t.Error("there is no such stack trace")
		}
	}
	goesOn()
	moves := func() {
		t.Helper()
		for _, to := range []string{elsewhere, url, url} {
			if _, err := c.Call(testContext(t), api.CallRequest{Method: "Page.navigate",
				Params: params(map[string]any{"url": to}),
				Wait:   api.WaitLoad}); err != nil {
				t.Error(err)
			}
			goesOn()
		}
	}
	whileListening(t, c, "Debugger.*", moves)
	goesOn()
	if _, done, err := enableCall(t, c, "Debugger.setAsyncCallStackDepth", `{"maxDepth":4}`, "Debugger"); err != nil ||
		!slices.Equal(done.Kept, []string{"Debugger"}) {
		t.Errorf("%+v, %v", done, err)
	}
	goesOn()
	moves()
	lines, _ := listen(t, c, api.ListenRequest{Patterns: []string{"Debugger.*"}, Until: "Debugger.paused"}, func() {
		// It is enabled twice: for the listener, without pauses, and by the caller.
		if _, _, err := enableCall(t, c, "Debugger.enable", `{}`); err != nil {
			t.Error(err)
		}
	})
	if n := len(lines); n == 0 || lines[n-1].Replayed || slices.ContainsFunc(lines[:n-1], func(l streamLine) bool {
		return l.Method == "Debugger.paused" || l.Method == "Debugger.resumed"
	}) {
		t.Errorf("the listener got pauses of the engine: %v", lines)
	}
	for _, method := range []string{"Debugger.setSkipAllPauses", "Debugger.resume", "Debugger.disable"} {
		if _, _, err := enableCall(t, c, method, `{"skip":true}`); err != nil {
			t.Errorf("%s: %v", method, err)
		}
	}
	goesOn()
	// It disables it while somebody listens.
	whileListening(t, c, "Debugger.*", func() {
		for _, method := range []string{"Debugger.enable", "Debugger.disable"} {
			if _, _, err := enableCall(t, c, method, `{}`); err != nil {
				t.Errorf("%s: %v", method, err)
			}
		}
		goesOn()
	})
}

// testNeverEnabled asks for domains that change what the page sees, and for the debugger on behalf of commands that
// write.
func testNeverEnabled(t *testing.T, c *Client) {
	openPage(t, c, site(t, map[string]string{"/": enablePage}))
	for _, domain := range []string{"BluetoothEmulation", "Cast", "DeviceAccess", "FedCm", "Fetch", "SmartCardEmulation",
		"WebAuthn", "Nothing", "Page.crash;"} {
		_, _, err := enableCall(t, c, "Runtime.getIsolateId", `{}`, domain)
		wantCode(t, err, api.CodeInvalidArgs, domain)
	}
	_, _, err := enableCall(t, c, "Debugger.setBreakpointByUrl", `{"lineNumber":1,"url":"a"}`, "Debugger")
	wantCode(t, err, api.CodeInvalidArgs, "Debugger")
	_, _, err = enableCall(t, c, "Debugger.setBreakpointByUrl", `{"lineNumber":1,"url":"a"}`)
	wantCode(t, err, api.CodeProtocolError, "not enabled")
	for domain, want := range map[string]bool{"Fetch": false, "WebAuthn": false, "Cast": false, "DeviceAccess": false,
		"FedCm": false, "Debugger": true, "Network": true, "Unknown": true} {
		if api.ListenEnables(domain) != want {
			t.Errorf("listening enables %s: %t", domain, !want)
		}
	}
}

// testEnablingDuringNavigations makes calls that enable domains, also at the same time, while the page reloads and
// moves to another process and back. Each ends, and afterwards nothing is left on.
func testEnablingDuringNavigations(t *testing.T, c *Client) {
	url := site(t, map[string]string{"/": enablePage})
	p := openPage(t, c, url)
	var calls sync.WaitGroup
	for i := range 4 {
		calls.Go(func() {
			for range rounds(10) * 20 {
				if _, _, err := enableCall(t, c, "Accessibility.getRootAXNode", `{}`, "Accessibility"); err != nil {
					var e *api.Error
					if !errors.As(err, &e) || e.Code != api.CodeProtocolError || strings.Contains(e.Message, "enabled") {
						t.Errorf("%d: %v", i, err)
					}
				}
				enableCall(t, c, "Debugger.getStackTrace", `{"stackTraceId":{"id":"7"}}`, "Debugger")
				enableCall(t, c, "CSS.getLonghandProperties", `{"shorthandName":"margin","value":"1px"}`, "DOM", "CSS")
			}
		})
	}
	for range rounds(10) * 3 {
		for _, to := range []string{strings.Replace(url, "127.0.0.1", "localhost", 1), url, url} {
			if _, err := c.Call(testContext(t), api.CallRequest{Target: p.Target, Method: "Page.navigate",
				Params: params(map[string]any{"url": to}), Wait: api.WaitLoad}); err != nil {
				t.Error(err)
			}
		}
	}
	calls.Wait()
	before, err := evaluate(t, c, "", "ticks")
	if err != nil {
		t.Error(err)
	}
	waitFor(t, "the page to go on", func() bool { now, _ := evaluate(t, c, "", "ticks"); return now != before })
	for method, request := range map[string]string{"Accessibility.getRootAXNode": `{}`,
		"DOM.performSearch":         `{"query":"p"}`,
		"CSS.getLonghandProperties": `{"shorthandName":"margin","value":"1px"}`, "Debugger.getScriptSource": `{"scriptId":"9"}`} {
		waitFor(t, "the domain to be off", func() bool {
			_, _, err := enableCall(t, c, method, request)
			return err != nil && strings.Contains(err.Error(), "enabled")
		})
	}
	// The engine still knows about dialogs, which Page events report.
	_, err = evaluate(t, c, "", "alert(1)")
	wantCode(t, err, api.CodeBusy)
}
