package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"github.com/parley-tools/parley/bench/internal/tree"
)

// oracleTask is a task and the calls that do it. The calls of a turn need no result of each other.
type oracleTask struct {
	Task  string
	Turns [][]oracleCall
}

// oracleCall is a right call, and the query by which an agent that knows no tool would search for it.
type oracleCall struct {
	Want, Tool string
	Params     json.RawMessage
}

// oracleSets are the sets of tasks. What the first one searches for is what a language model searched for when it did
// the 19 tasks of the scenarios. The second one is by an author who had not seen what a search finds.
var oracleSets = []struct{ name, file string }{{"the 19 tasks", "turns.jsonl"}, {"19 others", "turns-later.jsonl"}}

// oracleModes are the modes that are compared with the first.
var oracleModes = []string{"full", "progressive", "minimal", "code"}

// loss is what an agent loses that knows the right tool and values as soon as it has read of them.
type loss struct {
	turns     int // that the calls take, and the answer
	missed    int // searches that do not show the tool
	described int // descriptions, for a parameter or a value of a choice that was not shown
	failed    int // calls that are refused, which full accepts
	searches  int // turns of searches that show the tools
}

func (l loss) sum() int { return l.turns + l.missed + l.described + l.failed }

func (l *loss) add(other loss) {
	l.turns += other.turns
	l.missed += other.missed
	l.described += other.described
	l.failed += other.failed
	l.searches += other.searches
}

func readOracleTasks(file string) (tasks []oracleTask, err error) {
	root, err := tree.Root()
	if err != nil {
		return nil, err
	}
	raw, err := os.ReadFile(filepath.Join(root, "bench", "agent", "testdata", file))
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(raw)) {
		var t oracleTask
		if err := json.Unmarshal([]byte(line), &t); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		tasks = append(tasks, t)
	}
	return tasks, nil
}

// consultAll does the tasks of all sets.
func consultAll(ctx context.Context, binary, home string) (sets [][]loss, err error) {
	for _, set := range oracleSets {
		losses, err := consult(ctx, binary, home, set.file)
		if err != nil {
			return nil, err
		}
		sets = append(sets, losses)
	}
	return sets, nil
}

// consult does the tasks of a set in every mode, each in a session of its own. Each mode has a folder of its own: by
// what was called in another one, tools would be pinned. Calls are made as dry runs: they are
// checked, and do nothing.
func consult(ctx context.Context, binary, home, file string) (losses []loss, err error) {
	tasks, err := readOracleTasks(file)
	if err != nil {
		return nil, err
	}
	truth := &client{binary: binary, home: filepath.Join(home, "truth"), mode: "full"}
	if _, err := truth.begin(ctx); err != nil {
		return nil, err
	}
	defer truth.close()
	losses = make([]loss, len(oracleModes))
	for i, mode := range oracleModes {
		for _, t := range tasks {
			o := &oracle{client: &client{binary: binary, home: filepath.Join(home, mode), mode: mode}, truth: truth,
				read: map[string]string{}}
			if err := o.do(ctx, t); err != nil {
				return nil, fmt.Errorf("%s, %s: %w", t.Task, mode, err)
			}
			losses[i].add(o.loss)
		}
	}
	return losses, nil
}

// oracle does one task.
type oracle struct {
	*client
	loss
	truth *client           // it lists every tool with its schema
	read  map[string]string // what was read about a tool
}

func (o *oracle) do(ctx context.Context, t oracleTask) error {
	if _, err := o.begin(ctx); err != nil {
		return err
	}
	defer o.close()
	for name, tool := range o.listed {
		raw, err := json.Marshal(tool)
		if err != nil {
			return err
		}
		o.read[name] = string(raw)
	}
	if program := o.read["run_code"]; program != "" { // a call of it is one of js.run
		o.read[listedName("js.run")] = program
	}
	o.turns = len(t.Turns) + 1
	if err := o.prepare(ctx, slices.Concat(t.Turns...)); err != nil {
		return err
	}
	for _, c := range slices.Concat(t.Turns...) {
		ok, err := dryRun(ctx, o.client, c)
		if err != nil {
			return err
		}
		if right, err := dryRun(ctx, o.truth, c); err != nil || ok == right {
			continue
		}
		o.failed++
	}
	return nil
}

