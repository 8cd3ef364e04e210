package page_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/job"
	"github.com/parley-tools/parley/internal/sample"
)

// cover opens another page in front of the current one, and closes it at the end of the test.
func (c *chrome) cover(t *testing.T) {
	t.Helper()
	e, err := run(t, c, Click, ClickParams{Element: "Open another"})
	if err != nil || e.Caused == nil || len(e.Caused.NewPages) != 1 {
		t.Fatalf("no page was opened: %s, %s", effects(e), exit(err))
	}
	t.Cleanup(func() { c.closePage(e.Caused.NewPages[0].Target) })
}

// TestHiddenPage uses a page that a click has put into the background, where Chrome draws nothing of itself.
func TestHiddenPage(t *testing.T) {
	c := startChrome(t)
	url := site(t, c)
	const page = `<title>Behind</title><a href="/next" target=_blank>Open another</a><p id=out></p>
		<button onclick="requestAnimationFrame(() => requestAnimationFrame(() => out.textContent = 'drawn'))">Draw</button>
		<div role=button style="width:99px;height:40px" onmouseenter="out.textContent = 'over'">Area</div>
		<div role=slider tabindex=0 style="width:99px;height:40px" onpointermove="moves++">Knob</div><script>let moves = 0;
		onkeydown = () => setTimeout(() => alert("x"))</script>`
	c.show(t, url+"/", page)
	c.cover(t)
	for i := range 12 { // a picture of a hidden page comes, or never does
		c.show(t, url+fmt.Sprint("/", i), page)
		if _, err := run(t, c, Press, PressParams{Key: "a"}); err != nil { // it opens a dialog
			t.Fatal(exit(err))
		}
		if _, err := run(t, c, AnswerDialog, DialogParams{Action: "accept"}); err != nil {
			t.Fatal(exit(err))
		}
		c.deadline = 20 * time.Second
		if _, err := run(t, c, Screenshot, ScreenshotParams{}); err != nil {
			t.Fatalf("picture %d: %s", i, exit(err))
		}
	}
	c.cover(t)
	c.deadline = 4 * time.Second // Chrome holds a move back for 5 s
	if _, err := run(t, c, Hover, ElementParams{Element: "Area"}); err != nil || c.evaluate(t, "out.textContent") != `"over"` {
		t.Errorf("hover: %s, %s", exit(err), c.evaluate(t, "out.textContent"))
	}
	c.cover(t)
	c.deadline = 4 * time.Second
	if _, err := run(t, c, Drag, DragParams{Element: "Knob", By: []float64{20, 0}}); err != nil ||
		c.evaluate(t, "moves > 1") != "true" {
		t.Errorf("drag: %s, %s moves", exit(err), c.evaluate(t, "moves"))
	}
	c.cover(t)
	if e, err := run(t, c, Click, ClickParams{Element: "Draw"}); err != nil ||
		c.evaluate(t, "out.textContent") != `"drawn"` {
		t.Errorf("a click that is followed by a frame: %s, %s, %s", effects(e), exit(err), c.evaluate(t, "out.textContent"))
	}
}

