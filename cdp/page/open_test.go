package page_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/parley-tools/parley/internal/sample"
)

// strangeSite serves what does not become a page, beside documents: in a query, or what say maps a path to.
func strangeSite(t *testing.T, say map[string]string) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/204":
			w.WriteHeader(http.StatusNoContent)
		case "/404":
			w.WriteHeader(http.StatusNotFound)
		case "/hang":
			<-r.Context().Done()
		case "/file", "/slow":
			w.Header().Set("Content-Disposition", `attachment; filename="a.csv"`)
			_, _ = io.WriteString(w, strings.Repeat("a,b\n", 1000)) // Chrome looks at the first bytes
			if w.(http.Flusher).Flush(); r.URL.Path == "/slow" {
				time.Sleep(time.Second)
			}
			_, _ = io.WriteString(w, "bc")
		default:
			w.Header().Set("Content-Type", "text/html")
			_, _ = fmt.Fprintf(w, "<title>%s</title>%s", r.URL.Path, say[r.URL.Path])
		}
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// tabsOf lists the pages of the session by the end of their addresses.
func (c *chrome) tabsOf(t *testing.T) map[string]string {
	t.Helper()
	r, err := run(t, c, Tabs, TabsParams{})
	if err != nil {
		t.Fatal(exit(err))
	}
	all := map[string]string{}
	for _, tab := range r.Tabs {
		all[tab.URL[max(strings.LastIndex(tab.URL, "/"), 0):]] = tab.Target
	}
	return all
}

// newPage opens a page beside the current one, which stays that.
func (c *chrome) newPage(t *testing.T, url string) (target string) {
	t.Helper()
	c.evaluate(t, fmt.Sprintf("window.open(%q), 1", url))
	for until := time.Now().Add(5 * time.Second); target == "" && time.Now().Before(until); {
		time.Sleep(20 * time.Millisecond)
		target = c.tabsOf(t)[url[strings.LastIndex(url, "/"):]]
	}
	t.Cleanup(func() { c.closePage(target) })
	return target
}

// TestStepsFollowTabs activates a page that no call has used, and closes it, after each verb as the first step and
// before each as the last one. The steps after it are on the page that is then the current one. It takes a sample of
// the verbs.
func TestStepsFollowTabs(t *testing.T) {
	c := startChrome(t)
	url := strangeSite(t, map[string]string{"/old": "<button>Go</button><input aria-label=Field>",
		"/new": "<button>Go</button><input aria-label=Field>"})
	others := []string{"", `tabs {}`, `get {"element":"css=button","what":"text"}`, `snapshot {}`, `text {}`,
		`find {"element":"Go"}`,
		`click {"element":"Go"}`, `fill {"element":"Field","value":"x"}`, `press {"key":"Tab"}`, `console {}`, `requests {}`,
		`cookies {}`, `wait {"text":"Go"}`, `expect {"text":"Go"}`, `route {}`, `evaluate {"expression":"1"}`, `downloads {}`,
		`scroll {"to":"top"}`}
	few := sample.OneIn(t, 6)
	for _, other := range others {
		for _, first := range []bool{true, false} {
			if other != "" && !few() {
				continue
			}
			if _, err := run(t, c, Open, OpenParams{URL: url + "/old"}); err != nil {
				t.Fatal(exit(err))
			}
			target := c.newPage(t, url+"/new")
			all := []string{fmt.Sprintf(`tabs {"action":"activate","target":%q}`, target)}
			switch {
			case other != "" && first:
				all = append([]string{other}, all...)
			case other != "":
				all = append(all, other)
			}
			all = append(all, `evaluate {"expression":"location.pathname"}`,
				fmt.Sprintf(`tabs {"action":"close","target":%q}`, target), `evaluate {"expression":"location.pathname"}`)
			r, err := run(t, c, Do, steps(all...))
			if got := effects(r); err != nil || strings.Count(got, `"value":"/new"`) != 1 ||
				strings.Count(got, `"value":"/old"`) != 1 {
				t.Errorf("%v: %.500s, %s", all, got, exit(err))
			}
		}
	}
}

