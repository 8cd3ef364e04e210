package page_test

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/parley-tools/parley/cdp"
	"github.com/parley-tools/parley/cdp/page"
	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/call"
	"github.com/parley-tools/parley/host/job"
	"github.com/parley-tools/parley/host/outbound"
	"github.com/parley-tools/parley/host/step"
	"github.com/parley-tools/parley/manifest"
	"github.com/parley-tools/parley/manifest/jsontext"
	"github.com/parley-tools/parley/manifest/schema"
)

func TestMain(m *testing.M) {
	if os.Getenv("PARLEY_CHILD") == cdp.KeeperJob {
		os.Exit(cdp.KeeperMain(func() (outbound.Egress, error) { return nil, fmt.Errorf("no guard in this test") }))
	}
	code := m.Run()
	close(idle)
	for c := range idle {
		c.stop()
	}
	os.Exit(code)
}

// scriptPath is where page.js is, which runs in each document.
var scriptPath = filepath.Join("..", "internal", "keeper", "page", "page.js")

// chrome is a browser, and a site of the pages in testdata.
type chrome struct {
	p        *cdp.Provider
	pages    *page.Provider
	dir      string
	script   []byte
	site     *httptest.Server
	given    atomic.Pointer[string] // the document at /given
	target   string                 // of the next calls; "" for the current page
	wait     string                 // as target
	deadline time.Duration          // of the next call of a verb; 0: none
}

// idle has the browsers that no test uses now.
var idle = make(chan *chrome, 64)

// startChrome lets a test run beside others, with a browser that it has for itself until it ends.
func startChrome(t *testing.T) *chrome {
	t.Helper()
	t.Parallel()
	var c *chrome
	select {
	case c = <-idle:
	default:
		c = newChrome(t)
	}
	t.Cleanup(func() {
		_, _ = c.invoke(context.Background(), "Network.clearBrowserCookies", `{}`) // the sites of all tests have one name
		idle <- c
	})
	return c
}

// newChrome starts a browser.
func newChrome(t *testing.T) *chrome {
	t.Helper()
	script, err := os.ReadFile(scriptPath)
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "") // the path of t.TempDir is too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	c := &chrome{dir: dir, script: script,
		p: cdp.New(cdp.Config{RunDir: filepath.Join(dir, "run"), Env: os.Getenv, Version: "test",
			StateDir: filepath.Join(dir, "state")})}
	c.pages = page.New(c.p)
	c.site = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if foreign, ok := strings.CutPrefix(r.URL.Path, "/foreign/"); ok {
			http.ServeFile(w, r, filepath.Join(packages, filepath.FromSlash(foreign)))
			return
		}
		if r.URL.Path != "/given" {
			http.FileServer(http.Dir("testdata")).ServeHTTP(w, r)
			return
		}
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = io.WriteString(w, *c.given.Load())
	}))
	if _, err := c.invoke(t.Context(), "open", `{}`); err != nil {
		c.stop()
		if host.AsError(err).Code == host.ChromeLaunch && os.Getenv("CI") != "true" {
			t.Skip("needs a browser: ", err)
		}
		t.Fatal(err)
	}
	return c
}

func (c *chrome) stop() {
	_, _ = c.invoke(context.Background(), "close", `{"all":true}`)
	c.p.Close()
	c.site.Close()
	_ = os.RemoveAll(c.dir)
}

// closePage closes a page, also after the context of the test has ended.
func (c *chrome) closePage(target string) {
	_, _ = c.invoke(context.Background(), "Target.closeTarget", fmt.Sprintf(`{"targetId":%q}`, target))
}

// invoke calls a tool of the plugin cdp.
func (c *chrome) invoke(ctx context.Context, tool, params string) (json.RawMessage, error) {
	result, err := c.send(ctx, c.p, tool, params)
	if err != nil {
		return nil, err
	}
	return result.Data, nil
}

// send calls a tool with what a host would serve.
func (c *chrome) send(ctx context.Context, p host.Provider, tool, params string) (*job.Result, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	r := &host.Request{Job: job.Job{Tool: tool, Params: json.RawMessage(params), Caller: "cli",
		Options: job.Options{Place: step.Place{Target: c.target}, Wait: c.wait}}}
	r.Ask = (&call.Functions{Script: func(_ string, withText bool) (job.Script, error) {
		s := job.Script{Plugin: "page", SHA256: fmt.Sprintf("%x", sha256.Sum256(c.script))}
		if withText {
			s.Text = string(c.script)
		}
		return s, nil
	}, CopySharedFile: func(text, folder string) (string, error) {
		own, err := os.MkdirTemp(folder, "")
		path, content := filepath.Join(own, filepath.Base(text)), []byte(text)
		if given, err := os.ReadFile(text); err == nil {
			content = given
		}
		return path, errors.Join(err, os.WriteFile(path, content, 0o600))
	}, BoundSecret: func(context.Context, string) (job.BoundSecret, error) {
		return job.BoundSecret{Value: "the secret", Origins: []string{c.site.URL}}, nil
	}}).Ask
	return p.Invoke(ctx, r)
}

