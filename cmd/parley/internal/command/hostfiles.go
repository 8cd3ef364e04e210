package command

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"io/fs"
	"os"
	"strings"

	"github.com/parley-tools/parley/host/protect"
	"github.com/parley-tools/parley/manifest"
	"github.com/parley-tools/parley/manifest/jsontext"
)

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
		case !isText && !bytes.Equal(manifest.CompactJSON(value), manifest.CompactJSON(f.Data)):
		default:
			return "@" + f.Path
		}
	}
	return ""
}

// isBase64Of reports whether a text is data in base64. It encodes only data that has the size for it.
func isBase64Of(text string, data []byte) bool {
	return len(text) == base64.StdEncoding.EncodedLen(len(data)) && text == base64.StdEncoding.EncodeToString(data)
}
