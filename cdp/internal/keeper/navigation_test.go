//go:build linux

package keeper

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/parley-tools/parley/cdp/internal/keeper/api"
)

// slowSite serves pages that are slow or never end. The response to /late is sent once let is called.
func slowSite(t *testing.T) (url string, let func()) {
	t.Helper()
	gate := make(chan struct{})
	let = sync.OnceFunc(func() { close(gate) })
	pages := map[string]string{
		"/":     plainPage,
		"/loop": "<title>Loop</title><script>while (true);</script>",
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		if r.URL.Path != "/late" {
			fmt.Fprint(w, pages[r.URL.Path])
			return
		}
		select {
		case <-gate:
			fmt.Fprint(w, "<title>Late</title><script>ran = 1</script>")
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(func() { let(); server.Close() })
	return server.URL, let
}

// testSlowServerDoesNotStopScripts lets a navigation time out while the server has not responded. Neither the
// scripts of the current page nor, later, those of the next page may be terminated.
func testSlowServerDoesNotStopScripts(t *testing.T, c *Client) {
	url, let := slowSite(t)
	openPage(t, c, url+"/")
	for _, q := range []api.CallRequest{
		{Method: "Page.navigate", Params: params(map[string]any{"url": url + "/late"})}, evaluation("1"),
	} {
		_, err := c.Call(within(t, 300), q)
		wantCode(t, err, api.CodeTimeout, "navigation")
		if err != nil && strings.Contains(err.Error(), "script") {
			t.Errorf("%s: %v", q.Method, err)
		}
	}
	let()
	waitFor(t, "the next page", func() bool { title, _ := evaluate(t, c, "", "document.title"); return title == `"Late"` })
	wantValue(t, c, "", "window.ran", "1")
}

// TestEndlessScriptAtLoadIsStopped opens a page whose script never returns.
func TestEndlessScriptAtLoadIsStopped(t *testing.T) {
	t.Parallel()
	c := startBrowser(t, config(t))
	wantValue(t, c, "", "1+1", "2") // the first page is ready, so the timeout is for the load alone
	url, _ := slowSite(t)
	_, err := c.Open(within(t, 6000), api.OpenRequest{URL: url + "/loop"})
	wantCode(t, err, api.CodeTimeout, "stopped")
	if raw, err := c.Call(within(t, 20000), evaluation("document.title")); err != nil ||
		!strings.Contains(string(raw), "Loop") {
		t.Errorf("%s, %v", raw, err)
	}
}

// testListenOnCrashedPage starts a stream on a crashed page, then revives the page.
func testListenOnCrashedPage(t *testing.T, c *Client) {
	url := site(t, map[string]string{"/": "<title>T</title><script>console.log('back')</script>"})
	openPage(t, c, url)
	_, err := c.Call(testContext(t), api.CallRequest{Method: "Page.crash"})
	wantCode(t, err, api.CodeTargetCrashed)
	lines, end := listen(t, c, api.ListenRequest{Patterns: []string{"Runtime.consoleAPICalled"}, Max: 1,
		TimeoutMS: 10_000},
		func() {
			c.Call(testContext(t), api.CallRequest{Method: "Page.reload"})
		})
	if end.End != "max" {
		t.Errorf("%+v, %v", lines, end)
	}
}
