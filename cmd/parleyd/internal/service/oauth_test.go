package service

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/coreos/go-oidc/v3/oidc/oidctest"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// bearer sends the token of now.
type bearer struct{ token *atomic.Value }

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	return client{token: b.token.Load().(string)}.RoundTrip(r)
}

// TestOAuth serves clients whose tokens an authorization server signed, beside those of the file.
func TestOAuth(t *testing.T) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	public := oidctest.PublicKey{PublicKey: key.Public(), KeyID: "k", Algorithm: oidc.ES256}
	keys := &oidctest.Server{PublicKeys: []oidctest.PublicKey{public}}
	issuer := httptest.NewServer(keys)
	t.Cleanup(issuer.Close)
	keys.SetIssuer(issuer.URL)
	f := start(t, `
[oauth]
issuer = "`+issuer.URL+`"
audience = "https://tools.example/mcp"
[[oauth.callers]]
claim = "groups"
value = "platform"
caller = "platform"
`)
	sign := func(user, group string, left time.Duration) string {
		return oidctest.SignIDToken(key, "k", oidc.ES256, fmt.Sprintf(
			`{"iss":%q,"aud":"https://tools.example/mcp","sub":%q,"groups":[%q],"exp":%d}`, issuer.URL, user, group,
			time.Now().Add(left).Unix()))
	}
	for name, c := range map[string]struct {
		token     string
		status    int
		challenge string
	}{
		"without a token": {"", 401, `, resource_metadata="https://tools.example/.well-known/oauth-protected-resource/mcp"`},
		"expired":         {sign("ada", "platform", -time.Hour), 401, "resource_metadata="},
		"no caller":       {sign("ada", "web", time.Hour), 403, ""},
	} {
		r, _ := http.NewRequest(http.MethodPost, f.url+"/mcp", strings.NewReader("{}"))
		r.Header.Set("Authorization", "Bearer "+c.token)
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		got := answer.Header.Get("WWW-Authenticate")
		if answer.StatusCode != c.status || !strings.Contains(got, c.challenge) {
			t.Errorf("%s: %d %s", name, answer.StatusCode, got)
		}
	}
	for _, path := range []string{"", "/mcp"} {
		status, body := get(t, f.url+"/.well-known/oauth-protected-resource"+path, "tools.example")
		if status != 200 || !strings.Contains(body, issuer.URL) {
			t.Errorf("the metadata at %q: %d %s", path, status, body)
		}
	}
	if s, err := connect(f.url+"/mcp", client{token: token}); err != nil {
		t.Errorf("a token of the file: %v", err)
	} else {
		_ = s.Close()
	}

	// A session of a user goes on with the next token of that user, and not with one of another user.
	var now atomic.Value
	now.Store(sign("ada", "platform", time.Hour))
	s, err := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, nil).Connect(t.Context(),
		&sdk.StreamableClientTransport{Endpoint: f.url + "/mcp", MaxRetries: -1,
			HTTPClient: &http.Client{Transport: bearer{&now}}},
		&sdk.ClientSessionOptions{ProtocolVersion: "2025-11-25"})
	if err != nil {
		t.Fatal(err)
	}
	now.Store(sign("ada", "platform", 2*time.Hour))
	if _, err := call(s, "text.hash", `{"text":"a"}`, `{}`); err != nil {
		t.Errorf("with the next token: %v", err)
	}
	now.Store(sign("eve", "platform", time.Hour))
	if _, err := call(s, "text.hash", `{"text":"a"}`, `{}`); err == nil {
		t.Error("another user continues a session")
	}
	records, _ := os.ReadFile(f.parley.AuditLog().Path())
	if !strings.Contains(string(records), `"mcp-http:platform"`) {
		t.Errorf("the records: %s", records)
	}
}
