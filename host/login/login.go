// Package login gets secrets from OAuth 2.1 authorization servers: a person logs in once, in a browser, and from then
// on the tokens are refreshed when a value is asked for.
//
// The tokens are stored under the name of the secret, with the id of the client and the endpoints as they were at the
// login. So a name has a value or a login, never both, a refresh has what it needs, and no refresh token is sent to
// endpoints that a server publishes later. Servers replace a refresh token when it is used, and end the login when
// they see the old one again. So only one process refreshes at a time, with one request, and a call that ends
// meanwhile does not interrupt it.
//
// Discovery and registration come from go-sdk. Its handler is not used, because it begins with the 401 of an MCP
// server and keeps the tokens in memory. golang.org/x/oauth2 is not used, because it repeats a refused refresh with
// other credentials, and has the body of a response in its errors.
//
// The package trusts nothing that a server says about itself: the issuer in the metadata must be the requested one,
// endpoints must be https unless the issuer is on loopback, PKCE with S256 is required, and requests follow no
// redirect to another origin.
package login

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/oauthex"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/outbound"
	"github.com/parley-tools/parley/host/policy/secret"
	"github.com/parley-tools/parley/host/step"
	"github.com/parley-tools/parley/manifest"
)

// Client logs in and out, and returns tokens. It is safe for concurrent use, also by several processes.
type Client struct {
	Store  secret.Store
	Egress outbound.Egress // makes all requests but those of the browser
	Wait   time.Duration   // for a person to log in; 0 is 5 minutes
	Limit  time.Duration   // time limit of each request; 0 is 20 seconds
}

// Request says where to log in, and for what.
type Request struct {
	Secret string // the name under which the login is stored
	// Again are the words after "parley login" that repeat this login. Errors offer them.
	Again    []string
	Issuer   string
	Scopes   []string
	Resource string // the API that the token is for (RFC 8707); "" does not say
	// ClientID is the id of a client that is registered with the server. "" registers one (RFC 7591).
	ClientID     string
	ClientSecret string // "" for a public client
	Port         int    // port of the address to which the server sends the browser back; 0 is any
	// Open shows a page to a person. It returns at once.
	Open func(page string) error
}

// Login logs in and stores the tokens; they replace those of an earlier login. The error is denied if the person or
// the server refused, timeout if nobody logged in or the server did not respond, and unavailable for a server that
// cannot be reached or does not keep to the rules. Nothing is stored then.
func (c *Client) Login(ctx context.Context, r Request) (*secret.Login, error) {
	meta, err := c.discover(ctx, r.Issuer)
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", r.Port))
	if err != nil {
		return nil, host.Errorf(host.Unavailable, "%v; choose another --port", err)
	}
	redirect := "http://" + listener.Addr().String() + callbackPath
	l := &secret.Login{
		Again: r.Again, Issuer: meta.Issuer, Scopes: slices.Clone(r.Scopes), Resource: r.Resource,
		TokenURL: meta.TokenEndpoint, RevocationURL: meta.RevocationEndpoint, ClientID: r.ClientID,
		ClientSecret: r.ClientSecret, Basic: !slices.Contains(meta.TokenEndpointAuthMethodsSupported, "client_secret_post"),
	}
	if r.ClientID == "" {
		err = c.register(ctx, meta, l, redirect)
	}
	const offline = "offline_access" // asks for a refresh token
	if slices.Contains(meta.ScopesSupported, offline) && !slices.Contains(l.Scopes, offline) {
		l.Scopes = append(l.Scopes, offline)
	}
	verifier, state := rand.Text()+rand.Text(), rand.Text()
	challenge := sha256.Sum256([]byte(verifier))
	page, _ := url.Parse(meta.AuthorizationEndpoint) // checked
	page.RawQuery = with(page.Query(), map[string]string{
		"response_type": "code", "client_id": l.ClientID, "redirect_uri": redirect, "state": state,
		"code_challenge": base64.RawURLEncoding.EncodeToString(challenge[:]), "code_challenge_method": "S256",
		"scope": strings.Join(l.Scopes, " "), "resource": l.Resource,
		// Without it servers ignore the scope offline_access (OpenID Connect Core, section 11).
		"prompt": map[bool]string{true: "consent"}[slices.Contains(l.Scopes, offline)],
	}).Encode()
	if err == nil {
		err = r.Open(page.String())
	}
	if err != nil {
		_ = listener.Close()
		return nil, err
	}
	answer, err := c.await(ctx, listener, r, state, meta)
	if err != nil {
		return nil, withoutResource(err, l)
	}
	form := map[string]string{"grant_type": "authorization_code", "code": answer.Get("code"), "redirect_uri": redirect,
		"code_verifier": verifier}
	if err := c.exchange(ctx, l, form); err != nil {
		return nil, withoutResource(fault(l.Issuer, err), l)
	}
	release, err := c.Store.Lock(ctx, r.Secret)
	if err != nil {
		return nil, err
	}
	defer release()
	return l, c.Store.SetLogin(r.Secret, l)
}

