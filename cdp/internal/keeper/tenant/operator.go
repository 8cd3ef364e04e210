package tenant

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/fetch"
	"github.com/chromedp/cdproto/security"

	"github.com/parley-tools/parley/cdp/internal/keeper/api"
	"github.com/parley-tools/parley/cdp/internal/keeper/mux"
	"github.com/parley-tools/parley/cdp/internal/keeper/scan"
	"github.com/parley-tools/parley/cdp/internal/keeper/target"
)

// OriginRules are the operator's rules for the servers of origins. Callers cannot set them.
type OriginRules interface {
	// OriginTLS returns "any" to accept every certificate, "pin:sha256/HASH" to accept one with this public key, and ""
	// to leave the decision to the browser.
	OriginTLS(origin string) (string, error)
	// OriginLogin returns USER:PASSWORD, or "" if there is no login.
	OriginLogin(ctx context.Context, origin string) (string, error)
	// NamesTLS reports whether any origin has a rule for its certificate. NamesOrigin reports whether an origin has any
	// rule.
	NamesTLS() bool
	NamesOrigin(origin string) bool
}

// askOperator makes the pages of all sessions ask about certificates, once the operator's files have rules for them.
// It returns when the pages of one session do so.
func (tn *Tenancy) askOperator(ctx context.Context, session string) *api.Error {
	ss := tn.owners.Setups
	if ss.Operator == nil || !ss.Operator.NamesTLS() {
		return nil
	}
	tn.mux.Lock()
	if !ss.asks {
		ss.asks = true
		for _, t := range tn.tracker.All {
			ss.apply(t)
		}
	}
	tn.mux.Unlock()
	return tn.mux.Wait(ctx, "for the pages of the session", func() (bool, *api.Error) {
		return !slices.ContainsFunc(tn.tracker.All, func(t *target.Target) bool {
			return t.Owner == session && t.Preparing > 0 && !t.Closed
		}), nil
	})
}

// Reason returns why a URL was not loaded for a session: the browser's reason, or the reason of the keeper's refusal,
// which the browser does not name.
func (ow *Owners) Reason(session, url, reason string) string {
	ow.mux.Lock()
	defer ow.mux.Unlock()
	refused := ow.Setups.Of(session).Refused[api.OriginOf(url)]
	if refused != api.NoLogin && refused != "" && reason == "net::ERR_ABORTED" {
		return refused
	}
	return reason
}

// AsksLogin reports whether the server of a URL has asked a session for a login and received none.
func (ow *Owners) AsksLogin(session, url string) bool {
	ow.mux.Lock()
	defer ow.mux.Unlock()
	return ow.Setups.Of(session).Refused[api.OriginOf(url)] == api.NoLogin
}

// Remedy says what the operator can write into policy.toml to make the browser accept the server of a URL, which it
// refused for a reason. It returns "" if nothing helps.
func (ow *Owners) Remedy(ctx context.Context, by api.Caller, url, reason string) string {
	of := api.OriginOf(url)
	switch {
	case of == "" || ow.Setups.Operator == nil:
		return ""
	case reason == api.NoLogin:
		return ow.remedyLogin(ctx, of)
	case strings.Contains(reason, "ERR_CERT_"):
		return ow.remedyTLS(ctx, by, of)
	}
	return ""
}

func (ow *Owners) remedyLogin(ctx context.Context, of string) string {
	if login, err := ow.Setups.Operator.OriginLogin(ctx, of); login != "" || err != nil {
		return fmt.Sprintf("the login of [origins.%q] in policy.toml was not accepted, or has no value", of)
	}
	return "the operator can give a login " + ow.lines(of, `login = "secret:NAME"`)
}

func (ow *Owners) remedyTLS(ctx context.Context, by api.Caller, of string) string {
	pin, rule := pinPrefix+"HASH", ""
	if !api.OfPlugin(by.SessionKey()) { // a plugin connects only to servers that it was granted
		pin = pinOf(ctx, of)
		rule, _ = ow.Setups.Operator.OriginTLS(of)
	}
	switch {
	case pin == "": // the server does not speak TLS
		return ""
	case rule != "" && rule != pin:
		return fmt.Sprintf("its public key has the %s, and [origins.%q] in policy.toml says tls = %q", pin, of, rule)
	}
	return "the operator can accept it " + ow.lines(of, fmt.Sprintf("tls = %q", pin))
}

// lines says where to write a key of an origin in policy.toml. A table that exists must not be written twice.
func (ow *Owners) lines(of, key string) string {
	if ow.Setups.Operator.NamesOrigin(of) {
		return fmt.Sprintf("in policy.toml, with one more line below [origins.%q]:\n%s", of, key)
	}
	return fmt.Sprintf("with two lines at the end of policy.toml:\n[origins.%q]\n%s", of, key)
}

// FetchedBy returns a target of a session whose requests a caller pauses itself, or nil if there is none. The mux is
// locked.
func (ow *Owners) FetchedBy(session string) *target.Target {
	for _, t := range ow.tracker.All {
		if t.Owner == session && fetches(t) {
			return t
		}
	}
	return nil
}

// Commands about certificates, which cdproto lacks: the protocol's data calls them deprecated. Those that cdproto has
// accept every certificate for a page, from any server.
var (
	overrideCertificateErrors = cdp.Command[map[string]any, cdp.Empty]{Method: "Security.setOverrideCertificateErrors"}
	handleCertificateError    = cdp.Command[map[string]any, cdp.Empty]{Method: "Security.handleCertificateError"}
)

