package mcp_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/parley-tools/parley/host/mcp"
)

// maxResident limits the memory of a server, in bytes: with 64 busy clients it has about 40 MiB, with
// any number of clients that never read about 600 MiB.
const maxResident = 1 << 30

// serverProcess is a server over HTTP in a process of its own.
type serverProcess struct {
	url string
	pid int
}

// startServer starts a server that ends with the test.
func startServer(t *testing.T, mode string) *serverProcess {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), serveVariable+"="+mode, httpVariable+"=1")
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = in.Close()
		if err := cmd.Wait(); err != nil {
			t.Errorf("the server ended with %v", err)
		}
	})
	url, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return &serverProcess{strings.TrimSpace(url), cmd.Process.Pid}
}

func (s *serverProcess) address() string {
	return strings.TrimSuffix(strings.TrimPrefix(s.url, "http://"), mcp.Path)
}

// checkMemory checks the peak memory of the process, if the system reports it.
func (s *serverProcess) checkMemory(t *testing.T) {
	t.Helper()
	status, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(s.pid), "status"))
	if err != nil {
		t.Log("this system does not report the memory of a process: ", err)
		return
	}
	_, rest, _ := strings.Cut(string(status), "VmHWM:")
	fields := strings.Fields(rest)
	if len(fields) == 0 {
		t.Fatalf("no VmHWM in %s", status)
	}
	kib, err := strconv.Atoi(fields[0])
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("peak memory: %d MiB", kib>>10)
	if kib<<10 > maxResident {
		t.Errorf("peak memory: %d MiB, at most %d are allowed", kib>>10, maxResident>>20)
	}
}

// TestHammerClients checks that no call of many clients of both revisions is lost, and that the memory of the server
// stays bounded: 16 clients with 20 calls each, and with PARLEY_HAMMER set 64 with 200.
func TestHammerClients(t *testing.T) {
	t.Parallel()
	clients, calls := 16, 20
	if os.Getenv("PARLEY_HAMMER") != "" {
		clients, calls = 64, 200
	}
	s := startServer(t, mcp.Minimal)
	var wait sync.WaitGroup
	for i := range clients {
		session := client{revision: revisions[i%2], token: token}.http(t, s.url)
		wait.Go(func() {
			for n := range calls {
				want := fmt.Sprintf(`{"n":%d}`, i*1000+n)
				r, err := session.CallTool(t.Context(), &sdk.CallToolParams{Name: "shop__echo", Arguments: json.RawMessage(want)})
				if err != nil || r.IsError || firstText(r) != want {
					t.Errorf("client %d, call %d: %v %v", i, n, r, err)
					return
				}
			}
		})
	}
	wait.Wait()
	s.checkMemory(t)
}

// request returns a call as a client of the stateless revision sends it over a connection of its own.
func request(arguments string) string {
	body := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"call_tool","arguments":` + arguments +
		`,"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"c","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}}}`
	return "POST /mcp HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer " +
		token + "\r\nContent-Type: application/json\r\n" +
		"Accept: application/json, text/event-stream\r\nMcp-Protocol-Version: 2026-07-28\r\n" +
		"Mcp-Method: tools/call\r\nMcp-Name: call_tool\r\n" +
		fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(body), body)
}

// TestHammerClientsThatNeverRead checks that clients that request large results over HTTP and read nothing are
// disconnected, that other clients are served meanwhile, and that unread results do not accumulate.
func TestHammerClientsThatNeverRead(t *testing.T) {
	t.Parallel()
	s := startServer(t, mcp.Minimal)
	ask := request(`{"name":"shop.large","arguments":{"bytes":4000000},"options":{"max_bytes":8000000}}`)

	// The request is valid.
	conn := dial(t, s.address())
	if _, err := io.WriteString(conn, ask); err != nil {
		t.Fatal(err)
	}
	if status, err := bufio.NewReader(conn).ReadString('\n'); err != nil || !strings.Contains(status, " 200 ") {
		t.Fatalf("%q, %v", status, err)
	}
	_ = conn.Close()

	// A client that sends more requests is disconnected.
	conn = dial(t, s.address())
	_ = conn.SetWriteDeadline(time.Now().Add(time.Minute))
	for {
		if _, err := io.WriteString(conn, ask); errors.Is(err, os.ErrDeadlineExceeded) {
			t.Error("a client that reads nothing is still connected after a minute")
		} else if err == nil {
			continue
		}
		break
	}

	clients := 6
	if os.Getenv("PARLEY_HAMMER") != "" {
		clients = 64
	}
	for range clients {
		conn := dial(t, s.address())
		defer conn.Close()
		if _, err := io.WriteString(conn, ask+ask+ask); err != nil {
			t.Error(err)
		}
	}
	for _, revision := range revisions {
		session := client{revision: revision, token: token}.http(t, s.url)
		for n := range 20 {
			if r, text := call(t, session, "shop__echo", fmt.Sprintf(`{"n":%d}`, n)); r.IsError ||
				text != fmt.Sprintf(`{"n":%d}`, n) {
				t.Errorf("besides clients that read nothing, %s: %s", revision, text)
			}
		}
	}
	s.checkMemory(t)
}

// TestHalfOpen checks that the server closes a connection that its client has half closed.
func TestHalfOpen(t *testing.T) {
	t.Parallel()
	s := startServer(t, mcp.Minimal)
	for _, ask := range []string{request(`{"name":"shop.echo","arguments":{"a":"b"}}`), "POST /mcp HTTP/1.1\r\n", ""} {
		conn := dial(t, s.address())
		if _, err := io.WriteString(conn, ask); err != nil {
			t.Fatal(err)
		}
		if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
			t.Fatal(err)
		}
		_ = conn.SetReadDeadline(time.Now().Add(time.Minute))
		if _, err := io.Copy(io.Discard, conn); err != nil {
			t.Errorf("%.30q: %v", ask, err)
		}
		_ = conn.Close()
	}
}

func dial(t *testing.T, address string) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	return conn
}