// prepare searches for the tools that are not listed, and reads what the calls need and was not shown. Searches that
// find their tools are one turn; each other one is another.
func (o *oracle) prepare(ctx context.Context, calls []oracleCall) error {
	searched := false
	for _, c := range calls {
		if o.read[listedName(c.Tool)] != "" {
			continue
		}
		text, err := o.find(ctx, c.Want)
		if err != nil {
			return err
		}
		searched = true
		shown := entry(text, c.Tool)
		if shown == "" {
			o.missed++
			if shown, err = o.find(ctx, c.Tool); err != nil {
				return err
			}
		}
		o.read[listedName(c.Tool)] = shown
	}
	if searched {
		o.searches++
	}
	for _, c := range calls {
		if !o.lacks(c) {
			continue
		}
		o.described++
		a, err := o.use(ctx, "describe_tool", map[string]any{"name": c.Tool, "tier": 3, "again": true})
		if err != nil {
			return err
		}
		o.read[listedName(c.Tool)] += a.text
	}
	return nil
}

func (o *oracle) find(ctx context.Context, query string) (string, error) {
	arguments := map[string]any{"query": query}
	if o.mode == "code" {
		arguments = map[string]any{"queries": []string{query}}
	}
	a, err := o.use(ctx, "search_tools", arguments)
	return a.text, err
}

// entry returns what the answer to a search says of a tool besides its name: its line, and the indented ones below. An
// answer that is the documentation of the tool is returned whole.
func entry(text, tool string) string {
	var b strings.Builder
	inside := false
	for i, line := range strings.SplitAfter(text, "\n") {
		rest, ok := strings.CutPrefix(strings.TrimPrefix(line, "tools."), tool)
		switch {
		case ok && (rest == "" || strings.ContainsRune(" (:\n", rune(rest[0]))):
			if i == 0 && !strings.HasPrefix(rest, "(") && !strings.HasPrefix(rest, "  ") {
				return text
			}
			inside = true
			b.WriteString(line)
		case inside && strings.HasPrefix(line, " "):
			b.WriteString(line)
		default:
			inside = false
		}
	}
	return b.String()
}

// lacks reports whether a call needs a name or a value of a choice that was not read: of a parameter that is required,
// or that the call has.
func (o *oracle) lacks(c oracleCall) bool {
	var params map[string]any
	var schema struct {
		Properties map[string]struct{ Enum []any }
		Required   []string
	}
	raw, _ := json.Marshal(o.truth.listed[listedName(c.Tool)].InputSchema)
	if json.Unmarshal(raw, &schema) != nil || json.Unmarshal(c.Params, &params) != nil {
		return true
	}
	words := strings.FieldsFunc(o.read[listedName(c.Tool)], func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("_-.", r)
	})
	for _, name := range schema.Required {
		if !slices.Contains(words, name) {
			return true
		}
	}
	for name, value := range params {
		if !slices.Contains(words, name) {
			return true
		}
		if s, isText := value.(string); isText && slices.Contains(schema.Properties[name].Enum, value) &&
			!slices.Contains(words, s) {
			return true
		}
	}
	return false
}

// dryRun makes a call as a dry run, and reports whether it was accepted.
func dryRun(ctx context.Context, c *client, call oracleCall) (accepted bool, err error) {
	a, err := c.use(ctx, "call_tool", map[string]any{"name": call.Tool, "arguments": call.Params,
		"options": map[string]any{"dry_run": true}})
	return !a.failed, err
}

// turnsTable returns the losses of all modes, set by set.
func turnsTable(sets [][]loss) string {
	var b strings.Builder
	b.WriteString("| tasks | mode | turns | searches in vain | descriptions | failures | sum | of full " +
		"| with searches |\n|---|---|---|---|---|---|---|---|---|\n")
	for i, losses := range sets {
		full := float64(losses[0].sum())
		for j, l := range losses {
			fmt.Fprintf(&b, "| %s | %s | %d | %d | %d | %d | %d | %+.0f %% | %d |\n", oracleSets[i].name, oracleModes[j],
				l.turns, l.missed, l.described, l.failed, l.sum(), 100*(float64(l.sum())/full-1), l.sum()+l.searches)
		}
	}
	return b.String()
}
