// Command scenarios gives tasks to a language model that has only Parley, in each documentation mode, and counts what
// is done, how many turns it takes, what is read and what is given up.
//
// With -record it asks a model behind the chat-completions API: PARLEY_MODEL_URL, PARLEY_MODEL_NAME and, if it needs
// one, PARLEY_MODEL_KEY. What the model wrote is kept in recorded.jsonl. Without -record that is replayed: every call
// is made again, so the figures are those of the tree as it is. With -update FILE the figures are also written between
// the markers in that file of the tree.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/parley-tools/parley/bench/internal/tree"
	"github.com/parley-tools/parley/host/learn/model"
)

// recordedFile has what the model wrote, from the root of the tree.
const recordedFile = "bench/scenarios/recorded.jsonl"

// modes are the ways to reach the tools: the four documentation modes over MCP, and a shell with the instructions of
// MCP in the words of commands.
var modes = []string{"full", "progressive", "minimal", "code", prompt}

const prompt = "prompt"

func main() {
	record := flag.Bool("record", false, "ask the model at PARLEY_MODEL_URL, and keep what it writes")
	update := flag.String("update", "", "write the figures between the markers in this file of the tree")
	only := flag.String("modes", strings.Join(modes, ","), "the modes, separated by commas")
	names := flag.String("tasks", "", "the tasks, separated by commas; all if empty")
	limit := flag.Int("tokens", 20_000_000, "most tokens to spend with -record")
	timeout := flag.Duration("timeout", 2*time.Minute, "most time of one request with -record")
	flag.Parse()
	o := options{*record, *update, split(*only), split(*names), *limit, *timeout}
	tree.Main("scenarios", func(ctx context.Context) error { return run(ctx, o) })
}

type options struct {
	record       bool
	update       string
	modes, tasks []string
	tokens       int
	timeout      time.Duration
}

func split(list string) []string {
	return strings.FieldsFunc(list, func(r rune) bool { return r == ',' })
}

func run(ctx context.Context, o options) error {
	work, err := os.MkdirTemp("", "parley-scenarios-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	binary, err := tree.Build(ctx, work)
	if err != nil {
		return err
	}
	b := &bench{binary: binary, home: filepath.Join(work, "home")}
	if err := os.Mkdir(b.home, 0o700); err != nil {
		return err
	}
	kept, err := readRuns(recordedFile)
	if err != nil {
		return err
	}
	var asked *model.Client
	if o.record {
		if asked, err = client(filepath.Join(work, "exchanges.jsonl"), o); err != nil {
			return err
		}
	}
	results := map[key]result{}
	for _, mode := range o.modes {
		for _, t := range tasks() {
			if len(o.tasks) > 0 && !slices.Contains(o.tasks, t.name) {
				continue
			}
			k := key{t.name, mode}
			past, ok := kept[k]
			var m mind = &replayed{run: past, onPage: t.onPage()}
			if o.record {
				m = &asking{client: asked}
			} else if !ok {
				return fmt.Errorf("%s has no run of %s in mode %s; record it with -record", recordedFile, t.name, mode)
			}
			r, err := b.do(ctx, m, t, mode)
			if err != nil {
				return fmt.Errorf("%s, mode %s: %w", t.name, mode, err)
			}
			fmt.Fprintf(os.Stderr, "%-12s %-22s %v\n", mode, t.name, r)
			results[k] = r
			if o.record {
				kept[k] = recorded{Task: t.name, Mode: mode, Model: asked.Endpoint.Name, End: r.end, Turns: r.turns}
				if err := writeRuns(recordedFile, kept); err != nil {
					return err
				}
			}
		}
	}
	if len(results) != len(modes)*len(tasks()) {
		return nil // a table of some of them would be read as one of all
	}
	text := table(results)
	fmt.Print(text)
	if o.update == "" {
		return nil
	}
	return tree.Section{File: o.update, Name: "scenarios"}.Write(text)
}

// client returns the client of the model that the environment names.
func client(path string, o options) (*model.Client, error) {
	e := &model.Endpoint{URL: os.Getenv("PARLEY_MODEL_URL"), Name: os.Getenv("PARLEY_MODEL_NAME"),
		Key: os.Getenv("PARLEY_MODEL_KEY"), Timeout: o.timeout}
	if e.URL == "" || e.Name == "" {
		return nil, errors.New("-record needs PARLEY_MODEL_URL and PARLEY_MODEL_NAME")
	}
	if err := model.CheckURL(e.URL); err != nil {
		return nil, err
	}
	exchanges, err := model.OpenRecording(path, true)
	if err != nil {
		return nil, err
	}
	return &model.Client{Endpoint: e, Recording: exchanges, Budget: model.Budget{Tokens: o.tokens},
		Approve: func(context.Context) error { return nil }}, nil
}

// table returns the figures of each kind of task in each mode, and of all.
func table(results map[key]result) string {
	var b strings.Builder
	b.WriteString("| tasks | mode | done | wrong | given up | turns | calls | failed calls | tokens read | written |\n" +
		"|---|---|---|---|---|---|---|---|---|---|\n")
	for _, kind := range append(slices.Clone(kinds), "all") {
		for _, mode := range modes {
			var sum result
			n, ends, turns := 0, map[string]int{}, 0
			for _, t := range tasks() {
				if kind != "all" && t.kind != kind {
					continue
				}
				r := results[key{t.name, mode}]
				n++
				ends[r.end]++
				turns += len(r.turns)
				sum.calls += r.calls
				sum.failed += r.failed
				sum.read += r.read
				sum.written += r.written
			}
			fmt.Fprintf(&b, "| %s | %s | %d of %d | %d | %d | %d | %d | %d | %d | %d |\n", kind, mode, ends[done], n,
				ends[wrong], ends[gaveUp], turns, sum.calls, sum.failed, sum.read, sum.written)
		}
	}
	return b.String()
}
