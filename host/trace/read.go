package trace

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// maxLine bounds what is read as one line. What Open writes stays far below.
const maxLine = 1 << 20

// Filter says which records to read; an empty field lets everything pass.
type Filter struct {
	Since   time.Time // from this moment on
	Until   time.Time // before this moment
	Op      string    // "call", "search" or "describe"
	Tool    string    // qualified name, without regard to case
	Session string
	// Damaged is told of each line that was skipped; it may be nil.
	Damaged func(path string, line int)
}

// Read yields the records in a folder of traces, oldest file first, each file in the order it was written.
// Lines that are no records of this version are skipped. An error is a file or folder that cannot be read;
// the files after it still come. A folder that does not exist holds nothing.
func Read(dir string, f Filter) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		days, err := listDays(dir)
		if err != nil {
			yield(Record{}, err)
			return
		}
		for _, day := range days {
			if f.matchesDay(day) && !readFile(filepath.Join(dir, day+suffix), f, yield) {
				return
			}
		}
	}
}

// readFile returns false when nobody wants more.
func readFile(path string, f Filter, yield func(Record, error) bool) bool {
	file, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return true // pruned meanwhile
	}
	if err != nil {
		return yield(Record{}, err)
	}
	defer file.Close()
	lines := bufio.NewReaderSize(file, 64<<10)
	for number := 1; ; number++ {
		line, whole, err := readLine(lines)
		if err != nil && !errors.Is(err, io.EOF) {
			return yield(Record{}, err)
		}
		if len(line) > 0 {
			r, ok := decode(line)
			switch {
			case !ok || !whole:
				if f.Damaged != nil {
					f.Damaged(path, number)
				}
			case f.matches(r) && !yield(r, nil):
				return false
			}
		}
		if err != nil {
			return true
		}
	}
}

// readLine returns a line without its end, or the beginning of one that is longer than maxLine.
func readLine(r *bufio.Reader) (line []byte, whole bool, err error) {
	whole = true
	for {
		part, err := r.ReadSlice('\n')
		if len(line)+len(part) <= maxLine {
			line = append(line, part...)
		} else {
			whole = false
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if n := len(line); n > 0 && line[n-1] == '\n' {
			line = line[:n-1]
		}
		return line, whole, err
	}
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

// matchesDay tells whether a day's file can hold what is wanted.
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
