// Command tokens counts what a model reads before its first call: the tools/list of parley mcp in each mode, and those
// of other servers, all in one run and offline. The tokens are those of o200k_base, counted exactly.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"text/tabwriter"

	"github.com/parley-tools/parley/internal/foreign"

	"github.com/parley-tools/parley/bench/internal/o200k"
	"github.com/parley-tools/parley/bench/internal/server"
	"github.com/parley-tools/parley/bench/internal/tree"
)

func main() {
	parley := flag.String("parley", filepath.Join("bin", "parley"),
		"the binary that is counted; a path from the root of the tree")
	flag.Parse()
	if err := run(context.Background(), *parley, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "tokens:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, parley string, out io.Writer) error {
	if err := tree.Enter(); err != nil {
		return err
	}
	modules, err := foreign.Fetch(".")
	if err != nil {
		return err
	}
	node, err := foreign.Node(modules)
	if err != nil {
		return err
	}
	work, err := os.MkdirTemp("", "parley-tokens-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	subjects, err := parleyModes(parley, filepath.Join("testdata", "wasm", "smallest.wasm"), work)
	if err != nil {
		return err
	}
	for _, s := range others {
		s.Command = append([]string{node, filepath.Join(modules, s.Command[0])}, s.Command[1:]...)
		subjects = append(subjects, s)
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "tools\ttools/list\twithout results\t  ")
	for _, s := range subjects {
		l, err := s.List(ctx, work)
		if err != nil {
			return fmt.Errorf("%s: %w", s.Name, err)
		}
		whole, parameters, err := list(l).tokens()
		if err != nil {
			return err
		}
		fmt.Fprintf(w, "%d\t%d\t%d\t  %s\n", len(l), whole, parameters, s.Name)
	}
	return w.Flush()
}

// others are servers from testdata/programs, each with the arguments that it needs to start.
var others = []server.Server{
	{Name: "chrome-devtools-mcp", Command: []string{"chrome-devtools-mcp/build/src/bin/chrome-devtools-mcp.js"}},
	{Name: "@playwright/mcp", Command: []string{"@playwright/mcp/cli.js"}},
	{Name: "@modelcontextprotocol/server-github", Command: []string{"@modelcontextprotocol/server-github/dist/index.js"}},
	{Name: "@modelcontextprotocol/server-filesystem",
		Command: []string{"@modelcontextprotocol/server-filesystem/dist/index.js", "."}},
	{Name: "@modelcontextprotocol/server-memory", Command: []string{"@modelcontextprotocol/server-memory/dist/index.js"}},
	{Name: "@modelcontextprotocol/server-everything",
		Command: []string{"@modelcontextprotocol/server-everything/dist/index.js"}},
}

// list holds the tools of a server as it sent them.
type list []json.RawMessage

// tokens counts the whole list, and the part that every client passes to a model: names, descriptions and parameters.
func (l list) tokens() (whole, parameters int, err error) {
	raw, err := plainJSON(l)
	if err != nil {
		return 0, 0, err
	}
	type tool struct {
		Name        string          `json:"name"`
		Description string          `json:"description"`
		InputSchema json.RawMessage `json:"inputSchema"`
	}
	short := make([]tool, len(l))
	for i, t := range l {
		if err := json.Unmarshal(t, &short[i]); err != nil {
			return 0, 0, err
		}
	}
	rest, err := plainJSON(short)
	if err != nil {
		return 0, 0, err
	}
	return o200k.Count(string(raw)), o200k.Count(string(rest)), nil
}
