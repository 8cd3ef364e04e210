package browser

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"
)

// TestMain gives the tests and their browsers a temporary folder of their own, and fails if files are
// left in it.
func TestMain(m *testing.M) { os.Exit(runTests(m)) }

func runTests(m *testing.M) int {
	dir, err := os.MkdirTemp("", "parley-test-")
	if err != nil {
		fmt.Println(err)
		return 1
	}
	defer os.RemoveAll(dir)
	os.Setenv("TMPDIR", dir)
	code := m.Run()
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		fmt.Println("files remain in the temporary folder: ", left, err)
		return max(code, 1)
	}
	return code
}

func findChrome(t *testing.T) string {
	t.Helper()
	found, err := Find("", os.Getenv(EnvVar), "")
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal("tests must not be skipped in CI: ", err)
		}
		t.Skip("needs a browser: ", err)
	}
	return found.Path
}

// testTimeout bounds every wait of a test. It is long enough for a machine under heavy load.
const testTimeout = 2 * time.Minute

// launchConfig returns a configuration with a folder of its own.
func launchConfig(t *testing.T) LaunchConfig {
	t.Helper()
	dir := tempProfile(t)
	return LaunchConfig{Path: findChrome(t), Profile: dir, Temp: dir}
}

// tempProfile creates a folder and removes it at the test's end, even while dying processes still write into it.
func tempProfile(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "p")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for range 100 {
			if err = os.RemoveAll(dir); err == nil {
				return
			}
			time.Sleep(20 * time.Millisecond)
		}
		t.Error(err)
	})
	return dir
}

