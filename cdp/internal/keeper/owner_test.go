//go:build linux

package keeper

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/parley-tools/parley/cdp/internal/keeper/api"
	"github.com/parley-tools/parley/cdp/internal/keeper/scan"
	"github.com/parley-tools/parley/host/grant"
	"github.com/parley-tools/parley/internal/wire"
)

var (
	someClient  = api.Caller{Name: "mcp:some"}
	otherClient = api.Caller{Name: "mcp:other"}
)

// plugin returns a plugin with grants for URLs.
func plugin(name string, urls ...string) api.Caller {
	c := api.Caller{Name: api.PluginPrefix + name}
	for _, u := range urls {
		c.HTTP = append(c.HTTP, grant.HTTP{URL: strings.TrimSuffix(u, "/"), Methods: []string{"GET"}})
	}
	return c
}

func targetIDs(t *testing.T, c *Client) (all []string) {
	t.Helper()
	s, err := c.Status(testContext(t), true) // of all sessions, for a person
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range s.Targets {
		all = append(all, one.ID)
	}
	return all
}

func TestTargetOwnership(t *testing.T) {
	t.Parallel()
	c := startBrowser(t, config(t))
	url := site(t, map[string]string{"/": plainPage, "/pop": "<title>Pop</title>"})
	owners := []api.Caller{api.CommandLine, someClient, otherClient, plugin("one", url), plugin("two", url)}
	pages := map[string]string{}
	for _, by := range owners {
		p, err := c.As(by).Open(testContext(t), api.OpenRequest{URL: url + "/?" + by.Name})
		if err != nil {
			t.Fatalf("%s: %v", by.Name, err)
		}
		pages[by.Name] = p.Target
	}
	for _, by := range owners {
		mine := c.As(by)
		// A call without a target uses the caller's own page.
		wantValue(t, mine, "", "location.search.slice(1)", `"`+by.Name+`"`)
		wantValue(t, mine, "0", "1+1", "2")
		for name, id := range pages {
			selectors := []string{id, id[:8], "?" + name}
			for _, selector := range selectors {
				got, err := evaluate(t, mine, selector, "location.search.slice(1)")
				switch {
				case by.Name == name || by.IsCommandLine() && selector == id: // a person names any page by its id
					if err != nil || got != `"`+name+`"` {
						t.Errorf("%s in %s's page by %s: %s, %v", by.Name, name, selector, got, err)
					}
				default:
					wantCode(t, err, api.CodeNotFound)
				}
			}
			if by.IsCommandLine() || by.Name == name {
				continue
			}
			for what, err := range map[string]error{
				"activate": errorOf(mine.activate(testContext(t), id)),
				"close":    errorOf(mine.CloseTarget(testContext(t), id, "")),
				"listen":   errorOf(mine.Listen(testContext(t), api.ListenRequest{Patterns: []string{"*"}, Target: id}, nil, nil)),
				"events":   errorOf(mine.Events(testContext(t), api.EventsRequest{Target: id})),
				"info": errorOf(mine.Call(testContext(t),
					api.CallRequest{Method: "Target.getTargetInfo", Params: params(map[string]any{"targetId": id})})),
				"end": errorOf(mine.Call(testContext(t),
					api.CallRequest{Method: "Target.closeTarget", Params: params(map[string]any{"targetId": id})})),
				"attach": errorOf(mine.Call(testContext(t),
					api.CallRequest{Method: "Target.attachToTarget", Params: params(map[string]any{"targetId": id})})),
			} {
				t.Run(by.Name+" "+what+" "+name, func(t *testing.T) { wantCode(t, err, api.CodeNotFound) })
			}
		}
		for _, one := range value(mine.Targets(testContext(t))) {
			if one.Owner != "" {
				t.Errorf("%s sees that %s belongs to %s", by.Name, one.ID, one.Owner)
			}
		}
		seen := targetIDs(t, mine)
		if by.IsCommandLine() != (len(seen) == len(owners)) || !slices.Contains(seen, pages[by.Name]) ||
			!by.IsCommandLine() && len(seen) != 1 {
			t.Errorf("%s sees %v", by.Name, seen)
		}
	}
	// Pages that a page opens belong to its owner.
	for _, by := range []api.Caller{someClient, owners[3]} {
		for _, features := range []string{"", "noopener"} {
			if _, err := c.As(by).Call(testContext(t), api.CallRequest{Method: "Runtime.evaluate", Target: pages[by.Name],
				Params: params(map[string]any{"expression": `open("/pop", "_blank", "` + features + `"); 1`,
					"userGesture": true})}); err != nil {
				t.Fatal(err)
			}
		}
		waitFor(t, "the popups of "+by.Name, func() bool { return len(targetIDs(t, c.As(by))) == 3 })
		for _, other := range []api.Caller{otherClient, owners[4]} {
			if seen := targetIDs(t, c.As(other)); len(seen) != 1 {
				t.Errorf("%s sees %v after %s opened popups", other.Name, seen, by.Name)
			}
		}
	}
}

