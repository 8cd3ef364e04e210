package page_test

import (
	"fmt"
	"html"
	"regexp"
	"strings"
	"testing"
	"time"
)

// TestRewrittenDocuments clicks what document.write has put into a document: of the page, of a frame, at once and by
// the click before. Each click is counted once, and told as received.
func TestRewrittenDocuments(t *testing.T) {
	c := startChrome(t)
	url := site(t, c)
	const counter = `<button onclick=top.n++>Pay</button>`
	write := func(to string) string {
		return to + `.open(); ` + to + `.write("<title>W</title>` + counter + `"); ` + to + `.close()`
	}
	for name, body := range map[string]string{
		"a frame":                   `<iframe id=f></iframe><script>` + write("f.contentDocument") + `</script>`,
		"a frame, after load":       `<iframe id=f></iframe><script>onload = () => {` + write("f.contentDocument") + `}</script>`,
		"a frame of an address":     `<iframe src="javascript:'` + counter + `'"></iframe>`,
		"the page, by a click":      `<button onclick='` + write("document") + `'>Go</button>`,
		"a frame, again by a click": `<iframe id=f srcdoc="x"></iframe><button onclick='` + write("f.contentDocument") + `'>Go</button>`,
	} {
		c.show(t, url+"/", "<script>var n = 0</script>"+body)
		if strings.Contains(body, "Go<") {
			if _, err := run(t, c, Click, ClickParams{Element: "Go"}); err != nil {
				t.Fatalf("%s: %s", name, exit(err))
			}
		}
		for i := range 2 {
			e, err := run(t, c, Click, ClickParams{Element: "Pay"})
			if n := c.evaluate(t, "n"); err != nil || n != fmt.Sprint(i+1) || strings.Contains(e.Note, "press") {
				t.Errorf("%s: click %d is %s, %s, and %s were counted", name, i+1, exit(err), effects(e), n)
			}
		}
	}
}

// TestSandboxedFrames acts in frames whose scripts do not run, of the page's process and of others. No call waits for a
// timer of theirs.
func TestSandboxedFrames(t *testing.T) {
	c := startChrome(t)
	url := site(t, c)
	inner := html.EscapeString(`<details><summary>More</summary>Text</details><button>B</button><input aria-label=In>
		<select aria-label=Of><option>x<option>y</select><input type=checkbox aria-label=Box>`)
	for _, frame := range []string{`sandbox srcdoc="` + inner + `"`, `sandbox=allow-same-origin srcdoc="` + inner + `"`,
		`sandbox src="/echo?` + strings.NewReplacer("\n", "", "\t", "").Replace(inner) + `"`} {
		c.show(t, url+"/", "<p>top</p><iframe width=400 height=200 "+frame+"></iframe>")
		all := []error{}
		c.deadline = 8 * time.Second
		note := func(_ any, err error) {
			all = append(all, err)
			c.deadline = 8 * time.Second // of the next one
		}
		note(run(t, c, Click, ClickParams{Element: "B"}))
		note(run(t, c, Hover, ElementParams{Element: "B"}))
		note(run(t, c, Fill, FillParams{Element: "In", Value: "abc"}))
		note(run(t, c, Check, CheckParams{Element: "Box"}))
		note(run(t, c, Press, PressParams{Element: "In", Key: "x", Count: 1}))
		note(run(t, c, Click, ClickParams{Element: "More"}))
		c.deadline = 0
		for i, err := range all {
			if err != nil {
				t.Errorf("%s: act %d: %s", frame[:20], i+1, exit(err))
			}
		}
		s, err := run(t, c, Snapshot, SnapshotParams{MaxTokens: 1500})
		if err != nil || !strings.Contains(s.Text, "[checked]") || !strings.Contains(s.Text, `"Text"`) {
			t.Errorf("%s: %s\n%s", frame[:20], exit(err), s.Text)
		}
	}
}

