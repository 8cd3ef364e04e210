package command

import (
	"context"
	"io/fs"
	"os"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/protect"
	"github.com/parley-tools/parley/manifest"
)

// hostFile is an option that names a file which the host reads for itself, unlike one that names a value for a tool. No
// plugin gets to the file, in this process or in another one.
type hostFile string

// All hostFiles. A test checks that every option which names a file is one, or names a value or what is written.
const (
	tokenFileOption   hostFile = "mcp --token-file"
	certificateOption hostFile = "mcp --tls-cert"
	tlsKeyOption      hostFile = "mcp --tls-key"
	keyOption         hostFile = "plugin sign --key"
	newKeyOption      hostFile = "plugin sign --new-key"
	passwordOption    hostFile = "plugin sign --password-file"
	publicKeyOption   hostFile = "plugin verify --key"
	recordOption      hostFile = "--record, --replay"
)

// readHostFile reads the file that an option names. It may be a pipe, such as that of a program that prints a password.
func (d *Deps) readHostFile(ctx context.Context, option hostFile, path string, limit int64) ([]byte, error) {
	if info, err := os.Stat(path); err == nil && info.Mode()&fs.ModeNamedPipe != 0 {
		return host.ReadValue(ctx, path, limit)
	}
	data, err := protect.Read(path, limit)
	if err == nil {
		d.remember(option, path)
	}
	return data, err
}

// remember keeps the file that an option names out of the reach of plugins, in all processes.
func (d *Deps) remember(option hostFile, path string) {
	if err := d.Parley().Own().Remember(path); err != nil {
		d.Notice("plugins that other processes run may get to the file of " + string(option) + ": " +
			manifest.CleanLine(err.Error()))
	}
}
