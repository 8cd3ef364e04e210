package page_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	neturl "net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/internal/sample"
	"github.com/parley-tools/parley/manifest/jsontext"
	"github.com/parley-tools/parley/manifest/schema"
)

// Tabs and its types are of this file alone.
const Tabs verb[TabsParams, TabsResult] = "tabs"

type TabsParams struct {
	Action string `json:"action,omitempty"`
	Target string `json:"target,omitempty"`
}

type TabsResult struct {
	Tabs []struct {
		Target, URL, Title, Opener string
		Current                    bool
	}
}

// TestFramesUnderTransforms clicks a button in a frame that the page has moved, scaled, turned or tilted, of its own
// origin and of another one, and in a frame in that.
func TestFramesUnderTransforms(t *testing.T) {
	c := startChrome(t)
	url := site(t, c)
	other := strings.Replace(url, "127.0.0.1", "localhost", 1)
	nested := func(origin string) string {
		inner := fmt.Sprintf(`<style>body{margin:0}</style><iframe style="transform:rotate(-20deg) scale(.8);border:3px solid" `+
			`src="%s/inner" width=200 height=90></iframe>`, url)
		return origin + "/echo?" + strings.ReplaceAll(strings.ReplaceAll(inner, "%", "%25"), "#", "%23")
	}
	half := sample.OneIn(t, 2)
	for _, style := range []string{
		"transform: scale(.5)", "transform: scale(1.7, .8); transform-origin: 0 0", "transform: rotate(35deg)",
		"transform: skewX(25deg)", "transform: perspective(500px) rotateY(40deg)",
		"transform: perspective(400px) rotateX(35deg) rotateZ(20deg); padding: 12px; border: 7px solid",
		"zoom: 1.4", "position: absolute; top: 900px; left: 200px; transform: matrix(.7,.3,-.2,.9,10,10)",
	} {
		for _, src := range []string{url + "/inner", other + "/inner", nested(url), nested(other)} {
			if !half() || strings.HasPrefix(style, "zoom") && src == nested(url) {
				continue // Chrome places what is in a frame in a zoomed frame of its process by other pixels
			}
			c.show(t, url+"/", fmt.Sprintf(`<!doctype html><div style="height:60px"></div><iframe style="%s" src="%s" width=300
				height=150></iframe>`, style, html.EscapeString(src)))
			e, err := run(t, c, Click, ClickParams{Element: `button "Inside"`})
			if err != nil || !strings.Contains(e.Note, `"Done"`) {
				t.Errorf("%s, %s: %s, %s", style, src, effects(e), exit(err))
			}
		}
	}
}

// TestLateEffects checks that what comes after the answer of an act is in the next answer on the document, and in none
// after that.
func TestLateEffects(t *testing.T) {
	c := startChrome(t)
	url := site(t, c)
	for _, test := range []struct{ name, does, want string }{
		{"a change", `out.textContent = 'late'`, `"changed":true`},
		{"a field", `field.value = 'late'`, `"changed":true`},
		{"a request that fails", `fetch('/broken')`, `"failed":["500 GET ` + url + `/broken"]`},
		{"an error", `console.error('late')`, `"errors":["\"late\""]`},
		{"a page", `window.open('/next')`, `"new_pages":[{"target":`},
		{"a download", `location.href = '/file'`, `"downloads":["\"report.csv\": /`},
		{"an address", `history.pushState({}, '', '#late')`, `#late","title":"Late"`},
		{"a document", `location.href = '/next'`, `/next","title":"Next"`},
	} {
		c.show(t, url+"/", `<title>Late</title><button onclick="setTimeout(() => { `+html.EscapeString(test.does)+
			` }, 600)">Go</button><p id=out></p><input id=field>`)
		e, err := run(t, c, Click, ClickParams{Element: "Go"})
		if err != nil || !strings.Contains(e.Note, "no change seen") {
			t.Errorf("%s: %s, %s", test.name, effects(e), exit(err))
		}
		act := e.Act
		var told json.RawMessage
		waitUntil(t, test.name, func() bool { // the browser reports some of it a little later
			raw, err := c.raw(t, "text", `{"max_tokens":50}`)
			if err != nil {
				t.Fatal(exit(err))
			}
			var found struct{ Before json.RawMessage }
			_ = json.Unmarshal(raw, &found)
			if len(found.Before) > 0 {
				told = append(told, found.Before...)
			}
			return strings.Contains(string(told), test.want)
		})
		if !strings.Contains(string(told), fmt.Sprintf(`"act":%d,"of":"click button \"Go\"`, act)) {
			t.Errorf("%s is attributed by %s", test.name, told)
		}
		c.closeOthers(t)
		if raw, err := c.raw(t, "text", `{"max_tokens":50}`); err != nil || strings.Contains(string(raw), test.want) {
			t.Errorf("%s is told again: %s, %s", test.name, raw, exit(err))
		}
	}
}