// TestTargetOfEveryVerb names a page that is not there. No verb acts on another one.
func TestTargetOfEveryVerb(t *testing.T) {
	c := startChrome(t)
	url := strangeSite(t, nil)
	if _, err := run(t, c, Open, OpenParams{URL: url + "/a"}); err != nil {
		t.Fatal(exit(err))
	}
	other := c.newPage(t, url+"/b")
	c.target = "ZZZZ"
	defer func() { c.target = "" }()
	for _, name := range must(c.pages.Names()) {
		params := string(must(c.pages.Tool(name)).Examples[0].Params)
		switch name {
		case "state", "compare": // the host's
			continue
		case "do":
			params = `{"steps":[{"tool":"tabs","params":{}}]}`
		}
		if _, err := c.send(t.Context(), c.pages, name, params); !strings.HasPrefix(exit(err), "not_found") {
			t.Errorf("%s %s: %s", name, params, exit(err))
		}
	}
	c.target = other
	if _, err := run(t, c, Tabs, TabsParams{Action: "close"}); err != nil {
		t.Error(exit(err))
	}
	c.target = ""
	if left := c.tabsOf(t); left["/a"] == "" || left["/b"] != "" {
		t.Errorf("left: %v", left)
	}
}

// TestOpenLeaves opens a page from one that would keep its document: by dialogs, one after the other, and by scripts
// that do not end, of which it takes a sample. The page is then the one that was asked for, or the call fails.
func TestOpenLeaves(t *testing.T) {
	c := startChrome(t)
	const loop = "for (;;);"
	say := map[string]string{"/two": "<script>alert('one'); confirm('two')</script>",
		"/many":    "<button onclick=\"(function f(i) { alert(i); if (i < 5) setTimeout(f, 0, i + 1) })(0)\">Go</button>",
		"/stay":    "<button onclick='onbeforeunload = (e) => e.preventDefault()'>Go</button>",
		"/parse":   "<button>Go</button><script>" + loop + "</script>",
		"/load":    "<script>onload = () => {" + loop + "}</script>",
		"/timer":   "<script>setTimeout(() => {" + loop + "}, 0)</script>",
		"/later":   "<script>setTimeout(() => {" + loop + "}, 300)</script>",
		"/answer":  "<script>document.title = confirm('?')</script>",
		"/endless": "<script>setTimeout(() => { for (;;) confirm('again') }, 300)</script>",
	}
	url := strangeSite(t, say)
	open := func(path string, d time.Duration) (*PageResult, error) {
		c.deadline = d
		return run(t, c, Open, OpenParams{URL: url + path})
	}
	say["/framed"] = "<iframe src=" + strings.Replace(url, "127.0.0.1", "framed.localhost", 1) + "/endless></iframe>"
	half := sample.OneIn(t, 2)
	for path := range say {
		if strings.Contains(say[path], loop) && !half() {
			continue
		}
		r, err := open(path, 5*time.Second)
		switch path {
		case "/parse", "/load":
			if !strings.Contains(exit(err), "a script that did not end, which was stopped") {
				t.Errorf("%s: %s, %s", path, effects(r), exit(err))
			}
		case "/many", "/stay":
			if _, err := run(t, c, Click, ClickParams{Element: "Go"}); err != nil {
				t.Error(exit(err))
			}
		case "/later", "/endless", "/framed":
			time.Sleep(400 * time.Millisecond)
		}
		page := c.tabsOf(t)[path]
		r, err = open("/next", 9*time.Second)
		if path == "/stay" {
			if !strings.HasPrefix(exit(err), "busy: ") || !strings.Contains(exit(err), "beforeunload") {
				t.Errorf("%s: %s, %s", path, effects(r), exit(err))
			}
			if _, err := run(t, c, AnswerDialog, DialogParams{Action: "accept"}); err != nil {
				t.Error(exit(err))
			}
			r, err = open("/next", 9*time.Second)
		}
		if err != nil || r.URL != url+"/next" || r.Caused != nil && r.Caused.Dialog != nil {
			t.Errorf("from %s: %s, %s", path, effects(r), exit(err))
		} else if now := c.tabsOf(t)["/next"]; now != page {
			t.Errorf("from %s: another page, %s, not %s", path, now, page)
		}
	}
}

