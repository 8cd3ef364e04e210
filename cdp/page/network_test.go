package page_test

import (
	"crypto/sha1"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/http/httptest"
	neturl "net/url"
	"regexp"
	"strings"
	"testing"
	"time"
)

// server serves a page that makes requests of several kinds.
func server(t *testing.T, c *chrome) string {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		switch r.URL.Path {
		case "/data":
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("X-Api-Key", "hidden")
			_, _ = fmt.Fprintf(w, `{"method":%q,"header":%q,"agent":%q}`, r.Method, r.Header.Get("X-Test"), r.UserAgent())
		case "/chat":
			conn, io, err := w.(http.Hijacker).Hijack()
			if err != nil {
				return
			}
			defer conn.Close()
			sum := sha1.Sum([]byte(r.Header.Get("Sec-WebSocket-Key") + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"))
			_, _ = fmt.Fprintf(conn, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"+
				"Sec-WebSocket-Accept: %s\r\n\r\n", base64.StdEncoding.EncodeToString(sum[:]))
			_, _ = io.WriteString("\x81\x05hello") // a message of text
			_ = io.Flush()
			_, err = io.ReadByte()                       // a message, the end of the connection, or that the page closes it
			for err == nil && r.URL.RawQuery == "open" { // any byte may be in a masked message
				_, err = io.ReadByte()
			}
		case "/gone":
			http.Error(w, "nothing here", http.StatusNotFound)
		case "/cut":
			panic(http.ErrAbortHandler)
		default:
			_, _ = w.Write([]byte(*c.given.Load()))
		}
	}))
	s.Config.ErrorLog = nil
	t.Cleanup(s.Close)
	return s.URL
}

// TestWebSockets checks that WebSockets are among the requests: one that is open, one that was closed, and one that was
// refused.
func TestWebSockets(t *testing.T) {
	c := startChrome(t)
	url := server(t, c)
	c.show(t, url+"/", `<title>Sockets</title><script>const at = location.origin.replace("http", "ws");
		const open = new WebSocket(at + "/chat?open"), closed = new WebSocket(at + "/chat?closed"), refused = new WebSocket(at + "/gone");
		closed.onopen = () => closed.close(); let done = 0;
		open.onmessage = () => { open.send("bye"); open.send(new Uint8Array([1, 2, 255])); if (++done == 3) document.title = "Done" };
		closed.onclose = refused.onclose = () => { if (++done == 3) document.title = "Done" }</script>`)
	if _, err := run(t, c, Wait, WaitParams{Expression: `document.title == "Done"`, Timeout: 20_000}); err != nil {
		t.Fatal(exit(err))
	}
	at := strings.Replace(url, "http", "ws", 1)
	waitUntil(t, "the list", func() bool {
		r, err := run(t, c, Requests, RequestsParams{Limit: 20, Address: at})
		want := regexp.MustCompile(`^r\d+ Error during WebSocket handshake: Unexpected response code: 404 GET ` + at +
			`/gone websocket \d+ ms\nr\d+ 101 GET ` + at + `/chat\?closed websocket \d+ ms\nr\d+ 101 GET ` + at +
			`/chat\?open websocket$`)
		return err == nil && r.Failed == 1 && want.MatchString(r.Text)
	})
	r, err := run(t, c, Requests, RequestsParams{Limit: 20, Address: at + "/chat?open"})
	id, _, _ := strings.Cut(r.Text, " ")
	waitUntil(t, "the messages", func() bool {
		r, err = run(t, c, Requests, RequestsParams{ID: id, Limit: 1})
		return err == nil && strings.Contains(r.Request.Messages, "AQL")
	})
	if r.Request.Messages != "received \"hello\"\nsent \"bye\"\nsent Base64 \"AQL/\"" || r.Request.Note != "" {
		t.Errorf("%+v", r.Request)
	}
	r, err = run(t, c, Requests, RequestsParams{Limit: 20, Address: at, Format: "har"})
	if har := effects(r.HAR); err != nil || strings.Count(har, `"_resourceType":"websocket"`) != 3 ||
		strings.Count(har, `"opcode":1`) < 2 || strings.Contains(har, "hello") ||
		strings.Count(har, `"startedDateTime":"20`) != 3 {
		t.Errorf("%s, %s", har, exit(err))
	}
	r, err = run(t, c, Requests, RequestsParams{Limit: 20, Address: at, Bodies: true})
	if har := effects(r.HAR); err != nil || !strings.Contains(har, `"data":"hello"`) || r.LeftOut != "" {
		t.Errorf("%s, %s, %s", har, r.LeftOut, exit(err))
	}
	c.show(t, url+"/", "<title>Left</title>")
}