// TestLateEffectsOfFailure checks that a call that fails tells what came after the act before it.
func TestLateEffectsOfFailure(t *testing.T) {
	c := startChrome(t)
	url := site(t, c)
	c.show(t, url+"/", `<title>Late</title><button onclick="setTimeout(() => console.error('late'), 300)">Go</button>`)
	if _, err := run(t, c, Click, ClickParams{Element: "Go"}); err != nil {
		t.Fatal(exit(err))
	}
	waitUntil(t, "the error", func() bool {
		_, err := run(t, c, Get, GetParams{Element: "css=#nowhere", What: "text"})
		e, failed := errors.AsType[*host.Error](err)
		if !failed || e.Tool == nil || e.Tool.Name != "no_match" {
			t.Fatal(exit(err))
		}
		return strings.Contains(string(e.Tool.Details), `"before":{"act":`) &&
			strings.Contains(string(e.Tool.Details), `"errors":["\"late\""]`)
	})
	if raw, err := c.raw(t, "text", `{"max_tokens":50}`); err != nil || strings.Contains(string(raw), "late") {
		t.Errorf("it is told again: %s, %s", raw, exit(err))
	}
}

// TestSettle waits as long as it is told, and says what came in that time.
func TestSettle(t *testing.T) {
	c := startChrome(t)
	c.show(t, site(t, c)+"/", `<button onclick="setTimeout(() => out.textContent = 'late', 700)">Go</button>
		<button>Nothing</button><p id=out></p>`)
	for _, test := range []struct {
		name, note string
		settle     int
		least      time.Duration
	}{
		{"Go", "", 900, 1500 * time.Millisecond},
		{"Nothing", "no change seen in 800 ms; what comes later is in the next answer", 800, 700 * time.Millisecond},
		{"Nothing", "no change seen", 0, 0},
	} {
		began := time.Now()
		raw, err := c.raw(t, "click", fmt.Sprintf(`{"element":%q,"settle":%d}`, test.name, test.settle))
		var e Effects
		if err == nil {
			err = json.Unmarshal(raw, &e)
		}
		if took := time.Since(began); err != nil || e.Note != test.note || e.Caused != nil || took < test.least {
			t.Errorf("%s, %d: %s after %s, %s", test.name, test.settle, raw, took, exit(err))
		}
	}
}

// TestLateEffectsOfFrames acts by turns in the page and in frames. What a document did after its act is told as that,
// once, and what did nothing is not told.
func TestLateEffectsOfFrames(t *testing.T) {
	c := startChrome(t)
	url := site(t, c)
	other := strings.Replace(url, "127.0.0.1", "localhost", 1)
	late := html.EscapeString(`<button>Still</button><p id=out></p>` +
		`<button onclick="setTimeout(() => { out.textContent = 'Late'; top.postMessage(1, '*') }, 600)">Later</button>`)
	for _, frame := range []string{`srcdoc="` + late + `"`, `src="` + other + `/echo?` + late + `"`} {
		c.show(t, url+"/", `<title>Page</title><button>Here</button><iframe `+frame+`></iframe>
			<script>var done = 0; onmessage = () => done = 1</script>`)
		for _, element := range []string{"Here", "Still", "Here", "Still", "Still", "Here"} {
			e, err := run(t, c, Click, ClickParams{Element: element})
			if err != nil || e.Before != nil {
				t.Errorf("%s: %s: %s, %s", frame, element, effects(e), exit(err))
			}
		}
		e, err := run(t, c, Click, ClickParams{Element: "Later"})
		if err != nil {
			t.Fatal(exit(err))
		}
		waitUntil(t, "the change", func() bool { return c.evaluate(t, "done") == "1" })
		later := e.Act
		told := ""
		for range 2 {
			e, err = run(t, c, Click, ClickParams{Element: "Here"})
			if e.Before != nil {
				told += fmt.Sprintf("%d %v", e.Before.Act, e.Before.Changed)
			}
		}
		if err != nil || told != fmt.Sprintf("%d true", later) {
			t.Errorf("%s: %q, %s", frame, told, exit(err))
		}
	}
}

