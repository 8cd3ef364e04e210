package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/parley-tools/parley/bench/internal/tree"
	"github.com/parley-tools/parley/internal/sample"
	"github.com/parley-tools/parley/manifest"
)

// TestMain runs the tests in the root of the tree, as the command runs.
func TestMain(m *testing.M) {
	if err := tree.Enter(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// all returns every example, and the committed table.
func all(t *testing.T) ([]*example, table) {
	t.Helper()
	examples, err := load(options{only: regexp.MustCompile("")})
	if err != nil {
		t.Fatal(err)
	}
	committed, err := readTable(tableFile)
	if err != nil {
		t.Fatal(err)
	}
	if committed.product == "" || len(committed.rows) == 0 {
		t.Fatalf("%s has no browser or no rows", tableFile)
	}
	return examples, committed
}

// TestTableIsComplete checks that every example has a row, with the calls that the tables say come before it.
func TestTableIsComplete(t *testing.T) {
	t.Parallel()
	examples, committed := all(t)
	for _, e := range examples {
		row, ok := committed.rows[e.key()]
		delete(committed.rows, e.key())
		if !ok {
			t.Errorf("%s %q did not run", e.command.Name, e.Title)
			continue
		}
		if ran, calls := row[1:3], e.row()[1:3]; !slices.Equal(ran, calls) {
			t.Errorf("%s %q ran as\n%q\nand is now\n%q", e.command.Name, e.Title, ran, calls)
		}
	}
	for key := range committed.rows {
		t.Errorf("%q is not an example any more", key)
	}
	if t.Failed() {
		t.Log("run go -C bench run ./trial -table " + tableFile)
	}
}

// TestWrite checks that writing the table without running an example changes nothing: the rows keep their order.
func TestWrite(t *testing.T) {
	t.Parallel()
	want, err := os.ReadFile(tableFile)
	if err != nil {
		t.Fatal(err)
	}
	committed, err := readTable(tableFile)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "ran.tsv")
	if err := os.WriteFile(file, want, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := write(file, nil, committed.product); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(file); err != nil || string(got) != string(want) {
		t.Errorf("%v; the table differs: %d bytes, want %d", err, len(got), len(want))
	}
}

// TestShares checks the promises about the table: which examples of reading commands ran, and how many common ones.
func TestShares(t *testing.T) {
	t.Parallel()
	examples, committed := all(t)
	var ran, of int
	var others []string
	common := map[string]bool{}
	for _, e := range examples {
		outcome := committed.outcome(e)
		if outcome == verified && e.Kind == "common" {
			common[e.command.Name] = true
		}
		if e.command.Effect != manifest.EffectRead || outcome == unknown || outcome == skipped {
			continue
		}
		if of++; outcome == verified {
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

// TestExamplesRun runs some first examples of reading commands, which must end as the table says, and some of the other
// verified ones. It does a tenth of the tasks, and lets the agent visit some commands; with PARLEY_HAMMER all. In a
// browser that is not that of the table, what fails is only reported.
func TestExamplesRun(t *testing.T) {
	t.Parallel()
	if _, err := chromium(); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	examples, committed := all(t)
	partOfTasks, partOfVisits := 20, 100
	if os.Getenv("PARLEY_HAMMER") != "" {
		partOfTasks, partOfVisits = 1, 1
	}
	var selected []*example
	first, other := sample.OneIn(t, 12), sample.OneIn(t, 60)
	for i, e := range examples {
		isFirst := i == 0 || examples[i-1].command != e.command
		if isFirst && e.command.Effect == manifest.EffectRead {
			if first() {
				selected = append(selected, e)
			}
		} else if committed.outcome(e) == verified && other() {
			selected = append(selected, e)
		}
	}
	l, err := newLab(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer l.close()
	report := t.Errorf
	if committed.product != l.product {
		t.Logf("the table is of %s, this is %s", committed.product, l.product)
		report = t.Logf
	}
	l.runAll(t.Context(), selected, 2, func(e *example) {
		if was := committed.outcome(e); e.status != was {
			report("%s %q: %s: %s; the table says %s", e.command.Name, e.Title, e.status, e.message, was)
		}
	})
	doTasks(t, l, partOfTasks, report)
	visits, err := readable(options{only: regexp.MustCompile(""), part: partOfVisits})
	if err != nil {
		t.Fatal(err)
	}
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
	raw, err := os.ReadFile(tasksFile)
	if err != nil {
		t.Fatal(err)
	}
	all, err := readTasks(string(raw))
	if err != nil {
		t.Fatal(err)
	}
	selected := inPart(all, part)
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