// TestRequests checks which requests are listed, in which order, and what is said of one.
func TestRequests(t *testing.T) {
	c := startChrome(t)
	url := server(t, c)
	c.show(t, url+"/before", `<title>Before</title><script>fetch("/data?before")</script>`)
	c.show(t, url+"/", `<title>Requests</title><script>
		const all = async () => { await (await fetch("/data?token=abc&a=1", {method: "POST", body: "sent text",
			headers: {"Authorization": "Bearer x"}})).text();
			await fetch("/gone"); await fetch("/cut").catch(() => 0); document.title = "Done" }; all()</script>`)
	if _, err := run(t, c, Wait, WaitParams{Expression: `document.title == "Done"`, Timeout: 20_000}); err != nil {
		t.Fatal(exit(err))
	}
	list := func(p RequestsParams) *RequestsResult {
		t.Helper()
		if p.Limit == 0 {
			p.Limit = 20
		}
		r, err := run(t, c, Requests, p)
		if err != nil {
			t.Fatalf("%+v: %s", p, exit(err))
		}
		return r
	}
	r := list(RequestsParams{})
	want := regexp.MustCompile(`^r\d+ net::ERR_EMPTY_RESPONSE GET ` + url + `/cut fetch \d+ ms\nr\d+ 404 GET ` + url +
		`/gone fetch( \d+ ms)? \d+ B\n(r\d+ .*favicon.*\n)?r\d+ 200 POST ` + url + `/data\?token=abc&a=1 fetch( \d+ ms)? \d+ B\n` +
		`(r\d+ .*favicon.*\n)?r\d+ 200 GET ` + url + `/ document( \d+ ms)? \d+ B$`)
	if !want.MatchString(r.Text) || r.Failed != 2 || strings.Contains(r.Text, "before") {
		t.Errorf("%d requests, %d failed:\n%s", r.Total, r.Failed, r.Text)
	}
	if r := list(RequestsParams{Failed: true, Limit: 1}); r.Total != 2 || strings.Contains(r.Text, "\n") {
		t.Errorf("failed ones: %+v", r)
	}
	if r := list(RequestsParams{Address: "/data", All: true}); r.Total < 1 {
		t.Errorf("by address: %+v", r)
	}
	if r, err := run(t, c, Console, ConsoleParams{Limit: 9}); err != nil ||
		r.LeftOut != "2 failed loads (page.requests failed true)" || r.Text != "" {
		t.Errorf("%+v, %s", r, exit(err))
	}
	id := regexp.MustCompile(`r\d+ 200 POST`).FindString(r.Text)
	one := list(RequestsParams{ID: strings.Fields(id)[0]}).Request
	if one.Outcome != "200 OK" || one.SentBody != "sent text" || !strings.HasPrefix(one.Body, `{"method":"POST"`) ||
		one.Sent["Authorization"] != redacted || one.Received["X-Api-Key"] == "" || one.Note != "" {
		t.Errorf("one request: %+v", one)
	}
	har := effects(list(RequestsParams{Format: "har"}).HAR)
	for _, want := range []string{`"version":"1.2"`, `"url":"` + url + `/data?token=[redacted]\u0026a=1"`,
		`{"name":"x-api-key","value":"[redacted]"}`, `{"name":"a","value":"1"}`, `"_error":"net::ERR_EMPTY_RESPONSE"`,
		`"startedDateTime":"20`, `"status":404`} {
		if !strings.Contains(har, want) {
			t.Errorf("%s is not in %s", want, har)
		}
	}
	for _, secret := range []string{"abc", "hidden", "Bearer"} {
		if strings.Contains(har, secret) {
			t.Errorf("%q is in %s", secret, har)
		}
	}
	if _, err := run(t, c, Requests, RequestsParams{ID: "r1"}); !strings.HasPrefix(exit(err), "no_match") {
		t.Error(exit(err))
	}
}

// TestConsoleShowsValues checks that messages read as in Chrome's console: formats, objects, groups and stacks.
func TestConsoleShowsValues(t *testing.T) {
	c := startChrome(t)
	url := site(t, c)
	c.show(t, url+"/", "")
	asyncStacks := func(on bool) {
		if _, err := run(t, c, Console, ConsoleParams{Limit: 1, AsyncStacks: &on}); err != nil {
			t.Fatal(exit(err))
		}
	}
	c.show(t, url+"/", `<script>const rest = () => new Promise((done) => setTimeout(done)); async function inner() { await rest();
		throw new TypeError("deep") }
		async function middle() { await inner() }
		async function main() { await middle() }
		main()</script>`)
	waitUntil(t, "the functions that await", func() bool {
		r, err := run(t, c, Console, ConsoleParams{Limit: 10})
		return err == nil && regexp.MustCompile(`deep \(inner /:2:\d+ < async middle /:3:\d+ < async main /:4:\d+\)`).MatchString(r.Text)
	})
	asyncStacks(true)
	defer asyncStacks(false)
	for _, test := range []struct{ script, want string }{
		{`console.warn('user %s has %d items', 'ada', 3)`, "warning user ada has 3 items"},
		{`console.log('%c red %i%% of %f', 'color: red', 41.9, 1.5, 'more', 7)`, "info red 41% of 1.5 more 7"},
		{`console.log('%d and %s', 'x')`, "info NaN and %s"},
		{`console.log('100%', 'of', '%s')`, "info 100% of %s"},
		{`console.log('%o', {a: 1})`, "info {a: 1}"},
		{`console.log(null, undefined, true, -0, 12n, NaN, '')`, "info null undefined true -0 12n NaN"},
		{`console.log({a: 1, b: 'x\'y', c: null, d: [1, 2], e: {f: 1}, g() {}})`,
			`info {a: 1, b: 'x\'y', c: null, d: Array(2), e: {…}, …}`},
		{`console.log([1, 'two', null, {}], [])`, "info (4) [1, 'two', null, {…}] []"},
		{`console.log([1, , 3], [{a: 1}], [, , 2, , ], new Array(3), [[1]])`,
			"info (3) [1, empty, 3] [{…}] (4) [empty × 2, 2, empty] (3) [empty × 3] [Array(1)]"},
		{`console.table([{name: 'ada', n: 1}, {name: 'bob', n: 2}])`, "info (2) [{name: 'ada', n: 1}, {name: 'bob', n: 2}]"},
		{`console.table([{a: 1, b: 2}], ['b'])`, "info [{b: 2}]"},
		{`console.error(new Error('outer', {cause: new TypeError('root')}))`,
			"error Error: outer Caused by: TypeError: root (main /:1:51)"},
		{`console.log(new Map([['k', 1]]), new Set([1, 2]))`, "info Map(1) {'k' => 1} Set(2) {1, 2}"},
		{`console.log(new (class Cart { n = 2 }), new Date(0).getTime(), /re/g)`, "info Cart {n: 2} 0 /re/g"},
		{`console.log(document.documentElement, Symbol('s'))`, "info html Symbol(s)"},
		{`console.log(new Uint8Array([1, 2]))`, "info Uint8Array(2) [1, 2]"},
		{`console.group('Outer'); console.log('in'); console.groupEnd(); console.log('out')`,
			"info Outer\n  info in\ninfo out"},
		{`console.assert(false, 'no %s', 'way'); console.assert(false)`,
			"error Assertion failed: no way (main /:1:51)\nerror Assertion failed (main /:1:90)"},
		{`setTimeout(function later() { (function inner() { throw new TypeError('deep') })() })`,
			"error Uncaught TypeError: deep (inner /:1:99 < later /:1:123 < async setTimeout main /:1:43)"},
		{`Promise.reject('plain')`, "error Uncaught (in promise) plain (main /:1:51)"},
		{`Promise.reject({code: 5})`, "error Uncaught (in promise) {code: 5} (main /:1:51)"},
		{`Promise.reject()`, "error Uncaught (in promise) undefined (main /:1:51)"},
		{`Promise.reject(404)`, "error Uncaught (in promise) 404 (main /:1:51)"},
		{`Promise.reject(new RangeError('far'))`, "error Uncaught (in promise) RangeError: far (main /:1:58)"},
		{`throw 'thrown'`, "error Uncaught thrown (main /:1:43)"},
		{`throw [1, 'two']`, "error Uncaught (2) [1, 'two'] (main /:1:43)"},
		{`throw null`, "error Uncaught null (main /:1:43)"},
	} {
		c.show(t, url+"/", "<title>L</title><script>function main() { "+test.script+" }\nmain()</script>")
		r, err := run(t, c, Console, ConsoleParams{Limit: 10})
		got := regexp.MustCompile(`(?m)( \(/:\d+:\d+\)| < main /:2:\d+| < /:2:\d+)`).ReplaceAllString(r.Text, "")
		got = regexp.MustCompile(`(?m)( \(main /:\d+:\d+)( < /:2:\d+)?\)`).ReplaceAllString(got, "$1)")
		if err != nil || got != test.want {
			t.Errorf("%s:\n%s\nwant\n%s\n%s", test.script, got, test.want, exit(err))
		}
	}
}