// TestOnlyWithin gives verbs the parameter in without an element: they are about what it names, or refuse it.
func TestOnlyWithin(t *testing.T) {
	c := startChrome(t)
	c.deadline = 10 * time.Second
	c.show(t, site(t, c)+"/", `<h1>All</h1><table><tr><td>Ada<td><button>Edit</button><tr><td>Bob<td>Lima</table><div><h3>Pro</h3>
		<p>Nine</p></div><ul><li>Milk <b>2</b><li>Eggs</ul><section aria-label=Bill id=bill>Oslo</section>`)
	for in, want := range map[string]string{"Bob": "Bob Lima", "Pro": "### Pro\n\nNine", "Milk": "Milk **2**",
		"Bill": "Oslo", "css=#bill": "Oslo", `region "Bill"`: "Oslo", "Nine": "### Pro\n\nNine"} {
		got, err := run(t, c, Text, TextParams{In: in, MaxTokens: 900})
		text := strings.NewReplacer("| ", "", " |", "", "- ", "").Replace(got.Text)
		if err != nil || !strings.Contains(text, want) || strings.Contains(text, "Ada") {
			t.Errorf("text in %s: %q, %s, want %q", in, got.Text, exit(err), want)
		}
		_, err = run(t, c, Expect, ExpectParams{Text: "Ada", In: in, Timeout: 50})
		if !strings.HasPrefix(exit(err), "not_met") {
			t.Errorf("expect in %s: %s", in, exit(err))
		}
	}
	if _, err := run(t, c, Expect, ExpectParams{Text: "lima", In: "Bob", Timeout: 500}); err != nil {
		t.Error(exit(err))
	}
	for tool, params := range map[string]string{"text": "{", "screenshot": "{", "expect": `{"text":"Ada","timeout":50,`} {
		if _, err := c.raw(t, tool, params+`"in":"Nowhere"}`); err == nil {
			t.Errorf("%s: in is ignored", tool)
		}
	}
	for tool, params := range map[string]string{"press": `{"key":"Escape",`, "type": `{"text":"x",`, "click": `{"at":[9,9],`} {
		judge := must(schema.CompileTrusted(must(c.pages.Tool(tool)).Params))
		for more, wrong := range map[string]int{`"in":"Bob"}`: 1, `"in":"Bob","element":"Edit"}`: 0} {
			found := must(judge.Validate(must(jsontext.Decode([]byte(params+more), jsontext.Limits{}))))
			if len(found) != wrong {
				t.Errorf("%s %s%s: %+v", tool, params, more, found)
			}
		}
	}
	whole, _ := run(t, c, Screenshot, ScreenshotParams{})
	if part, err := run(t, c, Screenshot, ScreenshotParams{In: "Bob"}); err != nil || len(part.Data) >= len(whole.Data)/2 {
		t.Errorf("a picture of a row has %d bytes, the view %d, %s", len(part.Data), len(whole.Data), exit(err))
	}
	found, _ := run(t, c, Find, FindParams{Element: `region "Bill"`})
	got, err := run(t, c, Text, TextParams{In: found.Matches[0].Ref, MaxTokens: 900})
	if err != nil || !strings.Contains(got.Text, "Oslo") {
		t.Errorf("text in a ref: %q, %s", got.Text, exit(err))
	}
}

// waitUntil calls done until it returns true, for some seconds.
func waitUntil(t *testing.T, what string, done func() bool) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); !done(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s: it does not come", what)
		}
	}
}

// raw calls a verb and returns its result as it is.
func (c *chrome) raw(t *testing.T, tool, params string) (json.RawMessage, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), cmp.Or(c.deadline, time.Minute))
	defer cancel()
	done, err := c.send(ctx, c.pages, tool, params)
	if err != nil {
		return nil, err
	}
	return done.Data, nil
}

// closeOthers closes all pages but the current one.
func (c *chrome) closeOthers(t *testing.T) {
	t.Helper()
	tabs, err := run(t, c, Tabs, TabsParams{})
	if err != nil {
		t.Fatal(exit(err))
	}
	for _, tab := range tabs.Tabs {
		if !tab.Current {
			if _, err := run(t, c, Tabs, TabsParams{Action: "close", Target: tab.Target}); err != nil {
				t.Error(exit(err))
			}
		}
	}
}

// TestTabs follows a page that a click has opened, and closes it.
func TestTabs(t *testing.T) {
	c := startChrome(t)
	url := site(t, c)
	c.show(t, url+"/", `<title>First</title><a href="/next" target=_blank>Tab</a>`)
	c.closeOthers(t)
	e, err := run(t, c, Click, ClickParams{Element: "Tab"})
	if err != nil || e.Caused == nil || len(e.Caused.NewPages) != 1 || e.Caused.NewPages[0].URL != url+"/next" ||
		!strings.Contains(e.Note, "page.tabs activate "+e.Caused.NewPages[0].Target[:8]) {
		t.Fatalf("%s, %s", effects(e), exit(err))
	}
	target := e.Caused.NewPages[0].Target
	if r, err := run(t, c, Get, GetParams{Element: "css=a", What: "text"}); err != nil || string(r.Value) != `"Tab"` {
		t.Errorf("the first page is no longer the current one: %s, %s", r.Value, exit(err))
	}
	tabs, err := run(t, c, Tabs, TabsParams{Action: "activate", Target: target[:8]})
	if err != nil || len(tabs.Tabs) != 2 || !tabs.Tabs[1].Current || tabs.Tabs[1].Opener != tabs.Tabs[0].Target {
		t.Fatalf("%+v, %s", tabs, exit(err))
	}
	if r, err := run(t, c, Get, GetParams{Element: "css=h1", What: "text"}); err != nil || string(r.Value) != `"Next page"` {
		t.Errorf("in the new page: %s, %s", r.Value, exit(err))
	}
	if tabs, err = run(t, c, Tabs, TabsParams{Action: "close", Target: target}); err != nil || len(tabs.Tabs) != 1 {
		t.Errorf("%+v, %s", tabs, exit(err))
	}
	if _, err := run(t, c, Tabs, TabsParams{Action: "activate", Target: target}); host.AsError(err).Code != host.NotFound {
		t.Error("a closed page can be followed: ", exit(err))
	}
	before := len(tabs.Tabs)
	if _, err := run(t, c, Open, OpenParams{URL: url + "/next"}); err != nil {
		t.Fatal(exit(err))
	}
	if tabs, err = run(t, c, Tabs, TabsParams{}); err != nil || len(tabs.Tabs) != before {
		t.Errorf("open made another page: %+v, %s", tabs, exit(err))
	}
}

