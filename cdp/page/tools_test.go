package page_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html"
	"image"
	"image/png"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"
)

func effects(e any) string {
	raw, _ := json.Marshal(e)
	return string(raw)
}

// site serves what actions cause: slow and failing responses, downloads, a new document.
func site(t *testing.T, c *chrome) string {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		switch r.URL.Path {
		case "/slow":
			time.Sleep(300 * time.Millisecond)
			_, _ = io.WriteString(w, "done")
		case "/broken":
			http.Error(w, "no", http.StatusInternalServerError)
		case "/file":
			w.Header().Set("Content-Disposition", `attachment; filename="report.csv"`)
			_, _ = io.WriteString(w, "a,b")
		case "/echo":
			text, _ := url.QueryUnescape(r.URL.RawQuery)
			_, _ = io.WriteString(w, text)
		case "/next":
			_, _ = io.WriteString(w, "<title>Next</title><h1>Next page</h1>")
		case "/inner":
			_, _ = io.WriteString(w, `<meta charset=utf-8><button onclick="this.textContent='Done'">Inside</button><input aria-label=Deep>`)
		default:
			_, _ = io.WriteString(w, *c.given.Load())
		}
	}))
	t.Cleanup(s.Close)
	return s.URL
}

func (c *chrome) show(t *testing.T, url, html string) {
	t.Helper()
	c.given.Store(&html)
	if _, err := run(t, c, Open, OpenParams{URL: url}); err != nil {
		t.Fatal(err)
	}
}

// TestEffects checks what clicks say that they caused.
func TestEffects(t *testing.T) {
	c := startChrome(t)
	url := site(t, c)
	const page = `<title>Start</title><button onclick="">Nothing</button><button onclick="out.textContent='x'">Change</button>
		<button onclick="fetch('/slow').then(() => out.textContent='late')">Slow</button>
		<button onclick="fetch('/broken')">Broken</button><button onclick="setTimeout(() => { throw new Error('oops') })">Throw</button>
		<button onclick="console.error('bad', 7)">Log</button><button onclick="alert('Hello')">Alert</button>
		<a href="/file">File</a><a href="/next">Next</a><a href="/next" target=_blank>Tab</a>
		<button onclick="history.pushState({}, '', '#there')">Push</button>
		<p id=out></p>`
	c.show(t, url+"/", page)
	for _, test := range []struct {
		name string
		want []string // parts of the effects
	}{
		{"Nothing", []string{`"on":"button \"Nothing\" `, `"note":"no change seen in 150 ms; what comes later is in the next answer"}`}},
		{"Change", []string{`"on":"button \"Change\"`}},
		{"Slow", []string{`"on":"button \"Slow\"`}},
		{"Broken", []string{`"failed":["500 GET ` + url + `/broken"]`}},
		{"Throw", []string{`"errors":["\"Uncaught Error: oops\""]`}},
		{"Log", []string{`"errors":["\"bad 7\""]`}},
		{"Push", []string{`#there","title":"Start"}`}},
		{"Tab", []string{`"new_pages":[{"target":"`, `/next"}]`}},
		{"File", []string{`"downloads":["\"report.csv\"`}},
	} {
		before := time.Now()
		e, err := run(t, c, Click, ClickParams{Element: test.name})
		if err != nil {
			t.Fatalf("%s: %s", test.name, exit(err))
		}
		t.Logf("%s: %s, %s", test.name, effects(e), time.Since(before).Round(time.Millisecond))
		for _, part := range test.want {
			if !strings.Contains(effects(e), part) {
				t.Errorf("%s: %s lacks %s", test.name, effects(e), part)
			}
		}
		if test.name == "Slow" && c.evaluate(t, "out.textContent") != `"late"` {
			t.Error("a click ended before the response that it caused was there")
		}
		if e.Before != nil {
			t.Errorf("%s: all of the act before was told: %s", test.name, effects(e))
		}
		if test.name == "Change" && e.Note != "" {
			t.Errorf("a change: %s", effects(e))
		}
		if e.Caused != nil && len(e.Caused.NewPages) > 0 {
			_, _ = c.invoke(t.Context(), "Target.closeTarget", `{"targetId":"`+e.Caused.NewPages[0].Target+`"}`)
			c.show(t, url+"/", page)
		}
	}
	c.show(t, url+"/", page)
	e, err := run(t, c, Click, ClickParams{Element: "Alert"})
	if err != nil || e.Caused == nil || e.Caused.Dialog == nil || e.Caused.Dialog.Message != "Hello" ||
		e.Caused.Dialog.Type != "alert" {
		t.Fatalf("a dialog: %s, %v", effects(e), err)
	}
	if _, err := c.invoke(t.Context(), "Page.handleJavaScriptDialog", `{"accept":true}`); err != nil {
		t.Fatal(err)
	}
	e, err = run(t, c, Click, ClickParams{Element: "Next"})
	if err != nil || e.URL != url+"/next" || e.Title != "Next" || e.Status != 200 {
		t.Errorf("a new document: %s, %v", effects(e), err)
	}
	back, err := run(t, c, Go, GoParams{To: "back"})
	if err != nil || back.URL != url+"/" || back.Title != "Start" || back.Status != 200 { // from the cache, too
		t.Errorf("back: %+v, %v", back, err)
	}
	if _, err := run(t, c, Go, GoParams{To: "forward"}); err != nil {
		t.Error(err)
	}
	if r, err := run(t, c, Go, GoParams{To: "reload"}); err != nil || r.Title != "Next" {
		t.Errorf("reload: %+v, %v", r, err)
	}
	if _, err := run(t, c, Go, GoParams{To: "forward"}); !strings.HasPrefix(exit(err), "no_match") {
		t.Errorf("beyond the history: %v", err)
	}
}

