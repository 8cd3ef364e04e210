//go:build linux

package keeper

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/parley-tools/parley/cdp/internal/keeper/api"
	"github.com/parley-tools/parley/cdp/internal/keeper/scan"
	"github.com/parley-tools/parley/cdp/internal/protocol"
)

// victim is a session with a page that has something of everything, all of it marked with a secret.
type victim struct {
	*Client
	secret string
	page   api.Page
	hidden []string       // what no other session may be told: the secret and the ids of targets
	ids    map[string]any // by the names that parameters have
	parts  map[string]any // ids of the page's frame and worker, by the same names
	state  string
}

const victimPage = `<title>%[1]s</title><link rel=icon href=data:><style>p{color:red}</style><p id=p>%[1]s</p><script>
document.cookie = "seen=%[1]s"; localStorage.secret = "%[1]s"; sessionStorage.secret = "%[1]s"; marker = Math.random()
worker = new Worker("/worker.js?%[1]s"); indexedDB.open("%[1]s")
caches.open("cache").then(cache => cache.put("/?%[1]s", new Response("%[1]s")))
console.log("%[1]s")
</script><iframe src="http://localhost:%[2]s/frame?%[1]s"></iframe>`

// foreignSite serves the page of the victim at /victim, and others that know nothing of it. A download from it does
// not end.
func foreignSite(t *testing.T, secret string) string {
	t.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		io.WriteString(w, plainPage)
	})
	mux.HandleFunc("/victim", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		w.Header().Set("Set-Cookie", "unseen="+secret+"; HttpOnly; Path=/")
		_, port, _ := strings.Cut(r.Host, ":")
		fmt.Fprintf(w, victimPage, secret, port)
	})
	mux.HandleFunc("/frame", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprintf(w, "<title>%s</title>", secret)
	})
	mux.HandleFunc("/worker.js", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/javascript")
		fmt.Fprintf(w, "secret = %q; onmessage = () => 1", secret)
	})
	mux.HandleFunc("/download", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Disposition", "attachment; filename="+secret)
		w.Header().Set("Content-Type", "application/octet-stream")
		io.WriteString(w, secret)
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	})
	server := httptest.NewServer(mux)
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	return server.URL
}

// ask calls a command of the victim's page and returns its result.
func (v *victim) ask(t *testing.T, method string, with map[string]any) map[string]any {
	t.Helper()
	q := api.CallRequest{Method: method}
	if with != nil {
		q.Params = params(with)
	}
	raw, err := v.Call(testContext(t), q)
	var result map[string]any
	if err == nil {
		err = json.Unmarshal(raw, &result)
	}
	if err != nil {
		t.Fatalf("%s: %v", method, err)
	}
	return result
}

// at returns a value inside of a result by the names and indexes that lead to it.
func at(t *testing.T, v any, path ...any) any {
	t.Helper()
	for _, step := range path {
		switch step := step.(type) {
		case string:
			object, _ := v.(map[string]any)
			v = object[step]
		case int:
			list, _ := v.([]any)
			if step >= len(list) {
				t.Fatalf("%v has no element %d", v, step)
			}
			v = list[step]
		}
	}
	if v == nil {
		t.Fatalf("no %v", path)
	}
	return v
}

// awaitEvent returns the parameters of the first recorded event that contains the words.
func (v *victim) awaitEvent(t *testing.T, method string, words ...string) map[string]any {
	t.Helper()
	var params map[string]any
	waitFor(t, method, func() bool {
		stored, err := v.Events(testContext(t), api.EventsRequest{Patterns: []string{method}})
		if err != nil {
			t.Fatal(err)
		}
		for _, raw := range stored.Events {
			if !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(string(raw), w) }) {
				var line struct{ Params map[string]any }
				json.Unmarshal(raw, &line)
				params = line.Params
				return true
			}
		}
		return false
	})
	return params
}

