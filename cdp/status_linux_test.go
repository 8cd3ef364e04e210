package cdp

import (
	"encoding/binary"
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/parley-tools/parley/host"
)

// TestStatusOfAnotherVersion checks that status does not report a keeper with another wire version as ended.
func TestStatusOfAnotherVersion(t *testing.T) {
	dir, err := os.MkdirTemp("", "") // the path of t.TempDir is too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	lock, err := os.Create(filepath.Join(dir, "default.lock"))
	if err == nil {
		err = syscall.Flock(int(lock.Fd()), syscall.LOCK_EX)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	socket := SocketPath(dir)
	l, err := net.Listen("unix", socket)
	if err == nil {
		err = os.Chmod(socket, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			hello := []byte(`{"parley_keeper":2,"version":"0.0.9"}`)
			_, _ = conn.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(hello))), hello...))
		}
	}()
	got, err := New(Config{RunDir: dir}).status(t.Context(), &host.Request{Job: host.Job{Caller: "cli",
		Params: json.RawMessage("{}")}})
	if err != nil {
		t.Fatal(err)
	}
	if said := strings.Join(got.Warnings, "; "); !strings.Contains(said, "version 0.0.9") ||
		!strings.Contains(said, "replaces it") {
		t.Errorf("warnings %q, browsers %s", said, got.Data)
	}
}