// A target that a command creates, and a page that a click opens without an opener, belong to the caller and count
// as its pages.
func testOwnershipWithoutOpener(t *testing.T, c *Client) {
	url := site(t,
		map[string]string{
			"/":    `<title>x</title><a href=/pop style="position:absolute;left:0;top:0;width:100px;height:100px">pop</a>`,
			"/pop": "<title>Pop</title>"})
	const click = `{"x":30,"y":20,"clickCount":1,"button":"left","modifiers":2,"type":"`
	for _, by := range []api.Caller{api.CommandLine, someClient} {
		mine := c.As(by)
		p, err := mine.Open(testContext(t), api.OpenRequest{URL: url + "/"})
		if err != nil {
			t.Fatal(err)
		}
		had := len(targetIDs(t, mine))
		made, err := mine.Call(testContext(t),
			api.CallRequest{Method: "Target.createTarget", Params: params(map[string]any{"url": url + "/made"})})
		if err != nil {
			t.Fatal(err)
		}
		if by.IsCommandLine() {
			if _, err := mine.Call(testContext(t),
				api.CallRequest{Method: "Target.createTarget",
					Params: params(map[string]any{"url": url + "/tab", "forTab": true})}); err != nil {
				t.Fatal(err)
			}
			had++
		}
		for _, kind := range []string{"mousePressed", "mouseReleased"} {
			if _, err := mine.Call(testContext(t),
				api.CallRequest{Method: "Input.dispatchMouseEvent", Target: p.Target,
					Params: json.RawMessage(click + kind + `"}`)}); err != nil {
				t.Fatal(err)
			}
		}
		waitFor(t, "the pages that "+by.Name+" requested", func() bool { return len(targetIDs(t, mine)) == had+2 })
		if seen := targetIDs(t, c.As(otherClient)); len(seen) != 0 {
			t.Errorf("a client sees %v after %s created %s", seen, by.Name, made)
		}
		for _, raw := range value(c.As(otherClient).Events(testContext(t), api.EventsRequest{})).Events {
			if strings.Contains(string(raw), url) {
				t.Errorf("a client receives an event about a page of %s: %s", by.Name, raw)
			}
		}
	}
	for _, name := range []string{"forTab", "hidden"} {
		_, err := c.As(someClient).Call(testContext(t),
			api.CallRequest{Method: "Target.createTarget", Params: params(map[string]any{"url": api.BlankURL, name: true})})
		wantCode(t, err, api.CodeDenied, name)
	}
}

// Chrome shows a PDF with an extension in a frame of the page, which has more rights than the page.
func testPDFViewerIsHiddenFromOthers(t *testing.T, c *Client) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/pdf")
		io.WriteString(w,
			"%PDF-1.1\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj 2 0 obj<</Type/Pages/Kids[3 0 R]/Count 1>>endobj "+
				"3 0 obj<</Type/Page/Parent 2 0 R/MediaBox[0 0 300 300]>>endobj\ntrailer<</Size 4/Root 1 0 R>>\n%%EOF")
	}))
	t.Cleanup(server.Close)
	const viewer = "chrome-extension://"
	for _, by := range []api.Caller{someClient, plugin("one", server.URL)} {
		mine := c.As(by)
		if _, err := mine.Open(testContext(t), api.OpenRequest{URL: server.URL + "/" + by.Name + ".pdf"}); err != nil {
			t.Fatal(err)
		}
		var id string
		waitFor(t, "the viewer", func() bool {
			for _, one := range value(c.Status(testContext(t), true)).Targets {
				if strings.HasPrefix(one.URL, viewer) && one.Owner == by.Name {
					id = one.ID
				}
			}
			return id != ""
		})
		for _, selector := range []string{id, viewer} {
			_, err := evaluate(t, mine, selector, "Object.keys(chrome)")
			wantCode(t, err, api.CodeNotFound)
		}
		_, err := mine.Call(testContext(t),
			api.CallRequest{Method: "Target.attachToTarget", Params: params(map[string]any{"targetId": id})})
		if by.IsPlugin() {
			wantCode(t, err, api.CodeNotFound)
		}
		if slices.Contains(targetIDs(t, mine), id) {
			t.Errorf("%s sees the viewer", by.Name)
		}
		wantValue(t, c, id, "typeof chrome.tabs", `"object"`)
	}
}