// TestConsole checks levels, counts and positions of messages, in the page and in a frame of another origin.
func TestConsole(t *testing.T) {
	c := startChrome(t)
	url := server(t, c)
	c.show(t, url+"/", "<title>Log</title><script>console.log('before')</script>")
	c.given.Store(new(`<script>console.warn("framed")</script>`))
	far := strings.Replace(url, "127.0.0.1", "localhost", 1)
	page := `<title>Log</title><script>
for (let i = 0; i < 3; i++) console.error("twice", i < 2, {a: 1});
console.debug("quiet");
function fails() { throw new TypeError("no such thing") }
setTimeout(fails);
</script>`
	if strings.Contains(far, "localhost") {
		page += `<iframe src="` + far + `/frame"></iframe>`
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = w.Write([]byte(page))
	}))
	t.Cleanup(s.Close)
	if _, err := run(t, c, Open, OpenParams{URL: s.URL + "/app"}); err != nil {
		t.Fatal(err)
	}
	r, err := run(t, c, Console, ConsoleParams{Level: "debug", Limit: 30})
	if err != nil {
		t.Fatal(exit(err))
	}
	for _, want := range []string{"error x2 twice true {a: 1} (/app:2:37)", "error twice false {a: 1} (/app:2:37)",
		"debug quiet (/app:3:9)", "error Uncaught TypeError: no such thing (fails /app:4:26", "warning framed ("} {
		if !strings.Contains("\n"+r.Text+"\n", "\n"+want) {
			t.Errorf("%s is not in\n%s", want, r.Text)
		}
	}
	if r.Total != 6 || r.Errors != 4 || strings.Contains(r.Text, "before") {
		t.Errorf("%+v", r)
	}
	if r, err := run(t, c, Console, ConsoleParams{Level: "warning", Limit: 1,
		Contains: "framed"}); err != nil || r.Total != 1 {
		t.Errorf("%+v, %v", r, err)
	}
}

// TestWorkers checks that messages of workers are shown once, as they are, and that their scripts end.
func TestWorkers(t *testing.T) {
	c := startChrome(t)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, ".js") {
			w.Header().Set("Content-Type", "text/javascript")
			_, _ = w.Write([]byte("console.log('of', {a: 1}); setTimeout(() => { throw new Error('late') })"))
			return
		}
		w.Header().Set("Content-Type", "text/html")
		_, _ = w.Write([]byte(`<title>W</title><script>
			new Worker("/classic.js"); new Worker("/module.js", {type: "module"})</script>`))
	}))
	t.Cleanup(s.Close)
	c.show(t, s.URL+"/", "")
	var r *ConsoleResult
	waitUntil(t, "the messages", func() bool {
		var err error
		r, err = run(t, c, Console, ConsoleParams{Limit: 30})
		return err == nil && r.Errors >= 2
	})
	for _, script := range []string{"classic.js", "module.js"} {
		for _, want := range []string{"info of {a: 1} (/" + script, "error Uncaught Error: late (/" + script} {
			if strings.Count(r.Text, want) != 1 {
				t.Errorf("%s is not once in\n%s", want, r.Text)
			}
		}
	}
	if r.Total != 4 || r.Errors != 2 {
		t.Errorf("%d messages, %d errors", r.Total, r.Errors)
	}
	if r, err := run(t, c, Requests, RequestsParams{Limit: 30, Address: ".js"}); err != nil ||
		strings.Count(r.Text, " 200 GET ") != 2 {
		t.Errorf("%s, %s", r.Text, exit(err))
	}
}

