package page_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/parley-tools/parley/host"
)

// handled is a small page, and what a verb does on it.
type handled struct {
	name, html, element string
	given               any    // the value of fill, the options of select, where drag ends
	look, want          string // an expression, and what it is afterwards
	said                string // begins the error, or is in the note
}

// check compares what a verb said and did with what a test wants.
func (h handled) check(t *testing.T, c *chrome, e any, err error) {
	t.Helper()
	said := effects(e)
	if err != nil {
		said = exit(err)
	}
	if got := c.evaluate(t, h.look); got != `"`+h.want+`"` || !strings.Contains(said, h.said) || h.said == "" && err != nil {
		t.Errorf("%s: %s; the page has %s, want %s", h.name, said, got, h.want)
	}
}

const refusedValue = "not_accepted: "

// parseOnBlur is a text field that has a date in a form of its own, which it reads when it is left.
const parseOnBlur = `<label>Day <input id=f value=01.02.2026></label><script>let kept = f.value; f.onblur = () => {
	const m = f.value.match(/^(\d\d?)\.(\d\d?)\.(\d{4})$/) || f.value.match(/^(\d\d)(\d\d).(\d\d).\d\d$/);
	kept = m ? [m[1].padStart(2, 0), m[2].padStart(2, 0), m[3].padStart(4, 20)].join(".") : kept; f.value = kept }</script>`

// segmented returns a group of spin buttons: what each does on a key is given. It is Chrome's or a library's.
func segmented(onkey string) string {
	part := func(name, low, high, now string) string {
		return `<span role=spinbutton tabindex=0 contenteditable aria-label="` + name + `" aria-valuemin=` + low +
			` aria-valuemax=` + high + ` aria-valuenow=` + now + `>` + now + `</span>`
	}
	return `<div role=group aria-label=Due>` + part("month, Due", "1", "12", "1") + "/" + part("day, Due", "1", "31", "2") + "/" +
		part("year, Due", "1", "9999", "2020") + `</div><script>
		const parts = [...document.querySelectorAll("span")], read = () => parts.map((p) => p.getAttribute("aria-valuenow")).join("-");
		const set = (p, n) => { if (n >= +p.getAttribute("aria-valuemin") && n <= +p.getAttribute("aria-valuemax")) {
			p.setAttribute("aria-valuenow", n); p.textContent = n } };
		let typed = "";
		for (const p of parts) { p.onfocus = () => typed = ""; p.onkeydown = (e) => { if (e.key != "Tab") e.preventDefault();
			const now = +p.getAttribute("aria-valuenow"); ` + onkey + ` } }</script>`
}

// calendars returns two fields of dates. Each shows a calendar while it has the focus, in which the day that is chosen
// has a class; the first one does what is given at a change.
func calendars(change string) string {
	return `<label>Day <input id=f></label><label>End <input></label><script>let shown = null;
		for (const x of document.querySelectorAll("input")) {
			const at = document.createElement("div");
			at.className = "my-picker";
			let leaving;
			x.onfocus = () => { clearTimeout(leaving); const of = x === f && shown, month = of || new Date("2026-06-01"); document.body.append(at);
				at.innerHTML = month.toLocaleString("en", {month: "long", year: "numeric"}) +
				" <div>" + Array.from({length: 30}, (_, i) =>
					"<b class='day" + (of && of.getDate() === i + 1 ? " chosen" : i % 7 < 2 ? " weekend" : "") + "'>" + (i + 1) + "</b>").join(" ") + "</div>" };
			x.onblur = () => leaving = setTimeout(() => at.remove(), 100);
		}
		f.onchange = () => { ` + change + ` }</script>`
}

// stays returns a field with a calendar that stays below it when it is left.
func stays(change string) string {
	return strings.Replace(calendars(change), "leaving = setTimeout(() => at.remove(), 100)", `x === f ? at.style = "position:absolute;left:0;top:" +
		f.getBoundingClientRect().bottom + "px;background:#fff" : at.remove()`, 1)
}

const byArrows = `if (e.key == "ArrowUp") set(p, now + 1); if (e.key == "ArrowDown") set(p, now - 1);`

// TestFillDates fills in dates and times, wherever a field has them.
func TestFillDates(t *testing.T) {
	c := startChrome(t)
	url := site(t, c)
	for _, h := range []handled{
		{"a form of its own, read when it is left", parseOnBlur, "Day", "2026-05-06", "kept", "06.05.2026", "another form"},
		{"in that form", parseOnBlur, "Day", "06.05.2026", "kept", "06.05.2026", `"on"`},
		{"what it cannot read", parseOnBlur, "Day", "soon", "f.value + kept", "01.02.202601.02.2026", refusedValue},
		{"in no form that it says", `<label>Day <input id=f></label><script>f.onblur = () => { if (!/ of /.test(f.value)) f.value = "" }
			</script>`, "Day", "2026-05-06", "f.value", "", "may take 06.05.2026, 05/06/2026 or 6 May 2026"},
		{"no such day", `<label>Day <input id=f value="" placeholder="DD/MM/YYYY"></label><script>f.onblur = () => {
			if (!/^([012]\d|3[01])[/]/.test(f.value)) f.value = "" }</script>`, "Day", "99/05/2026", "f.value", "",
			refusedValue + `textbox "Day" `},
		{"a placeholder that says the form", `<label>Day <input id=f placeholder=MM/DD/YYYY></label>`, "Day", "2026-05-06",
			"f.value", "05/06/2026", "another form"},
		{"committed by Enter", `<label>Day <input id=f></label><script>let kept = ""; f.onkeydown = (e) => {
			if (e.key == "Enter") kept = f.value }; f.onblur = () => f.value = kept</script>`, "Day", "2026-05-06",
			"kept", "2026-05-06", `"on"`},
		{"hours of half a day", `<label>At <input id=f placeholder="hh:mm aa"></label>`, "At", "13:45", "f.value", "01:45 PM",
			"another form"},
		{"a week", `<label>Week <input id=f type=week></label>`, "Week", "2026-W05", "f.value", "2026-W05", "by value"},
		{"a date and a time", `<label>At <input id=f type=datetime-local></label>`, "At", "2026-01-31T10:00", "f.value",
			"2026-01-31T10:00", "by value"},
		{"past its end", `<label>Day <input id=f type=date value=2026-01-01 max=2026-12-31></label>`, "Day", "2027-01-01",
			"f.value", "2026-01-01", "max 2026-12-31"},
		{"a state that sets it", `<label>Day <input id=f type=date value=2026-01-01></label><script>let state = f.value;
			f.addEventListener("input", () => { state = f.value; setTimeout(() => f.value = state) })</script>`, "Day",
			"2026-05-06", "state + f.value", "2026-05-062026-05-06", "by value"},
		{"committed by Tab", `<label>Day <input id=f></label><script>let kept = ""; f.onkeydown = (e) => {
			if (e.key == "Tab") kept = f.value }</script>`, "Day", "2026-05-06", "kept", "2026-05-06", `"on"`},
		{"a widget that makes something else of it", `<label>Day <input id=f></label><script>f.oninput = () => setTimeout(() =>
			f.value = "0004-MM-dd")</script>`, "Day", "2026-05-06", "f.value", "0004-MM-dd", `it now holds "0004-MM-dd"`},
		{"a calendar that follows", calendars(`shown = new Date(f.value + "T12:00")`), "Day", "2026-05-06", "f.value",
			"2026-05-06", `"on"`},
		{"a calendar that reads another form", calendars(`const m = f.value.match(/^(\d\d)\/(\d\d)\/(\d{4})$/); if (m) shown =
			new Date(m[3], m[1] - 1, m[2])`), "Day", "2026-05-06", "f.value", "05/06/2026", "another form"},
		{"a mask that shows its form", `<label>Day <input id=f></label><script>f.onchange = () => { const d = f.value.replace(/\D/g, "");
			if (!/^\d\d\.\d\d\.\d{4}$/.test(f.value)) f.value = d.slice(0, 2) + ".03.____" }</script>`, "Day", "2026-05-06", "f.value",
			"06.05.2026", "another form"},
		{"a list that Tab leaves open, and Enter commits", `<label>Day <input id=f role=combobox aria-haspopup=dialog></label><script>let kept = "";
			f.oninput = () => f.ariaExpanded = "true"; f.onkeydown = (e) => { if (e.key == "Enter") { f.ariaExpanded = "false"; kept = f.value } }
			</script>`, "Day", "2026-05-16", "kept", "2026-05-16", `"on"`},
		{"one that is marked as invalid", `<label>Day <input id=f onchange="ariaInvalid = !/^\d\d\.\d\d\.\d{4}$/.test(value)"></label>`, "Day",
			"2026-05-06", "f.value", "", refusedValue},
		{"what it does not keep, and keys make another day of", `<label>Day <input id=f></label><script>let keys = 0; f.onkeydown = (e) =>
			keys += e.key.length == 1; f.onblur = () => { if (!/^\d\d[/]\d\d[/]\d{4}$/.test(f.value) || keys > 3) f.value =
			keys > 3 ? "02/03/2026" : "" }</script>`, "Day", "2026-05-16", "f.value", "05/16/2026", "another form"},
		{"a list that Enter alone closes, on a field that names no form", `<label>Day <input id=f role=combobox aria-haspopup=dialog></label>
			<script>let kept = ""; f.oninput = () => f.ariaExpanded = "true"; f.onkeydown = (e) => { if (e.key == "Enter") {
			f.ariaExpanded = "false"; f.ariaInvalid = !/[/]/.test(f.value); if (/[/]/.test(f.value)) kept = f.value } }</script>`, "Day",
			"2026-05-16", "kept", "05/16/2026", "another form"},
		{"a calendar that does not follow", calendars(""), "Day", "2026-05-06", "f.value", "", "stays at June 2026"},
		{"a calendar of the same month that does not follow", calendars(""), "Day", "2026-06-06", "f.value", "",
			"stays at June 2026"},
		{"a calendar that stays and follows", stays(`shown = new Date(f.value + "T12:00"); f.onfocus()`), "Day", "2026-05-06", "f.value",
			"2026-05-06", `"on"`},
		{"a calendar that stays and does not follow", stays(""), "Day", "2026-06-06", "f.value", "", "stays at June 2026"},
		{"a calendar with fields for its month", strings.Replace(stays(""), `month.toLocaleString("en", {month: "long", year: "numeric"})`,
			`"<select><option>May<option selected>June</select><input value=2026>"`, 1), "Day", "2026-06-06", "f.value", "", "stays at June 2026"},
		{"segments that are typed", segmented(byArrows + `if (/\d/.test(e.key)) set(p, +(typed += e.key));`), "Due",
			"2026-05-06", "read()", "5-6-2026", `group \"Due\"`},
		{"segments with arrows", segmented(byArrows), "Due", "2022-11-30", "read()", "11-30-2022", `"on"`},
		{"segments without such a day", segmented(byArrows), "Due", "2026-02-31", "read()", "1-2-2020",
			"it takes a date such as 2026-01-31, or"},
		{"segments that refuse", segmented(byArrows + `if (p == parts[2] && now > 2020) set(p, 2020);`), "Due", "2022-03-04",
			"read()", "1-2-2020", "it takes a date such as"},
	} {
		c.show(t, url+"/", h.html)
		e, err := run(t, c, Fill, FillParams{Element: h.element, Value: h.given.(string)})
		h.check(t, c, e, err)
	}
}