// TestLoadingFailures checks that each kind of failure of loading has a code of its own, and that the page stays
// usable.
func TestLoadingFailures(t *testing.T) {
	c := startChrome(t)
	url := site(t, c)
	secure := httptest.NewTLSServer(http.NotFoundHandler())
	defer secure.Close()
	secure.Config.ErrorLog = log.New(io.Discard, "", 0)
	login := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("WWW-Authenticate", `Basic realm="a"`)
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = io.WriteString(w, "log in")
	}))
	defer login.Close()
	silent := must(net.Listen("tcp", "127.0.0.1:0"))
	defer silent.Close()
	go func() {
		for {
			conn, err := silent.Accept()
			if err != nil {
				return
			}
			_ = conn.Close()
		}
	}()
	free := must(net.Listen("tcp", "127.0.0.1:0"))
	_ = free.Close()
	for _, test := range []struct{ url, want string }{
		{"http://" + free.Addr().String() + "/", "refused: "},
		{secure.URL, "tls: "},
		{strings.Replace(secure.URL, "https", "http", 1), "failed: "},
		{strings.Replace(url, "http:", "https:", 1), "tls: "},
		{login.URL, "login_required: "},
		{"http://" + silent.Addr().String() + "/", "failed: "},
		{"http://no-such-host.invalid/", "failed: "},
	} {
		if _, err := run(t, c, Open, OpenParams{URL: test.url}); !strings.HasPrefix(exit(err), test.want) {
			t.Errorf("%s: %s, want %s", test.url, exit(err), test.want)
		}
	}
	c.show(t, url+"/", "<p>Still here</p>")
	if r, err := run(t, c, Text, TextParams{MaxTokens: 100}); err != nil || r.Text != "Still here" {
		t.Errorf("%+v, %s", r, exit(err))
	}
}

// TestPagesThatReload opens pages from one that loads itself again all the time, which gives up navigations: each
// opens. A download is told as one.
func TestPagesThatReload(t *testing.T) {
	c := startChrome(t)
	url := site(t, c)
	const reloads = "<title>Again</title><script>setTimeout(() => location.reload(), 30)</script>"
	again := url + "/echo?" + neturl.QueryEscape(reloads)
	for range 20 {
		for _, to := range []string{again, again, url + "/next"} {
			if r, err := run(t, c, Open, OpenParams{URL: to}); err != nil || r.URL != to {
				t.Fatalf("%s: %+v, %s", to, r, exit(err))
			}
		}
	}
	for range 5 {
		if _, err := run(t, c, Open, OpenParams{URL: again}); err != nil {
			t.Error(exit(err))
		}
		r, err := run(t, c, Open, OpenParams{URL: url + "/file"})
		if !strings.Contains(exit(err), "a download or an empty response") {
			t.Errorf("%+v, %s", r, exit(err))
		}
	}
}

// TestReadsOfReloads reads a page that loads itself again without end: each read answers, or says that it does that.
func TestReadsOfReloads(t *testing.T) {
	c := startChrome(t)
	url := site(t, c)
	c.show(t, url+"/", "<title>Before</title>")
	again := url + "/echo?" + neturl.QueryEscape("<p>Again<script>location.reload()</script>")
	_, _ = run(t, c.hurried(), Open, OpenParams{URL: again})
	for range 5 {
		for tool, params := range map[string]string{"text": "{}", "snapshot": "{}", "find": `{"element":"Again"}`,
			"get": `{"element":"css=html","what":"text"}`, "click": `{"element":"Again","settle":0}`} {
			_, err := c.raw(t, tool, params)
			if err != nil && (!strings.HasPrefix(exit(err), "busy: ") && host.AsError(err).Exit == 0 ||
				strings.Contains(exit(err), "Runtime.")) {
				t.Errorf("%s: %s", tool, exit(err))
			}
		}
	}
}

