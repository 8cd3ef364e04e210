package login

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/grant"
	"github.com/parley-tools/parley/host/outbound"
	"github.com/parley-tools/parley/host/policy/secret"
	"github.com/parley-tools/parley/host/step"
	"github.com/parley-tools/parley/manifest"
)

// early is how long before its expiry a token is refreshed, because it could expire on its way.
const early = 10 * time.Second

// Token returns the access token of a stored login, refreshed if it has expired. Only one process refreshes at a time,
// with one request; the new tokens are stored before Token returns. If a new login is needed, the error is denied,
// with the step to log in; after any other error the login stays as it is.
func (c *Client) Token(ctx context.Context, name string) (string, error) {
	l, err := c.Store.Login(name)
	if err != nil || l.Valid(early) {
		return l.AccessToken, err
	}
	release, err := c.Store.Lock(ctx, name)
	if err != nil {
		return "", err
	}
	defer release()
	// Another process may have refreshed it, or ended the login.
	if l, err = c.Store.Login(name); err != nil || l.Valid(early) {
		return l.AccessToken, err
	}
	again := step.Operator(step.OpLogin, l.Again...)
	if l.RefreshToken == "" {
		return "", host.Errorf(host.Denied, "the login for secret %s at %s has expired", name, l.Issuer).WithSteps(again)
	}
	form := map[string]string{"grant_type": "refresh_token", "refresh_token": l.RefreshToken}
	// A call that ends meanwhile does not end this: the server may have replaced the refresh token already.
	if err = c.exchange(context.WithoutCancel(ctx), l, form); err == nil {
		err = c.Store.SetLogin(name, l)
	}
	if err == nil {
		return l.AccessToken, nil
	}
	refused, is := errors.AsType[refusal](err)
	if !is {
		return "", fault(l.Issuer, err)
	}
	did := "did not refresh"
	if err = nil; refused.Code == "invalid_grant" { // later calls need not ask again
		l.AccessToken, l.RefreshToken, l.Expires, did = "", "", time.Time{}, "has ended"
		err = c.Store.SetLogin(name, l)
	}
	e := host.Errorf(host.Denied, "%s %s the login for secret %s: %v", l.Issuer, did, name, refused)
	if e.Cause = refused; len(withoutResource(e, l).Steps) == 0 {
		e.Steps = []step.Step{again}
	}
	return "", errors.Join(e, err)
}

// withoutResource adds to an error the login that does not name the API, if the server refuses that name (RFC 8707).
func withoutResource(err error, l *secret.Login) *host.Error {
	e := host.AsError(err)
	if why, is := errors.AsType[refusal](err); is && why.Code == "invalid_target" && l.Resource != "" {
		words := slices.Clone(l.Again)
		if i := slices.Index(words, "--resource"); i >= 0 {
			words = slices.Delete(words, i, i+2)
		}
		e.Steps = []step.Step{step.Operator(step.OpLogin, append(words, "--resource", "none")...)}
	}
	return e
}

// Logout revokes the tokens of a login if its server can do that (RFC 7009), and removes them from the store in any
// case. failed is why they are not revoked; nil if they are. The error is not_found if the secret has no login.
func (c *Client) Logout(ctx context.Context, name string) (failed, err error) {
	release, err := c.Store.Lock(ctx, name)
	if err != nil {
		return nil, err
	}
	defer release()
	l, err := c.Store.Login(name)
	if err != nil {
		return nil, err
	}
	if l.RevocationURL == "" {
		failed = refusal{Code: "it has no revocation endpoint"}
	}
	for _, token := range []string{l.RefreshToken, l.AccessToken} {
		if token != "" && failed == nil {
			_, failed = c.post(ctx, l, l.RevocationURL, map[string]string{"token": token})
		}
	}
	return failed, c.Store.Remove(name)
}

