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
	for name, run := range map[string]func(context.Context, *App) error{
		"batch -": func(ctx context.Context, a *App) error {
			return runBatch(ctx, &batchOptions{app: a, BatchOptions: command.BatchOptions{Path: "-", ContinueOnError: true}})
		},
		"--params -": func(ctx context.Context, a *App) error {
			return runCall(ctx, &callOptions{app: a, CallOptions: command.CallOptions{Tool: "text.hash", Params: "-"}})
		},
		"secret set": func(ctx context.Context, a *App) error {
			return runSecretSet(ctx, &secretSetOptions{app: a, name: "TOKEN"})
		},
	} {
		for _, isFile := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, a file: %t", name, isFile), func(t *testing.T) {
				in, home := silence(t, isFile), t.TempDir()
				app := newApp(&Streams{In: in, Out: io.Discard, Err: io.Discard, Env: func(name string) string {
					if name == "PARLEY_HOME" {
						return home
					}
					return ""
				}}, nil)
				defer app.deps.Close()
				ctx, signal := context.WithCancelCause(t.Context())
				ended := make(chan error, 1)
				go func() { ended <- run(ctx, app) }()
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
