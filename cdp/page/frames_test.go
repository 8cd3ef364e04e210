package page_test

import (
	"fmt"
	"html"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"
	"time"
)

// mix is a document with a button and frames in frames.
type mix struct {
	name   string
	origin string // "" for that of the document around it
	root   bool   // the frame is in a shadow root
	inner  []mix
}

func randomMix(random *rand.Rand, name string, depth int, origins []string) mix {
	m := mix{name: name, origin: origins[random.IntN(len(origins))], root: random.IntN(5) == 0}
	for i := range random.IntN(4) * min(depth, 1) {
		m.inner = append(m.inner, randomMix(random, fmt.Sprintf("%s%d", name, i), depth-1, origins))
	}
	return m
}

// count returns how many documents there are.
func (m mix) count() int {
	n := 1
	for _, f := range m.inner {
		n += f.count()
	}
	return n
}

// html writes the document. Each one comes from its origin by /echo.
func (m mix) html(own string) string {
	text := "<!doctype html><title>" + m.name + "</title><button>Leaf " + m.name + "</button>"
	for _, f := range m.inner {
		origin := f.origin
		if origin == "" {
			origin = own
		}
		frame := fmt.Sprintf(`<iframe title="F %s" src="%s/echo?%s"></iframe>`, f.name, origin,
			html.EscapeString(strings.ReplaceAll(strings.ReplaceAll(f.html(origin), "%", "%25"), "#", "%23")))
		if f.root {
			frame = `<div><template shadowrootmode=open>` + frame + `</template></div>`
		}
		text += frame
	}
	return text
}

// outline returns the lines of a snapshot that the document must have.
func (m mix) outline(indent string) (lines []string) {
	lines = append(lines, indent+fmt.Sprintf(`button "Leaf %s"`, m.name))
	for _, f := range m.inner {
		lines = append(lines, indent+fmt.Sprintf(`Iframe "F %s"`, f.name))
		lines = append(lines, f.outline(indent+"  ")...)
	}
	return lines
}

// TestMixesOfFrames checks that a snapshot has the document of each frame below its line, and that a search finds what
// is in any of them, in random trees of frames of several origins, in shadow roots, too.
func TestMixesOfFrames(t *testing.T) {
	c := startChrome(t)
	url := site(t, c)
	origins := []string{"", url, strings.Replace(url, "127.0.0.1", "localhost", 1),
		strings.Replace(url, "127.0.0.1", "a.localhost", 1)}
	rounds := 3
	for seed := range rounds {
		random := rand.New(rand.NewPCG(uint64(seed), 33))
		top := mix{name: "top"}
		for i := range 3 {
			top.inner = append(top.inner, randomMix(random, fmt.Sprint("f", i), 2, origins))
		}
		c.show(t, url+"/", top.html(url))
		c.evaluate(t, `new Promise(done => document.readyState == "complete" ? done() : addEventListener("load", done))`)
		s, err := run(t, c, Snapshot, SnapshotParams{MaxTokens: 6000})
		if err != nil {
			t.Fatal(exit(err))
		}
		got := regexp.MustCompile(` [a-z]{3}\d+$`).ReplaceAllString(strings.ReplaceAll(s.Text, "\n", "$\n"), "")
		got = regexp.MustCompile(` [a-z]{3}\d+\$?(\n|$)`).ReplaceAllString(got, "\n")
		if want := strings.Join(top.outline(""), "\n"); strings.TrimSpace(got) != want {
			t.Errorf("seed %d: the snapshot has\n%s\nwant\n%s\nleft out: %s", seed, got, want, s.LeftOut)
		}
		r, err := run(t, c, Find, FindParams{Element: `Leaf`, Limit: 5})
		if err != nil || r.Total != top.count() {
			t.Errorf("seed %d: %d of %d were found, %s: %+v", seed, r.Total, top.count(), exit(err), r)
		}
	}
}

// TestFramesOfNavigations opens a page with frames again and again, and goes back and forward to it, also from the
// back/forward cache. Its frames are in each answer, and those of documents that are gone are not.
func TestFramesOfNavigations(t *testing.T) {
	c := startChrome(t)
	url := site(t, c)
	other := strings.Replace(url, "127.0.0.1", "localhost", 1)
	html := `<title>Three</title><iframe title=A src="/inner"></iframe><iframe title=B srcdoc="<button>Inside</button>"></iframe>
		<iframe title=C src="` + other + `/inner"></iframe>`
	check := func(when string) {
		t.Helper()
		s, err := run(t, c, Snapshot, SnapshotParams{MaxTokens: 1500})
		if err != nil || s.LeftOut != "" || strings.Count(s.Text, `  button "Inside"`) != 3 {
			t.Fatalf("%s: %s, left out: %s\n%s", when, exit(err), s.LeftOut, s.Text)
		}
		if r, err := run(t, c, Find, FindParams{Element: "Inside", Limit: 5}); err != nil || r.Total != 3 || r.LeftOut != "" {
			t.Fatalf("%s: %s, %+v", when, exit(err), r)
		}
	}
	for i := range 25 {
		c.show(t, url+"/", html)
		if i%8 == 0 {
			check(fmt.Sprint("open ", i))
		}
	}
	check("the last one")
	for _, next := range []string{url + "/next", other + "/next"} {
		if _, err := run(t, c, Open, OpenParams{URL: next}); err != nil {
			t.Fatal(exit(err))
		}
		for _, to := range []string{"back", "forward", "back", "reload"} {
			if _, err := run(t, c, Go, GoParams{To: to}); err != nil {
				t.Fatal(exit(err))
			}
			if to != "forward" {
				check(next + ", " + to)
			}
		}
	}
}

