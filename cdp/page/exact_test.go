package page_test

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode"
)

// blanks are the characters that a text may lose on its way: white space that HTML does not collapse, controls, and
// what is not shown. Between two letters each stands alone.
func blanks() string {
	var all []string
	for r := rune(0); r < 0x30000; r++ {
		if unicode.In(r, unicode.Z, unicode.Cc, unicode.Cf, unicode.Other_Default_Ignorable_Code_Point,
			unicode.Variation_Selector) && !strings.ContainsRune(" \t\n\f\r", r) {
			all = append(all, "a"+string(r)+"b")
		}
	}
	return strings.Join(all, " ")
}

// TestExactCharacters checks that get, evaluate and text lose none of the characters that are blank or invisible.
func TestExactCharacters(t *testing.T) {
	c := startChrome(t)
	c.show(t, site(t, c)+"/", `<title>T</title><p id=p></p><pre id=pre></pre><code id=code></code><ul><li id=li></ul>
		<table><tr><td id=td></table><h2 id=h></h2><blockquote id=quote></blockquote><input id=input aria-label=In>
		<textarea id=area aria-label=Area></textarea><div id=edit contenteditable role=textbox aria-label=Edit></div>
		<p id=edges></p><p id=alone></p>`)
	want := blanks()
	text := string(must(json.Marshal(want)))
	c.evaluate(t, `{ const text = `+text+`;
		for (const id of ["p", "pre", "code", "li", "td", "h", "quote", "edit"]) document.getElementById(id).textContent = text;
		p.title = input.value = text; area.value = "one\n" + text; edges.textContent = " \n\ufeffx\u00a0 ";
		alone.innerHTML = "<i>y</i>\u00a0<b>z</b>" }`)
	differ := func(about string, got string) {
		t.Helper()
		for _, one := range strings.Split(want, " ") {
			if !strings.Contains(got, one) {
				t.Errorf("%s: %+q is lost", about, one)
			}
		}
	}
	get := func(id, what, of string) (value string) {
		t.Helper()
		r, err := run(t, c, Get, GetParams{Element: "css=#" + id, What: what, Of: of})
		if err != nil || json.Unmarshal(r.Value, &value) != nil {
			t.Fatalf("%s of %s: %.100s, %s", what, id, r.Value, exit(err))
		}
		return value
	}
	for _, id := range []string{"p", "pre", "code", "li", "td", "h", "quote", "edit"} {
		if got := get(id, "text", ""); got != want {
			differ("text of "+id, got)
			t.Errorf("the text of %s has %d bytes, expected %d", id, len(got), len(want))
		}
		if got := get(id, "html", ""); strings.ReplaceAll(got, "&nbsp;", "\u00a0") != want {
			differ("html of "+id, got)
		}
		if id == "edit" {
			continue // Markdown has no controls of this kind
		}
		r, err := run(t, c, Text, TextParams{Element: "css=#" + id, MaxTokens: 50_000})
		if err != nil {
			t.Fatal(exit(err))
		}
		differ("Markdown of "+id, r.Text)
	}
	for about, got := range map[string]string{
		"p.title": get("p", "attribute", "title"), "input": get("input", "value", ""),
		"edit": get("edit", "value", ""), "area": strings.TrimPrefix(get("area", "value", ""), "one\n")} {
		if got != want {
			differ(about, got)
		}
	}
	if r, err := run(t, c, Evaluate, EvaluateParams{Expression: "p.title"}); err != nil || !equalText(r.Value, want) {
		t.Errorf("evaluate: %.100s, %s", r.Value, exit(err))
	}
	if got := get("edges", "text", ""); got != "\ufeffx\u00a0" {
		t.Errorf("the text at the edges is %+q", got)
	}
	r, err := run(t, c, Text, TextParams{Element: "css=#alone", MaxTokens: 100})
	if err != nil || r.Text != "_y_\u00a0**z**" {
		t.Errorf("a blank alone: %+q, %s", r.Text, exit(err))
	}
	if long := strings.Repeat("<b>x</b>", 10_000); c.evaluate(t, `p.innerHTML = "<b>x</b>".repeat(10_000); 1`) != "1" ||
		get("p", "html", "") != long {
		t.Error("long html is not whole")
	}
}

func equalText(raw json.RawMessage, want string) bool {
	var got string
	return json.Unmarshal(raw, &got) == nil && got == want
}

