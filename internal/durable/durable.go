// Package durable makes changes to files and folders survive a crash of the machine.
package durable

import (
	"errors"
	"os"
	"path/filepath"
	"sync/atomic"
)

// Disk flushes to disk what was written.
type Disk interface {
	SyncFile(f *os.File) error
	// SyncDir flushes the entries of a folder. If the file system cannot do that, it is not an error.
	SyncDir(path string) error
}

// Sync flushes the content of a file to disk.
func Sync(f *os.File) error { return disk.Load().SyncFile(f) }

// SyncDir flushes the entries of a folder to disk: without it a new, renamed or removed file may be lost in a crash.
func SyncDir(path string) error { return disk.Load().SyncDir(path) }

// Rename writes data to a new file, flushes it, and renames it to a name in the same folder, replacing any file
// there. It closes the file, and removes it on failure.
func Rename(f *os.File, path string, data []byte) error {
	_, err := f.Write(data)
	if err = errors.Join(err, Sync(f), f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return SyncDir(filepath.Dir(path))
}

// Write replaces the content of a file and makes it readable by this user only. A concurrent reader sees the old or
// the new content.
func Write(path string, data []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".new-*") // with mode 0600
	if err != nil {
		return err
	}
	return Rename(f, path, data)
}

// Replace makes the whole process flush to another disk until restore is called. Tests use it to see what is flushed,
// and when.
func Replace(d Disk) (restore func()) {
	old := disk.Swap(&current{d})
	return func() { disk.Store(old) }
}

// disk is the disk that the process flushes to.
var disk atomic.Pointer[current]

type current struct{ Disk }

func init() { disk.Store(&current{system{}}) }

// system is the disk of the operating system.
type system struct{}

func (system) SyncFile(f *os.File) error { return f.Sync() }
func (system) SyncDir(path string) error { return syncDir(path) }
