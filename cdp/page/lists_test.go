package page_test

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// TestOptions checks which options of lists a snapshot shows, and that it says so where it shows none.
func TestOptions(t *testing.T) {
	c := startChrome(t)
	url := site(t, c)
	var many strings.Builder
	for i := range 300 {
		fmt.Fprintf(&many, "<option>Country %d", i)
	}
	size := `<select aria-label=Size id=s><option>S<option selected>M<option disabled>L</select>`
	for _, test := range []struct {
		name, html    string
		p             SnapshotParams
		want, leftOut string
	}{
		{"not asked for", size, SnapshotParams{}, `combobox "Size" REF [value="M"]`, "3 options of lists (options true)"},
		{"asked for", size, SnapshotParams{Options: true}, `combobox "Size" REF [value="M"]
  option "S"
  option "M" [selected]
  option "L" [disabled]`, ""},
		{"of one list", size + `<select aria-label=Other><option>x</select>`, SnapshotParams{Options: true, Focus: "css=#s"},
			"combobox \"Size\" REF [value=\"M\"]\n  option \"S\"\n  option \"M\" [selected]\n  option \"L\" [disabled]", ""},
		{"several chosen", `<select multiple aria-label=Tags><option selected>a<option>b<option selected>c</select>`,
			SnapshotParams{Options: true}, "listbox \"Tags\" REF [value=\"a, c\"]\n  option \"a\" [selected]\n  option \"b\"\n" +
				"  option \"c\" [selected]", ""},
		{"a group that is disabled", `<select aria-label=G><optgroup disabled label=Old><option>x</optgroup><option>y</select>`,
			SnapshotParams{Options: true}, "combobox \"G\" REF [value=\"y\"]\n" +
				"  group \"Old\" [disabled]\n    option \"x\" [disabled]\n  option \"y\" [selected]", ""},
		{"groups", `<select aria-label=G><option>x<optgroup label=Big><option>L<option>XL</optgroup></select>`,
			SnapshotParams{Options: true}, "combobox \"G\" REF [value=\"x\"]\n  option \"x\" [selected]\n" +
				"  group \"Big\"\n    option \"L\"\n    option \"XL\"", ""},
		{"suggestions", `<input list=l aria-label=City><datalist id=l><option>Rome<option value=OSL label=Oslo></datalist>`,
			SnapshotParams{Options: true}, "combobox \"City\" REF\n  option \"Rome\"\n  option \"Oslo\" [value=\"OSL\"]", ""},
		{"suggestions, not asked for", `<input list=l aria-label=City><datalist id=l><option>Rome</datalist>`,
			SnapshotParams{}, `combobox "City" REF`, "1 options of lists (options true)"},
		{"no options", `<select aria-label=None></select>`, SnapshotParams{}, `combobox "None" REF`, ""},
		{"label instead of text", `<select aria-label=L><option label=Shown>text</select>`, SnapshotParams{Options: true},
			"combobox \"L\" REF [value=\"Shown\"]\n  option \"Shown\" [selected]", ""},
		{"only controls", "<p>Text</p>" + size, SnapshotParams{Options: true, Roles: "interactive"}, `combobox "Size" REF [value="M"]
  option "S"
  option "M" [selected]
  option "L" [disabled]`, ""},
		{"more than fit", `<select aria-label=Country>` + many.String() + `</select>`, SnapshotParams{MaxTokens: 300, Options: true},
			`combobox "Country" REF [value="Country 0"]
  300 x option "Country 0" … "Country 299" g1
    g1[0] option "Country 0" [selected]`, "299 items in groups (group g1, or page.find)"},
		{"in a frame", `<iframe title=F srcdoc="<select aria-label=In><option>1<option>2</select>"></iframe>`, SnapshotParams{},
			"Iframe \"F\" REF\n  combobox \"In\" REF [value=\"1\"]", "2 options of lists (options true)"},
	} {
		c.show(t, url+"/", "<title>T</title>"+test.html)
		if test.p.MaxTokens == 0 {
			test.p.MaxTokens = 1500
		}
		s, err := run(t, c, Snapshot, test.p)
		if got := withoutRefs(s.Text); err != nil || got != test.want || s.LeftOut != test.leftOut {
			t.Errorf("%s: %s\n%s\nleft out: %s", test.name, exit(err), got, s.LeftOut)
		}
	}
	c.show(t, url+"/", `<select aria-label=Country>`+many.String()+`</select>`)
	_, _ = run(t, c, Snapshot, SnapshotParams{MaxTokens: 300, Options: true})
	s, err := run(t, c, Snapshot, SnapshotParams{MaxTokens: 300, Group: "g1[120]"})
	if err != nil || !strings.HasPrefix(s.Text, "option \"Country 120\"\noption \"Country 121\"\n") {
		t.Errorf("a part of the options: %s\n%s", exit(err), s.Text)
	}
}