// TestFillCommits fills in fields that a page reads at some event: it has the value then, or the answer says what is
// left to do. What the page does not take leaves the field, and what the page has read, as they were.
func TestFillCommits(t *testing.T) {
	c := startChrome(t)
	url := site(t, c)
	// read returns a field whose page reads it at an event, by an expression that is null for what it cannot read.
	read := func(attributes, events, by string) string {
		return `<label>Field <input id=f ` + attributes + `></label><script>let kept = "none"; for (const type of "` + events +
			`".split(" ")) f.addEventListener(type, (e) => { if (e.key && e.key != "Enter") return; const v = f.value, r = ` + by + `;
			if (r !== null) { kept = r; f.value = r } else f.value = kept == "none" ? "" : kept })</script>`
	}
	const any, word = "v", `/^(Rome|Oslo)$/.test(v) ? v : null`
	const uk = `/^\d\d? [A-Z][a-z][a-z] \d{4}$/.test(v) ? v : null`
	for _, h := range []handled{
		{"a text, at change", read("", "change", any), "Field", "Ada", "kept", "Ada", `"on"`},
		{"a text, at blur", read("", "blur", any), "Field", "Ada", "kept", "Ada", `"on"`},
		{"a text, at focusout", read("", "focusout", any), "Field", "Ada", "kept", "Ada", `"on"`},
		{"a text, at keyup", `<label>Field <input id=f onkeyup="kept = value"></label><script>let kept = ""</script>`, "Field", "Ada", "kept",
			"Ada", `"on"`},
		{"a number that might list completions, at change", read("value=3 autocomplete=off", "change", any), "Field", "8", "kept", "8", `"on"`},
		{"a field in a label with a button", `<label>Phone <button aria-label=Country>+47</button><input id=f></label>`, "Phone", "123", "f.value", "123", `"on"`},
		{"a number, at change", read("type=number", "change", any), "Field", "4", "kept", "4", `"on"`},
		{"a form of money, at blur", read("value=$0.00", "blur", `isNaN(v) ? null : "$" + (+v).toFixed(2)`), "Field", "1234.5", "kept",
			"$1234.50", "another form"},
		{"no number, at blur", read("", "blur", `isNaN(v) || !v ? null : v`), "Field", "lots", "f.value + kept", "none", refusedValue},
		{"no such word, at change", read("", "change", word), "Field", "Atlantis", "f.value + kept", "none", refusedValue},
		{"a date in words, at change", read("", "change", uk), "Field", "10 Apr 2026", "kept", "10 Apr 2026", `"on"`},
		{"a date for a form with words", read(`placeholder="dd mmm yyyy"`, "change", uk), "Field", "2026-04-10", "kept",
			"10 Apr 2026", "another form"},
		{"a date for a form in German", read("placeholder=TT.MM.JJJJ", "blur", `/^\d\d\.\d\d\.\d{4}$/.test(v) ? v : null`), "Field",
			"2026-04-09", "kept", "09.04.2026", "another form"},
		{"no date, where one was, at blur", read("placeholder=MM/DD/YYYY", "blur", `/^\d/.test(v) ? v : null`), "Field", "someday",
			"f.value + kept", "none", refusedValue},
		{"another month than was given", read("", "change", `"April 9, 2026"`), "Field", "2026-03-09", "f.value", "April 9, 2026",
			refusedValue},
		{"a date and a time in words", read("", "change", `"March 9, 2026 2:30 PM"`), "Field", "2026-03-09T14:30", "kept",
			"March 9, 2026 2:30 PM", "another form"},
		{"a field that has the focus afterwards", read("", "change", any), "Field", "Ada", "document.activeElement.id", "f", `"on"`},
		{"one whose text shows a list", `<label>Field <input id=f onblur="l.hidden = true" oninput="l.hidden = false; l.textContent = 'Ada'"></label>
			<p id=l hidden style="position: absolute; margin: 0; width: 300px"></p>`, "Field", "A", "l.textContent + l.hidden", "Adafalse", "page.press Tab"},
		{"one that completes", read("autocomplete=off", "blur", `(kept = "left", v)`), "Field", "A", "kept", "none", `"on"`},
		{"one that goes when it is left", `<label>Field <input id=f onblur="did = f.value; f.remove()"></label><script>did = ""</script>`,
			"Field", "Ada", "did", "Ada", "went away"},
		{"one that makes tags", `<label class=chips>Field <input id=f></label>`, "Field", "red", "f.value", "red", "page.press Enter makes it one"},
		{"an item of a list when it is left", `<label>Field <input id=f></label><ul id=l></ul><script>f.onblur = () => { if (f.value)
			l.innerHTML += "<li>" + f.value; f.value = "" }</script>`, "Field", "red", "l.textContent + f.value", "red", "took the text"},
		{"no address", `<label>Field <input id=f type=email value=a@b.c></label>`, "Field", "nonsense", "f.value", "a@b.c",
			"an e-mail address"},
		{"no address of a page", `<label>Field <input id=f type=url></label>`, "Field", "example", "f.value", "", "https://example.com"},
		{"too short", `<label>Field <input id=f minlength=8 value=></label>`, "Field", "abc", "f.value", "", "minlength 8"},
		{"a mask that keeps a part", `<label>Field <input id=f value="__.20__"></label><script>f.oninput = () => { const d =
			f.value.replace("20", "").replace(/[^0-9]/g, "").slice(0, 4); f.value = d.slice(0, 2).padEnd(2, "_") + ".20" + d.slice(2).padEnd(2, "_") }
			</script>`, "Field", "abcd", "f.value", "__.20__", refusedValue},
		{"a code of four fields", codeFields, "Digit 1", "4711", "read()", "4711", `"on"`},
		{"a code, by the name of the group", codeFields, "Code", "4711", "read()", "4711", `"on"`},
		{"a code that is too long", codeFields, "Digit 1", "47110", "read()", "", "one character in each of 4 fields"},
		{"a code of figures", codeFields, "Code", "47x1", "read()", "", refusedValue},
		{"a group of other fields", `<fieldset><legend>Stars</legend><input type=radio aria-label=One><input type=radio aria-label=Two></fieldset>
			<p id=f></p>`, "Stars", "2", "f.textContent", "", `it has radio "One"`},
		{"an editor in place of a hidden field", `<label for=f>Field</label><textarea id=f style="display:none">old</textarea><div contenteditable
			oninput="f.value = innerText">old</div>`, "Field", "new", "f.value", "new", `"on"`},
		{"an editor that closes brackets", `<div id=f contenteditable role=textbox aria-label=Field>old</div><script>let model = "old";
			f.addEventListener("beforeinput", (e) => { e.preventDefault(); const given = e.data === "(" ? "()" : e.data || "";
			setTimeout(() => f.textContent = model = given, 50) })</script>`, "Field", "f(x)", "model", "f(x)", `"on"`},
	} {
		c.show(t, url+"/", h.html)
		e, err := run(t, c, Fill, FillParams{Element: h.element, Value: h.given.(string)})
		h.check(t, c, e, err)
	}
}

