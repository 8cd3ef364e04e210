package page_test

import (
	"strings"
	"testing"
)

// TestStandIns clicks and checks controls that something else stands in for: a label, a slot, a drawing. Each page says
// in its variable did what a person would have seen.
func TestStandIns(t *testing.T) {
	c := startChrome(t)
	url := site(t, c)
	const box = `<style>.hidden{display:none}.unseen{visibility:hidden}.flat{position:absolute;width:0;height:0;margin:0;opacity:0}
		.clip{position:absolute;clip:rect(0,0,0,0);pointer-events:none}.draw{display:inline-block;width:40px;height:20px;background:#ccc}
		label{padding:4px}</style>`
	radio := func(class string) string {
		return box + `<input class=` + class + ` type=radio name=r id=a><label for=a>Day</label>
			<input class=` + class + ` type=radio name=r id=b onchange="did = 'b'"><label for=b>Week</label>`
	}
	click, check, hover := "click", "check", "hover"
	for name, test := range map[string]struct{ html, verb, element string }{
		"a label of a text field":    {`<label for=e>E-mail</label><br><input id=e onfocus="did = 'b'">`, click, "css=label"},
		"the label of a clipped box": {radio("clip"), click, "css=label[for=b]"},
		"a clipped box":              {radio("clip"), check, "Week"},
		"a box without a size":       {radio("flat"), check, "Week"},
		"an invisible box":           {radio("unseen"), check, "css=#b"},
		"a box without a place":      {radio("hidden"), check, "css=#b"},
		"its label, by name":         {radio("hidden"), check, "Week"},
		"a switch, drawn beside a box without a size": {box + `<div onclick="i.checked = !i.checked; did = 'b'">
			<input class=flat type=checkbox id=i aria-label=Wifi><span class=draw></span></div>`, check, "Wifi"},
		"a placeholder on top of a field": {box + `<div style="position:relative"><input role=combobox aria-label=Fruit
			onfocus="did = 'b'"><span style="position:absolute;inset:0" onmousedown="event.preventDefault();
			document.querySelector('input').focus()">Choose</span></div>`, click, "Fruit"},
		"a link around a picture that floats": {`<a href="#" onclick="did = 'b'"><svg style="float:left" width=30 height=30><title>Home` +
			`</title><rect width=30 height=30 /></svg></a>`, click, "Home"},
		"a link around what has a place of its own": {`<a href="#" onclick="did = 'b'"><span style="position:absolute">Home</span></a>`,
			click, "Home"},
		"a button without a box": {`<button style="display:contents" onclick="did = 'b'"><span>Save</span></button>`, click, "Save"},
		"a row of no height":     {`<div role=button style="height:0" onclick="did = 'b'"><p>Save</p></div>`, click, "Save"},
		"slotted text": {`<x-button>Save</x-button><script>customElements.define("x-button", class extends HTMLElement {
			connectedCallback() { this.attachShadow({mode: "open"}).innerHTML = "<button><slot></slot></button>";
			this.onclick = () => did = "b" } })</script>`, click, "Save"},
		"a press that opens what covers the element": {`<button onpointerdown="did = 'b'; document.body.insertAdjacentHTML(
			'beforeend', '<div style=&quot;position:fixed;inset:0&quot;>Open</div>')">Open it</button>`, click, "Open it"},
		"a press after which nothing can be hit": {`<button onpointerdown="did = 'b';
			document.body.style.pointerEvents = 'none'">Choose</button>`, click, "Choose"},
		"a press that removes the element": {`<button onpointerdown="did = 'b'; this.remove()">Close</button>`, click, "Close"},
		"a list that is there twice": {`<div style="width:0;height:0;overflow:hidden"><div role=option
			style="width:0;height:0;overflow:hidden">Sweden</div></div><div onclick="did = 'b'">Sweden</div>`, click, "Sweden"},
		"a button around a button": {`<div role=button tabindex=0 onclick="did = 'b'"><button>Upload</button></div>`, click, "Upload"},
		"a link in an entry of a menu": {`<ul role=menu><li role=menuitem aria-label=Archive><a href="#" onclick="did = 'b'">Archive</a></ul>`,
			click, "Archive"},
		"a switch in a box that is drawn": {box + `<div role=checkbox class=draw aria-label=Wifi><input type=checkbox role=switch
			aria-label=Wifi onchange="did = 'b'"></div>`, check, "Wifi"},
		"a custom element of a label, whose box is in it": {`<label><my-box></my-box>News</label><script>customElements.define("my-box",
			class extends HTMLElement { static formAssociated = true; constructor() { super(); const root = this.attachShadow({mode: "open"});
			root.innerHTML = "<input type=checkbox>"; root.firstChild.onchange = () => did = "b"; this.onclick = (e) => {
			if (e.composedPath()[0] === this) root.firstChild.click() } } })</script>`, check, "News"},
		"an entry of a menu that a button owns": {`<button aria-owns=menu>Actions</button><div id=menu><div style="cursor:pointer"
			onclick="did = 'b'">Archive</div></div>`, click, "Archive"},
		"a title below a box that nobody sees": {`<div style="display:grid"><input type=checkbox onchange="did = 'b'"
			style="grid-area:1/1;height:60px;opacity:0;z-index:1"><div style="grid-area:1/1">More</div></div>`, click, "More"},
		"a field of one pixel": {`<div onclick="did = 'b'" style="width:90px;height:30px;position:relative"><input readonly
			aria-label=Country style="position:absolute;width:1px;height:1px;padding:0;border:0;opacity:0"></div>`, click, "Country"},
		"a field that is clipped, beside a copy for forms": {`<p><label for=f>Country</label><span onclick="did = 'b'" style="display:` +
			`inline-block;position:relative;width:20px;height:30px"><span style="position:absolute;width:1px;height:1px;overflow:hidden">
			<input id=f readonly><select tabindex=-1></select></span></span>`, click, "Country"},
		"a part of a slider, by a selector": {`<div role=slider aria-label=Stars><i class=draw></i><i class=draw
			onclick="did = 'b'"></i></div>` + box, click, "css=[role=slider] i:nth-child(2)"},
		"a button below a head that stays": {`<header style="position:fixed;inset:0 0 auto;height:120px;background:#ccc">Head</header>
			<p style="height:1500px"></p><button id=b onclick="did = 'b'">Deep</button><p style="height:1500px"></p><script>
			scrollTo(0, b.offsetTop - 30)</script>`, click, "Deep"},
		"a button above a foot that stays": {`<footer style="position:fixed;inset:auto 0 0;height:200px;background:#ccc">Foot</footer>
			<p style="height:1500px"></p><button id=b onclick="did = 'b'">Deep</button><p style="height:1500px"></p><script>
			scrollTo(0, b.offsetTop - innerHeight + 60)</script>`, click, "Deep"},
		"a cell beside a column that stays": {`<div style="overflow:auto;width:400px"><table><tr>` + strings.Repeat(`<td style="min-width:
			120px">x</td>`, 4) + `<td style="min-width:120px"><button onclick="did = 'b'">Edit</button></td>` + strings.Repeat(`<td
			style="min-width:120px">x</td>`, 4) + `<td style="position:sticky;right:0;min-width:220px;background:#ddd">Pinned</table></div>`,
			click, "Edit"},
		"a line that is drawn": {`<svg width=200 height=60><path d="M20 30H180" stroke=red stroke-width=6 role=img aria-label=Line
			onclick="did = 'b'" /></svg>`, click, "Line"},
		"a curve that is drawn": {`<svg width=200 height=90><path d="M20 80q80 -140 160 0" stroke=red stroke-width=4 fill=none role=button
			aria-label=Curve onclick="did = 'b'" /></svg>`, click, "Curve"},
		"a link that is there twice, once folded": {`<div style="height:0;overflow:hidden"><a href="#x">Login</a></div><a href="#"
			onclick="did = 'b'">Login</a>`, click, "Login"},
		"a widget that chooses what the pointer was over": {`<div role=radiogroup><span role=radio tabindex=0 aria-label=Star
			onmousemove="requestAnimationFrame(() => over = this)" onclick="if (over == this) did = 'b'">*</span></div><script>
			var over</script>`, click, "Star"},
		"a pointer that is known to move": {`<p>Text<p><button onmouseenter="if (moved) did = 'b'">Info</button><script>
			var moved = false; addEventListener("mousemove", () => moved = true)</script>`, hover, "Info"},
	} {
		c.show(t, url+"/", "<!doctype html><script>var did = ''</script>"+test.html)
		var e *Effects
		var err error
		switch test.verb {
		case click:
			e, err = run(t, c, Click, ClickParams{Element: test.element})
		case check:
			e, err = run(t, c, Check, CheckParams{Element: test.element})
		case hover:
			e, err = run(t, c, Hover, ElementParams{Element: test.element})
		}
		if err != nil || c.evaluate(t, "did") != `"b"` || strings.Contains(e.Note, "moved") {
			t.Errorf("%s: %s, %s, the page says %s", name, exit(err), effects(e), c.evaluate(t, "did"))
		}
		if test.verb == check && err == nil {
			if e, err = run(t, c, Check, CheckParams{Element: test.element}); err != nil || e.Note != "it is so already" {
				t.Errorf("%s, again: %s, %s", name, exit(err), effects(e))
			}
		}
	}
}

