// Command trial runs the examples of the DevTools Protocol's commands on prepared pages in a real browser, each with
// the calls that it needs before it, and writes what happened to the table cdp/internal/gen/ran.tsv.
//
// Examples and commands come from the provider of package cdp, and what happened before from the table. A path is
// relative to the root of the tree, in which the command runs.
//
// The pages are served as https://example.com/, the site that the examples name, to a browser that resolves every name
// to this machine. Each example runs in a session and a page of its own.
package main

import (
	"context"
	"flag"
	"os"
	"regexp"

	"github.com/parley-tools/parley/bench/internal/tree"
)

func main() {
	var o options
	only := flag.String("only", "", "regular expression of the commands to run")
	flag.StringVar(&o.binary, "parley", "", "the parley to run; default: built now")
	flag.StringVar(&o.effect, "effect", "", "run only commands with this effect")
	flag.StringVar(&o.kind, "kind", "", "run only examples of this kind")
	flag.StringVar(&o.tasks, "tasks", "", "do the tasks of this file, as "+tasksFile+", with the calls of parley plan")
	flag.BoolVar(&o.agent, "agent", false, "let an agent call every read-only command with {} and do what replies say")
	flag.StringVar(&o.paste, "paste", "", "open this page and paste the first example of every read-only tool")
	flag.IntVar(&o.part, "part", 0, "run one example in so many; 0: all")
	flag.IntVar(&o.parallel, "parallel", 2, "how many examples run at the same time")
	flag.StringVar(&o.table, "table", "", "write the table to this file")
	flag.BoolVar(&o.verbose, "v", false, "print every example")
	flag.BoolVar(&o.replies, "replies", false, "print the reply to each call of every example")
	flag.Parse()
	o.only = regexp.MustCompile(*only)
	tree.Main("trial", func(ctx context.Context) error { return run(ctx, o, os.Stdout) })
}
