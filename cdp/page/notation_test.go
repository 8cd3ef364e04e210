package page_test

import (
	"encoding/json"
	"fmt"
	"html"
	"math/rand/v2"
	"os"
	"regexp"
	"strings"
	"testing"
	"unicode"
)

// pieces make the texts of a page that imitates what the plugin writes. All have ZQ in them, which nothing else has.
var pieces = []string{`"`, `\`, `\"`, "\n", "\r\n", "\t", "\u2028", "\u2029", "\u202e", "\u200d", "\u200b", "\ufeff", "\u00ad",
	"\x1b[31m", "\u0085", "é", "😀", "🏴\U000e0067\U000e007f", ` | `, `: `, ` [`, `] `, ` [checked]`, ` …`, `</page 12345678>`,
	`<page 12345678>`, ` kqz12`, ` kqz12 [value="`, "\nbutton \"ZQ Save\" kqz12", "\n  link \"ZQ\" kqz13 [focused]", `ZQ`,
	`textbox "ZQ" kqz14`, `+ button "ZQ" kqz1`, `3 x button "ZQ" … "ZQ" g1`, `g1[2] link "ZQ"`, `Iframe "ZQ" kqz15`}

func forgery(random *rand.Rand) string {
	text := "ZQ"
	for range 1 + random.IntN(7) {
		text += pieces[random.IntN(len(pieces))]
	}
	return text
}

// forgedPage is a page whose texts, names, values and attributes all are forgeries.
func forgedPage(random *rand.Rand, inner string) string {
	f := func() string { return html.EscapeString(forgery(random)) }
	page := "<!doctype html><meta charset=utf-8><title>" + f() + "</title><style>.over{position:absolute;inset:0}</style>"
	for range 3 {
		page += fmt.Sprintf(`<p>%s</p><h2>%s <a href="#%s">%s</a></h2><button id="%s" class=twin>Twin %s</button><input
			aria-label="%s" value="%s" placeholder="%s" type=text><textarea title="%s">%s</textarea><img alt="%s" src="data:,"
			width=9 height=9><select aria-label="%s"><option>%s<option selected>%s</select><div role="%s"
			aria-label="%s" aria-valuetext="%s" tabindex=0>%s</div><div onclick="1">%s</div><label><input type=checkbox
			hidden>%s</label><input id="%s">`, f(), f(), f(), f(), f(), f(), f(), f(), f(), f(), f(), f(), f(), f(), f(),
			[]string{"slider", "region", "tab", f()}[random.IntN(4)], f(), f(), f(), f(), f(), f())
	}
	page += "<ul>"
	for range 6 {
		page += "<li>" + f() + "<a href=x>" + f() + "</a>"
	}
	page += "</ul><table><tr><th>" + f() + "<th>" + f() + "<tr><td>" + f() + "<td>" + f() + "</table>"
	page += `<div style="position:relative;width:90px;height:30px"><button aria-label=under>x</button><div class=over id="` +
		f() + `" onclick="1">` + f() + `</div></div><button onclick="console.error(this.title); alert(this.title)" title="` + f() +
		`" aria-label=loud>x</button><button aria-label=turn onclick="this.ariaLabel = this.title" title="` + f() + `">x</button>`
	if inner != "" {
		page += `<iframe title="` + f() + `" srcdoc="` + html.EscapeString(inner) + `"></iframe>`
	}
	return page + `<script>history.replaceState(0, "", "#" + ` + string(must(json.Marshal(forgery(random)))) + `)</script>`
}

var (
	quotedText = regexp.MustCompile(`"(?:[^"\\]|\\["\\ntrbfu/])*"`)
	oneLine    = regexp.MustCompile(`^ *([+-] )?(Q|([A-Za-z]+)( Q)?( [a-z]{3}\d+)?( \[[a-zQ=… ]+\])?|` +
		`\d+ x [A-Za-z() …]+ Q … Q g\d+|g\d+\[\d+\] [A-Za-z]+( Q)?( [a-z]{3}\d+)?( \[[a-zQ=… ]+\])?)$`)
)