// codeFields are fields of one figure each, which hand on the focus.
const codeFields = `<fieldset><legend>Code</legend><input aria-label="Digit 1" maxlength=1><input aria-label="Digit 2" maxlength=1><input
	aria-label="Digit 3" maxlength=1><input aria-label="Digit 4" maxlength=1></fieldset><script>const all = [...document.querySelectorAll("input")];
	const read = () => all.map((x) => x.value).join(""); all.forEach((x, i) => x.oninput = () => { if (/\D/.test(x.value)) x.value = "";
	if (x.value) all[i + 1]?.focus() })</script>`

// stars returns what makes a slider a row of five stars, with what it does at a click.
func stars(click string) string {
	return `<script>n = 0; f.innerHTML = [1, 2, 3, 4, 5].map((n) => "<span style='display:inline-block;width:40px'>" + n + "</span>").join("");
		f.onclick = (e) => { ` + click + ` }</script>`
}

// slider returns a slider with what it does on a key; n is its number, and set gives it another one.
func slider(attributes, onkey string) string {
	return `<div id=f role=slider tabindex=0 aria-label=Size style="width:200px;height:20px" ` + attributes + `></div><script>
		let n = +f.getAttribute("aria-valuenow"); const set = (to) => f.setAttribute("aria-valuenow", n = Math.min(
		+f.getAttribute("aria-valuemax"), Math.max(+f.getAttribute("aria-valuemin"), to)));
		f.onkeydown = (e) => { const k = e.key; ` + onkey + ` }</script>`
}

// TestFillSliders gives numbers to sliders and spin buttons.
func TestFillSliders(t *testing.T) {
	c := startChrome(t)
	url := site(t, c)
	const to100 = `aria-valuemin=0 aria-valuemax=100 aria-valuenow=20`
	const arrows = `if (k == "ArrowRight") set(n + 5); if (k == "ArrowLeft") set(n - 5);`
	const now = `f.getAttribute("aria-valuenow")`
	const byScale = `const all = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000]; set(all[all.indexOf(n) + (k == "ArrowRight" ? 1 :
		k == "ArrowLeft" ? -1 : 0)] ?? n)`
	const mouseHandle = `<div id=t style="position:relative;width:200px;height:6px;margin:20px"><div id=h role=slider aria-label=Size
		aria-valuemin=0 aria-valuemax=100 aria-valuenow=20 style="position:absolute;top:-7px;left:40px;width:20px;height:20px;margin-left:-10px">
		</div></div><script>h.onmousedown = () => { onmousemove = (e) => { const n = Math.round(Math.max(0, Math.min(100, (e.clientX -
		t.getBoundingClientRect().left) / 2))); h.ariaValueNow = n; h.style.left = n * 2 + "px" } }; onmouseup = () => onmousemove = null</script>`
	for _, h := range []handled{
		{"one of the browser", `<label>Size <input id=f type=range step=10></label>`, "Size", "70", "f.value", "70", "by value"},
		{"one of the browser, between its steps", `<label>Size <input id=f type=range step=10></label>`, "Size", "72", "f.value",
			"50", "step 10"},
		{"a step of five", slider(to100, arrows), "Size", "65", now, "65", `"on"`},
		{"down", slider(to100, arrows), "Size", "5", now, "5", `"on"`},
		{"already there", slider(to100, arrows), "Size", "20", now, "20", `"on"`},
		{"from right to left", slider(to100, `if (k == "ArrowRight") set(n - 1); if (k == "ArrowLeft") set(n + 1);`), "Size",
			"90", now, "90", `"on"`},
		{"upright", slider(to100, `if (k == "ArrowUp") set(n + 2); if (k == "ArrowDown") set(n - 2);`), "Size", "44", now, "44",
			`"on"`},
		{"steps that grow", slider(to100, `if (k == "ArrowRight") set(n + (n < 50 ? 1 : 10)); if (k == "ArrowLeft") set(n - 1)`),
			"Size", "80", now, "80", `"on"`},
		{"fractions", slider(`aria-valuemin=0 aria-valuemax=1 aria-valuenow=0`, `if (k == "ArrowRight") set(+(n + .1).toFixed(1))`),
			"Size", "0.7", now, "0.7", `"on"`},
		{"past its end", slider(to100, arrows), "Size", "500", now, "20", "aria-valuemax 100"},
		{"between its steps", slider(to100, arrows), "Size", "42", now, "20", refusedValue},
		{"not a number", slider(to100, arrows), "Size", "loud", now, "20", refusedValue},
		{"without keys", slider(to100, ``), "Size", "50", now, "20", refusedValue},
		{"stars without a number yet", slider("aria-valuemin=0 aria-valuemax=5", "") + stars(`set(+e.target.textContent)`), "Size", "3", now,
			"3", `"on"`},
		{"stars that nothing moves", slider("aria-valuemin=0 aria-valuemax=5", "") + stars(""), "Size", "3", now + `+""`, "null", refusedValue},
		{"unequal steps", slider(`aria-valuemin=1 aria-valuemax=1000 aria-valuenow=1`, byScale), "Size", "200", now, "200", `"on"`},
		{"between unequal steps", slider(`aria-valuemin=1 aria-valuemax=1000 aria-valuenow=1`, byScale), "Size", "300", now, "1",
			"the nearest that it accepts: 200 and 500"},
		{"a handle without keys", mouseHandle, "Size", "65", "h.ariaValueNow", "65", `"on"`},
		{"a handle whose keys move it too far", mouseHandle + `<script>h.tabIndex = 0; h.onkeydown = (e) => { if (e.key == "ArrowRight")
			h.ariaValueNow = Math.min(100, +h.ariaValueNow + 10); h.style.left = h.ariaValueNow * 2 + "px" }</script>`, "Size", "65",
			"h.ariaValueNow", "65", `"on"`},
		{"past the end of its track", mouseHandle, "Size", "150", "h.ariaValueNow", "20", refusedValue},
		{"one behind what is drawn", `<div style="width:200px;height:0;position:relative" onkeydown="if (event.key == 'ArrowRight') f.value = ++n;
			event.preventDefault()"><input id=f type=range readonly tabindex=-1 aria-label=Size value=20 oninput="value = n"
			style="position:absolute;height:0;clip:rect(0,0,0,0)"></div><script>let n = 20</script>`, "Size", "23", "String(n)", "23", `"on"`},
		{"one whose number comes a frame later", slider(to100, arrows+`const s = n; f.setAttribute("aria-valuenow", s - (k == "ArrowRight" ? 5 : 0));
			requestAnimationFrame(() => f.setAttribute("aria-valuenow", s))`), "Size", "60", "String(n)", "60", `"on"`},
		{"a spin button", strings.Replace(slider(to100, `if (k == "ArrowUp") set(n + 1); if (k == "ArrowDown") set(n - 1);`),
			"role=slider", "role=spinbutton", 1), "Size", "31", now, "31", `"on"`},
	} {
		c.show(t, url+"/", h.html)
		e, err := run(t, c, Fill, FillParams{Element: h.element, Value: h.given.(string)})
		h.check(t, c, e, err)
	}
}

