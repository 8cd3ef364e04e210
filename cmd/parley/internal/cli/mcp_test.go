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

	"github.com/parley-tools/parley/internal/testhome"
)

// served is a process of parley mcp --http.
type served struct {
	cmd     *exec.Cmd
	url     string
	printed []string // lines of stderr other than the address
	stopped chan error
}

// serveHTTP starts a server with the data folder home, and reads a number of lines from its stderr.
func serveHTTP(t *testing.T, home string, lines int, args ...string) *served {
	t.Helper()
	cmd := exec.Command("parley", append([]string{"mcp", "--http", "127.0.0.1:0"}, args...)...)
	s := &served{cmd: cmd, stopped: make(chan error, 1)}
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
			t.Fatalf("the server printed %q, and ended: %v", s.printed, err)
		}
		if url, ok := strings.CutPrefix(line, "MCP at "); ok {
			s.url = strings.TrimSpace(url)
		} else {
			s.printed = append(s.printed, strings.TrimSpace(line))
		}
	}
	go func() {
		_, _ = io.Copy(io.Discard, read)
		s.stopped <- s.cmd.Wait()
		close(s.stopped)
	}()
	t.Cleanup(func() { // with what it compiles
		_ = s.cmd.Process.Signal(syscall.SIGTERM)
		<-s.stopped
	})
	return s
}

// initialize is a message that opens a session of the client name.
func initialize(name string) string {
	return `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25",` +
		`"capabilities":{},"clientInfo":{"name":"` + name + `","version":"1"}}}`
}

// ask sends an initialize with a header and returns the status.
func (s *served) ask(t *testing.T, authorization string) int {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.url, strings.NewReader(initialize("c")))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	if authorization != "" {
		r.Header.Set("Authorization", authorization)
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	return response.StatusCode
}

// TestServeHTTP starts and ends a server: it prints its token once, requires it in every request, and ends at a signal.
func TestServeHTTP(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("signals end the servers of this test")
	}
	s := serveHTTP(t, t.TempDir(), 2)
	if len(s.printed) != 1 || !strings.HasPrefix(s.printed[0], "Authorization: Bearer ") ||
		!strings.HasPrefix(s.url, "http://127.0.0.1:") {
		t.Fatalf("the server at %q printed %q", s.url, s.printed)
	}
	_, header, _ := strings.Cut(s.printed[0], ": ")
	if got := s.ask(t, header); got != 200 {
		t.Errorf("with the token: %d", got)
	}
	if got := s.ask(t, ""); got != 401 {
		t.Errorf("without the token: %d", got)
	}
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	select {
	case <-s.stopped:
		if code := s.cmd.ProcessState.ExitCode(); code != 143 {
			t.Errorf("exit code %d after SIGTERM", code)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("the server runs after SIGTERM")
	}

	for range 10 { // a client may end the server as soon as it knows the address
		s := serveHTTP(t, t.TempDir(), 2)
		if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		<-s.stopped
		if code := s.cmd.ProcessState.ExitCode(); code != 143 {
			t.Fatalf("exit code %d after SIGTERM at the start", code)
		}
	}

	file := filepath.Join(t.TempDir(), "tokens")
	if err := os.WriteFile(file, []byte("# mine\nfirst-token-of-two\n\nsecond-token-of-two\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s = serveHTTP(t, t.TempDir(), 1, "--token-file", file)
	for token, want := range map[string]int{
		"first-token-of-two": 200, "second-token-of-two": 200, "# mine": 401, "third-token-of-two": 401,
	} {
		if got := s.ask(t, "Bearer "+token); got != want {
			t.Errorf("%s: %d, expected %d", token, got, want)
		}
	}
	s = serveHTTP(t, t.TempDir(), 1, "--no-token")
	if got := s.ask(t, ""); got != 200 {
		t.Errorf("--no-token: %d", got)
	}
}

// TestServersCompileAhead checks that a server compiles a shipped plugin that nobody calls.
func TestServersCompileAhead(t *testing.T) {
	for name, start := range map[string]func(t *testing.T, home string){
		"stdio": func(t *testing.T, home string) {
			cmd := exec.Command("parley", "mcp")
			cmd.Env = append(os.Environ(), "PARLEY_HOME="+home)
			in, err := cmd.StdinPipe()
			if err := errors.Join(err, cmd.Start()); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				_ = in.Close()
				_ = cmd.Wait()
			})
		},
		"http": func(t *testing.T, home string) { serveHTTP(t, home, 2) },
	} {
		t.Run(name, func(t *testing.T) {
			home := t.TempDir()
			start(t, home)
			for {
				compiled, err := filepath.Glob(filepath.Join(home, "cache", "wasm", "*", "checksums.json"))
				if err != nil {
					t.Fatal(err)
				}
				if len(compiled) > 0 {
					break
				}
				time.Sleep(10 * time.Millisecond)
			}
		})
	}
}

// stdioServer is parley mcp on stdin and stdout, with one message a line.
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

// TestBrowserAtOnce opens pages with concurrent calls: while no browser runs, right after the browser was killed, and
// from another process while the browser runs. Each call gets its page.
func TestBrowserAtOnce(t *testing.T) {
	t.Parallel()
	needBrowser(t)
	home := testhome.New(t)
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
		out, err := parley("cdp", "status", "--param", "all=true", "--json").Output()
		if err == nil {
			err = json.Unmarshal(out, &answer)
		}
		if err != nil || len(answer.Data.Browsers) != 1 {
			t.Fatalf("%v: %s", err, out)
		}
		for _, x := range answer.Data.Browsers[0].Targets {
			if x.Type == "page" && strings.HasPrefix(x.Owner, "mcp-") {
				pages++
			}
		}
		return answer.Data.Browsers[0].Chrome, pages
	}
	want := func(when string, pages int) (chrome int) {
		t.Helper()
		chrome, n := status()
		if n != pages {
			t.Errorf("%s: %d pages are open, expected %d", when, n, pages)
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
		s.write(t, initialize("once"))
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
