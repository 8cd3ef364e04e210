package oauth

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/coreos/go-oidc/v3/oidc/oidctest"

	"github.com/parley-tools/parley/host"
)

const audience = "https://tools.example/mcp"

// issuer is an authorization server of a test.
type issuer struct {
	*httptest.Server
	mu      sync.Mutex
	serve   http.Handler // its metadata and keys; nil: it is gone
	fetches atomic.Int64
}

func (i *issuer) publish(keys ...oidctest.PublicKey) {
	server := &oidctest.Server{PublicKeys: keys}
	server.SetIssuer(i.URL)
	i.mu.Lock()
	defer i.mu.Unlock()
	i.serve = server
}

func (i *issuer) leave() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.serve = nil
}

func newIssuer(t *testing.T) *issuer {
	i := &issuer{}
	i.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		i.mu.Lock()
		serve := i.serve
		i.mu.Unlock()
		if i.fetches.Add(1); serve == nil {
			http.Error(w, "gone", http.StatusBadGateway)
			return
		}
		serve.ServeHTTP(w, r)
	}))
	t.Cleanup(i.Close)
	return i
}

func newKey(t *testing.T, id string) (*ecdsa.PrivateKey, oidctest.PublicKey) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key, oidctest.PublicKey{PublicKey: key.Public(), KeyID: id, Algorithm: oidc.ES256}
}

func newVerifier(i *issuer) *Verifier {
	v := New(Config{Issuer: i.URL, Audience: audience, Callers: []Caller{
		{"groups", "platform", "platform"}, {"realm.roles", "auditor", "auditor"}, {"scope", "tools", "anyone"},
		{"org", "12345678", "numbered"},
	}})
	v.fetchEvery = 0
	return v
}

// claimsOf makes the claims of a valid token, with some changed; nil removes one.
func claimsOf(i *issuer, change map[string]any) string {
	now := time.Now().Unix()
	claims := map[string]any{
		"iss": i.URL, "aud": audience, "sub": "ada", "exp": now + 300, "iat": now, "groups": []string{"web", "platform"},
	}
	maps.Copy(claims, change)
	maps.DeleteFunc(claims, func(_ string, value any) bool { return value == nil })
	text, _ := json.Marshal(claims)
	return string(text)
}

// TestVerify verifies tokens, each with one thing that differs from a valid one.
func TestVerify(t *testing.T) {
	i := newIssuer(t)
	key, public := newKey(t, "k1")
	weak, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	i.publish(public, oidctest.PublicKey{PublicKey: weak.Public(), KeyID: "rsa", Algorithm: oidc.RS256})
	v := newVerifier(i)
	stranger, _ := newKey(t, "k1")
	now := time.Now().Unix()
	sign := func(change map[string]any) string {
		return oidctest.SignIDToken(key, "k1", oidc.ES256, claimsOf(i, change))
	}
	encode := base64.RawURLEncoding.EncodeToString
	payload := encode([]byte(claimsOf(i, nil)))
	hmacBody := encode([]byte(`{"alg":"HS256","kid":"k1"}`)) + "." + payload
	secret, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		t.Fatal(err)
	}
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte(hmacBody))
	for _, c := range []struct {
		name, token string
		caller      string // "": refused
		denied      bool
	}{
		{"a valid token", sign(nil), "platform", false},
		{"by RSA", oidctest.SignIDToken(weak, "rsa", oidc.RS256, claimsOf(i, nil)), "platform", false},
		{"for several audiences", sign(map[string]any{"aud": []string{"other", audience}}), "platform", false},
		{"a role within a claim",
			sign(map[string]any{"groups": nil, "realm": map[string]any{"roles": []string{"auditor"}}}), "auditor", false},
		{"a scope", sign(map[string]any{"groups": "web", "scope": "mail tools"}), "anyone", false},
		{"a number as it is written", sign(map[string]any{"groups": nil, "org": 12345678}), "numbered", false},
		{"not before a text", sign(map[string]any{"nbf": "soon"}), "", false},
		{"the first caller counts", sign(map[string]any{"scope": "tools"}), "platform", false},
		{"a group in one text", sign(map[string]any{"groups": "web platform"}), "", true},
		{"no caller", sign(map[string]any{"groups": nil}), "", true},
		{"another issuer", sign(map[string]any{"iss": "https://other.example"}), "", false},
		{"another audience", sign(map[string]any{"aud": "https://other.example/mcp"}), "", false},
		{"no audience", sign(map[string]any{"aud": nil}), "", false},
		{"expired", sign(map[string]any{"exp": now - 70}), "", false},
		{"expired within the skew", sign(map[string]any{"exp": now - 50}), "platform", false},
		{"without an end", sign(map[string]any{"exp": nil}), "", false},
		{"not yet valid", sign(map[string]any{"nbf": now + 70}), "", false},
		{"not yet valid within the skew", sign(map[string]any{"nbf": now + 50}), "platform", false},
		{"by another key of the same name", oidctest.SignIDToken(stranger, "k1", oidc.ES256, claimsOf(i, nil)), "", false},
		{"by a key that nobody has", oidctest.SignIDToken(stranger, "k9", oidc.ES256, claimsOf(i, nil)), "", false},
		{"algorithm none", encode([]byte(`{"alg":"none"}`)) + "." + payload + ".", "", false},
		{"by the public key as a secret", hmacBody + "." + encode(mac.Sum(nil)), "", false},
		{"claims that were changed", strings.Join([]string{strings.Split(sign(nil), ".")[0],
			encode([]byte(claimsOf(i, map[string]any{"sub": "eve"}))), strings.Split(sign(nil), ".")[2]}, "."), "", false},
		{"no token", "nonsense", "", false},
		{"nothing", "", "", false},
	} {
		got, err := v.Verify(t.Context(), c.token)
		if got.Name != c.caller || (err == nil) != (c.caller != "") || errors.Is(err, host.Denied) != c.denied {
			t.Errorf("%s: %+v, %v", c.name, got, err)
		}
		if err == nil && got.User != i.URL+" ada" {
			t.Errorf("%s: the user %q", c.name, got.User)
		}
	}
}

