//go:build linux

package keeper

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/parley-tools/parley/cdp/internal/keeper/api"
	"github.com/parley-tools/parley/cdp/internal/keeper/scan"
)

// recordedSite serves pages whose requests succeed, fail, redirect, and carry cookies and bodies.
func recordedSite(t *testing.T) string {
	t.Helper()
	mux := http.NewServeMux()
	page := func(w http.ResponseWriter, status int, body string) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.WriteHeader(status)
		io.WriteString(w, body)
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		page(w, http.StatusNotFound, "<title>Missing</title>nothing is here")
	})
	mux.HandleFunc("/first", func(w http.ResponseWriter, r *http.Request) {
		page(w, http.StatusOK, `<title>First</title><script>
console.error("at the start", {a: 1}); document.cookie = "jar=PageSecret"
addEventListener("load", () => { setTimeout(() => { throw new Error("thrown at the start") }) })
</script>`)
	})
	mux.HandleFunc("/broken", func(w http.ResponseWriter, r *http.Request) {
		page(w, http.StatusInternalServerError, "<title>Broken</title>")
	})
	mux.HandleFunc("/redirect", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Set-Cookie", "session=SetSecret")
		http.Redirect(w, r, "/first", http.StatusFound)
	})
	mux.HandleFunc("/post", func(w http.ResponseWriter, r *http.Request) {
		page(w, http.StatusCreated, "AnswerBody")
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return server.URL
}

// events reads stored events until ready returns true.
func eventsOf(t *testing.T, c *Client, q api.EventsRequest, ready func([]storedLine) bool) (all []storedLine) {
	t.Helper()
	waitFor(t, fmt.Sprintf("events %+v", q), func() bool {
		found, err := c.Events(testContext(t), q)
		if err != nil {
			t.Fatal(err)
		}
		all = nil
		for _, raw := range found.Events {
			var l storedLine
			if err := json.Unmarshal(raw, &l); err != nil {
				t.Fatal(err)
			}
			l.raw = string(raw)
			all = append(all, l)
		}
		return ready(all)
	})
	return all
}

func some(all []storedLine) bool { return len(all) > 0 }

// storedLine is a record as cdp.events returns it.
type storedLine struct {
	streamLine
	raw string
}

// What a page does is stored from its first moment, without a call that enables anything.
func testRecordedFromTheStart(t *testing.T, c *Client) {
	url := recordedSite(t)
	for path, want := range map[string]int{"/first": 200, "/missing": 404, "/broken": 500, "/redirect": 200} {
		if p := openPage(t, c, url+path); p.Status != want {
			t.Errorf("open %s: status %d, want %d", path, p.Status, want)
		}
	}
	for _, other := range []string{"about:blank", "data:text/html,x"} {
		if p := openPage(t, c, other); p.Status != 0 {
			t.Errorf("open %s: status %d", other, p.Status)
		}
	}
	p := openPage(t, c, url+"/first")
	console := eventsOf(t, c, api.EventsRequest{Target: p.Target, Patterns: []string{"Runtime.consoleAPICalled"}}, some)
	if len(console) != 1 || !strings.Contains(console[0].raw, "at the start") || console[0].Replayed {
		t.Errorf("console: %+v", console)
	}
	thrown := eventsOf(t, c, api.EventsRequest{Target: p.Target, Patterns: []string{"Runtime.exceptionThrown"}}, some)
	if !strings.Contains(thrown[0].raw, "thrown at the start") {
		t.Errorf("exceptions: %+v", thrown)
	}
	document := eventsOf(t, c, api.EventsRequest{Target: p.Target, URL: "/first", Status: "2xx"}, some)
	if len(document) != 1 || document[0].Method != "Network.responseReceived" {
		t.Errorf("the document: %+v", document)
	}
}

func testRecordedFailures(t *testing.T, c *Client) {
	url := recordedSite(t)
	elsewhere := strings.Replace(url, "127.0.0.1", "localhost", 1)
	closed := httptest.NewServer(nil)
	closed.Close()
	p := openPage(t, c, url+"/first")
	_, err := c.Call(testContext(t), api.CallRequest{Method: "Runtime.evaluate", Params: params(map[string]any{
		"awaitPromise": true,
		"expression": fmt.Sprintf(`Promise.allSettled(["/gone", "/broken", %q, %q].map(u => fetch(u)))`,
			elsewhere+"/post?cors", closed.URL+"/refused")})})
	if err != nil {
		t.Fatal(err)
	}
	of := func(q api.EventsRequest) []storedLine {
		q.Target = p.Target
		return eventsOf(t, c, q, some)
	}
	for _, want := range []struct{ url, method, reason string }{
		{"/gone", "Network.responseReceived", `"status":404`},
		{"/broken", "Network.responseReceived", `"status":500`},
		{"/post?cors", "Network.loadingFailed", `"corsError":"MissingAllowOriginHeader"`},
		{"/refused", "Network.loadingFailed", `"errorText":"net::ERR_CONNECTION_REFUSED"`},
	} {
		found := of(api.EventsRequest{Status: "failed", URL: want.url})
		last := found[len(found)-1]
		if last.Method != want.method || !strings.Contains(last.raw, want.reason) ||
			last.Method == "Network.loadingFailed" && !strings.HasSuffix(last.URL, want.url) {
			t.Errorf("%s: %s", want.url, last.raw)
		}
	}
	if found := of(api.EventsRequest{Status: "4xx", URL: "/gone"}); len(found) != 1 {
		t.Errorf("4xx: %d events", len(found))
	}
	// Log has what Chrome reports about them.
	eventsOf(t, c, api.EventsRequest{Target: p.Target, Patterns: []string{"Log.entryAdded"}}, func(all []storedLine) bool {
		return slices.ContainsFunc(all, func(l storedLine) bool { return strings.Contains(l.raw, "/refused") })
	})
	newest := of(api.EventsRequest{Newest: true, Limit: 2})
	if len(newest) != 2 || newest[0].Seq <= newest[1].Seq {
		t.Errorf("the newest: %+v", newest)
	}
	_, err = c.Events(testContext(t), api.EventsRequest{Status: "bad"})
	wantCode(t, err, api.CodeInvalidArgs, "4xx")
	// A page that does not load at all.
	_, err = c.Open(testContext(t), api.OpenRequest{URL: closed.URL + "/unreachable"})
	wantCode(t, err, api.CodeNavigationFailed)
	if found := eventsOf(t, c, api.EventsRequest{URL: "/unreachable", Status: "failed"},
		some); !strings.Contains(found[0].raw,
		"ERR_CONNECTION_REFUSED") {
		t.Errorf("%+v", found)
	}
}

// Records have no cookies, credentials and bodies; a stream has Chrome's events, and bodies can be fetched.
func testRecordsAreRedacted(t *testing.T, c *Client) {
	url := recordedSite(t)
	p := openPage(t, c, url+"/redirect")
	const script = `fetch("/post", {method: "POST", body: "PostedBody", headers: {Authorization: "Basic AuthSecret"}})
		.then(r => r.text())`
	run := func() {
		if _, err := c.Call(testContext(t), api.CallRequest{Method: "Runtime.evaluate",
			Params: params(map[string]any{"expression": script, "awaitPromise": true})}); err != nil {
			t.Error(err)
		}
	}
	run()
	heard, stop := "", errors.New("all was heard")
	if _, err := c.Listen(testContext(t), api.ListenRequest{Patterns: []string{"Network.*"}, Target: p.Target},
		func() { go run() }, func(line json.RawMessage) error {
			heard += string(line)
			if strings.Contains(heard, "AuthSecret") && strings.Contains(heard, "PageSecret") {
				return stop
			}
			return nil
		}); err != stop {
		t.Errorf("the stream lacks headers or cookies: %v", err)
	}
	posted := eventsOf(t, c, api.EventsRequest{URL: "/post", Status: "201"}, some)
	all, err := c.Events(testContext(t), api.EventsRequest{Limit: 10_000})
	if err != nil {
		t.Fatal(err)
	}
	stored := string(scan.Marshal(all))
	for _, secret := range []string{"AuthSecret", "PageSecret", "SetSecret", "PostedBody", "AnswerBody"} {
		if strings.Contains(stored, secret) {
			t.Errorf("a record has %s", secret)
		}
	}
	if !strings.Contains(stored, `"redirectResponse"`) || !strings.Contains(stored, `[redacted]`) {
		t.Error("the redirect is not stored")
	}
	var response struct{ RequestID string }
	json.Unmarshal(posted[0].Params, &response)
	body, err := c.Call(testContext(t), api.CallRequest{Method: "Network.getResponseBody",
		Params: params(map[string]any{"requestId": response.RequestID})})
	if err != nil || !strings.Contains(string(body), "AnswerBody") {
		t.Errorf("the body is %s, %v", body, err)
	}
}

// A caller that disables a domain ends its own events, not the recording; history that Chrome repeats is stored once.
func testRecordingSurvivesDisable(t *testing.T, c *Client) {
	p := openPage(t, c, recordedSite(t)+"/first")
	of := api.EventsRequest{Target: p.Target, Patterns: []string{"Runtime.consoleAPICalled"}}
	eventsOf(t, c, of, some)
	for _, method := range []string{"Runtime.enable", "Runtime.disable", "Network.disable", "Log.disable"} {
		if _, err := c.Call(testContext(t), api.CallRequest{Method: method}); err != nil {
			t.Fatal(err)
		}
	}
	evaluate(t, c, "", `console.log("after the end"); fetch("/gone"); 0`)
	found := eventsOf(t, c, of, func(all []storedLine) bool { return len(all) > 1 })
	if len(found) != 2 || !strings.Contains(found[1].raw, "after the end") || found[1].Replayed {
		t.Errorf("%+v", found)
	}
	eventsOf(t, c, api.EventsRequest{Target: p.Target, URL: "/gone", Status: "404"}, some)
}

// What only the recorder has enabled reaches no stream; a stream that enables it gets the history first.
func testStreamsOfRecordedDomains(t *testing.T, c *Client) {
	p := openPage(t, c, recordedSite(t)+"/first")
	log := func(what string) { evaluate(t, c, "", "console.log('"+what+"'); 0") }
	q := api.ListenRequest{Patterns: []string{"*.consoleAPICalled", "Page.*"}, Until: "Page.loadEventFired"}
	lines, _ := listen(t, c, q, func() {
		log("unheard")
		c.Call(testContext(t), api.CallRequest{Method: "Page.reload"})
	})
	for _, l := range lines {
		if !strings.HasPrefix(l.Method, "Page.") {
			t.Errorf("a stream of pages has %s", l.Method)
		}
	}
	q = api.ListenRequest{Patterns: []string{"Runtime.executionContextCreated", "Runtime.consoleAPICalled"},
		Target: p.Target, Max: 3}
	lines, _ = listen(t, c, q, func() { log("heard") })
	if len(lines) != 3 || lines[0].Method != "Runtime.consoleAPICalled" || !lines[0].Replayed ||
		lines[1].Method != "Runtime.executionContextCreated" || !lines[1].Replayed || lines[2].Replayed {
		t.Errorf("the stream is %+v", lines)
	}
	for i, l := range lines[1:] {
		if l.Seq <= lines[i].Seq {
			t.Errorf("event %d follows %d", l.Seq, lines[i].Seq)
		}
	}
}

// A page frees the objects that it has logged.
func testLoggedObjectsAreReleased(t *testing.T, c *Client) {
	openPage(t, c, recordedSite(t)+"/first")
	used := func() int {
		if _, err := c.Call(testContext(t), api.CallRequest{Method: "HeapProfiler.collectGarbage"}); err != nil {
			t.Fatal(err)
		}
		raw, err := c.Call(testContext(t), api.CallRequest{Method: "Runtime.getHeapUsage"})
		if err != nil {
			t.Fatal(err)
		}
		return scan.Number(raw, "usedSize")
	}
	before := used()
	const script = `for (let i = 0; i < 20000; i++) console.log({text: "x".repeat(200) + i}); 0`
	if _, err := evaluate(t, c, "", script); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "the objects to be released", func() bool { return used() < before+1<<20 })
}

