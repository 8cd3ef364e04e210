package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/parley-tools/parley/manifest"
)

// runPaste does what a newcomer does with each tool of cdp that only reads: it opens a page, reads the second tier, and
// pastes the first example into a shell.
func runPaste(ctx context.Context, o options, out io.Writer) error {
	l, err := newLab(ctx, o.binary)
	if err != nil {
		return err
	}
	defer l.close()
	names, err := provider.Names()
	if err != nil {
		return err
	}
	ran, all, wrong, silent := 0, 0, 0, 0
	for _, name := range names {
		tool, err := provider.Tool(name)
		if err != nil {
			return err
		}
		if tool.Effect != manifest.EffectRead || !o.only.MatchString(name) || ctx.Err() != nil {
			continue
		}
		all++
		e, problem := l.paste(ctx, name, o.paste)
		switch {
		case problem == "":
			ran++
		case e.Verified != "":
			wrong++
		case e.NotRun == "":
			silent++
		}
		if o.verbose || problem != "" {
			fmt.Fprintf(out, "%s [%s%s]\n\t%s\n\t%s\n", name, e.Verified, e.NotRun, e.Command, manifest.Clip(problem, 300))
		}
	}
	fmt.Fprintf(out, "%s: %d of %d first examples ran as pasted; of the others %d are verified, %d do not say why\n",
		l.product, ran, all, wrong, silent)
	return ctx.Err()
}

// paste opens a page and pastes the first example of a tool. It returns the example, and why it did not run.
func (l *lab) paste(ctx context.Context, tool, url string) (e manifest.ExampleDoc, problem string) {
	run := func(line string) (string, error) {
		ctx, cancel := context.WithTimeout(ctx, time.Minute)
		defer cancel()
		cmd := exec.CommandContext(ctx, "sh", "-c", line)
		cmd.Env = append(os.Environ(), "PARLEY_HOME="+l.home, "PATH="+filepath.Dir(l.binary)+":"+os.Getenv("PATH"))
		cmd.WaitDelay = time.Second
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	described, err := run("parley cdp " + tool + " --describe --json")
	var docs manifest.ToolDocs
	if err != nil || json.Unmarshal([]byte(described), &docs) != nil || len(docs.Examples) == 0 {
		return e, "no example: " + described
	}
	e = docs.Examples[0]
	if _, err := run("parley page open " + url); err != nil { // another example has broken the browser
		_, _ = l.parley(ctx, 20*time.Second, nil, "cdp", "close", "--all")
		_ = l.open(ctx)
		if opened, err := run("parley page open " + url); err != nil {
			return e, "open: " + opened
		}
	}
	if answer, err := run(e.Command); err != nil {
		problem = err.Error() + ": " + strings.TrimSpace(answer)
	}
	_, _ = run("parley cdp close")
	return e, problem
}