// TestFrames checks that tools work in frames of the same and of another origin.
func TestFrames(t *testing.T) {
	c := startChrome(t)
	url := site(t, c)
	far := strings.Replace(url, "127.0.0.1", "localhost", 1)
	for _, other := range []string{url, far} {
		c.show(t, url+"/", `<h1>Outer</h1><div style="height:2000px"></div><div style="padding:30px"><iframe title=Frame
			style="border:5px solid;padding:7px" src="`+other+`/inner"></iframe></div>`)
		s, err := run(t, c, Snapshot, SnapshotParams{MaxTokens: 1500})
		if err != nil || !strings.Contains(s.Text, "\n  button \"Inside\" ") {
			t.Fatalf("%s: %s, %v", other, s.Text, err)
		}
		if r, err := run(t, c, Go, GoParams{To: "reload"}); err != nil || r.Caused != nil {
			t.Errorf("%s: %s, %s", other, effects(r), exit(err)) // nothing of the frame is under way
		}
		e, err := run(t, c, Click, ClickParams{Element: "Inside"})
		if err != nil || !strings.HasPrefix(e.Note, `it is now button "Done" `) {
			t.Fatalf("%s: %s, %s", other, effects(e), exit(err))
		}
		if _, err := run(t, c, Expect, ExpectParams{Element: `button "Done"`, Timeout: 3000}); err != nil {
			t.Errorf("%s: %s", other, exit(err))
		}
		if _, err := run(t, c, Fill, FillParams{Element: "Deep", Value: "text"}); err != nil {
			t.Errorf("%s: %s", other, exit(err))
		}
		if r, err := run(t, c, Get, GetParams{Element: "Deep", What: "value"}); err != nil || string(r.Value) != `"text"` {
			t.Errorf("%s: %s, %v", other, r.Value, err)
		}
	}
}

// TestClickAtPoint clicks points of an element and of the view.
func TestClickAtPoint(t *testing.T) {
	c := startChrome(t)
	c.show(t, site(t, c)+"/", `<div style="height:3000px"></div><canvas width=300 height=200 style="border:3px solid"
		onclick="out.textContent = [event.offsetX, event.offsetY]"></canvas><p id=out></p>`)
	click := func(p ClickParams) {
		t.Helper()
		if _, err := run(t, c, Click, p); err != nil || c.evaluate(t, "out.textContent") != `"117,77"` {
			t.Errorf("%+v: %s, %s", p, c.evaluate(t, "out.textContent"), exit(err))
		}
		c.evaluate(t, "out.textContent = ''")
	}
	click(ClickParams{Element: "css=canvas", At: []float64{120, 80}})
	box, err := run(t, c, Get, GetParams{Element: "css=canvas", What: "box"})
	var at struct{ X, Y float64 }
	if err != nil || json.Unmarshal(box.Value, &at) != nil {
		t.Fatalf("%s, %v", box.Value, err)
	}
	click(ClickParams{At: []float64{at.X + 120, at.Y + 80}})
	_, err = run(t, c.hurried(), Click, ClickParams{Element: "css=canvas", At: []float64{306, 80}})
	if !strings.Contains(exit(err), "it has 306 x 206 pixels, and the point is outside") {
		t.Error(exit(err))
	}
}

