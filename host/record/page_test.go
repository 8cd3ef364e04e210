package record_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/record"
)

// Pages from the newest record on, and an export that goes on after another one, have each record once, also when files
// begin and end meanwhile.
func TestPages(t *testing.T) {
	calls := record.Filter{Op: "call"}
	for _, b := range both {
		t.Run(b.name, func(t *testing.T) {
			j := b.open(failing(t), t.TempDir())
			for i := range 100 {
				j.write(called(i))
			}
			r := j.records(nil)
			exported, begin, err := r.each(calls, "")
			if err != nil || !slices.Equal(exported, ids(0, 100)) || begin.Lines < 100 {
				t.Fatalf("exported %q, %+v, %v", exported, begin, err)
			}
			var got []string
			lines, cursor := 0, ""
			for n := 0; ; n++ {
				page, done, err := r.page(calls, cursor, 7)
				if err != nil || len(page) > 7 || done.Unreadable+done.Unchained+done.Partial > 0 {
					t.Fatalf("page %d: %q, %+v, %v", n, page, done, err)
				}
				if got, lines, cursor = append(page, got...), lines+done.Lines, done.Cursor; cursor == "" {
					break
				}
				j.write(called(100 + n)) // after the page, so that no page has it
			}
			if !slices.Equal(got, ids(0, 100)) || lines != begin.Lines {
				t.Errorf("pages of %d lines, of %d: %q", lines, begin.Lines, got)
			}
			if more, _, err := r.each(calls, begin.Cursor); err != nil || !slices.Equal(more, ids(100, 114)) {
				t.Errorf("exported later: %q, %v", more, err)
			}
			page, _, err := r.page(record.Filter{Op: "call", Since: called(110).Time, Until: called(112).Time}, "", 50)
			if err != nil || !slices.Equal(page, ids(110, 112)) {
				t.Errorf("between two moments: %q, %v", page, err)
			}
		})
	}
}

// A cursor whose line is gone or was changed is refused, and so is what is not a cursor; lines that are not records and
// those that do not follow from each other are counted.
func TestPagesOfDamagedFiles(t *testing.T) {
	for _, b := range both {
		t.Run(b.name, func(t *testing.T) {
			j := b.open(failing(t), t.TempDir())
			for i := range 60 {
				j.write(called(i))
			}
			r := j.records(nil)
			_, newest, err := r.page(record.Filter{}, "", 3)
			_, oldest, errOldest := r.page(record.Filter{}, "", 60)
			if err != nil || errOldest != nil {
				t.Fatal(err, errOldest)
			}
			data, err := os.ReadFile(j.current())
			if err != nil {
				t.Fatal(err)
			}
			files, err := filepath.Glob(filepath.Join(j.dir, "*.jsonl"))
			if err = errors.Join(err, os.Remove(files[0]), os.Remove(files[1])); err != nil {
				t.Fatal(err)
			}
			if _, _, err := r.page(record.Filter{}, newest.Cursor, 100); err != nil {
				t.Errorf("a cursor in a file that is left: %v", err)
			}
			for i := range 3 { // the first lines of the file, in turn
				from := 0
				for range i {
					from += slices.Index(data[from:], '\n') + 1
				}
				changed := slices.Clone(data)
				changed[from+5] ^= 1 // within "v"
				if err := os.WriteFile(j.current(), changed, 0o600); err != nil {
					t.Fatal(err)
				}
				_, done, err := r.page(record.Filter{}, "", 100)
				_, all, errAll := r.each(record.Filter{}, "")
				chained := 0
				if b.name == "audit" {
					chained = 1
				}
				if err != nil || errAll != nil || done.Unreadable != 1 || all.Unreadable != 1 || all.Unchained != done.Unchained ||
					done.Unchained != chained {
					t.Errorf("line %d: %+v, %v; %+v, %v", i, done, err, all, errAll)
				}
			}
			if err := os.WriteFile(j.current(), data[:len(data)/2], 0o600); err != nil {
				t.Fatal(err)
			}
			for _, c := range []struct {
				cursor string
				want   host.Code
			}{
				{newest.Cursor, host.NotFound}, {oldest.Cursor, host.NotFound}, {"x", host.InvalidArgs}, {"eA", host.InvalidArgs},
			} {
				_, _, err := r.page(record.Filter{}, c.cursor, 100)
				_, _, errEach := r.each(record.Filter{}, c.cursor)
				if host.AsError(err).Code != c.want || host.AsError(errEach).Code != c.want {
					t.Errorf("%q: %v; %v", c.cursor, err, errEach)
				}
			}
		})
	}
}