// TestLoading opens pages that are usable before they have loaded, and one that asks something first.
func TestLoading(t *testing.T) {
	c := startChrome(t)
	hang := make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		switch r.URL.Path {
		case "/hang":
			<-hang
		case "/image":
			_, _ = io.WriteString(w, `<title>Image</title><button>Go</button><img src=/hang>`)
		case "/dialog":
			_, _ = io.WriteString(w, `<title>Dialog</title><script>alert("First")</script><button>Go</button>`)
		case "/script":
			_, _ = io.WriteString(w, `<title>Script</title><p id=out></p><script src=/late.js></script>`)
		case "/late.js":
			time.Sleep(300 * time.Millisecond) // a slow server
			w.Header().Set("Content-Type", "text/javascript")
			_, _ = io.WriteString(w, `out.textContent = "ran"`)
		}
	}))
	defer s.Close()
	defer close(hang)
	r, err := run(t, c, Open, OpenParams{URL: s.URL + "/image"})
	if err != nil || r.Title != "Image" || r.Caused == nil || len(r.Caused.Pending) != 1 ||
		r.Caused.Pending[0] != s.URL+"/hang" {
		t.Errorf("a page with an image that does not come: %s, %s", effects(r), exit(err))
	}
	if _, err := run(t, c, Click, ClickParams{Element: "Go"}); err != nil {
		t.Error("a click while an image is loading: ", exit(err))
	}
	r, err = run(t, c, Open, OpenParams{URL: s.URL + "/dialog"})
	if err != nil || r.Caused == nil || r.Caused.Dialog == nil || r.Caused.Dialog.Message != "First" {
		t.Errorf("a page with a dialog: %s, %s", effects(r), exit(err))
	}
	if d, err := run(t, c, AnswerDialog, DialogParams{Action: "accept"}); err != nil || d.Dialog.Message != "First" {
		t.Errorf("its answer: %s, %s", effects(d), exit(err))
	}
	if r, err := run(t, c, Find, FindParams{Element: "Go", Limit: 1}); err != nil || r.Total != 1 {
		t.Errorf("after the answer: %+v, %s", r, exit(err))
	}
	if _, err = run(t, c, Open, OpenParams{URL: s.URL + "/script"}); err != nil {
		t.Error(exit(err))
	}
	if got := c.evaluate(t, "out.textContent"); got != `"ran"` {
		t.Error("open returned before a script had run: ", got)
	}
}

// TestValuesThatFieldsRefuse fills in what fields do not take: they keep what they hold.
func TestValuesThatFieldsRefuse(t *testing.T) {
	c := startChrome(t)
	url := site(t, c)
	for _, test := range []struct{ kind, had, given string }{
		{"number", "5", "many"}, {"date", "2026-01-31", "tomorrow"}, {"time", "10:00", "25:00"},
		{"month", "2026-01", "January"}, {"week", "2026-W05", "5"}, {"datetime-local", "2026-01-31T10:00", "2026-01-31"},
		{"color", "#112233", "reddish"}, {"range", "30", "500"}, {"range", "30", "x"},
	} {
		c.show(t, url+"/", fmt.Sprintf(`<label>Field <input id=f type=%s value=%s></label>`, test.kind, test.had))
		_, err := run(t, c, Fill, FillParams{Element: "Field", Value: test.given})
		if got := c.evaluate(t, "f.value"); !strings.HasPrefix(exit(err), "not_accepted: ") || got != `"`+test.had+`"` {
			t.Errorf("%s with %s: %s; it holds %s", test.kind, test.given, exit(err), got)
		}
	}
	for _, test := range []struct{ kind, given string }{
		{"number", "-1.5e3"}, {"date", "2026-02-28"}, {"time", "23:59"}, {"color", "#FF8800"},
		{"range", "50"}, {"number", ""},
	} {
		c.show(t, url+"/", fmt.Sprintf(`<label>Field <input id=f type=%s></label>`, test.kind))
		_, err := run(t, c, Fill, FillParams{Element: "Field", Value: test.given})
		if got := c.evaluate(t, "f.value"); err != nil || !strings.EqualFold(got, `"`+test.given+`"`) {
			t.Errorf("%s with %s: %s; it holds %s", test.kind, test.given, exit(err), got)
		}
	}
}