// TestHiddenNames acts by the names of hidden elements. No element around one takes its place.
func TestHiddenNames(t *testing.T) {
	c := startChrome(t)
	url := site(t, c)
	for _, hidden := range []string{`style="visibility:hidden"`, `style="display:none"`} {
		for name, body := range map[string]string{
			"the only one in a box": `<h1>T</h1><div><button %s>Save</button></div>`,
			"the only one":          `<button %s>Save</button>`,
			"among others":          `<h1>T</h1><nav %s><a href="/next">Account</a> <a href="/next">Save</a></nav><p>hello`,
			"a text":                `<p>t<span><span %s>Save</span></span>`,
			"a list":                `<div><ul %s onclick="did++"><li>Save</ul></div>`,
			"in a button":           `<button><span %s>Save</span></button>`,
			"in a clickable box":    `<div onclick="did++"><span %s>Save</span></div>`,
			"a label":               `<label><span %s>Save</span><input type=checkbox></label>`,
			"beside a text":         `<div onclick="did++">Pay<span><span %s>Save</span></span></div>`,
		} {
			c.show(t, url+"/", `<script>var did = 0; addEventListener("click", () => did++, true)</script>`+fmt.Sprintf(body, hidden))
			for _, word := range []string{"Save", "text=Save", `css=*:has-text("Save")`, `button "Save"`} {
				if r, err := run(t, c, Find, FindParams{Element: word, Limit: 3}); err == nil {
					t.Errorf("%s, %s, %s: %+v", name, hidden, word, r)
				}
			}
			c.deadline = 400 * time.Millisecond
			e, err := run(t, c, Click, ClickParams{Element: "Save"})
			if err == nil || c.evaluate(t, "did") != "0" {
				t.Errorf("%s, %s: %s, %s", name, hidden, effects(e), exit(err))
			}
		}
	}
}

// TestSameNameInDocuments acts and reads by a name that several documents have: it is ambiguous for each verb, and
// nothing is done. One that fits better, or that is shown, is meant as in one document.
func TestSameNameInDocuments(t *testing.T) {
	c := startChrome(t)
	url := site(t, c)
	field := `<input aria-label=Name value=1 oninput="top.did++" onclick="top.did++">`
	frame := func(of, more string) string {
		return `<iframe width=200 height=80 ` + more + ` src="` + of + `/echo?` + html.EscapeString(field) + `"></iframe>`
	}
	other := strings.Replace(url, "127.0.0.1", "localhost", 1)
	for name, test := range map[string]struct {
		body string
		one  bool
	}{
		"the page and a frame":          {field + frame(url, ""), false},
		"two frames":                    {frame(url, "") + frame(url, ""), false},
		"frames of two origins":         {frame(url, "") + frame(other, ""), false},
		"the page and one of another":   {field + frame(other, ""), false},
		"the page and a hidden frame":   {field + frame(url, "style=display:none"), true},
		"a text of the page":            {"<p>Name</p>" + frame(url, ""), true},
		"a longer name in the page":     {`<button>Name of all</button>` + frame(other, ""), true},
		"the page and a frame of 0 x 0": {field + frame(url, `style="width:0;height:0"`), true},
	} {
		c.show(t, url+"/", "<script>var did = 0</script>"+test.body)
		all := map[string]error{}
		_, all["click"] = run(t, c, Click, ClickParams{Element: "Name"})
		_, all["fill"] = run(t, c, Fill, FillParams{Element: "Name", Value: "x"})
		_, all["get"] = run(t, c, Get, GetParams{Element: "Name", What: "value"})
		_, all["hover"] = run(t, c, Hover, ElementParams{Element: "Name"})
		_, all["press"] = run(t, c, Press, PressParams{Element: "Name", Key: "a", Count: 1})
		_, all["snapshot"] = run(t, c, Snapshot, SnapshotParams{Focus: "Name", MaxTokens: 500})
		_, all["text"] = run(t, c, Text, TextParams{Element: "Name", MaxTokens: 500})
		for verb, err := range all {
			many := strings.HasPrefix(exit(err), `ambiguous: "Name" matches 2 elements`)
			if test.one != (err == nil) || err != nil && !many {
				t.Errorf("%s: %s: %s", name, verb, exit(err))
			}
		}
		if did := c.evaluate(t, "did"); !test.one && did != "0" {
			t.Errorf("%s: the page got %s", name, did)
		}
	}
}

