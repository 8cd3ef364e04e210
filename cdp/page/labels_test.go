package page_test

import (
	"fmt"
	"strings"
	"testing"
)

// hidings are ways in which pages hide a control, to draw another one in its place: attributes of what is around it,
// and of itself.
var hidings = map[string][2]string{
	"not at all":          {},
	"display":             {"", "style=display:none"},
	"display, around":     {"style=display:none", ""},
	"visibility":          {"", "style=visibility:hidden"},
	"visibility, around":  {"style=visibility:hidden", ""},
	"opacity":             {"", "style=opacity:0"},
	"hidden":              {"", "hidden"},
	"hidden, around":      {"hidden", ""},
	"for nobody":          {"", "aria-hidden=true"},
	"for nobody, around":  {"aria-hidden=true", ""},
	"inert":               {"inert", ""},
	"clipped":             {"", "style=position:absolute;clip:rect(0,0,0,0);width:1px;height:1px"},
	"outside":             {"", "style=position:absolute;left:-9999px"},
	"a skipped container": {"style=content-visibility:hidden", ""},
}

// TestLabelsAreShown checks that a snapshot has the text of every label that a person sees, however the page hides its
// control.
func TestLabelsAreShown(t *testing.T) {
	c := startChrome(t)
	url := site(t, c)
	controls := map[string]string{"checkbox": "<input type=checkbox %s>", "radio": "<input type=radio %s>",
		"text": "<input %s>", "file": "<input type=file %s>", "select": "<select %s><option>A</select>",
		"button": "<button type=button %s>B</button>", "div": "<div role=switch tabindex=0 %s>C</div>"}
	for way, hiding := range hidings {
		var page, want strings.Builder
		n := 0
		for kind, control := range controls {
			for _, form := range []string{`<label>LABEL<span AROUND>CONTROL</span></label>`,
				`<label for=ID>LABEL</label><span AROUND>CONTROL</span>`, `<label><span AROUND>CONTROL</span><b>LABEL</b></label>`} {
				n++
				label, id := fmt.Sprintf("%s %d.", kind, n), fmt.Sprint("c", n)
				own := fmt.Sprintf(control, "id="+id+" "+hiding[1])
				r := strings.NewReplacer("LABEL", label, "CONTROL", own, "AROUND", hiding[0], "ID", id)
				page.WriteString("<div>" + r.Replace(form) + "</div>")
				want.WriteString(label + "\n")
			}
		}
		c.show(t, url+"/", "<title>Labels</title>"+page.String())
		s, err := run(t, c, Snapshot, SnapshotParams{MaxTokens: 4000})
		for label := range strings.Lines(want.String()) {
			if label = strings.TrimSpace(label); err != nil || !strings.Contains(s.Text, label) {
				t.Errorf("%s: %q is not shown: %s\n%s", way, label, exit(err), s.Text)
			}
		}
	}
}

// TestNamesOtherThanTexts checks that a snapshot has what a control shows where that is not in its name.
func TestNamesOtherThanTexts(t *testing.T) {
	c := startChrome(t)
	url := site(t, c)
	for html, want := range map[string]string{
		`<button aria-label=Country>Norway</button>`:                      `button "Country" REF [value="Norway"]`,
		`<span id=l>Plan</span><a href=x aria-labelledby=l>Small</a>`:     "\"Plan\"\nlink \"Plan\" REF [value=\"Small\"]",
		`<button aria-label="Close the dialog">Close</button>`:            `button "Close the dialog" REF`,
		`<button aria-label=Menu>☰</button>`:                              `button "Menu" REF`,
		`<button aria-label=Menu><svg><title>Open</title></svg></button>`: `button "Menu" REF`,
		`<button>Save</button>`:                                           `button "Save" REF`,
	} {
		c.show(t, url+"/", "<title>Names</title>"+html)
		s, err := run(t, c, Snapshot, SnapshotParams{MaxTokens: 1500})
		if got := withoutRefs(s.Text); err != nil || got != want {
			t.Errorf("%s: %s\n%s", html, exit(err), got)
		}
	}
}
