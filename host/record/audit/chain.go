package audit

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/parley-tools/parley/host/protect"
	"github.com/parley-tools/parley/host/record"
)

const (
	currentName = "audit.jsonl"
	closedName  = "audit-%06d.jsonl"
	lockName    = "audit.lock"
)

// listFiles returns the closed files in the order of their numbers, then the current one, whose ID is the name that it
// gets when it is closed.
func listFiles(names []string) (files []record.File) {
	for _, name := range names {
		if sequenceOf(name) > 0 {
			files = append(files, record.File{ID: name, Path: name})
		}
	}
	slices.SortFunc(files, func(a, b record.File) int { return sequenceOf(a.ID) - sequenceOf(b.ID) })
	if slices.Contains(names, currentName) {
		number := 1
		if len(files) > 0 {
			number = sequenceOf(files[len(files)-1].ID) + 1
		}
		files = append(files, record.File{ID: fmt.Sprintf(closedName, number), Path: currentName})
	}
	return files
}

// sequenceOf returns the number of a closed file, 0 for any other name.
func sequenceOf(name string) int {
	digits, isClosed := strings.CutPrefix(strings.TrimSuffix(name, ".jsonl"), "audit-")
	n, err := strconv.Atoi(digits)
	if !isClosed || err != nil || n < 1 || fmt.Sprintf(closedName, n) != name {
		return 0
	}
	return n
}

// lines returns a record as the line at an end of the log, and before it the records about the log itself.
func (l *Log) lines(end record.End, r Record) (data []byte, err error) {
	last := l.last
	if !end.Known {
		if last, _, err = l.lastIn(end.File, end.Size); err != nil {
			return nil, err
		}
	}
	var records []Record
	if n := len(end.Before); n > 0 { // a later file begins with a record of the rotation and of the dropped files
		newest := end.Before[n-1]
		if last, err = l.lastOf(newest); err != nil {
			return nil, err
		}
		begin := Record{Time: l.cfg.Now(), Op: opRotate, Subject: newest.ID}
		if end.Drop > 0 {
			gone, err := l.lastOf(end.Before[end.Drop-1])
			if err != nil {
				return nil, err
			}
			begin.Dropped = &Dropped{Files: end.Drop, Last: end.Before[end.Drop-1].ID, Seq: gone.Seq, Hash: gone.Hash}
		}
		records = append(records, begin)
	}
	if end.Torn > 0 {
		records = append(records, Record{Time: l.cfg.Now(), Op: opRepair, Torn: end.Torn})
	}
	data, l.last, err = chain(last, append(records, r)...)
	return data, err
}

// chain encodes records as the lines after a link, and returns the link of the last one.
func chain(last Head, records ...Record) ([]byte, Head, error) {
	var data []byte
	for _, r := range records {
		if last.Seq >= maxSeq { // only a forged record has such a number, and the next ones must be readable
			last.Seq = 0
		}
		r.V, r.Seq, r.Prev, r.Time = version, last.Seq+1, last.Hash, r.Time.UTC()
		line, err := encode(r)
		if err != nil {
			return nil, last, err
		}
		data = append(data, line...)
		last = Head{hashLine(line), r.Seq, r.Time}
	}
	return data, last, nil
}

// maxInvalid is how many invalid lines may follow the last record for its number to be found.
const maxInvalid = 100

// lastIn finds the link at the end of the first size bytes of a file without reading the rest. The next record is
// chained also to invalid lines, so that none of them can vanish; only a line without a line break is left out, which
// has torn bytes.
func (l *Log) lastIn(f io.ReaderAt, size int64) (last Head, torn int64, err error) {
	whole, err := record.WholeLines(f, size)
	if err != nil {
		return last, 0, err
	}
	last.Hash, torn = genesis, size-whole
	tries := 0
	for line, err := range l.journal.Backward(f, whole) {
		if err != nil || tries == maxInvalid {
			return last, torn, err
		}
		if tries == 0 {
			last.Hash = hashOf(line.Sum)
		}
		if r, _, err := decode(line); err == nil {
			last.Seq, last.Time = r.Seq, r.Time
			break
		}
		tries++
	}
	return last, torn, nil
}

func (l *Log) lastOf(closed record.File) (Head, error) {
	f, info, err := protect.Open(closed.Path, 0)
	if err != nil {
		return Head{}, err
	}
	defer f.Close()
	last, _, err := l.lastIn(f, info.Size())
	return last, err
}

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
	files, err := l.journal.OpenFiles(record.Cursor{}, record.Filter{})
	defer record.CloseFiles(files)
	s := State{Files: len(files)}
	for _, f := range files {
		if f.Err != nil {
			return s, f.Err
		}
		last, torn, err := l.lastIn(f.Opened, f.Size)
		if err != nil {
			return s, err
		}
		s.Bytes += f.Size
		s.Torn = torn
		if last.Seq > 0 {
			s.Head = last
		}
	}
	return s, err
}

// Head returns the head of the log, the zero value if there is no record.
func (l *Log) Head() (Head, error) {
	s, err := l.State()
	return s.Head, err
}