// TestDialogs checks that a dialog is shown, and what its answer causes.
func TestDialogs(t *testing.T) {
	c := startChrome(t)
	url := server(t, c)
	c.show(t, url+"/", `<title>Dialogs</title><p id=out></p><button onclick="out.textContent = prompt('Name?', 'Ada')">Ask</button>
		<button onclick="if (confirm('Sure?')) location = '/data'">Leave</button>`)
	if _, err := run(t, c, AnswerDialog, DialogParams{}); !strings.HasPrefix(exit(err), "no_match: no dialog") {
		t.Error(exit(err))
	}
	click := func(name string) {
		t.Helper()
		if e, err := run(t, c, Click, ClickParams{Element: name}); err != nil || e.Caused == nil || e.Caused.Dialog == nil {
			t.Fatalf("%s, %v", effects(e), err)
		}
	}
	click("Ask")
	if r, err := run(t, c, AnswerDialog, DialogParams{}); err != nil ||
		r.Dialog != (Dialog{"prompt", "Name?"}) {
		t.Fatalf("%+v, %v", r, err)
	}
	if r, err := run(t, c, Requests, RequestsParams{Limit: 5}); err != nil || r.Total == 0 {
		t.Errorf("requests while a dialog is open: %+v, %v", r, err)
	}
	r, err := run(t, c, AnswerDialog, DialogParams{Action: "accept", Text: "Bob"})
	if err != nil || r.URL != "" || c.evaluate(t, "out.textContent") != `"Bob"` {
		t.Errorf("%s, %v", effects(r), err)
	}
	click("Leave")
	if r, err = run(t, c, AnswerDialog, DialogParams{Action: "accept"}); err != nil || r.URL != url+"/data" {
		t.Errorf("%s, %v", effects(r), err)
	}
}

// TestDownloadList checks the list of downloads.
func TestDownloadList(t *testing.T) {
	c := startChrome(t)
	url := site(t, c)
	c.show(t, url+"/", `<a href="/file">File</a>`)
	if _, err := run(t, c, Click, ClickParams{Element: "File"}); err != nil {
		t.Fatal(exit(err))
	}
	r, err := run(t, c, Downloads, DownloadsParams{Wait: 10_000})
	if err != nil || len(r.Downloads) == 0 {
		t.Fatalf("%+v, %v", r, err)
	}
	if d := r.Downloads[len(r.Downloads)-1]; d.Name != "report.csv" || d.State != "done" || d.Path == "" || d.Bytes != 3 ||
		d.URL != url+"/file" {
		t.Errorf("%+v", d)
	}
}

// TestStores checks cookies, the storage of a page, and saved logins.
func TestStores(t *testing.T) {
	c := startChrome(t)
	url := server(t, c)
	c.show(t, url+"/", `<title>Stores</title><script>document.cookie = "one=1; path=/"; localStorage.long = "x".repeat(100)</script>`)
	text := func(v string) *string { return &v }
	r, err := run(t, c, Cookies, CookiesParams{})
	if err != nil || !strings.Contains(effects(r), `{"name":"one","for":"127.0.0.1/"}`) {
		t.Errorf("%s, %v", effects(r), err)
	}
	if r, err = run(t, c, Cookies, CookiesParams{Name: "one"}); err != nil || *r.Cookies[0].Value != "1" {
		t.Errorf("%s, %v", effects(r), err)
	}
	if r, err = run(t, c, Cookies, CookiesParams{Name: "two", Value: text("2"), MaxAge: 3600, HTTPOnly: true,
		SameSite: "Lax"}); err != nil || r.Cookies[0].Flags != "http_only same_site=Lax" || r.Cookies[0].Expires == "" {
		t.Errorf("%s, %v", effects(r), err)
	}
	if got := c.evaluate(t, "document.cookie"); got != `"one=1"` {
		t.Errorf("a cookie that is not for scripts: %s", got)
	}
	for i := range 20 { // Chrome stores what scripts set some time later
		c.evaluate(t, fmt.Sprintf(`document.cookie = "now=%d"`, i))
		if r, err = run(t, c, Cookies, CookiesParams{Name: "now"}); err != nil || *r.Cookies[0].Value != fmt.Sprint(i) {
			t.Errorf("%d: %s, %v", i, effects(r), err)
		}
	}
	c.evaluate(t, `document.cookie = "now=; max-age=0"`)
	if _, err = run(t, c, Cookies, CookiesParams{Name: "none"}); !strings.HasPrefix(exit(err), "no_match") {
		t.Error(exit(err))
	}
	if _, err = run(t, c, Cookies, CookiesParams{Name: "x", Value: text("1"), Domain: "other.test"}); err == nil {
		t.Error("a cookie of another domain is set")
	}

	s, err := run(t, c, Storage, StorageParams{Area: "local"})
	if err != nil || effects(s) != `{"entries":[{"key":"long","value":"`+strings.Repeat("x", 59)+`…","length":100}]}` {
		t.Errorf("%s, %v", effects(s), err)
	}
	if _, err := run(t, c, Storage, StorageParams{Area: "session", Key: "k", Value: text("v")}); err != nil ||
		c.evaluate(t, "sessionStorage.k") != `"v"` {
		t.Errorf("%v", err)
	}
	if s, err = run(t, c, Storage, StorageParams{Area: "local", Key: "long"}); err != nil ||
		len(s.Entries[0].Value) != 100 {
		t.Errorf("%s, %v", effects(s), err)
	}
	if _, err = run(t, c, Storage, StorageParams{Area: "local", Key: "none"}); !strings.HasPrefix(exit(err), "no_match") {
		t.Error(exit(err))
	}

	saved, err := run(t, c, State, StateParams{Action: "save", Name: "work"})
	if err != nil || saved.Cookies != 2 || saved.Items != 2 || saved.Origins[0] != url {
		t.Fatalf("%s, %v", effects(saved), err)
	}
	c.evaluate(t, `document.cookie = "one=; max-age=0; path=/"; localStorage.clear(); 1`)
	// The items are written by a page of their own, from which Chrome passes them on to this one.
	const loaded = `new Promise(done => {
		const look = () => localStorage.long ? done(document.cookie + localStorage.long.length) : setTimeout(look, 5)
		look()
	})`
	if saved, err = run(t, c, State, StateParams{Action: "load", Name: "work"}); err != nil || saved.Cookies != 2 ||
		c.evaluate(t, loaded) != `"one=1100"` {
		t.Errorf("%s, %v", effects(saved), err)
	}
	if saved, err = run(t, c, State, StateParams{Action: "list"}); err != nil || len(saved.States) != 1 {
		t.Errorf("%s, %v", effects(saved), err)
	}
	if _, err = run(t, c, State, StateParams{Action: "delete", Name: "work"}); err != nil {
		t.Error(exit(err))
	}
}

