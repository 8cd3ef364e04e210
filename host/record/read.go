package record

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"iter"
	"time"

	"github.com/parley-tools/parley/host/protect"
)

// Cursor is a position in a journal. The zero value is the beginning. If its file was removed, reading starts at the
// next one.
type Cursor struct {
	File   string `json:"file"`   // ID of the file
	Offset int64  `json:"offset"` // in bytes
}

// isAfter reports whether the cursor is in a later file than the one with this ID.
func (c Cursor) isAfter(id string) bool {
	return cmp.Or(cmp.Compare(len(c.File), len(id)), cmp.Compare(c.File, id)) > 0
}

// Line is a line of a journal.
type Line struct {
	Text   []byte // without its line break; only the beginning if Long
	Size   int64  // in bytes, with the line break
	Sum    []byte // hash of the line with its line break, if [Config.Hash] is set
	Long   bool   // it has more than [Config.MaxLine] bytes
	Broken bool   // it ends without a line break
	Tail   bool   // Broken, and the last line of the journal: it may be half-written

	Path   string // path of the file
	Number int    // in the file, from 1, counted from the cursor
	Next   Cursor // the position after the line
}

// OpenFiles opens the files of the journal that are not before a cursor and may have records that a filter selects. It
// opens them under the lock, so that none is renamed meanwhile and no line is half-written. Where it cannot get the
// lock, as in a read-only folder, it does without.
func (j *Journal) OpenFiles(from Cursor, f Filter) (opened []File, err error) {
	err = j.withFiles(false, func(files []File) error {
		for _, file := range files {
			if from.isAfter(file.ID) || !f.Covers(file) {
				continue
			}
			var info fs.FileInfo
			file.Opened, info, file.Err = protect.Open(file.Path, 0)
			if errors.Is(file.Err, fs.ErrNotExist) { // somebody removed it
				continue
			}
			if file.Err == nil {
				file.Size = info.Size()
			}
			opened = append(opened, file)
		}
		return nil
	})
	return opened, err
}

// CloseFiles closes what [Journal.OpenFiles] opened.
func CloseFiles(files []File) {
	for _, f := range files {
		_ = f.Opened.Close()
	}
}

// Lines yields the lines of open files, which are in order, from a cursor to their end. An error says that a file
// cannot be read; the files after it still follow.
func (j *Journal) Lines(files []File, from Cursor) iter.Seq2[Line, error] {
	return func(yield func(Line, error) bool) {
		for i, file := range files {
			at := Cursor{File: file.ID}
			if from.File == file.ID && from.Offset <= file.Size { // otherwise it was in another file of this name
				at = from
			}
			if !j.readFile(file, at, i == len(files)-1, yield) {
				return
			}
		}
	}
}

// readFile returns false if yield does.
func (j *Journal) readFile(file File, at Cursor, last bool, yield func(Line, error) bool) bool {
	if file.Err != nil {
		return yield(Line{}, file.Err)
	}
	lines := bufio.NewReaderSize(io.NewSectionReader(file.Opened, at.Offset, file.Size-at.Offset), 64<<10)
	for number := 1; ; number++ {
		line, err := j.readLine(lines)
		if err != nil && !errors.Is(err, io.EOF) {
			return yield(Line{}, fmt.Errorf("%s cannot be read: %w", file.Path, err))
		}
		if line.Size == 0 {
			return true
		}
		at.Offset += line.Size
		line.Path, line.Number, line.Next, line.Tail = file.Path, number, at, line.Broken && last
		if !yield(line, nil) {
			return false
		}
	}
}