// newVictim opens the page, and collects the ids of everything in it.
func newVictim(t *testing.T, c *Client, url, secret string) *victim {
	t.Helper()
	v := &victim{Client: c.As(inSession("victim")), secret: secret}
	v.page = openPage(t, v.Client, url+"/victim?"+secret)
	for _, domain := range []string{"Runtime", "DOM", "CSS", "Debugger", "Network", "Page"} {
		v.ask(t, domain+".enable", nil)
	}
	var parts []api.Target
	waitFor(t, "the frame and the worker", func() bool {
		parts = value(v.Targets(testContext(t)))
		return len(parts) == 3 && parts[1].URL != "" && parts[2].URL != ""
	})
	v.ask(t, "Browser.setDownloadBehavior", map[string]any{
		"behavior": "allow", "downloadPath": tempDir(t), "eventsEnabled": true,
	})
	v.ask(t, "Runtime.evaluate", map[string]any{"expression": "location = '/download'; 1"})
	download := v.awaitEvent(t, "Browser.downloadWillBegin")

	target := v.ask(t, "Target.getTargetInfo", nil)
	tree := v.ask(t, "Page.getFrameTree", nil)
	object := v.ask(t, "Runtime.evaluate", map[string]any{"expression": "({secret: document.title})"})
	document := v.ask(t, "DOM.getDocument", nil)
	executionContext := v.awaitEvent(t, "Runtime.executionContextCreated", v.page.Target)
	key := v.ask(t, "Storage.getStorageKey", map[string]any{"frameId": v.page.Target})
	names := v.ask(t, "CacheStorage.requestCacheNames", map[string]any{"storageKey": key["storageKey"]})
	v.ids = map[string]any{
		"targetId":           v.page.Target,
		"sessionId":          v.attach(t, v.page.Target),
		"browserContextId":   at(t, target, "targetInfo", "browserContextId"),
		"windowId":           at(t, v.ask(t, "Browser.getWindowForTarget", nil), "windowId"),
		"frameId":            v.page.Target,
		"loaderId":           at(t, tree, "frameTree", "frame", "loaderId"),
		"objectId":           at(t, object, "result", "objectId"),
		"nodeId":             at(t, document, "root", "nodeId"),
		"backendNodeId":      at(t, document, "root", "backendNodeId"),
		"executionContextId": at(t, executionContext, "context", "id"),
		"contextId":          at(t, executionContext, "context", "id"),
		"uniqueContextId":    at(t, executionContext, "context", "uniqueId"),
		"scriptId":           at(t, v.awaitEvent(t, "Debugger.scriptParsed", secret), "scriptId"),
		"styleSheetId":       at(t, v.awaitEvent(t, "CSS.styleSheetAdded"), "header", "styleSheetId"),
		"requestId":          at(t, v.awaitEvent(t, "Network.requestWillBeSent", "/victim"), "requestId"),
		"guid":               at(t, download, "guid"),
		"storageKey":         key["storageKey"],
		"cacheId":            at(t, names, "caches", 0, "cacheId"),
		"entryId":            at(t, v.ask(t, "Page.getNavigationHistory", nil), "entries", 0, "id"),
		"handle":             at(t, v.ask(t, "Page.printToPDF", map[string]any{"transferMode": "ReturnAsStream"}), "stream"),
	}
	for name, of := range map[string]string{
		"heapObjectId": "objectId", "promiseObjectId": "objectId", "prototypeObjectId": "objectId",
		"errorObjectId": "objectId", "targetNodeId": "nodeId", "insertBeforeNodeId": "nodeId", "invokerNodeId": "nodeId",
	} {
		v.ids[name] = v.ids[of]
	}
	for _, name := range []string{"origin", "securityOrigin", "scopeURL", "url", "requestURL"} {
		v.ids[name] = url + "/"
	}
	v.parts = map[string]any{
		"targetId": parts[2].ID, "sessionId": v.attach(t, parts[1].ID), "frameId": parts[1].ID,
	}
	v.hidden = []string{
		secret, v.page.Target, parts[1].ID, parts[2].ID,
		v.ids["browserContextId"].(string), v.ids["sessionId"].(string), v.parts["sessionId"].(string),
	}
	v.state = v.now(t)
	if strings.Count(v.state, secret) < 8 {
		t.Fatalf("the victim sees too little of its own: %s", v.state)
	}
	return v
}

func (v *victim) attach(t *testing.T, id string) any {
	t.Helper()
	return at(t, v.ask(t, "Target.attachToTarget", map[string]any{"targetId": id, "flatten": true}), "sessionId")
}

// now returns what the victim's page is and has. A page that was loaded again has another marker.
func (v *victim) now(t *testing.T) string {
	t.Helper()
	return v.page.Target + v.script(t) + v.cookies(t) + v.targets(t)
}

