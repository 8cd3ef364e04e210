package page_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/parley-tools/parley/internal/sample"
)

// decoys are elements with the texts of options. A test that chooses from a list must not choose from them.
const decoys = `<div class=decoy><button>Rome</button><a href=#rome>Rome</a><ul role=listbox aria-label=Filter><li role=option>Rome
	<li role=option>Lima</ul><table><tr><td>Rome<td><button>Lima</button></table></div>`

// twins is a page with two lists of one kind, From and To, among decoys. Its script has held, what the lists hold, and
// stray, what else was clicked. A list is made by make, from the name of its kind.
const twins = `<title>Twins</title><style>.list{border:1px solid;background:#fff}.list>*{padding:2px}</style>` + decoys +
	`<form id=form onsubmit="return false"></form>` + decoys + `<script>
	const held = {From: [], To: []}, stray = [], cities = ["Oslo", "Rome", "Lima"];
	addEventListener("click", (e) => { if (e.target.closest(".decoy")) stray.push(e.target.textContent) }, true);
	const look = () => [held.From.join(), held.To.join(), stray.join()].join("|");
	const add = (tag, attributes, text = "", into = form) => {
		const el = document.createElement(tag);
		for (const [key, value] of Object.entries(attributes)) el.setAttribute(key, value);
		el.textContent = text;
		into.append(el);
		return el;
	};
	const fill = (list, roles, choose, texts = cities) => { for (const text of texts) {
		add("div", roles ? {role: "option"} : {}, text, list).onclick = (e) => choose(text, e) } };
	function make(name, words, late) {
		if (words.includes("twice")) cities.push("Rome");
		const is = (word) => words.includes(word), id = "l" + name, pause = (then) => late ? setTimeout(then, late) : then();
		const label = add("label", {for: name, id: name + "l"}, name);
		if (is("native")) {
			const list = add("select", {id: name, ...is("many") ? {multiple: ""} : {}});
			list.onchange = () => { if (is("reverts")) list.value = "";
				held[name] = [...list.selectedOptions].map((o) => o.text) };
			pause(() => cities.forEach((text) => add("option", {}, text, list)));
			if (is("many")) { list.append(new Option("Bonn", "Bonn", true, true)); held[name] = ["Bonn"] }
			return;
		}
		if (is("listbox")) {
			const list = add("div", {role: "listbox", tabindex: 0, "aria-labelledby": name + "l", "aria-multiselectable": true});
			const mark = () => [...list.children].forEach((o) => o.ariaSelected = String(held[name].includes(o.textContent)));
			held[name] = ["Oslo"];
			fill(list, true, (text, e) => { const now = held[name];
				held[name] = is("ctrl") && !e.ctrlKey ? [text] : now.includes(text) ? now.filter((x) => x !== text) : [...now, text];
				mark() });
			return mark();
		}
		if (is("behind")) cities.forEach((text) => add("option", {}, text, window[name + "s"] = window[name + "s"] ||
			add("select", {id: name, tabindex: -1, style: "position:absolute;width:1px;height:1px;opacity:0"})));
		const types = is("typed"), roles = !is("plain"), control = types ? add("input", {id: name, autocomplete: "off",
			...roles ? {role: "combobox", "aria-expanded": false} : {}}) : add(roles ? "div" : "button", {tabindex: 0, "aria-labelledby":
			name + "l", ...roles ? {role: "combobox", "aria-expanded": false} : {"aria-haspopup": "listbox"},
			...is("behind") ? {} : {id: name}}, "Choose");
		if (is("controls")) control.setAttribute("aria-controls", id);
		const expand = (on) => roles && control.setAttribute("aria-expanded", on);
		const place = is("portal") ? document.body : form;
		const open = () => {
			if (is("redrawn")) document.querySelectorAll(".decoy").forEach((d) => d.outerHTML = d.outerHTML);
			expand(true);
			pause(() => {
				const list = window[id] || add("div", {id, class: "list", ...roles ? {role: "listbox"} : {}}, "", place);
				list.hidden = false;
				list.textContent = "";
				fill(list, roles, (text) => {
					if (is("reverts")) text = "Choose";
					held[name] = [text];
					if (types) control.value = text;
					else control.textContent = text;
					if (is("behind")) window[name + "s"].value = text;
					expand(false);
					if (is("kept")) list.hidden = true;
					else list.remove();
				}, cities.filter((x) => !types || control.value && x.startsWith(control.value)));
			});
		};
		if (is("kept")) add("div", {id, class: "list", hidden: "", role: "listbox"}, "", place);
		control[types ? "oninput" : "onclick"] = open;
	}
	</script>`

