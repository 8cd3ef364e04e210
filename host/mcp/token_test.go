package mcp_test

import (
	"context"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/mcp"
	"github.com/parley-tools/parley/host/mcp/access"
)

// TestBoundTokens serves clients whose tokens are bound to names. The policy gets the name of the token, whatever the
// client's own name is, and a withdrawn token is refused from the next request on.
func TestBoundTokens(t *testing.T) {
	var mu sync.Mutex
	var asks []host.Ask
	var log []mcp.Access
	tokens := []access.Token{{Name: "claude", Token: "token-of-claude-1"}, {Token: "token-of-anybody"}}
	f := newFixture(t, mcp.Minimal, policy(func(a host.Ask) (host.Decision, error) {
		mu.Lock()
		defer mu.Unlock()
		asks = append(asks, a)
		return host.Decision{Verdict: host.Allow}, nil
	}))
	url := f.listen(t, mcp.HTTPConfig{
		Verify: func(_ context.Context, text string) (access.Token, error) {
			mu.Lock()
			defer mu.Unlock()
			return access.Find(tokens, text)
		},
		Access: func(a mcp.Access) {
			mu.Lock()
			defer mu.Unlock()
			log = append(log, a)
		},
	})
	callAs := func(name, token string) (host.Ask, error) {
		s, err := sdk.NewClient(&sdk.Implementation{Name: name, Version: "1"}, nil).Connect(t.Context(),
			&sdk.StreamableClientTransport{Endpoint: url, MaxRetries: -1, HTTPClient: &http.Client{Transport: bearer{token}}},
			nil)
		if err != nil {
			return host.Ask{}, err
		}
		defer s.Close()
		call(t, s, "call_tool", `{"name":"shop.echo"}`)
		mu.Lock()
		defer mu.Unlock()
		return asks[len(asks)-1], nil
	}
	for _, c := range []struct {
		says, token, caller string
		bound               bool
	}{
		{"claude", "token-of-claude-1", "mcp-http:claude", true},
		{"other", "token-of-claude-1", "mcp-http:claude", true},
		{"claude", "token-of-anybody", "mcp-http:claude", false},
	} {
		ask, err := callAs(c.says, c.token)
		if err != nil || ask.Principal.Name != c.caller || ask.Principal.Bound != c.bound {
			t.Errorf("%s with %s is %s (bound %v), %v", c.says, c.token, ask.Principal.Name, ask.Principal.Bound, err)
		}
		token := ""
		if c.bound {
			token = "claude"
		}
		e := f.rec.last()
		if e.Caller != c.caller || e.Transport != "http" || !strings.HasPrefix(e.Peer, "127.0.0.1:") || e.Token != token {
			t.Errorf("%s with %s is recorded as %s, %+v", c.says, c.token, e.Caller, e.Origin)
		}
	}
	mu.Lock()
	tokens = tokens[:1]
	mu.Unlock()
	// The name of the scheme may be in any case.
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPut, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "bearer token-of-claude-1")
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	logged := func(match func(mcp.Access) bool) func() bool {
		return func() bool {
			mu.Lock()
			defer mu.Unlock()
			return slices.ContainsFunc(log, match)
		}
	}
	waitFor(t, "a request of claude is in the access log", logged(func(a mcp.Access) bool {
		return a.Name == "claude" && a.Method == http.MethodPost && a.Status == 200 && a.Bytes > 0
	}))
	waitFor(t, "one with another spelling of the scheme, too", logged(func(a mcp.Access) bool {
		return a.Name == "claude" && a.Method == http.MethodPut
	}))
	if _, err := callAs("claude", "token-of-anybody"); err == nil {
		t.Error("a withdrawn token was accepted")
	}
}

// TestStreamEndsWithItsToken withdraws the token of a client that has a stream open.
func TestStreamEndsWithItsToken(t *testing.T) {
	var withdrawn atomic.Bool
	ended := make(chan struct{}, 1)
	f := newFixture(t, mcp.Minimal, trustNetwork)
	url := f.listen(t, mcp.HTTPConfig{
		Verify: func(context.Context, string) (access.Token, error) {
			if withdrawn.Load() {
				return access.Token{}, host.Errorf(host.NotFound, "the token is not known")
			}
			return access.Token{Name: "claude"}, nil
		},
		Access: func(a mcp.Access) {
			if a.Method == http.MethodGet && a.Status == http.StatusOK {
				ended <- struct{}{}
			}
		},
	})
	send := func(method, body, session string) *http.Response {
		r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header = http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"},
			"Authorization": {"Bearer " + token}, "Mcp-Session-Id": {session}}
		answer, err := http.DefaultClient.Do(r)
		if err != nil || answer.StatusCode != http.StatusOK {
			t.Fatal(answer, err)
		}
		t.Cleanup(func() { answer.Body.Close() })
		return answer
	}
	began := send(http.MethodPost, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25",`+
		`"capabilities":{},"clientInfo":{"name":"claude","version":"1"}}}`, "")
	send(http.MethodGet, "", began.Header.Get("Mcp-Session-Id"))
	withdrawn.Store(true)
	select {
	case <-ended:
	case <-time.After(20 * time.Second):
		t.Error("the stream goes on without its token")
	}
}

// TestHealthAndChallenge checks what is available without a token, and the response to a client without one.
func TestHealthAndChallenge(t *testing.T) {
	f := newFixture(t, mcp.Minimal, trustNetwork)
	url := f.listen(t, mcp.HTTPConfig{Tokens: []string{token}})
	health := strings.TrimSuffix(url, mcp.Path) + mcp.HealthPath
	for _, c := range []struct {
		url, host, body, challenge string
		status                     int
	}{
		{health, "", `{"ok":true}`, "", 200},
		{health, "evil.example", `denied`, "", 403},
		{url, "", "", `Bearer realm="parley"`, 401},
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, c.url, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Host = c.host
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(answer.Body)
		answer.Body.Close()
		if answer.StatusCode != c.status || !strings.Contains(string(body), c.body) ||
			answer.Header.Get("WWW-Authenticate") != c.challenge {
			t.Errorf("%s: %d %v %s", c.url, answer.StatusCode, answer.Header, body)
		}
	}
}
