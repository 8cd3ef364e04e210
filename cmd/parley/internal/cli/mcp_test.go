package cli

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
)

// served is parley mcp --http as a process of its own.
type served struct {
	cmd     *exec.Cmd
	url     string
	said    []string // lines of stderr after the address
	stopped chan error
}

// serveHTTP starts a server whose files are in home, and reads so many lines of what it says of itself.
func serveHTTP(t *testing.T, home string, lines int, args ...string) *served {
	t.Helper()
	s := &served{cmd: exec.Command("parley", append([]string{"mcp", "--http", "127.0.0.1:0"}, args...)...), stopped: make(chan error, 1)}
	s.cmd.Env = append(os.Environ(), "PARLEY_HOME="+home)
	errs, err := s.cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.cmd.Process.Kill() })
	read := bufio.NewReader(errs)
	for range lines {
		line, err := read.ReadString('\n')
		if err != nil {
			t.Fatalf("it said %q, and ended: %v", s.said, err)
		}
		if url, ok := strings.CutPrefix(line, "MCP at "); ok {
			s.url = strings.TrimSpace(url)
		} else {
			s.said = append(s.said, strings.TrimSpace(line))
		}
	}
	go func() {
		_, _ = io.Copy(io.Discard, read)
		s.stopped <- s.cmd.Wait()
	}()
	return s
}

// ask sends an initialize with a header and returns the status.
func (s *served) ask(t *testing.T, authorization string) int {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.url, strings.NewReader(
		`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	if authorization != "" {
		r.Header.Set("Authorization", authorization)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	_ = answer.Body.Close()
	return answer.StatusCode
}

// TestServeHTTP holds how a server is started and ended: its token is said once, asked for ever, and a signal ends it.
func TestServeHTTP(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("it ends servers by signals")
	}
	s := serveHTTP(t, t.TempDir(), 2)
	if len(s.said) != 1 || !strings.HasPrefix(s.said[0], "Authorization: Bearer ") || !strings.HasPrefix(s.url, "http://127.0.0.1:") {
		t.Fatalf("it says %q, at %s", s.said, s.url)
	}
	_, header, _ := strings.Cut(s.said[0], ": ")
	if got := s.ask(t, header); got != 200 {
		t.Errorf("with the token: %d", got)
	}
	if got := s.ask(t, ""); got != 401 {
		t.Errorf("without it: %d", got)
	}
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	select {
	case <-s.stopped:
		if code := s.cmd.ProcessState.ExitCode(); code != 143 {
			t.Errorf("SIGTERM ends it in %d", code)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("SIGTERM does not end it")
	}

	file := filepath.Join(t.TempDir(), "tokens")
	if err := os.WriteFile(file, []byte("# mine\nfirst-token-of-two\n\nsecond-token-of-two\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s = serveHTTP(t, t.TempDir(), 1, "--token-file", file)
	for token, want := range map[string]int{"first-token-of-two": 200, "second-token-of-two": 200, "# mine": 401, "third-token-of-two": 401} {
		if got := s.ask(t, "Bearer "+token); got != want {
			t.Errorf("%s: %d, expected %d", token, got, want)
		}
	}
	s = serveHTTP(t, t.TempDir(), 1, "--no-token")
	if got := s.ask(t, ""); got != 200 {
		t.Errorf("--no-token: %d", got)
	}
}

func TestListenAddress(t *testing.T) {
	for given, want := range map[string]string{
		"8931": "127.0.0.1:8931 true", ":8931": "127.0.0.1:8931 true", "127.0.0.1:0": "127.0.0.1:0 true", "localhost:1": "localhost:1 true", "[::1]:1": "[::1]:1 true",
		"0.0.0.0:1": "0.0.0.0:1 false", "10.0.0.1:1": "10.0.0.1:1 false", "example.com:1": "example.com:1 false", "127.0.0.1": "", "a:b:c": "", "x:": "",
	} {
		address, loopback, err := listenAddress(given)
		got := ""
		if err == nil {
			got = address + map[bool]string{true: " true", false: " false"}[loopback]
		}
		if got != want {
			t.Errorf("%s is %q, expected %q", given, got, want)
		}
	}
}

// stdioServer is parley mcp on stdin and stdout, a message a line.
type stdioServer struct {
	in  io.Writer
	out *bufio.Reader
}

func (s *stdioServer) write(t *testing.T, message string) {
	t.Helper()
	if _, err := io.WriteString(s.in, message+"\n"); err != nil {
		t.Fatal(err)
	}
}

func (s *stdioServer) read(t *testing.T) string {
	t.Helper()
	line, err := s.out.ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return line
}

// TestBrowserAtOnce lets a client open pages all at once: while no browser is there, when the browser has just been killed, and as another
// process, which finds it open. Each call has its page.
func TestBrowserAtOnce(t *testing.T) {
	needBrowser(t)
	home := t.TempDir()
	parley := func(args ...string) *exec.Cmd {
		cmd := exec.Command("parley", args...)
		cmd.Env = append(os.Environ(), "PARLEY_HOME="+home, "HOME="+home)
		return cmd
	}
	t.Cleanup(func() { _ = parley("cdp", "close", "--all").Run() })
	const calls = 6
	openAll := func(when string, s *stdioServer) {
		t.Helper()
		for id := range calls {
			s.write(t, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"call_tool","arguments":`+
				`{"name":"cdp.open","arguments":{"url":"about:blank"},"options":{"timeout":"120s"}}}}`, id+1))
		}
		for range calls {
			if answer := s.read(t); !strings.Contains(answer, `"result"`) || strings.Contains(answer, `"isError":true`) {
				t.Errorf("%s: %s", when, answer)
			}
		}
	}
	status := func() (pid, pages int) {
		t.Helper()
		var answer struct {
			Data struct {
				Browsers []struct {
					Chrome  int `json:"chrome_pid"`
					Targets []struct{ Type, Owner string }
				}
			}
		}
		out, err := parley("cdp", "status", "--json").Output()
		if err == nil {
			err = json.Unmarshal(out, &answer)
		}
		if err != nil || len(answer.Data.Browsers) != 1 {
			t.Fatalf("%v: %s", err, out)
		}
		for _, x := range answer.Data.Browsers[0].Targets {
			if x.Type == "page" && x.Owner == "mcp:once" {
				pages++
			}
		}
		return answer.Data.Browsers[0].Chrome, pages
	}
	want := func(when string, pages int) (chrome int) {
		t.Helper()
		chrome, n := status()
		if n != pages {
			t.Errorf("%s: %d pages are there, expected %d", when, n, pages)
		}
		return chrome
	}
	connect := func() *stdioServer {
		t.Helper()
		cmd := parley("mcp")
		in, err := cmd.StdinPipe()
		out, err2 := cmd.StdoutPipe()
		if err := errors.Join(err, err2); err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			_ = in.Close()
			_ = cmd.Wait()
		})
		s := &stdioServer{in, bufio.NewReader(out)}
		s.write(t, `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"once","version":"1"}}}`)
		s.read(t)
		s.write(t, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
		return s
	}

	first := connect()
	openAll("no browser", first)
	chrome := want("no browser", calls)
	if p, err := os.FindProcess(chrome); err != nil || p.Kill() != nil {
		t.Fatalf("the browser cannot be killed: %v", err)
	}
	openAll("a browser that was killed", first)
	want("a browser that was killed", calls)
	openAll("a browser that is open", connect())
	want("a browser that is open", 2*calls)
}