// discover returns the metadata of an issuer (RFC 8414, or OpenID Connect Discovery). It may name the issuer with or
// without a slash at the end: both have the same address of metadata.
func (c *Client) discover(ctx context.Context, issuer string) (*oauthex.AuthServerMeta, error) {
	if err := checkURL(issuer, issuer); err != nil {
		return nil, unusable(issuer, "the manifest names %v", err)
	}
	via := &transport{client: c, issuer: issuer}
	meta, err := auth.GetAuthServerMetadata(ctx, strings.TrimSuffix(issuer, "/"), &http.Client{Transport: via})
	switch {
	case via.err != nil:
		return nil, fault(issuer, via.err)
	case err != nil:
		return nil, unusable(issuer, "%s", manifest.CleanLine(err.Error()))
	case meta == nil:
		return nil, unusable(issuer, "it publishes no metadata at any of its well-known addresses")
	case !slices.Contains(meta.CodeChallengeMethodsSupported, "S256"):
		return nil, unusable(issuer, "it does not support PKCE with S256")
	}
	for i, endpoint := range []string{meta.AuthorizationEndpoint, meta.TokenEndpoint, meta.RegistrationEndpoint,
		meta.RevocationEndpoint} {
		if err := checkURL(endpoint, issuer); err != nil && (i < 2 || endpoint != "") { // the first two are required
			return nil, unusable(issuer, "its metadata names %v", err)
		}
	}
	return meta, nil
}

// register registers a client for one redirect.
func (c *Client) register(ctx context.Context, meta *oauthex.AuthServerMeta, l *secret.Login, redirect string) error {
	const give = "register a client there yourself, with the redirect http://127.0.0.1/callback, and pass its id with " +
		"--client-id"
	if meta.RegistrationEndpoint == "" {
		return unusable(l.Issuer, "it offers no dynamic registration of clients").WithNext(give)
	}
	via := &transport{client: c, issuer: l.Issuer}
	made, err := oauthex.RegisterClient(ctx, meta.RegistrationEndpoint, &oauthex.ClientRegistrationMetadata{
		ClientName: "Parley", RedirectURIs: []string{redirect}, ApplicationType: "native",
		GrantTypes: []string{"authorization_code", "refresh_token"}, ResponseTypes: []string{"code"},
		TokenEndpointAuthMethod: "none",
	}, &http.Client{Transport: via})
	if via.err != nil {
		return fault(l.Issuer, via.err)
	} else if err != nil {
		why := refusal{Code: "its response cannot be used"} // err may contain the response
		if e, is := errors.AsType[*oauthex.ClientRegistrationError](err); is {
			why = refusal{e.ErrorCode, e.ErrorDescription}
		}
		return unusable(l.Issuer, "it did not register a client: %v", why).WithNext(give)
	}
	l.ClientID, l.ClientSecret = made.ClientID, made.ClientSecret
	l.Basic = made.TokenEndpointAuthMethod != "client_secret_post"
	return nil
}

const callbackPath = "/callback"