// phone returns a field of a phone number, from which it takes the country's code. It does with that what is given.
func phone(code string) string {
	return `<label for=f>Phone</label><p><b id=c>+1</b><input id=f type=tel></p><script>f.oninput = () => {
		const m = /^\+\d\d/.exec(f.value); if (m) { f.value = f.value.slice(3); ` + code + ` } }</script>`
}

// TestFillText fills in fields that form, refuse or handle text themselves.
func TestFillText(t *testing.T) {
	c := startChrome(t)
	url := site(t, c)
	const mask = `<label>Phone <input id=f></label><script>f.oninput = () => { const d = f.value.replace(/\D/g, "").slice(0, 6);
		f.value = "(" + d.slice(0, 2) + ") " + d.slice(2, 5) + "-" + d.slice(5) }</script>`
	const model = `<div id=f contenteditable role=textbox aria-label=Note>old</div><script>let model = "old"; const show = () => {
		f.textContent = model; getSelection().collapse(f, f.childNodes.length) };`
	// An editor that draws its text itself: an invisible field receives what is typed, and what is pasted unless told.
	drawn := func(paste string) string {
		return `<textarea id=f aria-label=Code style="opacity: 0; width: 1ch">` + "\n\n" + `</textarea><pre></pre><script>
		let model = "old\nlines", all = false, put = (text) => { model = all ? text : model + text; all = false };
		f.onkeydown = (e) => { if (e.key == "a" && (e.ctrlKey || e.metaKey)) { e.preventDefault(); all = true }
			else if (e.key == "z" && (e.ctrlKey || e.metaKey)) model = "old\nlines";
			else if (e.key == "ArrowRight") all = false; else if (e.key == "Delete") put("") };
		f.oncopy = (e) => { e.preventDefault(); e.clipboardData.setData("text/plain", all ? model : "") };
		f.onpaste = (e) => { e.preventDefault(); ` + paste + ` };
		f.oninput = () => { if (!/nothing/.test("` + paste + `")) put(f.value.split("\n")[0]); f.value = "" }</script>`
	}
	const pasted, drawnText = `put(e.clipboardData.getData('text/plain'))`, `model.replaceAll("\n", "|")`
	// Part of the name of an editor in another frame is all of the name of a frame.
	const framed = `<iframe srcdoc="<div contenteditable aria-label='Rich Text Area'>old"></iframe><iframe title="Rich text"
		srcdoc="<p contenteditable>"></iframe>`
	const texts = `[frames[0], frames[1]].map((f) => f.document.body.innerText.trim()).join()`
	for _, h := range []handled{
		{"a mask", mask, "Phone", "123456", "f.value", "(12) 345-6", `"value":"(12) 345-6"`},
		{"letters in a mask", mask, "Phone", "abc", "f.value", "", refusedValue},
		{"money", `<label>Sum <input id=f></label><script>f.oninput = () => f.value = (+f.value).toLocaleString("en") + ".00"</script>`,
			"Sum", "1234", "f.value", "1,234.00", "another form"},
		{"a prefix that stays", `<label>Phone <input id=f value="+1 "></label><script>f.oninput = () => { if (!f.value.startsWith("+1 "))
			f.value = "+1 " + f.value }</script>`, "Phone", "555", "f.value", "+1 555", "another form"},
		{"a phone number whose code is shown beside it", phone(`c.textContent = m[0]`), "Phone", "+49 30 901820",
			"c.textContent + f.value", "+49 30 901820", "another form"},
		{"a phone number whose code is lost", phone(""), "Phone", "+49 30 901820", "c.textContent + f.value", "+1",
			refusedValue},
		{"a mask of keys", `<label>Code <input id=f></label><script>let kept = ""; f.onkeydown = (e) => {
			if (/^\d$/.test(e.key)) kept += e.key; if (e.key == "Delete") kept = ""; };
			f.oninput = () => f.value = kept.replace(/(..)/, "$1-")</script>`, "Code", "1234", "f.value", "12-34", "another form"},
		{"a state of digits", `<label>Age <input id=f value=10></label><script>let state = "10"; f.oninput = () => {
			if (/^\d*$/.test(f.value)) state = f.value; f.value = state }</script>`, "Age", "old", "f.value", "10", refusedValue},
		{"a state that comes later", `<label>Age <input id=f value=10></label><script>f.oninput = () => setTimeout(() =>
			f.value = "10", 9)</script>`, "Age", "77", "f.value", "10", refusedValue},
		{"too long", `<label>Code <input id=f maxlength=3 value=ab></label>`, "Code", "abcdef", "f.value", "ab", "maxlength 3"},
		{"a pattern", `<label>Code <input id=f pattern="[A-Z]{3}" title="three capitals" value=ABC></label>`, "Code", "abc1",
			"f.value", "ABC", "pattern [A-Z]{3}, title three capitals"},
		{"a pattern that no form checks", `<form novalidate><label>Code <input id=f pattern="[A-Z]{3}"></label></form>`, "Code",
			"abc1", "f.value", "abc1", `"on"`},
		{"a number that is cut when it is left", `<label>Age <input id=f role=spinbutton aria-valuemax=99 value=5 onblur="if (+value > 99)
			value = 99"></label>`, "Age", "120", "f.value", "5", "aria-valuemax 99"},
		{"a number past its end", `<label>Age <input id=f type=number max=99 value=5></label>`, "Age", "120", "f.value", "5", "max 99"},
		{"letters for a number", `<label>Age <input id=f type=number value=5></label>`, "Age", "many", "f.value", "5", "a number"},
		{"an editor", model + `f.oninput = () => model = f.textContent</script>`, "Note", "new text", "model", "new text", `"on"`},
		{"an editor with a model", model + `f.addEventListener("beforeinput", (e) => { e.preventDefault(); const all = getSelection() +
			"" == model; if (e.data !== null) model = (all ? "" : model) + e.data; else if (all) model = ""; show() })</script>`,
			"Note", "new text", "model", "new text", `"on"`},
		{"an editor of keys", model + `f.addEventListener("beforeinput", (e) => e.preventDefault()); f.onkeydown = (e) => {
			if (e.key == "Delete") model = ""; if (e.key.length == 1 && !e.ctrlKey) model += e.key; show() }</script>`, "Note", "new text",
			"model", "new text", `"on"`},
		{"a paragraph of an editor", `<div contenteditable role=textbox aria-label=Note><p>one</p><p id=f>old</p></div>`, "css=#f", "new",
			"f.parentNode.innerText.replace(/\\n+/g, '|')", "one|new", `"on"`},
		{"an empty paragraph of an editor", `<div contenteditable role=textbox aria-label=Note><p>one</p><p id=f><br></p></div>`, "css=#f",
			"new", "f.parentNode.innerText.replace(/\\n+/g, '|')", "one|new", `"on"`},
		{"a heading that can be edited", `<h1 id=f contenteditable>Title</h1>`, "css=h1", "New", "f.innerText", "New", `"on"`},
		{"the editor of a frame", framed, "Rich text", "new", texts, "old,new", `"on"`},
		{"a frame that is its document's editor", strings.Replace(framed, `"<p contenteditable>"`, `"<body onload=document.designMode='on'>"`, 1),
			`Iframe "Rich text"`, "new", texts, "old,new", `"on"`},
		{"a frame of two fields", strings.Replace(framed, `"<p contenteditable>"`, `"<input><p contenteditable>"`, 1), "Rich text", "new", texts, "old,", "it has textbox"},
		{"an element that only has the role of a field", `<div id=f role=textbox aria-label=Note>old</div>`, "Note", "x", "f.textContent", "old",
			"page.click presses it"},
		{"one that Enter commits", `<input id=f aria-label=Note value=old><script>let k = "old"; f.onblur = () => f.value = k; f.onkeydown =
			(e) => { if (e.key == "Enter") k = f.value }</script>`, "Note", "x", "f.value", "old", "does not take \"x\"; it was left unchanged; if Enter"},
		{"an editor that breaks lines later", model + `let lines = 0; f.addEventListener("beforeinput", (e) => { e.preventDefault();
			if (e.inputType == "insertText" && e.data.length == 1) { model += lines ? e.data + "\n" : e.data; show() } else if (/Delete|delete/.test(e.inputType)) {
			model = ""; show() } else if (e.inputType == "insertParagraph") { model += "\n"; lines++;
			requestAnimationFrame(() => { lines--; show() }) } })</script>`, "Note", "one\ntwo", `model.replace("\n", "|")`, "one|two", `"on"`},
		{"an editor that takes nothing", model + `f.addEventListener("beforeinput", (e) => { e.preventDefault() })</script>`, "Note",
			"new text", "f.textContent", "old", refusedValue},
		{"an editor that draws its text", drawn(pasted), "Code", "if (a) {\n  b()\n}", drawnText, "if (a) {|  b()|}", `"on"`},
		{"an editor that draws its text, cleared", drawn(pasted), "Code", "", drawnText, "", `"on"`},
		{"an editor that draws its text and is not pasted into", drawn(""), "Code", "new", drawnText, "new", `"on"`},
		{"an editor that draws its text and takes nothing", drawn("/* nothing */"), "Code", "x", drawnText, "old|lines",
			"left unchanged"},
		{"an editor with a mark for its caret", `<div id=f contenteditable role=textbox aria-label=Note oninput="if (!textContent)
			textContent = '\ufeff'">old</div>`, "Note", "", "`${f.textContent.length}`", "1", `"on"`},
		{"a label", `<label id=l for=f>Name</label><p><input id=f>`, "css=#l", "Ada", "f.value", "Ada", `"on"`},
		{"a custom element by its label", `<label for=c>Name</label><my-field id=c></my-field><script>c.attachShadow({mode: "open"}).innerHTML =
			"<input>"; const f = c.shadowRoot.firstChild</script>`, "Name", "Ada", "f.value", "Ada", `"on"`},
		{"by the label of a custom element", `<label for=c>Name</label><my-field id=c></my-field><script>c.attachShadow({mode: "open"}).innerHTML =
			"<input>"; const f = c.shadowRoot.firstChild</script>`, "css=label", "Ada", "f.value", "Ada", `"on"`},
		{"a label of no native field", `<label for=f>Name</label><div id=f contenteditable role=textbox>old</div>`, "Name", "Ada",
			"f.textContent", "Ada", `"on"`},
		{"a box around a field", `<div id=l><span>Name</span><input id=f></div>`, "css=#l", "Ada", "f.value", "Ada", `"on"`},
		{"a list of the page", `<div id=f role=listbox aria-label=Size><div role=option onclick="did = 'L'">L</div></div><script>did = ""
			</script>`, "Size", "L", "did", "L", `"on"`},
		{"a list that stays open", `<input id=f role=combobox aria-label=City aria-expanded=false oninput="f.ariaExpanded = 'true'">`,
			"City", "Os", "f.value", "Os", "no option is chosen"},
	} {
		c.show(t, url+"/", h.html)
		e, err := run(t, c, Fill, FillParams{Element: h.element, Value: h.given.(string)})
		h.check(t, c, e, err)
	}
}

