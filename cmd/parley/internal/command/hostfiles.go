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
	"github.com/parley-tools/parley/host/step"
	"github.com/parley-tools/parley/manifest"
	"github.com/parley-tools/parley/manifest/jsontext"
)

// ReadValue reads a file that a caller names for a value, of at most limit bytes. The file may belong to anybody, and
// may be a pipe, which is read until its end or until ctx ends; the error is then timeout, or the cause of ctx.
// Devices are refused, because they need not end.
func ReadValue(ctx context.Context, path string, limit int64) ([]byte, error) {
	tooLarge := fmt.Errorf("%s: it is larger than %d bytes", path, limit)
	info, err := os.Stat(path)
	switch {
	case err != nil && strings.Contains(path, "://"):
		return nil, fmt.Errorf("URLs are not fetched; download %s first", path)
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular() && info.Mode()&os.ModeNamedPipe == 0:
		return nil, fmt.Errorf("%s: expected a file or a pipe, found %s", path, protect.KindOf(info))
	case info.Size() > limit:
		return nil, tooLarge
	}
	data, err := awaitOrAbandon(ctx, func() ([]byte, error) { // opening a pipe blocks until it has a writer
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
		err = host.Errorf(host.Timeout, "%s: writing to it was not finished within the timeout", path)
	}
	return data, err
}

// Input returns the standard input. Reads end when the context does, with [context.Cause].
func (a *App) Input(ctx context.Context) io.Reader {
	a.Signaled.handle() // the input may take long to arrive
	return &abandonableReader{ctx: ctx, in: a.In}
}

// abandonableReader reads until its context ends. A waiting read cannot be ended, but it can be abandoned.
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

// awaitOrAbandon returns the result of wait, or [context.Cause] if the context ends first. It then abandons wait,
// which keeps running. Use it for waits for a person or a program that cannot be interrupted.
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

// HostFile is an option that names a file which the host reads for itself, unlike an option that names a value for a
// tool. Plugins cannot reach the file, in this process or any other.
type HostFile string

// All HostFiles. A test checks that every option that names a file is one of them, or names a value or an output.
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

// ReadHostFile reads the file that an option names. It may be a pipe, for example from a program that prints a
// password.
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

// Remember protects the file that an option names from plugins, in all processes.
func Remember(a *App, option HostFile, path string) {
	if err := a.Parley().ProtectedFiles().Remember(path); err != nil {
		a.Notice("plugins in other processes may reach the file of " + string(option) + ": " +
			manifest.CleanLine(err.Error()))
	}
}

// GivenFile is a file that the command line names for its contents.
type GivenFile struct {
	Path string
	Data []byte
}

// ReadGiven reads a file that the command line names for its contents, at most [host.MaxParams] bytes; "-" is the
// standard input. Offered commands then name the file.
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

// fileOf returns the @FILE that a value, given as JSON, came from, or "" if it came from none. A list of a single
// text counts as that text.
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

// sorted returns JSON with sorted names and without spaces.
func sorted(raw []byte) []byte {
	value, _ := jsontext.Decode(raw, jsontext.Limits{Bytes: host.MaxParams})
	return jsontext.Marshal(value)
}

// namesFiles reports whether a step is too long for an error because of the contents of files, while its command,
// which names the files, is not.
func namesFiles(a *App, s step.Step) bool {
	return len(a.Files) > 0 && len(host.BoundedSteps([]step.Step{s})) == 0 && len(a.Command(s)) <= maxCommand
}

// maxCommand is the length up to which a command is always offered, however much the files that it names contain.
const maxCommand = 240

// isBase64Of reports whether a text is data in base64. It encodes data only if the sizes match.
func isBase64Of(text string, data []byte) bool {
	return len(text) == base64.StdEncoding.EncodedLen(len(data)) && text == base64.StdEncoding.EncodeToString(data)
}