// TestEvaluate checks that promises are awaited, whether the program has an await or not, and what a program can be.
func TestEvaluate(t *testing.T) {
	c := startChrome(t)
	c.show(t, site(t, c)+"/", `<title>T</title><p id=out>x</p>`)
	for _, p := range []struct{ expression, element, want string }{
		{"1 + 1", "", "2"}, {"document.title", "", `"T"`}, {"undefined", "", "null"}, {"-0", "", `"-0"`},
		{"({a: [1, {b: null}]})", "", `{"a":[1,{"b":null}]}`},
		{"Promise.resolve(3)", "", "3"}, {"await Promise.resolve(4)", "", "4"}, {"await 5;", "", "5"},
		{"(async () => { await null; return 6 })()", "", "6"}, {"(async () => { await null; return 7 })();\n", "", "7"},
		{"const a = await Promise.resolve(8); a", "", "8"}, {"let b = 9; await null\nb", "", "9"},
		{"[await 1, await Promise.resolve(2)] // both", "", "[1,2]"},
		{"() => document.title", "", `"T"`}, {" async () => { await null; return 10 };", "", "10"}, {"x => 11 // y", "", "11"},
		{"function () { return 12 }", "", "12"}, {"function f() { return 13 }\nf()", "", "13"},
		{"() => 1; 14", "", "14"}, {"[1].map((x) => x + 14)[0]", "", "15"}, {"Math.abs", "", "null"},
		{"(el) => el.textContent", "css=#out", `"x"`}, {"async (el) => { await null; return el.id }", "css=#out", `"out"`},
	} {
		r, err := run(t, c, Evaluate, EvaluateParams{Expression: p.expression, Element: p.element})
		if err != nil || string(r.Value) != p.want {
			t.Errorf("%s: %s, %s, expected %s", p.expression, r.Value, exit(err), p.want)
		}
	}
	c.evaluate(t, "globalThis.times = 0")
	for expression, want := range map[string]string{
		"times++; JSON.parse('{'); await 1":                        "SyntaxError",
		"await (async () => { times++; throw new Error('no') })()": "Error: no",
		"await )": "SyntaxError", "times++, Promise.reject(new Error('late'))": "Error: late",
	} {
		if _, err := run(t, c, Evaluate, EvaluateParams{Expression: expression}); !strings.Contains(exit(err), want) ||
			!strings.HasPrefix(exit(err), "script_error") {
			t.Errorf("%s: %s, expected %s", expression, exit(err), want)
		}
	}
	if times := c.evaluate(t, "times"); times != "3" {
		t.Errorf("three programs ran %s times", times)
	}
	_, err := run(t, c, Evaluate, EvaluateParams{Expression: "location.href = '/next'; new Promise(() => {})"})
	if !strings.HasPrefix(exit(err), "busy: the page went to") {
		t.Errorf("a program that leaves the page: %s", exit(err))
	}
}