func (v *victim) script(t *testing.T) string {
	t.Helper()
	raw, err := v.Call(testContext(t), api.CallRequest{Method: "Runtime.evaluate", Target: v.page.Target,
		Params: params(map[string]any{"awaitPromise": true, "expression": `Promise.all([caches.keys(),
			indexedDB.databases()]).then(stored => JSON.stringify([stored, location.href, marker,
			document.title, document.cookie, localStorage.secret, sessionStorage.secret, document.body.innerHTML.length,
			innerWidth, innerHeight, outerWidth, devicePixelRatio, navigator.userAgent, navigator.language, navigator.onLine,
			Notification.permission, Intl.DateTimeFormat().resolvedOptions().timeZone, frames.length]))`})})
	if err != nil {
		return "\n" + err.Error()
	}
	return "\n" + string(raw)
}

func (v *victim) cookies(t *testing.T) string {
	t.Helper()
	var all []string
	for _, cookie := range at(t, v.ask(t, "Storage.getCookies", nil), "cookies").([]any) {
		all = append(all, fmt.Sprint(at(t, cookie, "name"), "=", at(t, cookie, "value")))
	}
	slices.Sort(all)
	return fmt.Sprint("\n", all)
}

func (v *victim) targets(t *testing.T) string {
	t.Helper()
	var all []string
	for _, one := range value(v.Targets(testContext(t))) {
		all = append(all, one.ID+" "+one.Type+" "+one.URL)
	}
	return fmt.Sprint("\n", all)
}

// stranger is another session, which has a page on the victim's origin.
type stranger struct {
	*Client
	t      *testing.T
	url    string
	victim *victim
	page   string

	mu    sync.Mutex
	heard []string
}

// notSent are commands with which a person may reach all pages. Others try them, too.
var notSent = map[string]string{
	"Browser.close":           "ends the browser",
	"Browser.crash":           "ends the browser",
	"Browser.crashGpuProcess": "ends the process that draws for all pages",
	"Browser.setContentsSize": "resizes windows by their numbers, which do not say whose they are",
	"Browser.setWindowBounds": "resizes windows by their numbers, which do not say whose they are",
	"Emulation.updateScreen":  "changes the screen of all windows",
}

// TestCommandsFromTheWrongSession sends every command of the protocol from sessions other than the one whose ids it
// names: to no target, to the browser, to a page of the sender's own and, unless a person sends it, to the other
// session's page. No result, error or event tells anything of that page, and the page stays as it is.
func TestCommandsFromTheWrongSession(t *testing.T) {
	t.Parallel()
	secret := fmt.Sprintf("secret%x", time.Now().UnixNano())
	url := foreignSite(t, secret)
	c := startBrowser(t, config(t))
	v := newVictim(t, c, url, secret)
	step := 10 / rounds(10) // a tenth of them, or all in the long runs
	names := protocol.Embedded().Names()
	for _, by := range []api.Caller{inSession("other"), overConnection("m1"), plugin("one", url), api.CommandLine} {
		t.Run(by.SessionKey(), func(t *testing.T) {
			s := &stranger{Client: c.As(by), t: t, url: url, victim: v}
			s.listen()
			sent := 0
			for i := 0; i < len(names); i += step {
				if name := names[i]; !by.IsPerson() || notSent[name] == "" {
					sent += s.drive(name)
				}
			}
			s.checkStored()
			t.Logf("%d calls", sent)
		})
	}
}

// listen checks all that the stranger hears.
func (s *stranger) listen() {
	ctx, cancel := context.WithCancel(s.t.Context())
	ended := make(chan error, 1)
	s.t.Cleanup(func() {
		cancel()
		<-ended
	})
	listening := make(chan struct{})
	go func() {
		_, err := s.Listen(ctx, api.ListenRequest{Patterns: []string{"*"}}, func() { close(listening) },
			func(line json.RawMessage) error {
				s.mu.Lock()
				defer s.mu.Unlock()
				s.heard = append(s.heard, string(line))
				return nil
			})
		ended <- err
	}()
	<-listening
}

