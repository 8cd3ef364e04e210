// Package operator reads and replaces the operator's files, which say what is allowed.
package operator

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/protect"
	"github.com/parley-tools/parley/host/step"
	"github.com/parley-tools/parley/internal/durable"
)

// MaxFile is the size limit of a file, in bytes.
const MaxFile = 1 << 20

// File is a file in the configuration folder that says what the operator allows: one of the two files of the policy,
// or a file that another package keeps beside them. All are read and replaced with the same checks. The zero value
// names no file.
type File struct{ Path string }

// Read returns the whole file; exists is false only if nothing has the name. The error is a *host.Error of code
// config_error if the file cannot be opened, others may write to it, or it is larger than 1 MiB.
func (f File) Read() (data []byte, exists bool, err error) {
	refuse := func(format string, args ...any) ([]byte, bool, error) {
		return nil, false, host.Errorf(host.ConfigError, "%s: %s", f.Path, fmt.Sprintf(format,
			args...)).WithSteps(step.Operator(step.OpPolicyCheck))
	}
	// Whoever may write to the folder can remove a policy or add one.
	dir := filepath.Dir(f.Path)
	folder, err := os.Stat(dir)
	switch {
	case err != nil: // the file is missing or unreadable, too
	case protect.WritableByAll(folder):
		return refuse("everybody can write to its folder %s, so it is not trusted: chmod o-w the folder and check the file",
			dir)
	case protect.OwnedByOther(folder):
		return refuse("its folder %s belongs to another user, so it is not trusted: check it, then chown the folder", dir)
	}
	// With Lstat, because a dangling link is a policy that cannot be read.
	if _, err := os.Lstat(f.Path); errors.Is(err, fs.ErrNotExist) {
		return nil, false, nil
	}
	opened, info, err := protect.Open(f.Path, MaxFile)
	if err == nil {
		defer opened.Close()
		if protect.WritableByAll(info) {
			return refuse("everybody can write to it, so it is not trusted: chmod o-w it and check it")
		}
		data, err = protect.ReadAll(opened, info, MaxFile)
	}
	refused, isRefused := errors.AsType[*protect.FileError](err)
	switch {
	case isRefused:
		return refuse("%s", refused.Reason)
	case err != nil:
		return refuse("cannot be read: %v", host.WithoutPath(err))
	}
	return data, true, nil
}

// Replace writes a new text atomically, with mode 0600. If the file no longer holds the old text ("" if there was no
// file), it writes nothing and returns busy.
func (f File) Replace(old, text string) error {
	fail := func(err error) error {
		return &host.Error{Code: host.ConfigError, Message: fmt.Sprintf("%s cannot be written: %v", f.Path,
			host.WithoutPath(err)), Cause: err}
	}
	if err := os.MkdirAll(filepath.Dir(f.Path), 0o700); err != nil {
		return fail(err)
	}
	lock := protect.NewLock(f.Path + ".lock")
	if err := lock.Lock(); err != nil {
		return fail(err)
	}
	defer lock.Unlock()
	current, _, err := f.Read()
	if err != nil {
		return err
	}
	if string(current) != old {
		return host.Errorf(host.Busy, "%s has changed in the meantime; nothing was written. "+
			"Look at it and try again", f.Path)
	}
	err = durable.Write(f.Path, []byte(text)) // a crash must not bring back a grant that was revoked
	if errors.Is(err, syscall.ENOSPC) && len(text) <= len(old) {
		err = f.overwrite(text)
	}
	if err != nil {
		return fail(err)
	}
	return nil
}

// overwrite writes a text that is not longer into the file itself, so that rights can be revoked while the disk is
// full. If it is interrupted, the file cannot be read and no call runs.
func (f File) overwrite(text string) error {
	file, err := os.OpenFile(f.Path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = file.WriteString(text)
	return errors.Join(err, file.Truncate(int64(len(text))), file.Sync(), file.Close())
}
