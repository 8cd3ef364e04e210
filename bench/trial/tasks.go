package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/parley-tools/parley/cdp"
	"github.com/parley-tools/parley/host/advice"
)

// tasksFile has the tasks that tests do, from the root of the tree.
const tasksFile = "bench/trial/tasks.tsv"

// task is a command and its parameters that are no ids. `parley plan` adds the calls that return the ids.
type task struct {
	words  string
	params string
	example
	holes []string // what the plan leaves to a person
}

// readTasks reads a table of tasks.
func readTasks(text string) (tasks []*task, err error) {
	for i, line := range strings.Split(text, "\n") {
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		cells := strings.Split(line, "\t")
		if len(cells) != 3 || !json.Valid([]byte(cells[2])) {
			return nil, fmt.Errorf("line %d: expected a task, a command and a JSON object, separated by tabs", i+1)
		}
		c, err := provider.Tool(cells[1])
		if err != nil {
			return nil, err
		}
		if c == nil {
			return nil, fmt.Errorf("line %d: there is no command %s", i+1, cells[1])
		}
		tasks = append(tasks, &task{words: cells[0], params: cells[2], example: example{command: c}})
	}
	return tasks, nil
}

// runTasks plans the tasks of a file in the browser, makes the calls, and prints what did not succeed and the sums.
func runTasks(ctx context.Context, o options, out io.Writer) error {
	raw, err := os.ReadFile(o.tasks)
	if err != nil {
		return err
	}
	tasks, err := readTasks(string(raw))
	if err != nil {
		return fmt.Errorf("%s: %w", o.tasks, err)
	}
	l, err := newLab(ctx, o.binary)
	if err != nil {
		return err
	}
	defer l.close()
	fmt.Fprintln(out, score(tasks, func(t *task) {
		l.doTask(ctx, t)
		if o.verbose || t.status != verified {
			fmt.Fprintln(out, t)
		}
	}))
	return nil
}

// hole is the status of a task whose plan leaves a value to a person.
const hole = "hole"

func (t *task) String() string {
	return fmt.Sprintf("%-9s %s %s: %s", t.status, t.command.Name, t.params, t.message+strings.Join(t.holes, ", "))
}

// scored counts tasks by what became of them.
type scored struct{ ran, holes, all int }

func (s scored) String() string {
	return fmt.Sprintf("%d of %d chains ran, %d others leave a value to a person", s.ran, s.all, s.holes)
}

// score does the tasks and counts them.
func score(tasks []*task, do func(*task)) (s scored) {
	for _, t := range tasks {
		do(t)
		s.all++
		switch t.status {
		case verified:
			s.ran++
		case hole:
			s.holes++
		}
	}
	return s
}

// doTask plans a task on the prepared page and makes the calls, in a session of its own.
func (l *lab) doTask(ctx context.Context, t *task) {
	l.mu.Lock()
	l.session++
	session := fmt.Sprintf("task%d", l.session)
	l.mu.Unlock()
	l.planned(ctx, t, session, "")
	if strings.Contains(t.message, "the pages of others") { // sessions do not reach the whole browser
		const browser = "alone"
		_, _ = l.parley(ctx, time.Minute, nil, "cdp", "open", "--params", l.params, "--browser", browser)
		l.planned(ctx, t, "", browser)
		_, _ = l.parley(ctx, 20*time.Second, nil, "cdp", "close", "--browser", browser)
	}
	_, _ = l.parley(ctx, 20*time.Second, nil, "cdp", "close", "--session", session)
}

// planned does a task in a session of the open browser, or else in another browser.
func (l *lab) planned(ctx context.Context, t *task, session, browser string) {
	t.status, t.message, t.holes = failed, "", nil
	var inSession []string
	where := []string{"--browser", browser}
	if session != "" {
		inSession, where = []string{"--session", session}, []string{"--session", session}
	}
	_ = l.batch(ctx, openPage(browser), inSession...)
	raw, err := l.parley(ctx, time.Minute, nil,
		append([]string{"plan", cdp.Name + "." + t.command.Name, "--params", t.params, "--json"}, where...)...)
	var reply struct{ Data advice.Plan }
	if err != nil || json.Unmarshal(raw, &reply) != nil {
		t.message = fmt.Sprintf("no plan: %s", raw)
		return
	}
	if t.holes = reply.Data.Holes; len(t.holes) > 0 {
		t.status = hole
		return
	}
	lines := make([]any, len(reply.Data.Calls))
	for i, c := range reply.Data.Calls {
		lines[i] = c
	}
	answers := l.batch(ctx, lines, inSession...)
	t.message = "no answer"
	for i, a := range answers {
		switch {
		case !a.OK:
			t.message = fmt.Sprintf("%s: %s: %s", reply.Data.Calls[i].Tool, a.Error.Code, a.Error.Message)
		case i == len(lines)-1:
			t.status, t.message, t.result = verified, "", a.Data
			if why := disappoints(&t.example); why != "" {
				t.status, t.message = failed, why
			}
		}
	}
}
