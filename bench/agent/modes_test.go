package main

import (
	"math"
	"regexp"
	"strconv"
	"testing"

	"github.com/parley-tools/parley/internal/testhome"

	"github.com/parley-tools/parley/bench/internal/tree"
)

// TestModes plays all scenarios in all modes. No mode has more failures or a tenth more turns than full mode, no
// documentation is read twice, and docs/mcp.md has these figures.
func TestModes(t *testing.T) {
	needBrowser(t)
	costs, err := playAll(t.Context(), binary(t), testhome.New(t))
	if err != nil {
		t.Fatal(err)
	}
	for i, s := range scenarios() {
		for j, mode := range modes {
			for docs, times := range costs[i][j].docs {
				if times > 1 {
					t.Errorf("%s, %s: %s was read %d times", s.name, mode, docs, times)
				}
			}
			if costs[i][j].failures > costs[i][0].failures {
				t.Errorf("%s, %s: %d failures, %d in full", s.name, mode, costs[i][j].failures, costs[i][0].failures)
			}
		}
	}
	full := sum(costs, 0)
	for j, mode := range modes {
		if c := sum(costs, j); float64(c.turns) > 1.1*float64(full.turns) {
			t.Errorf("%s: %d turns, %d in full", mode, c.turns, full.turns)
		}
	}
	current(t, modesSection, modesTable(costs))
}

// TestTasks does the six tasks in three modes. Programs take at most 12 turns and 2,000 tokens, and docs/mcp.md has the
// figures.
func TestTasks(t *testing.T) {
	needBrowser(t)
	costs, err := doTasks(t.Context(), binary(t), testhome.New(t))
	if err != nil {
		t.Fatal(err)
	}
	table := tasksTable(costs)
	if code := sum(costs, 2); code.turns > 12 || code.tokens+code.written > 2000 {
		t.Errorf("programs take more than 12 turns or 2,000 tokens:\n%s", table)
	}
	current(t, tasksSection, table)
}

// number matches a figure in a section of docs/mcp.md.
var number = regexp.MustCompile(`\d+(\.\d+)?`)

// rerun is the command that writes the figures of docs/mcp.md.
const rerun = "run go -C bench run ./agent -update docs/mcp.md"

// current compares a section of docs/mcp.md with what the command writes.
func current(t *testing.T, name, want string) {
	t.Helper()
	if shown := figures(t, name); !same(shown, want) {
		t.Errorf("docs/mcp.md shows\n%s\nmeasured is\n%s\n%s", shown, want, rerun)
	}
}

// figures returns a section of docs/mcp.md.
func figures(t *testing.T, name string) string {
	t.Helper()
	shown, err := tree.Section{File: "../../docs/mcp.md", Name: name}.Read()
	if err != nil {
		t.Fatal(err)
	}
	return shown
}

// same reports whether two texts agree in their words and small figures, and in large ones within 5 %, so that not
// every new word in a description makes docs/mcp.md stale.
func same(shown, want string) bool {
	if number.ReplaceAllString(shown, "N") != number.ReplaceAllString(want, "N") {
		return false
	}
	had, has := number.FindAllString(shown, -1), number.FindAllString(want, -1)
	for i := range had {
		old, _ := strconv.ParseFloat(had[i], 64)
		new, _ := strconv.ParseFloat(has[i], 64)
		if old != new && (new <= 100 || math.Abs(old-new) > 0.05*new) {
			return false
		}
	}
	return true
}
