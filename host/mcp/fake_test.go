package mcp_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/approve"
	hostcall "github.com/parley-tools/parley/host/call"
	"github.com/parley-tools/parley/host/job"
	"github.com/parley-tools/parley/host/mcp"
	"github.com/parley-tools/parley/host/segment"
	"github.com/parley-tools/parley/host/session"
	"github.com/parley-tools/parley/manifest"
	"github.com/parley-tools/parley/manifest/spelling"
)

// serveVariable makes the test binary a server of a mode on stdio, and with httpVariable over HTTP, with a policy that
// trusts the network. It runs until its stdin ends.
const (
	serveVariable = "MCP_TEST_SERVE"
	httpVariable  = "MCP_TEST_HTTP"
)

func TestMain(m *testing.M) {
	mode := os.Getenv(serveVariable)
	if mode == "" {
		os.Exit(m.Run())
	}
	serve := serveStdio
	if os.Getenv(httpVariable) != "" {
		serve = serveHTTP
	}
	if err := serve(mode); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// slowAfter is after how long servers of tests disconnect a client that does not send or read. It is long for those
// that do, also on a busy machine.
const slowAfter = 3 * time.Second

func serveStdio(mode string) error {
	s, err := newServer(mode, hostcall.Config{Sessions: &session.Store{Dir: os.Getenv("MCP_TEST_DIR")},
		Approver: approverIn(os.Getenv("MCP_TEST_DIR"))}, nil)
	if err != nil {
		return err
	}
	return s.Stdio(context.Background(), os.Stdin, os.Stdout)
}

// serveHTTP prints its address to stdout.
func serveHTTP(mode string) error {
	s, err := newServer(mode, hostcall.Config{Policy: trustNetwork}, nil)
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println("http://" + listener.Addr().String() + mcp.Path)
	ctx, cancel := context.WithCancelCause(context.Background())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		cancel(io.EOF)
	}()
	cfg := mcp.HTTPConfig{Tokens: []string{token}, ClientTimeout: slowAfter}
	if err := s.HTTP(ctx, listener, cfg); !errors.Is(err, io.EOF) {
		return err
	}
	return nil
}

// shop is the manifest of the plugin that most tests call.
const shop = `{
  "manifest": 1, "name": "shop", "version": "1.0.0", "kind": "parley/1", "docs": {"brief": "Keep a small shop"},
  "groups": [{"name": "order", "docs": {"brief": "Orders of customers"}}],
  "exit_codes": [{"code": 10, "name": "sold_out", "meaning": "There is none left"}],
  "tutorial": [{"say": "Sell something", "run": "parley shop add tea --param count=2"}, {"say": "Cancel what is not there", "run": "parley shop order.cancel --params '{\"id\":1}'", "expect": {"exit_code": 10}}],
  "tools": [
    {"name": "add", "docs": {"brief": "Add an article", "standard": "The article can be ordered at once."}, "effect": "write", "positional": ["title"],
     "params": {"type": "object", "additionalProperties": false, "required": ["title"], "properties": {
       "title": {"type": "string", "minLength": 1, "description": "Name of the article."},
       "count": {"type": "integer", "minimum": 1, "maximum": 99, "default": 3},
       "tags": {"type": "array", "items": {"type": "string"}}, "size": {"type": "string", "enum": ["small", "medium", "large"]}}},
     "returns": {"type": "object", "properties": {"id": {"type": "integer"}}, "required": ["id"]},
     "examples": [{"title": "One", "params": {"title": "tea"}, "result": {"id": 1}}], "exit_codes": ["sold_out"], "tasks": ["sell something new"]},
    {"name": "echo", "docs": {"brief": "Say it again"}, "effect": "read", "params": {"type": "object", "x-mcp-header": 1, "properties": {"a": {"type": "string", "x-mcp-header": "Authorization"}}}, "tasks": ["repeat words"]},
    {"name": "text", "docs": {"brief": "Answer a text"}, "effect": "read", "params": {"type": "object"}, "returns": {"type": "string"}},
    {"name": "picture", "docs": {"brief": "Show the shop"}, "effect": "read", "params": {"type": "object", "properties": {"bytes": {"type": "integer", "default": 8}, "kind": {"type": "string", "default": "png"}}},
     "returns": {"type": "object", "properties": {"data": {"type": "string", "contentEncoding": "base64", "contentMediaType": "image/png"}, "width": {"type": "integer"}}}},
    {"name": "large", "docs": {"brief": "Answer a lot"}, "effect": "read", "params": {"type": "object", "properties": {"bytes": {"type": "integer"}}, "required": ["bytes"]},
     "returns": {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"], "additionalProperties": false}},
    {"name": "order.list", "group": "order", "docs": {"brief": "List orders"}, "effect": "read", "params": {"type": "object"}},
    {"name": "order.cancel", "group": "order", "docs": {"brief": "Cancel an order"}, "effect": "destructive",
     "params": {"type": "object", "properties": {"id": {"type": "integer"}}, "required": ["id"]}},
    {"name": "order.slow", "group": "order", "docs": {"brief": "Wait until it is over"}, "effect": "read", "params": {"type": "object"}},
    {"name": "order.steps", "group": "order", "docs": {"brief": "Take three steps"}, "effect": "read", "params": {"type": "object"}},
    {"name": "order.nested", "group": "order", "docs": {"brief": "Cancel by another tool"}, "effect": "destructive", "params": {"type": "object"}}
  ]
}`

