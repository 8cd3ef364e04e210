package record

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"hash/crc32"
	"iter"
	"slices"
	"time"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/redact"
	"github.com/parley-tools/parley/manifest"
)

// Reading says how far a journal was read, and what its records leave out.
type Reading struct {
	Lines int       `json:"lines"`          // lines that were read, also those that are not matching records
	Since time.Time `json:"since,omitzero"` // the earliest and the latest time of a record that was read
	Until time.Time `json:"until,omitzero"`

	Unreadable int `json:"unreadable,omitempty"` // lines that are not records
	Unchained  int `json:"unchained,omitempty"`  // lines whose hash differs from what the next line says
	Partial    int `json:"partial,omitempty"`    // records that match, with values that were redacted or did not fit

	// Cursor names the last line that was read: the next page goes on with older lines, an export with newer ones. It
	// stays valid when files are rotated and others removed. A page without a cursor has the oldest record that matches.
	Cursor string `json:"cursor,omitempty"`
}

// Page has the latest records that match before a cursor, in the order in which they were written.
type Page[R any] struct {
	Records []R `json:"records"`
	Reading
}

// pageBytes bounds how much one page reads, so that a page of any filter takes a few tenths of a second.
const pageBytes = 4 << 20

// late is how much later than its end a call may be recorded.
const late = time.Minute

// Page reads the journal from its end, or before a cursor, until it has limit records that a filter selects, or has
// read as much as a page may. The beginning of a call is left out if its end was recorded soon after, too. The error
// is not_found if the line of the cursor is gone.
func (r Records[R]) Page(f Filter, before string, limit int) (Page[R], error) {
	p := Page[R]{Records: []R{}}
	files, err := r.Journal.OpenFiles(Cursor{}, Filter{})
	defer CloseFiles(files)
	at, mark := len(files)-1, Line{}
	if err == nil && before != "" {
		at, mark, err = r.Journal.find(files, before)
	}
	if err != nil {
		return p, err
	}
	s := scan[R]{Records: r, filter: f, reading: &p.Reading}
	if before != "" {
		_, s.later, _ = r.Decode(mark)
	}
	var begun []string // for each record of the page: the call that it begins
	ended := map[string]bool{}
	budget := int64(pageBytes)
	for line, err := range r.Journal.backward(files, at, mark, f) {
		if err != nil {
			return p, err
		}
		record, keys, ok := s.read(line)
		s.check(line, s.later.Prev)
		s.later = keys
		ended[keys.Ends] = true
		if ok && (keys.Begins == "" || !ended[keys.Begins]) {
			p.Records, begun = append(p.Records, record), append(begun, keys.Begins)
		}
		if budget -= line.Size; budget <= 0 || len(p.Records) == limit {
			p.Cursor = markOf(line)
			break
		}
		// Lines are in the order in which calls ended, so that all calls further on ended earlier, and began earlier still.
		if !keys.Over.IsZero() && keys.Over.Add(late).Before(f.Since) {
			break
		}
	}
	if before != "" && slices.ContainsFunc(begun, func(call string) bool { return call != "" }) {
		r.endedAfter(files[at:], mark, ended)
	}
	kept := p.Records[:0]
	for i, record := range p.Records {
		if begun[i] == "" || !ended[begun[i]] {
			kept = append(kept, record)
		}
	}
	slices.Reverse(kept)
	p.Records = kept
	return p, nil
}

// endedAfter adds the calls that ended soon after a line.
func (r Records[R]) endedAfter(files []File, mark Line, ended map[string]bool) {
	budget := int64(pageBytes)
	for line, err := range r.Journal.Lines(files, Cursor{mark.Next.File, mark.Next.Offset - mark.Size}) {
		if budget -= line.Size; err != nil || budget < 0 {
			return
		}
		if _, keys, err := r.Decode(line); err == nil {
			ended[keys.Ends] = true
		}
	}
}

