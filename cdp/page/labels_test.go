package page_test

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
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

// labelled returns a page of controls that are hidden in the same way, with the labels that they have.
func labelled(hiding [2]string) (page string, labels []string) {
	controls := map[string]string{"checkbox": "<input type=checkbox %s>", "radio": "<input type=radio %s>",
		"text": "<input %s>", "file": "<input type=file %s>", "select": "<select %s><option>A</select>",
		"button": "<button type=button %s>B</button>", "div": "<div role=switch tabindex=0 %s>C</div>"}
	for kind, control := range controls {
		for _, form := range []string{`<label>LABEL<span AROUND>CONTROL</span></label>`,
			`<label for=ID>LABEL</label><span AROUND>CONTROL</span>`, `<label><span AROUND>CONTROL</span><b>LABEL</b></label>`} {
			label, id := fmt.Sprintf("%s %d", kind, len(labels)), fmt.Sprint("c", len(labels))
			own := fmt.Sprintf(control, "id="+id+" "+hiding[1])
			r := strings.NewReplacer("LABEL", label, "CONTROL", own, "AROUND", hiding[0], "ID", id)
			page, labels = page+"<section aria-label=s>"+r.Replace(form)+"</section>", append(labels, label)
		}
	}
	return "<title>Labels</title>" + page, labels
}

// TestLabelsAreShown checks that a snapshot has the text of every label that a person sees, however the page hides its
// control.
func TestLabelsAreShown(t *testing.T) {
	c := startChrome(t)
	url := site(t, c)
	for way, hiding := range hidings {
		page, labels := labelled(hiding)
		c.show(t, url+"/", page)
		s, err := run(t, c, Snapshot, SnapshotParams{MaxTokens: 4000})
		for _, label := range labels {
			if err != nil || !strings.Contains(s.Text, label+`"`) {
				t.Errorf("%s: %q is not shown: %s\n%s", way, label, exit(err), s.Text)
			}
		}
	}
}

var namedLine = regexp.MustCompile(`(?m)^ *(\w+ ("(?:[^"\\]|\\.)*"))(?: ([a-z]{3}\d+))?( \[|$)`)

// TestWhatIsNamedIsFound checks that each element is found by the name that a snapshot gives it: with its role that
// element, and without it that one or what is in it.
func TestWhatIsNamedIsFound(t *testing.T) {
	c := startChrome(t)
	url := site(t, c)
	pages := map[string]string{"names": `<style>.p { cursor: pointer }</style><button>Expand "More"</button><button>Say "Hi" to "Bob"</button>
		<table><tr><th class=p><i aria-hidden=true>up</i>Price</th><th class=p>Name</table><details><summary>Rest</summary>x</details>
		<ul><li class=p>Archive <b>now</b></ul><div class=p>Open</div><a href=x>role "x"</a><button aria-label="a [b] c">.</button>
		<button>text=Go</button><label class=p><input type=radio style=display:none>Day</label><canvas aria-label=Plot></canvas>
		<ul aria-label=Inbox><li>a<li>b</ul><div role=img aria-label=Puck>o</div><div role=toolbar aria-label=Tools>x</div>
		<div role=region aria-label=Zone>y</div><div role=radiogroup aria-label=Shape><input type=radio aria-label=r></div>
		<fieldset><legend>Pay</legend><input aria-label=z></fieldset><table aria-label=Tab><tr><td>q</table>
		<div role=group aria-label=Birth><b role=spinbutton tabindex=0 aria-label=d>1</b><b role=spinbutton tabindex=0 aria-label=m>2</b></div>
		<div draggable=true>Fix bug <button>Edit</button></div><img alt=Logo width=9 height=9>
		<input type=date aria-label=Due><input type=color aria-label=Ink><div contenteditable aria-label=Note role=textbox></div>`}
	for way, hiding := range hidings {
		pages[way], _ = labelled(hiding)
	}
	for _, name := range []string{"app.html", "forms.html", "widgets.html", "shadow.html"} {
		pages[name] = string(must(os.ReadFile("testdata/" + name)))
	}
	for name, page := range pages {
		c.show(t, url+"/", page)
		s, err := run(t, c, Snapshot, SnapshotParams{MaxTokens: 6000})
		if err != nil {
			t.Fatal(exit(err))
		}
		for _, line := range namedLine.FindAllStringSubmatch(s.Text, -1) {
			found, err := run(t, c, Find, FindParams{Element: line[1], Limit: 100})
			if err != nil || line[3] != "" && !strings.Contains(string(must(json.Marshal(found))), `"`+line[3]+`"`) {
				t.Errorf("%s: %s is not found by its role and name: %s, %+v", name, line[0], exit(err), found)
			}
			var word string
			if _ = json.Unmarshal([]byte(line[2]), &word); strings.HasSuffix(word, "…") || strings.HasPrefix(word, "text=") {
				continue
			}
			if _, err = run(t, c, Find, FindParams{Element: word}); err != nil {
				t.Errorf("%s: %s is not found by its name: %s", name, line[0], exit(err))
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
		`<svg><a href=x><text y=20>Sales</text></a></svg>`:                `link "Sales" REF`,
		`<svg><title>Plan</title><g><circle r=9 /><g role=button tabindex=0 aria-label=Room></g></g></svg>`: "image \"Plan\"\n" +
			`  button "Room" REF`,
		`<button>Save <svg><title>Disk</title><a href=x><text y=9>Inner</text></a></svg></button>`: `button "Save Disk" REF`,
	} {
		c.show(t, url+"/", "<title>Names</title>"+html)
		s, err := run(t, c, Snapshot, SnapshotParams{MaxTokens: 1500})
		if got := withoutRefs(s.Text); err != nil || got != want {
			t.Errorf("%s: %s\n%s", html, exit(err), got)
		}
	}
}