// TestLeaving acts on a page that goes to a server which does not respond: Chrome runs nothing in the page meanwhile.
func TestLeaving(t *testing.T) {
	c := startChrome(t)
	url := site(t, c)
	respond := make(chan struct{})
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-respond:
		case <-r.Context().Done():
		}
		_, _ = io.WriteString(w, "<title>There</title><h1>There</h1>")
	}))
	t.Cleanup(other.Close)
	release := sync.OnceFunc(func() { close(respond) })
	t.Cleanup(release) // before the server is closed, which waits for its responses
	away := strings.Replace(other.URL, "127.0.0.1", "localhost", 1) + "/away"
	c.show(t, url+"/", `<title>Here</title><a href="`+away+`">Away</a><iframe srcdoc="<base target=_top><a href='`+away+
		`'>Out</a>"></iframe>`)
	for _, link := range []string{"Out", "Away"} {
		c.deadline = 4 * time.Second
		e, err := run(t, c, Click, ClickParams{Element: link})
		if err != nil || e.Caused == nil || !strings.Contains(e.Caused.NotSettled, "a navigation to "+away+" is under way") {
			t.Fatalf("%s: %s, %s", link, effects(e), exit(err))
		}
		c.deadline = 8 * time.Second
		if _, err := run(t, c, Screenshot, ScreenshotParams{}); err != nil {
			t.Errorf("a picture: %s", exit(err))
		}
		c.deadline = 40 * time.Second
		began := time.Now()
		if _, err := run(t, c, Text, TextParams{MaxTokens: 100}); !strings.Contains(exit(err), "server has not responded") {
			t.Errorf("a text: %s", exit(err))
		}
		if _, err := run(t, c, Click, ClickParams{Element: link}); !strings.Contains(exit(err), "server has not responded") {
			t.Errorf("a click: %s", exit(err))
		}
		if _, err := run(t, c, Wait, WaitParams{Text: "There", Timeout: 1000}); !strings.HasPrefix(exit(err), "not_met: ") {
			t.Errorf("a wait: %s", exit(err))
		}
		if took := time.Since(began); took > 20*time.Second {
			t.Errorf("that took %v", took)
		}
		if link == "Out" { // it stays
			if _, err := c.invoke(t.Context(), "Page.stopLoading", `{}`); err != nil {
				t.Fatal(err)
			}
		}
	}
	release()
	if s, err := run(t, c, Text, TextParams{MaxTokens: 100}); err != nil || !strings.Contains(s.Text, "There") {
		t.Errorf("after the response: %q, %s", s.Text, exit(err))
	}
}

// TestStrangeDocuments runs verbs on documents that lack what most have, or are no HTML. None ends in an error of the
// script that looks at them.
func TestStrangeDocuments(t *testing.T) {
	c := startChrome(t)
	const replaced = "data:text/html,<script>document.documentElement.replaceWith("
	for name, url := range map[string]string{
		"no root":         "data:text/html,<p>Hi<script>document.documentElement.remove()</script>",
		"no body":         "data:text/html,<p>Hi<script>document.body.remove()</script>",
		"no head":         "data:text/html,<p>Hi<script>document.head.remove()</script>",
		"another root":    replaced + "document.createElementNS('', 'x'))</script>",
		"a comment":       replaced + "new Comment('x'))</script>",
		"being written":   "data:text/html,<script>onload = () => document.open()</script>",
		"frameset":        "data:text/html,<frameset><frame src='data:text/html,Hi'></frameset>",
		"names":           "data:text/html,<form name=createElement></form><img name=documentElement><form name=body></form>",
		"drawing":         "data:image/svg+xml,<svg xmlns='http://www.w3.org/2000/svg'><text y='20'>Hi</text></svg>",
		"XML":             "data:text/xml,<a><b>Hi</b></a>",
		"broken XML":      "data:text/xml,<a><b>Hi</a>",
		"text":            "data:text/plain,Hi",
		"JSON":            "data:application/json,{%22a%22:1}",
		"picture":         "data:image/gif;base64,R0lGODlhAQABAAAAACH5BAEKAAEALAAAAAABAAEAAAICTAEAOw==",
		"formula as root": "data:application/xhtml+xml,<math xmlns='http://www.w3.org/1998/Math/MathML'><mi>x</mi></math>",
	} {
		if _, err := run(t, c, Open, OpenParams{URL: url}); err != nil {
			t.Fatalf("%s: %s", name, exit(err))
		}
		for _, call := range []string{`snapshot {}`, `snapshot {"since":true}`, `text {}`, `text {"main":true}`,
			`find {"query":"Hi"}`, `get {"element":"css=p","what":"text"}`, `wait {"text":"Hi","timeout":30}`,
			`expect {"text":"Hi","timeout":30}`, `click {"at":[1,1]}`, `scroll {"to":"bottom"}`,
			`press {"key":"Tab"}`} {
			tool, params, _ := strings.Cut(call, " ")
			if _, err := c.send(t.Context(), c.pages, tool, params); strings.Contains(exit(err), "page.js") ||
				err != nil && host.AsError(err).Tool == nil {
				t.Errorf("%s: %s: %s", name, call, exit(err))
			}
		}
	}
}