func TestFindUsesFirstExplicitChoice(t *testing.T) {
	dir := t.TempDir()
	exe := filepath.Join(dir, "chrome.exe")
	if err := os.WriteFile(exe, []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct{ flag, env, config, from string }{
		{exe, "/nowhere", "/nowhere", "flag"},
		{"", exe, "/nowhere", EnvVar},
		{"", "", exe, "config"},
	} {
		found, err := Find(tc.flag, tc.env, tc.config)
		if err != nil || found != (Found{exe, tc.from}) {
			t.Errorf("Find(%q,%q,%q) = %v, %v", tc.flag, tc.env, tc.config, found, err)
		}
	}
	_, err := Find("", "/nowhere/chrome", exe)
	var missing *NotFoundError
	if !errors.As(err, &missing) || !strings.Contains(err.Error(), "PARLEY_CHROME=/nowhere/chrome") {
		t.Errorf("an explicit choice that does not exist: %v", err)
	}
}

func TestNotFoundErrorListsCandidatesAndInstallCommand(t *testing.T) {
	for _, goos := range []string{"linux", "darwin", "windows"} {
		paths := candidates(goos, func(name string) string { return "/" + name })
		err := &NotFoundError{Tried: paths, Install: installCommand(goos, func(string) bool { return false })}
		for _, path := range paths {
			if !strings.Contains(err.Error(), path) {
				t.Errorf("%s: the error does not list %q", goos, path)
			}
		}
		if !strings.Contains(err.Error(), "install") {
			t.Errorf("%s: no install command: %v", goos, err)
		}
	}
}

func TestArguments(t *testing.T) {
	args, notes := arguments(LaunchConfig{Profile: "/p", Args: []string{"--lang=de"}}, true, false)
	line := strings.Join(args, " ")
	for _, want := range []string{
		"--remote-debugging-pipe", "--user-data-dir=/p", "--headless", "--no-sandbox", "--disable-quic",
		"--webrtc-ip-handling-policy=disable_non_proxied_udp", "--lang=de about:blank"} {
		if !strings.Contains(line, want) {
			t.Errorf("no %s in %s", want, line)
		}
	}
	if len(notes) != 1 || !strings.Contains(notes[0], "--no-sandbox") {
		t.Errorf("notes: %q", notes)
	}
	args, notes = arguments(LaunchConfig{Profile: "/p", Headed: true}, false, false)
	line = strings.Join(args, " ")
	if strings.Contains(line, "--headless") || strings.Contains(line, "--no-sandbox") || len(notes) != 0 {
		t.Errorf("headed, not root: %s %q", line, notes)
	}
}

func TestPipeTruncatesLargeMessages(t *testing.T) {
	r, w := io.Pipe()
	c := NewPipe(r, nopWriteCloser{io.Discard}, 10_000)
	defer c.Close()
	go func() {
		for _, n := range []int{5, 10_000, 10_001, 3_000_000, 7} {
			w.Write(append(bytes.Repeat([]byte{'x'}, n), 0))
		}
		w.Close()
	}()
	for _, want := range []struct {
		size int64
		data int
	}{{5, 5}, {10_000, 10_000}, {10_001, truncatedSize}, {3_000_000, truncatedSize}, {7, 7}} {
		m, err := c.Receive()
		if err != nil || m.Size != want.size || len(m.Data) != want.data || m.Truncated() != (want.data == truncatedSize) {
			t.Fatalf("want %+v, got %d of %d, %v", want, len(m.Data), m.Size, err)
		}
	}
	if _, err := c.Receive(); !errors.Is(err, ErrClosed) {
		t.Errorf("at the end: %v", err)
	}
}

func TestSendNeverBlocks(t *testing.T) {
	fromR, _ := io.Pipe()
	_, stuck := io.Pipe() // nothing reads
	c := NewPipe(fromR, stuck, 0)
	defer c.Close()
	big := make([]byte, MaxRequest)
	var err error
	for range 5 {
		if err = c.Send(big); err != nil {
			break
		}
	}
	if !errors.Is(err, ErrFull) {
		t.Errorf("a browser that does not read: %v", err)
	}
	var tooLarge *TooLargeError
	if err := c.Send(make([]byte, MaxRequest+1)); !errors.As(err, &tooLarge) {
		t.Errorf("too large: %v", err)
	}
	c.Close()
	if err := c.Send([]byte("{}")); !errors.Is(err, ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
}

func TestLaunchAndKill(t *testing.T) {
	p, err := Launch(t.Context(), launchConfig(t))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(p.Version.Product, "/") || p.PID <= 0 {
		t.Errorf("version %+v, pid %d", p.Version, p.PID)
	}
	p.Kill()
	select {
	case <-p.Done():
	default:
		t.Error("the process still exists after Kill")
	}
	if _, err := p.Conn.Receive(); !errors.Is(err, ErrClosed) {
		t.Errorf("Receive after the exit: %v", err)
	}
}

func TestClosingPipeEndsChrome(t *testing.T) {
	p, err := Launch(t.Context(), launchConfig(t))
	if err != nil {
		t.Fatal(err)
	}
	p.Conn.Close()
	select {
	case <-p.Done():
	case <-time.After(testTimeout):
		p.Kill()
		t.Error("Chrome is running after its pipe was closed")
	}
}

func TestLaunchErrors(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the test replaces browsers with shell scripts")
	}
	dir := t.TempDir()
	script := func(name, body string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte("#!/bin/sh\n"+body+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for _, tc := range []struct {
		name, path, want string
		code             int
		transient        bool
	}{
		{"missing", filepath.Join(dir, "none"), "cannot start", -1, false},
		{
			"output", script("output", "echo one >&2; echo two words >&2; exit 3"),
			"exited with 3 before it responded; its last output:\n  one\n  two words", 3, true,
		},
		{"crash", script("crash", "kill -SEGV $$"), "was killed before it responded", -1, true},
		{"profile in use", script("inuse", "exit 21"), "is in use by another browser", 21, false},
		{"taken over", script("over", "exit 0"), "already runs on the profile", 0, false},
		{"hangs", script("hangs", "sleep 100"), "did not respond within", -1, false},
		{"another program", script("cat", `printf 'hello\0' >&4; sleep 100`), "does not speak the DevTools protocol", -1, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			timeout := testTimeout
			if tc.name == "hangs" {
				timeout = 500 * time.Millisecond
			}
			_, err := Launch(t.Context(), LaunchConfig{Path: tc.path, Profile: filepath.Join(dir, "p"), Timeout: timeout})
			var failure *LaunchError
			if !errors.As(err, &failure) {
				t.Fatalf("error %v", err)
			}
			if !strings.Contains(err.Error(), tc.want) || failure.ExitCode != tc.code || failure.Transient != tc.transient {
				t.Errorf("%d, transient %v: %v", failure.ExitCode, failure.Transient, err)
			}
		})
	}
}

func TestLaunchCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := Launch(ctx, launchConfig(t))
	if err == nil || !strings.Contains(err.Error(), "cancelled") {
		t.Errorf("error %v", err)
	}
}

func TestAttach(t *testing.T) {
	var up websocket.Upgrader
	mux := http.NewServeMux()
	mux.HandleFunc("/devtools/browser/x", func(w http.ResponseWriter, r *http.Request) {
		ws, err := up.Upgrade(w, r, nil)
		if err != nil {
			return
		}
		defer ws.Close()
		for {
			_, m, err := ws.ReadMessage()
			if err != nil {
				return
			}
			if bytes.Contains(m, []byte("big")) {
				m = bytes.Repeat([]byte{'y'}, 50_000)
			} else {
				m = []byte(`{"id":1,"result":{"product":"Fake/1"}}`)
			}
			ws.WriteMessage(websocket.TextMessage, m)
		}
	})
	mux.HandleFunc("/json/version", func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, `{"webSocketDebuggerUrl":"ws://elsewhere.invalid/devtools/browser/x"}`)
	})
	server := httptest.NewServer(mux)
	defer server.Close()
	host := strings.TrimPrefix(server.URL, "http://")
	_, port, _ := net.SplitHostPort(host)

	for _, endpoint := range []string{port, server.URL, host, "ws://" + host + "/devtools/browser/x"} {
		c, at, err := Attach(t.Context(), AttachConfig{Endpoint: endpoint, MaxMessage: 10_000})
		if err != nil {
			t.Errorf("%s: %v", endpoint, err)
			continue
		}
		if at != "ws://"+host+"/devtools/browser/x" {
			t.Errorf("%s: attached at %s", endpoint, at)
		}
		if v, err := FetchVersion(c); err != nil || v.Product != "Fake/1" {
			t.Errorf("%s: %v %v", endpoint, v, err)
		}
		c.Send([]byte("big"))
		if m, err := c.Receive(); err != nil || m.Size != 50_000 || !m.Truncated() {
			t.Errorf("%s: big: %d of %d, %v", endpoint, len(m.Data), m.Size, err)
		}
		c.Close()
		if _, err := c.Receive(); !errors.Is(err, ErrClosed) {
			t.Errorf("%s: after Close: %v", endpoint, err)
		}
	}
	for endpoint, want := range map[string]string{
		"":                            "is not a DevTools address",
		"ftp://x":                     "is not a DevTools address",
		"99999":                       "is not a DevTools address",
		"http://192.0.2.1:9222":       "not an address of this machine",
		"ws://evil.example/x":         "not an address of this machine",
		"ws://" + host + "/other":     "404",
		server.URL + "/devtools/none": "",
	} {
		c, _, err := Attach(t.Context(), AttachConfig{Endpoint: endpoint})
		if want == "" {
			if err == nil {
				c.Close()
			}
			continue
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", endpoint, err, want)
		}
	}
	// A host that the operator allows is dialled. Nothing listens at this one.
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, _, err := Attach(ctx, AttachConfig{Endpoint: "http://Named.invalid:9222", Hosts: []string{"named.invalid"}})
	if err == nil || strings.Contains(err.Error(), "not an address of this machine") {
		t.Errorf("an allowed host: %v", err)
	}
}

// FuzzPipeReceive feeds arbitrary bytes to the pipe's reader: messages end at NUL, nothing panics, and no message
// is longer than the limit.
func FuzzPipeReceive(f *testing.F) {
	f.Add([]byte("{}\x00{\"id\":1}\x00"))
	f.Add([]byte("\x00\x00unfinished"))
	f.Fuzz(func(t *testing.T, input []byte) {
		c := NewPipe(io.NopCloser(bytes.NewReader(input)), nopWriteCloser{io.Discard}, 8)
		defer c.Close()
		for n := 0; ; n++ {
			m, err := c.Receive()
			if err != nil {
				if n != bytes.Count(input, []byte{0}) {
					t.Fatalf("%d messages of %q", n, input)
				}
				return
			}
			if int64(len(m.Data)) > m.Size {
				t.Fatalf("%d bytes of a message of %d", len(m.Data), m.Size)
			}
		}
	})
}

type nopWriteCloser struct{ io.Writer }

func (nopWriteCloser) Close() error { return nil }
