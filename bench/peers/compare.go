package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/parley-tools/parley/bench/internal/o200k"
)

// result is how one agent did one task.
type result struct {
	cost
	outcome
}

// row holds the results of a task with a tool.
type row struct {
	task, tool string
	results    []result
}

// count returns how many of the results have an outcome.
func (r row) count(o outcome) (n int) {
	for _, one := range r.results {
		if one.outcome == o {
			n++
		}
	}
	return n
}

// typical returns the medians of the costs.
func (r row) typical() cost {
	return cost{
		median(r.results, func(r result) int { return r.calls }), median(r.results, func(r result) int { return r.in }),
		median(r.results, func(r result) int { return r.out }),
		median(r.results, func(r result) time.Duration { return r.took }),
	}
}

func median[T any, N int | time.Duration](all []T, of func(T) N) N {
	var values []N
	for _, one := range all {
		values = append(values, of(one))
	}
	slices.Sort(values)
	if len(values) == 0 {
		return 0
	}
	return values[len(values)/2]
}

// compare does the tasks with the tools, or one of either, and prints the tables.
func (b *bench) compare(ctx context.Context, tasks []task, tools []tool, taskName, peer string) error {
	tasks, err := choose(tasks, func(t *task) string { return t.name }, taskName)
	if err != nil {
		return err
	}
	if tools, err = choose(tools, func(t *tool) string { return (*t).name() }, peer); err != nil {
		return err
	}
	if err := b.lessons(ctx, tools); err != nil {
		return err
	}
	alone, err := b.do(ctx, tasks, tools, 1)
	if err != nil {
		return err
	}
	fmt.Fprint(b.out, "\n", table(alone), "\n", behind(alone, tools[0].name()))
	if b.agents == 1 {
		return nil
	}
	together, err := b.do(ctx, tasks, tools, b.agents)
	if err == nil {
		fmt.Fprint(b.out, "\n", crowd(alone, together, b.agents))
	}
	return err
}

// lessons prints the tokens of what an agent reads before its first task.
func (b *bench) lessons(ctx context.Context, tools []tool) error {
	fmt.Fprint(b.out, "| tool | tokens read before the first task |\n|---|---|\n")
	for _, t := range tools {
		text, err := t.lessons(ctx, b.work)
		if err != nil {
			return err
		}
		fmt.Fprintf(b.out, "| %s | %d |\n", t.name(), o200k.Count(text))
	}
	return nil
}

// do runs every task with every tool. The tools take turns, so that a busy machine slows them equally.
func (b *bench) do(ctx context.Context, tasks []task, tools []tool, agents int) ([]row, error) {
	crews := make([]crew, len(tools))
	for i, t := range tools {
		crews[i].tool = t
		for n := range agents {
			folder := filepath.Join(b.work, fmt.Sprintf("%c%d", 'a'+n, agents))
			if err := os.MkdirAll(folder, 0o700); err != nil {
				return nil, err
			}
			crews[i].workers = append(crews[i].workers, &worker{bench: b, tool: t, folder: folder})
		}
	}
	defer func() {
		for _, c := range crews {
			c.end(context.WithoutCancel(ctx))
		}
	}()
	var rows []row
	for _, t := range tasks {
		of := make([]row, len(crews))
		for range b.runs {
			for i, c := range crews {
				results, err := c.do(ctx, t)
				if err != nil {
					return nil, fmt.Errorf("%s with %s: %w", t.name, c.tool.name(), err)
				}
				of[i].task, of[i].tool, of[i].results = t.name, c.tool.name(), append(of[i].results, results...)
			}
		}
		rows = append(rows, of...)
	}
	return rows, nil
}

// crew is the agents that work with one tool at the same time.
type crew struct {
	tool    tool
	workers []*worker
}

func (c crew) do(ctx context.Context, t task) ([]result, error) {
	results, errs := make([]result, len(c.workers)), make([]error, len(c.workers))
	var all sync.WaitGroup
	for i, w := range c.workers {
		all.Go(func() { results[i], errs[i] = w.do(ctx, t) })
	}
	all.Wait()
	return results, errors.Join(errs...)
}

func (c crew) end(ctx context.Context) {
	for _, w := range c.workers {
		_ = w.leave(ctx)
	}
}

// worker does one task after the other, each at an empty page.
type worker struct {
	*bench
	tool   tool
	folder string
	seat   seat // nil if the browser has to be started
}

