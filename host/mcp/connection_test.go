package mcp_test

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/parley-tools/parley/host"
	hostcall "github.com/parley-tools/parley/host/call"
	"github.com/parley-tools/parley/host/caller"
	"github.com/parley-tools/parley/host/job"
	"github.com/parley-tools/parley/host/mcp"
	"github.com/parley-tools/parley/host/mcp/access"
	"github.com/parley-tools/parley/host/session"
)

// pages is the plugin of the tests with pages that are open: it hears which connections end.
type pages struct {
	*fake
	sessions chan caller.Session // of the calls of add
	ended    chan string
}

func (p *pages) EndSession(context.Context, caller.Session) error { return nil }

func (p *pages) EndConnection(id string) { p.ended <- id }

func newPages(t *testing.T, configure func(*mcp.Config)) (*fixture, *pages) {
	t.Helper()
	shop, err := newFake(shop)
	if err != nil {
		t.Fatal(err)
	}
	p := &pages{fake: shop, sessions: make(chan caller.Session, 100), ended: make(chan string, 100)}
	shop.handlers["add"] = func(_ context.Context, r *host.Request) (*job.Result, error) {
		p.sessions <- r.Session
		return jsonData(`{"id":1}`)
	}
	catalog, err := host.NewCatalog(p)
	if err != nil {
		t.Fatal(err)
	}
	h, err := hostcall.New(hostcall.Config{Catalog: catalog, Policy: trustNetwork,
		Sessions: &session.Store{Dir: t.TempDir()}})
	if err != nil {
		t.Fatal(err)
	}
	cfg := mcp.Config{Host: h, Version: "0.1.0", Mode: mcp.Minimal}
	if configure != nil {
		configure(&cfg)
	}
	s, err := mcp.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return &fixture{Server: s, shop: shop}, p
}

// opens makes a call over a connection and returns its session.
func (p *pages) opens(t *testing.T, s *sdk.ClientSession) caller.Session {
	t.Helper()
	if r, text := call(t, s, "call_tool", `{"name":"shop.add","arguments":{"title":"tea"}}`); r.IsError {
		t.Fatal(text)
	}
	return <-p.sessions
}

// expectEnd waits until the host is told that a connection has ended, and none before it.
func (p *pages) expectEnd(t *testing.T, of caller.Session) {
	t.Helper()
	select {
	case id := <-p.ended:
		if id != of.Connection || id == "" {
			t.Errorf("the connection %q ended, want %q", id, of.Connection)
		}
	case <-time.After(20 * time.Second):
		t.Errorf("nobody was told that the connection %q ended", of.Connection)
	}
}

// expectNone checks that no further connection has ended.
func (p *pages) expectNone(t *testing.T) {
	t.Helper()
	select {
	case id := <-p.ended:
		t.Errorf("the connection %q ended", id)
	default:
	}
}

// TestConnectionsEnd checks that the host is told once when a connection has ended: a client on stdio that hangs up, a
// session that a client over HTTP ends, and for clients without one the end of the server.
func TestConnectionsEnd(t *testing.T) {
	for _, revision := range revisions {
		t.Run("stdio "+revision, func(t *testing.T) {
			f, p := newPages(t, nil)
			s := f.stdio(t, client{revision: revision})
			first, again := p.opens(t, s), p.opens(t, s)
			if !reflect.DeepEqual(first, again) || first.Owner != "" || first.Name == "" || !first.Temporary {
				t.Errorf("the sessions %+v and %+v", first, again)
			}
			_ = s.Close()
			p.expectEnd(t, first)
		})
	}
	t.Run("http 2025-11-25", func(t *testing.T) {
		f, p := newPages(t, nil)
		url := f.listen(t, mcp.HTTPConfig{Tokens: []string{token}})
		c := client{revision: "2025-11-25", token: token}
		one, two := c.http(t, url), c.http(t, url)
		first, second := p.opens(t, one), p.opens(t, two)
		if reflect.DeepEqual(first, second) || first.Owner != second.Owner || !first.Temporary ||
			first.Connection == second.Connection {
			t.Errorf("the sessions %+v and %+v", first, second)
		}
		_ = one.Close()
		p.expectEnd(t, first)
		p.opens(t, two)
		p.expectNone(t)
		f.Shutdown(t.Context(), host.Errorf(host.Terminated, "terminated"))
		p.expectEnd(t, second)
		p.expectNone(t)
	})
	t.Run("http 2026-07-28", func(t *testing.T) {
		f, p := newPages(t, nil)
		url := f.listen(t, mcp.HTTPConfig{Tokens: []string{token}})
		c := client{revision: "2026-07-28", token: token}
		one, two := c.http(t, url), c.http(t, url)
		first, second := p.opens(t, one), p.opens(t, two)
		if !reflect.DeepEqual(first, second) || first.Name != "" {
			t.Errorf("the sessions %+v and %+v", first, second)
		}
		_ = one.Close()
		p.opens(t, two)
		p.expectNone(t)
		f.Shutdown(t.Context(), host.Errorf(host.Terminated, "terminated"))
		p.expectEnd(t, first)
		p.expectNone(t)
	})
}

// breakable is a transport whose connections can be broken.
type breakable struct {
	http.Transport
	mu     sync.Mutex
	conns  []net.Conn
	killed bool
}

func newBreakable() *breakable {
	b := &breakable{}
	b.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		b.mu.Lock()
		defer b.mu.Unlock()
		if b.killed {
			return nil, net.ErrClosed
		}
		c, err := (&net.Dialer{}).DialContext(ctx, network, address)
		if err == nil {
			b.conns = append(b.conns, c)
		}
		return c, err
	}
	return b
}