// TestSelectOptions chooses options of native lists and of those that pages make.
func TestSelectOptions(t *testing.T) {
	c := startChrome(t)
	url := site(t, c)
	const native = `<label>Fruit <select id=f><option>Apple<option disabled>Cherry<optgroup label=Old disabled><option>Fig</optgroup>
		<option>Date</select></label>`
	// widget is a list that a click opens, in another place of the page.
	widget := func(control, list string) string {
		return `<title>List</title><div role=listbox aria-label=Other><div role=option>Banana</div><div role=option>Other</div></div>` + control +
			`<p style="height:30px"></p><div id=l hidden>` + list + `</div><script>let chosen = [];
			const toggle = (on) => { l.hidden = !on; f.ariaExpanded = String(on) };
			l.onclick = (e) => { const o = e.target.closest("[role=option],li,.o"); if (!o || o.ariaDisabled) return;
				chosen.push(o.textContent); o.ariaSelected = "true"; if (!window.several) toggle(false) }</script>`
	}
	const options = `<div role=listbox id=list><div role=option>Apple</div><div role=option data-value=b>Banana</div>
		<div role=option aria-disabled=true>Cherry</div></div>`
	const button = `<div id=f role=combobox tabindex=0 aria-label=Fruit aria-controls=list aria-expanded=false onclick="toggle(l.hidden)">Choose</div>`
	const filter = `<input id=f role=combobox aria-label=Fruit aria-expanded=false aria-controls=list oninput="toggle(true);
		window.list.innerHTML = f.value == 'Banana' ? '<div role=option>Banana</div>' : ''">`
	const lists = `<input id=f readonly aria-label=Region aria-haspopup=listbox onclick="l.hidden = false"><div id=l hidden><ul role=menu id=a></ul>
		<ul role=menu id=b></ul></div><script>let chosen = ""; const all = {North: ["Oslo", "Bergen"], South: ["Rome"]};
		const fill = (ul, words, then) => { ul.replaceChildren(...words.map((word) => { const li = document.createElement("li");
			li.role = "menuitem"; if (ul === a) li.ariaHasPopup = "true"; li.textContent = word; li.onclick = () => then(word); return li })) };
		fill(a, Object.keys(all), (up) => fill(b, all[up], (word) => { chosen = f.value = up + " / " + word; l.hidden = true }))</script>`
	// tags is a list of several, which shows what is chosen before its field. It offers all, or only what is not chosen.
	tags := func(offersAll bool) string {
		return fmt.Sprintf(`<div style="width:300px"><span id=all></span><span><input id=f role=combobox aria-label=Colour aria-controls=l
			aria-expanded=false onclick="toggle(true)" readonly size=3></span></div><div id=l role=listbox hidden></div><script>let chosen = ["Red",
			"Green"]; const toggle = (on) => { l.hidden = !on; f.ariaExpanded = String(on) }; f.onkeydown = (e) => e.key == "Escape" && toggle(false);
			const flip = (c) => { chosen = chosen.includes(c) ? chosen.filter((x) => x != c) : [...chosen, c]; show() };
			const button = (c) => "<i aria-hidden=true style=cursor:pointer onclick=flip(this.title) title=" + c + ">×</i>", show = () => {
			all.innerHTML = chosen.map((c) => "<span><b>" + c + "</b>" + button(c) + "</span> ").join(""); l.innerHTML = ["Red", "Green", "Blue",
			"Pink"].filter((c) => %v || !chosen.includes(c)).map((c) => "<div role=option onclick=flip(this.textContent)>" + c + "</div>").join("") };
			show()</script>`, offersAll)
	}
	// tree is a list with a branch, which is chosen by a click and has an item that cannot be.
	const tree = `<div id=f role=combobox tabindex=0 aria-label=Town aria-controls=l aria-expanded=false onclick="toggle(l.hidden)">Bern</div><div
		id=l role=tree hidden><div role=treeitem aria-expanded=false id=b><span>Norway</span><div role=group hidden><div role=treeitem
		aria-disabled=true>Oslo</div><div role=treeitem>Bergen</div></div></div><div role=treeitem>Bern</div></div><script>
		const toggle = (on) => { l.hidden = !on; f.ariaExpanded = String(on) }; let clicks = 0;
		l.onclick = (e) => { const o = e.target.closest("[role=treeitem]"); if (o.ariaDisabled) return; clicks++; if (o === b) {
		b.ariaExpanded = String(b.ariaExpanded != "true"); b.lastChild.hidden = b.ariaExpanded != "true" }
		f.textContent = o === b ? "Norway" : o.textContent; if (o !== b) toggle(false) }</script>`
	opened := strings.NewReplacer("=false id=b", "=true id=b", "role=group hidden", "role=group").Replace(tree)
	for _, h := range []handled{
		{"an item in a branch", tree, "Town", "Norway / Bergen", "f.textContent", "Bergen", `"on"`},
		{"an item in a branch that is open", opened, "Town", "Norway / Bergen", "f.textContent + clicks", "Bergen1", `"on"`},
		{"an item that is refused, after its branch was chosen", tree, "Town", "Norway / Oslo", "f.textContent", "Bern",
			`it has disabled "Oslo"`},
		{"an item that is not there, after its branch was chosen", tree, "Town", "Norway / Rome", "f.textContent", "Bern", `no option "Rome"`},
		{"an item of a closed branch", tree, "Town", "Bergen", "f.textContent", "Bern", `option "Norway / .."`},
		{"a custom element by its label", `<label for=c>Fruit</label><my-list id=c></my-list><script>c.attachShadow({mode: "open"}).innerHTML =
			"<select><option>Apple<option>Date</select>"; const s = c.shadowRoot.firstChild</script>`, "Fruit", "Date", "s.value", "Date", `"on"`},
		{"a field with suggestions", `<label>Fruit <input id=f list=l></label><datalist id=l><option>Apple<option value=d>Date</datalist>`, "Fruit",
			"Date", "f.value", "d", `"on"`},
		{"none of the suggestions", `<label>Fruit <input id=f list=l value=old></label><datalist id=l><option>Apple</datalist>`, "Fruit", "Date",
			"f.value", "old", `it has no option "Date"`},
		{"tags, in place of which others come", tags(false), "Colour", "Red,Blue", "chosen.join()", "Red,Blue", `"on"`},
		{"tags of a list that takes back", tags(true), "Colour", "Red,Blue", "chosen.join()", "Red,Blue", `"on"`},
		{"one of two tags", tags(false), "Colour", "Green", "chosen.join() + f.ariaExpanded", "Greenfalse", `"on"`},
		{"a tag in place of all", tags(true), "Colour", "Pink", "chosen.join()", "Pink", `"on"`},
		{"the same tags", tags(true), "Colour", "Red,Green", "chosen.join()", "Red,Green", "it is so already"},
		{"one of the browser", native, "Fruit", "Date", "f.value", "Date", `"on"`},
		{"a disabled one", native, "Fruit", "Cherry", "f.value", "Apple", refusedValue},
		{"one of a disabled group", native, "Fruit", "Fig", "f.value", "Apple", `it has option "Apple", option "Date"`},
		{"one too many", native, "Fruit", "Apple,Date", "f.value", "Apple", "not_accepted: combobox \"Fruit\" "},
		{"a list of the page", widget(button, options), "Fruit", "Banana", "chosen.join() + l.hidden", "Bananatrue", `combobox \"Fruit\"`},
		{"a list that says it is closed", widget(strings.Replace(button, "toggle(l.hidden)", "l.hidden = !l.hidden", 1),
			options), "Fruit", "Banana", "chosen.join() + l.hidden", "Bananatrue", `combobox \"Fruit\"`},
		{"a menu that says it is closed", widget(`<button id=f aria-haspopup=menu aria-expanded=false onclick="l.hidden = !l.hidden">File</button>`,
			`<div role=menu><div role=menuitem class=o>Save</div></div>`), "File", "Save", "chosen.join()", "Save", `"on"`},
		{"a text in place of a hidden list", widget(`<label for=n>Fruit</label><select id=n style="display:none"><option>Kiwi<option>Lime</select>
			<div id=f onclick="toggle(l.hidden)"><a><span>Kiwi</span></a></div>`, `<ul><li onclick="n.value = 'Lime'">Lime</ul>`), "Fruit",
			"Lime", "chosen.join() + n.value", "LimeLime", `"on"`},
		{"by its value", widget(button, options), "Fruit", "b", "chosen.join()", "Banana", `"on"`},
		{"a path of lists that open each other", lists, "Region", "North / Oslo", "chosen", "North / Oslo", `"on"`},
		{"a list that opens another one", lists, "Region", "North", "chosen", "", `the option is "North / .."`},
		{"a path that ends elsewhere", lists, "Region", "North / Rome", "chosen", "", `no option "Rome"`},
		{"a disabled option of it", widget(button, options), "Fruit", "Cherry", "chosen.join()", "",
			`it has option "Apple", option "Banana"`},
		{"none of its options", widget(button, options), "Fruit", "Grape", "chosen.join()", "", "no_match: "},
		{"a list of which nothing says whose it is", widget(strings.Replace(button, "aria-controls=list", "", 1),
			strings.Replace(options, "Banana", "Kiwi", 1)), "Fruit", "Kiwi", "chosen.join()", "Kiwi", `"on"`},
		{"by the label of what is not native", widget(`<label for=f>Sort</label>`+strings.Replace(button, "aria-label=Fruit", "", 1),
			options), "Sort", "Banana", "chosen.join()", "Banana", `"on"`},
		{"a read-only field that opens it", widget(`<input id=f readonly aria-label=Fruit aria-haspopup=listbox onclick="toggle(l.hidden)">`,
			options), "Fruit", "Apple", "chosen.join()", "Apple", `"on"`},
		{"a text that lets the pointer through, beside a label", widget(`<label><span>Fruit</span></label><div id=f style="cursor:pointer"
			onclick="toggle(l.hidden)"><div style="pointer-events:none">Fruit</div></div>`, `<ul><li>Kiwi<li>Lime</ul>`), "Fruit", "Kiwi",
			"chosen.join()", "Kiwi", `"on"`},
		{"several", widget(button, strings.Replace(options, "role=listbox", "role=listbox aria-multiselectable=true", 1)+
			`<script>several = true</script>`), "Fruit", "Apple,Banana", "chosen.join() + f.ariaExpanded", "Apple,Bananatrue", `"on"`},
		{"typed to filter", widget(filter, `<div role=listbox id=list></div>`), "Fruit", "Banana", "chosen.join()", "Banana", `"on"`},
		{"typed into a search field of the list", `<div id=f role=combobox tabindex=0 aria-label=Fruit aria-haspopup=listbox>Kiwi</div><div id=l hidden>
			<input id=s role=searchbox><ul role=listbox id=o></ul></div><script>f.onclick = () => { l.hidden = false; s.focus() }; s.oninput = () => {
			o.innerHTML = ["Date", "Fig"].filter((x) => s.value && x.startsWith(s.value)).map((x) => "<li role=option>" + x).join("") }
			o.onclick = (e) => { f.textContent = e.target.textContent; l.hidden = true }</script>`, "Fruit", "Date", "f.textContent", "Date", `"on"`},
		{"typed in vain", widget(filter, `<div role=listbox id=list></div>`), "Fruit", "Kiwi", "chosen.join() + f.value", "", "no_match: "},
		{"two lists of one widget", widget(button, `<div id=list role=listbox style="width:0;height:0;overflow:hidden"><div role=option
			style="width:0;height:0;overflow:hidden">Kiwi</div></div><div class=o>Kiwi</div>`), "Fruit", "Kiwi", "chosen.join()", "Kiwi", `"on"`},
		{"without roles", widget(`<button id=f onclick="toggle(l.hidden)">Fruit</button>`, `<ul><li>Kiwi<li>Lime</ul>`), "Fruit", "Lime",
			"chosen.join()", "Lime", `"on"`},
		{"a native list behind it", widget(`<label for=n>Fruit</label><select id=n tabindex=-1 style="position:absolute;opacity:0">
			<option>Apple<option>Banana</select>`+strings.Replace(button, "aria-label=Fruit", "", 1), options), "Fruit", "Banana",
			"chosen.join() + n.value", "BananaApple", `"on"`},
		{"in a frame", `<iframe srcdoc="<label>Fruit <select id=f><option>Apple<option>Date</select></label>"></iframe>`, "Fruit",
			"Date", "frames[0].f.value", "Date", `"on"`},
		{"one that another has as its value", `<label>Size <select id=f><option value=0>-<option value=a>Large<option value=Large>Huge
			</select></label>`, "Size", "Large", "f.value", "a", `"on"`},
		{"one by its value", `<label>Size <select id=f><option value=0>-<option value=a>Large<option value=b>A</select></label>`, "Size",
			"a", "f.value", "a", `"on"`},
		{"one of two groups", `<label>Size <select id=f><option>-<optgroup label=New><option>Large</optgroup><optgroup label=Old><option>
			Large</select></label>`, "Size", "Large", "f.value", "-", `in group "Old"`},
		{"a list that is filled with the focus", `<label>Size <select id=f onfocus="setTimeout(() => innerHTML = '<option>S<option>L', 99)">
			</select></label>`, "Size", "L", "f.value", "L", `"on"`},
		{"a field", `<label>Name <input id=f value=Ada></label>`, "Name", "Bob", "f.value", "Ada", "not_ready: textbox \"Name\" "},
		{"one that only looks disabled", widget(button, strings.Replace(options, "role=option>",
			"role=option style=cursor:not-allowed>", 1)), "Fruit", "Apple", "chosen.join()", "", refusedValue},
		{"an open list", `<div id=f role=listbox aria-label=Fruit><div role=option onclick="did = 'one'">One</div><div role=option
			onclick="did = 'two'">Two</div></div><script>did = ""</script>`, "Fruit", "Two", "did", "two", `"on"`},
	} {
		c.show(t, url+"/", h.html)
		e, err := run(t, c, Select, SelectParams{Element: h.element, Options: strings.Split(h.given.(string), ",")})
		h.check(t, c, e, err)
	}
	c.show(t, url+"/", widget("<label>Fruit "+strings.Replace(filter, " aria-label=Fruit", "", 1)+"</label>",
		"<div role=listbox id=list></div>")+`<script>l.onclick = () => { f.value = "Banana"; toggle(false) }</script>`)
	e, err := run(t, c, Select, SelectParams{Element: "Fruit", Options: []string{"Banana"}})
	if err != nil || e.Note != "" || c.evaluate(t, "f.value") != `"Banana"` {
		t.Errorf("a field in its label: %s, %s", effects(e), exit(err))
	}
	c.show(t, url+"/", widget(strings.Replace(button, "toggle(l.hidden)", `toggle(f.ariaExpanded != 'true'); clearTimeout(window.goes);
		l.style.pointerEvents = ''`, 1), options)+`<script>l.addEventListener("click", () => { l.hidden = false;
		l.style.pointerEvents = "none"; goes = setTimeout(() => l.hidden = true, 900) })</script>`)
	for _, word := range []string{"Apple", "Banana", "Apple"} { // while the list of the one before goes
		if e, err := run(t, c, Select, SelectParams{Element: "Fruit", Options: []string{word}}); err != nil {
			t.Errorf("%s at once: %s, %s", word, effects(e), exit(err))
		}
	}
	c.show(t, url+"/", native)
	for _, word := range []string{"Date", "css=#f>option:last-child", `option "Date"`} {
		_, err := run(t, c, Click, ClickParams{Element: word})
		if !strings.HasPrefix(exit(err), `not_ready: "Date" is an option of combobox "Fruit" `) || len(host.AsError(err).Steps) != 1 {
			t.Errorf("a click on %s: %s", word, exit(err))
			continue
		}
		step := host.AsError(err).Steps[0]
		if _, err := c.raw(t, strings.TrimPrefix(step.Tool, "page."), string(step.Params)); err != nil ||
			c.evaluate(t, "f.value") != `"Date"` {
			t.Errorf("the step after a click on %s: %s", word, exit(err))
		}
	}
}