// TestOthersInTheWay checks that an element outside a control does not stand in for it, and that the error says why.
func TestOthersInTheWay(t *testing.T) {
	c := startChrome(t)
	url := site(t, c)
	const cover = `<span style="position:absolute;inset:0" onclick="did = 'cover'">Cover</span>`
	for name, test := range map[string]struct{ html, element string }{
		"went away":           {`<button onmousemove="this.remove()">Go</button>`, "Go"},
		"is inert":            {`<main inert><button>Go</button></main>`, "css=button"},
		"a cover of a button": {`<div style="position:relative"><button>Go</button>` + cover + `</div>`, "Go"},
		"a cover of two boxes": {`<div style="position:relative"><input type=checkbox aria-label=One><input type=checkbox
			aria-label=Two>` + cover + `</div>`, "One"},
		"a cover of a page": {`<input aria-label=Name><div style="position:fixed;inset:0" onclick="did = 'cover'">Cookies
			<button>Accept</button></div>`, "Name"},
		"a box that nobody sees, over a link": {`<div style="display:grid"><input type=checkbox onchange="did = 'cover'"
			style="grid-area:1/1;height:60px;opacity:0;z-index:1"><a href="#" style="grid-area:1/1">More</a></div>`, "More"},
		"a sheet that nobody sees": {`<div style="position:relative"><p>More</p><span onclick="did = 'cover'"
			style="position:absolute;inset:0;opacity:0"></span></div>`, "More"},
		"the label of a disabled box": {`<label>News<input type=checkbox disabled></label>`, "css=label"},
		"not a selector":              {`<button>Go</button>`, `css=button[`},
	} {
		c.show(t, url+"/", "<!doctype html><script>var did = ''</script>"+test.html)
		_, err := run(t, c.hurried(), Click, ClickParams{Element: test.element})
		want := "not_ready: "
		if strings.HasPrefix(test.element, "css=button[") {
			want = "a CSS selector"
		} else if name == "went away" || name == "is inert" {
			want = name
		}
		if err == nil || !strings.Contains(exit(err), want) || c.evaluate(t, "did") != `""` {
			t.Errorf("%s: %s, the page says %s", name, exit(err), c.evaluate(t, "did"))
		}
	}
}

