// Package oauth verifies access tokens, as a resource server of OAuth 2.1: JSON Web Tokens of one issuer, for one
// audience, whose claims name the caller.
package oauth

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/oauthex"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/mcp/access"
)

// Config says which tokens are accepted, and which callers they belong to.
type Config struct {
	Issuer string `toml:"issuer"`
	// Audience must be among those of a token.
	Audience string `toml:"audience"`
	// Resource is the URL of MCP that clients use. "" means the audience.
	Resource string `toml:"resource"`
	// JWKS is the URL of the keys. "" asks the issuer for it.
	JWKS string `toml:"jwks"`
	// Callers are tried in their order.
	Callers []Caller `toml:"callers"`
}

// Caller is the name of the caller of tokens with a claim. Claim may be a path such as "realm_access.roles". A claim
// that is a list has the value if one of its items does.
type Caller struct {
	Claim  string `toml:"claim"`
	Value  string `toml:"value"`
	Caller string `toml:"caller"`
}

const (
	// clockSkew is the maximum difference between the issuer's clock and this machine's.
	clockSkew = time.Minute
	// requestTime bounds a request to the issuer.
	requestTime = 5 * time.Second
	// fetchEvery is the least time between two requests for keys, so that tokens with unknown keys cannot make the
	// service flood the issuer. refreshEvery is the time after which keys are fetched again, so that a withdrawn key
	// stops working.
	fetchEvery   = 10 * time.Second
	refreshEvery = time.Hour
)

// algorithms are the accepted algorithms, which all use public keys. With any other, everybody who can verify a token
// can make one.
var algorithms = []string{
	oidc.RS256, oidc.RS384, oidc.RS512, oidc.ES256, oidc.ES384, oidc.ES512, oidc.PS256, oidc.PS384, oidc.PS512, oidc.EdDSA,
}

// Verifier verifies tokens. It is safe for concurrent use.
type Verifier struct {
	cfg          Config
	client       *http.Client
	fetchEvery   time.Duration
	refreshEvery time.Duration
	now          func() time.Time

	finding sync.Mutex // held while the issuer is asked for the URL of the keys
	mu      sync.Mutex
	jwks    string // URL of the keys, once it is known
	keys    *oidc.RemoteKeySet
	fetched time.Time // when all keys were fetched
	asked   time.Time // the last request of any kind
}

// New returns a verifier. It asks the issuer only when the first token comes.
func New(cfg Config) *Verifier {
	v := &Verifier{cfg: cfg, fetchEvery: fetchEvery, refreshEvery: refreshEvery, now: time.Now, jwks: cfg.JWKS}
	v.client = &http.Client{Timeout: requestTime, Transport: bounded{v}}
	return v
}

// Verify returns the token with its caller. The error is denied for a valid token that belongs to no caller.
func (v *Verifier) Verify(ctx context.Context, text string) (access.Token, error) {
	token, err := oidc.NewVerifier(v.cfg.Issuer, v, &oidc.Config{
		ClientID: v.cfg.Audience, SupportedSigningAlgs: algorithms, SkipExpiryCheck: true,
	}).Verify(ctx, text)
	if err != nil {
		return access.Token{}, err
	}
	var raw json.RawMessage
	if err := token.Claims(&raw); err != nil {
		return access.Token{}, err
	}
	exact := json.NewDecoder(bytes.NewReader(raw))
	exact.UseNumber() // an id such as 12345678 is compared as it is written
	var claims map[string]any
	if err := exact.Decode(&claims); err != nil {
		return access.Token{}, err
	}
	now := v.now()
	switch begin, err := timeOf(claims["nbf"]); {
	case err != nil:
		return access.Token{}, fmt.Errorf("nbf: %w", err)
	case now.After(token.Expiry.Add(clockSkew)): // even without an expiry
		return access.Token{}, fmt.Errorf("the token expired at %s", token.Expiry)
	case now.Add(clockSkew).Before(begin):
		return access.Token{}, fmt.Errorf("the token is not valid before %s", begin)
	}
	for _, c := range v.cfg.Callers {
		if hasClaim(claims, c.Claim, c.Value) {
			user := ""
			if token.Subject != "" {
				user = token.Issuer + " " + token.Subject
			}
			return access.Token{Name: c.Caller, User: user}, nil
		}
	}
	return access.Token{}, host.Errorf(host.Denied, "the token is valid, but none of [[oauth.callers]] matches its claims")
}