// TestSubjects checks what records say of calls: what they acted on, also where they failed, and what they have read.
func TestSubjects(t *testing.T) {
	c := startChrome(t)
	url := site(t, c)
	c.show(t, url+"/", `<title>Subjects</title><button disabled>Off</button><select aria-label=Choice><option>a</select>
		<button>Free</button><button style="position:absolute;top:200px;left:0;width:99px;height:40px">Under</button>
		<div style="position:absolute;top:200px;left:0;width:200px;height:80px;background:#ccc" id=over></div>
		<iframe srcdoc="<button disabled>In</button>" style="margin-top:400px"></iframe>`)
	document := "document at " + url + "/"
	for _, test := range []struct{ verb, params, want string }{
		{"click", `{"element":"Off"}`, `button "Off" at ` + url + "/"},
		{"click", `{"element":"Under"}`, `button "Under" at ` + url + "/"},
		{"click", `{"element":"Free"}`, `button "Free" at ` + url + "/"},
		{"click", `{"element":"Nothing"}`, document},
		{"click", `{"element":"In"}`, `button "In" at about:srcdoc`},
		{"click", `{"element":"xyz9"}`, document},
		{"select", `{"element":"Choice","options":["b"]}`, `combobox "Choice" at ` + url + "/"},
		{"fill", `{"element":"Free","value":"x"}`, `button "Free" at ` + url + "/"},
		{"do", `{"steps":[{"tool":"click","params":{"element":"Free"}},{"tool":"click","params":{"element":"Off"}}]}`,
			`button "Off" at ` + url + "/"},
		{"text", `{"max_tokens":100}`, document},
		{"text", `{"max_tokens":100,"element":"Off"}`, `button "Off" at ` + url + "/"},
		{"evaluate", `{"expression":"1"}`, document},
		{"requests", `{"limit":1}`, document},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 1500*time.Millisecond)
		r := &host.Request{Job: job.Job{Tool: test.verb, Params: json.RawMessage(test.params), Caller: "cli"}}
		done, err := c.pages.Invoke(ctx, r)
		cancel()
		got := ""
		if err != nil {
			got = host.AsError(err).Subject
		} else {
			got = done.Subject
		}
		if got != test.want {
			t.Errorf("%s %s: %q, want %q (%s)", test.verb, test.params, got, test.want, exit(err))
		}
	}
}

// TestDeepPages acts on a page whose elements are deeper in each other than Chrome lays out with a usual stack.
func TestDeepPages(t *testing.T) {
	c := startChrome(t)
	url := site(t, c)
	c.show(t, url+"/", `<title>Deep</title><button onclick="out.textContent = 'done'">First</button><p id=out></p><script>
		let at = document.body;
		for (let i = 0; i < 6000; i++) at = at.appendChild(document.createElement("div"));
		at.innerHTML = "<button onclick='out.textContent = 1'>Deepest</button>"</script>`)
	s, err := run(t, c, Snapshot, SnapshotParams{MaxTokens: 500})
	if err != nil || !strings.Contains(s.Text, `button "First"`) || !strings.Contains(s.LeftOut, "deeper") {
		t.Errorf("snapshot: %+v, %s", s, exit(err))
	}
	all, err := run(t, c, Find, FindParams{Element: "First", Limit: 2})
	if err != nil || all.Total != 1 || !strings.Contains(all.LeftOut, "deeper") {
		t.Errorf("find: %+v, %s", all, exit(err))
	}
	if _, err := run(t, c, Click, ClickParams{Element: "First"}); err != nil || c.evaluate(t, "out.textContent") != `"done"` {
		t.Errorf("click: %s, %s", exit(err), c.evaluate(t, "out.textContent"))
	}
	_, err = run(t, c, Click, ClickParams{Element: "css=button"})
	if e, ok := errors.AsType[*host.Error](err); !ok || !strings.Contains(e.Error(), `button "Deepest"`) {
		t.Errorf("two buttons: %s", exit(err))
	}
}

