// Command agent measures Parley with a scripted agent that has no model. It has only the knowledge that applies to any
// program or MCP server, reads the rest, and does what replies say: next steps, signatures, corrected calls.
//
// It measures what a request begins with, the cost of a first result, of four scenarios in each documentation mode, of
// six tasks with programs and without, how far an error alone leads after a mistake, and what an oracle loses that
// knows the right calls: -turns PARLEY measures only that, of another binary, and -prompts only what a request begins
// with. With -update FILE it also writes the figures between the markers in that file of the tree.
//
// With -mistakes open, closed, fresh, third to ninth or a path it makes only the calls of that file of testdata, and
// prints how many of them are what they mean, at once or as the error corrects them. Of the closed file
// it prints the totals only, so that whoever works on corrections does not learn it; -show prints each call.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/parley-tools/parley/bench/internal/o200k"
	"github.com/parley-tools/parley/bench/internal/tree"
)

func main() {
	update := flag.String("update", "", "write the figures between the markers in this file of the tree")
	mistakes := flag.String("mistakes", "",
		"make the calls of this file only: open, closed, fresh, third to ninth or a path")
	turns := flag.String("turns", "", "only count the turns of an oracle, of this parley")
	onlyPrompts := flag.Bool("prompts", false, "only count what a request begins with, and -update that")
	show := flag.Bool("show", false, "with -mistakes closed: print each call")
	flag.Parse()
	tree.Main("agent", func(ctx context.Context) error {
		work, err := os.MkdirTemp("", "parley-agent-")
		if err != nil {
			return err
		}
		defer os.RemoveAll(work)
		if *turns != "" {
			sets, err := consultAll(ctx, *turns, filepath.Join(work, "home"))
			fmt.Println(turnsTable(sets))
			return err
		}
		binary, err := tree.Build(ctx, work)
		if err != nil {
			return err
		}
		if *onlyPrompts {
			return count(ctx, binary, filepath.Join(work, "prompts"), *update)
		}
		if *mistakes == "" {
			return run(ctx, binary, work, *update)
		}
		figures, err := makeLearned(ctx, binary, filepath.Join(work, "home"), *mistakes, func(id, outcome string) {
			if *show || !strings.Contains(*mistakes, "closed") {
				fmt.Println(id, outcome)
			}
		})
		fmt.Println(figures)
		return err
	})
}

func run(ctx context.Context, binary, work, update string) error {
	home := filepath.Join(work, "home")
	costs, err := playAll(ctx, binary, home)
	if err != nil {
		return err
	}
	done, err := doTasks(ctx, binary, filepath.Join(work, "tasks"))
	if err != nil {
		return err
	}
	planned, err := planAll(ctx, binary, home)
	if err != nil {
		return err
	}
	counts, err := makeAll(ctx, binary, home, planned)
	if err != nil {
		return err
	}
	losses, err := consultAll(ctx, binary, filepath.Join(work, "turns"))
	if err != nil {
		return err
	}
	starts, err := startAll(ctx, binary, filepath.Join(work, "prompts"))
	if err != nil {
		return err
	}
	sections := map[string]string{promptsSection: promptsTable(starts), modesSection: modesTable(costs),
		tasksSection:    tasksTable(done),
		mistakesSection: counts.String(), turnsSection: turnsTable(losses)}
	for _, name := range slices.Sorted(maps.Keys(sections)) {
		fmt.Println(sections[name])
		if update != "" {
			if err := (tree.Section{File: update, Name: name}).Write(sections[name]); err != nil {
				return err
			}
		}
	}
	if update != "" {
		return tree.Section{File: readme, Name: recoverySection}.Write(counts.short())
	}
	return nil
}

// count prints what a request begins with, and writes it to a file unless that is "".
func count(ctx context.Context, binary, home, update string) error {
	starts, err := startAll(ctx, binary, home)
	if err != nil {
		return err
	}
	fmt.Println(promptsTable(starts))
	if update == "" {
		return nil
	}
	return (tree.Section{File: update, Name: promptsSection}).Write(promptsTable(starts))
}

