//go:build unix

package wasm

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/parley-tools/parley/host/wasm/internal/world"
)

func makePipe(t testing.TB, path string) {
	t.Helper()
	if err := unix.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
}

// makeSocket creates a Unix socket and leaves it in the folder.
func makeSocket(t testing.TB, path string) {
	t.Helper()
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	if err := unix.Bind(fd, &unix.SockaddrUnix{Name: path}); err != nil && len(path) < 100 { // socket addresses are short
		t.Fatal(err)
	}
}

// linksTo returns the link count of a file.
func linksTo(info fs.FileInfo) uint64 {
	if st, ok := info.Sys().(*syscall.Stat_t); ok && !info.IsDir() {
		return uint64(st.Nlink)
	}
	return 1
}

// TestRenamePastPipe: a pipe that has replaced the folder of a name is an error. Opening it would wait for a writer.
func TestRenamePastPipe(t *testing.T) {
	dir := t.TempDir()
	makePipe(t, filepath.Join(dir, "pipe"))
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	for _, names := range [][2]string{{"pipe/x", "y"}, {"x", "pipe/y"}} {
		if err := world.RenameOver(root, names[0], names[1]); !errors.Is(err, syscall.ENOTDIR) {
			t.Errorf("rename %s to %s: got %v, want %v", names[0], names[1], err, syscall.ENOTDIR)
		}
	}
}