// TestForms checks the tools for fields, and what they say about those that do not take what is given.
func TestForms(t *testing.T) {
	c := startChrome(t)
	url := site(t, c)
	c.show(t, url+"/", `<title>Form</title><form action="/next"><label>User <input id=user value=old></label>
		<label>Upper <input id=upper oninput="this.value = this.value.toUpperCase()"></label><label>Day <input type=date id=day></label>
		<label>Pass <input type=password id=pass></label><label>Fixed <input readonly value=x></label><div id=edit contenteditable aria-label=Note role=textbox>old</div>
		<label>Fruit <select id=fruit><option value=a>Apple<option value=b>Berry</select></label><label><input type=checkbox id=box> Box</label><label><input type=radio onclick="event.preventDefault(); document.body.append('Range')">Opens</label>
		<input id=keys aria-label=Keys onkeydown="this.title += event.key"><button type=button disabled>Off</button><button>Send</button></form>`)
	fill := func(field, value string) *FillResult {
		t.Helper()
		e, err := run(t, c, Fill, FillParams{Element: field, Value: value})
		if err != nil {
			t.Fatalf("%s: %s", field, exit(err))
		}
		return e
	}
	if e := fill("User", "Ada Lovelace"); e.Note != "" || e.Value != "" {
		t.Error(effects(e))
	}
	if e := fill("Upper", "abc"); e.Value != "ABC" {
		t.Error(effects(e))
	}
	if e := fill("Day", "2026-01-31"); !strings.Contains(e.Note, "by value") {
		t.Error(effects(e))
	}
	fill("Pass", "secret")
	fill("Note", "new")
	fill("Fruit", "Berry")
	fill("User", "")
	if got := c.evaluate(t, `[user, upper, day, pass, fruit].map(e => e.value).join() + edit.textContent`); got != `",ABC,2026-01-31,secret,bnew"` {
		t.Error(got)
	}
	if _, err := run(t, c, Select, SelectParams{Element: "Fruit", Options: []string{"Apple"}}); err != nil {
		t.Error(exit(err))
	}
	if _, err := run(t, c, Select, SelectParams{Element: "Fruit",
		Options: []string{"Cherry"}}); !strings.HasPrefix(exit(err), "no_match") {
		t.Error(exit(err))
	}
	for _, off := range []bool{false, false, true} {
		if _, err := run(t, c, Check, CheckParams{Element: "Box", Off: off}); err != nil || c.evaluate(t,
			"box.checked") != fmt.Sprint(!off) {
			t.Errorf("off %t: %v", off, err)
		}
	}
	if _, err := run(t, c, Check, CheckParams{Element: "User"}); !strings.Contains(exit(err), "page.fill fills") {
		t.Error(exit(err))
	}
	if _, err := run(t, c, Check, CheckParams{Element: "Opens"}); !strings.Contains(exit(err), "page.click is enough") {
		t.Error(exit(err))
	}
	c.evaluate(t, "onkeydown = (e) => { document.title = e.code + e.keyCode }")
	for key, code := range map[string]string{"Control+/": "Slash191", "Meta+,": "Comma188", "'": "Quote222",
		"Alt+`": "Backquote192", "[": "BracketLeft219"} {
		if _, err := run(t, c, Press, PressParams{Key: key, Count: 1}); err != nil || c.evaluate(t, "document.title") != `"`+code+`"` {
			t.Errorf("%s: %s, %s", key, exit(err), c.evaluate(t, "document.title"))
		}
	}
	if _, err := run(t, c, Type, TypeParams{Text: "aB1", Element: "Keys"}); err != nil || c.evaluate(t, "keys.value + keys.title") != `"aB1aB1"` {
		t.Errorf("%v, %s", err, c.evaluate(t, "keys.value + keys.title"))
	}
	if _, err := run(t, c, Press, PressParams{Key: "Control+a", Count: 1}); err != nil || c.evaluate(t, "keys.selectionStart + '-' + keys.selectionEnd") != `"0-3"` {
		t.Errorf("%v", err)
	}
	for field, want := range map[string]string{"Fixed": "not_ready: textbox \"Fixed\"", "None": "no_match: "} {
		if _, err := run(t, c.hurried(), Fill, FillParams{Element: field, Value: "y"}); !strings.HasPrefix(exit(err), want) {
			t.Errorf("%s: %s", field, exit(err))
		}
	}
	if _, err := run(t, c.hurried(), Click, ClickParams{Element: "Off"}); !strings.Contains(exit(err), "it is disabled") {
		t.Error(exit(err))
	}
	if e, err := run(t, c, Fill, FillParams{Element: "User", Value: "x", Submit: true}); err != nil || e.Title != "Next" {
		t.Errorf("%s, %v", effects(e), err)
	}
}

