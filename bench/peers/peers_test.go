package main

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

func TestRefIn(t *testing.T) {
	for _, c := range []struct{ shown, role, name, want string }{
		{"textbox \"User\" kqz1\nbutton \"Sign in\" kqz2", "button", "Sign in", "kqz2"},
		{`textbox "Age" kqz12 [value="5"]`, "textbox", "Age", "kqz12"},
		{`- textbox "User " [ref=e45]`, "textbox", "User", "e45"},
		{"- button \"Save\" [level=1, ref=e3]\n- button \"Go\" [ref=e4]", "button", "Go", "e4"},
		{`- button "Go" [active] [ref=f4e1] [cursor=pointer]`, "button", "Go", "f4e1"},
		{`  uid=1_3 textbox "User "`, "textbox", "User", "1_3"},
		{`  uid=1_4 radio " Post"`, "radio", "Post", "1_4"},
		{`  uid=2_2 "Letter"`, "text", "Letter", "2_2"},
		{`link "Fern 4170" kqz1`, "link", "Fern 417", ""},
		{"- button \"Go\"\n- link \"Away\" [ref=e4]", "button", "Go", ""},
	} {
		if ref := refIn(c.shown, c.role, c.name); ref != c.want {
			t.Errorf("%s %q has the ref %q in %q, expected %q", c.role, c.name, ref, c.shown, c.want)
		}
	}
}

func TestFill(t *testing.T) {
	a := agent{url: "http://a/b", upload: "/tmp/f", log: []exchange{
		{read: `uid=1_1 button "Go"` + "\n## Pages\n1: A (http://a)\n3: B (http://b)"},
		{read: `uid=2_1 button "Go" ` + `{"value":{"height":200,"x":8.5,"y":80}}`},
	}}
	got, err := a.fill(`open URL FILE <button "Go"> <new page> <x+120>,<y+80> <~height":([0-9]+)~>`)
	if want := "open http://a/b /tmp/f 2_1 3 128.5,160 200"; got != want || err != nil {
		t.Errorf("got %q, %v, expected %q", got, err, want)
	}
	for _, missing := range []string{`<link "Go">`, "<x+1>", "<new page>", "<~(a)~>"} {
		if got, err := (&agent{}).fill(missing); err == nil {
			t.Errorf("%s was replaced: %s", missing, got)
		}
	}
}

func TestPointIn(t *testing.T) {
	for _, shown := range []string{"x:      8\ny:      80.875", `{"x":8,"y":80.875}`} {
		if y := pointIn(shown, "y", "80"); y != "160.875" {
			t.Errorf("y is %q in %q", y, shown)
		}
	}
}

func TestNewPageIn(t *testing.T) {
	if page := newPageIn(`"caused":{"new_pages":[{"target":"81F0","url":"http://a"}]}`); page != "81F0" {
		t.Errorf("the page is %q", page)
	}
}

// TestBehind has a tool with the least cost that does not do the task: it is no measure for others.
func TestBehind(t *testing.T) {
	one := func(tool string, calls, out int, o outcome) row {
		return row{"login", tool, []result{{cost{calls, 9, out, time.Second}, o}}}
	}
	got := behind([]row{one("own", 2, 50, succeeded), one("good", 1, 60, succeeded), one("broken", 1, 1, silent)}, "own")
	if want := "login: calls 2, good 1\n"; got != want {
		t.Errorf("got %q, expected %q", got, want)
	}
	got = behind([]row{one("own", 1, 50, failed), one("good", 1, 50, succeeded)}, "own")
	if want := "login: own did not do it in 1 of 1 runs\n"; got != want {
		t.Errorf("got %q, expected %q", got, want)
	}
}

// TestOutcomes has an action that succeeds without effect: it is silent unless the tool says so.
func TestOutcomes(t *testing.T) {
	s := newSite()
	defer s.close()
	check := did(func(s *site) bool { return s.was("order", "yes") })
	for read, want := range map[string]outcome{"Done": silent, `{"note":"no change seen"}`: failed} {
		if got := check(s, &agent{log: []exchange{{"click", read}}}); got != want {
			t.Errorf("%s is %q, expected %q", read, got, want)
		}
	}
	clicked := &agent{log: []exchange{{"look", "We use cookies"}, {"click", "Done"}}}
	if got := refused(s, clicked); got != silent {
		t.Errorf("a click that the cover took is %q", got)
	}
	if got := refused(s, &agent{log: []exchange{{"click", "covered by <div#cookie-notice>"}}}); got != succeeded {
		t.Errorf("a refusal with a reason is %q", got)
	}
}

// TestScripts checks that every tool has a script for every task, and no other script than for tasks and jobs.
func TestScripts(t *testing.T) {
	for tool, scripts := range scripts {
		known := map[string]bool{}
		for _, one := range slices.Concat(tasks, jobs) {
			known[one.name] = true
			if lines, ok := scripts[one.name]; ok && !strings.Contains(strings.Join(lines, ""), "URL") {
				t.Errorf("%s does not open the page of %s", tool, one.name)
			}
		}
		for name := range scripts {
			if !known[name] {
				t.Errorf("%s has a script for %s, which is no task", tool, name)
			}
		}
		for _, one := range tasks {
			if scripts["title"] != nil && len(scripts[one.name]) == 0 { // the servers of MCP do jobs only
				t.Errorf("%s has no script for %s", tool, one.name)
			}
		}
	}
}

// TestJobChecks gives the checks of jobs what an agent may have read: the truth, and what looks like it.
func TestJobChecks(t *testing.T) {
	s := newSite()
	defer s.close()
	var rows []invoice
	for i := range 120 {
		rows = append(rows, s.invoice(i))
	}
	all, _ := json.MarshalIndent(rows, "", "  ")
	some, _ := json.Marshal(rows[:119])
	box := fmt.Sprintf("[[%d,%d],[%d,%d]]", s.nonce%500, s.nonce%500+60, s.nonce%300, s.nonce%300+40)
	for _, c := range []struct {
		check func(*site, *agent) bool
		read  string
		want  bool
	}{
		{inJSON, string(all), true}, {inJSON, strconv.Quote(string(all)), true}, {inJSON, string(some), false},
		{blamed, "indexPrices_1 90 %", true}, {blamed, "indexPrices_1, drawMenu_1", false}, {blamed, "(idle)", false},
		{boxed, box, true}, {boxed, "[[0,600],[0,400]]", false}, {asMarkdown, "# Tides of the bay", false},
	} {
		a := &agent{upload: filepath.Join(t.TempDir(), uploadName), log: []exchange{{"", c.read}}}
		if got := c.check(s, a); got != c.want {
			t.Errorf("%.60q is %t, expected %t", c.read, got, c.want)
		}
	}
	if n := len(s.sought()); n < 4 || n > 5 {
		t.Errorf("%d items are sought", n)
	}
}
