package trace

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
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

// Clear removes the files of days before a UTC day, or all if the day is the zero time. It returns how many it removed,
// and their size in bytes. Whoever is writing begins a new file.
func Clear(dir string, before time.Time) (files int, bytes int64, err error) {
	days, err := listDays(dir)
	if err != nil {
		return 0, 0, err
	}
	for _, day := range days {
		if !before.IsZero() && day >= before.UTC().Format(dayFormat) {
			break
		}
		path := filepath.Join(dir, day+suffix)
		info, failed := os.Stat(path)
		if failed == nil {
			failed = os.Remove(path)
		}
		switch {
		case failed == nil:
			files++
			bytes += info.Size()
		case !errors.Is(failed, fs.ErrNotExist): // another process removed it
			err = errors.Join(err, failed)
		}
	}
	return files, bytes, err
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
