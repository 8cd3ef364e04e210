//go:build linux

package keeper

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

// leaving serves pages that are hard to leave or to reach: /late answers when it is let.
func leaving(t *testing.T) (url string, let func()) {
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

func navigation(url string, ms int64) CallRequest {
	return CallRequest{Method: "Page.navigate", Params: params(map[string]any{"url": url}), TimeoutMS: ms}
}

func inTime(expression string, ms int64) CallRequest {
	q := evaluation(expression)
	q.TimeoutMS = ms
	return q
}

// TestSlowServerIsNoEndlessScript gives up a navigation whose server does not answer yet: nothing is stopped, neither of the page that is
// there nor, later, of the one that comes.
func TestSlowServerIsNoEndlessScript(t *testing.T) {
	t.Parallel()
	c := start(t, config(t))
	url, let := leaving(t)
	open(t, c, url+"/")
	for _, q := range []CallRequest{navigation(url+"/late", 300), inTime("1", 300)} {
		_, err := c.Call(bounded(t), q)
		wantCode(t, err, CodeTimeout, "navigation")
		if err != nil && strings.Contains(err.Error(), "script") {
			t.Errorf("%s: %v", q.Method, err)
		}
	}
	let()
	waitFor(t, "the page to come", func() bool { title, _ := evaluate(t, c, "", "document.title"); return title == `"Late"` })
	wantValue(t, c, "", "window.ran", "1")
}

// TestPageThatNeverEndsToLoadIsStopped opens a page whose script does not end.
func TestPageThatNeverEndsToLoadIsStopped(t *testing.T) {
	t.Parallel()
	c := start(t, config(t))
	url, _ := leaving(t)
	_, err := c.Open(bounded(t), OpenRequest{URL: url + "/loop", TimeoutMS: 1000})
	wantCode(t, err, CodeTimeout, "stopped")
	if raw, err := c.Call(bounded(t), inTime("document.title", 5000)); err != nil || !strings.Contains(string(raw), "Loop") {
		t.Errorf("%s, %v", raw, err)
	}
}

// TestListenBegunWhileCrashed listens to a page that has crashed, and revives it.
func TestListenBegunWhileCrashed(t *testing.T) {
	t.Parallel()
	c := start(t, config(t))
	url := site(t, map[string]string{"/": "<title>T</title><script>console.log('back')</script>"})
	open(t, c, url)
	_, err := c.Call(bounded(t), CallRequest{Method: "Page.crash"})
	wantCode(t, err, CodeTargetCrashed)
	lines, end := listen(t, c, ListenRequest{Patterns: []string{"Runtime.consoleAPICalled"}, Max: 1, TimeoutMS: 10_000}, func() {
		c.Call(bounded(t), CallRequest{Method: "Page.reload"})
	})
	if end.End != "max" {
		t.Errorf("%+v, %v", lines, end)
	}
}