type handler func(context.Context, *host.Request) (*job.Result, error)

// fake is a provider made of a manifest and functions.
type fake struct {
	manifest *manifest.Manifest
	handlers map[string]handler

	mu    sync.Mutex
	calls []string
	ended chan string // names of tools that were interrupted
}

func newFake(text string) (*fake, error) {
	m, err := manifest.Parse([]byte(text), "0.1.0")
	if err != nil {
		return nil, err
	}
	f := &fake{manifest: m, ended: make(chan string, 100)}
	f.handlers = map[string]handler{
		"add": func(context.Context, *host.Request) (*job.Result, error) { return jsonData(`{"id":1}`) },
		"text": func(context.Context, *host.Request) (*job.Result, error) {
			return jsonData(`"one\n\u001b[31mtwo\u202e"`)
		},
		"picture": func(_ context.Context, r *host.Request) (*job.Result, error) {
			var p struct {
				Bytes int
				Kind  string
			}
			_ = json.Unmarshal(r.Params, &p)
			head := map[string]string{"png": "\x89PNG\r\n\x1a\n", "wav": "RIFF\x00\x00\x00\x00WAVEfmt ",
				"other": "\x00\x01\x02"}[p.Kind]
			raw, _ := json.Marshal(append([]byte(head), make([]byte, p.Bytes)...))
			return jsonData(`{"data":` + string(raw) + `,"width":3}`)
		},
		"large": func(_ context.Context, r *host.Request) (*job.Result, error) {
			var p struct{ Bytes int }
			_ = json.Unmarshal(r.Params, &p)
			return jsonData(`{"text":"` + strings.Repeat("x", p.Bytes) + `"}`)
		},
		"order.slow": func(ctx context.Context, r *host.Request) (*job.Result, error) {
			r.Progress(1, 2, "waiting")
			<-ctx.Done()
			f.ended <- r.Tool
			return nil, ctx.Err()
		},
		"order.steps": func(_ context.Context, r *host.Request) (*job.Result, error) {
			r.Progress(1, 3, "one\x1b[2J")
			r.Progress(0.5, 3, "back")
			r.Progress(3, 3, "done")
			return jsonData(`{}`)
		},
		"order.nested": func(ctx context.Context, r *host.Request) (*job.Result, error) {
			return r.Ask(ctx, job.AskTool, json.RawMessage(`{"tool":"shop.order.cancel","params":{"id":7}}`))
		},
	}
	return f, nil
}

func jsonData(text string) (*job.Result, error) {
	return &job.Result{Data: json.RawMessage(text)}, nil
}

func (f *fake) Info() host.Info {
	m := f.manifest
	return host.Info{Name: m.Name, Version: m.Version, Kind: m.Kind, Brief: m.Docs.Brief, Groups: len(m.Groups),
		Tools: len(m.Tools), Digest: "sha256:" + m.Name + m.Version}
}

func (f *fake) Manifest() (*manifest.Manifest, error) { return f.manifest, nil }

func (f *fake) Tool(name string) (*manifest.Tool, error) { return f.manifest.Tool(name), nil }

func (f *fake) Segment() ([]byte, error) {
	return segment.Of(f.manifest), nil
}

func (f *fake) Groups() ([]host.GroupLine, error) { return host.GroupsOf(f.manifest), nil }

func (f *fake) Lines(group string) ([]host.Line, error) { return host.LinesOf(f.manifest, group), nil }

func (f *fake) Names() ([]string, error) { return host.NamesOf(f.manifest), nil }

func (f *fake) Features() host.Features { return host.Features{} }

func (f *fake) Invoke(ctx context.Context, r *host.Request) (*job.Result, error) {
	f.mu.Lock()
	f.calls = append(f.calls, r.Caller+" "+r.Tool)
	f.mu.Unlock()
	if h := f.handlers[r.Tool]; h != nil {
		return h(ctx, r)
	}
	return &job.Result{Data: r.Params}, nil
}

// callLog returns which caller has run which tools so far.
func (f *fake) callLog() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return strings.Join(f.calls, "; ")
}

type policy func(host.Ask) (host.Decision, error)