// rolled returns a list of 500 items, of which the document has those in view. The script has its box and makes items.
func rolled(html, script string) string {
	return html + `<script>let did = ""; ` + script + `
		const put = () => { const from = Math.floor((box.scrollTop || 0) / 40), all = [];
			for (let i = from; i < Math.min(from + 20, 500); i++) { const x = item(i); x.style = "position:absolute;top:" + 40 * i + "px;height:40px";
				x.onclick = () => { did = x.textContent; chosen(x) }; all.push(x) }
			items.style = "position:relative;height:20000px"; items.replaceChildren(...all) };
		const make = (name, role, i) => { const x = document.createElement(name); x.role = role; x.textContent = "Item " + i; return x };
		(box === document.scrollingElement ? window : box).addEventListener("scroll", put); put()</script>`
}

// TestListsOfWhatIsInView selects an option that comes when its list is scrolled, and scrolls to an element that does:
// the error of the search for it names that call.
func TestListsOfWhatIsInView(t *testing.T) {
	c := startChrome(t)
	url := site(t, c)
	const box = `style="height:200px;overflow:auto"><div id=items></div></div>`
	c.show(t, url+"/", rolled(`<button id=f role=combobox aria-label=Fruit aria-expanded=false aria-controls=l onclick="toggle(l.hidden)">None</button>
		<div id=l role=listbox hidden `+box, `const box = l, toggle = (on) => { l.hidden = !on; f.ariaExpanded = String(on) },
		item = (i) => make("div", "option", i), chosen = (x) => { f.textContent = did; toggle(false) };`))
	for _, word := range []string{"Item 400", "Item 7"} {
		e, err := run(t, c, Select, SelectParams{Element: "Fruit", Options: []string{word}})
		if got := c.evaluate(t, "f.textContent"); err != nil || got != `"`+word+`"` {
			t.Errorf("%s: %s, %s; the page has %s", word, effects(e), exit(err), got)
		}
	}
	_, err := run(t, c, Select, SelectParams{Element: "Fruit", Options: []string{"Item 900"}})
	if got := c.evaluate(t, "f.textContent"); !strings.HasPrefix(exit(err), "no_match: ") || got != `"Item 7"` {
		t.Errorf("no such option: %s; the page has %s", exit(err), got)
	}
	const button = `item = (i) => make("button", "button", i), chosen = () => {};`
	for name, html := range map[string]string{
		"a box":    rolled("<div id=b "+box, "const box = b, "+button),
		"the page": "<!doctype html>" + rolled("<div id=items></div>", "const box = document.scrollingElement, "+button),
	} {
		c.show(t, url+"/", html)
		_, err := run(t, c, Find, FindParams{Element: "Item 40"})
		began := time.Now()
		_, failed := run(t, c, Click, ClickParams{Element: "Item 40"})
		if took := time.Since(began); took > 4*time.Second {
			t.Errorf("%s: a click ended after %v", name, took)
		}
		for _, err := range []error{err, failed} {
			if !strings.Contains(exit(err), "page.scroll with this element") {
				t.Errorf("%s: %s", name, exit(err))
			}
		}
		if _, err = run(t, c, Scroll, ScrollParams{Element: "Item 40"}); err == nil {
			_, err = run(t, c, Click, ClickParams{Element: "Item 40"})
		}
		if got := c.evaluate(t, "did"); err != nil || got != `"Item 40"` {
			t.Errorf("%s: %s; the page has %s", name, exit(err), got)
		}
		at := c.evaluate(t, "box.scrollTop")
		if _, err = run(t, c, Scroll, ScrollParams{Element: "Item 900"}); !strings.HasPrefix(exit(err), "no_match: ") ||
			c.evaluate(t, "box.scrollTop") != at {
			t.Errorf("%s: no such item: %s, at %s", name, exit(err), c.evaluate(t, "box.scrollTop"))
		}
	}
	c.open(t, `<div style="height:200px;overflow:auto"><p>`+strings.Repeat("All of it<p>", 100)+`</div>`)
	if _, err := run(t, c, Find, FindParams{Element: "None"}); strings.Contains(exit(err), "page.scroll") {
		t.Errorf("a list that is whole: %s", exit(err))
	}
}

