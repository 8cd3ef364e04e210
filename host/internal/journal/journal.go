// Package journal reads files of lines to which other processes append. It starts at a cursor, and stops at the end or
// follows.
package journal

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
	"os"
	"time"

	"github.com/parley-tools/parley/host/protect"
)

// File is one of the files of a journal.
type File struct {
	// ID identifies the file even after it is renamed. Later files have longer IDs, or greater ones of the same length.
	ID   string
	Path string
	// Opened is the open file, of which the first Size bytes are read. If it is nil, Path is opened and read to its
	// end; a missing file holds no lines.
	Opened *os.File
	Size   int64
}

// Cursor is a position in a journal. The zero value is the beginning. If its file was removed, reading starts at the
// next one.
type Cursor struct {
	File   string `json:"file"`   // ID of the file
	Offset int64  `json:"offset"` // in bytes
}

// IsAfter reports whether the cursor is in a later file than the one with this ID.
func (c Cursor) IsAfter(id string) bool {
	return cmp.Or(cmp.Compare(len(c.File), len(id)), cmp.Compare(c.File, id)) > 0
}

// Line is a line of a journal.
type Line struct {
	Text   []byte // without its line break; only the beginning if Long
	Size   int64  // in bytes, with the line break
	Sum    []byte // hash of the line with its line break, if [Reader.Hash] is set
	Long   bool   // it has more than [Reader.MaxLine] bytes
	Broken bool   // it ends without a line break
	Tail   bool   // Broken, and the last line of the journal: it may be half-written

	Path   string // of the file
	Number int    // in the file, from 1, counted from the cursor
	Next   Cursor // the position after the line
}

// Reader reads lines.
type Reader struct {
	MaxLine int              // in bytes, with the line break
	Hash    func() hash.Hash // if set, hashes each line
}

// Lines yields the lines of files, which are in order, from a cursor to the present end. An error is that of a file
// that cannot be read; the files after it still follow.
func (r Reader) Lines(files []File, from Cursor) iter.Seq2[Line, error] {
	return func(yield func(Line, error) bool) {
		for i, file := range files {
			if from.IsAfter(file.ID) {
				continue
			}
			at := Cursor{File: file.ID}
			if from.File == file.ID {
				at = from
			}
			if !r.readFile(file, at, i == len(files)-1, yield) {
				return
			}
		}
	}
}

// readFile returns false if yield does.
func (r Reader) readFile(file File, at Cursor, last bool, yield func(Line, error) bool) bool {
	f, size := file.Opened, file.Size
	if f == nil {
		opened, info, err := protect.Open(file.Path, 0)
		if errors.Is(err, fs.ErrNotExist) {
			return true
		} else if err != nil {
			return yield(Line{}, err)
		}
		defer opened.Close()
		f, size = opened, info.Size()
	}
	if at.Offset > size { // the cursor was in another file of this name
		at.Offset = 0
	}
	lines := bufio.NewReaderSize(io.NewSectionReader(f, at.Offset, size-at.Offset), 64<<10)
	for number := 1; ; number++ {
		line, err := r.ReadLine(lines)
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

// ReadLine reads one line and sets the fields that do not depend on a file. At the end it returns an empty line and
// io.EOF.
func (r Reader) ReadLine(from *bufio.Reader) (line Line, err error) {
	var sum hash.Hash
	if r.Hash != nil {
		sum = r.Hash()
	}
	for {
		part, err := from.ReadSlice('\n')
		line.Size += int64(len(part))
		if sum != nil {
			sum.Write(part)
		}
		if len(line.Text) <= r.MaxLine {
			line.Text = append(line.Text, part...)
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if sum != nil {
			line.Sum = sum.Sum(nil)
		}
		line.Long, line.Broken = line.Size > int64(r.MaxLine), err != nil
		line.Text = bytes.TrimSuffix(line.Text, []byte("\n"))
		return line, err
	}
}

// Follow yields what read yields after a cursor, waits, and reads again from there, until ctx is done or the loop ends.
// It yields a half-written line once it is complete.
func Follow(ctx context.Context, from Cursor, wait time.Duration, read func(Cursor) iter.Seq2[Line,
	error]) iter.Seq2[Line, error] {
	return func(yield func(Line, error) bool) {
		for ctx.Err() == nil {
			for line, err := range read(from) {
				if err == nil && line.Tail {
					break
				}
				if ctx.Err() != nil || !yield(line, err) {
					return
				}
				if err == nil {
					from = line.Next
				}
			}
			select {
			case <-ctx.Done():
			case <-time.After(wait):
			}
		}
	}
}