func (p policy) Decide(_ context.Context, a host.Ask) (host.Decision, error) { return p(a) }

// defaultPolicy is the policy without a policy file: the network may only read, and for others destructive calls
// require confirmation.
var defaultPolicy = policy(func(a host.Ask) (host.Decision, error) {
	switch {
	case strings.HasPrefix(a.Principal.Name, "mcp-http:") && a.Effect != manifest.EffectRead:
		return host.Decision{Verdict: host.Deny, Reason: "the network may only read"}, nil
	case a.Effect == manifest.EffectDestructive:
		return host.Decision{Verdict: host.Confirm, Reason: "it is destructive"}, nil
	}
	return host.Decision{Verdict: host.Allow}, nil
})

// trustNetwork is defaultPolicy for local callers, also for the network.
var trustNetwork = policy(func(a host.Ask) (host.Decision, error) {
	a.Principal.Name = ""
	return defaultPolicy(a)
})

// private is a folder that no client over HTTP is shown.
const private = "/srv/private"

// newServer makes a server of a mode over providers, by default shop alone.
func newServer(mode string, cfg hostcall.Config, pinned []string, providers ...host.Provider) (*mcp.Server, error) {
	if len(providers) == 0 {
		f, err := newFake(shop)
		if err != nil {
			return nil, err
		}
		providers = append(providers, f)
	}
	catalog, err := host.NewCatalog(providers...)
	if err != nil {
		return nil, err
	}
	if cfg.Catalog, cfg.Mode = catalog, mode; cfg.Approver == nil {
		cfg.Approver = mcp.Approver{}
	}
	if cfg.Policy == nil {
		cfg.Policy = defaultPolicy
	}
	h, err := hostcall.New(cfg)
	if err != nil {
		return nil, err
	}
	return mcp.New(mcp.Config{Host: h, Version: "0.1.0", Mode: mode, Pinned: pinned, Sessions: cfg.Sessions,
		Private: []string{private}})
}

// approverIn returns what keeps the approvals of a server in a folder.
func approverIn(dir string) *approve.Approver {
	return &approve.Approver{Store: &approve.Store{Dir: filepath.Join(dir, "approvals")}, AtHand: mcp.Approver{}}
}

// fixture is a server, its plugin and its records.
type fixture struct {
	*mcp.Server
	shop *fake
	rec  *recorder

	approver *approve.Approver
}

type recorder struct {
	mu     sync.Mutex
	events []host.Event
}

func (r *recorder) Record(e host.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, e)
}

func (r *recorder) last() host.Event {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.events[len(r.events)-1]
}

func newFixture(t testing.TB, mode string, p policy, pinned ...string) *fixture {
	t.Helper()
	f, err := newFake(shop)
	if err != nil {
		t.Fatal(err)
	}
	rec, approver := &recorder{}, approverIn(t.TempDir())
	s, err := newServer(mode, hostcall.Config{Policy: p, Recorder: rec, Sessions: &session.Store{Dir: t.TempDir()},
		Approver: approver}, pinned, f)
	if err != nil {
		t.Fatal(err)
	}
	return &fixture{s, f, rec, approver}
}

// revisions are the two revisions on which every test of a connection runs.
var revisions = []string{"2025-11-25", "2026-07-28"}

// client configures a client: its revision, and the reply of its user to questions, or "" if it cannot ask.
type client struct {
	revision, answer string
	asked            *[]string
	replies          <-chan struct{} // unless nil, each reply waits for it
	progress         func(*sdk.ProgressNotificationParams)
	changed          chan<- string // receives "tools", "prompts" and "resources" when these lists change
	token            string
}

func (c client) options() *sdk.ClientOptions {
	o := &sdk.ClientOptions{Capabilities: &sdk.ClientCapabilities{}}
	if c.answer != "" {
		o.ElicitationHandler = func(_ context.Context, r *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
			if c.asked != nil {
				*c.asked = append(*c.asked, r.Params.Message)
			}
			if c.replies != nil {
				<-c.replies
			}
			return &sdk.ElicitResult{Action: c.answer}, nil
		}
	}
	if c.changed != nil {
		o.ToolListChangedHandler = func(context.Context, *sdk.ToolListChangedRequest) { c.changed <- "tools" }
		o.PromptListChangedHandler = func(context.Context, *sdk.PromptListChangedRequest) { c.changed <- "prompts" }
		o.ResourceListChangedHandler = func(context.Context, *sdk.ResourceListChangedRequest) { c.changed <- "resources" }
	}
	if c.progress != nil {
		o.ProgressNotificationHandler = func(_ context.Context,
			r *sdk.ProgressNotificationClientRequest) {
			c.progress(r.Params)
		}
	}
	return o
}

