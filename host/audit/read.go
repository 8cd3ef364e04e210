package audit

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"time"
)

// Head is the last record of a log. Its hash stands for all records up to it: kept elsewhere, it proves later that none of them was changed.
type Head struct {
	Hash string    `json:"hash"`
	Seq  uint64    `json:"seq"`
	Time time.Time `json:"t,omitzero"`
}

// String is the form that Verify takes: "sha256:.. SEQ TIME".
func (h Head) String() string {
	return fmt.Sprintf("%s %d %s", h.Hash, h.Seq, h.Time.Format(time.RFC3339Nano))
}

// State is what can be told of a log without reading all of it.
type State struct {
	Files int   `json:"files"`
	Bytes int64 `json:"bytes"`
	Torn  int64 `json:"torn,omitempty"` // bytes of a half-written record at the end, which the next one will replace
	Head  Head  `json:"head"`           // the zero value where there is no record
}

// State looks at the files of the log and at the end of the last.
func (l *Log) State() (State, error) {
	parts, err := l.openFiles()
	defer closeFiles(parts)
	s := State{Files: len(parts)}
	for _, p := range parts {
		last, endErr := readEnd(p.f, p.size)
		if endErr != nil {
			return s, endErr
		}
		s.Bytes += p.size
		s.Torn = last.torn
		if last.seq > 0 {
			s.Head = Head{last.hash, last.seq, last.time}
		}
	}
	return s, err
}

// Head returns the head of the log, the zero value if it holds no record.
func (l *Log) Head() (Head, error) {
	s, err := l.State()
	return s.Head, err
}

// Read gives each record to f, oldest first, until f returns an error. Lines that are no records are skipped and counted; one that is half
// written at the end of the log is none yet. A log that does not exist holds nothing.
func (l *Log) Read(f func(Record) error) (damaged int, err error) {
	parts, err := l.openFiles()
	defer closeFiles(parts)
	if err != nil {
		return 0, err
	}
	for e, err := range entries(parts) {
		switch {
		case err != nil:
			return damaged, err
		case e.fault == nil:
			if err := f(e.record); err != nil {
				return damaged, err
			}
		case !e.tail:
			damaged++
		}
	}
	return damaged, nil
}

// openFile is a file of the log as it was at one moment.
type openFile struct {
	name string
	f    *os.File
	size int64
}

// openFiles opens the files of the log, oldest first, between two records. Where it cannot have the lock, as in a folder that may only be
// read, it goes without: then the end of the log may be one that is being written.
func (l *Log) openFiles() (parts []openFile, err error) {
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
	for _, name := range append(names, currentName) {
		f, err := os.Open(filepath.Join(l.dir, name))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return parts, err
		}
		parts = append(parts, openFile{name: name, f: f})
		info, err := f.Stat()
		if err != nil {
			return parts, err
		}
		parts[len(parts)-1].size = info.Size()
	}
	return parts, nil
}

func closeFiles(parts []openFile) {
	for _, p := range parts {
		p.f.Close()
	}
}

// entry is a line of the log.
type entry struct {
	file   string
	line   int
	size   int64  // of the line with its end
	hash   string // of the same
	record Record
	fault  error // why it is no record
	torn   bool  // it ends in the middle of one
	tail   bool  // it is the last of the log and not ended: a record that was being written
}

// entries yields the lines of all files. An error is a file that cannot be read, and ends it.
func entries(parts []openFile) iter.Seq2[entry, error] {
	return func(yield func(entry, error) bool) {
		for i, p := range parts {
			lines := bufio.NewReaderSize(io.NewSectionReader(p.f, 0, p.size), 64<<10)
			for number := 1; ; number++ {
				line, err := readLine(lines)
				if err != nil && !errors.Is(err, io.EOF) {
					yield(entry{}, fmt.Errorf("%s cannot be read: %w", p.f.Name(), err))
					return
				}
				if line.size == 0 {
					break
				}
				e := entry{file: p.name, line: number, size: line.size, hash: line.hash, tail: err != nil && i == len(parts)-1}
				e.judge(line)
				if !yield(e, nil) {
					return
				}
			}
		}
	}
}

func (e *entry) judge(line line) {
	e.record, e.fault = line.decode()
	e.torn = e.fault != nil && bytes.HasPrefix(line.text, []byte("{")) && !bytes.HasSuffix(line.text, []byte("}\n"))
}

// line is a line with its end, which the last one of a file may lack.
type line struct {
	text []byte // of one that is longer than any record, only a beginning that is longer, too
	size int64
	hash string
}

func readLine(r *bufio.Reader) (line, error) {
	var l line
	h := sha256.New()
	for {
		part, err := r.ReadSlice('\n')
		h.Write(part)
		l.size += int64(len(part))
		if len(l.text) <= maxLine {
			l.text = append(l.text, part...)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			l.hash = hashOf(h.Sum(nil))
			return l, err
		}
	}
}

// decode reads the record of a line. The error says why it is none.
func (l line) decode() (Record, error) {
	if l.size > maxLine {
		return Record{}, fmt.Errorf("it has %d bytes, and a record has at most %d", l.size, maxLine)
	}
	if !bytes.HasSuffix(l.text, []byte("\n")) {
		return Record{}, errors.New("it has no end")
	}
	return decode(l.text)
}

// fileEnd is where a file stops, which is what the next record goes on from.
type fileEnd struct {
	size int64  // bytes of whole lines
	torn int64  // bytes after them
	hash string // of the last line; genesis where there is none
	seq  uint64 // of the last record; 0 where there is none
	time time.Time
}

// maxInvalid is how many lines that are no records may follow the last one for its number to be still found.
const maxInvalid = 100

// readEnd finds the end of a file without reading what is before. Lines at the end that are no records stay what the next one is chained
// to, since nothing that was added may vanish; only what has no end is left out.
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
		line, err := readLine(bufio.NewReader(io.NewSectionReader(f, start, stop-start)))
		if err != nil {
			return last, err
		}
		if stop == last.size {
			last.hash = line.hash
		}
		if r, err := line.decode(); err == nil {
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