// readLine reads one line and sets the fields that do not depend on a file. At the end it returns an empty line and
// io.EOF.
func (j *Journal) readLine(from *bufio.Reader) (line Line, err error) {
	var sum hash.Hash
	if j.Hash != nil {
		sum = j.Hash()
	}
	for {
		part, err := from.ReadSlice('\n')
		line.Size += int64(len(part))
		if sum != nil {
			sum.Write(part)
		}
		if len(line.Text) <= j.MaxLine {
			line.Text = append(line.Text, part...)
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if sum != nil {
			line.Sum = sum.Sum(nil)
		}
		line.Long, line.Broken = line.Size > int64(j.MaxLine), err != nil
		line.Text = bytes.TrimSuffix(line.Text, []byte("\n"))
		return line, err
	}
}

// Backward yields the lines in the first size bytes of a file, the last one first.
func (j *Journal) Backward(f io.ReaderAt, size int64) iter.Seq2[Line, error] {
	return func(yield func(Line, error) bool) {
		f, lines := &blocks{file: f}, bufio.NewReader(nil)
		for size > 0 {
			start, err := WholeLines(f, size-1)
			var line Line
			if err == nil {
				lines.Reset(io.NewSectionReader(f, start, size-start))
				line, err = j.readLine(lines)
			}
			if errors.Is(err, io.EOF) { // the file ends within the line
				err = nil
			}
			if size = start; !yield(line, err) || err != nil {
				return
			}
		}
	}
}

// blocks reads a file toward its beginning, a block at a time.
type blocks struct {
	file  io.ReaderAt
	block []byte
	at    int64 // position of the block
}

const blockBytes = 128 << 10

func (b *blocks) ReadAt(p []byte, off int64) (int, error) {
	end := off + int64(len(p))
	if len(b.block) > 0 && end > b.at+int64(len(b.block)) || len(p) > blockBytes { // forward
		return b.file.ReadAt(p, off)
	}
	if len(b.block) == 0 || off < b.at {
		b.at = max(0, end-blockBytes)
		b.block = append(b.block[:0], make([]byte, end-b.at)...)
		if _, err := b.file.ReadAt(b.block, b.at); err != nil {
			b.block = nil
			return 0, err
		}
	}
	return copy(p, b.block[off-b.at:]), nil
}

// WholeLines returns the offset after the last line break in the first size bytes of a file, or 0.
func WholeLines(f io.ReaderAt, size int64) (int64, error) {
	var buf [4 << 10]byte
	for size > 0 {
		n := min(size, int64(len(buf)))
		if _, err := f.ReadAt(buf[:n], size-n); err != nil {
			return 0, err
		}
		if i := bytes.LastIndexByte(buf[:n], '\n'); i >= 0 {
			return size - n + int64(i) + 1, nil
		}
		size -= n
	}
	return 0, nil
}

// followWait is how long [Records.Follow] waits before it looks for more.
const followWait = 200 * time.Millisecond

// Records are the records of a journal.
type Records[R any] struct {
	Journal *Journal
	// Decode returns the record of a line. The error says what the line is instead; [ErrNone] if that is not a fault.
	Decode func(Line) (R, Keys, error)
	// Damaged is called for each line that was skipped because it is not a record; it may be nil.
	Damaged func(path string, line int)
}

// ErrNone means that a line has no record, and need not have one.
var ErrNone = errors.New("no record")

// Read yields the records that a filter selects, the oldest file first, each file in the order in which it was written.
// An error says that a file or folder cannot be read; the files after it still follow. A folder that does not exist
// holds no records.
func (r Records[R]) Read(f Filter) iter.Seq2[R, error] {
	return func(yield func(R, error) bool) {
		for line, err := range r.lines(f, Cursor{}) {
			if record, ok := r.record(line, f, err); (ok || err != nil) && !yield(record, err) {
				return
			}
		}
	}
}

// Follow calls each with every record after a cursor that a filter selects and with the cursor after that record, then
// waits for more, until each returns an error, a file cannot be read, or ctx is done; it returns that error. It reads a
// half-written line once it is complete. What is appended to a file after a later one was read is missed.
func (r Records[R]) Follow(ctx context.Context, f Filter, from Cursor, each func(R, Cursor) error) error {
	for ctx.Err() == nil {
		for line, err := range r.lines(f, from) {
			if err == nil && line.Tail || ctx.Err() != nil {
				break
			}
			record, ok := r.record(line, f, err)
			if err == nil {
				from = line.Next
			}
			if ok {
				err = each(record, from)
			}
			if err != nil {
				return err
			}
		}
		select {
		case <-ctx.Done():
		case <-time.After(followWait):
		}
	}
	return ctx.Err()
}

// End returns the position after the last record.
func (r Records[R]) End() (end Cursor, err error) {
	files, err := r.Journal.OpenFiles(Cursor{}, Filter{})
	defer CloseFiles(files)
	for _, f := range files {
		end, err = Cursor{File: f.ID, Offset: f.Size}, cmp.Or(err, f.Err)
	}
	return end, err
}

// lines yields the lines after a cursor of the files that may have records that a filter selects.
func (r Records[R]) lines(f Filter, from Cursor) iter.Seq2[Line, error] {
	return func(yield func(Line, error) bool) {
		files, err := r.Journal.OpenFiles(from, f)
		defer CloseFiles(files)
		if err != nil {
			yield(Line{}, err)
			return
		}
		r.Journal.Lines(files, from)(yield)
	}
}

// record decodes a line and reports whether it is a record that a filter selects.
func (r Records[R]) record(line Line, f Filter, failed error) (record R, ok bool) {
	if failed != nil {
		return record, false
	}
	record, keys, err := r.Decode(line)
	switch {
	case err == nil:
		return record, f.Matches(keys)
	case !errors.Is(err, ErrNone) && r.Damaged != nil:
		r.Damaged(line.Path, line.Number)
	}
	return record, false
}
