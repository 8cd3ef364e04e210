package trace

import (
	"bytes"
	"errors"
	"math"
	"os"

	"github.com/parley-tools/parley/host/protect"
	"github.com/parley-tools/parley/host/record"
	"github.com/parley-tools/parley/internal/durable"
)

// prune returns how many of the oldest files to remove when files[today] begins: those of KeepDays days ago and
// earlier, and then the oldest ones until all files, today's included, hold at most MaxBytes.
func (c Config) prune(files []record.File, today int) (n int) {
	oldest := files[today].Since.AddDate(0, 0, 1-c.KeepDays)
	var total int64
	for i := range files {
		if info, err := os.Stat(files[i].Path); err == nil {
			files[i].Size = info.Size()
			total += files[i].Size
		}
	}
	for n < today && (files[n].Since.Before(oldest) || total > c.MaxBytes) {
		total -= files[n].Size
		n++
	}
	return n
}

// Cleared says what [Clear] removed.
type Cleared struct {
	Records int   `json:"records"`
	Files   int   `json:"files"` // one for each day; nothing of it is left
	Bytes   int64 `json:"bytes"`
}

// Clear removes the records that a filter selects. Whoever is writing begins a new file. Lines that are not records
// are removed only with their file, which is removed if the filter selects all records of its day.
func Clear(dir string, f record.Filter) (done Cleared, err error) {
	err = journal(dir, Config{}).Exclusive(func(files []record.File) (err error) {
		for _, file := range files {
			if f.Covers(file) {
				err = errors.Join(err, done.clear(file, f))
			}
		}
		return err
	})
	return done, err
}

// clear removes records from a file.
func (c *Cleared) clear(file record.File, f record.Filter) error {
	data, err := protect.Read(file.Path, math.MaxInt64)
	if err != nil {
		return err
	}
	var kept []byte
	records := 0
	for line := range bytes.Lines(data) {
		_, keys, err := decode(record.Line{Text: line})
		switch {
		case err == nil && f.Matches(keys):
			records++
		case err == nil || !f.CoversAll(file):
			kept = append(kept, line...)
		}
	}
	switch {
	case len(kept) == len(data):
		return nil
	case len(kept) == 0:
		err = os.Remove(file.Path)
	default:
		err = durable.Write(file.Path, kept)
	}
	if err != nil {
		return err
	}
	if len(kept) == 0 {
		c.Files++
	}
	c.Records, c.Bytes = c.Records+records, c.Bytes+int64(len(data)-len(kept))
	return nil
}