// TestRestlessPages calls each verb while the page goes to another document all the time, throws its elements away, and
// opens pages and dialogs. A verb ends, and what it returns is a result or a reason.
func TestRestlessPages(t *testing.T) {
	c := startChrome(t)
	url := site(t, c)
	const body = `<title>Restless</title><button>Go</button><input aria-label=Field><select aria-label=List><option>A<option>B
		</select><iframe src="/inner"></iframe><p>Text</p>`
	calls := []string{`snapshot {}`, `text {}`, `find {"element":"Go"}`, `get {"element":"Go","what":"text"}`,
		`click {"element":"Go"}`, `click {"element":"Inside"}`, `fill {"element":"Field","value":"x"}`,
		`type {"text":"x","element":"Field"}`, `press {"key":"Escape"}`, `select {"element":"List","options":["B"]}`,
		`hover {"element":"Go"}`, `scroll {"to":"bottom"}`, `wait {"text":"Text","timeout":500}`,
		`expect {"element":"Go","timeout":500}`, `screenshot {}`, `evaluate {"expression":"1"}`, `requests {"limit":5}`,
		`console {"limit":5}`, `vitals {}`, `storage {}`, `cookies {}`, `go {"to":"reload"}`,
		`do {"steps":[{"tool":"click","params":{"element":"Go"}},{"tool":"snapshot","params":{}}]}`, `tabs {}`}
	few, half := sample.OneIn(t, 6), sample.OneIn(t, 2)
	for _, unrest := range []struct{ name, script string }{
		{"navigations", `setTimeout(() => location.href = '/?' + Math.random(), 40)`},
		{"mutations", `setInterval(() => { const old = document.querySelector('button'); old.replaceWith(old.cloneNode(true)) }, 1)`},
		{"messages", `setInterval(() => { for (let i = 0; i < 50; i++) console.error('x' + i) }, 5)`},
		{"requests", `setInterval(() => fetch('/next'), 10)`},
	} {
		if !half() {
			continue
		}
		page := body + "<script>" + unrest.script + "</script>"
		c.given.Store(&page)
		if _, err := run(t, c, Open, OpenParams{URL: url + "/"}); err != nil && host.AsError(err).Tool == nil {
			t.Errorf("%s: open: %s", unrest.name, exit(err))
		}
		for _, call := range calls {
			if !few() {
				continue
			}
			tool, params, _ := strings.Cut(call, " ")
			c.deadline = 20 * time.Second
			_, err := c.raw(t, tool, params)
			c.deadline = 0
			if err == nil {
				continue
			}
			if e := host.AsError(err); e.Code == host.Internal || e.Code == host.Timeout {
				t.Errorf("%s: %s: %s", unrest.name, call, exit(err))
			}
		}
	}
	c.show(t, url+"/", "<p>Calm</p>")
}

// TestPicturesOfRestlessPages takes pictures of a page that is replaced all the time, of which Chrome drops a few.
func TestPicturesOfRestlessPages(t *testing.T) {
	c := startChrome(t)
	page := `<p>Text</p><script>setTimeout(() => location.href = '/?' + Math.random(), 40)</script>`
	c.given.Store(&page)
	c.deadline = 20 * time.Second
	url := site(t, c) + "/"
	_, _ = run(t, c, Open, OpenParams{URL: url})
	for range 20 {
		if _, err := c.raw(t, "screenshot", `{}`); err != nil {
			t.Error(exit(err))
		}
	}
	c.show(t, url, "") // else the page leaves for a server that is gone while the next test opens its own
}

// TestTwoAgents lets two agents click on one page at the same time. Each click is received once.
func TestTwoAgents(t *testing.T) {
	c := startChrome(t)
	url := site(t, c)
	c.show(t, url+"/", `<button onclick="n++">One</button><button onclick="n++">Two</button><script>n = 0</script>`)
	const clicks = 10
	var wait sync.WaitGroup
	for _, name := range []string{"One", "Two"} {
		wait.Go(func() {
			for range clicks {
				if _, err := c.raw(t, "click", `{"element":"`+name+`","settle":0}`); err != nil {
					t.Errorf("%s: %s", name, exit(err))
				}
			}
		})
	}
	wait.Wait()
	if n := c.evaluate(t, "n"); n != fmt.Sprint(2*clicks) {
		t.Errorf("the page was clicked %s times, want %d", n, 2*clicks)
	}
}

