//go:build linux

package keeper

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/parley-tools/parley/cdp/internal/keeper/api"
	"github.com/parley-tools/parley/cdp/internal/keeper/verb"
)

// TestState saves what one session stores for some origins and loads it into another.
func TestState(t *testing.T) {
	t.Parallel()
	var requests atomic.Int32
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/" {
			requests.Add(1)
		}
		w.Header().Set("Content-Type", "text/html")
		w.Write([]byte(plainPage))
	}))
	t.Cleanup(s.Close)
	c := startBrowser(t, config(t))
	one, two := c.As(inSession("one")), c.As(inSession("two"))
	openPage(t, one, s.URL+"/")
	evaluate(t, one, "", `localStorage.login = "secret one \udc00"; sessionStorage.tab = "t1"; document.cookie = "page=1"`)
	cookies := func(of *Client) string {
		raw, err := of.Call(testContext(t), api.CallRequest{Method: "Storage.getCookies"})
		if err != nil {
			t.Fatal(err)
		}
		return string(raw)
	}
	expires := time.Now().Add(time.Hour).Unix()
	set := fmt.Sprintf(`{"cookies":[
		{"name":"own","value":"1","url":"https://a.test/","secure":true,"httpOnly":true,"sameSite":"Strict",
			"expires":%d},
		{"name":"wide","value":"2","url":"https://a.test/","domain":".a.test"},
		{"name":"below","value":"3","url":"https://b.a.test/"},
		{"name":"other","value":"4","url":"https://other.test/"},
		{"name":"part","value":"5","url":"https://a.test/","secure":true,"sameSite":"None",
			"partitionKey":{"topLevelSite":"https://other.test","hasCrossSiteAncestor":true}}]}`, expires)
	q := api.CallRequest{Method: "Storage.setCookies", Params: json.RawMessage(set)}
	if _, err := one.Call(testContext(t), q); err != nil {
		t.Fatal(err)
	}
	origins := []string{s.URL, "https://a.test"}
	saved, err := one.SaveState(testContext(t), origins)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, cookie := range saved.Cookies {
		names = append(names, cookie.Name)
	}
	slices.Sort(names)
	if got := strings.Join(names, " "); got != "own page wide" {
		t.Errorf("saved the cookies %s", got)
	}
	if got := string(saved.Local[s.URL]); got != `[["login","secret one \udc00"]]` {
		t.Errorf("saved of localStorage %s", got)
	}
	if got := string(saved.Session[s.URL]); got != `[["tab","t1"]]` || len(saved.Local)+len(saved.Session) != 2 {
		t.Errorf("saved of sessionStorage %s; %+v", got, saved)
	}

	// A page that has moved on to another origin is neither read nor written.
	wantValue(t, one, "", "("+verb.ReadStorage()+`)("https://a.test", "localStorage")`, `""`)
	wantValue(t, one, "", "("+verb.WriteStorage()+`)("https://a.test", "localStorage", "[]")`, `-1`)
	wantValue(t, one, "", `localStorage.length`, "1")

	// What a state holds beside the named origins does not enter.
	saved.Cookies = append(saved.Cookies, api.Cookie{Name: "forged", Value: "x", Domain: "other.test", Path: "/",
		Expires: -1},
		api.Cookie{Name: "page", Value: "old", Domain: "127.0.0.1", Path: "/", Expires: 1})
	saved.Local["https://other.test"] = json.RawMessage(`[["forged","x"]]`)
	saved.Local["https://a.test"] = json.RawMessage(`[["a","1"],["b","2"]]`)
	// What the origins have already stored for the session goes, and what others have stays.
	openPage(t, two, s.URL+"/")
	evaluate(t, two, "",
		`localStorage.stale = 1; sessionStorage.stale = 1; document.cookie = "stale=1"; document.cookie = "page=0"`)
	q.Params = json.RawMessage(`{"cookies":[{"name":"stale","value":"1","url":"https://a.test/","domain":".a.test","httpOnly":true},
		{"name":"kept","value":"1","url":"https://other.test/"}]}`)
	if _, err := two.Call(testContext(t), q); err != nil {
		t.Fatal(err)
	}
	openPage(t, two, "about:blank")
	done, err := two.LoadState(testContext(t), saved, origins)
	if err != nil || done.Cookies != 3 || done.Items != 3 || !slices.Equal(done.Left, []string{s.URL}) {
		t.Errorf("loaded %+v, %v", done, err)
	}
	if n := requests.Load(); n != 2 {
		t.Errorf("the site got %d requests", n)
	}
	loaded := cookies(two)
	for _, want := range []string{`"name":"own","value":"1","domain":"a.test"`, `"httpOnly":true`, `"sameSite":"Strict"`,
		fmt.Sprint(`"expires":`, expires), `"name":"wide","value":"2","domain":".a.test"`, `"name":"page","value":"1"`,
		`"name":"kept"`} {
		if !strings.Contains(loaded, want) {
			t.Errorf("%s is missing in %s", want, loaded)
		}
	}
	for _, foreign := range []string{"forged", "below", "other", "part", "stale"} {
		if strings.Contains(loaded, `"name":"`+foreign) {
			t.Errorf("the cookie %s was loaded: %s", foreign, loaded)
		}
	}
	if targets := value(two.Targets(testContext(t))); len(targets) != 2 {
		t.Errorf("the session sees %+v", targets)
	}
	openPage(t, two, s.URL+"/")
	wantValue(t, two, "", `localStorage.login === "secret one \udc00" && localStorage.length === 1`, "true")
	evaluate(t, two, "", `sessionStorage.stale = 1`)
	if done, err = two.LoadState(testContext(t), saved, origins[:1]); err != nil || done.Items != 2 || done.Left != nil {
		t.Errorf("loaded into the page %+v, %v", done, err)
	}
	wantValue(t, two, "", `sessionStorage.tab + sessionStorage.length`, `"t11"`)
	if kept, err := two.SaveState(testContext(t), []string{"https://a.test", "https://other.test"}); err != nil ||
		string(kept.Local["https://a.test"]) != `[["a","1"],["b","2"]]` || len(kept.Local) != 1 {
		t.Errorf("loaded into localStorage %+v, %v", kept, err)
	}
	events, err := two.Events(testContext(t), api.EventsRequest{})
	if err != nil {
		t.Fatal(err)
	}
	for _, event := range events.Events {
		if strings.Contains(string(event), "a.test") {
			t.Errorf("the session has the event %s", event)
		}
	}
	if got := cookies(c); strings.Contains(got, "own") {
		t.Errorf("the default context has %s", got)
	}
}