// TestWaitAndExpect checks conditions, and what is said where they are not met.
func TestWaitAndExpect(t *testing.T) {
	c := startChrome(t)
	url := site(t, c)
	c.show(t, url+"/", `<title>Wait</title><h1>Orders</h1><ul><li>One<li>Two</ul><button id=b disabled>Buy</button><script>var ready = false;
		setTimeout(() => { ready = true; b.disabled = false; fetch("/slow").then(() => document.body.append("Loaded")) }, 200)</script>`)
	for _, p := range []WaitParams{{Text: "loaded"}, {Element: "Buy"}, {URL: "127.0.0.1"}, {Request: "/slow"},
		{Expression: "ready"},
		{Idle: true}, {Text: "Nowhere", Gone: true}} {
		p.Timeout = 20_000
		if _, err := run(t, c, Wait, p); err != nil {
			t.Errorf("%+v: %s", p, exit(err))
		}
	}
	for text, line := range map[string]string{"ord": "Orders", "orders": "", "two": ""} {
		if r, err := run(t, c, Wait, WaitParams{Text: text, Timeout: 20_000}); err != nil || r.Line != line {
			t.Errorf("%s: line %q, %s", text, r.Line, exit(err))
		}
	}
	if _, err := run(t, c, Wait, WaitParams{Text: "orders empty", Timeout: 100}); !strings.Contains(exit(err), `it shows "Orders"`) {
		t.Error(exit(err))
	}
	if _, err := run(t, c, Wait, WaitParams{Expression: "document.title = 'x'",
		Timeout: 100}); !strings.HasPrefix(exit(err), "script_error") {
		t.Error(exit(err))
	}
	two, three, value := 2, 3, "x"
	for _, test := range []struct {
		p    ExpectParams
		want string
	}{
		{ExpectParams{Text: "orders"}, ""}, {ExpectParams{Element: "css=li", Count: &two}, ""},
		{ExpectParams{Element: "Buy", State: "enabled"}, ""},
		{ExpectParams{URL: "/"}, ""}, {ExpectParams{Element: "None", State: "hidden"}, ""},
		{ExpectParams{Element: "css=li", Count: &three}, "expected 3 elements, 2 match"},
		{ExpectParams{Element: "Buy", State: "disabled"}, "expected disabled, it is []"},
		{ExpectParams{Element: "Buy", Value: &value}, `expected the value "x", it has ""`},
		{ExpectParams{URL: "/home"}, `expected an address with "/home"`},
		{ExpectParams{Element: "None"}, `nothing matches "None"`},
	} {
		if _, err := run(t, c, Expect, test.p); (err == nil) != (test.want == "") || err != nil &&
			!strings.Contains(exit(err), test.want) {
			t.Errorf("%+v: %s", test.p, exit(err))
		}
	}
	if r, err := run(t, c, Evaluate, EvaluateParams{Expression: "Promise.resolve({a: [1]})"}); err != nil || string(r.Value) != `{"a":[1]}` {
		t.Errorf("%s, %v", r.Value, err)
	}
	if r, err := run(t, c, Evaluate, EvaluateParams{Expression: "e => e.id", Element: "Buy"}); err != nil || string(r.Value) != `"b"` {
		t.Errorf("%s, %v", r.Value, err)
	}
	if _, err := run(t, c, Evaluate, EvaluateParams{Expression: "none()"}); !strings.HasPrefix(exit(err), "script_error") {
		t.Error(exit(err))
	}
	for _, p := range []ScreenshotParams{{}, {Full: true}, {Element: "Buy"}} {
		if r, err := run(t, c, Screenshot, p); err != nil || !strings.HasPrefix(r.Data, "iVBOR") {
			t.Errorf("%+v: %.10s, %v", p, r.Data, err)
		}
	}
}

