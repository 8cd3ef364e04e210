package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/parley-tools/parley/bench/internal/tree"
	"github.com/parley-tools/parley/internal/sample"
	"github.com/parley-tools/parley/internal/testhome"
)

// TestReplay makes the calls of recorded runs again: of each mode one in four, with PARLEY_HAMMER=1 all. Each must end
// as it did when the model made it, and the task must have the same result.
func TestReplay(t *testing.T) {
	if err := tree.Enter(); err != nil {
		t.Fatal(err)
	}
	runs, err := readRuns(recordedFile)
	if err != nil {
		t.Fatal(err)
	}
	binary := filepath.Join(t.TempDir(), "parley.exe") // a name that every system runs
	if err := testhome.CopyProgram(binary); err != nil {
		t.Fatal(err)
	}
	for _, mode := range modes {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			b := &bench{binary: binary, home: testhome.New(t)}
			few := sample.OneIn(t, 4)
			for _, task := range tasks() {
				past, ok := runs[key{task.name, mode}]
				if !ok {
					t.Errorf("%s has no run of %s", recordedFile, task.name)
					continue
				}
				if !few() {
					continue
				}
				r, err := b.do(t.Context(), &replayed{run: past, onPage: task.onPage()}, task, mode)
				if err == nil {
					err = sameCourse(past, r)
				}
				if err != nil {
					t.Errorf("%s: %v", task.name, err)
				}
			}
		})
	}
}

// TestTasks checks that no task is done by an answer without its values.
func TestTasks(t *testing.T) {
	for _, task := range tasks() {
		if task.isDone("Done.", &site{}) || len(task.wants) == 0 {
			t.Errorf("%s: every answer would do", task.name)
		}
		if full := strings.Join(task.wants, " "); !task.isDone(full, &site{posted: []string{task.posted}}) {
			t.Errorf("%s: %q is not an answer", task.name, full)
		}
		if task.posted != "" && task.isDone(strings.Join(task.wants, " "), &site{}) {
			t.Errorf("%s: it is done without the form", task.name)
		}
	}
}

// TestBroken checks that a run whose calls end differently is reported.
func TestBroken(t *testing.T) {
	past := recorded{Turns: []turn{{"{}", []string{"ok"}}, {"{}", nil}}}
	for name, now := range map[string]result{
		"a call that fails":    {turns: []turn{{"{}", []string{"not_found"}}, {"{}", nil}}},
		"fewer turns":          {turns: []turn{{"{}", []string{"ok"}}}},
		"a result that is off": {turns: past.Turns, end: wrong},
	} {
		if sameCourse(past, now) == nil {
			t.Errorf("%s is not reported", name)
		}
	}
	past.End = done
	if err := sameCourse(past, result{turns: past.Turns, end: done}); err != nil {
		t.Error(err)
	}
}

// TestNames checks that an ID of one run is the ID of another run's call.
func TestNames(t *testing.T) {
	n := newNames("127.0.0.1:4711")
	id := strings.Repeat("AB", 16)
	shown := n.hide("page " + id + " of http://127.0.0.1:4711/, call c00000000000000ff, again " + id)
	if strings.Contains(shown, id) || strings.Contains(shown, "4711") {
		t.Error(shown)
	}
	if got := n.show(shown); got != "page "+id+" of http://127.0.0.1:4711/, call c00000000000000ff, again "+id {
		t.Error(got)
	}
	snapshot := `- button "Go" qxz3`
	if shown := n.hide(snapshot); shown != `- button "Go" ea3` || n.show(`["click", "ea3"]`) != `["click", "qxz3"]` {
		t.Error(shown, n.show(`["click", "ea3"]`))
	}
}

// TestWriteRuns checks that a file of runs is read as it was written.
func TestWriteRuns(t *testing.T) {
	path := filepath.Join(t.TempDir(), "runs.jsonl")
	want := map[key]recorded{
		{"b", "m"}: {Task: "b", Mode: "m", Model: "x"}, {"a", "m"}: {Task: "a", Mode: "m", Model: "x"},
	}
	if err := writeRuns(path, want); err != nil {
		t.Fatal(err)
	}
	got, err := readRuns(path)
	if err != nil || len(got) != 2 || got[key{"a", "m"}].Model != "x" {
		t.Error(got, err)
	}
	if raw, _ := os.ReadFile(path); !strings.HasPrefix(string(raw), `{"task":"a"`) {
		t.Errorf("the runs are not in order: %s", raw)
	}
}
