//go:build linux

package keeper

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"github.com/parley-tools/parley/cdp/internal/keeper/api"
)

// testSite serves testdata/site, and in addition /redirect/N, /loop, /slow, /never, /large.json, /file (a download)
// and /echo (a WebSocket).
func testSite(t *testing.T) string {
	t.Helper()
	mux := http.NewServeMux()
	begun := make(chan struct{}) // the browser has parsed the first part of /slow
	begin := sync.OnceFunc(func() { close(begun) })
	mux.Handle("/", http.FileServer(http.Dir("testdata/site")))
	mux.HandleFunc("/redirect/{n}", func(w http.ResponseWriter, r *http.Request) {
		n, _ := strconv.Atoi(r.PathValue("n"))
		to := "/inner.html"
		if n > 1 {
			to = fmt.Sprint("/redirect/", n-1)
		}
		http.Redirect(w, r, to, http.StatusFound)
	})
	mux.HandleFunc("/loop", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "/loop", http.StatusFound)
	})
	mux.HandleFunc("/slow", func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, "<!doctype html><script src=/begun></script>"+strings.Repeat(" ", 4096))
		w.(http.Flusher).Flush()
		select {
		case <-begun:
		case <-r.Context().Done():
		}
		io.WriteString(w, "<title>Slow</title>")
	})
	mux.HandleFunc("/begun", func(http.ResponseWriter, *http.Request) { begin() })
	mux.HandleFunc("/never", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		io.WriteString(w, "<!doctype html><title>Never</title><p>so far"+strings.Repeat(" ", 4096))
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	})
	mux.HandleFunc("/large.json", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Write(largeJSON())
	})
	mux.HandleFunc("/file", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/octet-stream")
		w.Header().Set("Content-Disposition", `attachment; filename="file.bin"`)
		w.Write(bytes.Repeat([]byte("0123456789"), 10_000))
	})
	var up websocket.Upgrader
	mux.HandleFunc("/echo", func(w http.ResponseWriter, r *http.Request) {
		ws, err := up.Upgrade(w, r, nil)
		if err != nil {
			return
		}
		defer ws.Close()
		for {
			kind, message, err := ws.ReadMessage()
			if err != nil || ws.WriteMessage(kind, message) != nil {
				return
			}
		}
	})
	server := httptest.NewServer(mux)
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	return server.URL
}

// largeSize is larger than one frame, and than one received piece: 2 MiB, or 10 MiB in long runs.
func largeSize() int {
	if rounds(2) > 1 {
		return 10 << 20
	}
	return 2 << 20
}

// largeJSON returns a JSON document of slightly more than largeSize bytes.
func largeJSON() []byte {
	var b bytes.Buffer
	b.WriteString(`{"list":[0`)
	for i := 1; b.Len() < largeSize(); i++ {
		fmt.Fprintf(&b, `,{"n":%d,"text":"text with \"quotes\", \\ and \u00fc"}`, i)
	}
	b.WriteString(`]}`)
	return b.Bytes()
}

// evaluatePromise returns the value that a promise resolves to.
func evaluatePromise(t *testing.T, c *Client, target, expression string) string {
	t.Helper()
	raw, err := c.Call(testContext(t), api.CallRequest{Target: target, Method: "Runtime.evaluate",
		Params: params(map[string]any{"expression": expression, "awaitPromise": true, "returnByValue": true})})
	if err != nil {
		t.Fatalf("%s: %v", expression, err)
	}
	var reply struct {
		Result struct {
			Value json.RawMessage `json:"value"`
		} `json:"result"`
		Exception json.RawMessage `json:"exceptionDetails"`
	}
	if err := json.Unmarshal(raw, &reply); err != nil || reply.Exception != nil {
		t.Fatalf("%s: %s %v", expression, reply.Exception, err)
	}
	return string(reply.Result.Value)
}

func TestSameOriginFramesShareTheirPageTarget(t *testing.T) {
	t.Parallel()
	c := startBrowser(t, config(t))
	openPage(t, c, testSite(t)+"/frames.html")
	wantValue(t, c, "", "document.getElementById('same').contentWindow.here", `"inner"`)
	wantValue(t, c, "", "document.getElementById('data').contentDocument.title", `"Written"`)
	if all, err := c.Targets(testContext(t)); err != nil || len(all) != 1 {
		t.Errorf("targets %+v, %v", all, err)
	}
	// Each frame has an execution context of its own, to which a call can be sent.
	lines, _ := listen(t, c, api.ListenRequest{Patterns: []string{"Runtime.executionContextCreated"}, Max: 3}, nil)
	for _, l := range lines {
		var p struct {
			Context struct {
				UniqueID string `json:"uniqueId"`
			} `json:"context"`
		}
		json.Unmarshal(l.Params, &p)
		_, err := c.Call(testContext(t),
			api.CallRequest{Method: "Runtime.evaluate",
				Params: params(map[string]any{"expression": "document.title", "uniqueContextId": p.Context.UniqueID})})
		if err != nil || !l.Replayed {
			t.Errorf("context %s: %v", l.Params, err)
		}
	}
}