// Each calls do with all records after a cursor that a filter selects, the oldest first; "" is the beginning. It
// returns the error of do or of a file that cannot be read, or not_found if the line of the cursor is gone.
func (r Records[R]) Each(f Filter, after string, do func(R) error) (done Reading, err error) {
	from := f
	if after != "" {
		from = Filter{}
	}
	files, err := r.Journal.OpenFiles(Cursor{}, from)
	defer CloseFiles(files)
	at, mark := 0, Line{}
	if err == nil && after != "" {
		at, mark, err = r.Journal.find(files, after)
	}
	if err != nil {
		return done, err
	}
	done.Cursor = after
	s := scan[R]{Records: r, filter: f, reading: &done}
	last := mark.Sum
	for line, err := range r.Journal.Lines(files[at:], mark.Next) {
		if err != nil || line.Tail { // the tail may be half-written
			return done, err
		}
		record, keys, ok := s.read(line)
		s.check(Line{Sum: last}, keys.Prev)
		last, done.Cursor = line.Sum, markOf(line)
		if ok {
			err = do(record)
		}
		if err != nil {
			return done, err
		}
	}
	return done, nil
}

// scan reads the lines of a journal and counts what it leaves out.
type scan[R any] struct {
	Records[R]
	filter  Filter
	reading *Reading
	later   Keys // keys of the line after this one, when lines are read backward
}

// read decodes a line and reports whether it is a record that the filter selects.
func (s *scan[R]) read(line Line) (record R, keys Keys, ok bool) {
	n := s.reading
	n.Lines++
	record, keys, err := s.Decode(line)
	if err != nil {
		if !errors.Is(err, ErrNone) {
			n.Unreadable++
		}
		return record, Keys{}, false
	}
	if n.Since.IsZero() || keys.Time.Before(n.Since) {
		n.Since = keys.Time
	}
	if keys.Time.After(n.Until) {
		n.Until = keys.Time
	}
	ok = s.filter.Matches(keys)
	if ok && (bytes.Contains(line.Text, []byte(redact.Prefix)) || bytes.Contains(line.Text, []byte(`_more":`))) {
		n.Partial++
	}
	return record, keys, ok
}

// check counts a line whose hash differs from what the line after it says.
func (s *scan[R]) check(line Line, prev []byte) {
	if len(prev) > 0 && len(line.Sum) > 0 && !bytes.Equal(line.Sum, prev) {
		s.reading.Unchained++
	}
}

// markOf returns the cursor of a line for callers, which holds a checksum of the line.
func markOf(line Line) string {
	return base64.RawURLEncoding.EncodeToString(
		fmt.Appendf(nil, "%s %d %08x", line.Next.File, line.Next.Offset, line.checksum()))
}

func (l *Line) checksum() uint32 { return crc32.ChecksumIEEE(l.Text[:min(len(l.Text), 4<<10)]) }

// find returns the line that a cursor names, and the index of its file.
func (j *Journal) find(files []File, cursor string) (at int, line Line, err error) {
	var mark Cursor
	var sum uint32
	text, err := base64.RawURLEncoding.DecodeString(cursor)
	if err == nil {
		_, err = fmt.Sscanf(string(text), "%s %d %08x", &mark.File, &mark.Offset, &sum)
	}
	if err != nil {
		return 0, line, host.Errorf(host.InvalidArgs, "%s is not a cursor; expected the whole cursor that a page or "+
			"an export printed", manifest.CleanValue(cursor))
	}
	at = slices.IndexFunc(files, func(f File) bool { return f.ID == mark.File })
	if at >= 0 && files[at].Err == nil && mark.Offset <= files[at].Size {
		for line, err := range j.Backward(files[at].Opened, mark.Offset) {
			if line.Next = mark; err == nil && line.checksum() == sum {
				return at, line, nil
			}
			break
		}
	}
	return 0, line, host.Errorf(host.NotFound, "the record at the cursor is gone: %s was removed or changed; "+
		"start again without a cursor", manifest.CleanLine(mark.File))
}

// backward yields the lines of open files before a line of files[at], the last one first, or all up to the end of that
// file if the line is empty.
func (j *Journal) backward(files []File, at int, before Line, f Filter) iter.Seq2[Line, error] {
	return func(yield func(Line, error) bool) {
		for i := at; i >= 0; i-- {
			file := files[i]
			if !f.Covers(file) {
				continue
			}
			end := file.Size
			if before.Next.File == file.ID {
				end = before.Next.Offset - before.Size
			}
			if file.Err != nil {
				yield(Line{}, file.Err)
				return
			}
			for line, err := range j.Backward(file.Opened, end) {
				line.Path, line.Next = file.Path, Cursor{file.ID, end}
				line.Tail = line.Broken && i == len(files)-1
				if end -= line.Size; !yield(line, err) {
					return
				}
			}
		}
	}
}
