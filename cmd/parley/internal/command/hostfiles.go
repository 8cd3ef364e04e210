package command

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/protect"
	"github.com/parley-tools/parley/manifest"
	"github.com/parley-tools/parley/manifest/jsontext"
)

// ReadValue reads a file that a caller names for a value, of at most limit bytes. It may belong to anybody and be a
// pipe, which is read to its end or until ctx ends: then the error is timeout, or the cause of ctx. Devices are
// refused, because they need not end.
func ReadValue(ctx context.Context, path string, limit int64) ([]byte, error) {
	tooLarge := fmt.Errorf("%s: it is larger than %d bytes", path, limit)
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular() && info.Mode()&os.ModeNamedPipe == 0:
		return nil, fmt.Errorf("%s: expected a file or a pipe, found %s", path, protect.KindOf(info))
	case info.Size() > limit:
		return nil, tooLarge
	}
	data, err := awaitOrAbandon(ctx, func() ([]byte, error) { // a pipe without a writer cannot be opened
		f, err := os.Open(path)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		if opened, err := f.Stat(); err != nil || opened.Mode().Type() != info.Mode().Type() {
			return nil, fmt.Errorf("%s: it has changed", path)
		}
		data, err := io.ReadAll(io.LimitReader(f, limit+1))
		if err == nil && int64(len(data)) > limit {
			err = tooLarge
		}
		return data, err
	})
	if err != nil && ctx.Err() == context.DeadlineExceeded {
		err = host.Errorf(host.Timeout, "%s: nobody has finished writing to it within the timeout", path)
	}
	return data, err
}

// Input returns the standard input. Its reads end with the context, with [context.Cause].
func (a *App) Input(ctx context.Context) io.Reader {
	a.Signaled.handle() // the input may take long to come
	return &abandonableReader{ctx: ctx, in: a.In}
}

// abandonableReader reads until its context ends. A read that waits cannot be ended, but it can be abandoned.
type abandonableReader struct {
	ctx    context.Context
	in     io.Reader
	buffer []byte // an abandoned read may still write to it
}

func (r *abandonableReader) Read(b []byte) (int, error) {
	if r.ctx.Err() != nil {
		return 0, context.Cause(r.ctx)
	}
	if len(r.buffer) < len(b) {
		r.buffer = make([]byte, len(b))
	}
	n, err := awaitOrAbandon(r.ctx, func() (int, error) { return r.in.Read(r.buffer[:len(b)]) })
	return copy(b, r.buffer[:n]), err
}

// awaitOrAbandon returns what wait returns, or [context.Cause] if the context ends first. Then it abandons wait, which
// keeps running: use it for what waits for a person or a program and cannot be interrupted.
func awaitOrAbandon[T any](ctx context.Context, wait func() (T, error)) (T, error) {
	type outcome struct {
		value T
		err   error
	}
	ended := make(chan outcome, 1)
	go func() {
		value, err := wait()
		ended <- outcome{value, err}
	}()
	select {
	case o := <-ended:
		return o.value, o.err
	case <-ctx.Done():
		var none T
		return none, context.Cause(ctx)
	}
}

// HostFile is an option that names a file which the host reads for itself, unlike one that names a value for a tool. No
// plugin gets to the file, in this process or in another one.
type HostFile string

// All hostFiles. A test checks that every option which names a file is one, or names a value or what is written.
const (
	TokenFileOption   HostFile = "mcp --token-file"
	CertificateOption HostFile = "mcp --tls-cert"
	TLSKeyOption      HostFile = "mcp --tls-key"
	KeyOption         HostFile = "plugin sign --key"
	NewKeyOption      HostFile = "plugin sign --new-key"
	PasswordOption    HostFile = "plugin sign --password-file"
	PublicKeyOption   HostFile = "plugin verify --key"
	RecordOption      HostFile = "--record, --replay"
)

// ReadHostFile reads the file that an option names. It may be a pipe, such as that of a program that prints a password.
func ReadHostFile(ctx context.Context, a *App, option HostFile, path string, limit int64) ([]byte, error) {
	if info, err := os.Stat(path); err == nil && info.Mode()&fs.ModeNamedPipe != 0 {
		return ReadValue(ctx, path, limit)
	}
	data, err := protect.Read(path, limit)
	if err == nil {
		Remember(a, option, path)
	}
	return data, err
}

// Remember keeps the file that an option names out of the reach of plugins, in all processes.
func Remember(a *App, option HostFile, path string) {
	if err := a.Parley().ProtectedFiles().Remember(path); err != nil {
		a.Notice("plugins that other processes run may get to the file of " + string(option) + ": " +
			manifest.CleanLine(err.Error()))
	}
}

// GivenFile is a file that the command line names for its contents.
type GivenFile struct {
	Path string
	Data []byte
}

// ReadGiven reads a file that the command line names for its contents, "-" for the standard input, of at most
// [host.MaxParams] bytes. What is offered then names the file.
func ReadGiven(ctx context.Context, a *App, path string) (data []byte, err error) {
	if path != "-" {
		data, err = ReadValue(ctx, path, host.MaxParams)
	} else if data, err = io.ReadAll(io.LimitReader(a.Input(ctx), host.MaxParams+1)); len(data) > host.MaxParams {
		err = fmt.Errorf("the standard input is larger than %d bytes", host.MaxParams)
	} else if errors.Is(err, context.DeadlineExceeded) {
		err = host.Errorf(host.Timeout, "-: the standard input did not end within the timeout")
	}
	if err == nil {
		a.Files = append(a.Files, GivenFile{Path: path, Data: data})
	}
	return data, err
}

// fileOf returns the @FILE that gave a value, as JSON, or "" if none did. A list of one text is given like the text.
func fileOf(a *App, value json.RawMessage) string {
	text, isText := jsontext.Unquote(value)
	var list []string
	if json.Unmarshal(value, &list) == nil && len(list) == 1 && !strings.HasPrefix(list[0], "[") {
		text, isText = list[0], true
	}
	for _, f := range a.Files {
		switch {
		case isText && text != string(f.Data) && !isBase64Of(text, f.Data):
		case !isText && !bytes.Equal(sorted(value), sorted(f.Data)):
		default:
			return "@" + f.Path
		}
	}
	return ""
}

// sorted returns JSON in one order of names, without spaces.
func sorted(raw []byte) []byte {
	value, _ := jsontext.Decode(raw, jsontext.Limits{Bytes: host.MaxParams})
	return jsontext.Marshal(value)
}

// namesFiles reports whether a step is too long for an error by what files hold, and its command, which names them, is
// not.
func namesFiles(a *App, s host.Step) bool {
	return len(a.Files) > 0 && len(host.BoundedSteps([]host.Step{s})) == 0 && len(a.Command(s)) <= maxCommand
}

// maxCommand is the length of a command that is offered whatever the files hold that it names.
const maxCommand = 240

// isBase64Of reports whether a text is data in base64. It encodes only data that has the size for it.
func isBase64Of(text string, data []byte) bool {
	return len(text) == base64.StdEncoding.EncodedLen(len(data)) && text == base64.StdEncoding.EncodeToString(data)
}
