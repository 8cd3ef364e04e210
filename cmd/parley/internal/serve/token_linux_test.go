package serve

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/parley-tools/parley/cmd/parley/internal/command"
)

// TestTokenFileBecomesPipe checks that no request waits for what replaces a file of tokens.
func TestTokenFileBecomesPipe(t *testing.T) {
	f := &tokenFile{path: filepath.Join(t.TempDir(), "tokens"), notice: func(text string) { t.Log(text) },
		app: command.NewApp(&command.Streams{Env: func(string) string { return "" }}, nil)}
	write := func() {
		if err := os.WriteFile(f.path, []byte("0123456789abcdef\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write()
	if _, err := f.current(t.Context()); err != nil {
		t.Fatal(err)
	}
	_ = os.Remove(f.path)
	if err := syscall.Mkfifo(f.path, 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := f.current(t.Context()); err == nil {
		t.Errorf("the tokens %v were read from a pipe", got)
	}
	_ = os.Remove(f.path)
	write()
	if got, err := f.current(t.Context()); len(got) != 1 {
		t.Errorf("the tokens %v, %v", got, err)
	}
}
