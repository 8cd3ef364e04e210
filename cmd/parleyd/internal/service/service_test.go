package service

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/parley-tools/parley"
	"github.com/parley-tools/parley/internal/testhome"
)

// configVariable names the configuration of a test process that is the service.
const configVariable = "PARLEYD_TEST_CONFIG"

func TestMain(m *testing.M) {
	parley.Child()
	if path := os.Getenv(configVariable); path != "" {
		os.Exit(Main([]string{"serve", "--config", path}, os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}

const token = "0123456789abcdef"

// fixture is a service that runs.
type fixture struct {
	*Service
	dir     string // of its configuration
	signals chan os.Signal
	ended   chan error
	log     *logText
	url     string // of its first address
	written int    // files
}

// start runs a service with a configuration and files, each a name and a text. The configuration names them by DIR.
func start(t *testing.T, text string, files ...string) *fixture {
	t.Helper()
	t.Setenv("PARLEY_HOME", testhome.New(t))
	f := &fixture{dir: t.TempDir(), signals: make(chan os.Signal, 4), ended: make(chan error, 1), log: &logText{}}
	f.write(t, "tokens", "alice="+token+"\n")
	f.write(t, "parleyd.toml", f.config(text))
	for i := 0; i+1 < len(files); i += 2 {
		f.write(t, files[i], files[i+1])
	}
	var err error
	if f.Service, err = open(filepath.Join(f.dir, "parleyd.toml"), f.log); err != nil {
		t.Fatal(err)
	}
	go func() { f.ended <- f.Serve(f.signals) }()
	f.url = "http://" + f.sockets[0].Addr().String()
	t.Cleanup(func() { f.stop(t); t.Log(f.log) })
	return f
}

// config completes the text of a configuration.
func (f *fixture) config(text string) string {
	common := "token_file = \"DIR/tokens\"\n"
	if !strings.HasPrefix(text, "listen") {
		common += "listen = [\"127.0.0.1:0\"]\n"
	}
	return strings.ReplaceAll(common+text, "DIR", f.dir)
}

// write writes a file of the folder, with a time that differs from that of the one before.
func (f *fixture) write(t *testing.T, name, text string) {
	t.Helper()
	path := filepath.Join(f.dir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	f.written++
	_ = os.Chtimes(path, time.Time{}, time.Now().Add(time.Duration(f.written)*time.Second))
}

// stop ends the service as a signal does, if it still runs.
func (f *fixture) stop(t *testing.T) {
	f.signals <- syscall.SIGTERM
	select {
	case err := <-f.ended:
		if err != nil {
			t.Error(err)
		}
		f.ended <- err
	case <-time.After(10 * time.Second):
		t.Error("the service did not end")
	}
}

// logText is what a service logs.
type logText struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logText) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logText) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// await waits until the log has a text.
func (l *logText) await(t *testing.T, text string) {
	t.Helper()
	deadline := time.Now().Add(5 * time.Second)
	for ; !strings.Contains(l.String(), text); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("no %q in the log", text)
		}
	}
}

// client sends a token, and what headers a test adds.
type client struct {
	token   string
	headers map[string]string
}

func (c client) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+c.token)
	for name, value := range c.headers {
		r.Header.Set(name, value)
	}
	return http.DefaultTransport.RoundTrip(r)
}

// connect begins a session.
func connect(url string, c client) (*sdk.ClientSession, error) {
	return sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, nil).Connect(context.Background(),
		&sdk.StreamableClientTransport{Endpoint: url, MaxRetries: -1, HTTPClient: &http.Client{Transport: c}}, nil)
}

// call calls a tool and returns its answer as text.
func call(s *sdk.ClientSession, name, arguments, options string) (string, error) {
	raw := fmt.Sprintf(`{"name":%q,"arguments":%s,"options":%s}`, name, arguments, options)
	r, err := s.CallTool(context.Background(), &sdk.CallToolParams{Name: "call_tool", Arguments: json.RawMessage(raw)})
	if err != nil {
		return "", err
	}
	text, _ := json.Marshal(r)
	return string(text), nil
}

// TestServe calls a tool at the paths of the modes. The records and the log have the name of the token.
func TestServe(t *testing.T) {
	f := start(t, "")
	for _, path := range []string{"/mcp", "/mcp/minimal"} {
		s, err := connect(f.url+path, client{token: token})
		if err != nil {
			t.Fatal(err)
		}
		answer, err := call(s, "text.hash", `{"text":"a"}`, `{}`)
		if err != nil || !strings.Contains(answer, "ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb") {
			t.Errorf("%s: %s %v", path, answer, err)
		}
		_ = s.Close()
	}
	f.log.await(t, "method=POST path=/mcp/minimal status=200")
	f.log.await(t, "caller=alice peer=127.0.0.1")
	for path, token := range map[string]string{"/mcp": "another-token-123", "/mcp/nothing": token, "/other": token} {
		if s, err := connect(f.url+path, client{token: token}); err == nil {
			_ = s.Close()
			t.Errorf("%s is served", path)
		}
	}
}

// get returns the status and the body of a URL.
func get(t *testing.T, url, hostName string) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Host = hostName
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	body, _ := io.ReadAll(answer.Body)
	return answer.StatusCode, string(body)
}