func (w *worker) do(ctx context.Context, t task) (result, error) {
	if w.ofJobs { // files are results of these
		if err := errors.Join(os.RemoveAll(w.folder), os.Mkdir(w.folder, 0o700)); err != nil {
			return result{}, err
		}
	}
	if err := w.sit(ctx); err != nil {
		return result{}, err
	}
	s := newSite()
	defer s.close()
	a := &agent{seat: w.seat, site: s, url: s.page(t.page), upload: filepath.Join(w.folder, uploadName),
		name: fmt.Sprint("ada", s.nonce)}
	if err := os.WriteFile(a.upload, []byte(uploadText), 0o600); err != nil {
		return result{}, err
	}
	if err := a.follow(ctx, w.scripts[w.tool.name()][t.name]); err != nil {
		return result{}, err
	}
	r := result{a.cost, t.check(s, a)}
	if w.verbose && (r.outcome != succeeded || w.ofJobs) {
		fmt.Fprintf(os.Stderr, "--- %s with %s: %s\n%ssite: %v\n", t.name, w.tool.name(), r.outcome, a.transcript(), s.told)
	}
	if r.outcome != succeeded || w.ofJobs || slices.Contains(leaving, t.name) {
		return r, w.leave(ctx)
	}
	return r, nil
}

// sit gets the worker an empty page.
func (w *worker) sit(ctx context.Context) (err error) {
	if w.seat != nil && w.seat.reset(ctx) == nil {
		return nil
	}
	if err := w.leave(ctx); err != nil {
		return err
	}
	w.seat, err = w.tool.seat(ctx, w.folder)
	return err
}

// leave closes the browser of the worker.
func (w *worker) leave(ctx context.Context) error {
	if w.seat == nil {
		return nil
	}
	err := w.seat.end(ctx)
	w.seat = nil
	return err
}

// table returns the rows as Markdown, with the sums of each tool at the end.
func table(rows []row) string {
	var b strings.Builder
	b.WriteString("| task | tool | calls | tokens in | tokens out | ms | failures | silent wrong answers |\n" +
		"|---|---|---|---|---|---|---|---|\n")
	var order []string
	sums := map[string]*total{}
	for _, r := range rows {
		one := total{r.typical(), r.count(failed), r.count(silent)}
		one.line(&b, r.task, r.tool)
		if sums[r.tool] == nil {
			sums[r.tool] = &total{}
			order = append(order, r.tool)
		}
		sums[r.tool].add(one)
	}
	for _, tool := range order {
		sums[tool].line(&b, "all", tool)
	}
	return b.String()
}

// total is what a line of the table shows.
type total struct {
	cost
	failed, silent int
}

func (t *total) add(one total) {
	t.calls += one.calls
	t.in += one.in
	t.out += one.out
	t.took += one.took
	t.failed += one.failed
	t.silent += one.silent
}

func (t total) line(b *strings.Builder, task, tool string) {
	fmt.Fprintf(b, "| %s | %s | %d | %d | %d | %d | %d | %d |\n", task, tool, t.calls, t.in, t.out,
		t.took.Milliseconds(), t.failed, t.silent)
}

// behind returns a line for each task in which a tool is behind the best of the others: those that did the task in most
// runs. Each figure is compared with the least of them.
func behind(rows []row, tool string) string {
	var b strings.Builder
	for _, own := range rows {
		if own.tool != tool {
			continue
		}
		if n := len(own.results) - own.count(succeeded); n > 0 {
			fmt.Fprintf(&b, "%s: %s did not do it in %d of %d runs\n", own.task, tool, n, len(own.results))
		}
		for _, figure := range []struct {
			name string
			of   func(cost) int
		}{
			{"calls", func(c cost) int { return c.calls }}, {"tokens", func(c cost) int { return c.in + c.out }},
		} {
			best, name := figure.of(own.typical()), tool
			for _, r := range rows {
				if n := figure.of(r.typical()); r.task == own.task && 2*r.count(succeeded) > len(r.results) && n < best {
					best, name = n, r.tool
				}
			}
			if name != tool {
				fmt.Fprintf(&b, "%s: %s %d, %s %d\n", own.task, figure.name, figure.of(own.typical()), name, best)
			}
		}
	}
	return b.String()
}

// crowd returns a comparison of agents alone and together.
func crowd(alone, together []row, agents int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "| task | tool | done alone | done by %d at once | ms alone | ms at once |\n", agents)
	b.WriteString("|---|---|---|---|---|---|\n")
	for i, one := range alone {
		all := together[i]
		fmt.Fprintf(&b, "| %s | %s | %d of %d | %d of %d | %d | %d |\n", one.task, one.tool, one.count(succeeded),
			len(one.results), all.count(succeeded), len(all.results), one.typical().took.Milliseconds(),
			all.typical().took.Milliseconds())
	}
	return b.String()
}