// TestLongPages looks for what is not there in long pages. An answer comes before the deadline of the call, and says
// that it is not there, or that there was no time to look everywhere. It takes a sample of the pages and
// calls.
func TestLongPages(t *testing.T) {
	c := startChrome(t)
	url := site(t, c)
	calls := []string{`wait {"text":"nowhere","timeout":60000}`, `wait {"element":"nowhere","timeout":60000}`,
		`expect {"element":"nowhere","timeout":60000}`, `expect {"text":"nowhere","timeout":60000}`,
		`find {"element":"nowhere","limit":1}`, `get {"element":"nowhere","what":"text"}`, `click {"element":"nowhere"}`,
		`fill {"element":"nowhere","value":"x"}`, `text {"max_tokens":100,"element":"nowhere"}`}
	few, half := sample.OneIn(t, 4), sample.OneIn(t, 2)
	for _, p := range []struct{ name, text string }{
		{"many elements", strings.Repeat("<div><button>Item</button><span>text</span></div>", 20_000)},
		{"a long text", "<p>" + strings.Repeat("lorem ipsum dolor sit amet ", 100_000) + "</p>"},
		{"many texts", strings.Repeat("<p>"+strings.Repeat("lorem ipsum dolor sit amet ", 20), 5_000)},
		{"long names", strings.Repeat("<button aria-label="+strings.Repeat("n", 1_000_000)+">x</button>", 4)},
	} {
		if !half() {
			continue
		}
		c.show(t, url+"/", "<title>Long</title><button>First</button>"+p.text)
		for _, call := range calls {
			if !few() {
				continue
			}
			tool, params, _ := strings.Cut(call, " ")
			c.deadline = 4 * time.Second
			_, err := c.raw(t, tool, params)
			c.deadline = 0
			said := exit(err)
			if !strings.HasPrefix(said, "no_match: ") && !strings.HasPrefix(said, "not_met: ") {
				t.Errorf("%s: %s: %s", p.name, call, said)
			}
		}
		c.deadline = 4 * time.Second
		if _, err := run(t, c, Click, ClickParams{Element: "css=body>button:first-of-type"}); err != nil {
			t.Errorf("%s: a click by a selector: %s", p.name, exit(err))
		}
	}
}

// TestDownloadsOfPages ends a download while another page is acted on: it is told on its own page, once.
func TestDownloadsOfPages(t *testing.T) {
	c := startChrome(t)
	send := make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		switch r.URL.Path {
		case "/file":
			w.Header().Set("Content-Disposition", `attachment; filename="slow.bin"`)
			w.Header().Set("Content-Length", "4")
			_, _ = io.WriteString(w, "a")
			w.(http.Flusher).Flush()
			<-send
			_, _ = io.WriteString(w, "bcd")
		default:
			_, _ = io.WriteString(w, `<title>Own</title><a href=/file>File</a><button>Nothing</button>`)
		}
	}))
	t.Cleanup(s.Close)
	release := sync.OnceFunc(func() { close(send) })
	t.Cleanup(release) // before the server is closed, which waits for its responses
	if _, err := run(t, c, Open, OpenParams{URL: s.URL + "/"}); err != nil {
		t.Fatal(exit(err))
	}
	e, err := run(t, c, Click, ClickParams{Element: "File"})
	if err != nil || e.Caused == nil || !slices.Equal(e.Caused.Downloads, []string{`"slow.bin" (under way)`}) {
		t.Fatalf("%s, %s", effects(e), exit(err))
	}
	first := ""
	for _, tab := range must(run(t, c, Tabs, TabsParams{})).Tabs {
		if tab.Current {
			first = tab.Target
		}
	}
	if _, err := run(t, c, Open, OpenParams{URL: s.URL + "/", New: true}); err != nil {
		t.Fatal(exit(err))
	}
	release()
	d, err := run(t, c, Downloads, DownloadsParams{Wait: 20_000})
	if err != nil || d.Downloads[len(d.Downloads)-1].State != "done" {
		t.Fatalf("%s, %s", effects(d), exit(err))
	}
	if e, err := run(t, c, Click, ClickParams{Element: "Nothing"}); err != nil || e.Caused != nil {
		t.Errorf("on another page: %s, %s", effects(e), exit(err))
	}
	if _, err := run(t, c, Tabs, TabsParams{Action: "activate", Target: first}); err != nil {
		t.Fatal(exit(err))
	}
	c.closeOthers(t)
	e, err = run(t, c, Click, ClickParams{Element: "Nothing"})
	if err != nil || e.Before == nil || len(e.Before.Caused.Downloads) != 1 ||
		!strings.HasPrefix(e.Before.Caused.Downloads[0], `"slow.bin": /`) {
		t.Errorf("on its own page: %s, %s", effects(e), exit(err))
	}
}