// TestFramesInBoxes clicks in a frame of another process that is in a box that scrolls and has less height than the
// frame. What a dialog of the frame, and going back, change is told as the frame's.
func TestFramesInBoxes(t *testing.T) {
	c := startChrome(t)
	url := site(t, c)
	inner := strings.Replace(url, "127.0.0.1", "localhost", 1)
	c.show(t, url+"/", `<!doctype html><title>Box</title><div style="height:200px;overflow:auto"><p style="height:900px">Text</p>
		<div style="height:300px;overflow:auto"><iframe style="width:400px;height:700px;transform:rotate(5deg)" src="`+inner+`/echo?`+
		html.EscapeString(`<button onclick="this.textContent='A'">Top</button><p style="height:500px"></p><button onclick="`+
			`this.textContent=confirm('Sure?')">Ask</button><a href="/next">Next</a>`)+`"></iframe></div></div>`)
	for _, word := range []string{"Top", "Ask"} {
		if e, err := run(t, c, Click, ClickParams{Element: word}); err != nil {
			t.Fatalf("%s: %s, %s", word, effects(e), exit(err))
		}
	}
	r, err := run(t, c, AnswerDialog, DialogParams{Action: "accept"})
	if err != nil || strings.Contains(r.Note, "no change") {
		t.Errorf("a dialog of the frame: %+v, %s", r, exit(err))
	}
	if s, err := run(t, c, Text, TextParams{MaxTokens: 200}); err != nil || !strings.Contains(s.Text, "true") {
		t.Errorf("%q, %s", s.Text, exit(err))
	}
	e, err := run(t, c, Click, ClickParams{Element: "Next"})
	if err != nil || e.Caused == nil || len(e.Caused.Frames) != 1 {
		t.Fatalf("%s, %s", effects(e), exit(err))
	}
	o, err := run(t, c, Go, GoParams{To: "back"})
	if err != nil || o.Title != "Box" || o.Caused == nil || len(o.Caused.Frames) != 1 ||
		!strings.HasPrefix(o.Caused.Frames[0], inner+"/echo") {
		t.Errorf("back: %s, %s", effects(o), exit(err))
	}
	c.show(t, url+"/", `<!doctype html><header style="position:fixed;inset:0 0 auto;height:160px;background:#ccc">Head</header><p
		style="height:1000px"></p><iframe id=f height=1300 src="`+inner+`/echo?`+html.EscapeString(
		`<p style="height:900px"></p><button onclick="this.textContent='A'">Below</button>`)+`"></iframe><p style="height:2000px"></p>`)
	c.evaluate(t, "scrollTo(0, f.offsetTop + 900)")
	if e, err := run(t, c, Click, ClickParams{Element: "Below"}); err != nil {
		t.Errorf("below what stays: %s, %s", effects(e), exit(err))
	}
}

// TestHungFrames looks at a page of which a frame in another process runs a script that does not end. The answer has
// the rest, and comes in time.
func TestHungFrames(t *testing.T) {
	c := startChrome(t)
	url := site(t, c)
	// Frames of other tests are in another process.
	hung := strings.Replace(url, "127.0.0.1", "hung.localhost", 1) +
		"/echo?<button>In</button><script>setTimeout(()=>{for(;;);},200)</script>"
	for _, call := range []string{`snapshot {"max_tokens":500}`, `text {"max_tokens":500}`,
		`expect {"text":"nowhere","timeout":100}`} {
		c.show(t, url+"/", `<title>Hung</title><button>Add</button><iframe src="`+hung+`"></iframe>`)
		time.Sleep(400 * time.Millisecond)
		c.deadline = 8 * time.Second
		tool, params, _ := strings.Cut(call, " ")
		got, err := c.raw(t, tool, params)
		c.deadline = 0
		told := string(got) + exit(err)
		if !strings.Contains(told, "frames, 1") && !strings.Contains(told, "not_met: ") {
			t.Errorf("%s: %s", call, told)
		}
	}
}