// TestStateFirst checks that a login can be loaded before anything is open.
func TestStateFirst(t *testing.T) {
	t.Parallel()
	c := newChrome(t)
	defer c.stop()
	url := server(t, c)
	c.show(t, url+"/", `<title>State</title>`)
	if got := c.evaluate(t, `document.hasFocus()`); got != "true" {
		t.Errorf("the first page of a browser has the focus: %s", got)
	}
	c.evaluate(t, `document.cookie = "one=1; path=/; max-age=1000"; localStorage.k = "v"; 1`)
	if _, err := run(t, c, State, StateParams{Action: "save", Name: "work"}); err != nil {
		t.Fatal(exit(err))
	}
	if _, err := c.invoke(t.Context(), "close", `{"all":true}`); err != nil {
		t.Fatal(err)
	}
	r, err := run(t, c, State, StateParams{Action: "load", Name: "work"})
	if err != nil || r.Cookies != 1 || r.Items != 1 {
		t.Fatalf("%s: %s", effects(r), exit(err))
	}
	c.show(t, url+"/", `<title>State</title>`)
	if got := c.evaluate(t, `document.cookie + localStorage.k`); got != `"one=1v"` {
		t.Error(got)
	}
}

// TestWaitForFrames checks that a wait sees the requests of a frame in a process of its own.
func TestWaitForFrames(t *testing.T) {
	c := startChrome(t)
	url := server(t, c)
	far := strings.Replace(url, "127.0.0.1", "localhost", 1)
	c.show(t, url+"/", `<title>Wait</title><body><script>if (location.hostname == "localhost") setTimeout(() => fetch("/data?framed"), 300)
		else document.body.insertAdjacentHTML("beforeend", '<iframe src="`+far+`/frame"></iframe>')</script>`)
	if _, err := run(t, c, Wait, WaitParams{Request: "/data?framed", Timeout: 20_000}); err != nil {
		t.Error(exit(err))
	}
}

// TestRoutes checks rules for requests: added one by one, removed, listed.
func TestRoutes(t *testing.T) {
	c := startChrome(t)
	url := server(t, c)
	c.show(t, url+"/", `<title>Routes</title>`)
	route := func(p RouteParams) *RouteResult {
		t.Helper()
		r, err := run(t, c, Route, p)
		if err != nil {
			t.Fatalf("%+v: %s", p, exit(err))
		}
		return r
	}
	fetched := func(path string) string {
		t.Helper()
		return c.evaluate(t, fmt.Sprintf(`fetch(%q).then(async r => r.status + await r.text(), () => "failed")`, path))
	}
	route(RouteParams{Action: "mock", Address: "*/data*", Body: "mocked", Status: 201})
	r := route(RouteParams{Action: "block", Address: "*/data?blocked"})
	if len(r.Rules) != 2 || r.Rules[0].Action != "block" {
		t.Errorf("%+v", r)
	}
	if a, b := fetched("/data"), fetched("/data?blocked"); a != `"201mocked"` || b != `"failed"` {
		t.Errorf("%s and %s", a, b)
	}
	route(RouteParams{Action: "delay", Address: "*/gone", Delay: 300})
	began := time.Now()
	if got := fetched("/gone"); !strings.HasPrefix(got, `"404`) || time.Since(began) < 300*time.Millisecond {
		t.Errorf("%s after %s", got, time.Since(began))
	}
	route(RouteParams{Action: "mock", Address: "*/data*", Body: "other"})
	if r = route(RouteParams{Action: "remove", Address: "*/data?blocked"}); len(r.Rules) != 2 {
		t.Errorf("%+v", r)
	}
	if got := fetched("/data?blocked"); got != `"200other"` {
		t.Errorf("a rule that replaced another: %s", got)
	}
	route(RouteParams{Action: "block", Resource: "image"}) // and not what is fetched from its address
	route(RouteParams{Action: "mock", Resource: "script", Body: "window.ran = true"})
	loaded := c.evaluate(t, `new Promise(done => { const i = new Image, s = document.createElement("script"), said = []
		i.onload = i.onerror = s.onload = s.onerror = (e) => said.push(e.target.localName + e.type) > 1 && done(said.sort() + window.ran)
		i.src = s.src = "/data"; document.head.append(s) })`)
	if got := fetched("/data"); loaded != `"imgerror,scriptloadtrue"` || got != `"200other"` {
		t.Errorf("%s, fetched %s", loaded, got)
	}
	r = route(RouteParams{})
	if r.Rules[0].Resource != "script" || r.Rules[1].Resource != "image" || r.Rules[1].Requests != 1 {
		t.Errorf("%+v", r)
	}
	route(RouteParams{Action: "mock", Address: "*.png", Body: "picture"})
	if got := fetched("/chart.png?1"); got != `"200picture"` {
		t.Errorf("a pattern without a query: %s", got)
	}
	if r = route(RouteParams{Action: "remove"}); len(r.Rules) != 0 || !strings.Contains(fetched("/data"), "GET") {
		t.Errorf("%+v", r)
	}
	if _, err := run(t, c, Route, RouteParams{Action: "mock"}); !strings.Contains(exit(err), "pattern") {
		t.Error(err)
	}
}