// kill breaks all connections and makes no more, as the end of a process does.
func (b *breakable) kill() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.killed = true
	for _, c := range b.conns {
		_ = c.Close()
	}
}

func (b *breakable) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+token)
	return b.Transport.RoundTrip(r)
}

// TestKilledClient checks that a client over HTTP counts as gone when the stream that it opened breaks off and it sends
// nothing more, whatever others send in its session's name.
func TestKilledClient(t *testing.T) {
	f, p := newPages(t, nil)
	f.SetLostAfter(time.Second, time.Hour)
	url := f.listen(t, mcp.HTTPConfig{Tokens: []string{token, "another-long-token"}})
	b := newBreakable()
	s := client{revision: "2025-11-25"}.connect(t, &sdk.StreamableClientTransport{
		Endpoint: url, MaxRetries: -1, HTTPClient: &http.Client{Transport: b},
	})
	killed := p.opens(t, s)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		p.expectEnd(t, killed)
	}()
	b.kill()
	for others := true; others; {
		r, _ := http.NewRequest(http.MethodPost, url, strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"ping"}`))
		r.Header = http.Header{
			"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"},
			"Mcp-Session-Id": {s.ID()}, "Authorization": {"Bearer another-long-token"},
		}
		response, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		switch response.StatusCode {
		case http.StatusForbidden:
		case http.StatusNotFound: // the client has closed its session as soon as it noticed
			<-ended
		default:
			t.Fatal(response.Status)
		}
		select {
		case <-ended:
			others = false
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// TestSilentClient checks that a client over HTTP without a stream may be silent for a while between two requests, and
// counts as gone when it stays silent; also one whose stream broke off before its latest request.
func TestSilentClient(t *testing.T) {
	f, p := newPages(t, nil)
	f.SetLostAfter(0, time.Hour)
	url := f.listen(t, mcp.HTTPConfig{Tokens: []string{token}})
	quiet := client{revision: "2025-11-25"}.connect(t, &sdk.StreamableClientTransport{
		Endpoint: url, MaxRetries: -1, DisableStandaloneSSE: true, HTTPClient: &http.Client{Transport: bearer{token}},
	})
	of := p.opens(t, quiet)
	for range 20 {
		p.opens(t, quiet)
	}
	stream, cancel := context.WithCancel(t.Context())
	r, _ := http.NewRequestWithContext(stream, http.MethodGet, url, nil)
	r.Header = http.Header{"Accept": {"text/event-stream"}, "Mcp-Session-Id": {quiet.ID()}}
	opened, err := (&http.Client{Transport: bearer{token}}).Do(r)
	if err != nil || opened.StatusCode != http.StatusOK {
		t.Fatal(opened, err)
	}
	f.SetLostAfter(0, 0)
	for range 20 {
		p.opens(t, quiet)
	}
	p.expectNone(t) // while its stream is open
	f.SetLostAfter(time.Hour, 0)
	cancel()
	_ = opened.Body.Close()
	for began := time.Now(); len(p.ended) == 0 && time.Since(began) < 20*time.Second; time.Sleep(10 * time.Millisecond) {
		p.opens(t, quiet) // the first one after the server has noticed
	}
	p.expectEnd(t, of)
}

// TestSharedSessions checks that the client on stdio, and clients with a token that is bound to one, work in a session
// of the user.
func TestSharedSessions(t *testing.T) {
	f, p := newPages(t, func(c *mcp.Config) { c.Session = "research" })
	of := p.opens(t, f.stdio(t, client{}))
	if of.Key() != "user/research" || of.Temporary || of.Connection == "" {
		t.Errorf("on stdio: %+v", of)
	}
	for _, revision := range revisions {
		f, p := newPages(t, nil)
		url := f.listen(t, mcp.HTTPConfig{Verify: func(_ context.Context, text string) (access.Token, error) {
			return access.Find([]access.Token{{Token: token, Session: "research"}, {Token: "another-long-token"}}, text)
		}})
		shared := client{revision: revision, token: token}.http(t, url)
		of := p.opens(t, shared)
		if of.Key() != "user/research" || of.Temporary || of.Connection == "" {
			t.Errorf("%s: %+v", revision, of)
		}
		if of := p.opens(t, client{revision: revision, token: "another-long-token"}.http(t, url)); of.Owner == "" {
			t.Errorf("%s: a token without a session has %+v", revision, of)
		}
		params := &sdk.CallToolParams{Name: "call_tool", Meta: sdk.Meta{mcp.SessionKey: "other"},
			Arguments: json.RawMessage(`{"name":"shop.add","arguments":{"title":"tea"}}`)}
		if _, err := shared.CallTool(t.Context(), params); err != nil {
			t.Fatal(err)
		}
		if of := <-p.sessions; of.Key() != "user/research" {
			t.Errorf("%s: a client left its session for %+v", revision, of)
		}
		fails(t, shared, "call_tool",
			`{"name":"shop.add","arguments":{"title":"tea"},"options":{"session":"research"}}`, "invalid_args")
	}
}

// TestDocsOnFirstUse adds tier 2 to the first success of a tool, once, where the operator wants it.
func TestDocsOnFirstUse(t *testing.T) {
	f, p := newPages(t, func(cfg *mcp.Config) { cfg.DocsOnFirstUse = true })
	s := f.stdio(t, client{})
	for use, want := range []bool{true, false} {
		r, _ := call(t, s, "call_tool", `{"name":"shop.add","arguments":{"title":"tea"}}`)
		<-p.sessions
		if strings.Contains(allText(r), "About this tool (shown once):\nshop.add") != want {
			t.Errorf("use %d returns %s", use+1, allText(r))
		}
	}
}
