package audit

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"time"

	"github.com/parley-tools/parley/host/internal/journal"
	"github.com/parley-tools/parley/host/protect"
)

// reader reads lines with their hashes.
var reader = journal.Reader{MaxLine: maxLine, Hash: sha256.New}

// followWait is how long [Log.Follow] waits before it looks for more records.
const followWait = 200 * time.Millisecond

// Cursor is a position in the log, which stays the same when files rotate. The zero value is the beginning.
type Cursor = journal.Cursor

// Head is the last record of a log. Its hash covers all records up to it: kept elsewhere, it later proves that none of
// them was changed.
type Head struct {
	Hash string    `json:"hash"`
	Seq  uint64    `json:"seq"`
	Time time.Time `json:"t,omitzero"`
}

// String returns the form that [Log.Verify] accepts: "sha256:.. SEQ TIME".
func (h Head) String() string {
	return fmt.Sprintf("%s %d %s", h.Hash, h.Seq, h.Time.Format(time.RFC3339Nano))
}

// State is what the first and last records of the files reveal about a log.
type State struct {
	Files int   `json:"files"`
	Bytes int64 `json:"bytes"`
	Torn  int64 `json:"torn,omitempty"` // bytes of a half-written record at the end, which the next record replaces
	Head  Head  `json:"head"`           // the zero value if there is no record
}

// State reads the ends of the files of the log.
func (l *Log) State() (State, error) {
	files, err := l.openFiles(Cursor{})
	defer closeFiles(files)
	s := State{Files: len(files)}
	for _, f := range files {
		last, endErr := readEnd(f.Opened, f.Size)
		if endErr != nil {
			return s, endErr
		}
		s.Bytes += f.Size
		s.Torn = last.torn
		if last.seq > 0 {
			s.Head = Head{last.hash, last.seq, last.time}
		}
	}
	return s, err
}

// Head returns the head of the log, the zero value if there is no record.
func (l *Log) Head() (Head, error) {
	s, err := l.State()
	return s.Head, err
}

// Read calls each with every record, oldest first, until each returns an error. Lines that are not records are skipped
// and counted; a half-written one at the end of the log is neither. A log that does not exist holds no records.
func (l *Log) Read(each func(Record) error) (damaged int, err error) {
	for line, err := range l.lines(Cursor{}) {
		if err != nil {
			return damaged, err
		}
		r, err := decode(line)
		switch {
		case err == nil:
			if err := each(r); err != nil {
				return damaged, err
			}
		case !line.Tail:
			damaged++
		}
	}
	return damaged, nil
}

// Follow calls each with every record after a cursor and with the cursor after that record, then waits for more, until
// each returns an error, the log cannot be read, or ctx is done; it returns that error. Lines that are not records are
// skipped.
func (l *Log) Follow(ctx context.Context, from Cursor, each func(Record, Cursor) error) error {
	for line, err := range journal.Follow(ctx, from, followWait, l.lines) {
		if err != nil {
			return err
		}
		if r, err := decode(line); err == nil {
			if err := each(r, line.Next); err != nil {
				return err
			}
		}
	}
	return ctx.Err()
}

// lines yields the lines of the log after a cursor. It opens the files under the lock, so that no record is
// half-written.
func (l *Log) lines(from Cursor) iter.Seq2[journal.Line, error] {
	return func(yield func(journal.Line, error) bool) {
		files, err := l.openFiles(from)
		defer closeFiles(files)
		if err != nil {
			yield(journal.Line{}, err)
			return
		}
		reader.Lines(files, from)(yield)
	}
}

// openFiles opens the files of the log, oldest first, from the cursor's file on. Where it cannot get the lock, as in a
// read-only folder, it does without: then the last record may be half-written.
func (l *Log) openFiles(from Cursor) (files []journal.File, err error) {
	if _, err := os.Stat(l.dir); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
		return nil, err
	}
	if release, err := l.lock(); err == nil {
		defer release()
	}
	names, err := l.closedFiles()
	if err != nil {
		return nil, err
	}
	next := 1
	if len(names) > 0 {
		next = sequenceOf(names[len(names)-1]) + 1
	}
	for _, name := range append(names, currentName) {
		id := name
		if name == currentName {
			id = fmt.Sprintf(closedName, next) // its name once it is closed
		}
		if from.IsAfter(id) {
			continue
		}
		f, info, err := protect.Open(filepath.Join(l.dir, name), 0)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return files, err
		}
		files = append(files, journal.File{ID: id, Path: f.Name(), Opened: f, Size: info.Size()})
	}
	return files, nil
}

func closeFiles(files []journal.File) {
	for _, f := range files {
		f.Opened.Close()
	}
}

// fileEnd describes the end of a file, to which the next record is chained.
type fileEnd struct {
	size int64  // bytes of whole lines
	torn int64  // bytes after them
	hash string // of the last line; genesis if there is none
	seq  uint64 // of the last record; 0 if there is none
	time time.Time
}

// maxInvalid is how many invalid lines may follow the last record for its number to be found.
const maxInvalid = 100

// readEnd finds the end of a file without reading the rest. The next record is chained also to invalid lines, so that
// none of them can vanish; only a line without a line break is left out.
func readEnd(f io.ReaderAt, size int64) (fileEnd, error) {
	stop, err := afterBreak(f, size)
	if err != nil {
		return fileEnd{}, err
	}
	last := fileEnd{size: stop, torn: size - stop, hash: genesis}
	for tries := 0; stop > 0 && tries < maxInvalid; tries++ {
		start, err := afterBreak(f, stop-1)
		if err != nil {
			return last, err
		}
		line, err := reader.ReadLine(bufio.NewReader(io.NewSectionReader(f, start, stop-start)))
		if err != nil {
			return last, err
		}
		if stop == last.size {
			last.hash = hashOf(line.Sum)
		}
		if r, err := decode(line); err == nil {
			last.seq, last.time = r.Seq, r.Time
			break
		}
		stop = start
	}
	return last, nil
}

// afterBreak returns the offset after the last line break before an offset, 0 if there is none.
func afterBreak(f io.ReaderAt, before int64) (int64, error) {
	var buf [4 << 10]byte
	for before > 0 {
		n := min(before, int64(len(buf)))
		if _, err := f.ReadAt(buf[:n], before-n); err != nil {
			return 0, err
		}
		if i := bytes.LastIndexByte(buf[:n], '\n'); i >= 0 {
			return before - n + int64(i) + 1, nil
		}
		before -= n
	}
	return 0, nil
}
