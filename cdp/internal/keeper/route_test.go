//go:build linux

package keeper

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/parley-tools/parley/cdp/internal/keeper/api"
)

// testRoute answers requests of a session's pages, frames and popups by rules, and those of no other session.
func testRoute(t *testing.T, c *Client) {
	var asked atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/api") {
			asked.Add(1)
			fmt.Fprint(w, "real ", r.Method)
			return
		}
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprint(w, `<title>Page</title>`)
		if r.URL.Path == "/outer" {
			fmt.Fprintf(w, `<iframe src="http://%s/far"></iframe>`, strings.Replace(r.Host, "127.0.0.1", "localhost", 1))
		}
	}))
	t.Cleanup(server.Close)
	mine, other := c.As(inSession("one")), c.As(inSession("two"))
	present := openPage(t, mine, server.URL+"/")
	openPage(t, other, server.URL+"/")
	rules := []api.RouteRule{
		{URL: "*/api/mock", Method: "post", Action: api.RouteBlock},
		{URL: "*/api/mock", Action: api.RouteMock, Status: 418, Body: `mock body`,
			Headers: map[string]string{"X-A": "b", "Access-Control-Allow-Origin": "*",
				"Access-Control-Expose-Headers": "*"}},
		{URL: "*/api/none", Action: api.RouteMock, DelayMS: 1},
		{URL: "*/api/*", Method: "PUT", Action: api.RouteDelay, DelayMS: 1},
	}
	set, err := mine.route(testContext(t), api.RouteRequest{Rules: &rules})
	if err != nil || len(set.Rules) != 4 || set.Rules[1] != (api.RoutedRule{URL: "*/api/mock", Action: api.RouteMock}) {
		t.Fatalf("%+v, %v", set, err)
	}
	fetched := func(c *Client, target, path, method string) string {
		t.Helper()
		return evaluatePromise(t, c, target, fmt.Sprintf(`fetch(%q, {method: %q}).then(
			async r => r.status + " " + r.headers.get("x-a") + " " + await r.text(), () => "failed")`, path, method))
	}
	const mocked = `"418 b mock body"`
	for _, r := range []struct{ path, method, want string }{
		{"/api/mock", "GET", mocked}, {"/api/mock", "POST", `"failed"`}, {"/api/none", "GET", `"200 null "`},
		{"/api/put", "PUT", `"200 null real PUT"`}, {"/api/other", "GET", `"200 null real GET"`},
	} {
		if got := fetched(mine, present.Target, r.path, r.method); got != r.want {
			t.Errorf("%s %s: %s, want %s", r.method, r.path, got, r.want)
		}
	}
	if n := asked.Load(); n != 2 {
		t.Errorf("the server was asked %d times", n)
	}
	if got := fetched(other, "", "/api/mock", "GET"); got != `"200 null real GET"` {
		t.Errorf("in another session: %s", got)
	}
	if theirs, err := other.route(testContext(t), api.RouteRequest{}); err != nil || len(theirs.Rules) != 0 {
		t.Errorf("another session sees %+v, %v", theirs, err)
	}
	// later pages, frames in another process, and popups
	openPage(t, mine, server.URL+"/outer")
	openPopup(t, mine)
	for _, part := range []string{"/outer", "/far", "/popup"} {
		id := ""
		waitFor(t, "the target of "+part, func() bool {
			for _, one := range value(mine.Targets(testContext(t))) {
				if strings.Contains(one.URL, part) {
					id = one.ID
				}
			}
			return id != ""
		})
		if got := fetched(mine, id, "/api/mock", "GET"); got != mocked {
			t.Errorf("in %s: %s", part, got)
		}
	}
	set, err = mine.route(testContext(t), api.RouteRequest{})
	if err != nil || set.Rules[1].Requests != 4 || set.Rules[0].Requests != 1 {
		t.Errorf("the rules: %+v, %v", set, err)
	}
	_, err = mine.Call(testContext(t), api.CallRequest{Method: "Fetch.enable"})
	wantCode(t, err, api.CodeBusy, "cdp.route")
	// one rule is added, replaces another, is removed
	added := api.RouteRequest{Add: []api.RouteRule{{URL: "*/api/mock", Action: api.RouteMock, Body: "other"}}}
	if set, err = mine.route(testContext(t), added); err != nil || len(set.Rules) != 4 ||
		set.Rules[0].URL != "*/api/mock" {
		t.Errorf("%+v, %v", set, err)
	}
	if got := fetched(mine, "", "/api/mock", "GET"); got != `"200 null other"` {
		t.Errorf("a rule that was added: %s", got)
	}
	if set, err = mine.route(testContext(t), api.RouteRequest{Remove: []string{"*/api/mock"}}); err != nil ||
		len(set.Rules) != 2 {
		t.Errorf("%+v, %v", set, err)
	}
	_, err = mine.route(testContext(t), api.RouteRequest{Add: make([]api.RouteRule, api.MaxRouteRules+1)})
	if err == nil {
		t.Error("too many rules are accepted")
	}
	// the rules end
	if _, err := mine.route(testContext(t), api.RouteRequest{Rules: &[]api.RouteRule{}}); err != nil {
		t.Fatal(err)
	}
	if got := fetched(mine, "", "/api/mock", "GET"); got != `"200 null real GET"` {
		t.Errorf("without rules: %s", got)
	}
	if _, err := mine.Call(testContext(t), api.CallRequest{Method: "Fetch.enable"}); err != nil {
		t.Error(err)
	}
	_, err = mine.route(testContext(t), api.RouteRequest{Rules: &rules})
	wantCode(t, err, api.CodeBusy, "Fetch.disable")
	if _, err := mine.Call(testContext(t), api.CallRequest{Method: "Fetch.disable"}); err != nil {
		t.Error(err)
	}
	if _, err := mine.route(testContext(t), api.RouteRequest{Rules: &rules}); err != nil {
		t.Error(err)
	}
	if _, err := mine.CloseSession(testContext(t), ""); err != nil {
		t.Fatal(err)
	}
	openPage(t, mine, server.URL+"/")
	if got := fetched(mine, "", "/api/mock", "GET"); got != `"200 null real GET"` {
		t.Errorf("after the end of the session: %s", got)
	}
	for _, r := range []api.RouteRule{
		{Action: api.RouteBlock}, {URL: "*", Action: "drop"}, {URL: "*", Action: api.RouteMock, Status: 99},
		{URL: "*", Action: api.RouteDelay, DelayMS: 60_001}, {URL: "*", Action: api.RouteMock,
			Binary: make([]byte, api.MaxRouteBytes+1)},
	} {
		if _, err := mine.route(testContext(t), api.RouteRequest{Rules: &[]api.RouteRule{r}}); err == nil {
			t.Errorf("%s %q is accepted", r.Action, r.URL)
		}
	}
	for _, of := range []*Client{mine, other} {
		of.CloseSession(testContext(t), "")
	}
}

// testRouteKeepsGrants checks that a plugin's rules reach no origin that it was not granted.
func testRouteKeepsGrants(t *testing.T, c *Client) {
	var asked atomic.Int64
	denied := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
	t.Cleanup(denied.Close)
	url := site(t, map[string]string{"/": plainPage})
	mine := c.As(plugin("one", url))
	openPage(t, mine, url+"/")
	rules := []api.RouteRule{
		{URL: "*/redirect", Action: api.RouteMock, Status: 302, Headers: map[string]string{"Location": denied.URL + "/"}},
		{URL: denied.URL + "/*", Action: api.RouteDelay, DelayMS: 1},
	}
	if _, err := mine.route(testContext(t), api.RouteRequest{Rules: &rules}); err != nil {
		t.Fatal(err)
	}
	for _, to := range []string{url + "/redirect", denied.URL + "/a"} {
		got := evaluatePromise(t, mine, "", fmt.Sprintf(`fetch(%q, {mode: "no-cors"}).then(() => "sent", () => "failed")`,
			to))
		if got != `"failed"` || asked.Load() > 0 {
			t.Errorf("%s: %s, asked %d times", to, got, asked.Load())
		}
	}
}