// drive sends a command in all ways, and returns how many calls that were.
func (s *stranger) drive(name string) (calls int) {
	s.t.Helper()
	command, _ := protocol.Embedded().Command(name)
	targets := []string{"", "own", api.BrowserTarget}
	if !s.by.IsCommandLine() {
		targets = append(targets, s.victim.page.Target)
	}
	for _, params := range s.victim.parametersFor(command) {
		for _, target := range targets {
			s.needPage()
			if target == "own" {
				target = s.page
			}
			raw, err := s.Call(within(s.t, 2000), api.CallRequest{Method: name, Target: target, Params: params})
			calls++
			answer := string(raw)
			if err != nil {
				answer = string(scan.Marshal(asError(err)))
			}
			// to the browser with the sender's own context
			toBrowser := api.IsBrowserDomain(api.DomainOf(name)) || protocol.Embedded().Rights(name).InContext()
			if target == s.victim.page.Target && err == nil && !toBrowser {
				s.t.Errorf("%s %s runs in the victim's page", name, params)
			}
			s.check(fmt.Sprintf("%s %s to %q", name, params, target), answer, string(params)+target)
			s.mu.Lock()
			heard := s.heard
			s.heard = nil
			s.mu.Unlock()
			for _, line := range heard {
				s.check("an event about "+name, line, "")
			}
		}
	}
	if now := s.victim.now(s.t); now != s.victim.state {
		s.t.Errorf("%s changed the victim:\n%s\nbefore:\n%s", name, now, s.victim.state)
		s.victim.state = now
	}
	return calls
}

// needPage makes sure that the stranger's page runs scripts: commands stop, crash and close it.
func (s *stranger) needPage() {
	s.t.Helper()
	if s.page != "" {
		_, err := s.Call(within(s.t, 2000), api.CallRequest{Method: "Runtime.evaluate", Target: s.page,
			Params: json.RawMessage(`{"expression":"1"}`)})
		if err == nil {
			return
		}
		ctx, cancel := context.WithTimeout(s.t.Context(), 10*time.Second)
		defer cancel()
		s.CloseTarget(ctx, s.page, api.DialogAccept)
	}
	s.page = openPage(s.t, s.Client, s.url+"/").Target
}

// check reports what a text tells of the victim that the stranger has not named.
func (s *stranger) check(what, text, named string) {
	s.t.Helper()
	for _, hidden := range s.victim.hidden {
		if strings.Contains(text, hidden) && !strings.Contains(named, hidden) {
			i := strings.Index(text, hidden)
			s.t.Errorf("%s tells %s: ..%s", what, hidden, text[max(0, i-200):min(len(text), i+200)])
			return
		}
	}
}

func (s *stranger) checkStored() {
	s.t.Helper()
	stored, err := s.Events(testContext(s.t), api.EventsRequest{Limit: 100_000})
	if err != nil {
		s.t.Error(err)
	}
	for _, line := range stored.Events {
		s.check("a stored event", string(line), "")
	}
}

// parametersFor returns parameters of a command: those of its examples with the victim's ids, and with all of its
// parameters that take an id.
func (v *victim) parametersFor(command *protocol.Command) (all []json.RawMessage) {
	add := func(object map[string]any) {
		raw := scan.Marshal(object)
		if !slices.ContainsFunc(all, func(had json.RawMessage) bool { return string(had) == string(raw) }) {
			all = append(all, raw)
		}
	}
	for _, example := range protocol.Embedded().Examples(command) {
		var given map[string]any
		json.Unmarshal(example.Params, &given)
		add(replaced(given, v.ids).(map[string]any))
		every := replaced(given, v.ids).(map[string]any)
		parts := replaced(given, v.ids).(map[string]any)
		for _, p := range command.Params {
			if id, ok := v.ids[p.Name]; ok && every[p.Name] == nil {
				every[p.Name] = id
			}
			if id, ok := v.parts[p.Name]; ok {
				parts[p.Name] = id
			}
		}
		add(every)
		add(parts)
	}
	return all
}

// replaced returns a copy of a JSON value in which members have the values of their names, where the type fits.
func replaced(v any, with map[string]any) any {
	switch v := v.(type) {
	case map[string]any:
		object := map[string]any{}
		for name, member := range v {
			if value, ok := with[name]; ok && reflect.TypeOf(value) == reflect.TypeOf(member) {
				object[name] = value
				continue
			}
			if list, ok := member.([]any); ok {
				if value, ok := with[strings.TrimSuffix(name, "s")]; ok && len(list) > 0 &&
					reflect.TypeOf(value) == reflect.TypeOf(list[0]) {
					object[name] = []any{value}
					continue
				}
			}
			object[name] = replaced(member, with)
		}
		return object
	case []any:
		list := make([]any, len(v))
		for i := range v {
			list[i] = replaced(v[i], with)
		}
		return list
	}
	return v
}