// TestBackAndForward goes back to a page with frames that Chrome has kept: it is as it was left, and so are its refs.
// What the call does itself is not told as what an earlier act has caused.
func TestBackAndForward(t *testing.T) {
	c := startChrome(t)
	url := site(t, c)
	c.show(t, url+"/", `<title>Kept</title><button onclick="this.textContent = 'Top again'">Top</button><a href="/next">Next</a>
		<iframe src="/inner"></iframe><iframe src="`+strings.Replace(url, "127.0.0.1", "localhost", 1)+`/next"></iframe>`)
	for _, element := range []string{"Top", "Inside"} {
		if _, err := run(t, c, Click, ClickParams{Element: element}); err != nil {
			t.Fatal(exit(err))
		}
	}
	shown := func() string {
		return strings.ReplaceAll(must(run(t, c, Snapshot, SnapshotParams{MaxTokens: 500})).Text, " [focused]", "")
	}
	left := shown()
	for range 3 {
		if e, err := run(t, c, Click, ClickParams{Element: "Next"}); err != nil || e.URL != url+"/next" {
			t.Fatalf("%s, %s", effects(e), exit(err))
		}
		raw, err := c.raw(t, "go", `{"to":"back"}`)
		if err != nil || strings.Contains(string(raw), `"before"`) {
			t.Errorf("back: %s, %s", raw, exit(err))
		}
		if back := shown(); back != left {
			t.Errorf("the page is\n%s\nand was\n%s", back, left)
		}
		if s, err := run(t, c, Text, TextParams{MaxTokens: 200}); err != nil || !strings.Contains(s.Text, "Done") ||
			!strings.Contains(s.Text, "Next page") {
			t.Errorf("its text: %q, %s", s.Text, exit(err))
		}
	}
}

// TestClicksThatEndTheirDocument clicks on what closes the page, or removes its own frame: the click was done.
func TestClicksThatEndTheirDocument(t *testing.T) {
	c := startChrome(t)
	url := site(t, c)
	c.show(t, url+"/", `<title>Own</title><button onclick="window.open('/popup')">Open it</button><p id=out></p>
		<button onclick="window.close()">Close</button><button onclick="setTimeout('window.close()', 80)">Soon</button>
		<iframe srcdoc="<button onclick='parent.out.textContent = &quot;removed&quot;;
		parent.document.querySelector(&quot;iframe&quot;).remove()'>Remove</button>"></iframe>`)
	if e, err := run(t, c, Click, ClickParams{Element: "Remove"}); err != nil || e.URL != "" ||
		c.evaluate(t, "out.textContent") != `"removed"` {
		t.Errorf("a frame: %s, %s", effects(e), exit(err))
	}
	for _, button := range []string{"Close", "Soon"} {
		e, err := run(t, c, Click, ClickParams{Element: "Open it"})
		if err != nil || e.Caused == nil || len(e.Caused.NewPages) != 1 {
			t.Fatalf("%s, %s", effects(e), exit(err))
		}
		opened := e.Caused.NewPages[0].Target
		if _, err := run(t, c, Tabs, TabsParams{Action: "activate", Target: opened}); err != nil {
			t.Fatal(exit(err))
		}
		e, err = run(t, c, Click, ClickParams{Element: button})
		if err != nil || !strings.Contains(e.Note, "the page was closed") {
			t.Errorf("%s: %s, %s", button, effects(e), exit(err))
		}
		if s, err := run(t, c, Text, TextParams{MaxTokens: 100}); err != nil || !strings.Contains(s.Text, "Open it") {
			t.Errorf("%s, then: %q, %s", button, s.Text, exit(err))
		}
	}
}

// TestClosedPageEndsItsCalls closes a page with calls in flight. Those that wait for their turn end as the others do.
func TestClosedPageEndsItsCalls(t *testing.T) {
	c := startChrome(t)
	c.show(t, site(t, c)+"/", `<title>Calls</title><script>begun = 0</script>`)
	ended := make(chan error, 4)
	for range cap(ended) {
		go func() {
			_, err := c.raw(t, "evaluate", `{"expression":"begun++, await new Promise(r => setTimeout(r, 60000))"}`)
			ended <- err
		}()
	}
	waitUntil(t, "a call", func() bool { return c.evaluate(t, "begun") != "0" })
	if _, err := run(t, c, Tabs, TabsParams{Action: "close"}); err != nil {
		t.Fatal(exit(err))
	}
	for range cap(ended) {
		err := <-ended
		late := err != nil && strings.Contains(err.Error(), "no page") // it had not begun
		if err == nil || !late && !strings.Contains(err.Error(), " was closed") {
			t.Errorf("a call ended in %v", err)
		}
	}
}