// TestTextOfFrames checks that a text has that of each frame below its line, that a ref of a frame shows what it has,
// and that a small answer names the frames that it leaves out.
func TestTextOfFrames(t *testing.T) {
	c := startChrome(t)
	url := site(t, c)
	c.show(t, url+"/", `<p>Outer</p><iframe title="Near" srcdoc="<p>Inner</p>"></iframe><iframe title="Far" src="`+
		strings.Replace(url, "127.0.0.1", "localhost", 1)+`/next"></iframe><iframe hidden srcdoc="x"></iframe>`)
	r, err := run(t, c, Text, TextParams{MaxTokens: 2000})
	named := regexp.MustCompile(`^Outer\n\n\[Iframe "Near" (\w+)\]\n\nInner\n\n\[Iframe "Far" (\w+)\]\n\n# Next page$`).
		FindStringSubmatch(r.Text)
	if err != nil || r.LeftOut != "" || named == nil {
		t.Fatalf("%+v, %s", r, exit(err))
	}
	for i, want := range []string{"Inner", "# Next page"} {
		if r, err := run(t, c, Text, TextParams{Element: named[i+1], MaxTokens: 2000}); err != nil || r.Text != want {
			t.Errorf("%+v, %s, expected %s", r, exit(err), want)
		}
		s, err := run(t, c, Snapshot, SnapshotParams{Focus: named[i+1], MaxTokens: 1500})
		if err != nil || !strings.Contains(s.Text, strings.TrimPrefix(want, "# ")) {
			t.Errorf("%+v, %s, expected %s", s, exit(err), want)
		}
	}
	s, err := run(t, c, Snapshot, SnapshotParams{MaxTokens: 100})
	if err != nil || !strings.Contains(s.Text+s.LeftOut, "Near") || !strings.Contains(s.Text+s.LeftOut, "Far") {
		t.Errorf("a small snapshot: %+v, %s", s, exit(err))
	}
}

// TestAnotherName acts by ref on elements that have another role or name than was shown. Nothing is done, and the
// answer has both; it shows the element, so that the same call then does what it says.
func TestAnotherName(t *testing.T) {
	c := startChrome(t)
	url := site(t, c)
	for name, test := range map[string]struct{ html, change, was, now string }{
		"a name":   {`<button onclick="did++">Cancel</button>`, `e.textContent = "Pay 1000"`, `button "Cancel"`, `button "Pay 1000"`},
		"a label":  {`<button aria-label=Keep onclick="did++">x</button>`, `e.ariaLabel = "Delete"`, `button "Keep"`, `button "Delete"`},
		"a role":   {`<div role=button onclick="did++">Go</div>`, `e.role = "link"`, `button "Go"`, `link "Go"`},
		"its text": {`<div onclick="did++">Cancel</div>`, `e.textContent = "Pay"`, `generic "Cancel"`, `generic "Pay"`},
		"a field": {`<input aria-label=Amount onclick="did++" oninput="did++" onkeydown="did++">`, `e.ariaLabel = "Account"`,
			`textbox "Amount"`, `textbox "Account"`},
	} {
		for _, frame := range []bool{false, true} {
			html := "<script>did = 0</script>" + test.html
			in := "window"
			if frame {
				html, in = `<iframe title=F srcdoc="`+strings.ReplaceAll(html, `"`, "&quot;")+`"></iframe>`, "frames[0]"
			}
			c.show(t, url+"/", html)
			s, err := run(t, c, Snapshot, SnapshotParams{MaxTokens: 1500})
			shown := regexp.MustCompile(` (\w{3}\d+)$`).FindStringSubmatch(s.Text)
			if err != nil || shown == nil {
				t.Fatalf("%s: %s\n%s", name, exit(err), s.Text)
			}
			c.evaluate(t, `(() => { const e = `+in+`.document.querySelector("[onclick]"); `+test.change+`; return 1 })()`)
			if name == "a field" {
				_, err = run(t, c, Press, PressParams{Element: shown[1], Key: "a", Count: 1})
			} else {
				_, err = run(t, c, Click, ClickParams{Element: shown[1]})
			}
			if want := "stale: " + shown[1] + " was shown as " + test.was + " and is now " + test.now +
				", so nothing was done; look again with page.snapshot"; exit(err) != want ||
				c.evaluate(t, in+".did") != "0" {
				t.Errorf("%s: %s, the page got %s", name, exit(err), c.evaluate(t, in+".did"))
			}
			if e, err := run(t, c, Click, ClickParams{Element: shown[1]}); err != nil || c.evaluate(t, in+".did") == "0" {
				t.Errorf("%s, again: %s, %s", name, effects(e), exit(err))
			}
		}
	}
	c.show(t, url+"/", `<button onclick="this.textContent = this.textContent == 'Play' ? 'Pause' : 'Play'">Play</button>`)
	for range 2 { // what an answer says has been shown
		e, err := run(t, c, Click, ClickParams{Element: "css=button"})
		if err == nil {
			_, ref, _ := strings.Cut(e.On, `" `)
			e, err = run(t, c, Click, ClickParams{Element: ref})
		}
		if err != nil || !strings.Contains(e.Note, "it is now button ") {
			t.Errorf("%s, %s", effects(e), exit(err))
		}
	}
}