// run calls a verb with parameters that have their defaults. Its result is as its manifest says.
func run[P, R any](t *testing.T, c *chrome, v verb[P, R], p P) (result R, err error) {
	t.Helper()
	ctx, isHurried := t.Context(), c.deadline == hurry
	if c.deadline > 0 {
		limited, cancel := context.WithTimeout(ctx, c.deadline)
		defer cancel()
		ctx, c.deadline = limited, 0
	}
	done, err := c.send(ctx, c.pages, string(v), string(must(json.Marshal(p))))
	told := exit(err)
	isBusy := regexp.MustCompile("there was no time to look|did not return within|timed out before it was sent")
	if isHurried && isBusy.MatchString(told) { // the machine, and not the page
		c.deadline = 4 * hurry
		return run(t, c, v, p)
	}
	if command.MatchString(told) {
		t.Errorf("%s: the error names a command that its caller did not call: %s", v, told)
	}
	if err != nil {
		return result, err
	}
	if err := json.Unmarshal(done.Data, &result); err != nil {
		t.Fatalf("%s: %s: %v", v, done.Data, err)
	}
	tool := must(c.pages.Tool(string(v)))
	value := must(jsontext.Decode(jsontext.ReplaceLoneSurrogates(done.Data), jsontext.Limits{Bytes: len(done.Data)}))
	if wrong := must(must(schema.CompileTrusted(tool.Returns)).Validate(value)); len(wrong) > 0 {
		t.Errorf("%s returned %s: %+v", v, manifest.Clip(string(done.Data), 300), wrong)
	}
	return result, nil
}

// command matches commands of the domains that verbs use.
var command = regexp.MustCompile(`\b(Accessibility|Browser|CSS|DOM|DOMSnapshot|Emulation|Fetch|Input|Network|Page|` +
	`Runtime|Storage|Target)\.[a-z]\w+`)

const hurry = 1500 * time.Millisecond

// hurried gives the next call little time.
func (c *chrome) hurried() *chrome {
	c.deadline = hurry
	return c
}

// exit returns the name of the exit code of an error, and its message; of a wrong parameter, what was expected.
func exit(err error) string {
	if err == nil {
		return "no error"
	}
	e := host.AsError(err)
	switch {
	case e.Exit != 0:
		return e.Tool.Name + ": " + e.Message
	case len(e.Details) > 0:
		return e.Message + ": " + e.Details[0].Parameter + " is to be " + e.Details[0].Expected
	}
	return string(e.Code) + ": " + e.Message
}