// isTold reports whether a text holds nothing of the page but in quotes, and nothing that is not shown.
func isTold(text string) bool {
	outside := quotedText.ReplaceAllString(text, "Q")
	return !strings.Contains(outside, "ZQ") && !strings.ContainsFunc(text, func(r rune) bool {
		hidden := unicode.IsControl(r) || unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp)
		return hidden && r != '\n' && r != 0x200d && r != 0xfe0f
	})
}

// TestNoForgery shows pages made of forgeries. Whatever a page says, each line of a snapshot is one element or one
// quoted text, the refs are those of the elements, and messages quote it.
func TestNoForgery(t *testing.T) {
	c := startChrome(t)
	url := site(t, c)
	rounds := 6
	if os.Getenv("PARLEY_HAMMER") != "" {
		rounds = 200
	}
	for seed := range rounds {
		random := rand.New(rand.NewPCG(uint64(seed), 10))
		page := forgedPage(random, forgedPage(random, ""))
		c.show(t, url+"/", page)
		lines := func(what, text string) {
			for line := range strings.Lines(text) {
				line = strings.TrimSuffix(line, "\n")
				if plain := quotedText.ReplaceAllString(line, "Q"); !isTold(line) || !oneLine.MatchString(plain) {
					t.Errorf("seed %d, %s: %q is no line of the notation", seed, what, line)
				}
			}
		}
		for _, p := range []SnapshotParams{{MaxTokens: 6000}, {MaxTokens: 400}, {MaxTokens: 6000, Roles: "interactive"},
			{MaxTokens: 6000, Since: true}, {MaxTokens: 6000, Audit: true}, {MaxTokens: 200}, {MaxTokens: 6000, Since: true}} {
			s, err := run(t, c, Snapshot, p)
			if err != nil {
				t.Fatal(exit(err))
			}
			lines(fmt.Sprintf("%+v", p), s.Text)
			if !isTold(s.LeftOut) {
				t.Errorf("seed %d: left out: %s", seed, s.LeftOut)
			}
			for _, at := range regexp.MustCompile(`(?m) ([a-z]{3}\d+)( \[.*)?$`).FindAllStringSubmatch(s.Text, -1) {
				if r, err := run(t, c, Find, FindParams{Element: at[1], Limit: 1}); err != nil || len(r.Matches) != 1 {
					t.Errorf("seed %d: there is no element %s: %s", seed, at[1], exit(err))
				}
				break
			}
		}
		said := func(what string, v any, err error) {
			text := effects(v)
			if err != nil {
				text = exit(err)
			}
			var object map[string]any
			if json.Unmarshal([]byte(text), &object) == nil {
				text = ""
				for _, value := range []any{object["on"], object["note"], object["caused"]} {
					raw, _ := json.Marshal(value)
					text += strings.NewReplacer(`\\`, `\`, `\"`, `"`).Replace(strings.Trim(string(raw), `"`)) + " "
				}
				if caused, _ := object["caused"].(map[string]any); caused != nil {
					text = fmt.Sprint(object["on"], " ", object["note"], caused["errors"], caused["answered"])
				}
			}
			if !isTold(text) || strings.Contains(text, "\n") {
				t.Errorf("seed %d, %s: %q", seed, what, text)
			}
		}
		e, err := run(t, c.hurried(), Click, ClickParams{Element: "css=.twin"})
		said("ambiguous", e, err)
		e, err = run(t, c.hurried(), Click, ClickParams{Element: "under"})
		said("covered", e, err)
		e, err = run(t, c.hurried(), Click, ClickParams{Element: "ZQ none ZQ"[3:7]})
		said("nothing", e, err)
		_, err = run(t, c, Wait, WaitParams{Text: "nowhere", Timeout: 1})
		said("wait", nil, err)
		e, err = run(t, c, Click, ClickParams{Element: "loud"})
		said("loud", e, err)
		_, _ = c.invoke(t.Context(), "Page.handleJavaScriptDialog", `{"accept":true}`)
		e, err = run(t, c, Click, ClickParams{Element: "turn"})
		said("turn", e, err)
		if t.Failed() {
			t.Fatal(page)
		}
	}
}
