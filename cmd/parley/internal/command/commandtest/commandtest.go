// Package commandtest has helpers for the tests of commands.
package commandtest

import (
	"io"
	"strings"
	"testing"

	"github.com/parley-tools/parley/cmd/parley/internal/command"
	"github.com/parley-tools/parley/host"
)

// New returns an App with a data folder that prints nothing.
func New(t *testing.T, home, input string) *command.App {
	t.Helper()
	app := command.NewApp(&command.Streams{
		In: strings.NewReader(input), Out: io.Discard, Err: io.Discard,
		Env: func(name string) string { return map[string]string{"PARLEY_HOME": home}[name] },
	}, nil)
	t.Cleanup(app.Close)
	return app
}

// IsCode reports whether an error has a code.
func IsCode(err error, code host.Code) bool { return err != nil && host.AsError(err).Code == code }
