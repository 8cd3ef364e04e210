package history

import (
	"bytes"
	"encoding/csv"
	"slices"
	"testing"

	"github.com/parley-tools/parley/host/caller"
	"github.com/parley-tools/parley/host/record/audit"
)

// TestCSV checks that each field of a record has a cell, and that no cell is a formula.
func TestCSV(t *testing.T) {
	var out bytes.Buffer
	write := csvOf[audit.Record](&out)
	for _, r := range []audit.Record{
		{Seq: 1, Op: "call", Caller: `mcp:a "b", c` + "\r\n", Tool: "=1+1", Outcome: &audit.Outcome{Code: "ok", MS: 1.5},
			Origin: caller.Origin{Peer: "-2"}, Rights: []string{"clock", `fs:ro:/a,"b"`}},
		{Seq: 2, Op: "@x", Subject: "\t=1"},
	} {
		if err := write(r); err != nil {
			t.Fatal(err)
		}
	}
	if rows := bytes.Count(out.Bytes(), []byte("\r\n")); rows < 3 {
		t.Errorf("%q", out.String())
	}
	rows, err := csv.NewReader(&out).ReadAll()
	if err != nil || len(rows) != 3 {
		t.Fatal(rows, err)
	}
	cell := func(row int, name string) string { return rows[row][slices.Index(rows[0], name)] }
	for _, c := range []struct {
		row        int
		name, want string
	}{
		{1, "seq", "1"}, {1, "caller", "mcp:a \"b\", c\n"}, {1, "tool", "'=1+1"}, {1, "code", "ok"}, {1, "ms", "1.5"},
		{1, "peer", "'-2"}, {1, "rights", `["clock","fs:ro:/a,\"b\""]`}, {1, "subject", ""},
		{2, "op", "'@x"}, {2, "code", ""}, {2, "subject", "'\t=1"},
	} {
		if got := cell(c.row, c.name); got != c.want {
			t.Errorf("row %d, %s: %q, want %q", c.row, c.name, got, c.want)
		}
	}
}