func (c client) connect(t testing.TB, transport sdk.Transport) *sdk.ClientSession {
	t.Helper()
	s, err := sdk.NewClient(&sdk.Implementation{Name: "Test Client", Version: "1"}, c.options()).
		Connect(t.Context(), transport, &sdk.ClientSessionOptions{ProtocolVersion: c.revision})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// stdio connects a client over pipes.
func (f *fixture) stdio(t testing.TB, c client) *sdk.ClientSession {
	t.Helper()
	toServer, fromClient := io.Pipe()
	toClient, fromServer := io.Pipe()
	ended := make(chan error, 1)
	go func() { ended <- f.Stdio(context.Background(), toServer, fromServer) }()
	s := c.connect(t, &sdk.IOTransport{Reader: toClient, Writer: fromClient})
	t.Cleanup(func() {
		_ = s.Close()
		_ = fromClient.Close()
		select {
		case err := <-ended:
			if err != nil && !errors.Is(err, io.ErrClosedPipe) { // of a response that the client did not wait for
				t.Errorf("the server ended with %v", err)
			}
		case <-time.After(10 * time.Second):
			t.Error("the server is running after its client disconnected")
		}
	})
	return s
}

// listen serves over HTTP and returns the address of MCP.
func (f *fixture) listen(t testing.TB, cfg mcp.HTTPConfig) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- f.HTTP(ctx, listener, cfg) }()
	t.Cleanup(func() {
		f.SetShutdownGrace(300 * time.Millisecond) // unused connections of a client count as active
		cancel(host.Errorf(host.Terminated, "terminated"))
		if err := <-ended; host.AsError(err).Code != host.Terminated {
			t.Errorf("the server ended with %v", err)
		}
	})
	return "http://" + listener.Addr().String() + mcp.Path
}

// bearer sends a token with each request.
type bearer struct{ token string }

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+b.token)
	return http.DefaultTransport.RoundTrip(r)
}

func (c client) http(t testing.TB, url string) *sdk.ClientSession {
	t.Helper()
	transport := &sdk.StreamableClientTransport{Endpoint: url, MaxRetries: -1}
	if c.token != "" {
		transport.HTTPClient = &http.Client{Transport: bearer{c.token}}
	}
	s := c.connect(t, transport)
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// startProcess connects a client to a server in a process of its own.
func startProcess(t testing.TB, mode string, c client) *sdk.ClientSession {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), serveVariable+"="+mode, "MCP_TEST_DIR="+t.TempDir())
	cmd.Stderr = os.Stderr
	s := c.connect(t, &sdk.CommandTransport{Command: cmd})
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("the process ended with %v", err)
		}
	})
	return s
}

// forEachWire runs a test on both wires and both revisions.
func forEachWire(t *testing.T, mode string, p policy, test func(t *testing.T, f *fixture,
	connect func(client) *sdk.ClientSession)) {
	for _, revision := range revisions {
		t.Run("stdio "+revision, func(t *testing.T) {
			f := newFixture(t, mode, p)
			test(t, f, func(c client) *sdk.ClientSession {
				c.revision = revision
				return f.stdio(t, c)
			})
		})
		t.Run("http "+revision, func(t *testing.T) {
			f := newFixture(t, mode, p)
			url := f.listen(t, mcp.HTTPConfig{Tokens: []string{"correct-horse-battery"}})
			test(t, f, func(c client) *sdk.ClientSession {
				c.revision, c.token = revision, "correct-horse-battery"
				return c.http(t, url)
			})
		})
	}
}

// call calls a tool and returns the text of its first content.
func call(t testing.TB, s *sdk.ClientSession, name, arguments string) (*sdk.CallToolResult, string) {
	t.Helper()
	r, err := s.CallTool(t.Context(), &sdk.CallToolParams{Name: name, Arguments: json.RawMessage(arguments)})
	if err != nil {
		t.Fatalf("%s %s: %v", name, arguments, err)
	}
	return r, firstText(r)
}

func firstText(r *sdk.CallToolResult) string {
	if len(r.Content) > 0 {
		if c, ok := r.Content[0].(*sdk.TextContent); ok {
			return c.Text
		}
	}
	return ""
}

// failure is the error object of a result.
type failure struct {
	Code     string
	ExitCode int `json:"exit_code"`
	Message  string
	Earlier  []string
	Docs     string
	Next     []json.RawMessage
	Details  []host.Detail

	DidYouMean []spelling.Near `json:"did_you_mean"`
}

func fails(t testing.TB, s *sdk.ClientSession, name, arguments, code string) failure {
	t.Helper()
	r, text := call(t, s, name, arguments)
	var f failure
	if err := json.Unmarshal([]byte(text), &f); err != nil || !r.IsError || f.Code != code {
		t.Fatalf("%s %s: %s (%v), expected %s", name, arguments, text, err, code)
	}
	return f
}