// TestFunctionTexts checks that the text of a function is called, by page.evaluate, or that the answer says that it was
// not and how it would be.
func TestFunctionTexts(t *testing.T) {
	c := startChrome(t)
	c.show(t, site(t, c)+"/", `<title>T</title>`)
	warned := func(raw []string) string { return strings.Join(raw, "|") }
	for _, test := range []struct{ text, value, byPage, byChrome string }{ // the last two are part of the warnings
		{"() => 5", "5", "", "write (EXPRESSION)()"},
		{"async () => 5", "5", "", "write (EXPRESSION)()"},
		{"async x => 5;", "5", "", "write (EXPRESSION)()"},
		{"(a = f(), b) => 5 // six", "", "", "write (EXPRESSION)()"},
		{"(a = Math.abs(1)) => 5", "5", "", "write (EXPRESSION)()"},
		{"/* c */ // d\n () => 5", "5", "", "write (EXPRESSION)()"},
		{"(function () { return 5 })", "null", "write (EXPRESSION)()", "write (EXPRESSION)()"},
		{"document.querySelector", "null", "write (EXPRESSION)()", "write (EXPRESSION)()"},
		{"(class A { })", "null", "write new (EXPRESSION)()", "write new (EXPRESSION)()"},
		{"(function* () { yield 1 })", "null", "write [...(EXPRESSION)()]", "write [...(EXPRESSION)()]"},
		{"(async function* () { yield 1 })", "null", "Array.fromAsync((EXPRESSION)())", "Array.fromAsync((EXPRESSION)())"},
		{"function f1() { return 5 }", "5", "", "add f1() at the end"},
		{"// c\nfunction f2() { return 5 } // d", "5", "", "add f2() at the end"},
		{"async function f3() { return 5 }", "5", "", "add f3() at the end"},
		{"function* f4() { yield 1 }", "{}", "write [...(EXPRESSION)()]", "add [...f4()] at the end"},
		{"async function* f5() { yield 1 }", "{}", "Array.fromAsync((EXPRESSION)())", "add Array.fromAsync(f5()) at the end"},
		{"function f6() {} function f7() {}", "null", "a declaration calls nothing", "a declaration calls nothing"},
		{"class A1 { m() {} }", "null", "add new A1() at the end", ""},
		{"class A2 { m() {} }", "", "", "add new A2() at the end"},
		{"function f8() { return 5 }\nf8()", "5", "", ""},
		{"function f9() {}\nf9()", "null", "", ""},
		{"() => undefined", "null", "", "write (EXPRESSION)()"},
		{"[() => 5].length", "1", "", ""}, {"void 0", "null", "", ""}, {"({}).f", "null", "", ""},
		{"classes = {}", "{}", "", ""},
	} {
		params := string(must(json.Marshal(map[string]any{"expression": test.text})))
		if test.value != "" {
			r, err := c.send(t.Context(), c.pages, "evaluate", params)
			if err != nil {
				t.Fatalf("%s: %s", test.text, exit(err))
			}
			var got struct{ Value json.RawMessage }
			_ = json.Unmarshal(r.Data, &got)
			if all := warned(r.Warnings); string(got.Value) != test.value || !strings.Contains(all, test.byPage) ||
				test.byPage == "" && all != "" {
				t.Errorf("page.evaluate %s: %s, %q; expected %s, %q", test.text, got.Value, all, test.value, test.byPage)
			}
		}
		if test.byPage != "" && test.byChrome == "" {
			continue // it declares a class, which is possible once
		}
		r, err := c.send(t.Context(), c.p, "Runtime.evaluate", params)
		if err != nil {
			t.Fatalf("%s: %s", test.text, exit(err))
		}
		all := warned(r.Warnings)
		if !strings.Contains(all, test.byChrome) || test.byChrome == "" && all != "" {
			t.Errorf("Runtime.evaluate %s: %q, expected %q", test.text, all, test.byChrome)
		}
		if all == "" || strings.Contains(test.text, "class") || strings.Contains(test.text, "f()") || len(r.Steps) == 0 {
			continue
		}
		// The program of the step runs, and says nothing further.
		again, err := c.send(t.Context(), c.p, "Runtime.evaluate", string(r.Steps[0].Params))
		if err != nil && test.text != "document.querySelector" || err == nil && len(again.Warnings) > 0 {
			t.Errorf("the step of %s, %s: %v, %v", test.text, r.Steps[0].Params, again, err)
		}
	}
}