// TestFramesInTime looks right after a page was opened for what frames in frames of other processes have, and for what
// frames have that never come. It is found, or the answer says how many frames were not searched.
func TestFramesInTime(t *testing.T) {
	c := startChrome(t)
	url := site(t, c)
	other := strings.Replace(url, "127.0.0.1", "localhost", 1)
	inner := `<p>mid<iframe src="` + other +
		`/echo?<iframe src='data:text/html,<button>Deep</button>'></iframe>"></iframe>`
	for range 5 {
		c.show(t, url+"/", `<iframe sandbox=allow-scripts srcdoc="`+html.EscapeString(inner)+`"></iframe>`)
		s, err := run(t, c, Snapshot, SnapshotParams{MaxTokens: 500})
		if err != nil || !strings.Contains(s.Text, "Deep") && !strings.Contains(s.LeftOut, "frames, ") {
			t.Errorf("right after open: %s, %+v", exit(err), s)
		}
		r, err := run(t, c, Find, FindParams{Element: "Deep", Limit: 3})
		if r.Total != 1 && !strings.Contains(exit(err), "frames that were not searched: 1") {
			t.Errorf("right after open: %s, %+v", exit(err), r)
		}
		if _, err := run(t, c, Wait, WaitParams{Element: "Deep", Timeout: 20_000}); err != nil {
			t.Errorf("later: %s", exit(err))
		}
	}
	c.show(t, url+"/", `<button>Here</button>`+strings.Repeat(`<iframe srcdoc="<p>x"></iframe>`, 70))
	_, find := run(t, c, Find, FindParams{Element: "Nowhere", Limit: 3})
	_, get := run(t, c, Get, GetParams{Element: "Nowhere", What: "text"})
	_, click := run(t, c.hurried(), Click, ClickParams{Element: "Nowhere"})
	for verb, err := range map[string]error{"find": find, "get": get, "click": click} {
		// 60 of the 70 are searched, or fewer where one does not answer in time.
		if !regexp.MustCompile(`frames that were not searched: [1-7][0-9]`).MatchString(exit(err)) {
			t.Errorf("%s: %s", verb, exit(err))
		}
	}
}

// TestFarFrames clicks in frames in frames, each of which has to be scrolled to. The first click arrives.
func TestFarFrames(t *testing.T) {
	c := startChrome(t)
	url := site(t, c)
	for _, style := range []string{"", "margin-top:300px", "margin-top:300px;transform:rotate(180deg)",
		"margin-left:900px"} {
		text := `<button onclick="top.n++">Inner</button>`
		for range 4 {
			text = `<p>para</p><iframe width=260 height=150 style="` + style + `" srcdoc="` + html.EscapeString(text) +
				`"></iframe>`
		}
		c.show(t, url+"/", "<script>var n = 0</script>"+text)
		if e, err := run(t, c, Click, ClickParams{Element: "Inner"}); err != nil || c.evaluate(t, "n") != "1" {
			t.Errorf("%s: %s, %s, %s clicks", style, effects(e), exit(err), c.evaluate(t, "n"))
		}
	}
}