// closePage is what the browser shows at the end. It says nothing about the outcome, which is not known yet.
const closePage = `<!doctype html><html lang="en"><meta charset="utf-8"><title>Parley</title>
<p>Parley has the answer of the server. Close this page; the terminal says whether the login succeeded.</p></html>
`

// await returns the parameters with which the browser comes back. It accepts only the first answer with the state of
// this login, so that neither the page of an earlier login nor another website ends it. It closes the listener.
func (c *Client) await(ctx context.Context, listener net.Listener, r Request, state string,
	meta *oauthex.AuthServerMeta) (url.Values, error) {
	wait := cmp.Or(c.Wait, 5*time.Minute)
	ctx, cancel := context.WithTimeoutCause(ctx, wait, host.Errorf(host.Timeout, "nobody logged in at %s within %s; "+
		"nothing was stored", r.Issuer, wait).WithSteps(step.Operator(step.OpLogin, r.Again...)))
	defer cancel()
	answers := make(chan url.Values, 1)
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+callbackPath, func(w http.ResponseWriter, q *http.Request) {
		for name, value := range map[string]string{"Content-Type": "text/html; charset=utf-8",
			"Content-Security-Policy": "default-src 'none'", "Referrer-Policy": "no-referrer", "Cache-Control": "no-store"} {
			w.Header().Set(name, value)
		}
		if q.URL.Query().Get("state") != state {
			http.Error(w, "This is not the answer to the login that Parley waits for.", http.StatusBadRequest)
			return
		}
		_, _ = io.WriteString(w, closePage)
		select {
		case answers <- q.URL.Query():
		default:
		}
	})
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second, MaxHeaderBytes: 64 << 10}
	go func() { _ = server.Serve(listener) }()
	defer func() {
		ended, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second) // for the page to arrive
		defer cancel()
		_ = server.Shutdown(ended)
		_ = server.Close()
	}()
	select {
	case answer := <-answers:
		return answer, checkAnswer(answer, meta)
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// checkAnswer checks what the browser brought back from the authorization endpoint.
func checkAnswer(answer url.Values, meta *oauthex.AuthServerMeta) error {
	iss, code := answer.Get("iss"), answer.Get("code")
	switch {
	case iss != meta.Issuer && (iss != "" || meta.AuthorizationResponseIssParameterSupported):
		return unusable(meta.Issuer, "the answer names the issuer %q", manifest.CleanValue(iss))
	case answer.Get("error") != "":
		why := refusal{answer.Get("error"), answer.Get("error_description")}
		return &host.Error{Code: host.Denied, Cause: why,
			Message: fmt.Sprintf("%s refused the login: %v", meta.Issuer, why)}
	case code == "":
		return unusable(meta.Issuer, "the answer contains no code")
	}
	return nil
}

// checkURL requires https, or http where the issuer and the URL are both on loopback.
func checkURL(endpoint, issuer string) error {
	u, err := url.Parse(endpoint)
	shown := manifest.CleanValue(endpoint)
	switch of, _ := url.Parse(issuer); {
	case err != nil || u.Host == "" || u.User != nil || u.Fragment != "":
		return fmt.Errorf("%q, which is not a plain URL", shown)
	case isLoopback(u) && !isLoopback(of):
		return fmt.Errorf("%q on this machine, where the issuer is not", shown)
	case u.Scheme != "https" && (u.Scheme != "http" || !isLoopback(u)):
		return fmt.Errorf("%q, which is not https", shown)
	}
	return nil
}

func isLoopback(u *url.URL) bool {
	return u.Hostname() == "localhost" || net.ParseIP(u.Hostname()).IsLoopback()
}

// with returns v with the further parameters that are not empty.
func with(v url.Values, more map[string]string) url.Values {
	for name, value := range more {
		if value != "" {
			v.Set(name, value)
		}
	}
	return v
}

// unusable returns the error of a server that does not do what it must.
func unusable(issuer, format string, args ...any) *host.Error {
	return host.Errorf(host.Unavailable, "the authorization server %s cannot be used: %s", manifest.CleanValue(issuer),
		manifest.Clip(fmt.Sprintf(format, args...), 400))
}
