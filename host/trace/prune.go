package trace

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/parley-tools/parley/host/protect"
)

// prune removes files of days before today: those of keepDays days ago and earlier, and then the oldest ones until all
// files, today's included, hold at most maxBytes. Files with other names are kept. A file that another process
// removes at the same time is not an error.
func prune(dir, today string, keepDays int, maxBytes int64) error {
	days, err := listDays(dir)
	if err != nil {
		return err
	}
	now, err := time.Parse(dayFormat, today)
	if err != nil {
		return err
	}
	oldest := now.AddDate(0, 0, 1-keepDays).Format(dayFormat)
	var total int64
	sizes := make([]int64, len(days))
	for i, day := range days {
		if info, err := os.Stat(filepath.Join(dir, day+suffix)); err == nil {
			sizes[i] = info.Size()
			total += sizes[i]
		}
	}
	var failed error
	for i, day := range days {
		if day >= today || day >= oldest && total <= maxBytes {
			break
		}
		err := os.Remove(filepath.Join(dir, day+suffix))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			failed = errors.Join(failed, err)
			continue
		}
		total -= sizes[i]
	}
	return failed
}

// Cleared says what [Clear] removed.
type Cleared struct {
	Records int   `json:"records"`
	Files   int   `json:"files"` // one for each day, of which nothing is left
	Bytes   int64 `json:"bytes"`
}

// Clear removes the records that a filter selects and drop accepts; a nil drop accepts all. Whoever is writing begins a
// new file. Lines that are not records go only with their file.
func Clear(dir string, f Filter, drop func(Record) bool) (done Cleared, err error) {
	days, err := listDays(dir)
	if err != nil {
		return done, err
	}
	for _, day := range days {
		if f.matchesDay(day) {
			err = errors.Join(err, f.clear(filepath.Join(dir, day+suffix), day, drop, &done))
		}
	}
	return done, err
}

// clear removes records from a file.
func (f Filter) clear(path, day string, drop func(Record) bool, done *Cleared) error {
	old, _, err := protect.Open(path, 0)
	if errors.Is(err, fs.ErrNotExist) { // another process removed it
		return nil
	} else if err != nil {
		return err
	}
	defer old.Close()
	data, err := io.ReadAll(old)
	if err != nil {
		return err
	}
	var kept []byte
	records := 0
	for line := range bytes.Lines(data) {
		r, ok := decode(line)
		if ok && f.matches(r) && (drop == nil || drop(r)) {
			records++
		} else if ok || !f.isWhole(day) || drop != nil {
			kept = append(kept, line...)
		}
	}
	if runtime.GOOS == "windows" { // which does not remove open files
		_ = old.Close()
	}
	switch {
	case len(kept) == len(data):
		return nil
	case len(kept) == 0:
		err = os.Remove(path)
		done.Files++
	default:
		if err = os.WriteFile(path+".new", kept, 0o600); err == nil {
			err = os.Rename(path+".new", path)
		}
	}
	if err != nil {
		return err
	}
	done.Records, done.Bytes = done.Records+records, done.Bytes+int64(len(data)-len(kept))
	if runtime.GOOS == "windows" {
		return nil
	}
	return keepLate(path, old)
}

// keepLate appends to the new file of a day what others have written to the old one since it was read.
func keepLate(path string, old *os.File) error {
	late, err := io.ReadAll(old)
	if err != nil || len(late) == 0 {
		return err
	}
	f, _, err := protect.Append(path)
	if err != nil {
		return err
	}
	_, err = f.Write(late)
	return errors.Join(err, f.Close())
}

// isWhole reports whether a filter selects all records of a day.
func (f Filter) isWhole(day string) bool {
	begin, err := time.Parse(dayFormat, day)
	return err == nil && f.Op == "" && f.Tool == "" && f.Session == "" && (f.Since.IsZero() || !f.Since.After(begin)) &&
		(f.Until.IsZero() || !f.Until.Before(begin.AddDate(0, 0, 1)))
}

// listDays returns the days that have a file, oldest first.
func listDays(dir string) ([]string, error) {
	files, err := os.ReadDir(dir) // sorted by name, which is the day
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	var days []string
	for _, f := range files {
		day, ok := strings.CutSuffix(f.Name(), suffix)
		if _, err := time.Parse(dayFormat, day); ok && err == nil {
			days = append(days, day)
		}
	}
	return days, nil
}
