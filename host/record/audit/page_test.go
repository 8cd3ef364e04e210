package audit

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/record"
)

// The beginning of a call is on no page if its end is in the log, and else on one.
func TestPagesHaveCallsOnce(t *testing.T) {
	l := openTest(t, t.TempDir(), Config{Mode: mode(Required)})
	for i := range 9 {
		if err := l.Begin(called(fmt.Sprint("c", i))); err != nil {
			t.Fatal(err)
		}
	}
	for _, i := range []int{8, 1, 0, 6, 3, 2} {
		l.Record(called(fmt.Sprint("c", i)))
	}
	for limit := 1; limit < 20; limit++ {
		var got []string
		for cursor := ""; ; {
			p, err := l.Records(nil).Page(record.Filter{}, cursor, limit)
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range slices.Backward(p.Records) {
				got = append(got, r.Call+" "+r.Op)
			}
			if cursor = p.Cursor; cursor == "" {
				break
			}
		}
		want := []string{"c2 call", "c3 call", "c6 call", "c0 call", "c1 call", "c8 call", "c7 begin", "c5 begin", "c4 begin"}
		if !slices.Equal(got, want) {
			t.Errorf("%d on a page: %q", limit, got)
		}
	}
}

// Records whose values were redacted or did not fit are counted.
func TestPartialRecords(t *testing.T) {
	l := openTest(t, t.TempDir(), Config{Redact: func() func(string) string {
		return func(string) string { return "[secret TOKEN]" }
	}})
	l.Record(called("c1"))
	_ = l.Note("grant", "echo")
	long := called("c2")
	for i := range 1000 {
		long.Rights = append(long.Rights, fmt.Sprintf("env:A_LONG_NAME_OF_A_VARIABLE_%d", i))
	}
	l.Record(long)
	p, err := l.Records(nil).Page(record.Filter{}, "", 50)
	if err != nil || p.Partial != 2 || len(p.Records) != 3 {
		t.Errorf("%d of %d, %v", p.Partial, len(p.Records), err)
	}
}

// A page of any filter, also of one that nothing matches, reads at most 4 MiB, so that it takes at most 300 ms, and
// says how far it has read. With PARLEY_HAMMER=1 the log has 1,000,000 records, else 60,000.
func TestPageOfLargeLog(t *testing.T) {
	n := 60_000
	if os.Getenv("PARLEY_HAMMER") != "" {
		n = 1_000_000
	}
	dir := t.TempDir()
	writeLarge(t, dir, n)
	records := Open(dir, Config{Keep: 100}).Records(nil)
	at := func(i int) time.Time { return noon.Add(time.Duration(i) * time.Second) }
	for _, c := range []struct {
		name   string
		filter record.Filter
		want   int
		whole  bool // one page has read all that may match
	}{
		{"all", record.Filter{}, 50, false},
		{"nothing", record.Filter{Tool: "no.such"}, 0, false},
		{"a rare caller", record.Filter{Caller: "mcp:rare"}, 0, false},
		{"failed", record.Filter{Failed: true}, 50, false},
		{"the last minutes", record.Filter{Tool: "no.such", Since: at(n - 500)}, 0, true},
		{"long ago", record.Filter{Until: at(100)}, 0, false},
	} {
		began := time.Now()
		p, err := records.Page(c.filter, "", 50)
		took := time.Since(began)
		t.Logf("%s: %d records of %d lines in %v", c.name, len(p.Records), p.Lines, took.Round(time.Millisecond))
		if err != nil || len(p.Records) != c.want || (p.Cursor == "") != c.whole || p.Lines > 15_000 {
			t.Errorf("%s: %d records of %d lines, cursor %q, %v", c.name, len(p.Records), p.Lines, p.Cursor, err)
		}
		if p.Since.IsZero() || !p.Until.Equal(at(n-1)) {
			t.Errorf("%s: read %v to %v", c.name, p.Since, p.Until)
		}
	}
	found, lines, pages := 0, 0, 0
	for cursor := ""; pages == 0 || cursor != ""; pages++ {
		p, err := records.Page(record.Filter{Caller: "mcp:rare"}, cursor, 50)
		if err != nil || p.Unreadable+p.Unchained > 0 {
			t.Fatal(p.Reading, err)
		}
		found, lines, cursor = found+len(p.Records), lines+p.Lines, p.Cursor
	}
	if found != 1 || lines < n {
		t.Errorf("%d pages of %d lines have %d records", pages, lines, found)
	}
}

// writeLarge writes a log of n calls, a second apart, as many processes would have.
func writeLarge(t *testing.T, dir string, n int) {
	t.Helper()
	var last Head
	last.Hash = genesis
	var lines []byte
	for i := range n {
		e := called(fmt.Sprintf("c%016x", i))
		e.Time, e.Session, e.Digest = noon.Add(time.Duration(i)*time.Second), "work", genesis
		e.Rights = []string{"http:GET:https://api.github.com", "fs:ro:/srv/data=/data"}
		switch {
		case i == n/50:
			e.Caller = "mcp:rare"
		case i%10 == 0:
			e.Err = host.Errorf(host.Denied, "denied")
		}
		line, next, err := chain(last, recordOf(e))
		if err != nil {
			t.Fatal(err)
		}
		lines, last = append(lines, line...), next
		if closed := len(lines) >= defaultMaxBytes; closed || i == n-1 {
			name := currentName
			if closed {
				name = fmt.Sprintf(closedName, len(listFiles(namesIn(t, dir)))+1)
			}
			if err := os.WriteFile(filepath.Join(dir, name), lines, 0o600); err != nil {
				t.Fatal(err)
			}
			lines = lines[:0]
		}
	}
}

func namesIn(t *testing.T, dir string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}