// TestClosedBranches looks for items in closed branches of trees: the error names the branch that has the item, if the
// document has it.
func TestClosedBranches(t *testing.T) {
	c := startChrome(t)
	c.open(t, `<ul role=tree><li role=treeitem aria-expanded=false>Fruits<ul role=group hidden><li role=treeitem>Apple</ul>
		<li role=treeitem aria-expanded=false>Roots<ul role=group hidden></ul><li role=treeitem aria-expanded=true>Nuts</ul>`)
	for word, branches := range map[string]string{"Apple": `treeitem "Fruits" REF`, "Leek": `treeitem "Fruits" REF, treeitem "Roots" REF`} {
		_, err := run(t, c, Find, FindParams{Element: word})
		got := regexp.MustCompile(` [a-z]{3}\d+\b`).ReplaceAllString(exit(err), " REF")
		if !strings.HasPrefix(got, `no_match: nothing matches "`+word+`", which may be in a closed branch; nearest: `+branches) || strings.Contains(got, "Nuts") || word == "Apple" && strings.Contains(got, "Roots") {
			t.Errorf("%s: %s", word, got)
		}
	}
}

// dragged returns a list whose items the given script lets be dragged. It has move(item, target).
func dragged(style, item, script string) string {
	list := ""
	for _, name := range []string{"One", "Two", "Three", "Four"} {
		list += "<li " + item + ">" + name + "</li>"
	}
	return `<style>li{width:90px;height:34px;margin:3px;list-style:none;background:#ccd;touch-action:none;user-select:none}` + style +
		`</style><ul id=l>` + list + `</ul><p id=hint>Press Space to lift, the arrow keys to move, Space to drop.</p><p>Bin</p><script>
		const names = () => [...l.children].map((x) => x.textContent).join();
		const move = (x, to) => { if (!x || !to || x == to) return; const all = [...l.children];
			all.indexOf(x) < all.indexOf(to) ? to.after(x) : to.before(x) };
		const at = (e) => document.elementsFromPoint(e.clientX, e.clientY).find((x) => x.tagName == "LI" && x != held);
		let held = null, lifted = null;` + script + `</script>`
}