func testDownload(t *testing.T, c *Client) {
	folder := tempDir(t) // removed after the browser has exited
	url := testSite(t)
	p := openPage(t, c, url+"/inner.html")
	download := func(behavior map[string]any) {
		t.Helper()
		call := api.CallRequest{Method: "Browser.setDownloadBehavior", Params: params(behavior)}
		if _, err := c.Call(testContext(t), call); err != nil {
			t.Fatal(err)
		}
	}
	download(map[string]any{"behavior": "allow", "downloadPath": folder, "eventsEnabled": true})
	var began, completed bool
	stop := io.EOF
	_, err := c.Listen(testContext(t), api.ListenRequest{Patterns: []string{"Browser.download*"}}, func() {
		go evaluate(t, c, "", "location = '/file'")
	}, func(raw json.RawMessage) error {
		l := parseLine(t, raw)
		began = began || l.Method == "Browser.downloadWillBegin"
		if completed = strings.Contains(string(l.Params), `"state":"completed"`); completed {
			return stop
		}
		return nil
	})
	if err != stop || !began {
		t.Fatalf("the download: %v, began %v", err, began)
	}
	if info, err := os.Stat(filepath.Join(folder, "file.bin")); err != nil || info.Size() != 100_000 {
		t.Errorf("the file: %v, %v", info, err)
	}
	wantValue(t, c, p.Target, "document.title", `"Inner"`) // the page stays open
	// Opening a page with the download's URL fails, because there is nothing to show. The file would come after the end
	// of the test.
	download(map[string]any{"behavior": "deny"})
	_, err = c.Open(testContext(t), api.OpenRequest{URL: url + "/file"})
	wantCode(t, err, api.CodeNavigationFailed, "net::ERR_ABORTED")
}

func testServiceWorker(t *testing.T, c *Client) {
	openPage(t, c, testSite(t)+"/worker.html")
	evaluatePromise(t, c, "", "ready.then(() => 1)")
	if got := evaluatePromise(t, c, "", "fetch('made').then(r => r.text())"); got != `"made by the worker"` {
		t.Errorf("fetched through the worker: %s", got)
	}
	var worker api.Target
	waitFor(t, "the worker", func() bool {
		all, err := c.Targets(testContext(t))
		for _, one := range all {
			if one.Type == "service_worker" && one.Attached {
				worker = one
			}
		}
		return err != nil || worker.ID != ""
	})
	wantValue(t, c, worker.ID, "here", `"service worker"`)
	lines, _ := listen(t, c, api.ListenRequest{Patterns: []string{"Runtime.consoleAPICalled"}, Max: 1}, func() {
		evaluate(t, c, worker.ID, "console.log('from the worker')")
	})
	if len(lines) != 1 || lines[0].Target != worker.ID {
		t.Errorf("events of the worker: %+v", lines)
	}
}

func testWebSocket(t *testing.T, c *Client) {
	p := openPage(t, c, testSite(t)+"/socket.html")
	lines, end := listen(t, c, api.ListenRequest{Patterns: []string{"Network.webSocket*"},
		Until: "Network.webSocketClosed"},
		func() {
			evaluate(t, c, p.Target, "echo('over and out'); 0")
		})
	var seen []string
	for _, l := range lines {
		seen = append(seen, strings.TrimPrefix(l.Method, "Network.webSocket"))
		if l.Method == "Network.webSocketFrameReceived" && !strings.Contains(string(l.Params), "over and out") {
			t.Errorf("frame %s", l.Params)
		}
	}
	want := "Created WillSendHandshakeRequest HandshakeResponseReceived FrameSent FrameReceived"
	if got := strings.Join(seen, " "); end.End != "until" || !strings.HasPrefix(got, want) {
		t.Errorf("%s (%s), want %s", got, end.End, want)
	}
}

func TestHammerLargeJSON(t *testing.T) {
	t.Parallel()
	c := startBrowser(t, config(t))
	url := testSite(t)
	openPage(t, c, url+"/inner.html")
	size := strconv.Itoa(len(largeJSON()))
	if got := evaluatePromise(t, c, "", "fetch('large.json').then(r => r.text()).then(text => text.length)"); got != size {
		t.Errorf("%s bytes, want %s", got, size)
	}
	var whole struct {
		List []json.RawMessage `json:"list"`
	}
	if err := json.Unmarshal([]byte(evaluatePromise(t, c, "", "fetch('large.json').then(r => r.json())")),
		&whole); err != nil || len(whole.List) < largeSize()/100 {
		t.Errorf("%d values, %v", len(whole.List), err)
	}
	// Fetch it as the body of a recorded response, and as a page. Without Network.enable the body would be discarded
	// when no listener needs the domain.
	if _, err := c.Call(testContext(t), api.CallRequest{Method: "Network.enable"}); err != nil {
		t.Fatal(err)
	}
	lines, _ := listen(t, c, api.ListenRequest{Patterns: []string{"Network.loadingFinished"}, Max: 1}, func() {
		evaluate(t, c, "", "fetch('large.json').then(r => r.text()); 0")
	})
	var finished struct {
		RequestID string `json:"requestId"`
	}
	json.Unmarshal(lines[0].Params, &finished)
	body, err := c.Call(testContext(t),
		api.CallRequest{Method: "Network.getResponseBody", Params: params(map[string]any{"requestId": finished.RequestID})})
	if err != nil || len(body) < largeSize() {
		t.Errorf("body of %d bytes, %v", len(body), err)
	}
	if p := openPage(t, c, url+"/large.json"); p.URL != url+"/large.json" {
		t.Errorf("page %+v", p)
	}
}