// TestWithin limits acts and looks to what is around an element, and checks that the error of an ambiguous name says
// what tells its elements from each other.
func TestWithin(t *testing.T) {
	c := startChrome(t)
	url := site(t, c)
	const click = ` onclick="out.textContent = this.dataset.n"`
	for name, test := range map[string]struct{ html, element, in, said string }{
		"rows": {`<table><tr><td>Ada<td><button data-n=1` + click + `>Edit</button><tr><td>Bob Smith<td><button data-n=2` + click +
			`>Edit</button></table>`, "Edit", "Bob Smith", `in row "Ada", button "Edit" `},
		"a row by a part": {`<table><tr><td>Ada<td><button data-n=1` + click + `>Edit</button><tr><td>Bob Smith<td><button data-n=2` +
			click + `>Edit</button></table>`, "Edit", `row "Bob"`, `in row "Bob Smith"`},
		"cards": {`<div><h3>Basic</h3><p>5</p><button data-n=1` + click + `>Buy</button></div><div><h3>Pro</h3><p>9</p>
			<button data-n=2` + click + `>Buy</button></div>`, "Buy", "Pro", `in "Basic", button "Buy" `},
		"a dialog": {`<button data-n=1` + click + `>Save</button><div role=dialog aria-label=Settings><button data-n=2` + click +
			`>Save</button></div>`, "Save", "Settings", `in dialog "Settings"`},
		"the only dialog": {`<button data-n=1` + click + `>Save</button><div role=dialog aria-label=Settings><button data-n=2` + click +
			`>Save</button></div>`, "Save", "dialog", `in dialog "Settings"`},
		"a region": {`<section aria-label=Old><a href="#1" data-n=1` + click + `>More</a></section><section aria-label=New>
			<a href="#2" data-n=2` + click + `>More</a></section>`, `link "More"`, `region "New"`, `in region "Old", link "More" `},
		"a selector": {`<ul><li>A <button data-n=1` + click + `>Del</button><li id=two>B <button data-n=2` + click +
			`>Del</button></ul>`, "Del", "css=#two", `in listitem "A"`},
		"two rows of one name": {`<table><tr><td>Bob<td>b@a.test<td><button data-n=1` + click + `>Edit</button><tr><td>Bob<td>b@b.test
			<td><button data-n=2` + click + `>Edit</button></table>`, "Edit", "b@b.test", `in row "b@a.test", button "Edit" `},
		"cards in shadow roots": {`<div><template shadowrootmode=open><h3>Basic</h3><button data-n=1>Buy</button></template></div><div>
			<template shadowrootmode=open><h3>Pro</h3><button data-n=2 onclick="out.textContent = 2">Buy</button></template></div>`,
			"Buy", "Pro", `in "Basic", button "Buy" `},
		"text beside a control": {`<div>Spec <button data-n=1` + click + `>Edit</button></div><div>Fix bug <button data-n=2` + click +
			`>Edit</button></div>`, "Edit", "Fix bug", `in "Spec", button "Edit" `},
		"a shadow root": {`<div><template shadowrootmode=open><p>One</p><button data-n=1>Go</button></template></div><div>
			<template shadowrootmode=open><p>Two</p><button data-n=2 onclick="out.textContent = 2">Go</button></template></div>`,
			"Go", "Two", `matches 2 elements`},
	} {
		c.show(t, url+"/", test.html+"<p><output id=out></output></p>")
		if _, err := run(t, c, Click, ClickParams{Element: test.element}); !strings.HasPrefix(exit(err), "ambiguous") ||
			!strings.Contains(exit(err), test.said) {
			t.Errorf("%s: %s does not say %s", name, exit(err), test.said)
		}
		if e, err := run(t, c, Click, ClickParams{Element: test.element, In: test.in}); err != nil ||
			c.evaluate(t, "out.textContent") != `"2"` {
			t.Errorf("%s: %s, %s, clicked %s", name, effects(e), exit(err), c.evaluate(t, "out.textContent"))
		}
		r, err := run(t, c, Get, GetParams{Element: test.element, In: test.in, What: "count"})
		if err != nil || string(r.Value) != "1" {
			t.Errorf("%s: %s, %s", name, r.Value, exit(err))
		}
	}
	c.deadline = 2 * time.Second
	bobs := `<table><tr><td>Bob<td><button>Edit</button><tr><td>Bob<td><button>Edit</button></table>`
	for _, test := range []struct{ html, element, in, want string }{
		{bobs, "Edit", "Bob", `ambiguous: "Edit" matches 2 elements: `},
		{bobs, "Edit", "css=tr", `ambiguous: "Edit" matches 2 elements: `},
		{bobs, "Edit", "Nowhere", `no_match: nothing matches "Nowhere", given as the parameter in; nearest: button "Edit" `},
		{bobs, "Delete", "Bob", `no_match: nothing matches "Delete" in "Bob"`},
		{`<a href="#">Hello</a><a href="#">Help</a>`, "Hlep", "", `no_match: nothing matches "Hlep"; nearest: link "Help" `},
		{`<a href="#">Logo</a><button>Log in</button>`, "Login", "", `no_match: nothing matches "Login"; nearest: button "Log in" `},
	} {
		c.show(t, url+"/", test.html)
		_, err := run(t, c, Click, ClickParams{Element: test.element, In: test.in})
		if !strings.HasPrefix(exit(err), test.want) {
			t.Errorf("%s in %s: %s, want %s", test.element, test.in, exit(err), test.want)
		}
	}
}

