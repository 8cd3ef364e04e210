package access_test

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/parley-tools/parley/host/mcp/access"
)

// TestTokenFileBecomesPipe checks that no request waits for what replaces a file of tokens.
func TestTokenFileBecomesPipe(t *testing.T) {
	f := &access.File{Path: filepath.Join(t.TempDir(), "tokens"), Notice: func(text string) { t.Log(text) }}
	write := func() {
		if err := os.WriteFile(f.Path, []byte("0123456789abcdef\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write()
	if _, err := f.Tokens(); err != nil {
		t.Fatal(err)
	}
	_ = os.Remove(f.Path)
	if err := syscall.Mkfifo(f.Path, 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := f.Tokens(); err == nil {
		t.Errorf("the tokens %v were read from a pipe", got)
	}
	_ = os.Remove(f.Path)
	write()
	if got, err := f.Tokens(); len(got) != 1 {
		t.Errorf("the tokens %v, %v", got, err)
	}
}