// TestEmulate checks what the page finds, and that it is as before after a reset.
func TestEmulate(t *testing.T) {
	c := startChrome(t)
	url := server(t, c)
	c.show(t, url+"/", `<title>Emulate</title><meta name=viewport content="width=device-width">`)
	const seen = `JSON.stringify([innerWidth, devicePixelRatio, matchMedia("(prefers-color-scheme: dark)").matches,
		new Date(0).getHours(), (1.5).toLocaleString(), navigator.onLine, navigator.maxTouchPoints, /iPhone/.test(navigator.userAgent)])`
	before := c.evaluate(t, seen)
	dark := true
	r, err := run(t, c, Emulate, EmulateParams{Device: "iphone", Dark: &dark, Locale: "de-DE", Timezone: "Asia/Tokyo",
		Geolocation: []float64{59.9, 10.7}, Headers: map[string]string{"X-Test": "sent"}, CPU: 2})
	if err != nil {
		t.Fatal(exit(err))
	}
	if got := c.evaluate(t, seen); got != `"[393,3,true,9,\"1,5\",true,5,true]"` {
		t.Errorf("%s, %s", got, effects(r))
	}
	if got := c.evaluate(t, `fetch("/data").then(r => r.json()).then(d => d.header + /iPhone/.test(d.agent))`); got != `"senttrue"` {
		t.Error(got)
	}
	if got := c.evaluate(t, `new Promise((done) => navigator.geolocation.getCurrentPosition((p) => done(p.coords.latitude), (e) => done(e.message)))`); got != `59.9` {
		t.Error(got)
	}
	if _, err := run(t, c, Emulate, EmulateParams{Network: "offline"}); err != nil {
		t.Fatal(exit(err))
	}
	if got := c.evaluate(t, `fetch("/data").then(() => "sent", () => "failed").then(r => r + navigator.onLine)`); got != `"failedfalse"` {
		t.Errorf("offline: %s", got)
	}
	if _, err := run(t, c, Emulate, EmulateParams{Reset: true}); err != nil {
		t.Fatal(exit(err))
	}
	if got := c.evaluate(t, seen); got != before {
		t.Errorf("after a reset: %s, before %s", got, before)
	}
	if got := c.evaluate(t, `fetch("/data").then(r => r.json()).then(d => d.header)`); got != `""` {
		t.Errorf("headers after a reset: %s", got)
	}
	if _, err := run(t, c, Emulate, EmulateParams{Device: "640x480"}); err != nil || c.evaluate(t, "innerWidth") != "640" {
		t.Errorf("a viewport: %v", err)
	}
	for _, p := range []EmulateParams{{Timezone: "Nowhere"}, {Device: "toaster"}, {Device: "1x1"}} {
		if _, err := run(t, c, Emulate, p); err == nil {
			t.Errorf("%+v is accepted", p)
		}
	}
	if _, err := run(t, c, Emulate, EmulateParams{Reset: true}); err != nil {
		t.Fatal(exit(err))
	}
}

// TestVitals checks the figures of a page that shifts and is busy.
func TestVitals(t *testing.T) {
	c := startChrome(t)
	url := server(t, c)
	c.show(t, url+"/", `<title>Vitals</title><div id=space></div><h1 style="font-size:80px">A large title</h1><p>Text</p>
		<script>new PerformanceObserver((list, o) => { // only what has been painted can shift
			o.disconnect()
			setTimeout(() => {
				space.style.height = "200px"
				const end = performance.now() + 120
				while (performance.now() < end);
				document.title = "Done"
			}, 100)
		}).observe({type: "paint", buffered: true})</script>`)
	if _, err := run(t, c, Wait, WaitParams{Expression: `document.title == "Done"`, Timeout: 20_000}); err != nil {
		t.Fatal(exit(err))
	}
	r, err := run(t, c, Vitals, VitalsParams{})
	if err != nil || r.FCP == 0 || r.LCP < r.FCP || !strings.HasPrefix(r.Element, `heading "A large title" `) || r.CLS == 0 ||
		r.LongTasks == 0 || r.Longest < 100 || r.Load == 0 {
		t.Errorf("%s, %v", effects(r), err)
	}
}

// TestDrag drags by pointer events and by the browser's own drag and drop.
func TestDrag(t *testing.T) {
	c := startChrome(t)
	url := server(t, c)
	c.show(t, url+"/", `<title>Drag</title><style>div { width: 100px; height: 60px; margin: 20px; background: #ccc }</style>
		<div id=card role=button draggable=true aria-label=Card>Card</div><div id=bin role=group aria-label=Bin>Bin</div>
		<div id=knob role=slider aria-label=Knob tabindex=0></div><div id=plain role=button aria-label=Plain></div><p id=out></p>
		<div style="height:3000px"></div><div id=far role=button aria-label=Far></div><script>
		let from = "", ended = null;
		card.ondragstart = (e) => { from = "card"; e.dataTransfer.setData("text/plain", "card") };
		card.ondragend = (e) => ended = e.isTrusted;
		bin.ondragover = (e) => e.preventDefault();
		bin.ondrop = (e) => { e.preventDefault(); out.textContent = e.dataTransfer.getData("text/plain") + " dropped " + e.isTrusted };
		let x = 0;
		knob.onpointerdown = (e) => { x = e.clientX; knob.setPointerCapture(e.pointerId) };
		knob.onpointerup = (e) => out.textContent = "moved " + Math.round(e.clientX - x);
		far.onpointerup = () => out.textContent = "far";
		</script>`)
	e, err := run(t, c, Drag, DragParams{Element: "Card", To: "css=#bin"})
	if err != nil || c.evaluate(t, "out.textContent") != `"card dropped true"` ||
		e.Note != "" || c.evaluate(t, "ended") != "true" {
		t.Errorf("drag and drop: %s, %s, %s", effects(e), exit(err), c.evaluate(t, "out.textContent"))
	}
	if e, err = run(t, c, Drag, DragParams{Element: "Knob", By: []float64{120, 3}}); err != nil ||
		c.evaluate(t, "out.textContent") != `"moved 120"` {
		t.Errorf("by pixels: %s, %s, %s", effects(e), exit(err), c.evaluate(t, "out.textContent"))
	}
	if _, err = run(t, c.hurried(), Drag, DragParams{Element: "Card",
		To: "Plain"}); !strings.HasPrefix(exit(err), "not_ready") {
		t.Errorf("onto what takes nothing: %s", exit(err))
	}
	if e, err = run(t, c, Drag, DragParams{Element: "Knob", To: "Plain"}); err != nil ||
		c.evaluate(t, "out.textContent") == `"moved 120"` {
		t.Errorf("onto another: %s, %s", effects(e), exit(err))
	}
	if _, err = run(t, c.hurried(), Drag, DragParams{Element: "Plain",
		To: "None"}); !strings.HasPrefix(exit(err), "no_match") {
		t.Error(exit(err))
	}
	if _, err := run(t, c, Click, ClickParams{Element: "Plain"}); err != nil {
		t.Errorf("a click after drags: %s", exit(err))
	}
	c.show(t, url+"/", `<title>Busy</title><button onpointerdown="busy = 3000" onpointerup="ups++">Slow</button><button>End</button>
		<script>let ups = 0, busy = 0; onmousemove = () => { for (const end = Date.now() + busy; Date.now() < end;); busy = 0 }
		onpointerup = () => ups++</script>`)
	_, err = run(t, c.hurried(), Drag, DragParams{Element: "Slow", To: "End"})
	if !strings.HasPrefix(exit(err), "timeout") {
		t.Errorf("a drag that takes too long: %s", exit(err))
	}
	if _, err := run(t, c, Wait, WaitParams{Expression: "ups > 0", Timeout: 10_000}); err != nil {
		t.Errorf("after a drag that took too long the button is held: %s", exit(err))
	}
}

