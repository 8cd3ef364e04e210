package record

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"
)

// Exclusive calls do with the files of the journal, the oldest first, while nobody else writes or opens them. A folder
// that does not exist has no files, and do is not called.
func (j *Journal) Exclusive(do func(files []File) error) error {
	return j.withFiles(true, do)
}

// withFiles is [Journal.Exclusive]. Unless the lock is required, it goes on without a lock that it cannot get.
func (j *Journal) withFiles(required bool, do func(files []File) error) error {
	if _, err := os.Stat(j.Dir); errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
	release, err := j.lock()
	if err == nil {
		defer release()
	} else if required {
		return err
	}
	files, err := j.files()
	if err != nil {
		return err
	}
	return do(files)
}

// lock makes the caller the only writer among all processes. The lock has a file of its own, because the files of a
// journal are renamed and removed.
func (j *Journal) lock() (release func(), err error) {
	busy := func() error {
		return fmt.Errorf("another process has held its lock, %s, for longer than %s", j.Lock, j.Timeout)
	}
	deadline := time.Now().Add(j.Timeout)
	select {
	case j.writing <- struct{}{}:
	case <-time.After(j.Timeout):
		return nil, busy()
	}
	for {
		ok, err := j.fileLock.tryLock()
		if ok {
			return func() {
				j.fileLock.unlock()
				<-j.writing
			}, nil
		}
		if err == nil && time.Now().Before(deadline) {
			time.Sleep(time.Millisecond)
			continue
		}
		if err == nil {
			err = busy()
		}
		j.fileLock.leave()
		<-j.writing
		return nil, err
	}
}
