package page_test

import (
	"strings"
	"testing"
)

// TestPartsThatAreFree clicks elements that something covers in part, or that lie below a bar until they are scrolled
// away from it. Whatever its position is, the bar gets no click.
func TestPartsThatAreFree(t *testing.T) {
	c := startChrome(t)
	list := `<title></title><div id=s style="height:200px;overflow:auto">`
	for _, name := range strings.Fields("One Two Three Four Five Six Seven Eight Nine Ten") {
		list += `<button style="display:block;height:50px" onclick="document.title += '` + name + `,'">` + name + `</button>`
	}
	list += "</div>"
	bar := func(css string) string {
		return `<div onclick="document.title += 'bar,'" style="background:#ccc;` + css + `">bar</div>`
	}
	around := func(css, html string) string { return `<div style="position:relative;` + css + `">` + html + `</div>` }
	for _, test := range []struct{ name, html, elements string }{
		{"a bar below a list", around("", list+bar("position:absolute;bottom:0;width:100%;height:70px")), "Four Six Nine"},
		{"a bar on top of a list", around("", list+bar("position:absolute;top:0;width:100%;height:70px")), "Nine Five Two"},
		{"a bar that is moved there", around("", list+bar("height:70px;transform:translateY(-70px)")), "Four Six Nine"},
		{"a sticky bar", around("", list+bar("position:sticky;bottom:0;height:70px;margin-top:-70px")), "Four Six"},
		{"the middle is covered", around("width:300px;height:200px", `<title></title><button style="position:absolute;width:300px;`+
			`height:200px" onclick="document.title += 'Wide,'">Wide</button>`+
			bar("position:absolute;left:60px;top:60px;width:240px;height:140px")), "Wide"},
		{"all but an edge is covered", around("width:300px;height:200px", `<title></title><button style="position:absolute;width:300px;`+
			`height:200px" onclick="document.title += 'Wide,'">Wide</button>`+
			bar("position:absolute;left:0;top:0;width:250px;height:200px")), "Wide"},
	} {
		c.open(t, test.html)
		for _, element := range strings.Fields(test.elements) {
			if _, err := run(t, c, Click, ClickParams{Element: element}); err != nil {
				t.Errorf("%s: %s: %s", test.name, element, exit(err))
			}
		}
		if got, want := c.evaluate(t, "document.title"), `"`+strings.Join(strings.Fields(test.elements), ",")+`,"`; got != want {
			t.Errorf("%s: clicks have reached %s, want %s", test.name, got, want)
		}
	}
	c.open(t, list+bar("position:absolute;inset:0"))
	if _, err := run(t, c, Click, ClickParams{Element: "Two"}); !strings.Contains(exit(err), "it is covered") ||
		c.evaluate(t, "s.scrollTop") != "0" {
		t.Errorf("below what covers all: %s, scrolled to %s", exit(err), c.evaluate(t, "s.scrollTop"))
	}
}

// TestTypedTextIsTold types texts into fields that hold less afterwards, or something else. The answer says what.
func TestTypedTextIsTold(t *testing.T) {
	c := startChrome(t)
	c.open(t, `<title>T</title><label>Memo <textarea maxlength=10>1234</textarea></label><label>Free <input></label>
		<label>Mail <input type=email id=mail value=a></label><div contenteditable id=note>old</div>
		<label>Pin <input type=password maxlength=2></label><label>Search <input onchange="this.value = ''"></label>
		<label>Phone <input oninput="value = value.replace(/^(\d{3})-?(\d)/, '$1-$2')"></label>
		<label>Digits <input oninput="value = value.replace(/\D/g, '')"></label>`)
	for _, test := range []struct{ element, text, want string }{
		{"Memo", "abcdefgh", `the field now holds "1234abcdef"`}, {"Free", "a text", ""}, {"Pin", "1234", ""},
		{"Mail", "@b.de", ""},
		{"Search", "word\n", ""}, {"Phone", "555123", ""}, {"Digits", "a1b2", `the field now holds "12"`},
	} {
		e, err := run(t, c, Type, TypeParams{Element: test.element, Text: test.text})
		if err != nil || !strings.Contains(e.Note, test.want) || test.want == "" && strings.Contains(e.Note, "holds") {
			t.Errorf("%s: %q, %s", test.element, e.Note, exit(err))
		}
	}
	_, err := run(t, c, Type, TypeParams{Element: "css=#note", Text: " new"})
	if got := c.evaluate(t, "mail.value + note.textContent"); err != nil || got != `"a@b.deold new"` {
		t.Errorf("after what they hold: %s, %s", got, exit(err))
	}
}

// TestFormsThatComeLater chooses an option that comes later than its list, and checks boxes by a text without a label.
func TestFormsThatComeLater(t *testing.T) {
	c := startChrome(t)
	c.open(t, `<title>T</title><label>Plan <select id=s><option>-</select></label><input type=radio name=g id=m>Male<br>
		<input type=radio name=g id=f>Female<br><input type=checkbox id=n> News <b>by mail</b>
		<script>setTimeout(() => s.add(new Option("Weekly")), 2500)</script>`)
	_, err := run(t, c, Select, SelectParams{Element: "Plan", Options: []string{"Weekly"}})
	for _, box := range []string{"Male", "Female", "News"} {
		if err == nil {
			_, err = run(t, c, Check, CheckParams{Element: box})
		}
	}
	if got := c.evaluate(t, "[s.value, m.checked, f.checked, n.checked].join()"); err != nil || got != `"Weekly,false,true,true"` {
		t.Errorf("%s, %s", got, exit(err))
	}
}
