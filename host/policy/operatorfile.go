package policy

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/gofrs/flock"

	"github.com/parley-tools/parley/host"
)

// OperatorFile is a file in the folder of the configuration by which the operator says what is allowed: the two files of the
// policy, and what another room keeps beside them. All are read and replaced with the same care. The zero value is no file.
type OperatorFile struct{ Path string }

// Read returns the whole file; there is false only if nothing of that name exists. A file that cannot be opened, that others
// may write or that has more than 1 MiB is a *host.Error of code config_error.
func (f OperatorFile) Read() (data []byte, exists bool, err error) {
	return readPolicyFile(filepath.Dir(f.Path), f.Path)
}

// Replace writes a new text in one step that others see whole or not at all, as 0600. If the file does not hold the old text
// any more ("" if there was none), nothing is written and the error is busy.
func (f OperatorFile) Replace(old, text string) error {
	fail := func(err error) error {
		return &host.Error{Code: host.ConfigError, Message: fmt.Sprintf("%s cannot be written: %v", f.Path, host.WithoutPath(err)), Cause: err}
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
		return host.Errorf(host.Busy, "%s was changed by somebody else in the meantime; nothing was written", f.Path).WithNext("look at it and do it again")
	}
	if err := writeFile(f.Path, []byte(text)); err != nil {
		return fail(err)
	}
	return nil
}