func value[T any](all T, _ error) T { return all }

func errorOf[T any](_ T, err error) error { return err }

func testEventOwnership(t *testing.T, c *Client) {
	url := site(t, map[string]string{"/": plainPage})
	one, two := plugin("one", url), plugin("two", url)
	pages := map[string]string{}
	for _, by := range []api.Caller{api.CommandLine, someClient, one, two} {
		p, err := c.As(by).Open(testContext(t), api.OpenRequest{URL: url + "/"})
		if err != nil {
			t.Fatal(err)
		}
		pages[by.Name] = p.Target
		// A listener enables the domain only in its caller's pages. Here it is enabled in all pages.
		if _, err := c.As(by).Call(testContext(t), api.CallRequest{Method: "Runtime.enable"}); err != nil {
			t.Fatal(err)
		}
	}
	for _, by := range []api.Caller{someClient, one} {
		var lines []streamLine
		end, err := c.As(by).Listen(testContext(t),
			api.ListenRequest{Patterns: []string{"Runtime.consoleAPICalled", "Target.*"}, Until: "Runtime.consoleAPICalled"},
			func() {
				go func() {
					for _, other := range []api.Caller{api.CommandLine, two, by} {
						evaluate(t, c.As(other), "", "console.log(1); 0")
					}
				}()
			}, func(raw json.RawMessage) error {
				lines = append(lines, parseLine(t, raw))
				return nil
			})
		if err != nil || end.End != "until" {
			t.Fatal(end, err)
		}
		if last := lines[len(lines)-1]; last.Target != pages[by.Name] {
			t.Errorf("%s receives an event of another caller's page: %+v", by.Name, last)
		}
		stored, err := c.As(by).Events(testContext(t), api.EventsRequest{})
		if err != nil || len(stored.Events) == 0 {
			t.Fatal(stored, err)
		}
		for _, raw := range stored.Events {
			for name, id := range pages {
				if name != by.Name && (parseLine(t, raw).Target == id || by.IsPlugin() && strings.Contains(string(raw), id)) {
					t.Errorf("%s reads an event of %s's page: %s", by.Name, name, raw)
				}
			}
		}
	}
}

// The status for plugins contains nothing about the machine.
func testStatusForPlugins(t *testing.T, c *Client) {
	openPage(t, c, "")
	s, err := c.As(plugin("one")).Status(testContext(t), true)
	if err != nil {
		t.Fatal(err)
	}
	if raw := string(scan.Marshal(s)); strings.Contains(raw, c.hello.runDir(t)) || strings.Contains(raw, c.hello.Chrome) ||
		s.KeeperPID != 0 || s.ChromePID != 0 || len(s.Targets) != 0 || s.Product == "" {
		t.Errorf("status %s", raw)
	}
}