func testRedirects(t *testing.T, c *Client) {
	url := testSite(t)
	if p := openPage(t, c, url+"/redirect/5"); p.URL != url+"/inner.html" || p.Title != "Inner" {
		t.Errorf("page %+v", p)
	}
	lines, _ := listen(t, c,
		api.ListenRequest{Patterns: []string{"Network.requestWillBeSent"}, Until: "Page.loadEventFired"}, func() {
			c.Call(testContext(t),
				api.CallRequest{Method: "Page.navigate", Params: params(map[string]any{"url": url + "/redirect/5"})})
		})
	redirected := 0
	for _, l := range lines {
		if strings.Contains(string(l.Params), `"redirectResponse"`) {
			redirected++
		}
	}
	if redirected != 5 {
		t.Errorf("%d redirects in %d lines", redirected, len(lines))
	}
	_, err := c.Open(testContext(t), api.OpenRequest{URL: url + "/loop"})
	wantCode(t, err, api.CodeNavigationFailed, "ERR_TOO_MANY_REDIRECTS")
}

func testSlowAndEndlessResponses(t *testing.T, c *Client) {
	url := testSite(t)
	if p := openPage(t, c, url+"/slow"); p.Title != "Slow" {
		t.Errorf("page %+v", p)
	}
	// enough to load the beginning on a busy machine
	_, err := c.Open(within(t, 3000), api.OpenRequest{URL: url + "/never"})
	wantCode(t, err, api.CodeTimeout, "the page stays open")
	wantValue(t, c, "", "document.body.innerText.trim()", `"so far"`) // the page can be inspected and navigated
	if _, err := c.Call(testContext(t),
		api.CallRequest{Method: "Page.navigate", Params: params(map[string]any{"url": url + "/inner.html"})}); err != nil {
		t.Error(err)
	}
	waitFor(t, "the next page", func() bool {
		v, err := evaluate(t, c, "", "document.title")
		return err == nil && v == `"Inner"`
	})
}

// TestConsoleFloodDuringLoad stores as many events of a page as the ring holds and counts the rest.
func TestConsoleFloodDuringLoad(t *testing.T) {
	t.Parallel()
	cfg := config(t)
	cfg.RingEvents = 1000
	c := startBrowser(t, cfg)
	url := testSite(t)
	openPage(t, c, url+"/inner.html")
	var lines, dropped int64
	end, err := c.Listen(testContext(t),
		api.ListenRequest{Patterns: []string{"Runtime.consoleAPICalled"}, Until: "Page.loadEventFired"}, func() {
			go c.Call(testContext(t),
				api.CallRequest{Method: "Page.navigate", Params: params(map[string]any{"url": url + "/flood.html"})})
		}, func(raw json.RawMessage) error {
			l := parseLine(t, raw)
			if dropped += l.Dropped; l.Method == "Runtime.consoleAPICalled" {
				lines++
			}
			return nil
		})
	if err != nil || end.End != "until" || lines+dropped != 10_000 {
		t.Errorf("%d lines and %d dropped, %+v, %v", lines, dropped, end, err)
	}
	ev, err := c.Events(testContext(t), api.EventsRequest{Limit: 5000})
	if err != nil || len(ev.Events) > 1000 || ev.Dropped < 9_000 {
		t.Errorf("%d events, %d dropped, %v", len(ev.Events), ev.Dropped, err)
	}
	wantValue(t, c, "", "document.title", `"Flood"`)
}

// testCloseNavigatingPages closes pages that just load another document. Chrome loses a close at the moment at which
// the new document replaces the old one.
func testCloseNavigatingPages(t *testing.T, c *Client) {
	url := site(t, map[string]string{"/": plainPage, "/two": "<title>Two</title>"})
	for i := range 8 * rounds(25) {
		p := openPage(t, c, url+"/")
		q := api.CallRequest{Target: p.Target, Method: "Page.reload"}
		if i%4 == 3 {
			q.Method, q.Params = "Page.navigate", params(map[string]any{"url": url + "/two"})
		}
		navigated := make(chan struct{})
		go func() {
			defer close(navigated)
			c.Call(testContext(t), q) // it may fail with the page
		}()
		time.Sleep(time.Duration(i%8) * 4 * time.Millisecond) // the moments of a navigation
		if _, err := c.CloseTarget(testContext(t), p.Target, ""); err != nil {
			t.Fatalf("closing page %d: %v", i, err)
		}
		<-navigated
	}
}
