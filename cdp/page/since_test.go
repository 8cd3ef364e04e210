package page_test

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
)

// TestSince compares what a snapshot says of each kind of change with testdata/since. The module bench counts tokens.
func TestSince(t *testing.T) {
	c := startChrome(t)
	url := site(t, c)
	sentence := strings.Repeat("The queue is long and moves on. ", 6)
	c.show(t, url+"/", `<title>Inbox</title><h1>Inbox</h1><p id=p>`+sentence+`You have 3 messages. `+sentence+`</p>
		<table><tr><th>From<th>Subject<th>Do</tr><tbody id=rows><tr><td>Ann<td>Hello<td><button>Delete</button><tr><td>Bob<td>
		Lunch<td><button>Delete</button><tr><td>Cy<td>Report<td><button>Delete</button></table><label><input type=checkbox
		id=c> Archive</label><dialog id=d><h2>Compose</h2><input aria-label=To><button>Send</button></dialog><p>Saved</p><p
		id=twin>Saved</p><ul id=l><li><a href="#1">One</a><li><a href="#2">Two</a><li><a href="#3">Three</a></ul><button
		id=far hidden>Far</button><select aria-label=Size id=s><option>S<option>M</select><iframe title=Frame
		src="/inner"></iframe>`)
	if _, err := run(t, c, Snapshot, SnapshotParams{MaxTokens: 1500}); err != nil {
		t.Fatal(exit(err))
	}
	var got strings.Builder
	for _, change := range []struct{ name, js string }{
		{"nothing", `0`},
		{"text changed", `p.textContent = p.textContent.replace("3 messages", "4 messages")`},
		{"row added", `rows.insertAdjacentHTML("beforeend", "<tr><td>Di<td>Plan<td><button>Delete</button>")`},
		{"row removed", `rows.rows[1].remove()`},
		{"row moved", `rows.append(rows.rows[0])`},
		{"state toggled", `c.checked = true`},
		{"value chosen", `s.value = "M"`},
		{"focused", `c.focus()`},
		{"focus moved and a value chosen", `s.focus(); s.value = "S"`},
		{"focus moved", `c.focus()`},
		{"no longer focused", `c.blur(); s.value = "M"`},
		{"dialog opened", `d.showModal()`},
		{"dialog closed", `d.close()`},
		{"one of two alike removed", `twin.remove()`},
		{"list reordered", `l.append(...[...l.children].reverse())`},
		{"frame changed", `document.querySelector("iframe").contentDocument.querySelector("button").textContent = "Done"`},
		{"title and address changed", `document.title = "Sent"; history.pushState(0, "", "/sent"); far.hidden = false`},
		{"page navigated", `location.href = "/next"`},
	} {
		c.evaluate(t, change.js+"; 0")
		if change.name == "page navigated" {
			if _, err := run(t, c, Wait, WaitParams{Text: "Next page", Timeout: 5000}); err != nil {
				t.Fatal(exit(err))
			}
		}
		s, err := run(t, c, Snapshot, SnapshotParams{MaxTokens: 1500, Since: true})
		if err != nil {
			t.Fatal(exit(err))
		}
		fmt.Fprintf(&got, "# %s\n%s\n", change.name, effects(s))
	}
	text := strings.ReplaceAll(got.String(), url, "http://127.0.0.1:8080")
	text = regexp.MustCompile(`\b[a-z]{3}(\d+)\b`).ReplaceAllString(text, "kqz$1")
	text = strings.NewReplacer(`\u003c`, "<", `\u003e`, ">").Replace(text)
	if os.Getenv("UPDATE") != "" {
		_ = os.WriteFile("testdata/since", []byte(text), 0o600)
	}
	if want := string(must(os.ReadFile("testdata/since"))); text != want {
		t.Errorf("got\n%s\nwant\n%s", text, want)
	}
}

// TestSinceOfMuch checks that changes are those of the page, not those of what fits into a snapshot.
func TestSinceOfMuch(t *testing.T) {
	c := startChrome(t)
	url := site(t, c)
	var paragraphs strings.Builder
	for i := range 90 {
		fmt.Fprintf(&paragraphs, "<p>Paragraph %d has some words</p><button>B%d</button>", i, i)
	}
	for _, test := range []struct {
		name        string
		first, then SnapshotParams
		change      string
		want        string
	}{
		{"it no longer fits", SnapshotParams{MaxTokens: 1900}, SnapshotParams{MaxTokens: 1900},
			`for (let i = 0; i < 20; i++) document.body.append("x".repeat(100)); 0`, `^\+ "[x ]+…"$`},
		{"a smaller limit", SnapshotParams{MaxTokens: 6000}, SnapshotParams{MaxTokens: 500},
			`document.querySelector("button").disabled = true; 0`, `^- button "B0" \w+\n\+ button "B0" \w+ \[disabled\]$`},
		{"only controls", SnapshotParams{MaxTokens: 6000, Roles: "interactive"}, SnapshotParams{MaxTokens: 6000},
			`document.querySelector("button").remove(); 0`, `^- button "B0" \w+$`},
		{"with options", SnapshotParams{MaxTokens: 6000, Options: true}, SnapshotParams{MaxTokens: 6000},
			`document.querySelector("option").remove(); 0`, `^- combobox "L" \w+ \[value="One"\]\n- option "One" \[selected\]\n` +
				`- option "Two"\n\+ combobox "L" \w+ \[value="Two"\]\n\+ option "Two" \[selected\]$`},
	} {
		c.show(t, url+"/", "<title>T</title><select aria-label=L><option>One<option>Two</select>"+paragraphs.String())
		if _, err := run(t, c, Snapshot, test.first); err != nil {
			t.Fatal(exit(err))
		}
		c.evaluate(t, test.change)
		test.then.Since = true
		s, err := run(t, c, Snapshot, test.then)
		if err != nil || !regexp.MustCompile(test.want).MatchString(s.Text) {
			t.Errorf("%s: %s\n%s", test.name, exit(err), s.Text)
		}
	}
}