// Workers and frames of other sites are recorded, too.
func TestRecordedChildTargets(t *testing.T) {
	t.Parallel()
	c := startBrowser(t, config(t))
	inner := strings.Replace(site(t, map[string]string{
		"/": `<script>console.log("in the frame"); fetch("/frame-gone")</script>`}), "127.0.0.1", "localhost", 1)
	url := site(t, map[string]string{
		"/":     `<iframe src="` + inner + `/"></iframe><script>w = new Worker("/w.js")</script>`,
		"/w.js": `console.log("in the worker"); fetch("/worker-gone")`,
	})
	openPage(t, c, url+"/")
	for _, want := range []string{"in the frame", "in the worker"} {
		eventsOf(t, c, api.EventsRequest{Patterns: []string{"Runtime.consoleAPICalled"}}, func(all []storedLine) bool {
			return slices.ContainsFunc(all, func(l storedLine) bool { return strings.Contains(l.raw, want) })
		})
	}
	for _, want := range []string{"/frame-gone", "/worker-gone"} {
		eventsOf(t, c, api.EventsRequest{URL: want, Status: "404"}, some)
	}
}

// A page of an external browser is recorded from its first use on, with the history that Chrome has; a page that a
// session opens there, from its first moment.
func TestRecordedInExternalBrowser(t *testing.T) {
	t.Parallel()
	cfg := config(t)
	_, address := startExternalChrome(t, cfg.Chrome)
	url := recordedSite(t)
	otherConfig := config(t)
	otherConfig.Chrome, otherConfig.Attach = "", address
	theirs := openPage(t, startBrowser(t, otherConfig), url+"/first") // by the external browser's own user
	cfg.Chrome, cfg.Attach = "", address
	c := startBrowser(t, cfg)
	of := api.EventsRequest{Patterns: []string{"Runtime.*", "Network.*"}}
	if stored, err := c.Events(testContext(t), of); err != nil || len(stored.Events) != 0 {
		t.Errorf("before its first use the page has the events %s, %v", stored.Events, err)
	}
	if _, err := evaluate(t, c, theirs.Target, `console.log("after"); fetch("/gone"); 0`); err != nil {
		t.Fatal(err)
	}
	of.Target = theirs.Target
	eventsOf(t, c, of, func(all []storedLine) bool {
		has := func(what string, replayed bool) bool {
			return slices.ContainsFunc(all, func(l storedLine) bool {
				return strings.Contains(l.raw, what) && l.Replayed == replayed
			})
		}
		return has("at the start", true) && has(`"after"`, false) && has("/gone", false)
	})
	mine := c.As(someClient)
	if p, err := mine.Open(testContext(t), api.OpenRequest{URL: url + "/broken"}); err != nil || p.Status != 500 {
		t.Errorf("a page of a session: %+v, %v", p, err)
	}
	eventsOf(t, mine, api.EventsRequest{URL: "/broken", Status: "5xx"}, some)
	if stored, err := mine.Events(testContext(t), api.EventsRequest{URL: "/gone"}); err != nil || len(stored.Events) != 0 {
		t.Errorf("the session has events of another page: %s, %v", stored.Events, err)
	}
}
