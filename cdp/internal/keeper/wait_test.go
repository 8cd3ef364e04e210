//go:build linux

package keeper

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/parley-tools/parley/cdp/internal/keeper/api"
	"github.com/parley-tools/parley/cdp/internal/keeper/target"
)

// waitSite serves a page whose load event comes late, and whose network is idle later still. /nothing responds with
// 204, and an image of /hang never comes.
func waitSite(t *testing.T) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		switch r.URL.Path {
		case "/slow":
			time.Sleep(200 * time.Millisecond)
		case "/nothing":
			w.WriteHeader(http.StatusNoContent)
		case "/never":
			<-r.Context().Done()
		case "/hang":
			fmt.Fprint(w, `<img src=/never>`)
		default:
			fmt.Fprint(w, `<img src=/slow><a href=/two>two</a><script>
				onload = () => { loaded = 1; Promise.all([1, 2, 3].map(i => fetch("/slow?" + i))).then(() => idle = 1) }
			</script>`)
		}
	}))
	t.Cleanup(server.Close)
	return server.URL
}

func testWait(t *testing.T, c *Client) {
	url := waitSite(t)
	openPage(t, c, "about:blank")
	for _, x := range []struct{ method, params, wait, reached, path string }{
		{"Page.navigate", `{"url":"` + url + `/one"}`, api.WaitLoad, "loaded", "/one"},
		{"Page.reload", `{}`, api.WaitLoad, "loaded", "/one"},
		{"Page.navigate", `{"url":"` + url + `/one"}`, api.WaitIdle, "idle", "/one"},
		{"Runtime.evaluate", `{"expression":"document.querySelector('a').click()"}`, api.WaitLoad, "loaded", "/two"},
		{"Runtime.evaluate", `{"expression":"location.href = '/three'"}`, api.WaitIdle, "idle", "/three"},
		{"Runtime.evaluate", `{"expression":"history.back()"}`, api.WaitLoad, "loaded", "/two"},
		// what loads no document
		{"Runtime.evaluate", `{"expression":"1"}`, api.WaitLoad, "loaded", "/two"},
		{"Page.navigate", `{"url":"` + url + `/two#part"}`, api.WaitIdle, "loaded", "/two"},
		{"Runtime.evaluate", `{"expression":"location.href = '/nothing'"}`, api.WaitLoad, "loaded", "/two"},
		{"Page.navigate", `{"url":"` + url + `/four"}`, api.WaitNone, "document", "/four"},
	} {
		q := api.CallRequest{Method: x.method, Params: []byte(x.params), Wait: x.wait}
		_, err := c.Call(testContext(t), q)
		if err != nil {
			t.Fatalf("%s %s, wait %s: %v", x.method, x.params, x.wait, err)
		}
		wantValue(t, c, "", "!!window."+x.reached+" && location.pathname", `"`+x.path+`"`)
	}
	if _, err := c.Open(testContext(t), api.OpenRequest{URL: url, Wait: api.WaitIdle}); err != nil {
		t.Error(err)
	}
	wantValue(t, c, "", "window.idle", "1")

	// The events that waiting needs reach only those who asked for them, and stay on for a caller who did.
	lifecycles := func() (n int) {
		before := value(c.Events(testContext(t), api.EventsRequest{})).LastSeq
		q := api.CallRequest{Method: "Page.navigate", Params: []byte(`{"url":"` + url + `/one"}`), Wait: api.WaitIdle}
		if _, err := c.Call(testContext(t), q); err != nil {
			t.Error(err)
		}
		return len(value(c.Events(testContext(t), api.EventsRequest{Since: before,
			Patterns: []string{target.Lifecycle}})).Events)
	}
	if n := lifecycles(); n != 0 {
		t.Errorf("waiting caused %d events", n)
	}
	if _, err := c.Call(testContext(t), api.CallRequest{
		Method: "Page.setLifecycleEventsEnabled", Params: []byte(`{"enabled":true}`),
	}); err != nil {
		t.Error(err)
	}
	for range 2 {
		if n := lifecycles(); n == 0 {
			t.Error("a caller who asked for the events has none")
		}
	}

	_, err := c.Call(within(t, 1000), api.CallRequest{
		Method: "Page.navigate", Params: []byte(`{"url":"` + url + `/hang"}`), Wait: api.WaitLoad,
	})
	wantCode(t, err, api.CodeTimeout, "the command has run")
	_, err = c.Call(testContext(t), api.CallRequest{Method: "Page.reload", Wait: "soon"})
	wantCode(t, err, api.CodeInvalidArgs, "load, idle or none")
}
