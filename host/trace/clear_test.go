package trace

import (
	"os"
	"path/filepath"
	"testing"
	"time"
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
		end    Cursor
	}{
		{time.Date(2026, 11, 1, 23, 0, 0, 0, time.UTC), 0, Cursor{File: "2026-11-03", Offset: 6}},
		{time.Date(2026, 11, 3, 1, 0, 0, 0, time.UTC), 2, Cursor{File: "2026-11-03", Offset: 6}},
		{time.Time{}, 1, Cursor{}},
		{time.Time{}, 0, Cursor{}},
	} {
		files, bytes, err := Clear(dir, step.before)
		if err != nil || files != step.files || bytes != int64(6*files) {
			t.Errorf("before %v: %d files, %d bytes, %v; want %d files", step.before, files, bytes, err, step.files)
		}
		if end, err := End(dir); err != nil || end != step.end {
			t.Errorf("the end is %+v, %v; want %+v", end, err, step.end)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "notes.jsonl")); err != nil {
		t.Error(err)
	}
	if files, _, err := Clear(filepath.Join(dir, "missing"), time.Time{}); files != 0 || err != nil {
		t.Error(files, err)
	}
}