func testPluginNetworkGrants(t *testing.T, c *Client) {
	granted := site(t, map[string]string{"/": "<title>Granted</title>"})
	ended := make(chan struct{})
	stream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/stream" {
			w.Header().Set("Content-Type", "text/html")
			io.WriteString(w, "<title>Stream</title>")
			return
		}
		io.WriteString(w, "begun")
		w.(http.Flusher).Flush()
		<-r.Context().Done()
		close(ended)
	}))
	t.Cleanup(func() {
		stream.CloseClientConnections()
		stream.Close()
	})

	mine := c.As(plugin("one", granted))
	if p, err := mine.Open(testContext(t), api.OpenRequest{URL: granted + "/"}); err != nil || p.Title != "Granted" {
		t.Fatal(p, err)
	}
	_, err := mine.Open(testContext(t), api.OpenRequest{URL: stream.URL})
	wantCode(t, err, api.CodeDenied, "not granted: http:GET:"+stream.URL)
	_, err = mine.Call(testContext(t),
		api.CallRequest{Method: "Page.navigate", Params: params(map[string]any{"url": stream.URL})})
	wantCode(t, err, api.CodeDenied, "not granted")
	if e := asError(err); len(e.Denied) != 1 || e.Denied[0].Right != "http:GET:"+stream.URL {
		t.Errorf("denied %+v", e.Denied)
	}

	// The command line is not limited by the plugin's proxy.
	openPage(t, c, stream.URL)

	// New grants of the plugin apply from its next call on. So does a revoked grant.
	more := c.As(plugin("one", granted, stream.URL))
	if _, err := more.Open(testContext(t), api.OpenRequest{URL: stream.URL + "/"}); err != nil {
		t.Fatal(err)
	}
	if _, err := more.Call(testContext(t), api.CallRequest{Method: "Runtime.evaluate", Params: params(map[string]any{
		"expression":   "fetch('/stream').then(r => r.body.getReader().read()).then(() => 1)",
		"awaitPromise": true})}); err != nil {
		t.Fatal(err)
	}
	wantValue(t, mine, "", "1", "1")
	select {
	case <-ended:
	case <-time.After(testTimeout):
		t.Error("a connection is open after its grant was revoked")
	}
}

// testUsedRightsAreReported checks what is reported of a plugin's pages: each origin and method once per call,
// and nothing that was denied.
func testUsedRightsAreReported(t *testing.T, c *Client) {
	url := testSite(t)
	var reported []string
	mine := c.As(plugin("one", url)).WithUseRecorder(func(right string) { reported = append(reported, right) })
	run := func(script string) {
		t.Helper()
		reported = nil
		if _, err := mine.Call(testContext(t), api.CallRequest{Method: "Runtime.evaluate",
			Params: params(map[string]any{"expression": script, "awaitPromise": true})}); err != nil {
			t.Error(err)
		}
		slices.Sort(reported)
	}
	openPage(t, mine, url+"/frames.html")
	run("0") // so that rights used while the page loads are not reported later
	for script, want := range map[string]string{
		"fetch('/inner.html').then(() => fetch('/inner.html?again'))": "http:GET:" + url,
		"fetch('/inner.html', {method: 'POST'}).then(() => fetch('/inner.html'))": "http:GET:" +
			url + " http:POST:" + url,
		"new Promise(done => { " +
			"new WebSocket(location.origin.replace('http', 'ws') + '/echo').onopen = done })": "http:CONNECT:" +
			strings.TrimPrefix(url, "http://"),
		"fetch('http://127.0.0.2:1/').catch(() => 0)": "",
	} {
		if run(script); strings.Join(reported, " ") != want {
			t.Errorf("%s: reported %q, want %q", script, reported, want)
		}
	}
	reported = nil
	if _, err := mine.Targets(testContext(t)); err != nil || reported != nil {
		t.Errorf("reported %q again, %v", reported, err)
	}
}

// A call that needs no page also updates the plugin's grants.
func testEveryCallUpdatesGrants(t *testing.T, c *Client) {
	ended := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/stream" {
			io.WriteString(w, "begun")
			w.(http.Flusher).Flush()
			<-r.Context().Done()
			close(ended)
		}
	}))
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	mine := c.As(plugin("one", server.URL))
	if _, err := mine.Open(testContext(t), api.OpenRequest{URL: server.URL + "/"}); err != nil {
		t.Fatal(err)
	}
	if _, err := mine.Call(testContext(t), api.CallRequest{Method: "Runtime.evaluate", Params: params(map[string]any{
		"expression":   "fetch('/stream').then(r => r.body.getReader().read()).then(() => 1)",
		"awaitPromise": true})}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.As(plugin("one")).Events(testContext(t), api.EventsRequest{}); err != nil {
		t.Fatal(err)
	}
	select {
	case <-ended:
	case <-time.After(testTimeout):
		t.Error("a connection is open after its grant was revoked")
	}
}

