package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/parley-tools/parley/manifest"
	"github.com/parley-tools/parley/manifest/jsontext"
)

// maxResult bounds the result of an example in the table, in bytes.
const maxResult = 400

// tableFile is the committed table, from the root of the tree.
const tableFile = "cdp/internal/gen/ran.tsv"

// header explains the table. Its first line names the browser and the page.
const header = ranOn + `%s on ` + page + `
# What happened when the examples ran. Written by ` + "`go -C bench run ./trial -table " + tableFile + "`" + `.
#
# Columns: command, title of the example, outcome (verified, failed, hung, skipped or unknown), the calls before it as lines
# of a batch ("-" for none), its parameters, its result or why there is none.
`

// ranOn is what the first line begins with.
const ranOn = "# Ran on: "

// table is what happened when the examples ran.
type table struct {
	product string              // of the browser
	rows    map[string][]string // the outcome, calls, parameters and text, by command and title
}

// readTable reads a table; one without rows if the file does not exist.
func readTable(file string) (t table, err error) {
	t.rows = map[string][]string{}
	raw, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return t, nil
	}
	for i, line := range strings.Split(string(raw), "\n") {
		switch cells := strings.Split(line, "\t"); {
		case strings.HasPrefix(line, ranOn):
			t.product, _, _ = strings.Cut(strings.TrimPrefix(line, ranOn), " on ")
		case strings.HasPrefix(line, "#") || line == "":
		case len(cells) != 6:
			return t, fmt.Errorf("%s:%d: expected six columns, got %d", file, i+1, len(cells))
		default:
			t.rows[cells[0]+"\t"+cells[1]] = cells[2:]
		}
	}
	return t, err
}

// outcome returns the outcome of an example, "" if it did not run.
func (t table) outcome(e *example) string {
	if row := t.rows[e.key()]; row != nil {
		return row[0]
	}
	return ""
}

// write writes the table. The rows of examples that were not run stay as they are.
func write(file string, ran []*example, product string) error {
	t, err := readTable(file)
	if err != nil {
		return err
	}
	for _, e := range ran {
		t.rows[e.key()] = e.row()
	}
	all, err := commands()
	if err != nil {
		return err
	}
	var b strings.Builder
	fmt.Fprintf(&b, header, product)
	for _, c := range all {
		for _, x := range provider.Examples(c.Name) {
			e := &example{command: c, Example: x}
			if row := t.rows[e.key()]; row != nil {
				b.WriteString(e.key() + "\t" + strings.Join(row, "\t") + "\n")
			}
		}
	}
	return os.WriteFile(file, []byte(b.String()), 0o644)
}

func (e *example) key() string { return e.command.Name + "\t" + e.Title }

// row returns what the table says about the example.
func (e *example) row() []string {
	text := e.message
	if e.status == verified {
		text = shortResult(e.result)
	}
	before := "-"
	if calls := e.lines(); len(calls) > 0 {
		before = string(jsontext.Marshal(calls))
	}
	return []string{e.status, before, cmp.Or(string(manifest.CompactJSON(e.with)), "{}"),
		strings.ReplaceAll(manifest.CleanLine(text), "\t", " ")}
}

// shortResult returns a result as JSON: as it is if it is small, and otherwise the text of its beginning.
func shortResult(result json.RawMessage) string {
	compact := string(manifest.CompactJSON(result))
	switch {
	case compact == "":
		return "{}"
	case len(compact) <= maxResult && manifest.CleanLine(compact) == compact:
		return compact
	}
	return string(jsontext.Marshal(manifest.Clip(manifest.CleanLine(compact), maxResult-20)))
}