// TestClosedRoots reads what plain elements have in closed shadow roots, before and after an act has touched it.
func TestClosedRoots(t *testing.T) {
	c := startChrome(t)
	url := site(t, c)
	c.show(t, url+"/", `<h1>Shop</h1><div id=h></div><script>h.attachShadow({mode: "closed"}).innerHTML = "<p>Cookies!</p>`+
		`<section id=i></section>"; </script>`)
	for range 2 {
		s, err := run(t, c, Snapshot, SnapshotParams{MaxTokens: 500})
		r, failed := run(t, c, Text, TextParams{MaxTokens: 500})
		if err != nil || failed != nil || !strings.Contains(s.Text, "Cookies!") || !strings.Contains(r.Text, "Cookies!") {
			t.Errorf("%s\n%s\n%s, %s", s.Text, r.Text, exit(err), exit(failed))
		}
	}
}

// TestPressWithoutClick presses what goes away, or changes, before the click. The answer says so.
func TestPressWithoutClick(t *testing.T) {
	c := startChrome(t)
	url := site(t, c)
	for html, want := range map[string]string{
		`<div><button onpointerdown="this.parentNode.innerHTML = this.outerHTML" onclick="did++">Go</button></div>`: "it went away",
		`<button onmousedown="this.remove()" onclick="did++">Go</button>`:                                           "it went away",
		`<button onpointerdown="this.disabled = true" onclick="did++">Go</button>`:                                  "it was disabled",
		`<button onpointerdown="this.style.marginTop = '200px'" onclick="did++">Go</button>`:                        "it moved",
		`<button onclick="did++">Go</button>`:                                                                       "",
	} {
		c.show(t, url+"/", "<script>var did = 0</script>"+html)
		e, err := run(t, c, Click, ClickParams{Element: "Go"})
		clicked := c.evaluate(t, "did") != "0"
		if err != nil || clicked != (want == "") || !clicked && !strings.Contains(e.Note, want+" while it was pressed") {
			t.Errorf("%s: %s, %s", html, effects(e), exit(err))
		}
	}
}

// TestOutOfReach clicks what the pointer does not reach though nothing covers it. The reason is not what is around it.
func TestOutOfReach(t *testing.T) {
	c := startChrome(t)
	url := site(t, c)
	const frame = `srcdoc="<button>Go</button>"></iframe>`
	for html, want := range map[string]string{
		`<button style="pointer-events:none">Go</button>`:                                                          "the pointer goes through it",
		`<div style="height:20px;overflow:hidden"><p>Text<p>More<p><button>Go</button></div>`:                      "it is clipped by generic",
		`<div style="height:0;overflow:hidden"><button>Go</button></div><h1>Next</h1>`:                             "it is clipped by generic",
		`<iframe style="visibility:hidden" ` + frame:                                                               "its frame is not visible",
		`<iframe style="pointer-events:none" ` + frame:                                                             "the pointer goes through its frame",
		`<div style="position:relative"><button>Go</button><span style="position:absolute;inset:0">x</span></div>`: "it is covered by generic",
	} {
		c.show(t, url+"/", html)
		_, err := run(t, c.hurried(), Click, ClickParams{Element: "Go"})
		if !strings.Contains(exit(err), want) {
			t.Errorf("%s: %s", html, exit(err))
		}
	}
}

// TestAnswersInTime asks pages that do not answer. The answer comes when the caller's time is up, whatever that is.
func TestAnswersInTime(t *testing.T) {
	c := startChrome(t)
	url := site(t, c)
	for _, limit := range []time.Duration{time.Second, 2 * time.Second, 4 * time.Second} {
		c.show(t, url+"/", `<button>Go</button>`)
		c.evaluate(t, `setTimeout(() => { for (const end = Date.now() + 60000; Date.now() < end;); }, 50), 1`)
		time.Sleep(200 * time.Millisecond)
		began := time.Now()
		c.deadline = limit
		_, err := run(t, c, Click, ClickParams{Element: "Go"})
		if took := time.Since(began); err == nil || took > 10*limit {
			t.Errorf("%s of %s: %s", took, limit, exit(err))
		}
	}
}