// tree returns a tree whose items the browser drags, and what it does with one that is dropped.
func tree(item, drop string) string {
	return strings.Replace(dragged("", "role=treeitem draggable=true "+item, `l.ondragstart = (e) => held = e.target;
		l.ondragover = (e) => e.preventDefault(); l.ondrop = (e) => { const to = e.target; `+drop+` }`), "<ul ", "<ul role=tree ", 1)
}

// TestDragItems drags items of lists, in the way that each list has.
func TestDragItems(t *testing.T) {
	c := startChrome(t)
	url := site(t, c)
	const byPointer = `l.onpointerdown = (e) => { held = e.target.closest("li"); l.setPointerCapture(e.pointerId) };
		l.onpointerup = (e) => { const to = at(e); move(held, to); held = null }`
	const byKeys = `l.onkeydown = (e) => { const x = e.target; if (e.key == " ") lifted = lifted ? null : x;
		if (lifted && /Down|Right/.test(e.key)) x.nextSibling?.after(x); if (lifted && /Up|Left/.test(e.key)) x.previousSibling?.before(x);
		x.focus(); e.preventDefault() }`
	const keyed = `tabindex=0 aria-roledescription=sortable aria-describedby=hint`
	for _, h := range []handled{
		{"by pointer events", dragged("", "", byPointer), "One", "Three", "names()", "Two,Three,One,Four", `"on"`},
		{"up", dragged("", "", byPointer), "Four", "Two", "names()", "One,Four,Two,Three", `"on"`},
		{"by mouse events", dragged("", "", `l.onmousedown = (e) => held = e.target; onmouseup = (e) => { move(held, at(e)); held = null }`),
			"One", "Four", "names()", "Two,Three,Four,One", `"on"`},
		{"by the browser", dragged("", "draggable=true", `l.ondragstart = (e) => held = e.target; l.ondragover = (e) => e.preventDefault();
			l.ondrop = (e) => move(held, e.target)`), "One", "Two", "names()", "Two,One,Three,Four", `"on"`},
		{"while it lets the pointer through", dragged("", "", `l.onpointerdown = (e) => { held = e.target; l.style.pointerEvents = "none" };
			onpointerup = (e) => { l.style.pointerEvents = ""; move(held, at(e)); held = null }`), "One", "Three", "names()",
			"Two,Three,One,Four", `"on"`},
		{"past the middle", dragged("", "", `l.onpointerdown = (e) => held = e.target; onpointerup = (e) => { const to = at(e), box =
			to.getBoundingClientRect(); if (e.clientY > box.y + box.height / 2 + 4) to.after(held); held = null }`), "One", "Three",
			"names()", "Two,Three,One,Four", `"on"`},
		{"in a row", dragged("ul{display:flex}", "", byPointer), "One", "Three", "names()", "Two,Three,One,Four", `"on"`},
		{"after a while", dragged("", "", `l.onpointerdown = (e) => held = e.target; onpointerup = (e) => { const x = held, to = at(e);
			x.animate([{opacity: 1}, {opacity: 0}], 200).onfinish = () => move(x, to); held = null }`), "One", "Two", "names()",
			"Two,One,Three,Four", `"on"`},
		{"by keys", dragged("", keyed, byKeys), "One", "Three", "names()", "Two,Three,One,Four", "by keys"},
		{"by keys, in a row", dragged("ul{display:flex}", keyed, byKeys), "Three", "One", "names()", "Three,One,Two,Four",
			"by keys"},
		{"by keys with a modifier", strings.Replace(dragged("", keyed, `l.onkeydown = (e) => { const x = e.target; if (!e.altKey) return;
			if (e.key == "ArrowDown") x.nextSibling?.after(x); x.focus() }`), "Press Space to lift, the arrow keys to move, Space to drop.",
			"Alt + arrow keys move it.", 1), "Two", "Three", "names()", "One,Three,Two,Four", "by keys"},
		{"by keys that do nothing", dragged("", keyed, ``), "One", "Two", "names()", "One,Two,Three,Four", "not_ready: "},
		{"by nothing", dragged("", "", ``), "One", "Two", "names()", "One,Two,Three,Four",
			"was dragged, but the page did not change: "},
		{"chosen only", dragged("", "", `l.onpointerdown = (e) => e.target.ariaCurrent = true`), "One", "Two", "names()",
			"One,Two,Three,Four", "not_ready: "},
		{"announced only", dragged("", "", `l.onpointerup = (e) => document.title = document.body.dataset.said = "dropped"`), "One", "Two",
			"names()", "One,Two,Three,Four", "it is back where it was: "},
		{"beyond the view", dragged("li{margin-bottom:900px}", "", byPointer), "One", "Four", "names()", "Two,Three,Four,One", `"on"`},
		{"beyond the view, by the browser", dragged("li{margin-bottom:900px}", "draggable=true", `l.ondragstart = (e) => held = e.target;
			l.ondragover = (e) => e.preventDefault(); l.ondrop = (e) => move(held, e.target)`), "Four", "One", "names()",
			"Four,One,Two,Three", `"on"`},
		{"after a long press", dragged("", "", `let timer; l.onpointerdown = (e) => { timer = setTimeout(() => held = e.target, 250) };
			onpointermove = () => held || clearTimeout(timer); onpointerup = (e) => { held && move(held, at(e)); held = null }`),
			"One", "Three", "names()", "Two,Three,One,Four", `"on"`},
		{"by the browser, after a while", dragged("", "draggable=true", `ready = 0; l.ondragstart = (e) => { held = e.target;
			ready = performance.now() + 400 }; l.ondragover = (e) => { if (performance.now() > ready) e.preventDefault() };
			l.ondrop = (e) => move(held, e.target)`), "One", "Two", "names()", "Two,One,Three,Four", `"on"`},
		{"item by item", dragged("", "", `l.onpointerdown = (e) => { held = e.target; l.setPointerCapture(e.pointerId) };
			l.onpointermove = (e) => { const next = held?.nextSibling, box = next?.getBoundingClientRect();
			if (box && e.clientY > box.y + box.height / 2 && e.clientY < box.bottom) next.after(held) }; l.onpointerup = () => held = null`),
			"One", "Three", "names()", "Two,Three,One,Four", `"on"`},
		{"with a place that is smaller", dragged("", "", `l.onpointerdown = (e) => { held = e.target; l.setPointerCapture(e.pointerId) };
			l.onpointermove = (e) => { if (held) held.style.cssText = "position: absolute; pointer-events: none" };
			l.onpointerup = (e) => { const to = at(e); held.style.cssText = ""; move(held, to); held = null }`),
			"One", "Three", "names()", "Two,Three,One,Four", `"on"`},
		{"keys that come late", dragged("", keyed, strings.Replace(byKeys, "(lifted &&", "(lifted && !(missed++ < 1) &&", 1)+
			`; missed = 0`), "One", "Three", "names()", "Two,Three,One,Four", "by keys"},
		{"onto an item of a tree, beside it", tree("", "to.after(held)"), "Four", "Two", "names()", "One,Two,Four,Three",
			`it is now beside treeitem \"Two\"`},
		{"onto an item of a tree, into it", tree("", "to.append(held)"), "Three", "One", "String(l.children.length)", "3", `"on"`},
		{"onto an item of a flat tree, into it", tree("aria-level=1", "to.after(held); held.ariaLevel = 2"), "Three", "One",
			"names()", "One,Three,Two,Four", `"on"`},
		{"by a grip", strings.Replace(dragged("b{cursor:grab}", "", `l.onmousedown = (e) => { if (e.target.tagName == "B") held =
			e.target.closest("li") }; onmouseup = (e) => { move(held, at(e)); held = null }`), ">One", "><b>:</b>One", 1), "One",
			"Three", "names()", "Two,Three,:One,Four", `"on":"listitem`},
		{"by a grip, after a long press, with text to select", strings.NewReplacer(">One", "><b class=drag-handle>:</b>One",
			"user-select:none", "").Replace(dragged("", "", `let timer; l.onpointerdown = (e) => { l.className = "pressed";
			if (e.target.tagName == "B") timer = setTimeout(() => held = e.target.closest("li"), 250) };
			onpointermove = (e) => { held ? e.preventDefault() : clearTimeout(timer) }; l.onselectstart = () => !held;
			onpointerup = (e) => { l.className = ""; held && move(held, at(e)); held = null }`)), "One", "Three", "names()",
			"Two,Three,:One,Four", `"on":"listitem`},
		{"to nothing", dragged("", "", byPointer), "One", "Zulu", "names()", "One,Two,Three,Four",
			`no_match: nothing matches "Zulu", where it is to be dragged`},
		{"onto what takes it away", dragged("", "", `onpointerdown = (e) => held = e.target; onpointerup = (e) => {
			if (e.target.textContent == "Bin") held.remove() }`), "Two", "Bin", "names()", "One,Three,Four", `"on"`},
	} {
		c.show(t, url+"/", h.html)
		e, err := run(t, c, Drag, DragParams{Element: h.element, To: h.given.(string)})
		h.check(t, c, e, err)
	}
}

