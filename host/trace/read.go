package trace

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/parley-tools/parley/host/internal/journal"
)

// maxLine bounds what is read as one line, in bytes. What a recorder writes stays far below.
const maxLine = 1 << 20

var reader = journal.Reader{MaxLine: maxLine}

// followWait is how long Follow waits before it looks for more.
const followWait = 200 * time.Millisecond

// Cursor is a position in a folder of traces. The zero value is the beginning.
type Cursor = journal.Cursor

// Filter selects records; an empty field matches all.
type Filter struct {
	Since   time.Time // from this moment on
	Until   time.Time // before this moment
	Op      string    // "call", "search" or "describe"
	Tool    string    // qualified name; case does not matter
	Session string
	// Damaged is called for each line that was skipped because it is not a record; it may be nil.
	Damaged func(path string, line int)
}

// Read yields the records in a folder of traces, oldest file first, each file in the order in which it was written.
// Lines that are not records of this version are skipped. An error is that of a file or folder that cannot be read;
// the files after it still follow. A folder that does not exist holds no records.
func Read(dir string, f Filter) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		for line, err := range f.lines(dir, Cursor{}) {
			r, ok := f.record(line, err)
			if (ok || err != nil) && !yield(r, err) {
				return
			}
		}
	}
}

// Follow calls each with every record after a cursor and with the cursor after that record, then waits for more, until
// each returns an error, a file cannot be read, or ctx is done; it returns that error. A call that ends on the day
// after it began is recorded in the file of its first day: Follow misses it if it has read the next day's file by
// then.
func Follow(ctx context.Context, dir string, f Filter, from Cursor, each func(Record, Cursor) error) error {
	read := func(from Cursor) iter.Seq2[journal.Line, error] { return f.lines(dir, from) }
	for line, err := range journal.Follow(ctx, from, followWait, read) {
		if err != nil {
			return err
		}
		if r, ok := f.record(line, nil); ok {
			if err := each(r, line.Next); err != nil {
				return err
			}
		}
	}
	return ctx.Err()
}

// End returns the position after the last record in a folder of traces.
func End(dir string) (Cursor, error) {
	days, err := listDays(dir)
	if err != nil || len(days) == 0 {
		return Cursor{}, err
	}
	last := days[len(days)-1]
	info, err := os.Stat(filepath.Join(dir, last+suffix))
	if errors.Is(err, fs.ErrNotExist) { // it was pruned meanwhile
		return Cursor{File: last}, nil
	} else if err != nil {
		return Cursor{}, err
	}
	return Cursor{File: last, Offset: info.Size()}, nil
}

// lines yields the lines of the days that the filter matches.
func (f Filter) lines(dir string, from Cursor) iter.Seq2[journal.Line, error] {
	days, err := listDays(dir)
	if err != nil {
		return func(yield func(journal.Line, error) bool) { yield(journal.Line{}, err) }
	}
	var files []journal.File
	for _, day := range days {
		if f.matchesDay(day) {
			files = append(files, journal.File{ID: day, Path: filepath.Join(dir, day+suffix)})
		}
	}
	return reader.Lines(files, from)
}

// record decodes a line and reports whether it is a record that the filter matches.
func (f Filter) record(line journal.Line, err error) (Record, bool) {
	if err != nil || len(line.Text) == 0 {
		return Record{}, false
	}
	r, ok := decode(line.Text)
	if !ok || line.Long {
		if f.Damaged != nil {
			f.Damaged(line.Path, line.Number)
		}
		return Record{}, false
	}
	return r, f.matches(r)
}

func decode(line []byte) (Record, bool) {
	var r Record
	if json.Unmarshal(line, &r) != nil || r.V != version || r.Time.IsZero() {
		return Record{}, false
	}
	if string(r.Params) == "null" {
		r.Params = nil
	}
	return r, true
}

// matchesDay reports whether a day's file may hold records that match.
func (f Filter) matchesDay(day string) bool {
	return (f.Since.IsZero() || day >= f.Since.UTC().Format(dayFormat)) &&
		(f.Until.IsZero() || day <= f.Until.UTC().Format(dayFormat))
}

func (f Filter) matches(r Record) bool {
	op := r.Op
	if op == "" {
		op = "call"
	}
	return (f.Since.IsZero() || !r.Time.Before(f.Since)) &&
		(f.Until.IsZero() || r.Time.Before(f.Until)) &&
		(f.Op == "" || f.Op == op) &&
		(f.Tool == "" || strings.EqualFold(f.Tool, r.Tool)) &&
		(f.Session == "" || f.Session == r.Session)
}