// askAboutCertificates makes Chrome ask the keeper which certificates a page accepts. Chrome refuses the command
// while one of its own pages, such as an error page, is loading; it is then sent again. The mux is locked.
func (ss *setups) askAboutCertificates(t *target.Target, tries int) {
	t.Preparing++
	target.Post(ss.mux, t, security.Enable, cdp.Empty{}, func(r mux.Reply) {
		if r.Err == nil || tries == 0 || t.Closed {
			t.Preparing--
			ss.mux.Broadcast()
			return
		}
		time.AfterFunc(tryAgain, func() {
			ss.mux.Lock()
			defer ss.mux.Unlock()
			t.Preparing--
			ss.askAboutCertificates(t, tries-1)
		})
	})
	target.Post(ss.mux, t, overrideCertificateErrors, map[string]any{"override": true}, nil)
}

const (
	tryAgain = 50 * time.Millisecond
	maxTries = 20
)

// onCertificate decides about a certificate that the browser refuses. The mux is locked.
func (ss *setups) onCertificate(t *target.Target, params json.RawMessage) {
	of := api.OriginOf(scan.Text(params, "requestURL"))
	go func() {
		answer := map[string]any{"eventId": scan.Field(params, "eventId"), "action": "continue"}
		accepted := ss.accepts(of)
		ss.mux.Lock()
		defer ss.mux.Unlock()
		set := ss.Of(t.Owner)
		if delete(set.Refused, of); !accepted {
			answer["action"], set.Refused[of] = "cancel", "net::"+scan.Text(params, "errorType")
		}
		if !t.Closed {
			target.Post(ss.mux, t, handleCertificateError, answer, nil)
		}
	}()
}

func (ss *setups) accepts(of string) bool {
	rule, err := ss.Operator.OriginTLS(of)
	if err != nil || rule == "any" {
		return err == nil
	}
	return rule != "" && rule == pinOf(context.Background(), of)
}

// pinTime is how long a server may take to show its certificate.
const pinTime = 5 * time.Second

const pinPrefix = "pin:sha256/"

// pinOf connects to the server of an https origin and returns the pin of its public key in the form of policy.toml.
// The server has proved that it owns the key. The pin is "" if the server does not speak TLS.
func pinOf(ctx context.Context, of string) string {
	u, err := url.Parse(of)
	if err != nil || u.Scheme != "https" {
		return ""
	}
	ctx, cancel := context.WithTimeout(ctx, pinTime)
	defer cancel()
	port := u.Port()
	if port == "" {
		port = "443"
	}
	dialer := tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true}} // pinOf returns the key, which is compared instead
	conn, err := dialer.DialContext(ctx, "tcp", net.JoinHostPort(u.Hostname(), port))
	if err != nil {
		return ""
	}
	defer conn.Close()
	shown := conn.(*tls.Conn).ConnectionState().PeerCertificates
	if len(shown) == 0 {
		return ""
	}
	sum := sha256.Sum256(shown[0].RawSubjectPublicKeyInfo)
	return pinPrefix + base64.StdEncoding.EncodeToString(sum[:])
}

// onLogin answers a server that asks for a login, once per request, because a server asks again after a wrong login.
// The mux is locked.
func (ss *setups) onLogin(t *target.Target, params json.RawMessage) {
	id, of := scan.Text(params, "requestId"), api.OriginOf(scan.Text(params, "authChallenge", "origin"))
	request, _, _ := strings.Cut(id, ".")
	a := ss.applied[t]
	asks := a.asked != request && scan.Text(params, "authChallenge", "source") == "Server"
	a.asked = request
	go func() {
		login := ""
		if asks && ss.Operator != nil {
			login, _ = ss.Operator.OriginLogin(context.Background(), of)
		}
		answer := &fetch.AuthChallengeResponse{Response: fetch.AuthChallengeResponseResponseProvideCredentials}
		answer.Username, answer.Password, _ = strings.Cut(login, ":")
		ss.mux.Lock()
		defer ss.mux.Unlock()
		set := ss.Of(t.Owner)
		if delete(set.Refused, of); login == "" {
			answer.Response, set.Refused[of] = fetch.AuthChallengeResponseResponseCancelAuth, api.NoLogin
		}
		if !t.Closed {
			target.Post(ss.mux, t, fetch.ContinueWithAuth, fetch.ContinueWithAuthParams{RequestID: fetch.RequestID(id),
				AuthChallengeResponse: answer}, nil)
		}
	}()
}

// SetHeaders replaces the headers that a session's requests to origins get. Without origins it removes all headers.
func (ow *Owners) SetHeaders(session string, origins []string, headers map[string]string) *api.Error {
	ow.mux.Lock()
	defer ow.mux.Unlock()
	if t := ow.FetchedBy(session); t != nil && len(headers) > 0 {
		return api.FetchBusy(t.ID)
	}
	set := ow.Setups.Of(session)
	if set.Headers == nil || len(origins) == 0 {
		set.Headers = map[string]map[string]string{}
	}
	for _, of := range origins {
		if set.Headers[of] = headers; len(headers) == 0 {
			delete(set.Headers, of)
		}
	}
	ow.ApplyToAll(session)
	return nil
}