// TestOpenNeedsNoCommit opens documents that go on to what is no page, and ones whose frame does not come. They can be
// used, have their own status, and do not wait.
func TestOpenNeedsNoCommit(t *testing.T) {
	c := startChrome(t)
	say := map[string]string{"/frame": "<iframe src=/hang></iframe>"}
	for name, to := range map[string]string{"204": "/204", "file": "/file", "mail": "mailto:a@b.c", "tel": "tel:1"} {
		say["/inline-"+name] = fmt.Sprintf("<script>location.href = %q</script><p>Text", to)
		say["/load-"+name] = fmt.Sprintf("<p>Text<script>onload = () => location.href = %q</script>", to)
	}
	url := strangeSite(t, say)
	if _, err := run(t, c, Open, OpenParams{URL: url + "/first", New: true}); err != nil {
		t.Fatal(exit(err))
	}
	defer func() { // Chrome asks a person about mail and calls, and the page takes no input meanwhile
		if _, err := run(t, c, Tabs, TabsParams{Action: "close"}); err != nil {
			t.Error(exit(err))
		}
	}()
	for path := range say {
		c.deadline = 8 * time.Second
		began := time.Now()
		r, err := run(t, c, Open, OpenParams{URL: url + path})
		if err != nil || r.URL != url+path || r.Status != 200 {
			t.Errorf("%s: %s, %s in %s", path, effects(r), exit(err), time.Since(began))
		}
		if path == "/frame" && (r.Caused == nil || fmt.Sprint(r.Caused.Pending) != "["+url+"/hang]") {
			t.Errorf("%s: %s", path, effects(r))
		}
	}
}

// TestFailedOpensTellOnce opens what fails, and a page after it. What the first has caused is told by it, once, or as
// its own later.
func TestFailedOpensTellOnce(t *testing.T) {
	c := startChrome(t)
	url := strangeSite(t, map[string]string{"/page": "<a href=/slow>Get</a><button>Nop</button>" +
		"<button onclick=\"const until = Date.now() + 4000; while (Date.now() < until); out.textContent = 'x'\">" +
		"Slow</button><p id=out></p>"})
	for path, want := range map[string]string{"/404": "failed", "/file": "failed", "/204": "failed"} {
		if _, err := run(t, c, Open, OpenParams{URL: url + "/page"}); err != nil {
			t.Fatal(exit(err))
		}
		if _, err := run(t, c, Open, OpenParams{URL: url + path}); !strings.HasPrefix(exit(err), want) {
			t.Errorf("%s: %s", path, exit(err))
		}
		r, err := run(t, c, Open, OpenParams{URL: url + "/page"})
		before := effects(r.Before)
		if err != nil || strings.Contains(before, "failed") || strings.Contains(before, "/page") {
			t.Errorf("after %s: %s, %s", path, before, exit(err))
		}
	}
	for _, name := range []string{"Nop", "Slow"} {
		c.deadline = 2 * time.Second
		_, _ = run(t, c, Click, ClickParams{Element: name})
	}
	time.Sleep(3 * time.Second)
	s, err := run(t, c, Hover, ElementParams{Element: "Nop"})
	if before := effects(s.Before); err != nil || strings.Contains(before, "Nop") {
		t.Errorf("after a slow click: %s, %s", before, exit(err))
	}
	if _, err := run(t, c, Click, ClickParams{Element: "Get"}); err != nil {
		t.Fatal(exit(err))
	}
	if _, err := run(t, c, Click, ClickParams{Element: "Nop"}); err != nil {
		t.Fatal(exit(err))
	}
	time.Sleep(1500 * time.Millisecond)
	s, err = run(t, c, Hover, ElementParams{Element: "Nop"})
	if before := effects(s.Before); err != nil || !strings.Contains(before, `a.csv`) ||
		!strings.Contains(before, `click link`) {
		t.Errorf("after a download: %s, %s", before, exit(err))
	}
}