// timeOf returns the time that a claim gives, or the zero time without the claim.
func timeOf(claim any) (time.Time, error) {
	if claim == nil {
		return time.Time{}, nil
	}
	number, _ := claim.(json.Number)
	seconds, err := number.Float64()
	return time.Unix(int64(seconds), 0), err
}

// hasClaim reports whether claims have a value at a path.
func hasClaim(claims map[string]any, path, value string) bool {
	claim, found := claims[path]
	if first, rest, nested := strings.Cut(path, "."); !found && nested {
		inner, _ := claims[first].(map[string]any)
		return hasClaim(inner, rest, value)
	}
	if list, is := claim.([]any); is {
		return slices.ContainsFunc(list, func(item any) bool { return fmt.Sprint(item) == value })
	}
	if scopes, is := claim.(string); is && (path == "scope" || path == "scp") {
		return slices.Contains(strings.Fields(scopes), value)
	}
	return found && fmt.Sprint(claim) == value
}

// VerifySignature verifies a signature by the keys of the issuer; it implements [oidc.KeySet]. While the issuer
// cannot be reached, known keys continue to work.
func (v *Verifier) VerifySignature(ctx context.Context, jwt string) ([]byte, error) {
	known, err := v.find(ctx)
	if err != nil {
		return nil, err
	}
	v.mu.Lock()
	stale := v.now().Sub(v.fetched) > v.refreshEvery
	if stale {
		v.fetched = v.now() // meanwhile, other calls use the known keys
	}
	jwks := v.jwks
	v.mu.Unlock()
	if !stale {
		return known.VerifySignature(ctx, jwt)
	}
	fresh := oidc.NewRemoteKeySet(v.clientContext(), jwks)
	payload, err := fresh.VerifySignature(ctx, jwt)
	if errors.Is(err, errNoKeys) || err != nil && strings.HasPrefix(err.Error(), "fetching keys") {
		return known.VerifySignature(ctx, jwt)
	}
	v.mu.Lock()
	v.keys = fresh
	v.mu.Unlock()
	return payload, err
}

// find returns the known keys. It asks the issuer for their URL first.
func (v *Verifier) find(ctx context.Context) (*oidc.RemoteKeySet, error) {
	v.finding.Lock()
	defer v.finding.Unlock()
	v.mu.Lock()
	keys, jwks := v.keys, v.jwks
	v.mu.Unlock()
	if keys != nil {
		return keys, nil
	}
	if jwks == "" {
		provider, err := oidc.NewProvider(oidc.ClientContext(ctx, v.client), v.cfg.Issuer)
		if err != nil {
			return nil, err
		}
		var found struct {
			URL string `json:"jwks_uri"`
		}
		if err := provider.Claims(&found); err != nil {
			return nil, err
		}
		jwks = found.URL
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.asked = time.Time{} // so that the keys may be fetched at once
	v.jwks, v.keys, v.fetched = jwks, oidc.NewRemoteKeySet(v.clientContext(), jwks), v.now()
	return v.keys, nil
}

func (v *Verifier) clientContext() context.Context {
	return oidc.ClientContext(context.Background(), v.client)
}

// errNoKeys is the error of a request to the issuer that comes too early.
var errNoKeys = errors.New("the issuer was asked a moment ago")

// bounded sends requests to the issuer, and limits their frequency.
type bounded struct{ of *Verifier }

func (b bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	b.of.mu.Lock()
	now := b.of.now()
	soon := now.Sub(b.of.asked) < b.of.fetchEvery
	if !soon {
		b.of.asked = now
	}
	b.of.mu.Unlock()
	if soon {
		return nil, errNoKeys
	}
	return http.DefaultTransport.RoundTrip(r)
}

// MetadataPath is the path of the resource's metadata. Clients may also append the resource's own path to it.
const MetadataPath = "/.well-known/oauth-protected-resource"

// Metadata returns the URL of the metadata, and a handler that serves it.
func (c Config) Metadata() (string, http.Handler) {
	resource := cmp.Or(c.Resource, c.Audience)
	at, _ := url.Parse(resource)
	at.Path = MetadataPath + strings.TrimSuffix(at.Path, "/")
	return at.String(), auth.ProtectedResourceMetadataHandler(&oauthex.ProtectedResourceMetadata{
		Resource: resource, AuthorizationServers: []string{c.Issuer}, BearerMethodsSupported: []string{"header"},
		ResourceName: "Parley",
	})
}
