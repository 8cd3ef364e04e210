package audit

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/parley-tools/parley/host/internal/durable"
	"github.com/parley-tools/parley/host/protect"
)

const (
	currentName = "audit.jsonl"
	closedName  = "audit-%06d.jsonl"
	lockName    = "audit.lock"
)

// defaultLockTimeout limits how long a record waits for the lock. Writing takes microseconds: a process that holds the
// lock for longer has been stopped.
const defaultLockTimeout = 5 * time.Second

// append writes a record after the last one, and before it the records about the log itself.
func (l *Log) append(r Record, sync bool) error {
	if err := l.tryAppend(r, sync); err != nil {
		return fmt.Errorf("the audit log %s cannot be written: %w", filepath.Join(l.dir, currentName), err)
	}
	return nil
}

func (l *Log) tryAppend(r Record, sync bool) (err error) {
	if r.Time.IsZero() {
		r.Time = l.cfg.Now()
	}
	if err := protect.Dir(l.dir); err != nil {
		return err
	}
	release, err := l.lock()
	if err != nil {
		return err
	}
	defer release()
	defer func() {
		if err != nil || !movableWhileOpen {
			l.closeFile()
		}
	}()

	if err := l.openCurrent(); err != nil {
		return err
	}
	last := l.end
	size, torn := last.size, last.torn
	if torn > 0 {
		if err := os.Truncate(l.file.Name(), size); err != nil {
			return err
		}
	}
	fresh := size == 0
	var records []Record
	var drop []string
	if fresh {
		if records, last, drop, err = l.beginFile(); err != nil {
			return err
		}
	}
	if torn > 0 {
		records = append(records, Record{Time: l.cfg.Now(), Op: opRepair, Torn: torn})
	}
	data, last, err := chain(last, append(records, r)...)
	if err != nil {
		return err
	}
	if err := write(l.file, size, data, sync || len(drop) > 0); err != nil {
		return err
	}
	l.end = fileEnd{size: size + int64(len(data)), hash: last.hash, seq: last.seq}
	for _, name := range drop { // after the record that says so; a file that remains is dropped again by the next rotation
		_ = os.Remove(filepath.Join(l.dir, name))
	}
	if sync && fresh {
		return durable.SyncDir(l.dir)
	}
	return nil
}

// lock makes the caller the only writer among all processes. The lock has a file of its own, because the log's file is
// renamed when it is closed.
func (l *Log) lock() (release func(), err error) {
	busy := fmt.Errorf("another process has held its lock, %s, for longer than %s", lockName, l.lockTimeout)
	var timeout <-chan time.Time // set once this has to wait
	select {
	case l.writing <- struct{}{}:
	default:
		timeout = time.After(l.lockTimeout)
		select {
		case l.writing <- struct{}{}:
		case <-timeout:
			return nil, busy
		}
	}
	for {
		ok, err := l.fileLock.tryLock()
		if ok {
			return func() {
				l.fileLock.unlock()
				<-l.writing
			}, nil
		}
		if timeout == nil {
			timeout = time.After(l.lockTimeout)
		}
		if err == nil {
			select {
			case <-time.After(time.Millisecond):
				continue
			case <-timeout:
				err = busy
			}
		}
		<-l.writing
		return nil, err
	}
}

// openCurrent opens the file for the next record, a new one if the last one has reached its size. If the file that this
// process wrote last is still in place and has not grown, nothing was added and its end is known.
func (l *Log) openCurrent() error {
	path := filepath.Join(l.dir, currentName)
	if l.file != nil && l.end.size < l.cfg.MaxBytes {
		if there, same := protect.Unchanged(path, l.opened); same && there.Size() == l.end.size {
			return nil
		}
	}
	l.closeFile()
	if err := l.open(path); err != nil || l.end.size < l.cfg.MaxBytes {
		return err
	}
	if l.end.torn > 0 { // closed files have no torn record: repair it first
		return nil
	}
	closed, err := l.closedFiles()
	if err != nil {
		return err
	}
	number := 1
	if len(closed) > 0 {
		number = sequenceOf(closed[len(closed)-1]) + 1
	}
	l.closeFile() // Windows does not rename open files
	if err := os.Rename(path, filepath.Join(l.dir, fmt.Sprintf(closedName, number))); err != nil {
		l.warn(fmt.Errorf("%s could not be closed and continues to grow: %w", path, err))
	}
	return l.open(path)
}

func (l *Log) open(path string) error {
	f, info, err := protect.Append(path)
	if err != nil {
		return err
	}
	if l.file, l.opened = f, info; !protect.OwnerOnly(info) {
		err = f.Chmod(0o600)
	}
	if err == nil {
		l.end, err = readEnd(f, l.opened.Size())
	}
	return err
}

func (l *Log) closeFile() {
	if l.file != nil {
		_ = l.file.Close()
		l.file = nil
	}
}

// beginFile returns the end to which a new file is chained. In all but the first file, the first record says so, and
// which files are dropped.
func (l *Log) beginFile() (records []Record, before fileEnd, drop []string, err error) {
	closed, err := l.closedFiles()
	if err != nil || len(closed) == 0 {
		return nil, fileEnd{hash: genesis}, nil, err
	}
	newest := closed[len(closed)-1]
	if before, err = l.endOf(newest); err != nil {
		return nil, fileEnd{}, nil, err
	}
	r := Record{Time: l.cfg.Now(), Op: opRotate, Subject: newest}
	if more := len(closed) - l.cfg.Keep; more > 0 {
		drop = closed[:more]
		gone, err := l.endOf(drop[more-1])
		if err != nil {
			return nil, fileEnd{}, nil, err
		}
		r.Dropped = &Dropped{Files: more, Last: drop[more-1], Seq: gone.seq, Hash: gone.hash}
	}
	return []Record{r}, before, drop, nil
}

func (l *Log) endOf(name string) (fileEnd, error) {
	f, info, err := protect.Open(filepath.Join(l.dir, name), 0)
	if err != nil {
		return fileEnd{}, err
	}
	defer f.Close()
	return readEnd(f, info.Size())
}

// chain encodes records as the lines after an end, and returns their own end without its size.
func chain(last fileEnd, records ...Record) ([]byte, fileEnd, error) {
	var data []byte
	for _, r := range records {
		if last.seq >= maxSeq { // only a forged record has such a number, and the next ones must be readable
			last.seq = 0
		}
		r.V, r.Seq, r.Prev, r.Time = version, last.seq+1, last.hash, r.Time.UTC()
		line, err := encode(r)
		if err != nil {
			return nil, last, err
		}
		data = append(data, line...)
		last.seq, last.hash = r.Seq, hashLine(line)
	}
	return data, last, nil
}

// write appends lines in one write. If they do not fit, it removes what was written; by name, because Windows does not
// truncate files that are open for appending.
func write(f *os.File, size int64, data []byte, sync bool) error {
	if _, err := f.Write(data); err != nil { // a part may have been written
		return errors.Join(err, os.Truncate(f.Name(), size))
	}
	if sync {
		return durable.Sync(f)
	}
	return nil
}

// closedFiles returns the names of the closed files, oldest first.
func (l *Log) closedFiles() ([]string, error) {
	entries, err := os.ReadDir(l.dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	var names []string
	for _, e := range entries {
		if sequenceOf(e.Name()) > 0 {
			names = append(names, e.Name())
		}
	}
	slices.SortFunc(names, func(a, b string) int { return sequenceOf(a) - sequenceOf(b) })
	return names, nil
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