// TestPagesOfClicks clicks a link in each way that opens a page. The answer names the page, which has its opener.
func TestPagesOfClicks(t *testing.T) {
	c := startChrome(t)
	url := strangeSite(t, map[string]string{"/page": "<a href=/other>Go</a> <a href=/other target=_blank>Blank</a>"})
	for _, p := range []ClickParams{{Element: "Go", Modifiers: []string{"Control"}}, {Element: "Go", Button: "middle"},
		{Element: "Go", Modifiers: []string{"Shift"}}, {Element: "Blank"}} {
		if _, err := run(t, c, Open, OpenParams{URL: url + "/page"}); err != nil {
			t.Fatal(exit(err))
		}
		e, err := run(t, c, Click, p)
		if err != nil || e.Caused == nil || len(e.Caused.NewPages) != 1 || e.Caused.NewPages[0].URL != url+"/other" {
			t.Fatalf("%+v: %s, %s", p, effects(e), exit(err))
		}
		for _, tab := range must(run(t, c, Tabs, TabsParams{})).Tabs {
			if tab.Target == e.Caused.NewPages[0].Target && tab.Opener == "" {
				t.Errorf("%+v: %+v", p, tab)
			}
		}
		if _, err := run(t, c, Tabs, TabsParams{Action: "close", Target: e.Caused.NewPages[0].Target}); err != nil {
			t.Error(exit(err))
		}
	}
}

// TestDialogAnswersWait answers a dialog that came late. What follows it is in that answer, however soon it comes.
func TestDialogAnswersWait(t *testing.T) {
	c := startChrome(t)
	for _, after := range []string{"change()", "Promise.resolve().then(change)", "setTimeout(change)",
		"setTimeout(change, 2)", "setTimeout(change, 4)", "setTimeout(change, 6)", "setTimeout(change, 10)",
		"setTimeout(change, 60)"} {
		url := strangeSite(t, map[string]string{"/page": `<button onclick="setTimeout(() => { confirm('x'); ` + after +
			` }, 300)">Later</button><script>change = () => document.body.append('After')</script>`})
		if _, err := run(t, c, Open, OpenParams{URL: url + "/page"}); err != nil {
			t.Fatal(exit(err))
		}
		if _, err := run(t, c, Click, ClickParams{Element: "Later"}); err != nil {
			t.Fatal(exit(err))
		}
		waitUntil(t, "a dialog", func() bool {
			_, err := run(t, c, AnswerDialog, DialogParams{})
			return err == nil
		})
		r, err := run(t, c, AnswerDialog, DialogParams{Action: "accept"})
		if err != nil || strings.Contains(r.Note, "no change") {
			t.Errorf("%s: %s, %s", after, effects(r), exit(err))
		}
	}
}

// TestOpenAfterCrash opens a page right after the one before it has crashed.
func TestOpenAfterCrash(t *testing.T) {
	c := startChrome(t)
	url := strangeSite(t, nil)
	for range 3 {
		_, _ = c.invoke(t.Context(), "Page.crash", `{}`)
		if r, err := run(t, c, Open, OpenParams{URL: url + "/page"}); err != nil || r.URL != url+"/page" {
			t.Fatalf("%s, %s", effects(r), exit(err))
		}
	}
}

// TestOpenErrorStatus opens what a server answers with an error and nothing to show, in the page of the session and in
// a new one. The error has the status, not only Chrome's reason.
func TestOpenErrorStatus(t *testing.T) {
	c := startChrome(t)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var status int
		_, _ = fmt.Sscanf(r.URL.Path, "/%d", &status)
		if r.URL.RawQuery != "" {
			w.Header().Set("WWW-Authenticate", `Basic realm="a"`)
		}
		w.WriteHeader(status)
	}))
	defer s.Close()
	for _, test := range []struct{ path, want string }{
		{"401", "login_required: "}, {"401?asks", "login_required: "}, {"404", "failed: "}, {"503", "failed: "},
	} {
		for _, fresh := range []bool{false, true} {
			_, err := run(t, c, Open, OpenParams{URL: s.URL + "/" + test.path, New: fresh})
			if got := exit(err); !strings.HasPrefix(got, test.want) || !strings.Contains(got, "HTTP "+test.path[:3]) {
				t.Errorf("%s, new %v: %s", test.path, fresh, got)
			}
		}
	}
}
