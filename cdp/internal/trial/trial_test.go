package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/parley-tools/parley/cdp/internal/protocol"
)

// committed reads the rows of the committed table, by command and title.
func committed(t *testing.T) map[string]string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("..", "gen", "ran.tsv"))
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string]string{}
	for _, line := range strings.Split(string(raw), "\n") {
		if cells := strings.SplitN(line, "\t", 3); len(cells) == 3 && !strings.HasPrefix(line, "#") {
			rows[cells[0]+"\t"+cells[1]] = cells[2]
		}
	}
	return rows
}

// TestTableIsComplete checks that every example has a row, with the calls that the tables say come before it.
func TestTableIsComplete(t *testing.T) {
	t.Parallel()
	examples, err := load(options{only: regexp.MustCompile("")})
	if err != nil {
		t.Fatal(err)
	}
	rows := committed(t)
	for _, e := range examples {
		row, ok := rows[e.key()]
		delete(rows, e.key())
		if !ok {
			t.Errorf("%s %q did not run", e.command.Name, e.Title)
			continue
		}
		calls := strings.Split(strings.TrimPrefix(e.row(), e.key()+"\t"), "\t")[1:3]
		if ran := strings.Split(row, "\t")[1:3]; ran[0] != calls[0] || ran[1] != calls[1] {
			t.Errorf("%s %q ran as\n%q\nand is now\n%q", e.command.Name, e.Title, ran, calls)
		}
	}
	for key := range rows {
		t.Errorf("%q is not an example any more", key)
	}
	if t.Failed() {
		t.Log("run go run ./cdp/internal/trial -table cdp/internal/gen/ran.tsv")
	}
}

// TestShares checks the promises about the table: which examples of reading commands ran, and how many common ones.
func TestShares(t *testing.T) {
	t.Parallel()
	examples, err := load(options{only: regexp.MustCompile("")})
	if err != nil {
		t.Fatal(err)
	}
	rows := committed(t)
	var ran, of int
	var others []string
	common := map[string]bool{}
	for _, e := range examples {
		outcome, _, _ := strings.Cut(rows[e.key()], "\t")
		if outcome == protocol.RunVerified && e.Kind == "common" {
			common[e.command.Name] = true
		}
		if e.command.Effect != protocol.Read || outcome == protocol.RunUnknown || outcome == protocol.RunSkipped {
			continue
		}
		if of++; outcome == protocol.RunVerified {
			ran++
		} else {
			others = append(others, fmt.Sprintf("%s %q %s", e.command.Name, e.Title, outcome))
		}
	}
	if 100*ran < 95*of {
		t.Errorf("%d of %d examples of reading commands ran; others: %q", ran, of, others)
	}
	if len(common) < 100 {
		t.Errorf("%d commands have a common example that ran", len(common))
	}
	t.Logf("%d of %d examples of reading commands ran; others: %q; %d commands with a common example", ran, of, others,
		len(common))
}

// TestExamplesRun runs a thirtieth of the verified examples again, does a tenth of the tasks, and lets the agent visit
// some commands; with PARLEY_HAMMER all. In another browser than that of the table, what fails is only reported.
func TestExamplesRun(t *testing.T) {
	t.Parallel()
	if _, err := chromium(); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	examples, err := load(options{only: regexp.MustCompile("")})
	if err != nil {
		t.Fatal(err)
	}
	rows, part, partOfTasks, partOfVisits := committed(t), 30, 10, 50
	if os.Getenv("PARLEY_HAMMER") != "" {
		part, partOfTasks, partOfVisits = 1, 1, 1
	}
	var selected []*example
	for i, e := range examples {
		if i%part == 0 && strings.HasPrefix(rows[e.key()], protocol.RunVerified+"\t") {
			selected = append(selected, e)
		}
	}
	l, err := newLab(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer l.close()
	if err := l.open(t.Context()); err != nil {
		t.Fatal(err)
	}
	report := t.Errorf
	if !strings.HasPrefix(protocol.Embedded().RanOn(), l.product+" ") {
		t.Logf("the table is of %s, this is %s", protocol.Embedded().RanOn(), l.product)
		report = t.Logf
	}
	l.runAll(t.Context(), selected, 2, func(e *example) {
		if e.status != protocol.RunVerified {
			report("%s %q: %s: %s", e.command.Name, e.Title, e.status, e.message)
		}
	})
	doTasks(t, l, partOfTasks, report)
	visits := readable(options{only: regexp.MustCompile(""), part: partOfVisits})
	missed := len(visits)
	for _, n := range l.visitAll(t.Context(), visits) {
		missed -= n
	}
	t.Logf("the agent did not reach %d of %d commands", missed, len(visits))
	if missed > 1 && missed*100 > len(visits)*15 { // of a sample, one
		report("%v", visits)
	}
}

// doTasks checks that the chains of nine in ten tasks run, except for those that leave a value to a person.
func doTasks(t *testing.T, l *lab, part int, report func(string, ...any)) {
	raw, err := os.ReadFile("tasks.tsv")
	if err != nil {
		t.Fatal(err)
	}
	all, err := readTasks(string(raw))
	if err != nil {
		t.Fatal(err)
	}
	var selected []*task
	for i, one := range all {
		if i%part == 0 {
			selected = append(selected, one)
		}
	}
	done := score(selected, func(one *task) { l.doTask(t.Context(), one) })
	t.Log(done)
	if done.ran*10 < (done.all-done.holes)*9 {
		report("too few chains ran: %v", done)
		for _, one := range selected {
			t.Log(one)
		}
	}
}

func TestReadTasks(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"# words\n\nbox\tDOM.getBoxModel\t{}\n": "",
		"box\tDOM.getBoxModel":                  "line 1: expected a task",
		"box\tDOM.getBoxModel\t{":               "line 1: expected a task",
		"\nbox\tDOM.getBox\t{}":                 "line 2: there is no command DOM.getBox",
	} {
		tasks, err := readTasks(text)
		if ok := err == nil && len(tasks) == 1; want == "" && !ok ||
			want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: got %v, %v; want %q", text, tasks, err, want)
		}
	}
}
