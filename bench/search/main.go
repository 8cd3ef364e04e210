// Command search measures the search over tools with queries that no phrase of a tool was written from, and what each
// part of search adds. With -update it writes the figures between the markers in bench/search/report.md.
//
// The queries are those of queries.jsonl, for the shipped plugins, and those of testdata/search for tools of third
// parties. A part is left out by removing what search reads: from the documentation of the tools, or, for tables that
// are compiled in, by a build with another table. The figures are those of [host.Evaluate].
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/parley-tools/parley/bench/internal/ranked"
	"github.com/parley-tools/parley/bench/internal/tree"
)

func main() {
	update := flag.Bool("update", false, "write the figures into bench/search/report.md")
	scores := flag.Bool("scores", false, "print only the scores of each query, as JSON")
	flag.Parse()
	tree.Main("search", func(ctx context.Context) error { return run(ctx, *update, *scores) })
}

func run(ctx context.Context, update, onlyScores bool) error {
	sets, err := loadSets()
	if err != nil {
		return err
	}
	whole, err := evaluate(sets, part{})
	if err != nil {
		return err
	}
	if onlyScores {
		return json.NewEncoder(os.Stdout).Encode(whole)
	}
	rows := make([]string, len(sets))
	for i, s := range sets {
		rows[i] = s.row("everything", whole[i], nil)
	}
	for _, p := range parts {
		var scores [][]ranked.Score
		if p.table != "" {
			scores, err = buildWithout(ctx, p.table)
		} else {
			scores, err = evaluate(sets, p)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
		for i, s := range sets {
			if p.table != "" || s.has(p) {
				rows[i] += s.row(p.name, scores[i], whole[i])
			}
		}
	}
	for i, s := range sets {
		rows[i] += s.row("words as substrings", s.substrings(), whole[i])
	}
	text := header + strings.Join(rows, "") + "\n" + sets[0].kinds(whole[0])
	fmt.Print(text)
	if !update {
		return nil
	}
	return tree.Section{File: "bench/search/report.md", Name: "figures"}.Write("\n" + text + "\n")
}

// buildWithout returns the scores of a build without the entries of a table. The go command reads another file in its
// place; the tree stays as it is.
func buildWithout(ctx context.Context, table string) (scores [][]ranked.Score, err error) {
	dir, err := os.MkdirTemp("", "parley-search-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	root, err := tree.Root()
	if err != nil {
		return nil, err
	}
	blank, overlay := filepath.Join(dir, "blank"), filepath.Join(dir, "overlay.json")
	replace, err := json.Marshal(map[string]any{"Replace": map[string]string{filepath.Join(root, table): blank}})
	if err != nil {
		return nil, err
	}
	// As a thesaurus, these bytes are a line of no word; as vectors, their number, which is 0.
	err = errors.Join(os.WriteFile(blank, []byte("\x00\x00\x00\x00\x00\x00\x00\n"), 0o600),
		os.WriteFile(overlay, replace, 0o600))
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, "go", "run", "-overlay", overlay, "./search", "-scores")
	cmd.Dir, cmd.Stderr = "bench", os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, err
	}
	return scores, json.Unmarshal(out, &scores)
}
