// Package record keeps files of JSON lines to which several processes append while others read. [Journal] writes,
// rotates and locks them; [Records] reads them from a cursor on, through a [Filter]. Package audit keeps the
// operator's chained log with it, package trace the traces.
package record

import (
	"errors"
	"fmt"
	"hash"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/parley-tools/parley/host/protect"
	"github.com/parley-tools/parley/internal/durable"
	"github.com/parley-tools/parley/internal/lists"
)

// Config describes the files of a journal, which all lie in one folder.
type Config struct {
	Dir  string
	Lock string // name of the file that is locked

	// List returns the files of the journal among the names in the folder, the oldest first.
	List func(names []string) []File
	// Drop returns how many of the oldest files to remove when files[at] begins; at most at.
	Drop func(files []File, at int) int
	// MaxBytes is the size of a file that is renamed to its ID, so that the next one begins. 0 means that the writer
	// chooses the file of each line.
	MaxBytes int64
	// Repair removes a half-written line at the end of a file before the next line is appended.
	Repair bool

	MaxLine int              // bytes of a line with its line break
	Hash    func() hash.Hash // if set, hashes each line that is read

	// Warn receives the first error of this process; later ones are dropped. It may be nil.
	Warn func(error)
	// Timeout limits how long to wait for the lock; 0 is 5 s. Writing takes microseconds: a process that holds the lock
	// for longer has been stopped.
	Timeout time.Duration
}

// File is one of the files of a journal.
type File struct {
	// ID identifies the file even after it is renamed. Later files have longer IDs, or greater ones of the same length.
	ID   string
	Path string // only its name in the result of [Config.List]
	// Since and Until are the bounds of the times of its records, as far as they are known.
	Since, Until time.Time

	Opened *os.File // the first Size bytes are read
	Size   int64
	Err    error // the reason why it is not open
}

// Journal is a folder of files of lines. It is safe for concurrent use, also by several processes: a process holds a
// lock while it writes or opens files to read.
type Journal struct {
	Config
	warned sync.Once

	writing  chan struct{} // held by the goroutine that has the lock; guards the fields below
	fileLock lock
	file     *os.File    // the last file written to, open for the next line; may be nil
	opened   os.FileInfo // file when it was opened
	size     int64       // size of file after the last line; -1 if the file may not end there
}

// Open returns a journal. Its folder is made, for this user alone, when the first line is written.
func Open(cfg Config) *Journal {
	if cfg.Timeout <= 0 {
		cfg.Timeout = 5 * time.Second
	}
	return &Journal{
		Config: cfg, writing: make(chan struct{}, 1), fileLock: lock{path: filepath.Join(cfg.Dir, cfg.Lock)},
	}
}

// Report passes the first error to [Config.Warn] and drops later ones.
func (j *Journal) Report(err error) {
	if j.Warn != nil {
		j.warned.Do(func() { j.Warn(err) })
	}
}

// End is the position in a file where lines are appended.
type End struct {
	File  *os.File
	Size  int64 // bytes of whole lines
	Torn  int64 // bytes of a half-written line after them
	Known bool  // nobody has written to the file since this journal did
	// For a file without a whole line: the files before it, and how many of them are removed once lines are written.
	Before []File
	Drop   int
}

// Append calls lines with the end of the file, and appends the lines that it returns in one write. With flush they are
// on the disk when Append returns. A write that fails leaves nothing behind.
func (j *Journal) Append(name string, flush bool, lines func(End) ([]byte, error)) (err error) {
	if err := protect.CheckFolder(j.Dir); err != nil { // it may have changed since the host was opened
		return err
	}
	release, err := j.lock()
	if errors.Is(err, fs.ErrNotExist) && os.MkdirAll(j.Dir, 0o700) == nil {
		release, err = j.lock()
	}
	if err != nil {
		return err
	}
	defer release()
	defer func() {
		if err != nil || !movableWhileOpen {
			j.close()
		}
	}()

	path := filepath.Join(j.Dir, name)
	end, err := j.open(path)
	if err == nil && j.MaxBytes > 0 && end.Size >= j.MaxBytes && end.Torn == 0 { // a torn line is repaired first
		end, err = j.rotate(path)
	}
	size := end.Size + end.Torn
	if err == nil && j.Repair && end.Torn > 0 {
		size, err = end.Size, os.Truncate(path, end.Size)
	}
	if err == nil && end.Size == 0 {
		err = j.begin(path, &end)
	}
	if err != nil {
		return err
	}
	data, err := lines(end)
	if err == nil {
		err = j.write(data, size, flush || end.Drop > 0)
	}
	if err != nil {
		return err
	}
	j.size = size + int64(len(data))
	for _, f := range end.Before[:end.Drop] { // after the lines, which may say so; the rest goes with the next file
		if err := os.Remove(f.Path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			j.Report(fmt.Errorf("old records cannot be removed: %w", err))
		}
	}
	if flush && end.Size == 0 {
		return durable.SyncDir(j.Dir)
	}
	return nil
}

// open opens a file for the next line. The file stays open as long as it is the one at its path.
func (j *Journal) open(path string) (end End, err error) {
	size := int64(-1)
	if j.file != nil {
		if there, same := protect.Unchanged(path, j.opened); same {
			size = there.Size()
		}
	}
	if size < 0 {
		j.close()
		if j.file, j.opened, err = protect.Append(path); err != nil {
			return End{}, err
		}
		if !protect.OwnerOnly(j.opened) { // another program made it
			err = j.file.Chmod(0o600)
		}
		size = j.opened.Size()
	}
	end = End{File: j.file, Size: size, Known: size == j.size}
	if !end.Known && err == nil {
		end.Size, err = WholeLines(j.file, size)
		end.Torn = size - end.Size
	}
	return end, err
}

func (j *Journal) close() {
	if j.file != nil {
		_ = j.file.Close()
	}
	j.file, j.size = nil, -1
}

// rotate renames a file to its ID and opens the next one.
func (j *Journal) rotate(path string) (End, error) {
	j.close() // Windows does not rename open files
	files, err := j.files()
	if err != nil {
		return End{}, err
	}
	if at := indexOf(files, path); at >= 0 {
		if err := os.Rename(path, filepath.Join(j.Dir, files[at].ID)); err != nil {
			j.Report(fmt.Errorf("%s could not be closed and continues to grow: %w", path, err))
		}
	}
	return j.open(path)
}

// begin sets End.Before and End.Drop for a file that begins.
func (j *Journal) begin(path string, end *End) error {
	files, err := j.files()
	if at := indexOf(files, path); at >= 0 {
		end.Before, end.Drop = files[:at], max(0, j.Drop(files, at))
	}
	return err
}

func indexOf(files []File, path string) int {
	return slices.IndexFunc(files, func(f File) bool { return f.Path == path })
}

// write appends data to a file of the given size. If not all of it fits, it removes what it wrote; by name, because
// Windows does not truncate files that are open for appending.
func (j *Journal) write(data []byte, size int64, flush bool) error {
	if _, err := j.file.Write(data); err != nil {
		return errors.Join(err, os.Truncate(j.file.Name(), size))
	}
	if flush {
		return durable.Sync(j.file)
	}
	return nil
}

// files returns the files of the journal, the oldest first.
func (j *Journal) files() ([]File, error) {
	entries, err := os.ReadDir(j.Dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	files := j.List(lists.Map(entries, fs.DirEntry.Name))
	for i := range files {
		files[i].Path = filepath.Join(j.Dir, files[i].Path)
	}
	return files, nil
}