// exchange gets tokens for a grant.
func (c *Client) exchange(ctx context.Context, l *secret.Login, form map[string]string) error {
	form["resource"] = l.Resource
	body, err := c.post(ctx, l, l.TokenURL, form)
	if err != nil {
		return err
	}
	var t struct {
		AccessToken  string      `json:"access_token"`
		TokenType    string      `json:"token_type"`
		RefreshToken string      `json:"refresh_token"`
		ExpiresIn    json.Number `json:"expires_in"`
		Scope        string      `json:"scope"`
	}
	switch err := json.Unmarshal(body, &t); {
	case err != nil:
		return unusable(l.Issuer, "its token endpoint responded with something other than the JSON of a token")
	case t.TokenType != "" && !strings.EqualFold(t.TokenType, "bearer"):
		return unusable(l.Issuer, "its tokens have the type %q, not Bearer", manifest.CleanValue(t.TokenType))
	case t.AccessToken == "" || !isToken(t.AccessToken) || !isToken(t.RefreshToken):
		return unusable(l.Issuer, "its token endpoint responded without access_token, or with one that cannot be sent")
	}
	l.AccessToken, l.Expires = t.AccessToken, time.Time{}
	if t.RefreshToken != "" { // otherwise the present one stays valid
		l.RefreshToken = t.RefreshToken
	}
	if t.Scope != "" {
		l.Scopes = strings.Fields(manifest.CleanLine(t.Scope))
	}
	seconds, err := t.ExpiresIn.Float64()
	if err != nil { // the server does not say; a token that can be refreshed does not live for ever
		seconds = time.Hour.Seconds()
	}
	if err == nil && seconds > 0 || l.RefreshToken != "" {
		l.Expires = time.Now().Add(time.Duration(max(0, min(seconds, 1e9)) * float64(time.Second)))
	}
	return nil
}

// post sends a form to an endpoint, as the client of the login, and returns the body of the response.
func (c *Client) post(ctx context.Context, l *secret.Login, to string, form map[string]string) ([]byte, error) {
	isBasic := l.ClientSecret != "" && l.Basic
	if !isBasic {
		form["client_id"], form["client_secret"] = l.ClientID, l.ClientSecret
	}
	q, err := http.NewRequestWithContext(ctx, http.MethodPost, to, strings.NewReader(with(url.Values{}, form).Encode()))
	if err != nil {
		return nil, err
	}
	q.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	q.Header.Set("Accept", "application/json")
	if isBasic {
		q.SetBasicAuth(url.QueryEscape(l.ClientID), url.QueryEscape(l.ClientSecret)) // RFC 6749, section 2.3.1
	}
	response, err := (&transport{client: c, issuer: l.Issuer}).RoundTrip(q)
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(response.Body)
	var r refusal
	_ = json.Unmarshal(body, &r)
	switch status := response.StatusCode; {
	case status >= 500 || status == http.StatusTooManyRequests:
		return nil, host.Errorf(host.Unavailable, "the authorization server of %s responded %d; try again later", l.Issuer,
			status)
	case status != http.StatusOK || r.Code != "":
		r.Code = cmp.Or(r.Code, fmt.Sprint("status ", status))
		return nil, r
	}
	return body, err
}

// refusal is the error that a server responds with (RFC 6749, section 5.2).
type refusal struct {
	Code        string `json:"error"`
	Description string `json:"error_description"`
}

func (r refusal) Error() string {
	return manifest.Clip(manifest.CleanLine(strings.TrimSpace(r.Code+" "+r.Description)), 200)
}

// fault returns what went wrong with a server as an error of the host. A redirect that was not followed does not
// count as a missing grant.
func fault(issuer string, err error) error {
	if refused, is := errors.AsType[refusal](err); is {
		e := unusable(issuer, "it refused: %v", refused)
		e.Cause = refused
		return e
	}
	e := host.AsError(err)
	if len(e.Denied) > 0 {
		return unusable(issuer, "%s", e.Denied[0].Why)
	}
	return e
}

// isToken reports whether s can be sent in a header.
func isToken(s string) bool {
	return len(s) <= 16<<10 && !strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r > '~' })
}

// transport makes requests that reach the origin of their URL only. err is the error of the last one, which the SDK
// does not wrap.
type transport struct {
	client *Client
	issuer string
	err    error
}

// RoundTrip implements [http.RoundTripper].
func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	q := &outbound.Request{Method: r.Method, URL: r.URL.String()}
	if r.Body != nil {
		defer r.Body.Close()
		q.Body, _ = io.ReadAll(r.Body) // from memory
	}
	for name := range r.Header {
		q.Headers = append(q.Headers, [2]string{name, r.Header.Get(name)})
	}
	limit := cmp.Or(t.client.Limit, 20*time.Second)
	ctx, cancel := context.WithTimeoutCause(r.Context(), limit, host.Errorf(host.Timeout,
		"the authorization server of %s did not respond within %s; try again later", t.issuer, limit))
	defer cancel()
	origin := grant.HTTP{URL: r.URL.Scheme + "://" + r.URL.Host, Methods: []string{r.Method}}
	got, err := t.client.Egress.Send(ctx, q, outbound.Rights{HTTP: []grant.HTTP{origin}})
	if t.err = err; err != nil {
		return nil, err
	}
	response := &http.Response{StatusCode: got.Status, Header: http.Header{},
		Body: io.NopCloser(bytes.NewReader(got.Body))}
	for _, h := range got.Headers {
		response.Header.Add(h[0], h[1])
	}
	return response, nil
}