// TestOtherPrograms goes to addresses that belong to other programs, in each way that a page has. None is opened, an
// act that leads to one says so in its answer or the next one, and the page still takes clicks: Chrome would ask a
// person, and swallow them.
func TestOtherPrograms(t *testing.T) {
	c := startChrome(t)
	url := site(t, c)
	for name, html := range map[string]string{
		"link":   `<a href="tel:5">Go</a>`,
		"script": `<button onclick="location = 'zoommtg://join?x=1'">Go</button>`,
		"later":  `<button onclick="setTimeout(() => location.replace('mailto:a@b.test'), 50)">Go</button>`,
		"form":   `<form action="sip:a"><button>Go</button></form>`,
		"frame":  `<iframe srcdoc="<a href='tel:5'>Go</a>"></iframe>`,
		"load":   `<script>location = "tel:5"</script><button>Go</button>`,
		"window": `<button onclick="window.open('tel:5')">Go</button>`,
	} {
		c.show(t, url+"/", "<script>var did = 0</script><button onclick=did++>Add</button>"+html)
		told := ""
		for _, element := range []string{"Go", "Add", "Add"} {
			e, err := run(t, c, Click, ClickParams{Element: element})
			if told += effects(e); err != nil {
				t.Errorf("%s: %s: %s", name, element, exit(err))
			}
		}
		if did := c.evaluate(t, "did"); did != "2" ||
			name != "window" && name != "load" && !strings.Contains(told, "another program") {
			t.Errorf("%s: %s clicks; %s", name, did, told)
		}
	}
}
