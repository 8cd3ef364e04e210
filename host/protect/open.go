package protect

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
	"time"

	"github.com/gofrs/flock"
)

// FileError says why a file is not read although it is there.
type FileError struct {
	Path   string
	Reason string // in words that follow the path
}

func (e *FileError) Error() string { return e.Path + ": " + e.Reason }

// Open opens a file that the host reads on its own: a regular file that belongs to this user or the administrator and
// has at most limit bytes; 0 means any number. Opening does not wait, whatever is there. From then on no grant reaches
// the file; see [Register]. The error is a *[FileError], or an error of package os.
func Open(path string, limit int64) (*os.File, fs.FileInfo, error) {
	return open(path, os.O_RDONLY, limit, true)
}

// Append opens a file of records with the same checks, to read it and to append to it. It makes the file, for this user
// alone, if there is none.
func Append(path string) (*os.File, fs.FileInfo, error) {
	return open(path, os.O_RDWR|os.O_APPEND|os.O_CREATE, 0, true)
}

func open(path string, flags int, limit int64, register bool) (*os.File, fs.FileInfo, error) {
	// The file is checked before it is opened, because opening a device can do harm, and afterwards, because another may
	// be there in the meantime.
	info, err := os.Stat(path)
	if err == nil {
		err = check(path, info, limit)
	} else if flags&os.O_CREATE != 0 && errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	if err != nil {
		return nil, nil, err
	}
	f, err := os.OpenFile(path, flags|Nonblock, 0o600)
	if err != nil {
		return nil, nil, err
	}
	if info, err = f.Stat(); err == nil {
		err = check(path, info, limit)
	}
	if err != nil {
		_ = f.Close()
		return nil, nil, err
	}
	if register {
		Register(path, info)
	}
	return f, info, nil
}

// NewLock returns a lock between processes, a file for this user alone. Opening it does not wait, whatever is there.
func NewLock(path string) *flock.Flock {
	return flock.New(path, flock.SetFlag(os.O_CREATE|os.O_RDONLY|Nonblock), flock.SetPermissions(0o600))
}

// CheckRecord returns a *[FileError] if there is something at the path of a file of records that [Append] would refuse.
func CheckRecord(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return nil
	}
	return check(path, info, 0)
}

func check(path string, info fs.FileInfo, limit int64) error {
	switch {
	case !info.Mode().IsRegular():
		return &FileError{path, "expected a regular file, found " + KindOf(info)}
	case OwnedByOther(info):
		return &FileError{path, "it belongs to another user, so it is not trusted; check it, then chown or remove it"}
	case limit > 0 && info.Size() > limit:
		return tooLarge(path, limit)
	}
	return nil
}

func tooLarge(path string, limit int64) error {
	return &FileError{path, fmt.Sprintf("it is larger than %d bytes", limit)}
}

// KindOf names the kind of a file in words.
func KindOf(info fs.FileInfo) string {
	for _, kind := range []struct {
		bit  fs.FileMode
		name string
	}{{fs.ModeDir, "a folder"}, {fs.ModeNamedPipe, "a pipe"}, {fs.ModeSocket, "a socket"}, {fs.ModeDevice, "a device"}} {
		if info.Mode()&kind.bit != 0 {
			return kind.name
		}
	}
	if info.Mode().IsRegular() {
		return "a regular file"
	}
	return "a special file"
}

// Read reads a whole file as [Open] opens it.
func Read(path string, limit int64) ([]byte, error) { return read(path, limit, true) }

// ReadProject is [Read] for a file that may come from anybody and therefore gives no rights, such as parley.toml in the
// working folder. It is not registered: a plugin may get the folder of a project.
func ReadProject(path string, limit int64) ([]byte, error) { return read(path, limit, false) }

func read(path string, limit int64, register bool) ([]byte, error) {
	f, info, err := open(path, os.O_RDONLY, limit, register)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return ReadAll(f, info, limit)
}

// ReadPart reads size bytes of a file from an offset on, as [Read] opens it.
func ReadPart(path string, offset, size int64) ([]byte, error) {
	f, _, err := open(path, os.O_RDONLY, 0, true)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data := make([]byte, size)
	_, err = io.ReadFull(io.NewSectionReader(f, offset, size), data)
	return data, err
}

// ReadAll reads an open file of at most limit bytes.
func ReadAll(f *os.File, info fs.FileInfo, limit int64) ([]byte, error) {
	var data bytes.Buffer
	data.Grow(int(info.Size()) + bytes.MinRead)
	if _, err := data.ReadFrom(io.LimitReader(f, max(limit, limit+1))); err != nil { // the largest limit has no next one
		return nil, err
	}
	if int64(data.Len()) > limit { // it grew
		return nil, tooLarge(f.Name(), limit)
	}
	return data.Bytes(), nil
}

// CheckFolder returns a *[FileError] if other users could have put files into a folder: it belongs to one of them, or
// everybody can write to it. A folder that does not exist is fine.
func CheckFolder(path string) error {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil // so nothing is read from it
	case !info.IsDir():
		return &FileError{path, "expected a folder, found " + KindOf(info)}
	case OwnedByOther(info):
		return &FileError{path, "the folder belongs to another user, so its files are not trusted; check them, then run " +
			"chown " + strconv.Itoa(os.Geteuid()) + " " + path}
	case WritableByAll(info):
		return &FileError{path, "everybody can write to the folder, so its files are not trusted; check them, then run " +
			"chmod o-w " + path}
	}
	return nil
}

// ModTime returns when a file was changed, the zero time if it does not exist.
func ModTime(path string) time.Time {
	info, err := os.Stat(path)
	if err != nil {
		return time.Time{}
	}
	return info.ModTime()
}

// Stamp is the state of a path, to tell whether what is there may have changed.
type Stamp struct {
	exists bool
	info   fs.FileInfo // nil if it cannot be read, or does not exist
}

// StampOf returns the stamp of what is at a path now.
func StampOf(path string) Stamp {
	// A dangling link exists: it changes the stamp, and reading it fails.
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		return Stamp{}
	}
	info, _ := os.Stat(path)
	return Stamp{true, info}
}

// Same reports whether nothing has changed between two stamps of a path.
func (s Stamp) Same(o Stamp) bool {
	if s.info == nil || o.info == nil {
		return s == o
	}
	return os.SameFile(s.info, o.info) && s.info.ModTime().Equal(o.info.ModTime()) && s.info.Size() == o.info.Size() &&
		s.info.Mode() == o.info.Mode()
}

// MaxConfig is the size limit of a configuration file, in bytes.
const MaxConfig = 1 << 20