// TestListsAmongTheirLikes chooses options of lists of many kinds, beside another one of the kind and things with the
// same texts. After success the list holds the options, and only those, and nothing else was clicked; after an error it
// holds what it held.
func TestListsAmongTheirLikes(t *testing.T) {
	c := startChrome(t)
	url := site(t, c)
	type kind struct {
		words, options string
		before, want   string // what both lists hold at first, and what the one holds then
		code           string // of the error
	}
	kinds := []kind{
		{"native", "Rome", "", "Rome", ""},
		{"native many", "Rome,Lima", "Bonn", "Lima,Rome", ""},
		{"native reverts", "Rome", "", "", "not_accepted: "},
		{"native", "Rome,Lima", "", "", "not_accepted: "},
		{"native", "Turin", "", "", "no_match: "},
		{"native twice", "Rome", "", "", "ambiguous: "},
		{"listbox", "Rome,Lima", "Oslo", "Lima,Rome", ""},
		{"listbox", "Rome", "Oslo", "Rome", ""},
		{"listbox ctrl", "Rome,Lima", "Oslo", "Lima,Rome", ""},
		{"listbox ctrl", "Oslo", "Oslo", "Oslo", ""},
		{"listbox ctrl", "Rome,Turin", "Oslo", "Oslo", "no_match: "},
		{"listbox twice", "Rome", "Oslo", "Oslo", "ambiguous: "},
		{"reverts portal", "Rome", "", "Choose", "not_accepted: "},
		{"typed controls", "Rome", "", "Rome", ""},
		{"typed plain portal", "Rome", "", "Rome", ""},
		{"typed plain", "Turin", "", "", "no_match: "},
		{"behind", "Rome", "", "Rome", ""},
		{"behind portal", "Lima", "", "Lima", ""},
		{"redrawn portal", "Rome", "", "Rome", ""},
		{"redrawn", "Turin", "", "", "no_match: "},
	}
	few := sample.OneIn(t, 3)
	for _, relation := range []string{"", "controls "} {
		for _, list := range []string{"", "kept ", "portal ", "portal kept "} {
			if !few() {
				continue
			}
			for _, role := range []string{"", "plain"} {
				kinds = append(kinds, kind{relation + list + role, "Rome", "", "Rome", ""})
			}
			kinds = append(kinds, kind{relation + list, "Turin", "", "", "no_match: "})
		}
	}
	for i, k := range kinds {
		late, name, want := i%3*200, "To", k.before+"|"+k.want+"|"
		if i%2 == 0 {
			name, want = "From", k.want+"|"+k.before+"|"
		}
		if strings.Contains(k.words, "native many") {
			late = 0 // one is chosen at first
		}
		c.show(t, url+"/", twins+fmt.Sprintf(`<script>for (const name of ["From", "To"]) make(name, %q.split(" "), %d)</script>`,
			k.words, late))
		_, err := run(t, c, Select, SelectParams{Element: name, Options: strings.Split(k.options, ",")})
		said := exit(err)
		got := strings.Trim(c.evaluate(t, "for (const x of Object.values(held)) x.sort(); look()"), `"`)
		if got != want || !strings.HasPrefix(said, k.code) || k.code == "" && err != nil {
			t.Errorf("%s, %d ms: select %s %s: the page has %s, want %s: %s", k.words, late, name, k.options, got, want, said)
		}
	}
}
