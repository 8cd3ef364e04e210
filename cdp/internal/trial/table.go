package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"github.com/parley-tools/parley/cdp/internal/protocol"
	"github.com/parley-tools/parley/manifest"
	"github.com/parley-tools/parley/manifest/jsontext"
)

// maxResult bounds the result of an example in the table, in bytes.
const maxResult = 400

// header explains the table. Its first line names the browser and the page.
const header = `# Ran on: %s on ` + page + `
# What happened when the examples ran. Written by ` + "`go run ./cdp/internal/trial -table cdp/internal/gen/ran.tsv`" + `.
#
# Columns: command, title of the example, outcome (verified, failed, hung, skipped or unknown), the calls before it as lines
# of a batch ("-" for none), its parameters, its result or why there is none.
`

// write writes the table. The rows of examples that were not run stay as they are.
func write(file string, ran []*example, product string) error {
	old := map[string]string{}
	if raw, err := os.ReadFile(file); err == nil {
		for _, line := range strings.Split(string(raw), "\n") {
			if cells := strings.SplitN(line, "\t", 3); len(cells) == 3 {
				old[cells[0]+"\t"+cells[1]] = line
			}
		}
	}
	for _, e := range ran {
		old[e.key()] = e.row()
	}
	var b strings.Builder
	fmt.Fprintf(&b, header, product)
	p := protocol.Embedded()
	for _, name := range p.Names() {
		c, _ := p.Command(name)
		for _, x := range p.Examples(c) {
			if row, ok := old[name+"\t"+x.Title]; ok {
				b.WriteString(row + "\n")
			}
		}
	}
	return os.WriteFile(file, []byte(b.String()), 0o644)
}

func (e *example) key() string { return e.command.Name + "\t" + e.Title }

func (e *example) row() string {
	text := e.message
	if e.status == protocol.RunVerified {
		text = shortResult(e.result)
	}
	before := "-"
	if calls := e.lines(); len(calls) > 0 {
		before = string(jsontext.Marshal(calls))
	}
	return strings.Join([]string{e.key(), e.status, before, cmp.Or(string(manifest.CompactJSON(e.with)), "{}"),
		strings.ReplaceAll(manifest.CleanLine(text), "\t", " ")}, "\t")
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
