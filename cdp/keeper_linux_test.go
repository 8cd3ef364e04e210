package cdp

import (
	"bufio"
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/parley-tools/parley/cdp/internal/keeper/api"
	"github.com/parley-tools/parley/internal/wire"
)

// fakeRequest is what a keeper receives.
type fakeRequest struct {
	ID   int64
	Op   string
	By   api.Caller
	Body json.RawMessage
}

// fakeKeeper serves as the keeper of the default browser, with a greeting, and returns the folder to use it. Each
// request is answered with the result that answer returns; without answer it hangs up after the greeting.
func fakeKeeper(t *testing.T, greeting string, answer func(fakeRequest) string) (runDir string) {
	t.Helper()
	dir, err := os.MkdirTemp("", "") // the path of t.TempDir is too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	lock, err := os.Create(filepath.Join(dir, "default.lock"))
	if err == nil {
		err = syscall.Flock(int(lock.Fd()), syscall.LOCK_EX)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = lock.Close() })
	socket := SocketPath(dir)
	l, err := net.Listen("unix", socket)
	if err == nil {
		err = os.Chmod(socket, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go serveFake(conn, greeting, answer)
		}
	}()
	return dir
}

func serveFake(conn net.Conn, greeting string, answer func(fakeRequest) string) {
	defer conn.Close()
	c := wire.NewConn(bufio.NewReader(conn), conn)
	_ = c.Send(wire.KindHello, []byte(greeting))
	for answer != nil {
		kind, frame, err := c.Receive(1 << 30)
		if err != nil {
			return
		}
		var q fakeRequest
		if json.Unmarshal(frame, &q) != nil || kind != wire.KindCall {
			continue
		}
		text, failed := strings.CutPrefix(answer(q), "!") // which marks an error
		field := "result"
		if failed {
			field = "error"
		}
		reply, _ := json.Marshal(map[string]any{"id": q.ID, field: json.RawMessage(text)})
		_ = c.Send(wire.KindDone, reply)
	}
}