// TestPartsOfFrames checks that what has changed, and controls without a name, are shown of frames, too.
func TestPartsOfFrames(t *testing.T) {
	c := startChrome(t)
	url := site(t, c)
	c.show(t, url+"/", `<title>Parts</title><button>Stay</button><iframe title=Frame
		srcdoc="<a href=x>Old</a><input>"></iframe>`)
	if s, err := run(t, c, Snapshot, SnapshotParams{MaxTokens: 1500}); err != nil || !strings.Contains(s.Text, `link "Old"`) {
		t.Fatalf("%s\n%s", exit(err), s.Text)
	}
	c.evaluate(t, `document.querySelector("iframe").contentDocument.querySelector("a").textContent = "New"`)
	s, err := run(t, c, Snapshot, SnapshotParams{MaxTokens: 1500, Since: true})
	if want := regexp.MustCompile(`^Iframe \w+\n  - link "Old" \w+\n  \+ link "New" \w+$`); err != nil ||
		!want.MatchString(s.Text) {
		t.Errorf("what has changed: %s\n%s", exit(err), s.Text)
	}
	s, err = run(t, c, Snapshot, SnapshotParams{MaxTokens: 1500, Audit: true})
	if want := regexp.MustCompile(`^Iframe \w+\n  textbox \w+ \[css=`); err != nil ||
		!want.MatchString(s.Text) {
		t.Errorf("controls without a name: %s\n%s", exit(err), s.Text)
	}
}

// TestScreenshotOfRefs checks that boxes and labels are drawn where the controls are, in the page and in frames, in the
// view and in an element, and only if they are asked for.
func TestScreenshotOfRefs(t *testing.T) {
	c := startChrome(t)
	url := site(t, c)
	c.show(t, url+"/", `<title>Refs</title><style>body { margin: 0; background: #fff } button { position: absolute;
		width: 100px; height: 40px; border: 0; background: #fff; color: #fff } iframe { position: absolute; left: 300px;
		top: 200px; width: 200px; height: 100px; border: 5px solid #fff }</style>
		<button style="left:50px;top:60px">One</button><button style="left:50px;top:2000px">Far</button>
		<div id=part style="position:absolute;left:250px;top:150px;width:300px;height:200px"><iframe title=Frame
		style="left:50px;top:50px" srcdoc="<style>body { margin: 0 } button { width: 60px; height: 30px; border: 0;
			background: #fff; color: #fff }</style><button>In</button>"></iframe></div>`)
	// colored returns whether something is drawn at a point.
	colored := func(r ScreenshotResult, x, y int) bool {
		data, err := base64.StdEncoding.DecodeString(r.Data)
		if err != nil {
			t.Fatal(err)
		}
		picture, err := png.Decode(bytes.NewReader(data))
		if err != nil {
			t.Fatal(err)
		}
		red, green, blue, _ := picture.At(x, y).RGBA()
		return red+green+blue < 3*0xf000
	}
	for _, test := range []struct {
		p           ScreenshotParams
		drawn, free []image.Point
	}{
		{ScreenshotParams{}, nil, []image.Point{{51, 80}, {306, 206}}},
		{ScreenshotParams{Refs: true},
			[]image.Point{{51, 80}, {149, 80}, {100, 61}, {100, 99}, {51, 50}, {306, 220}, {364, 220}},
			[]image.Point{{48, 80}, {152, 80}, {100, 80}, {400, 220}}},
		{ScreenshotParams{Refs: true, Full: true}, []image.Point{{51, 80}, {51, 2020}, {306, 220}},
			[]image.Point{{100, 2020}}},
		{ScreenshotParams{Refs: true, Element: "css=#part"}, []image.Point{{56, 70}}, []image.Point{{51, 80}}},
		{ScreenshotParams{Element: "In"}, nil, []image.Point{{1, 10}}},
	} {
		r, err := run(t, c, Screenshot, test.p)
		if err != nil {
			t.Fatalf("%+v: %s", test.p, exit(err))
		}
		for _, at := range test.drawn {
			if !colored(r, at.X, at.Y) {
				t.Errorf("%+v: nothing is drawn at %v", test.p, at)
			}
		}
		for _, at := range test.free {
			if colored(r, at.X, at.Y) {
				t.Errorf("%+v: something is drawn at %v", test.p, at)
			}
		}
	}
}

