//go:build unix

package wasm

import (
	"io/fs"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
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
