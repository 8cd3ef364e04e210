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
	"github.com/parley-tools/parley/host/internal/private"
)

const (
	currentName = "audit.jsonl"
	closedName  = "audit-%06d.jsonl"
	lockName    = "audit.lock"
)

// defaultLockTimeout bounds how long a record waits for its turn. A write takes microseconds, so whoever holds the lock for longer was stopped.
const defaultLockTimeout = 5 * time.Second

// append writes a record after the last one, chained to it, and before it what there is to say of the log itself.
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
	if err := private.Dir(l.dir); err != nil {
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
	for _, name := range drop { // after the record that says so; one that stays is dropped again by the next rotation
		_ = os.Remove(filepath.Join(l.dir, name))
	}
	if sync && fresh {
		return durable.SyncDir(l.dir)
	}
	return nil
}

// lock makes this the only writer among all processes. A lock on the log itself would move with the file when it is closed.
func (l *Log) lock() (release func(), err error) {
	busy := fmt.Errorf("another process has held its lock, %s, for longer than %s", lockName, l.lockTimeout)
	var timeout <-chan time.Time // made for those who wait
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

// openCurrent opens the file that records go to, a new one if the last has grown to its size. If it is open already, still the one that the
// others write to, and as long as this process left it, then nothing was added and its end is known.
func (l *Log) openCurrent() error {
	path := filepath.Join(l.dir, currentName)
	if l.file != nil && l.end.size < l.cfg.MaxBytes {
		if there, same := private.Unchanged(path, l.opened); same && there.Size() == l.end.size {
			return nil
		}
	}
	l.closeFile()
	if err := l.open(path); err != nil || l.end.size < l.cfg.MaxBytes {
		return err
	}
	if l.end.torn > 0 { // a closed file ends whole, so what is torn must go first; the next record says so
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
	l.closeFile() // Windows renames no file that is open
	if err := os.Rename(path, filepath.Join(l.dir, fmt.Sprintf(closedName, number))); err != nil {
		l.warn(fmt.Errorf("%s could not be closed and grows on: %w", path, err))
	}
	return l.open(path)
}

func (l *Log) open(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	l.file = f
	if l.opened, err = f.Stat(); err == nil && !private.OwnerOnly(l.opened) {
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

// beginFile returns what a new file goes on from. In all but the first, its first record says so, and which files are dropped for it.
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
	f, err := os.Open(filepath.Join(l.dir, name))
	if err != nil {
		return fileEnd{}, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return fileEnd{}, err
	}
	return readEnd(f, info.Size())
}

// chain writes records as the lines that follow an end, and returns the end that they make but for its size.
func chain(last fileEnd, records ...Record) ([]byte, fileEnd, error) {
	var data []byte
	for _, r := range records {
		if last.seq >= maxSeq { // no log gets there by itself, and what comes after a forged number must be readable, too
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

// write puts lines at the end of a file at once. If not all of them fit, none stays. (A file that is open for appending cannot be cut
// by itself on Windows.)
func write(f *os.File, size int64, data []byte, sync bool) error {
	if _, err := f.Write(data); err != nil { // also when a part was written
		return errors.Join(err, os.Truncate(f.Name(), size))
	}
	if sync {
		return f.Sync()
	}
	return nil
}

// closedFiles lists the names of the files that are written no more, oldest first.
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

// sequenceOf is the number of a closed file, 0 for any other name.
func sequenceOf(name string) int {
	digits, isClosed := strings.CutPrefix(strings.TrimSuffix(name, ".jsonl"), "audit-")
	n, err := strconv.Atoi(digits)
	if !isClosed || err != nil || n < 1 || fmt.Sprintf(closedName, n) != name {
		return 0
	}
	return n
}
