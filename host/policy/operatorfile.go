package policy

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/gofrs/flock"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/internal/durable"
)

// OperatorFile is a file in the configuration folder by which the operator says what is allowed: the two files of the
// policy, and those that other packages keep beside them. All are read and replaced with the same checks. The zero
// value is no file.
type OperatorFile struct{ Path string }

// Read returns the whole file; exists is false only if nothing has the name. The error is a *host.Error of code
// config_error if the file cannot be opened, others may write to it, or it is larger than 1 MiB.
func (f OperatorFile) Read() (data []byte, exists bool, err error) {
	return readPolicyFile(filepath.Dir(f.Path), f.Path)
}

// Replace writes a new text atomically, with mode 0600. If the file no longer holds the old text ("" if there was no
// file), it writes nothing and returns busy.
func (f OperatorFile) Replace(old, text string) error {
	fail := func(err error) error {
		return &host.Error{Code: host.ConfigError, Message: fmt.Sprintf("%s cannot be written: %v", f.Path,
			host.WithoutPath(err)), Cause: err}
	}
	if err := os.MkdirAll(filepath.Dir(f.Path), 0o700); err != nil {
		return fail(err)
	}
	lock := flock.New(f.Path + ".lock")
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
	if err := durable.Write(f.Path, []byte(text)); err != nil { // a crash must not bring back a grant that was revoked
		return fail(err)
	}
	return nil
}