// TestScrolled acts on what boxes that scroll hide, in the page, in each other, in a fixed dialog, in a shadow root and
// in a frame.
func TestScrolled(t *testing.T) {
	c := startChrome(t)
	url := site(t, c)
	var rows strings.Builder
	for i := range 30 {
		fmt.Fprintf(&rows, `<p><button onclick="top.document.title = this.textContent">B%d</button><input aria-label=F%[1]d></p>`, i)
	}
	box := `<div style="height: 80px; width: 200px; overflow: auto">` + rows.String() + `</div>`
	for name, html := range map[string]string{
		"a box":          box,
		"one axis":       strings.Replace(box, "overflow: auto", "overflow-y: scroll", 1),
		"a box in a box": `<div style="height: 60px; overflow: auto"><p style="height: 300px"></p>` + box + `</div>`,
		"a fixed dialog": `<div role=dialog style="position: fixed; inset: 20px">` + box + `</div>`,
		"a modal dialog": `<dialog id=d>` + box + `</dialog><script>d.showModal()</script>`,
		"a shadow root":  `<div><template shadowrootmode=open>` + box + `</template></div>`,
		"around a host": `<div style="height: 60px; overflow: auto"><p style="height: 300px"></p><div><template shadowrootmode=open>` +
			`<button onclick="document.title = this.textContent">B25</button><input aria-label=F25></template></div></div>`,
		"a frame":        `<iframe height=90 srcdoc='` + strings.ReplaceAll(box, "'", "") + `'></iframe>`,
		"below a header": `<div style="position: fixed; top: 0; width: 100%; height: 60px; background: red">Head</div><p style="height: 2000px"></p>` + box,
	} {
		c.show(t, url+"/", "<title>None</title>"+html)
		if _, err := run(t, c, Click, ClickParams{Element: "B25"}); err != nil || c.evaluate(t, "document.title") != `"B25"` {
			t.Errorf("%s: %s, the title is %s", name, exit(err), c.evaluate(t, "document.title"))
		}
		if _, err := run(t, c, Fill, FillParams{Element: "F25", Value: "x"}); err != nil {
			t.Errorf("%s: %s", name, exit(err))
		}
		if _, err := c.raw(t, "hover", `{"element":"B0"}`); err != nil && name != "around a host" {
			t.Errorf("%s: hover: %s", name, exit(err))
		}
	}
}

// TestEffectsOfFrames checks that a click in a frame tells what its document causes, in whatever process that is, and
// that its navigation is told as the frame's, once.
func TestEffectsOfFrames(t *testing.T) {
	c := startChrome(t)
	url := site(t, c)
	other := strings.Replace(url, "127.0.0.1", "localhost", 1)
	for _, origin := range []string{url, other} {
		for _, test := range []struct{ does, rest, want string }{
			{`throw new Error('thrown')`, "", `"errors":["\"Uncaught Error: thrown\""]`},
			{`console.error('logged')`, "", `"errors":["\"logged\""]`},
			{`fetch('/broken')`, "", `"failed":["500 GET ` + origin + `/broken"]`},
			{`window.open('/next')`, "", `"url":"` + origin + `/next"}]`},
			{`location.href = '/next'`, "", `"frames":["` + origin + `/next"]`},
			// The document is replaced while the act waits in it.
			{`setTimeout(() => location.href = '/next', 100)`, `,"settle":500`, `"frames":["` + origin + `/next"]`},
		} {
			c.show(t, url+"/", `<title>Page</title><iframe src="`+origin+`/echo?`+
				html.EscapeString(`<button onclick="`+test.does+`">Go</button>`)+`"></iframe>`)
			told, err := c.raw(t, "click", `{"element":"Go"`+test.rest+`}`)
			if err != nil || !strings.Contains(string(told), test.want) || strings.Contains(string(told), `"title"`) {
				t.Errorf("%s, %s: %s, %s", origin, test.does, told, exit(err))
			}
			c.closeOthers(t)
			if raw, err := c.raw(t, "text", `{"max_tokens":50}`); err != nil || strings.Contains(string(raw), `"before"`) {
				t.Errorf("%s, %s is told again: %s, %s", origin, test.does, raw, exit(err))
			}
		}
	}
}

// TestShortTimeouts checks that a small page is searched to its end, however short the time of the call is.
func TestShortTimeouts(t *testing.T) {
	c := startChrome(t)
	c.show(t, site(t, c)+"/", `<button>A</button>`+strings.Repeat(`<p>Text</p>`, 60))
	for _, deadline := range []time.Duration{600 * time.Millisecond, time.Second, 1200 * time.Millisecond} {
		var got string
		for range 20 { // on a busy machine the processor may be elsewhere for all of the time
			c.deadline = deadline
			_, err := run(t, c, Click, ClickParams{Element: "Other"})
			if got = exit(err); !strings.Contains(got, "there was no time") {
				break
			}
		}
		if !strings.Contains(got, `nothing matches "Other"`) {
			t.Errorf("%s: %s", deadline, got)
		}
	}
}