// Sections of docs/mcp.md that this command writes.
const (
	modesSection    = "modes"
	tasksSection    = "tasks"
	mistakesSection = "mistakes"
	turnsSection    = "turns"
	promptsSection  = "prompts"
)

// readme has the figures of recovery in short.
const (
	readme          = "README.md"
	recoverySection = "recovery"
)

// modes are the three documentation modes. The others are compared with the first.
var modes = []string{"full", "progressive", "minimal"}

// playAll plays every scenario in every mode. costs has a row for each scenario and a column for each mode.
func playAll(ctx context.Context, binary, home string) (costs [][]cost, err error) {
	url, stop, err := serve()
	if err != nil {
		return nil, err
	}
	defer stop()
	if err := pin(home); err != nil {
		return nil, err
	}
	for _, s := range scenarios() {
		var row []cost
		for _, mode := range modes {
			c, err := play(ctx, binary, home, mode, url, s)
			if err = errors.Join(err, tree.CloseBrowser(binary, home)); err != nil {
				return nil, err
			}
			row = append(row, c)
		}
		costs = append(costs, row)
	}
	return costs, nil
}

// modesTable returns the comparison of the modes, with the sums over all scenarios.
func modesTable(costs [][]cost) string {
	var b strings.Builder
	b.WriteString("| scenario | mode | calls | failures | turns | tokens |\n|---|---|---|---|---|---|\n")
	for i, s := range scenarios() {
		for j, mode := range modes {
			row(&b, s.name, mode, costs[i][j])
		}
	}
	for j, mode := range modes {
		row(&b, "all four", mode, sum(costs, j))
	}
	return b.String()
}

// sum adds up the costs of all scenarios in a mode.
func sum(costs [][]cost, mode int) (all cost) {
	for _, row := range costs {
		c := row[mode]
		all.calls += c.calls
		all.failures += c.failures
		all.turns += c.turns
		all.tokens += c.tokens
		all.written += c.written
	}
	return all
}

func row(b *strings.Builder, name, mode string, c cost) {
	fmt.Fprintf(b, "| %s | %s | %d | %d | %d | %d |\n", name, mode, c.calls, c.failures, c.turns, c.tokens)
}

// String returns the summary of all mistakes.
func (o outcomes) String() string {
	all := o.sum()
	others := all.made - all.accepted - all.recoverable
	return fmt.Sprintf("%d mistakes of %d kinds, each made with every tool to which it applies. "+
		"The first call corrected and reported %d.\n"+
		"%d others reveal what was meant: the second call was the intended one in %.1f %%, and succeeded in %.1f %%.\n"+
		"The other %d do not: %d errors had a template with placeholders. "+
		"%d suggestions had a value that was not given.\n",
		all.made, len(o), all.accepted, all.recoverable, 100*all.share(all.meant), 100*all.share(all.succeeded), others,
		all.templates, len(all.wrong))
}

// short returns the figures of recovery for README.md.
func (o outcomes) short() string {
	all := o.sum()
	return fmt.Sprintf("After a mistake that reveals what was meant, the call that the error suggests is the intended "+
		"one in\n%.1f %% of %d cases, and succeeds in %.1f %%; %d suggestions had a value that was not given.\n",
		100*all.share(all.meant), all.recoverable, 100*all.share(all.succeeded), len(all.wrong))
}

// serve serves the pages of the tasks on the loopback interface. The first one has the title Harbour.
func serve() (url string, stop func(), err error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	server := &http.Server{Handler: site()}
	go server.Serve(listener)
	return "http://" + listener.Addr().String() + "/", func() { server.Close() }, nil
}

// tokens counts the tokens of a text, with a fixed value for what differs from run to run.
func tokens(text string) int { return o200k.Count(normalize(text)) }

// volatile matches what differs from run to run, and with it the count by a few tokens: IDs of calls and pages, and
// ports.
var volatile = regexp.MustCompile(`\bc[0-9a-f]{16}\b|\b[0-9A-F]{32}\b|127\.0\.0\.1:\d+`)

// normalize replaces what is volatile in a text by a constant.
func normalize(text string) string { return volatile.ReplaceAllString(text, "c0123456789abcdef") }