// Downloads into a folder are allowed as long as the plugin may write to it.
func testDownloadGrantEnds(t *testing.T, c *Client) {
	folder := tempDir(t)
	url := testSite(t)
	by := plugin("one", url)
	by.Folders = []string{folder}
	if _, err := c.As(by).Open(testContext(t), api.OpenRequest{URL: url + "/inner.html"}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.As(by).Call(testContext(t), api.CallRequest{Method: "Browser.setDownloadBehavior",
		Params: params(map[string]any{"behavior": "allow", "downloadPath": folder, "eventsEnabled": true})}); err != nil {
		t.Fatal(err)
	}
	// The same grants change nothing.
	ended := "" // the previous download, which page and browser both report
	for _, one := range []struct {
		folders []string
		state   string
	}{{by.Folders, "completed"}, {nil, "canceled"}} {
		by.Folders = one.folders
		stop, state := io.EOF, ""
		_, err := c.As(by).Listen(testContext(t), api.ListenRequest{Patterns: []string{"*.downloadProgress"}}, func() {
			go evaluate(t, c.As(by), "", "location = '/file'")
		}, func(raw json.RawMessage) error {
			var p struct{ GUID, State string }
			if json.Unmarshal(parseLine(t, raw).Params, &p); p.State != "inProgress" && p.GUID != ended {
				state, ended = p.State, p.GUID
				return stop
			}
			return nil
		})
		if err != stop || state != one.state {
			t.Errorf("with %v the download ended %q, %v; want %s", one.folders, state, err, one.state)
		}
	}
	if stored, err := c.As(someClient).Events(testContext(t),
		api.EventsRequest{Patterns: []string{"*.download*"}}); err != nil || len(stored.Events) != 0 {
		t.Errorf("a client receives events of a plugin's downloads: %s, %v", stored.Events, err)
	}
	if all, err := os.ReadDir(folder); err != nil || len(all) != 1 {
		t.Errorf("the folder contains %v, %v", all, err)
	}
}

// A new version of a plugin inherits nothing in the browser, because it has other grants and may have another author.
func testNewPluginVersionInheritsNothing(t *testing.T, c *Client) {
	url := site(t, map[string]string{"/": plainPage})
	old := plugin("one", url)
	old.Digest = "sha256:old"
	for _, query := range []struct {
		what string
		with func(*Client) (string, error)
	}{
		{"targets", func(c *Client) (string, error) {
			all, err := c.Targets(testContext(t))
			return string(scan.Marshal(all)), err
		}},
		{"events", func(c *Client) (string, error) {
			stored, err := c.Events(testContext(t), api.EventsRequest{})
			return string(scan.Marshal(stored.Events)), err
		}},
		{"a call", func(c *Client) (string, error) { return evaluate(t, c, "", "location.href") }},
		{"open", func(c *Client) (string, error) {
			if _, err := c.Open(testContext(t), api.OpenRequest{URL: url + "/"}); err != nil {
				return "", err
			}
			return evaluate(t, c, "", "document.cookie")
		}},
	} {
		t.Run(query.what, func(t *testing.T) {
			p, err := c.As(old).Open(testContext(t), api.OpenRequest{URL: url + "/?kept"})
			if err != nil {
				t.Fatal(err)
			}
			if got, err := evaluate(t, c.As(old), p.Target, "document.cookie = 'kept=1; max-age=1000'"); err != nil {
				t.Fatal(got, err)
			}
			next := old
			next.Digest = "sha256:" + query.what
			if got, err := query.with(c.As(next)); err != nil || strings.Contains(got, "kept") {
				t.Errorf("another version receives %s, %v", got, err)
			}
			waitFor(t, "the page of the old version to close", func() bool {
				return !slices.Contains(targetIDs(t, c), p.Target)
			})
		})
	}
}

func TestPluginPagesEndWithTheirContext(t *testing.T) {
	t.Parallel()
	cfg := config(t)
	c := startBrowser(t, cfg)
	url := site(t, map[string]string{"/": plainPage})
	persons := openPage(t, c, url+"/")
	mine := c.As(plugin("one", url))
	visit := func() {
		t.Helper()
		if _, err := mine.Open(testContext(t), api.OpenRequest{URL: url + "/"}); err != nil {
			t.Fatal(err)
		}
	}
	visit()
	evaluate(t, mine, "", "document.cookie = 'mine=1; max-age=1000'; localStorage.mine = 1; 0")
	visit()
	wantValue(t, mine, "", "document.cookie + localStorage.mine", `"mine=11"`)
	wantValue(t, c, persons.Target, "document.cookie + localStorage.mine", `"undefined"`)

	closed, err := mine.CloseSession(testContext(t), "")
	if err != nil || len(closed.Targets) != 2 || len(closed.Contexts) != 1 || closed.Browser != "" {
		t.Errorf("closed %v, %v", closed, err)
	}
	waitFor(t, "the plugin's pages to close", func() bool { return len(targetIDs(t, c)) == 1 })
	wantValue(t, c, persons.Target, "1+1", "2")
	visit()
	wantValue(t, mine, "", "document.cookie + localStorage.mine", `"undefined"`)

	if _, err := mine.Call(testContext(t), api.CallRequest{Method: "Target.disposeBrowserContext"}); err != nil {
		t.Error(err)
	}
	waitFor(t, "the plugin's pages to close", func() bool { return len(targetIDs(t, c)) == 1 })

	// A plugin without a page gets one.
	wantValue(t, mine, "", "location.href", `"about:blank"`)
}

func TestIdleContextsAreDisposed(t *testing.T) {
	t.Parallel()
	cfg := config(t)
	cfg.Idle = shortIdle
	c := startBrowser(t, cfg)
	ctx, stop := context.WithCancel(testContext(t))
	over := make(chan struct{})
	go func() { // a listener keeps the browser open
		defer close(over)
		c.Listen(ctx, api.ListenRequest{Patterns: []string{"Page.none"}}, nil, func(json.RawMessage) error { return nil })
	}()
	wantValue(t, c.As(plugin("one")), "", "1", "1")
	waitFor(t, "the idle context to close", func() bool { return len(targetIDs(t, c)) == 1 })
	stop()
	<-over
}

// testPagesAtForbiddenURLsAreClosed navigates to forbidden URLs without the provider's checks: by what a page can do
// itself, and by a call that only this test can send.
func testPagesAtForbiddenURLsAreClosed(t *testing.T, c *Client) {
	url := site(t, map[string]string{"/": plainPage})
	for _, by := range []api.Caller{someClient, plugin("one", url)} {
		for _, script := range []string{
			"location = URL.createObjectURL(new Blob(['<title>astray</title>'], {type: 'text/html'})); 1",
			"",
		} {
			t.Run(by.Name+script, func(t *testing.T) {
				mine := c.As(by)
				p, err := mine.Open(testContext(t), api.OpenRequest{URL: url + "/"})
				if err != nil {
					t.Fatal(err)
				}
				waiting := make(chan error, 1)
				go func() {
					q := neverReturns
					q.Target = p.Target
					_, err := mine.Call(testContext(t), q)
					waiting <- err
				}()
				if script != "" {
					evaluate(t, mine, p.Target, script)
				} else { // the provider would reject this parameter
					mine.Call(testContext(t),
						api.CallRequest{Target: p.Target, Method: "Page.navigate",
							Params: json.RawMessage(`{"url":"file:///etc/hostname"}`)})
				}
				waitFor(t, "the page to be closed", func() bool { return !slices.Contains(targetIDs(t, c), p.Target) })
				if err := <-waiting; err == nil {
					t.Error("a call continued in a page that was closed")
				}
			})
		}
	}
	// The command line may open such URLs.
	p := openPage(t, c, "file:///etc/hostname")
	wantValue(t, c, p.Target, "location.protocol", `"file:"`)
}

// testFulfilledRequestsCannotEscapeGrants lets a plugin fulfill its page's requests with redirects to URLs without
// a grant.
func testFulfilledRequestsCannotEscapeGrants(t *testing.T, c *Client) {
	url := site(t, map[string]string{"/": plainPage})
	denied := site(t, map[string]string{"/": "kept"})
	file := filepath.Join(tempDir(t), "file.html")
	if err := os.WriteFile(file, []byte("kept"), 0o600); err != nil {
		t.Fatal(err)
	}
	redirect := func(to string) map[string]any {
		return map[string]any{"responseCode": 302, "responseHeaders": []any{map[string]any{"name": "Location", "value": to}}}
	}
	for _, answer := range []struct {
		method string
		params map[string]any
	}{
		{"Fetch.fulfillRequest", redirect("file://" + file)},
		{"Fetch.fulfillRequest", redirect(denied + "/")},
		{"Fetch.continueRequest", map[string]any{"url": "file://" + file}},
		{"Fetch.continueRequest", map[string]any{"url": denied + "/"}},
	} {
		for _, ask := range []api.CallRequest{
			{Method: "Page.navigate", Params: params(map[string]any{"url": url + "/again"})},
			{Method: "Runtime.evaluate",
				Params: params(map[string]any{"expression": "fetch('/again').then(r => r.text(), () => 'refused')",
					"awaitPromise": true})},
		} {
			mine := c.As(plugin("one", url))
			p, err := mine.Open(testContext(t), api.OpenRequest{URL: url + "/"})
			if err != nil {
				t.Fatal(err)
			}
			stop := mine.answerPaused(t, p.Target, api.CallRequest{Target: p.Target, Method: answer.method}, answer.params)
			ask.Target = p.Target
			got, err := mine.Call(within(t, 5000), ask)
			shown, _ := evaluate(t, mine, p.Target, "document.documentElement ? document.documentElement.innerText : ''")
			if strings.Contains(string(got)+shown, "kept") {
				t.Errorf("%s of %s with %v: got %s %s", answer.method, ask.Method, answer.params, got, shown)
			}
			t.Logf("%s of %s: %s, %v; %s", answer.method, ask.Method, got, err, shown)
			stop()
			if _, err := mine.CloseSession(testContext(t), ""); err != nil {
				t.Error(err)
			}
		}
	}
}

// answerPaused continues a page's paused requests: the first with a given command, all others unchanged.
func (c *Client) answerPaused(t *testing.T, target string, first api.CallRequest, with map[string]any) (stop func()) {
	t.Helper()
	if _, err := c.Call(testContext(t), api.CallRequest{Target: target, Method: "Fetch.enable"}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(testContext(t))
	begun, over := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(over)
		c.Listen(ctx, api.ListenRequest{Patterns: []string{"Fetch.requestPaused"}, Target: target}, func() {
			close(begun)
		}, func(raw json.RawMessage) error {
			var paused struct {
				RequestID string `json:"requestId"`
			}
			json.Unmarshal(parseLine(t, raw).Params, &paused)
			q := api.CallRequest{Target: target, Method: "Fetch.continueRequest"}
			all := map[string]any{"requestId": paused.RequestID}
			if first.Method != "" {
				q, first.Method = first, ""
				maps.Copy(all, with)
			}
			q.Params = params(all)
			c.Call(ctx, q)
			return nil
		})
	}()
	<-begun
	return func() {
		cancel()
		<-over
	}
}

func TestPluginsAreDeniedInExternalBrowser(t *testing.T) {
	t.Parallel()
	cfg := config(t)
	cfg.Args = []string{"--remote-debugging-port=0"}
	c := startBrowser(t, cfg)
	s, err := c.Status(testContext(t), true)
	if err != nil {
		t.Fatal(err)
	}
	openPage(t, c, "")
	port, err := os.ReadFile(filepath.Join(s.Profile, "DevToolsActivePort"))
	if err != nil {
		t.Fatal(err)
	}
	first, _, _ := strings.Cut(string(port), "\n")
	attached, err := Start(testContext(t), Config{RunDir: cfg.RunDir, Browser: "attached", Attach: first, Version: "test"})
	if err != nil {
		t.Fatal(err)
	}
	defer Stop(context.Background(), cfg.RunDir, "attached", "test")
	mine := attached.As(plugin("one"))
	for what, err := range map[string]error{
		"open":    errorOf(mine.Open(testContext(t), api.OpenRequest{})),
		"call":    errorOf(mine.Call(testContext(t), evaluation("1"))),
		"browser": errorOf(mine.Call(testContext(t), api.CallRequest{Method: "Target.getTargets"})),
		"targets": errorOf(mine.Targets(testContext(t))),
		"status":  errorOf(mine.Status(testContext(t), true)),
		"events":  errorOf(mine.Events(testContext(t), api.EventsRequest{})),
		"close":   errorOf(mine.CloseSession(testContext(t), "")),
	} {
		t.Run(what, func(t *testing.T) { wantCode(t, err, api.CodeDenied, "attached") })
	}
	// The pages of an external browser belong to no session; only the person sees them.
	if seen := targetIDs(t, attached); len(seen) == 0 {
		t.Error("the person sees no targets of an attached browser")
	}
	if seen := targetIDs(t, attached.As(someClient)); len(seen) != 0 {
		t.Errorf("an MCP client sees %v of an attached browser", seen)
	}
}

func testRequestsNameTheirCaller(t *testing.T, c *Client) {
	for _, name := range []string{"", "CLI", "cli:x", "mcp", "mcp:", "plugin:", "root", "plugin"} {
		_, err := c.As(api.Caller{Name: name}).Targets(testContext(t))
		wantCode(t, err, api.CodeInvalidArgs, "is not a caller")
	}
}

func TestSocketIsPrivate(t *testing.T) {
	t.Parallel()
	cfg := config(t)
	c := startBrowser(t, cfg)
	socket := SocketPath(cfg.RunDir, "")
	for path, want := range map[string]os.FileMode{socket: 0o700 | os.ModeSocket, cfg.RunDir: 0o700 | os.ModeDir} {
		if st, err := os.Lstat(path); err != nil || st.Mode() != want {
			t.Errorf("%s is %v, %v; want %v", path, st.Mode(), err, want)
		}
	}
	refused := func(what string) {
		t.Helper()
		_, err := Dial(testContext(t), cfg.RunDir, "", "test")
		wantCode(t, err, api.CodeChromeConnection, what)
		if filepath.Dir(socket) == cfg.RunDir && strings.HasPrefix(what, "is not") {
			_, err = Start(testContext(t), cfg)
			wantCode(t, err, api.CodeChromeConnection, what)
		}
	}
	os.Chmod(socket, 0o777)
	refused("open to other users")
	connectAsStranger(t, cfg.RunDir, socket)
	os.Chmod(socket, 0o700)
	os.Chmod(cfg.RunDir, 0o777)
	refused("open to other users")
	os.Chmod(cfg.RunDir, 0o700)

	// A link at the socket's path is not followed, not even to the socket itself.
	elsewhere := filepath.Join(cfg.RunDir, "moved")
	if err := os.Rename(socket, elsewhere); err != nil {
		t.Fatal(err)
	}
	os.Symlink(elsewhere, socket)
	refused("is not a socket of this user")
	os.Remove(socket)
	os.WriteFile(socket, nil, 0o600)
	refused("is not a socket of this user")
	os.Remove(socket)
	if err := os.Rename(elsewhere, socket); err != nil {
		t.Fatal(err)
	}
	again, err := Dial(testContext(t), cfg.RunDir, "", "test")
	if err != nil {
		t.Fatal(err)
	}
	wantValue(t, again, "", "1", "1")
	again.Close()
	wantValue(t, c, "", "1", "1")
}

// connectAsStranger connects as another user, if the test may do that. The keeper must not respond.
func connectAsStranger(t *testing.T, dir, socket string) {
	if os.Geteuid() != 0 {
		t.Log("only root can run a process as another user")
		return
	}
	for d := dir; d != os.TempDir() && d != "/"; d = filepath.Dir(d) {
		st, err := os.Stat(d)
		if err != nil {
			t.Fatal(err)
		}
		os.Chmod(d, 0o711)
		defer os.Chmod(d, st.Mode().Perm())
	}
	os.Chmod(os.TempDir(), 0o711)
	self, err := os.Open("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	defer self.Close()
	cmd := exec.Command("/proc/self/fd/3", socket)
	cmd.ExtraFiles = []*os.File{self}
	cmd.Env = append(os.Environ(), ChildVar+"=stranger")
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	out, err := cmd.CombinedOutput()
	if err != nil || string(out) != "connected, not a word\n" {
		t.Errorf("another user: %v, %q", err, out)
	}
}

// runStranger runs the other user's process.
func runStranger(socket string) int {
	conn, err := net.Dial("unix", socket)
	if err != nil {
		fmt.Println(err)
		return 1
	}
	defer conn.Close()
	fmt.Print("connected, ")
	c := wire.NewConn(conn, conn)
	c.SendJSON(wire.KindHello, hello{Wire: WireVersion})
	conn.SetDeadline(time.Now().Add(testTimeout))
	if h, err := readHello(c); err == nil {
		fmt.Println("answered", h)
		return 1
	}
	fmt.Println("not a word")
	return 0
}