// TestReadiness breaks what the service needs, one thing after the other. The answer names the check, and no path.
func TestReadiness(t *testing.T) {
	defer func(before time.Duration) { readyAge = before }(readyAge)
	readyAge = 50 * time.Millisecond
	f := start(t, "")
	home := os.Getenv("PARLEY_HOME")
	if status, body := get(t, f.url+"/livez", "anything.example"); status != 200 || body != "{\"ok\":true}\n" {
		t.Errorf("/livez: %d %s", status, body)
	}
	for _, c := range []struct {
		check  string // that fails; "": none
		breaks func() (restore func())
	}{
		{"", func() func() { return func() {} }},
		{"policy", func() func() {
			path := filepath.Join(home, "config", "policy.toml")
			_ = os.MkdirAll(filepath.Dir(path), 0o700)
			_ = os.WriteFile(path, []byte("nothing = 1"), 0o600)
			return func() { _ = os.Remove(path) }
		}},
		{"store", func() func() { return replace(t, filepath.Join(home, "data", "plugins", "lock.json")) }},
		{"compiler cache", func() func() { return replace(t, filepath.Join(home, "cache")) }},
		{"records", func() func() { return replace(t, filepath.Join(home, "state", "audit")) }},
		{"", func() func() { return func() {} }},
	} {
		restore := c.breaks()
		time.Sleep(2 * readyAge)
		status, body := get(t, f.url+"/readyz", "anything.example")
		restore()
		if c.check == "" && (status != 200 || strings.Contains(body, "false")) {
			t.Errorf("nothing is broken: %d %s", status, body)
		}
		if c.check != "" && (status != 503 || !strings.Contains(body, fmt.Sprintf(`{"name":%q,"ok":false}`, c.check)) ||
			strings.Contains(body, home)) {
			t.Errorf("%s: %d %s", c.check, status, body)
		}
	}
}

// replace puts what is of the wrong kind at a path, until it is restored.
func replace(t *testing.T, path string) (restore func()) {
	t.Helper()
	aside := path + ".aside"
	moved := os.Rename(path, aside) == nil
	var err error
	if filepath.Ext(path) != "" {
		err = os.MkdirAll(path, 0o700)
	} else {
		_ = os.MkdirAll(filepath.Dir(path), 0o700)
		err = os.WriteFile(path, nil, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	return func() {
		_ = os.RemoveAll(path)
		if moved {
			_ = os.Rename(aside, path)
		}
	}
}

// TestStatusAddress serves what monitoring asks at an address of its own, and there alone.
func TestStatusAddress(t *testing.T) {
	f := start(t, "status_listen = \"127.0.0.1:0\"")
	own := "http://" + f.status[0].Addr().String()
	for url, want := range map[string]int{
		own + "/livez": 200, own + "/readyz": 200, own + "/mcp": 404, f.url + "/readyz": 401, f.url + "/livez": 401,
	} {
		if status, body := get(t, url, ""); status != want {
			t.Errorf("%s: %d %s, want %d", url, status, body, want)
		}
	}
}

// TestClientAddress believes X-Forwarded-For of trusted proxies alone, from its end on.
func TestClientAddress(t *testing.T) {
	trusted := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("::1/128")}
	for _, c := range []struct {
		connection string
		forwarded  []string
		want       string
	}{
		{"192.0.2.1:5", []string{"203.0.113.7"}, "192.0.2.1:5"},
		{"10.0.0.1:5", nil, "10.0.0.1:5"},
		{"10.0.0.1:5", []string{"203.0.113.7"}, "203.0.113.7"},
		{"[::ffff:10.0.0.1]:5", []string{"203.0.113.7:99"}, "203.0.113.7"},
		{"[::1]:5", []string{"2001:db8::1"}, "2001:db8::1"},
		{"10.0.0.1:5", []string{"1.1.1.1, 203.0.113.7, 10.2.2.2"}, "203.0.113.7"},
		{"10.0.0.1:5", []string{"1.1.1.1", "203.0.113.7"}, "203.0.113.7"},
		{"10.0.0.1:5", []string{"1.1.1.1, unknown"}, "10.0.0.1:5"},
		{"10.0.0.1:5", []string{"nonsense, 10.2.2.2"}, "10.2.2.2"},
		{"10.0.0.1:5", []string{"10.3.3.3, 10.2.2.2"}, "10.3.3.3"},
		{"somewhere", []string{"203.0.113.7"}, "somewhere"},
	} {
		r := &http.Request{RemoteAddr: c.connection, Header: http.Header{"X-Forwarded-For": c.forwarded}}
		if got := clientAddress(r, trusted); got != c.want {
			t.Errorf("%s %q: %s, want %s", c.connection, c.forwarded, got, c.want)
		}
	}
}

// TestTrustedProxy checks that the access log and the records have the client behind a proxy.
func TestTrustedProxy(t *testing.T) {
	f := start(t, "trusted_proxies = [\"127.0.0.0/8\"]")
	s, err := connect(f.url+"/mcp", client{token, map[string]string{"X-Forwarded-For": "203.0.113.7"}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := call(s, "text.hash", `{"text":"a"}`, `{}`); err != nil {
		t.Error(err)
	}
	_ = s.Close()
	f.log.await(t, "caller=alice peer=203.0.113.7")
	records, err := os.ReadFile(f.parley.AuditLog().Path())
	if err != nil || !bytes.Contains(records, []byte(`"peer":"203.0.113.7"`)) {
		t.Errorf("the records: %s %v", records, err)
	}
}