// TestActsThatLeave acts on elements whose events lead to another document, or to the same one again. Each act is told
// as done, with where the page is.
func TestActsThatLeave(t *testing.T) {
	c := startChrome(t)
	url := site(t, c)
	for _, test := range []struct{ html, tool, params string }{
		{`<input aria-label=It oninput="GO">`, "fill", `"value":"a"`},
		{`<input aria-label=It onchange="GO">`, "fill", `"value":"a"`},
		{`<input aria-label=It onfocus="GO">`, "fill", `"value":"a"`},
		{`<form action=/next><input aria-label=It oninput="form.submit()"></form>`, "fill", `"value":"a"`},
		{`<input aria-label=It placeholder=dd/mm/yyyy oninput="GO">`, "fill", `"value":"31/01/2026"`},
		{`<div contenteditable aria-label=It role=textbox oninput="GO"></div>`, "fill", `"value":"a"`},
		{`<input type=date aria-label=It onchange="GO">`, "fill", `"value":"2026-01-31"`},
		{`<input type=range aria-label=It oninput="GO">`, "fill", `"value":"70"`},
		{`<select aria-label=It onchange="GO"><option>A<option>B</select>`, "select", `"options":["B"]`},
		{`<input type=checkbox aria-label=It onchange="GO">`, "check", ``},
		{`<input aria-label=It onkeydown="GO">`, "press", `"key":"a"`},
		{`<button onmouseover="GO">It</button>`, "hover", ``},
		{`<button onclick="GO">It</button>`, "click", ``},
	} {
		for _, way := range []string{"location = '/next'", "location.reload()"} {
			c.show(t, url+"/", strings.Replace(test.html, "GO", way, 1))
			raw, err := c.raw(t, test.tool, strings.ReplaceAll(`{"element":"It",`+test.params+`}`, ",}", "}"))
			var e Effects
			_ = json.Unmarshal(raw, &e)
			if err != nil || e.URL == "" || strings.Contains(e.Note, "went away") {
				t.Errorf("%s, %s: %s, %s", test.html, way, raw, exit(err))
			}
		}
	}
}