// TestUpload gives files to inputs: hidden ones, those of labels, in a shadow root and in a frame.
func TestUpload(t *testing.T) {
	c := startChrome(t)
	url := site(t, c)
	c.show(t, url+"/", `<title>Upload</title><label>Photo <input id=photo type=file style="display:none"></label>
		<form><button type=button>Attach</button><input id=many type=file multiple hidden></form><div><button>Alone</button></div>
		<p><button>Send</button><label for=sent role=button>Send</label><input id=sent type=file hidden></p>
		<input id=off type=file disabled aria-label=Off><div id=host></div><a href="/file">File</a><p id=out></p>
		<iframe title=Frame srcdoc="<input type=file aria-label=Framed
			onchange='parent.out.textContent = event.isTrusted + this.files[0].name'>"></iframe><script>
		host.attachShadow({mode: "open"}).innerHTML = "<input type=file aria-label=Inner>";
		for (const root of [document, host.shadowRoot]) root.addEventListener("change", async (e) => { const files = [...e.composedPath()[0].files];
			out.textContent = e.isTrusted + files.map((f) => f.name + f.size).join() + (await files[0].text()) });
		</script>`)
	upload := func(p UploadParams, want string) {
		t.Helper()
		r, err := run(t, c, Upload, p)
		if err != nil || r.Note != "" {
			t.Fatalf("%+v: %s, %s", p, effects(r), exit(err))
		}
		if _, err := run(t, c, Wait, WaitParams{Text: want, Timeout: 5000}); err != nil {
			t.Errorf("%+v: %s, %s", p, exit(err), c.evaluate(t, "out.textContent"))
		}
	}
	const one, two = "handed:a1/3/one.txt", "handed:b2/3/two.txt"
	upload(UploadParams{Element: "css=#photo", Files: []string{one}}, "trueone.txt19handed:a1/3/one.txt")
	upload(UploadParams{Element: "Photo", Files: []string{two}}, "truetwo.txt19")
	upload(UploadParams{Element: "Attach", Files: []string{one, two}}, "trueone.txt19,two.txt19")
	upload(UploadParams{Element: "Send", Files: []string{two}}, "truetwo.txt19")
	upload(UploadParams{Element: "Inner", Files: []string{one}}, "trueone.txt19")
	upload(UploadParams{Element: "Framed", Files: []string{two}}, "truetwo.txt")
	if _, err := run(t, c, Click, ClickParams{Element: "File"}); err != nil {
		t.Fatal(exit(err))
	}
	if d, err := run(t, c, Downloads, DownloadsParams{Wait: 10_000}); err != nil || len(d.Downloads) == 0 {
		t.Fatalf("%+v, %s", d, exit(err))
	}
	upload(UploadParams{Element: "css=#photo", Downloads: []string{"report.csv"}}, "report.csv3a,b")
	for _, test := range []struct {
		p    UploadParams
		want string
	}{
		{UploadParams{Element: "css=#photo", Files: []string{one, two}}, "it takes only one file"},
		{UploadParams{Element: "Alone", Files: []string{one}}, "it takes no files: "},
		{UploadParams{Element: "css=#off", Files: []string{one}}, "it is disabled"},
		{UploadParams{Element: "css=#photo", Downloads: []string{"none"}}, "no download is named"},
		{UploadParams{Element: "css=#photo", Files: []string{"/etc/hostname"}}, "denied"},
		{UploadParams{Element: "css=#photo"}, "files, or downloads"},
	} {
		if _, err := run(t, c.hurried(), Upload, test.p); !strings.Contains(exit(err), test.want) {
			t.Errorf("%+v: %s", test.p, exit(err))
		}
	}
}