// TestListsThatGrow scrolls to an element that comes when the end of its list is reached, again and again.
func TestListsThatGrow(t *testing.T) {
	c := startChrome(t)
	url := site(t, c)
	const more = `let n = 0, did = ""; const add = (most) => { for (let i = 0; i < 20 && n < most; i++, n++) items.insertAdjacentHTML("beforeend",
		"<p style='height:40px'><button onclick='did = this.textContent'>Item " + n + "</button>") };
		new IntersectionObserver((all) => all.at(-1).isIntersecting && setTimeout(add, 100, 90)).observe(end); add(90)`
	for name, html := range map[string]string{
		"a box":    `<div id=box style="height:300px;overflow:auto"><div id=items></div><div id=end>End</div></div>`,
		"the page": `<div id=items></div><div id=end>End</div>`,
	} {
		c.show(t, url+"/", "<!doctype html>"+html+"<script>"+more+"</script>")
		if e, err := run(t, c, Scroll, ScrollParams{Element: "Item 75"}); err != nil || !strings.Contains(e.On, "Item 75") {
			t.Errorf("%s: %s, %s", name, effects(e), exit(err))
		}
		if e, err := run(t, c, Click, ClickParams{Element: "Item 75"}); err != nil || c.evaluate(t, "did") != `"Item 75"` {
			t.Errorf("%s: %s, %s; the page has %s", name, effects(e), exit(err), c.evaluate(t, "did"))
		}
		_, err := run(t, c, Scroll, ScrollParams{Element: "Item 900"})
		if !strings.Contains(exit(err), "to the end of what scrolls") {
			t.Errorf("%s: no such item: %s", name, exit(err))
		}
	}
}

// TestLabelsOfOthers clicks by labels that are for elements that no label can have.
func TestLabelsOfOthers(t *testing.T) {
	c := startChrome(t)
	c.open(t, `<label for=a>Switch it</label><div id=a onclick="out.value += 'a'">off</div><label for=b>Bio</label><div id=b contenteditable
		onclick="out.value += 'b'">x</div><label for=none>Nothing</label><label for=i>Name</label><input id=i><output id=out></output>`)
	for _, word := range []string{"Switch it", "label=Bio", "Bio", "Nothing", "Name"} {
		if _, err := run(t, c, Click, ClickParams{Element: word}); err != nil {
			t.Errorf("%s: %s", word, exit(err))
		}
	}
	if got := c.evaluate(t, "out.value + document.activeElement.id"); got != `"abbi"` {
		t.Errorf("the page has %s", got)
	}
}

// TestImageMaps clicks areas of image maps by their refs, where a person would see them.
func TestImageMaps(t *testing.T) {
	c := startChrome(t)
	url := site(t, c)
	const image = `<img usemap="#m" alt=Plan width=300 height=200 style="background:#eee%s" src="data:image/svg+xml,` +
		`<svg xmlns='http://www.w3.org/2000/svg' width='300' height='200'/>">`
	for _, test := range []struct{ name, style, area, before, after, want string }{
		{"a rectangle", "", `shape=rect coords="10,10,60,60"`, "", "", ""},
		{"a circle", "", `shape=circle coords="200,100,40"`, "", "", ""},
		{"a polygon", "", `shape=poly coords="100,10,150,10,125,60"`, "", "", ""},
		{"the rest", "", `shape=default`, "", "", ""},
		{"no shape", "", `coords="10, 10, 60, 60"`, "", "", ""},
		{"a border", ";border:20px solid", `coords="0,0,4,4"`, "", "", ""},
		{"far below", "", `coords="10,10,60,60"`, `<div style="height:4000px"></div>`, "", ""},
		{"the map is elsewhere", "", `coords="10,10,60,60"`, "", `<div style="height:4000px"></div>`, ""},
		{"covered", "", `coords="10,10,60,60"`, `<div id=over style="position:absolute;top:0;width:400px;height:400px"></div>`, "",
			"it is covered"},
		{"the image is hidden", ";display:none", `coords="10,10,60,60"`, "", "", "it has no size"},
	} {
		c.show(t, url+"/", "<title>T</title>"+test.before+fmt.Sprintf(image, test.style)+test.after+`<map name=m><area href="#there"
			alt=Kitchen `+test.area+`></map>`)
		s, err := run(t, c, Snapshot, SnapshotParams{MaxTokens: 1500})
		_, ref, found := strings.Cut(s.Text, `link "Kitchen" `)
		if err != nil || !found {
			t.Errorf("%s: %s\n%s", test.name, exit(err), s.Text)
			continue
		}
		c.deadline = 0
		if test.want != "" {
			c.hurried()
		}
		_, err = run(t, c, Click, ClickParams{Element: strings.Fields(ref)[0]})
		if got := c.evaluate(t, "location.hash"); test.want == "" && (err != nil || got != `"#there"`) ||
			test.want != "" && !strings.Contains(exit(err), test.want) {
			t.Errorf("%s: %s, %s", test.name, got, exit(err))
		}
	}
}
