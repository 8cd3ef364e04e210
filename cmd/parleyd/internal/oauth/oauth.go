// Package oauth verifies access tokens, as a resource server of OAuth 2.1: JSON Web Tokens of one issuer, for one
// audience, whose claims say who the caller is.
package oauth

import (
	"cmp"
	"context"
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

// Config says whose tokens count, and which callers they are.
type Config struct {
	Issuer string `toml:"issuer"`
	// Audience must be among those of a token.
	Audience string `toml:"audience"`
	// Resource is the URL of MCP as clients have it. "" is the audience.
	Resource string `toml:"resource"`
	// JWKS is the URL of the keys. "" asks the issuer for it.
	JWKS string `toml:"jwks"`
	// Callers are tried in their order.
	Callers []Caller `toml:"callers"`
}

// Caller names the caller of tokens with a claim. Claim may be a path such as "realm_access.roles"; a claim that is a
// list has each of its items.
type Caller struct {
	Claim  string `toml:"claim"`
	Value  string `toml:"value"`
	Caller string `toml:"caller"`
}

const (
	// clockSkew is how far the clock of the issuer may be from that of this machine.
	clockSkew = time.Minute
	// requestTime bounds a request to the issuer.
	requestTime = 5 * time.Second
	// fetchEvery is the least time between two requests for keys, so that tokens with keys that nobody has cannot make
	// the service flood the issuer. refreshEvery is when keys are fetched again, so that a key that was withdrawn ends.
	fetchEvery   = 10 * time.Second
	refreshEvery = time.Hour
)

// algorithms are those by public keys: with the others, whoever can verify a token can make one.
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
	fetched time.Time // the keys, all of them
	asked   time.Time // for anything
}

// New returns a verifier. It asks the issuer when the first token comes.
func New(cfg Config) *Verifier {
	v := &Verifier{cfg: cfg, fetchEvery: fetchEvery, refreshEvery: refreshEvery, now: time.Now, jwks: cfg.JWKS}
	v.client = &http.Client{Timeout: requestTime, Transport: bounded{v}}
	return v
}

// Verify returns whose token it is. The error is denied for a valid token that is of no caller.
func (v *Verifier) Verify(ctx context.Context, text string) (access.Token, error) {
	token, err := oidc.NewVerifier(v.cfg.Issuer, v, &oidc.Config{
		ClientID: v.cfg.Audience, SupportedSigningAlgs: algorithms, SkipExpiryCheck: true,
	}).Verify(ctx, text)
	if err != nil {
		return access.Token{}, err
	}
	var claims map[string]any
	if err := token.Claims(&claims); err != nil {
		return access.Token{}, err
	}
	now := v.now()
	begin, _ := claims["nbf"].(float64)
	switch {
	case now.After(token.Expiry.Add(clockSkew)): // also without an end
		return access.Token{}, fmt.Errorf("the token expired at %s", token.Expiry)
	case now.Add(clockSkew).Before(time.Unix(int64(begin), 0)):
		return access.Token{}, fmt.Errorf("the token is not valid before %s", time.Unix(int64(begin), 0))
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
	return access.Token{}, host.Errorf(host.Denied, "the token is valid, but its claims are of no caller of this service")
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

// VerifySignature verifies a signature by the keys of the issuer, as [oidc.KeySet] has it. While the issuer cannot be
// reached, known keys go on.
func (v *Verifier) VerifySignature(ctx context.Context, jwt string) ([]byte, error) {
	known, err := v.find(ctx)
	if err != nil {
		return nil, err
	}
	v.mu.Lock()
	stale := v.now().Sub(v.fetched) > v.refreshEvery
	if stale {
		v.fetched = v.now() // others go on with the known keys meanwhile
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
	v.asked = time.Time{} // the keys may be fetched at once
	v.jwks, v.keys, v.fetched = jwks, oidc.NewRemoteKeySet(v.clientContext(), jwks), v.now()
	return v.keys, nil
}

func (v *Verifier) clientContext() context.Context {
	return oidc.ClientContext(context.Background(), v.client)
}

// errNoKeys ends a request to the issuer that comes too soon.
var errNoKeys = errors.New("the issuer was asked a moment ago")

// bounded sends requests to the issuer, within the bound of their number.
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

// MetadataPath is where clients find the metadata of the resource, also with the path of the resource behind it.
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
