package trace

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/record"
)

// TestClear removes the files of days before a day, or all, and nothing else.
func TestClear(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"2026-11-01.jsonl", "2026-11-02.jsonl", "2026-11-03.jsonl", "notes.jsonl"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("12345\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, step := range []struct {
		before time.Time
		files  int
		end    record.Cursor
	}{
		{time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC), 0, record.Cursor{File: "2026-11-03", Offset: 6}},
		{time.Date(2026, 11, 3, 0, 0, 0, 0, time.UTC), 2, record.Cursor{File: "2026-11-03", Offset: 6}},
		{time.Time{}, 1, record.Cursor{}},
		{time.Time{}, 0, record.Cursor{}},
	} {
		done, err := Clear(dir, record.Filter{Until: step.before})
		if want := (Cleared{Files: step.files, Bytes: int64(6 * step.files)}); err != nil || done != want {
			t.Errorf("before %v: %+v, %v; want %d files", step.before, done, err, step.files)
		}
		if end, err := Records(dir, nil).End(); err != nil || end != step.end {
			t.Errorf("the end is %+v, %v; want %+v", end, err, step.end)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "notes.jsonl")); err != nil {
		t.Error(err)
	}
	if done, err := Clear(filepath.Join(dir, "missing"), record.Filter{}); done != (Cleared{}) || err != nil {
		t.Error(done, err)
	}
}

// TestClearCounts counts what is removed in all files.
func TestClearCounts(t *testing.T) {
	dir := t.TempDir()
	recorder := Open(dir, Config{})
	for day := range 3 {
		recorder.Record(host.Event{Op: "call", Session: "a", Time: noon.AddDate(0, 0, day)})
		recorder.Record(host.Event{Op: "call", Session: "b", Time: noon.AddDate(0, 0, day)})
	}
	if done, err := Clear(dir, record.Filter{Session: "a"}); done.Records != 3 || done.Files != 0 || err != nil {
		t.Errorf("%+v, %v", done, err)
	}
	if done, err := Clear(dir, record.Filter{}); done.Records != 3 || done.Files != 3 || err != nil {
		t.Errorf("%+v, %v", done, err)
	}
}

// TestClearSome removes the records that a filter selects. Other records stay, and so do lines that are not records.
func TestClearSome(t *testing.T) {
	noon := time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		name   string
		filter record.Filter
		gone   int
		left   string
	}{
		{"session", record.Filter{Session: "a"}, 1, "2 3 damaged"},
		{"tool", record.Filter{Tool: "shop.buy"}, 1, "1 2 damaged"},
		{"before noon of the day", record.Filter{Until: noon.Add(time.Minute)}, 1, "2 3 damaged"},
		{"an outcome", record.Filter{Code: "Denied"}, 1, "1 3 damaged"},
		{"what failed", record.Filter{Failed: true}, 1, "1 3 damaged"},
		{"a plugin", record.Filter{Tool: "shop"}, 3, "damaged"},
		{"none", record.Filter{Session: "c"}, 0, "1 2 3 damaged"},
		{"all", record.Filter{}, 3, ""},
	} {
		dir := t.TempDir()
		recorder := Open(dir, Config{})
		for i, e := range []host.Event{
			{CallID: "1", Session: "a", Tool: "shop.list"},
			{CallID: "2", Session: "b", Tool: "shop.list", Err: &host.Error{Code: host.Denied}},
			{CallID: "3", Session: "b", Tool: "shop.buy", Params: json.RawMessage(`{}`)},
		} {
			e.Op, e.Time = "call", noon.Add(time.Duration(i)*time.Hour)
			recorder.Record(e)
		}
		path := filepath.Join(dir, "2026-11-01.jsonl")
		before, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, append(before, "damaged\n"...), 0o600); err != nil {
			t.Fatal(err)
		}
		done, err := Clear(dir, c.filter)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		after, _ := os.ReadFile(path)
		if done.Bytes != int64(len(before)+len("damaged\n")-len(after)) {
			t.Errorf("%s: %d bytes are said to be removed, %d are", c.name, done.Bytes, len(before)+8-len(after))
		}
		var left []string
		for r, err := range Records(dir, nil).Read(record.Filter{}) {
			if err != nil {
				t.Fatal(err)
			}
			left = append(left, r.Call)
		}
		if strings.Contains(string(after), "damaged\n") {
			left = append(left, "damaged")
		}
		if got := strings.Join(left, " "); got != c.left || done.Records != c.gone {
			t.Errorf("%s: left is %q, %d records are removed; want %q", c.name, got, done.Records, c.left)
		}

		// A recorder that has the old file open writes to the new one.
		recorder.Record(host.Event{Op: "call", CallID: "4", Time: noon})
		if after, _ = os.ReadFile(path); !strings.Contains(string(after), `"call":"4"`) {
			t.Errorf("%s: a later record is lost", c.name)
		}
	}
}
