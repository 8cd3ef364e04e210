package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"testing"

	"github.com/parley-tools/parley/cmd/parley/internal/command"
	"github.com/parley-tools/parley/host"
)

// TestSignalEndsWaitForInput sends a signal to commands that wait for standard input without data.
func TestSignalEndsWaitForInput(t *testing.T) {
	for _, args := range [][]string{{"batch", "-"}, {"text", "hash", "--params", "-"}, {"secret", "set", "TOKEN"}} {
		for _, isFile := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, a file: %t", args, isFile), func(t *testing.T) {
				in, home := silence(t, isFile), t.TempDir()
				app := command.NewApp(&command.Streams{In: in, Out: io.Discard, Err: io.Discard, Env: func(name string) string {
					if name == "PARLEY_HOME" {
						return home
					}
					return ""
				}}, args)
				defer app.Close()
				ctx, signal := context.WithCancelCause(t.Context())
				ended := make(chan error, 1)
				root := newRootFor(app, args, nil)
				root.SetArgs(args)
				go func() { ended <- root.ExecuteContext(ctx) }()
				signal(host.Errorf(host.Terminated, "terminated"))
				if err := <-ended; err == nil || host.AsError(err).Code != host.Terminated {
					t.Errorf("the command returned %v", err)
				}
			})
		}
	}
}

// silence returns an input that never has data: a pipe of the system, which is a file, or one of this process.
func silence(t *testing.T, isFile bool) io.Reader {
	t.Helper()
	if !isFile {
		in, end := io.Pipe()
		t.Cleanup(func() { end.Close() })
		return in
	}
	in, end, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		end.Close()
		in.Close()
	})
	return in
}
