package service

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
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

func TestMain(m *testing.M) {
	parley.Child()
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
}

// start runs a service with a configuration, which names files in its folder by DIR.
func start(t *testing.T, text string) *fixture {
	t.Helper()
	t.Setenv("PARLEY_HOME", testhome.New(t))
	f := &fixture{dir: t.TempDir(), signals: make(chan os.Signal, 4), ended: make(chan error, 1), log: &logText{}}
	f.write(t, "tokens", "alice="+token+"\n")
	f.write(t, "parleyd.toml", f.config(text))
	var err error
	if f.Service, err = open(filepath.Join(f.dir, "parleyd.toml"), f.log); err != nil {
		t.Fatal(err)
	}
	go func() { f.ended <- f.Serve(f.signals) }()
	f.url = "http://" + f.listeners[0].Addr().String()
	t.Cleanup(func() { f.stop(t); t.Log(f.log) })
	return f
}

// config completes the text of a configuration.
func (f *fixture) config(text string) string {
	const common = "listen = [\"127.0.0.1:0\"]\ntoken_file = \"DIR/tokens\"\n"
	return strings.ReplaceAll(common+text, "DIR", f.dir)
}

// write writes a file of the folder, with a time that differs from that of the one before.
func (f *fixture) write(t *testing.T, name, text string) {
	t.Helper()
	path := filepath.Join(f.dir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	_ = os.Chtimes(path, time.Time{}, time.Now().Add(time.Duration(len(f.log.String()))*time.Millisecond))
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
	f.log.await(t, "name=alice method=POST path=/mcp/minimal status=200")
	for path, token := range map[string]string{"/mcp": "another-token-123", "/mcp/nothing": token, "/other": token} {
		if s, err := connect(f.url+path, client{token: token}); err == nil {
			_ = s.Close()
			t.Errorf("%s is served", path)
		}
	}
}