// TestUploadWithoutInput gives files to elements that are no file inputs: drop zones, and what opens a chooser, also in
// frames. A click on the latter says that the page asks for files.
func TestUploadWithoutInput(t *testing.T) {
	c := startChrome(t)
	url := site(t, c)
	const zone = `<div role=button tabindex=0 aria-label=Zone style="width:200px;height:80px" ondragover="event.preventDefault()"
		ondrop="event.preventDefault(); top.out.textContent = event.isTrusted + [...event.dataTransfer.files].map((f) => f.name)">Drop</div>`
	const opener = `<button onclick="const i = document.createElement('input'); i.type = 'file'; i.multiple = MULTIPLE; i.onchange =
		(e) => top.out.textContent = e.isTrusted + [...i.files].map((f) => f.name); i.click()">Choose</button>`
	one, several := strings.ReplaceAll(opener, "MULTIPLE", "false"), strings.ReplaceAll(opener, "MULTIPLE", "true")
	frame := func(html string) string {
		return `<iframe title=F srcdoc="` + strings.ReplaceAll(html, `"`, "&quot;") + `"></iframe>`
	}
	const cover = `<div id=cover style="position:fixed;inset:0;display:none">Drop anywhere</div><script>let over = 0;
		addEventListener("dragenter", () => { over++; cover.style.display = "block" }); addEventListener("dragover", (e) => e.preventDefault());
		addEventListener("dragleave", () => --over || (cover.style.display = "none")); addEventListener("drop", (e) => { e.preventDefault();
		cover.style.display = "none"; out.textContent = "dropped " + e.dataTransfer.files[0].name })</script>`
	a, both := []string{"one.txt"}, []string{"one.txt", "two.txt"}
	for name, test := range map[string]struct {
		html, element string
		files         []string
		want          string // what the page got, or the error
	}{
		"a drop zone":            {zone, "Zone", both, "trueone.txt,two.txt"},
		"a drop zone in a frame": {frame(zone), "Zone", a, "trueone.txt"},
		"a chooser":              {one, "Choose", a, "trueone.txt"},
		"a chooser of several":   {several, "Choose", both, "trueone.txt,two.txt"},
		"a chooser in a frame":   {frame(one), "Choose", a, "trueone.txt"},
		"a chooser of one":       {one, "Choose", both, "it takes only one file"},
		"one for persons only":   {`<button onclick="showOpenFilePicker()">Open</button>`, "Open", a, "showOpenFilePicker"},
		"neither":                {`<button>Nothing</button>`, "Nothing", a, "it takes no files"},
		"a folder":               {`<input type=file webkitdirectory aria-label=Folder>`, "Folder", a, "it takes a folder"},
		"a named region": {strings.Replace(zone, "role=button tabindex=0", "role=region", 1), "Zone", a,
			"trueone.txt"},
		"a zone that refuses": {strings.Replace(zone, `event.preventDefault()"`, `event.preventDefault();
			event.dataTransfer.dropEffect = 'none'"`, 1), "Zone", a, "it takes no files"},
		"a button on a page that covers itself while files are dragged": {one + cover, "Choose", a, "trueone.txt"},
		"a page that covers itself while files are dragged": {"<p>Chat</p>" + cover, "Chat", a,
			"dropped one.txt"},
	} {
		c.show(t, url+"/", "<title>Files</title><p><output id=out></output></p>"+test.html)
		var files []string
		for _, file := range test.files {
			files = append(files, "handed:a1/3/"+file)
		}
		r, err := run(t, c, Upload, UploadParams{Element: test.element, Files: files})
		if got := c.evaluate(t, "out.textContent"); err == nil && got != `"`+test.want+`"` ||
			err != nil && !strings.Contains(exit(err), test.want) {
			t.Errorf("%s: %s, %s, the page has %s", name, effects(r), exit(err), got)
		}
		if now := c.evaluate(t, "location.pathname"); now != `"/"` {
			t.Errorf("%s: the page went to %s", name, now)
		}
	}
	for accept, isOffered := range map[string]bool{"": true, ".txt": true, ".PDF, .TXT": true, "text/*": true, "*/*": true,
		"text/plain": true, "image/*": false, ".pdf": false, "application/pdf,image/png": false} {
		c.show(t, url+"/", `<input type=file aria-label=File accept="`+accept+`">`)
		r, err := run(t, c, Upload, UploadParams{Element: "File", Files: []string{"handed:a1/3/one.txt"}})
		if err != nil || strings.Contains(r.Note, "would not be offered") == isOffered {
			t.Errorf("accept %q: %s, %s", accept, effects(r), exit(err))
		}
	}
	c.show(t, url+"/", "<title>Refused</title>"+strings.Replace(one, "i.click()", "i.click(); console.error('asked')", 1))
	two := []string{"handed:a1/3/one.txt", "handed:a1/3/two.txt"}
	_, err := run(t, c, Upload, UploadParams{Element: "Choose", Files: two})
	raw, failed := c.raw(t, "text", `{"max_tokens":50}`)
	for turn := 0; turn < 20 && failed == nil && !strings.Contains(string(raw), `"before"`); turn++ { // what comes late
		raw, failed = c.raw(t, "text", `{"max_tokens":50}`)
	}
	if !strings.Contains(exit(err), "it takes only one file") || failed != nil || strings.Contains(string(raw), `"chooser"`) ||
		!strings.Contains(string(raw), `"of":"upload button `) || !strings.Contains(string(raw), `"errors":["\"asked\""]`) {
		t.Errorf("after a refused upload: %s, %s, %s", exit(err), raw, exit(failed))
	}
	c.show(t, url+"/", one)
	if e, err := run(t, c, Click, ClickParams{Element: "Choose"}); err != nil || !strings.Contains(effects(e), `"chooser":"one file"`) ||
		!strings.Contains(e.Note, "page.upload") {
		t.Errorf("%s, %s", effects(e), exit(err))
	}
	c.show(t, url+"/", `<button onclick="showSaveFilePicker()">Save</button><iframe srcdoc="`+strings.ReplaceAll(one, `"`, "&quot;")+
		`"></iframe><iframe src="`+strings.Replace(url, "127.0.0.1", "localhost", 1)+"/echo?"+neturl.QueryEscape(several)+`"></iframe>`)
	s, err := run(t, c, Snapshot, SnapshotParams{MaxTokens: 1500})
	refs := regexp.MustCompile(`button "(?:Save|Choose)" (\w+)`).FindAllStringSubmatch(s.Text, -1)
	if err != nil || len(refs) != 3 {
		t.Fatalf("%s, %s", s.Text, exit(err))
	}
	for i, want := range []string{"by showOpenFilePicker", "one file", "several files"} {
		e, err := run(t, c, Click, ClickParams{Element: refs[i][1]})
		if err != nil || e.Caused == nil || !strings.HasPrefix(e.Caused.Chooser, want) ||
			strings.Contains(e.Note, "page.upload") != (i > 0) {
			t.Errorf("%s: %s, %s", want, effects(e), exit(err))
		}
	}
}