// TestKeys follows an issuer through rotation, absence and the withdrawal of a key.
func TestKeys(t *testing.T) {
	i := newIssuer(t)
	v := newVerifier(i)
	var later time.Duration
	v.now = func() time.Time { return time.Now().Add(later) }
	first, firstPublic := newKey(t, "k1")
	second, secondPublic := newKey(t, "k2")
	accepts := func(name string, key *ecdsa.PrivateKey, id string, want bool) {
		t.Helper()
		expires := map[string]any{"exp": v.now().Add(time.Minute).Unix()}
		_, err := v.Verify(t.Context(), oidctest.SignIDToken(key, id, oidc.ES256, claimsOf(i, expires)))
		if (err == nil) != want {
			t.Errorf("%s: %v", name, err)
		}
	}
	accepts("before the issuer is there", first, "k1", false)
	i.publish(firstPublic)
	accepts("once it is there", first, "k1", true)
	i.publish(firstPublic, secondPublic)
	accepts("a key more", second, "k2", true)
	i.leave()
	accepts("a known key while the issuer is gone", first, "k1", true)
	stranger, _ := newKey(t, "k3")
	accepts("an unknown key while the issuer is gone", stranger, "k3", false)
	later = 2 * refreshEvery
	accepts("a known key, long after the issuer is gone", first, "k1", true)
	i.publish(secondPublic)
	later = 4 * refreshEvery
	accepts("a key that stays", second, "k2", true)
	accepts("a key that was withdrawn", first, "k1", false)
}

// TestFloods checks that tokens with unknown keys make few requests to the issuer.
func TestFloods(t *testing.T) {
	i := newIssuer(t)
	key, public := newKey(t, "k1")
	i.publish(public)
	v := newVerifier(i)
	v.fetchEvery = fetchEvery
	stranger, _ := newKey(t, "k9")
	var clients sync.WaitGroup
	var valid atomic.Int64
	for range 8 {
		clients.Go(func() {
			if _, err := v.Verify(t.Context(), oidctest.SignIDToken(key, "k1", oidc.ES256, claimsOf(i, nil))); err == nil {
				valid.Add(1)
			}
			for range 20 {
				_, _ = v.Verify(t.Context(), oidctest.SignIDToken(stranger, "k9", oidc.ES256, claimsOf(i, nil)))
			}
		})
	}
	clients.Wait()
	if valid.Load() != 8 || i.fetches.Load() > 3 {
		t.Errorf("%d of 8 valid tokens were accepted, with %d requests to the issuer", valid.Load(), i.fetches.Load())
	}
}

// TestMetadata checks the address and the content of what clients read first.
func TestMetadata(t *testing.T) {
	for _, c := range []struct{ resource, url, says string }{
		{"", "https://tools.example/.well-known/oauth-protected-resource/mcp", `"resource":"https://tools.example/mcp"`},
		{"https://a.example", "https://a.example/.well-known/oauth-protected-resource", `"resource":"https://a.example"`},
	} {
		url, handler := Config{Issuer: "https://login.example", Audience: audience, Resource: c.resource}.Metadata()
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequest(http.MethodGet, url, nil))
		if body := w.Body.String(); url != c.url || !strings.Contains(body, c.says) ||
			!strings.Contains(body, `"authorization_servers":["https://login.example"]`) {
			t.Errorf("%s: %s", url, body)
		}
	}
}
