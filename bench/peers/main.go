// Command peers compares Parley's command line with other browser tools for agents: agent-browser, playwright-cli and
// chrome-devtools-mcp. An agent without a model does the same tasks with each, in the same Chromium, by calls that an
// experienced user of the tool would write. It counts calls, the tokens of calls and replies, and times; what was
// achieved is asked of the server of the pages, not of the tool.
//
// Another part does thirteen larger tasks, the jobs, also with two servers of MCP. Two more time single calls beside
// agent-browser, and count the tokens of its snapshots and Parley's.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/parley-tools/parley/internal/foreign"

	"github.com/parley-tools/parley/bench/internal/npm"
	"github.com/parley-tools/parley/bench/internal/tree"
)

func main() {
	var b bench
	flag.IntVar(&b.runs, "runs", 20, "runs of each task; at least 20 calls are timed")
	flag.IntVar(&b.agents, "agents", 1, "agents that do each task at the same time; they are compared with one alone")
	flag.BoolVar(&b.verbose, "v", false, "show what was written and read: in jobs, and when a task was not done")
	task := flag.String("task", "", "only this task or job")
	peer := flag.String("peer", "", "only this tool")
	part := flag.String("part", "", "one of tasks, jobs, times, looks; all when empty and no task or tool is chosen")
	flag.Parse()
	b.out = os.Stdout
	tree.Main("peers", func(ctx context.Context) error { return b.run(ctx, *part, *task, *peer) })
}

// bench is the benchmark.
type bench struct {
	runs, agents int
	verbose      bool
	out          io.Writer
	ofJobs       bool // whether jobs are done: each in a session of its own

	work    string // a temporary folder; its path is short, because sockets are below it
	tools   []tool
	servers []tool                       // those that do only jobs
	scripts map[string]map[string]script // by tool and task or job
}

func (b *bench) run(ctx context.Context, part, taskName, peer string) (err error) {
	if part != "" && !slices.Contains([]string{"tasks", "jobs", "times", "looks"}, part) {
		return fmt.Errorf("there is no part %q", part)
	}
	if b.work, err = os.MkdirTemp("", "peers-"); err != nil {
		return err
	}
	defer os.RemoveAll(b.work)
	if err := b.install(ctx); err != nil {
		return err
	}
	defer func() { // before the folder is removed
		for _, t := range b.tools {
			err = errors.Join(err, t.stop(context.WithoutCancel(ctx)))
		}
	}()
	all := part == "" && taskName == "" && peer == ""
	if part == "" || part == "tasks" {
		err = b.compare(ctx, tasks, b.tools, taskName, peer)
	}
	if err == nil && (all || part == "jobs") {
		b.ofJobs, b.runs = true, min(b.runs, jobRuns)
		err = b.compare(ctx, jobs, slices.Concat(b.tools, b.servers), taskName, peer)
	}
	if err == nil && (all || part == "times") {
		err = b.withPair(ctx, b.times)
	}
	if err == nil && (all || part == "looks") {
		err = b.withPair(ctx, b.looks)
	}
	return err
}

// choose returns the item of a name, or all if the name is empty.
func choose[T any](all []T, name func(*T) string, wanted string) ([]T, error) {
	if wanted == "" {
		return all, nil
	}
	var names []string
	for i := range all {
		if names = append(names, name(&all[i])); names[i] == wanted {
			return all[i : i+1], nil
		}
	}
	return nil, fmt.Errorf("%q is unknown; expected one of %s", wanted, strings.Join(names, ", "))
}

// install builds Parley, fetches the other tools and puts the commands of all into one folder of PATH.
func (b *bench) install(ctx context.Context) error {
	modules, err := npm.Fetch(ctx, "peers")
	if err != nil {
		return err
	}
	node, err := foreign.Node(modules)
	if err != nil {
		return err
	}
	if node, err = exec.LookPath(node); err != nil {
		return err
	}
	bin := filepath.Join(b.work, "bin")
	if err := os.Mkdir(bin, 0o700); err != nil {
		return err
	}
	parley, err := tree.Build(ctx, bin, "-trimpath", "-ldflags=-s -w")
	if err != nil {
		return err
	}
	err = errors.Join(
		os.Symlink(parley, filepath.Join(bin, "parley")),
		os.Symlink(node, filepath.Join(bin, "node")),
		os.Symlink(filepath.Join(modules, "@playwright", "cli", "playwright-cli.js"), filepath.Join(bin, "playwright-cli")),
		os.Setenv("PATH", bin+string(os.PathListSeparator)+os.Getenv("PATH")))
	if err != nil {
		return err
	}
	chrome, err := tree.Chrome(parley, append(os.Environ(), "PARLEY_HOME="+filepath.Join(b.work, "parley")))
	if err != nil {
		return err
	}
	_, env, err := npm.AgentBrowser(modules, bin, b.work, chrome)
	if err != nil {
		return err
	}
	b.tools = []tool{newParley(b.work), newAgentBrowser(env), newPlaywright(b.work, modules, chrome),
		newDevtools(node, modules, chrome)}
	b.servers = []tool{newParleyServer(parley, b.work), newPlaywrightServer(node, modules, chrome)}
	b.scripts = scripts
	return nil
}
