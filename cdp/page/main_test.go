package page_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// prose returns paragraphs whose words are numbered, so that none of them can be lost without being missed.
func prose(kind, tag string, from, n int) string {
	var b strings.Builder
	for i := from; i < from+n; i++ {
		fmt.Fprintf(&b, "<%[1]s>%[2]s%[3]d is a sentence of some length, with <a href=/x>a link</a> in it.</%[1]s>", tag,
			kind, i)
	}
	return b.String()
}

func links(kind string, n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "<li><a href=/%d>%s%d entry</a></li>", i, kind, i)
	}
	return "<ul>" + b.String() + "</ul>"
}

// TestMainShapes reads the main content of pages that do not say where it is. A page has words "keep1" to "keepN" in
// what it is about, and words "drop1" to "dropN" around it.
func TestMainShapes(t *testing.T) {
	c := startChrome(t)
	sections := func(tag string) string {
		var b strings.Builder
		for i := range 6 {
			fmt.Fprintf(&b, "<div class=section><h2>Part %d</h2>%s</div>", i, prose("keep", tag, i*10, 3+i%3*3))
		}
		return b.String()
	}
	list := "<h1>News</h1>" + strings.ReplaceAll("<h2>V</h2><ul>"+prose("keep", "li", 0, 9)+"</ul>", "<li>", "<li><p>")
	top := "<div id=top>" + links("drop", 5) + "</div>"
	for name, html := range map[string]string{
		"flat sections":          "<h1>Manual</h1>" + sections("p"),
		"flat sections of lists": sections("li"),
		"flat, with links above": top + sections("p"),
		"flat, with links between": sections("p") + "<table><tr><td>" + links("drop", 4) + "</table>" +
			prose("keep", "p", 90, 3),
		"one large list":         list,
		"a list after a license": prose("keep", "p", 50, 2) + "<ul>" + prose("keep", "li", 0, 30) + "</ul>",
		"definitions": "<h1>Terms</h1><dl>" + prose("keep", "dd", 0, 20) + "</dl><div>" + prose("keep", "p", 50, 2) +
			"</div>",
		"cells of a layout": "<table><tr><td>" + links("drop", 9) + "<td><h1>H</h1>" + prose("keep", "p", 0, 9) +
			"</table>",
		"text without paragraphs": top + "<h1>H</h1>" + prose("keep", "div", 0, 20),
		"a license, then code":    prose("keep", "p", 50, 3) + "<div>" + prose("keep", "div", 0, 20) + "</div>",
		"links are the content":   "<h1>Index</h1>" + links("keep", 40) + "<p>keep99 is at the end",
		"only links":              links("keep", 40),
		"contents of the page":    strings.ReplaceAll(links("keep", 9), "href=/", "href=#") + sections("p"),
		"several articles":        top + strings.Repeat("<article>"+prose("keep", "p", 0, 3)+"</article>", 5),
		"roles around": "<header>drop1</header><nav>drop2</nav>" + sections("p") +
			"<aside>drop3</aside><footer>drop4</footer>",
		"roles inside of the content": "<div><h1>H</h1>" + prose("keep", "p", 0, 9) + "<nav>drop1</nav>" +
			prose("keep", "p", 20, 9) + "</div>",
		"a main part": top + "<main>" + links("keep", 9) + prose("keep", "p", 20, 1) + "</main>" +
			prose("drop", "p", 0, 20),
		"nothing": "",
	} {
		c.open(t, "<title>T</title>"+html)
		r, err := run(t, c, Text, TextParams{MaxTokens: 9000, Main: true})
		whole, _ := run(t, c, Text, TextParams{MaxTokens: 9000})
		keep, drop := regexp.MustCompile(`keep\d+`), regexp.MustCompile(`drop\d+`)
		if err != nil || drop.MatchString(r.Text) ||
			!slices.Equal(keep.FindAllString(r.Text, -1), keep.FindAllString(whole.Text, -1)) {
			t.Errorf("%s: %s\n%s", name, exit(err), r.Text)
		}
		said := regexp.MustCompile(`in all (\d+|less than 1) % of the text \(without main\)$`)
		if said.MatchString(r.LeftOut) != drop.MatchString(whole.Text) {
			t.Errorf("%s: left out: %q", name, r.LeftOut)
		}
	}
}