// open shows a page of testdata, or a document given as HTML.
func (c *chrome) open(t *testing.T, shown string) {
	t.Helper()
	path := shown
	if strings.HasPrefix(shown, "<") {
		c.given.Store(&shown)
		path = "given"
	}
	if _, err := c.invoke(t.Context(), "open", string(must(json.Marshal(map[string]string{
		"url": c.site.URL + "/" + path})))); err != nil {
		t.Fatal(err)
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// call calls a function of the script and decodes its value into v, unless v is nil.
func (c *chrome) call(t *testing.T, v any, function string, args ...any) {
	t.Helper()
	params := must(json.Marshal(map[string]any{"script": "page", "call": function, "args": append([]any{}, args...)}))
	raw, err := c.invoke(t.Context(), "script", string(params))
	if err != nil {
		t.Fatalf("%s: %v", function, err)
	}
	var done struct{ Value json.RawMessage }
	if err := json.Unmarshal(raw, &done); err != nil {
		t.Fatal(err)
	}
	if v != nil {
		if err := json.Unmarshal(done.Value, v); err != nil {
			t.Fatalf("%s: %s: %v", function, done.Value, err)
		}
	}
}

// evaluate returns the value of an expression in the page.
func (c *chrome) evaluate(t *testing.T, expression string) string {
	t.Helper()
	raw, err := c.invoke(t.Context(), "Runtime.evaluate",
		string(must(json.Marshal(map[string]any{"expression": expression, "returnByValue": true, "awaitPromise": true}))))
	if err != nil {
		t.Fatal(err)
	}
	var done struct {
		Result struct{ Value json.RawMessage }
	}
	if err := json.Unmarshal(raw, &done); err != nil {
		t.Fatal(err)
	}
	return string(done.Result.Value)
}

// withoutRefs replaces the references in a snapshot by REF.
func withoutRefs(text string) string {
	return regexp.MustCompile(`(?m) [a-z]{3}\d+( \[|$)`).ReplaceAllString(text, " REF$1")
}

// TestSnapshot checks what a snapshot shows, that it stays within its budget, and what it says it left out.
func TestSnapshot(t *testing.T) {
	c := startChrome(t)
	var s snapshot
	c.open(t, "forms.html")
	c.call(t, &s, "snapshot")
	for _, want := range []string{`link "Shop" `, `textbox "Password" REF [value="••••••"]`, `radio "Paid from 5 €" `,
		`combobox "Country" REF [value="Italy"]`, `button "Disabled" REF [disabled]`, `summary "Open one" REF [open]`} {
		if !strings.Contains(withoutRefs(s.Text), want) {
			t.Errorf("%s is missing in\n%s", want, s.Text)
		}
	}
	for _, hidden := range []string{"secret", "Hidden", "Invisible", "Not there", "Inert", "In details"} {
		if strings.Contains(s.Text, hidden) {
			t.Errorf("%s is shown", hidden)
		}
	}
	c.call(t, &s, "snapshot", map[string]any{"roles": "interactive"})
	if strings.Contains(s.Text, "Not a link") || !strings.Contains(s.Text, `button "Send" `) || s.Left.Prose == 0 {
		t.Errorf("interactive only: %+v", s)
	}

	c.open(t, "clobbered.html")
	c.call(t, &s, "snapshot")
	var said struct{ Text string }
	var send aimed
	c.call(t, &said, "text")
	c.call(t, &send, "aim", map[string]string{"word": "Send"})
	if !strings.Contains(s.Text, `textbox "One" `) || !strings.Contains(said.Text, "Send") || send.Ref == "" {
		t.Errorf("a page with clobbered members: %+v\n%s\n%+v", s, said.Text, send.Failure)
	}

	c.open(t, cards(720))
	c.call(t, &s, "snapshot")
	for _, want := range []string{`720 x article(heading link button) "Card 0" … "Card 719" g1`,
		"g1[411] article \"Card 411\"\n        button \"Buy 411\" REF [disabled]", `link "Terms" REF`} {
		if !strings.Contains(withoutRefs(s.Text), want) {
			t.Errorf("%s is missing in\n%s", want, s.Text)
		}
	}
	if s.Left.Prose == 0 || s.Left.Grouped != 719 {
		t.Errorf("left out: %+v", s.Left)
	}
	s = snapshot{}
	c.call(t, &s, "snapshot", map[string]any{"group": "g1", "from": 37, "count": 2})
	if !strings.Contains(s.Text, `button "Buy 38" `) || strings.Contains(s.Text, "39") || !strings.Contains(s.Text, "prose about") {
		t.Errorf("a part of a group: %+v", s)
	}
	c.call(t, &s, "snapshot", map[string]any{"group": "g7"})
	if s.Failure == nil || s.Failure.Code != "no_match" {
		t.Errorf("a group that is not there: %+v", s)
	}

	var mixed strings.Builder
	for i := range 2000 {
		fmt.Fprintf(&mixed, `<section aria-label="Part %d"><p>%s<div><h2>Title %d</h2><a href="#%d">%s</a></div><%s>x%d`+
			`</section>`, i, strings.Repeat("words ", 9), i, i, strings.Repeat("é long name ", 9),
			[]string{"button", "p", "div"}[i%3], i)
	}
	for _, page := range []string{cards(720), mixed.String(), "<title>" + strings.Repeat("long ", 99) + "</title>" +
		strings.Repeat("<button>"+strings.Repeat("é", 99)+"</button>", 200)} {
		c.open(t, page)
		for _, tokens := range []int{110, 300, 1500, 6000} {
			c.call(t, &s, "snapshot", map[string]any{"max_tokens": tokens})
			if size := len(s.Text) + len(s.Title) + len(s.URL) + 40; size > 4*tokens && tokens > 110 {
				t.Errorf("%d tokens were asked for: %d bytes, left out %+v", tokens, size, s.Left)
			}
		}
	}
}

// TestSnapshotOfComponents checks that what a person can press or fill has a reference, and a name.
func TestSnapshotOfComponents(t *testing.T) {
	c := startChrome(t)
	for html, want := range map[string]string{
		`<div style="cursor:pointer">Pick<div><p>one<button>Go</button></div></div>`: `"Pick"` + "\n" + `"one"` + "\n" +
			`button "Go" REF`,
		`<div><input type=checkbox aria-label=Wifi><span style="cursor:pointer;padding:9px"></span></div>`: `checkbox "Wifi" REF`,
		`<div><input aria-label=Password><span style="cursor:pointer;padding:9px"></span></div>`: `textbox "Password" REF` +
			"\nclickable REF",
		`<input type=radio id=a><label for=a><span style="cursor:pointer">Day</span></label>`:                      `radio "Day" REF`,
		`<li style="cursor:pointer">Archive`:                                                                       `clickable "Archive" REF`,
		`<li style="cursor:pointer">Archive <b>now</b>`:                                                            `clickable "Archive now" REF`,
		`<li style="cursor:pointer"><a href="/">Archive</a>`:                                                       `link "Archive" REF`,
		`<table><tr><th style="cursor:pointer">Price</table>`:                                                      "table\n  row\n    clickable \"Price\" REF",
		`<table><tr><td onclick="1">7</table>`:                                                                     "table\n  row\n    clickable \"7\" REF",
		`<label for=a>Fruit</label><div role=combobox>Fruit<input id=a></div>`:                                     "combobox REF\n  textbox \"Fruit\" REF",
		`<input type=checkbox role=switch aria-label=Wifi checked>`:                                                `switch "Wifi" REF [checked]`,
		`<div role=combobox aria-label=Fruit aria-expanded=true>Apple</div>`:                                       `combobox "Fruit" REF [open value="Apple"]`,
		`<div role=combobox aria-label=Fruit>Kiwi<p role=listbox><i role=option aria-selected=true>Pear</i></div>`: `combobox "Fruit" REF [value="Pear"]` + "\n  listbox REF\n    option \"Pear\" REF [selected]",
	} {
		c.open(t, html)
		var s snapshot
		if c.call(t, &s, "snapshot"); withoutRefs(s.Text) != want {
			t.Errorf("%s is shown as\n%s\n, expected\n%s", html, withoutRefs(s.Text), want)
		}
	}
}

// TestSnapshotParts checks what has changed since the last snapshot, controls without a name, and the places of frames.
func TestSnapshotParts(t *testing.T) {
	c := startChrome(t)
	far := strings.Replace(c.site.URL, "127.0.0.1", "localhost", 1)
	c.open(t, `<button>Stay</button><p>Long enough to be a line of its own, as the text after it is one, too.</p><ul id=list><li><a
		href="#a">One</a><li><a href="#b">Two</a></ul><input id=bare><iframe hidden></iframe><iframe title="Near"
		src="/shadow.html"></iframe><iframe title="Far" src="`+far+`/shadow.html"></iframe>`)
	var s snapshot
	c.call(t, &s, "snapshot")
	if len(s.Frames) != 2 || s.Frames[0].Name != "Near" ||
		!strings.Contains(s.Text, `Iframe "Far" `+s.Frames[1].Ref) {
		t.Errorf("frames: %+v in\n%s", s.Frames, s.Text)
	}
	var place struct{ Index int }
	if c.call(t, &place, "place"); place.Index != -1 {
		t.Errorf("the page is at %d", place.Index)
	}
	raw, err := c.invoke(t.Context(), "targets", `{}`)
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`"id":"(\w+)","type":"iframe","url":"` + regexp.QuoteMeta(far)).FindSubmatch(raw)
	if found == nil {
		t.Fatalf("the frame is not in %s", raw)
	}
	c.target = string(found[1])
	c.call(t, &place, "place")
	if c.target = ""; place.Index != 2 {
		t.Errorf("a frame of another origin is at %d", place.Index)
	}
	since, err := run(t, c, Snapshot, SnapshotParams{MaxTokens: 1500, Since: true})
	if err != nil || strings.Contains(since.Text, "Stay") {
		t.Errorf("nothing has changed: %s, %s", since.Text, exit(err))
	}
	c.evaluate(t, `document.querySelector("a").textContent = "Other"; 1`)
	since, err = run(t, c, Snapshot, SnapshotParams{MaxTokens: 1500, Since: true})
	if s.Text = since.Text; err != nil || !regexp.MustCompile(`^- link "One" \w+\n\+ link "Other" \w+$`).MatchString(s.Text) || strings.Contains(s.Text, "Stay") {
		t.Errorf("a link has changed: %s", s.Text)
	}
	c.call(t, &s, "snapshot", map[string]any{"audit": true})
	if !regexp.MustCompile(`^textbox [a-z]{3}\d+ \[css="#bare"\]$`).MatchString(s.Text) {
		t.Errorf("controls without a name: %s", s.Text)
	}
}

// TestReferences checks which element a reference means after the page has changed.
func TestReferences(t *testing.T) {
	c := startChrome(t)
	c.open(t, `<ul id=list></ul><script>
		const render = (...names) => list.innerHTML = names.map(n => "<li>" + n + " <button>Delete</button></li>").join("");
		render("Ada", "Bob")</script>`)
	ref := func(name string) string {
		t.Helper()
		var s snapshot
		c.call(t, &s, "snapshot")
		found := regexp.MustCompile(`"` + name + `"\n +button "Delete" (\w+)`).FindStringSubmatch(s.Text)
		if found == nil {
			t.Fatalf("%s is not in\n%s", name, s.Text)
		}
		return found[1]
	}
	type got struct {
		Failure  *failure
		Matches  []element
		Resolved string
	}
	find := func(locator map[string]any) (g got) {
		t.Helper()
		c.call(t, &g, "find", locator)
		return g
	}
	bob := ref("Bob")
	if g := find(map[string]any{"ref": bob}); len(g.Matches) != 1 || g.Resolved != "" {
		t.Errorf("the same element: %+v", g)
	}
	c.evaluate(t, `render("Carl", "Bob", "Ada"); 1`)
	if g := find(map[string]any{"ref": bob}); len(g.Matches) != 1 || g.Matches[0].Ref != bob || g.Resolved == "" {
		t.Errorf("rendered again: %+v", g)
	}
	if again := ref("Bob"); again != bob {
		t.Errorf("the element has the references %s and %s", bob, again)
	}
	c.evaluate(t, `render("Carl", "Ada"); 1`)
	if g := find(map[string]any{"ref": bob}); g.Failure == nil || g.Failure.Code != "stale" || len(g.Failure.Near) != 2 {
		t.Errorf("removed: %+v", g.Failure)
	}
	c.evaluate(t, `render("Bob", "Bob"); 1`)
	if g := find(map[string]any{"ref": bob}); g.Failure == nil || g.Failure.Code != "stale" {
		t.Errorf("two could be meant: %+v", g)
	}
	c.evaluate(t, `location.reload(); 1`)
	if _, err := c.invoke(t.Context(), "Page.reload", `{}`); err != nil {
		t.Fatal(err)
	}
	if again := ref("Bob"); again == bob {
		t.Errorf("two documents have the reference %s", bob)
	}
	if g := find(map[string]any{"ref": bob}); g.Failure == nil || g.Failure.Code != "stale" {
		t.Errorf("a reference of another document: %+v", g)
	}
}

// TestLocators checks what locators find, through shadow roots, and what they say if that is nothing or too much.
func TestLocators(t *testing.T) {
	c := startChrome(t)
	c.open(t, `<label>User <input id=u placeholder="Your name"></label><button data-testid=go>Sign in</button>
		<button>Sign in with a key</button><button>Overview</button><p>View</p><a href="#x">More</a><p><span>Only text</span></p><div style="visibility:hidden">
		<button>Cancel</button></div><button>Same</button><button>Same</button><div id=host></div>
		<script>host.attachShadow({mode: "open"}).innerHTML = "<button>Deep</button>"</script>`)
	for _, l := range []struct{ locator, want string }{
		{`{"css":"#u"}`, "textbox User"}, {`{"role":"button","name":"sign in"}`, "button Sign in"},
		{`{"role":"button","name":"with a"}`, "button Sign in with a key"}, {`{"role":"button","name":"with a","exact":true}`, "no_match"},
		{`{"label":"user"}`, "textbox User"}, {`{"placeholder":"Your name"}`, "textbox User"}, {`{"test_id":"go"}`, "button Sign in"},
		{`{"text":"only text"}`, "generic Only text"}, {`{"word":"Deep"}`, "button Deep"}, {`{"word":"sign IN"}`, "button Sign in"},
		{`{"word":"your name"}`, "textbox User"}, {`{"word":"with a key"}`, "button Sign in with a key"},
		{`{"word":"Only text"}`, "generic Only text"}, {`{"word":"Cancel"}`, "no_match"}, {`{"word":"Same"}`, "many 2"},
		{`{"word":"#u"}`, "textbox User"}, {`{"word":"a[href]"}`, "link More"}, {`{"word":"#none"}`, "no_match"},
		{`{"word":"Only text."}`, "no_match"}, {`{"css":"button","has":"with a"}`, "button Sign in with a key"},
		{`{"css":"*","has":"only text"}`, "generic Only text"}, {`{"xpath":"//a"}`, "link More"},
		{`{"xpath":"//a["}`, "invalid"},
		{`{"word":"View"}`, "paragraph View"}, {`{"word":"verview"}`, "button Overview"}, {`{"word":"a k"}`, "button Sign in with a key"},
		{`{"word":"ke"}`, "no_match"}, {`{"word":"in"}`, "many 2"},
		{`{"role":"link"}`, "link More"}, {`{"ref":"ezz9"}`, "stale"},
	} {
		var g struct {
			Failure *failure
			Value   any
			Ref     string
		}
		c.call(t, &g, "get", json.RawMessage(l.locator), "role")
		got := fmt.Sprint(g.Value)
		switch {
		case g.Failure != nil && g.Failure.Total > 0:
			got = fmt.Sprint(g.Failure.Code, " ", g.Failure.Total)
		case g.Failure != nil:
			got = g.Failure.Code
		default:
			var found struct{ Matches []element }
			c.call(t, &found, "find", map[string]any{"ref": g.Ref})
			got += " " + found.Matches[0].Name
		}
		if got != l.want {
			t.Errorf("%s: %s, want %s", l.locator, got, l.want)
		}
	}
}

// aimed is the result of aim.
type aimed struct {
	element
	X, Y    float64
	Failure *struct {
		failure
		By *element
	}
}

// TestAim checks when an element can be acted on, and why not.
func TestAim(t *testing.T) {
	c := startChrome(t)
	c.open(t, `<style>button{width:90px;height:30px}#far{margin-top:3000px}
		@keyframes m{from{transform:translate(0)}to{transform:translate(300px)}}</style>
		<button id=plain>Plain</button><button id=off disabled>Off</button><fieldset disabled><button id=in>In</button></fieldset>
		<div aria-disabled=true><button id=aria>Aria</button></div><button id=hidden style="visibility:hidden">H</button>
		<button id=none style="display:none">N</button><button id=flat style="width:0;height:0;padding:0;border:0"></button>
		<div style="position:relative"><button id=under>Under</button><div id=cover onclick="1"
		style="position:absolute;inset:0">Cover</div></div><button id=moving style="animation:m 7s linear infinite">Moving</button>
		<label for=box id=label style="position:relative">Box<input type=checkbox id=box></label>
		<button id=far>Far</button>`)
	c.evaluate(t, "document.getAnimations()[0].ready.then(() => 1)") // until it is, nothing moves
	for id, want := range map[string]string{"plain": "", "far": "", "box": "", "off": "disabled", "in": "disabled",
		"aria": "disabled", "hidden": "not visible", "none": "no_match", "flat": "no size", "under": "covered",
		"moving": "moving"} {
		var a aimed
		c.call(t, &a, "aim", map[string]string{"css": "#" + id}, map[string]int{"timeout": 50})
		for try := 0; try < 3 && want == "moving" && a.Failure == nil; try++ { // a busy machine may have drawn no frame
			c.call(t, &a, "aim", map[string]string{"css": "#" + id}, map[string]int{"timeout": 50})
		}
		switch {
		case want == "" && (a.Failure != nil || a.Ref == "" || a.X == 0):
			t.Errorf("%s: %+v", id, a.Failure)
		case want != "" && (a.Failure == nil || !strings.Contains(a.Failure.Code+a.Failure.Why, want)):
			t.Errorf("%s: %+v, want %s", id, a.Failure, want)
		case want == "covered" && (a.Failure.By == nil || a.Failure.By.Name != "Cover" || a.Failure.By.Ref == "" ||
			a.Failure.By.CSS != "#cover"):
			t.Errorf("covered by %+v", a.Failure.By)
		}
	}
	c.evaluate(t, `setTimeout(() => cover.remove(), 100); 1`)
	var a aimed
	c.call(t, &a, "aim", map[string]string{"css": "#under"})
	if a.Failure != nil {
		t.Errorf("what covered it is gone: %+v", a.Failure)
	}
}

// TestClicksOnMovingPages clicks on pages that change all the time. No click reaches anything but what was meant, and
// no click that the script reports as received was without effect.
func TestClicksOnMovingPages(t *testing.T) {
	c := startChrome(t)
	clicks := 5
	if os.Getenv("PARLEY_HAMMER") != "" {
		clicks = 200
	}
	for name, change := range moving {
		c.open(t, movingList+change+`</script>`)
		received := 0
		for try := 0; received < clicks && try < 100*clicks; try++ {
			var a aimed
			c.call(t, &a, "aim", map[string]string{"role": "button", "name": "Item 3"}, map[string]int{"timeout": 20_000})
			if a.Failure != nil {
				t.Fatalf("%s: %+v", name, a.Failure)
			}
			c.call(t, nil, "guard", a.Ref)
			at := fmt.Sprintf(`"x":%g,"y":%g,"button":"left","clickCount":1}`, a.X, a.Y)
			if _, err := c.invoke(t.Context(), "input", `{"events":[{"type":"mouseMoved","x":`+fmt.Sprintf(`%g,"y":%g}`, a.X, a.Y)+
				`,{"type":"mousePressed",`+at+`,{"type":"mouseReleased",`+at+`]}`); err != nil {
				t.Fatal(err)
			}
			var done struct {
				Received bool
				Missed   *element
			}
			c.call(t, &done, "landed")
			if done.Received {
				received++
			} else if done.Missed == nil && c.evaluate(t, "right") != fmt.Sprint(received) {
				t.Errorf("%s: a click had an effect that was not reported", name)
			}
		}
		if right, wrong := c.evaluate(t, "right"), c.evaluate(t, "wrong"); wrong != "0" || right != fmt.Sprint(received) ||
			received < clicks {
			t.Errorf("%s: %d clicks were received, %s right and %s wrong", name, received, right, wrong)
		}
	}
}

// movingList is a list in which only Item 3 is meant; moving are changes of it.
const movingList = `<style>button{display:block;width:200px;height:30px}</style><div id=list></div><script>
		var right = 0, wrong = 0, names = [...Array(8).keys()].map(i => "Item " + i);
		for (const name of names) { const b = document.createElement("button"); b.textContent = name; list.append(b);
			b.onclick = () => name == "Item 3" ? right++ : wrong++; }`

var moving = map[string]string{
	"a list in another order every 15 ms": `setInterval(() => list.append(list.children[Math.random() * 8 | 0]), 15)`,
	"a list in another order every 50 ms": `setInterval(() => list.append(list.children[Math.random() * 8 | 0]), 50)`,
	"an inserted banner": `setInterval(() => { const b = document.createElement("button"); b.textContent = "Banner";
			b.onclick = () => wrong++; list.prepend(b); setTimeout(() => b.remove(), 40) }, 90)`,
	// The overlay may come between press and release, which then are no click. A press that arrived counts as received.
	"a flashing overlay": `for (const b of list.children) b.onmousedown = b.onclick, b.onclick = null;
			const o = document.createElement("div"); o.style = "position:fixed;inset:0"; o.onclick = () => wrong++;
			setInterval(() => o.isConnected ? o.remove() : document.body.append(o), 30)`,
}

// TestFields checks what the script does with fields: focus, selection, options, pickers.
func TestFields(t *testing.T) {
	c := startChrome(t)
	c.open(t, `<input id=text value="old"><div id=edit contenteditable>old</div><select id=one><option value=a>Apple</option>
		<option value=b>Berry</option></select><select id=many multiple><option>X<option>Y<option>Z</select>
		<input id=day type=date><script>var events = [];
		for (const type of ["input", "change"]) addEventListener(type, e => events.push(type + " " + e.target.id))</script>`)
	ref := func(id string) string {
		t.Helper()
		var found struct{ Ref string }
		c.call(t, &found, "get", map[string]string{"css": "#" + id}, "role")
		return found.Ref
	}
	for _, id := range []string{"text", "edit"} {
		var focus struct{ Picker, Select, Editable bool }
		c.call(t, &focus, "focusOn", ref(id))
		if got := c.evaluate(t, `document.activeElement.id + " " + getSelection()`); !focus.Editable || focus.Picker || focus.Select ||
			got != fmt.Sprintf("%q", id+" old") {
			t.Errorf("%s: %+v, the focus and the selection are %s", id, focus, got)
		}
	}
	var done struct {
		Value   string
		Failure *failure
	}
	c.call(t, &done, "choose", ref("one"), []string{"berry"})
	if done.Value != "Berry" || c.evaluate(t, "one.value + events") != `"binput one,change one"` {
		t.Errorf("an option: %+v, %s", done, c.evaluate(t, "one.value + events"))
	}
	c.call(t, &done, "choose", ref("many"), []string{"X", "Z"})
	if done.Value != "X, Z" {
		t.Errorf("two options: %+v", done)
	}
	c.call(t, &done, "choose", ref("one"), []string{"Cherry"})
	if done.Failure == nil || len(done.Failure.Near) != 2 || c.evaluate(t, "one.value") != `"b"` {
		t.Errorf("an option that is not there: %+v", done.Failure)
	}
	c.evaluate(t, "events = []; 1")
	c.call(t, &done, "assign", ref("day"), "2026-01-02")
	if c.evaluate(t, "day.value + events") != `"2026-01-02input day,change day"` {
		t.Errorf("a date: %s", c.evaluate(t, "day.value + events"))
	}
}

// TestWaiting checks what waits for a page.
func TestWaiting(t *testing.T) {
	c := startChrome(t)
	c.open(t, `<p id=p>Loading</p>`)
	var done struct{ Found, Settled bool }
	for condition, want := range map[string]bool{
		`{"text":"loading"}`: true, `{"text":"Welcome","timeout":30}`: false, `{"text":"Welcome","gone":true}`: true,
		`{"locator":{"css":"#p"}}`: true, `{"locator":{"css":"#q"},"timeout":30}`: false,
	} {
		if c.call(t, &done, "until", json.RawMessage(condition)); done.Found != want {
			t.Errorf("%s: %t", condition, done.Found)
		}
	}
	var left struct{ Line string }
	for text, line := range map[string]string{
		"Loading": "Ready", "loading": "Ready", "oadi": "Ready", "Load ing": "", // it is not there
	} {
		c.evaluate(t, `p.textContent = "Loading"; setTimeout(() => p.textContent = "Ready", 500); 1`)
		if c.call(t, &left, "until", map[string]any{"text": text, "gone": true}); left.Line != line {
			t.Errorf("%s is gone, and there is %q", text, left.Line)
		}
	}
	c.evaluate(t, `setTimeout(() => p.textContent = "Welcome", 100); 1`)
	if c.call(t, &done, "until", map[string]any{"text": "welcome"}); !done.Found {
		t.Error("the text came later")
	}
	if c.call(t, &done, "settle"); !done.Settled {
		t.Error("a quiet page does not settle")
	}
	c.evaluate(t, `setInterval(() => p.textContent += ".", 10); 1`)
	if c.call(t, &done, "settle", map[string]int{"timeout": 300}); done.Settled {
		t.Error("a page that changes all the time settles")
	}
}

// TestText checks the Markdown of a page.
func TestText(t *testing.T) {
	c := startChrome(t)
	c.open(t, `<title>T</title><h1>Head <b>line</b></h1><p>One
		paragraph<br>two lines</p><ul><li>First<li>Second</ul><table><tr><th>A<th>B<tr><td>1<td>2</table><pre>  code
  more</pre><p hidden>Hidden</p><script>var s = "script"</script><img alt="Picture" src="x.png"><label>L <input value="typed"></label>`)
	var got struct {
		Text string
		Cut  int
	}
	c.call(t, &got, "text")
	const want = "# Head **line**\n\nOne paragraph  \ntwo lines\n\n- First\n- Second\n\n| A | B |\n| --- | --- |\n" +
		"| 1 | 2 |\n\n```\n  code\n  more\n```\n\n" +
		"[image: Picture]L typed"
	if got.Text != want || got.Cut != 0 {
		t.Errorf("%q, cut %d", got.Text, got.Cut)
	}
	c.call(t, &got, "text", map[string]int{"max_tokens": 5})
	if len(got.Text) > 20 || got.Cut == 0 {
		t.Errorf("%q, cut %d", got.Text, got.Cut)
	}
}

// TestTextMarkdown checks what Markdown has in a line, and the main content of pages.
func TestTextMarkdown(t *testing.T) {
	c := startChrome(t)
	for _, test := range []struct{ html, want string }{
		{`<p>See <a href="/a?b=1">the docs</a>, <b>now</b> or <em>later</em>: <code>make test</code>.`,
			"See [the docs](/a?b=1), **now** or _later_: `make test`."},
		{`<p>A <strong>bold <a href=x>link</a> </strong>here`, "A **bold [link](x)** here"},
		{`<ul><li><a href=one>One</a><li><a href=#two>Two</a><li><a href="javascript:void 0">Three</a></ul>`,
			"- [One](one)\n- Two\n- Three"},
		{`<a href=card><h3>Title</h3><p>Text</p></a>`, "### [Title](card)\n\nText"},
		{`<p>An <i class=icon></i><a href=y></a>icon <b> </b>end`, "An icon end"},
		{`<a href=z><img alt=Logo src=x.png></a>`, "[[image: Logo]](z)"},
		{`<h2>Big <code>f()</code></h2>x`, "## Big `f()`\n\nx"},
		{`<ol start=9><li>Nine<ul><li>In<li>it</ul><li><p>Ten</p><pre>a
b</pre></ol>`, "9. Nine\n   - In\n   - it\n\n10. Ten\n\n    ```\n    a\n    b\n    ```"},
		{`<div class="highlight-source-go"><pre>a := "` + "```" + `"</pre></div>`, "````go\na := \"```\"\n````"},
		{`<table><tr><th>A<th>B|C<tr><td rowspan=2>1<td><a href=x>2</a><tr><td><b>3</b><tr><td colspan=2>4</table>`,
			"| A | B\\|C |\n| --- | --- |\n| 1 | [2](x) |\n|  | **3** |\n| 4 |  |"},
		{`<table><tr><td><tr><th>A<tr><td> <tr><td>x</table><pre> </pre>`, "| A |\n| --- |\n| x |"},
		{`<table><tr><td>a<td>b<br>c</table>`, "|  |  |\n| --- | --- |\n| a | b c |"},
		{`<table><tr><td><h2>Left</h2>x<td><table><tr><th>In</table></table>`, "## Left\n\nx\n\n| In |\n| --- |"},
		{`<div contenteditable role=textbox><p>one <b>two</b><p>three</div><textarea>four</textarea>`, "one **two**\n\nthree\n\nfour"},
		{`<div style="white-space:pre-wrap">one
two</div>`, "one  \ntwo"},
		{`<p># not heading<p>1. not list<p>2) nor this<p>- not item<p>&gt; no quote<p>---<p>` + "```",
			"\\# not heading\n\n1\\. not list\n\n2\\) nor this\n\n\\- not item\n\n\\> no quote\n\n\\---\n\n\\```"},
		{`<p>a &lt;tag&gt; &lt;/b&gt; 1 &lt; 2 &amp;lt; R&amp;D<p>one<br># two<br><b># three</b>`,
			"a \\<tag> \\</b> 1 < 2 \\&lt; R&D\n\none  \n\\# two  \n**# three**"},
		{`<h2>1. Part #2 - x</h2><p>3.5 and #4 -5 *6 _7_ [8]<p>see <b>- this</b>`,
			"## 1. Part #2 - x\n\n3.5 and #4 -5 *6 _7_ [8]\n\nsee **- this**"},
		{`<ul><li># a<li>1. b<li><a href=x>1. c</a></ul><blockquote>- d</blockquote><table><tr><th># e<tr><td>- f</table>`,
			"- \\# a\n- 1\\. b\n- [1. c](x)\n\n> \\- d\n\n| # e |\n| --- |\n| - f |"},
		{`<a href=x>one<br>two</a><blockquote>a<br>b</blockquote><table><tr><th>c<br>d</table><h2>e<br>f</h2>`,
			"[one](x)  \ntwo\n\n> a  \n> b\n\n| c d |\n| --- |\n\n## e f"},
		{`<dl><dt>Term<dd>Means<dt>Two<dt>words<dd><p>First<p>Then<ul><li>x</ul></dl>`,
			"Term\n: Means\n\nTwo\n\nwords\n: First\n\n  Then\n\n  - x"},
		{`<p>So <math><mi>x</mi><mo>=</mo><mfrac><mrow><mi>a</mi><mo>+</mo><mn>1</mn></mrow><msup><mi>b</mi><mn>2</mn></msup></mfrac></math> is`,
			"So x=(a+1)/(b^2) is"},
		{`<blockquote><p>One<blockquote>Two</blockquote><ul><li>x</ul></blockquote>`, "> One\n>\n> > Two\n>\n> - x"},
		{`a<span style="position:absolute">b</span><button>c</button><button>d</button>`, "ab c d"},
		{`<ul><li><input type=checkbox checked> done<li><input type=checkbox> open</ul>`, "- [x] done\n- [ ] open"},
		{`<svg><title>Chart</title><text>1</text></svg> <i>“it”</i><code>a` + "`" + `b</code><kbd>Esc</kbd>`,
			"[image: Chart] _“it”_``a`b```Esc`"},
	} {
		c.open(t, "<title>T</title>"+test.html)
		var got struct{ Text string }
		if c.call(t, &got, "text"); got.Text != test.want {
			t.Errorf("%s:\n%s\nwant\n%s", test.html, got.Text, test.want)
		}
	}
	const around = `<header>Logo</header><nav><a href=/>Home</a></nav>`
	for name, html := range map[string]string{
		"main":    around + `<main><h1>News</h1><aside>Ads</aside><p>Body</main><footer>Legal</footer>`,
		"article": around + `<article>Teaser</article><article><header><h1>News</h1></header><p>Body</article><footer>Legal</footer>`,
		"neither": around + `<div><h1>News</h1><p>Body</div><aside>Ads</aside><footer>Legal</footer>`,
	} {
		c.open(t, "<title>T</title>"+html)
		r, err := run(t, c, Text, TextParams{MaxTokens: 200, Main: true})
		if err != nil || r.Text != "# News\n\nBody" || !strings.HasPrefix(r.LeftOut, "banner, navigation, ") {
			t.Errorf("%s: %+v, %s", name, r, exit(err))
		}
	}
}

// TestArticles reads the main content of pages that are shaped as those of well-known sites.
func TestArticles(t *testing.T) {
	c := startChrome(t)
	for _, page := range must(filepath.Glob("testdata/articles/*.html")) {
		c.open(t, strings.TrimPrefix(page, "testdata/"))
		r, err := run(t, c, Text, TextParams{MaxTokens: 5000, Main: true})
		golden, got := strings.TrimSuffix(page, "html")+"txt", regexp.MustCompile(` [a-z]{3}\d+]`).ReplaceAllString(r.Text, " REF]")+"\n\nLeft out: "+r.LeftOut+"\n"
		if os.Getenv("UPDATE") != "" {
			_ = os.WriteFile(golden, []byte(got), 0o600)
		}
		if want := string(must(os.ReadFile(golden))); err != nil || got != want {
			t.Errorf("%s: %s\n%s\nwant\n%s", page, exit(err), got, want)
		}
	}
}

// cards returns a shop with many cards, of which one is sold out.
func cards(n int) string {
	var b strings.Builder
	b.WriteString(`<title>Cards</title><nav><a href="#1">Home</a><a href="#2">Cart</a></nav><h1>Shop</h1><p>Welcome to a long text.</p><main><ul>`)
	for i := range n {
		state := ""
		if i == 411 {
			state = " disabled"
		}
		fmt.Fprintf(&b, `<li><article><h3>Card %d</h3><p>Some prose about card %d.</p><a href="#c%d">Details %d</a>`+
			`<button%s>Buy %d</button></article></li>`, i, i, i, i, state, i)
	}
	b.WriteString(`</ul></main><footer><a href="#t">Terms</a></footer>`)
	return b.String()
}