// TestClosedShadowRoots looks into closed shadow roots, in each other, under elements of the page's own and in frames,
// and clicks there.
func TestClosedShadowRoots(t *testing.T) {
	c := startChrome(t)
	url := site(t, c)
	const page = `<title>Closed</title><x-outer></x-outer><div id=plain style="height:40px"></div><p id=out></p><script>
		const say = (word) => top.document.getElementById("out").textContent += word + " ";
		customElements.define("x-inner", class extends HTMLElement { constructor() { super();
			const root = this.attachShadow({mode: "closed"});
			root.innerHTML = "<button>Deepest</button>"; root.firstChild.onclick = (e) => say("deepest" + e.isTrusted) } });
		customElements.define("x-outer", class extends HTMLElement { constructor() { super();
			const root = this.attachShadow({mode: "closed"});
			root.innerHTML = "<label>User <input></label><x-inner></x-inner>"; } });
		const plain = document.getElementById("plain").attachShadow({mode: "closed"});
		plain.innerHTML = "<button>Plain</button>"; plain.firstChild.onclick = () => say("plain");
		</script>`
	inner := strings.NewReplacer("Deepest", "Framed", "Plain", "Other", "User", "Inside", "<p id=out></p>", "",
		"deepest", "framed").Replace(page)
	c.show(t, url+"/", strings.Replace(page, "<script>", `<iframe title=Frame srcdoc="`+html.EscapeString(inner)+
		`"></iframe><script>`, 1))
	if _, err := run(t, c, Click, ClickParams{Element: "Framed"}); err != nil {
		t.Error(exit(err))
	}
	s, err := run(t, c, Snapshot, SnapshotParams{MaxTokens: 1500})
	if err != nil {
		t.Fatal(exit(err))
	}
	for _, want := range []string{`button "Deepest"`, `textbox "User"`, `button "Plain"`, `button "Framed"`} {
		if !strings.Contains(s.Text, want) {
			t.Errorf("the snapshot lacks %s:\n%s", want, s.Text)
		}
	}
	if r, err := run(t, c, Fill, FillParams{Element: "User", Value: "ada"}); err != nil || r.Value != "" {
		t.Errorf("%s, %s", effects(r), exit(err))
	}
	for _, name := range []string{"Deepest", "Plain"} {
		if _, err := run(t, c, Click, ClickParams{Element: name}); err != nil {
			t.Errorf("%s: %s", name, exit(err))
		}
	}
	if got := c.evaluate(t, "out.textContent"); got != `"framedtrue deepesttrue plain "` {
		t.Errorf("the page received %s", got)
	}
	c.evaluate(t, `document.body.append(Object.assign(document.createElement("button"), {textContent: "Added"}),
		document.createElement("x-inner"))`)
	if s, err = run(t, c, Snapshot, SnapshotParams{MaxTokens: 1500, Since: true}); err != nil ||
		!regexp.MustCompile(`\n\+ button "Added" \w+\n\+ button "Deepest" `).MatchString(s.Text) ||
		!strings.Contains(s.Text, `- textbox "User"`) {
		t.Errorf("what has changed: %s\n%s", exit(err), s.Text)
	}
	// In a new document the first call is an action.
	c.show(t, url+"/", page)
	if _, err := run(t, c, Click, ClickParams{Element: "Deepest"}); err != nil ||
		c.evaluate(t, "out.textContent") != `"deepesttrue "` {
		t.Errorf("%s: %s", exit(err), c.evaluate(t, "out.textContent"))
	}
	c.show(t, url+"/", page)
	if r, err := run(t, c, Find, FindParams{Element: "Plain"}); err != nil || r.Total != 1 {
		t.Errorf("%+v, %s", r, exit(err))
	}
}

// TestClicksThatMiss clicks on pages that change all the time: no click reaches what was not meant, none that is
// reported was without effect.
func TestClicksThatMiss(t *testing.T) {
	c := startChrome(t)
	url := site(t, c)
	clicks := 5
	if os.Getenv("PARLEY_HAMMER") != "" {
		clicks = 200
	}
	for name, change := range moving {
		c.show(t, url+"/", movingList+change+`</script>`)
		done := 0
		for try := 0; done < clicks && try < 10*clicks; try++ {
			if _, err := run(t, c, Click, ClickParams{Element: `button "Item 3"`}); err == nil {
				done++
			} else if !strings.HasPrefix(exit(err), "not_ready") {
				t.Fatalf("%s: %s", name, exit(err))
			}
		}
		if right, wrong := c.evaluate(t, "right"), c.evaluate(t, "wrong"); wrong != "0" || right != fmt.Sprint(done) ||
			done < clicks {
			t.Errorf("%s: %d clicks were reported, %s right and %s wrong", name, done, right, wrong)
		}
	}
}
